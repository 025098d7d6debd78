"""What can be read of a damaged database comes into a new one; the damaged one stays as it is."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ids import ConversationId, InstanceId, MessageId, UnixMs
from engine.core.ports import (
    ProfileStore,
    PutContact,
    PutGroup,
    PutMessage,
    PutTransfer,
    SaveOwnSequence,
    SaveProfile,
    SaveReadMark,
    SaveValue,
)
from engine.core.records import OwnSequence, TransferState
from engine.persistence.database import damaged_pages, open_database
from engine.persistence.errors import CarryOverStoppedError, DatabaseTooNewError
from engine.persistence.recovery import Recovered, recover
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
from tests.persistence.test_files_contract import blob, told

PAGE_BYTES = 4096
ROWS = 1_000
STAY = InstanceId(b"s" * 16)
NOW = UnixMs(1_790_000_000_000)


def pages(path: Path) -> int:
    return path.stat().st_size // PAGE_BYTES


def damage(path: Path, *numbers: int) -> None:
    data = bytearray(path.read_bytes())
    for number in numbers:
        data[(number - 1) * PAGE_BYTES + 100] ^= 0xFF
    path.write_bytes(data)


def written(first: int, last: int) -> Iterator[PutMessage]:
    for n in range(first, last):
        yield row(n, f"m{n:05}", text=f"text {n} " * 8, sender_id=BOB, is_own=n % 5 == 0)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A profile with a group of a thousand messages, and a person."""
    database_path = tmp_path_factory.mktemp("whole") / "causerie.db"
    store = SqliteProfileStore.open(database_path, KEY)
    store.apply([SaveProfile(profile=PROFILE), SaveValue(key="network.port", value="4711")])
    store.apply([PutGroup(group=group()), member(BOB), PutContact(contact=contact())])
    for first in range(0, ROWS, 500):
        logs = [logged(n, f"m{n:05}") for n in range(first, first + 500)]
        store.apply([*written(first, first + 500), channel(*logs)])
    own = OwnSequence(stay=STAY, instance_id=STAY, sequence=7, previous_id=MessageId("m00005"))
    store.apply([SaveOwnSequence(conversation_id=GROUP, own_sequence=own)])
    store.apply([SaveReadMark(conversation_id=GROUP, up_to=at(ROWS // 2, f"m{ROWS // 2:05}"))])
    store.close()
    return database_path.read_bytes()


@pytest.fixture
def whole(content: bytes, database_path: Path) -> Path:
    database_path.write_bytes(content)
    return database_path


def texts(store: ProfileStore) -> dict[str, str]:
    found: dict[str, str] = {}
    page = store.latest_page(GROUP, limit=500)
    while page.messages:
        found |= {m.record.position.message_id: m.record.text for m in page.messages}
        page = store.page_before(GROUP, page.messages[0].record.position, limit=500)
    return found


def recovered(whole: Path, key: bytes) -> tuple[Recovered, SqliteProfileStore]:
    new = whole.with_name("new.db")
    found = recover(whole, new, key, now_ms=NOW)
    return found, SqliteProfileStore.open(new, key)


def test_an_undamaged_profile_comes_over_as_it_is(whole: Path, key: bytes) -> None:
    before = whole.read_bytes()
    old = SqliteProfileStore.open(whole, key)
    found, store = recovered(whole, key)
    assert found.unreadable == 0
    assert found.rows["message"] == ROWS
    assert (found.rows["conversation"], found.rows["contact"], found.rows["member"]) == (2, 1, 1)
    assert texts(store) == texts(old)
    assert store.summary(GROUP) == old.summary(GROUP)
    assert store.latest_page(GROUP, limit=50) == old.latest_page(GROUP, limit=50)
    assert store.contacts() == old.contacts()
    assert store.groups() == old.groups()
    assert store.value("network.port") == "4711"
    assert store.channel_state(GROUP).log == old.channel_state(GROUP).log
    assert store.raw(GROUP, MessageId("m00017")) == old.raw(GROUP, MessageId("m00017"))
    old.close()
    store.close()
    assert whole.read_bytes() == before
    assert sorted(path.name for path in whole.parent.glob("*.damaged*")) == []


def test_the_numbering_of_messages_begins_anew(whole: Path, key: bytes) -> None:
    """Both profiles may be used by mistake, and would tell different people different things."""
    _found, store = recovered(whole, key)
    old = SqliteProfileStore.open(whole, key)
    mine, theirs = store.profile(), old.profile()
    assert mine is not None
    assert theirs is not None
    assert mine.signing_key == theirs.signing_key
    assert mine.instance_id != theirs.instance_id
    assert store.own_sequence(GROUP, STAY) is None
    store.close()
    old.close()


def test_each_damaged_page_costs_what_it_held(
    whole: Path, key: bytes, subtests: pytest.Subtests
) -> None:
    data, old = whole.read_bytes(), SqliteProfileStore.open(whole, key)
    said = texts(old)
    old.close()
    count, came = pages(whole), 0
    for number in range(count // 3, count + 1, max(1, count // 9)):
        whole.write_bytes(data)
        damage(whole, number)
        damaged = whole.read_bytes()
        with subtests.test(page=number):
            whole.with_name("new.db").unlink(missing_ok=True)
            try:
                _found, store = recovered(whole, key)
            except StorageError:
                continue  # The list of tables, or the identity.
            came += 1
            kept = texts(store)
            assert kept.items() <= said.items()
            assert len(kept) >= ROWS * 0.9
            summary = store.summary(GROUP)
            assert summary.unread <= ROWS
            page = store.latest_page(GROUP, limit=10)
            assert page.total == len(kept)
            assert page.older_count == len(kept) - 10
            store.close()
            db = open_database(whole.with_name("new.db"), key)
            assert damaged_pages(db) == []
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
            db.close()
            assert whole.read_bytes() == damaged
    assert came >= 4, "most pages hold what one can do without"


def test_many_damaged_pages_leave_the_rest(whole: Path, key: bytes) -> None:
    count = pages(whole)
    damage(whole, *range(count * 3 // 4, count, 5))
    found, store = recovered(whole, key)
    assert found.unreadable > 0
    assert 0 < found.rows["message"] < ROWS
    assert store.latest_page(GROUP, limit=1).total == len(texts(store))
    store.close()


def test_nothing_is_made_of_what_cannot_be_opened(whole: Path, key: bytes) -> None:
    damage(whole, 1)
    before, new = whole.read_bytes(), whole.with_name("new.db")
    with pytest.raises(StorageError):
        recover(whole, new, key, now_ms=NOW)
    assert sorted(path.name for path in whole.parent.iterdir()) == [whole.name]
    assert whole.read_bytes() == before


def test_a_newer_version_is_said_and_it_can_be_stopped(whole: Path, key: bytes) -> None:
    new = whole.with_name("new.db")
    with pytest.raises(CarryOverStoppedError):
        recover(whole, new, key, progress=lambda share: share < 0.5, now_ms=NOW)
    assert not new.exists()
    db = open_database(whole, key)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(DatabaseTooNewError):
        recover(whole, new, key, now_ms=NOW)
    assert not new.exists()


def test_chunks_stay_and_so_does_what_is_said_of_them(whole: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(whole, key)
    store.apply([blob(name, ROWS + n) for n, name in enumerate(("whole", "begun", "offered"))])
    store.apply([blob("own", ROWS + 9, is_own=True)])
    for name, state in (("whole", TransferState.COMPLETE), ("begun", TransferState.WANTED)):
        store.apply([PutTransfer(conversation_id=GROUP, message_id=MessageId(name), state=state)])
    store.close()
    _found, again = recovered(whole, key)
    assert told(again) == {
        "whole": ("complete", ""), "own": ("offering", ""),
        "begun": ("wanted", ""), "offered": ("offered", ""),
    }  # fmt: skip
    again.close()


def test_it_is_durable_before_it_is_said_to_be_there(
    whole: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        del descriptor
        raise OSError(errno.ENOSPC, "No space left on device")

    new = whole.with_name("new.db")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        recover(whole, new, key, now_ms=NOW)
    assert not new.exists()


def test_it_can_be_stopped_within_a_table(whole: Path, key: bytes) -> None:
    """The messages are nearly all there is, and closing its window has to end it."""
    shares: list[float] = []

    def until_a_table_is_long(share: float) -> bool:
        shares.append(share)
        return shares.count(share) < 3

    new = whole.with_name("new.db")
    with pytest.raises(CarryOverStoppedError):
        recover(whole, new, key, progress=until_a_table_is_long, now_ms=NOW)
    assert not new.exists()


def test_a_person_s_conversation_is_there(whole: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(whole, key)
    store.apply([row(5, "p", conversation_id=PAIR)])
    store.close()
    _found, again = recovered(whole, key)
    (message,) = again.latest_page(ConversationId(PAIR), limit=9).messages
    assert message.record.text == "hello"
    again.close()
