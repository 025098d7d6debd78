"""A process that saves one transition after another, says so after each, and waits to be killed.

Run as ``python -m tests.persistence.saving_process DIRECTORY FIRST``.
"""

import itertools
import sys
from pathlib import Path

from engine.core.ports import PutGroup
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.conftest import KEY
from tests.persistence.store_examples import group, own_message_sent, said_again


def main() -> None:
    directory = open_profile_directory(Path(sys.argv[1]))
    with ProfileLock(directory):
        store = SqliteProfileStore.open(directory.database, KEY)
        store.apply([PutGroup(group=group())])
        print("ready", flush=True)  # noqa: T201 - this is how it reports
        for number in itertools.count(int(sys.argv[2])):
            store.apply([*own_message_sent(number), *said_again(number)])
            print(number, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
