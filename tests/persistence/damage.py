"""A profile with some of everything, and ways to damage its files."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.core.ids import ConversationId, InstanceId, MessageId
from engine.core.ports import (
    PutContact,
    PutGroup,
    PutMessage,
    SaveDraft,
    SaveOwnSequence,
    SaveProfile,
    SaveReadMark,
    SaveValue,
)
from engine.core.records import OwnSequence
from engine.persistence.connection import connect
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.conftest import KEY
from tests.persistence.store_examples import (
    BOB,
    GROUP,
    PAIR,
    PROFILE,
    at,
    channel,
    contact,
    group,
    logged,
    member,
    row,
)
from tests.persistence.test_files_contract import blob

PAGE_BYTES: Final = 4096
STAY: Final = InstanceId(b"s" * 16)
SECOND: Final = ConversationId("s" * 43)
NOT_COMPARED: Final = ("own_sequence", "_sqlite_migrations", "channel", "pair_clock")
"""Clocks only go forward."""
_MADE_AGAIN: Final = ("sqlite_", "search", "log_index", "log_pages", "log_buckets", "log_author",
                      "log_late")  # fmt: skip


def texts(first: int, last: int, conversation_id: ConversationId = GROUP) -> Iterator[PutMessage]:
    for n in range(first, last):
        yield row(
            n, f"m{n:05}", text=f"text {n} " * 8, sender_id=BOB, is_own=n % 5 == 0,
            conversation_id=conversation_id,
        )  # fmt: skip


def say(store: SqliteProfileStore, first: int, last: int) -> None:
    """Messages in the first group, with their signed bytes."""
    for begin in range(first, last, 50):
        logs = [logged(n, f"m{n:05}") for n in range(begin, begin + 50)]
        store.apply([*texts(begin, begin + 50), channel(*logs)])


def fill(store: SqliteProfileStore, rows: int) -> None:
    """Two groups, a person, files, settings kept in the database."""
    store.apply([SaveProfile(profile=PROFILE), SaveValue(key="network.port", value="4711")])
    store.apply([PutGroup(group=group()), member(BOB), PutContact(contact=contact())])
    store.apply([PutGroup(group=group(conversation_id=SECOND))])
    say(store, 0, rows)
    store.apply([*texts(0, 40, PAIR), *texts(0, 30, SECOND)])
    store.apply([blob(f"file{n}", rows + n) for n in range(5)])
    own = OwnSequence(stay=STAY, instance_id=STAY, sequence=7, previous_id=MessageId("m00005"))
    store.apply([SaveOwnSequence(conversation_id=GROUP, own_sequence=own)])
    store.apply([SaveReadMark(conversation_id=GROUP, up_to=at(rows // 2, f"m{rows // 2:05}"))])
    store.apply([SaveDraft(conversation_id=GROUP, text="half a thought")])


def copy_files(database: Path, to: Path) -> None:
    """As a killed process leaves them: with the log and its index."""
    for end in ("", "-wal", "-shm"):
        part = database.with_name(f"{database.name}{end}")
        if part.exists():
            shutil.copyfile(part, to.with_name(f"{to.name}{end}"))


def content(database: Path, key: bytes = KEY) -> dict[str, list[tuple[object, ...]]]:
    """Every row but those that a salvage makes anew."""
    connection = connect(str(database), key)
    try:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        found = {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)  # noqa: S608
            for (name,) in tables
            if name not in NOT_COMPARED and not name.startswith(_MADE_AGAIN)
        }
    finally:
        connection.close()
    found["profile"] = [(*each[:5], None, *each[6:]) for each in found["profile"]]  # instance_id
    return found


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (before,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([before ^ 1 << bit % 8]))


def ruin(path: Path, *pages: int) -> None:
    """More than one bit of each page, so that nothing of it can be made out."""
    with path.open("r+b") as file:
        for number in pages:
            file.seek((number - 1) * PAGE_BYTES + 1000)
            file.write(b"\xa5" * 64)
