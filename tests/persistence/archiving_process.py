"""A process that archives one message after another, says so after each, and waits to be killed.

Run as ``python -m tests.persistence.archiving_process FILE FIRST``.
"""

import itertools
import sys
from pathlib import Path

from engine.persistence.archive import SqliteArchive
from tests.persistence.archive_examples import NOW_NS, archived


def main() -> None:
    archive = SqliteArchive.open(Path(sys.argv[1]))
    print("ready", flush=True)  # noqa: T201 - this is how it reports
    for number in itertools.count(int(sys.argv[2])):
        archive.append([archived(number, timestamp_ns=NOW_NS + number)], now_ns=NOW_NS)
        print(number, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
