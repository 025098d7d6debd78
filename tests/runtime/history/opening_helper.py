"""An opening process that leaves word: ``… opening_helper MARK [dies | hangs | is_mute]``.

The file MARK is there once it has said that it runs, and MARK.over once its input has ended.
``dies``: it is killed in the middle of the next answer.  ``hangs``: there is no next answer.
``is_mute``: there is none at all, and MARK is there before.
"""

import os
import signal
import sys
from pathlib import Path

from engine.runtime.history.opening_process import LENGTH_BYTES, serve
from engine.session.group.opening import open_page


def answer_to_next() -> bytes:
    length = int.from_bytes(sys.stdin.buffer.read(LENGTH_BYTES))
    answer = open_page(sys.stdin.buffer.read(length))
    return len(answer).to_bytes(LENGTH_BYTES) + answer


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main(mark: Path, what: str) -> None:
    if what == "is_mute":
        mark.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    write(answer_to_next())
    mark.touch()
    if what == "dies":
        answer = answer_to_next()
        write(answer[: len(answer) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hangs":
        os.kill(os.getpid(), signal.SIGSTOP)
    serve(sys.stdin.buffer, sys.stdout.buffer)
    mark.with_suffix(".over").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
