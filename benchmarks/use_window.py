"""Begins ``use_peer`` as the program begins its window: no source is read by Qt for Python."""

import sys
from pathlib import Path

from chat_app.unread_sources import leave_sources_unread


def begin(directory: Path, name: str, link: str) -> int:
    leave_sources_unread()
    # Only now: the modules that make a window.
    from benchmarks.use_peer import main  # noqa: PLC0415
    from chat_app.qt_loop import run_on_qt  # noqa: PLC0415

    return run_on_qt(lambda: main(directory, name, link))


if __name__ == "__main__":
    sys.exit(begin(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
