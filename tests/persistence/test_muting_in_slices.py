"""Who has thousands of rows is muted a slice at a time: counts hold at every step, and after it."""

from pathlib import Path

import pytest

from engine.core.ids import MessageId
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutGroup,
    RemoveGroup,
    SaveMemberMuted,
    SaveReadMark,
)
from engine.persistence import muting, ordinals
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import ALICE, BOB, GROUP, OTHER_GROUP, at, group, row

MANY = 40
SLICE = 5


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muting, "SLICE_ROWS", SLICE)
    monkeypatch.setattr(ordinals, "BLOCK_ROWS", 8)


def fill(*stores: ProfileStore) -> None:
    for store in stores:
        store.apply(
            [
                PutGroup(group=group()),
                *(row(n, f"{n:02}", sender_id=ALICE if n % 3 else BOB) for n in range(MANY)),
                row(50, "waits", sender_id=ALICE, waiting=True),
                SaveReadMark(conversation_id=GROUP, up_to=at(20, "20")),
            ]
        )


def mute(*stores: ProfileStore, muted: bool) -> None:
    write = SaveMemberMuted(conversation_id=GROUP, participant_id=ALICE, muted=muted)
    for store in stores:
        store.apply([write])


def rows_of(store: ProfileStore) -> list[str]:
    """The whole timeline; its counts are those of its rows."""
    page = store.latest_page(GROUP, limit=100)
    names = [stored.record.position.message_id for stored in page.messages]
    assert page.total == len(names)
    for stored in page.messages:
        before = store.page_before(GROUP, stored.record.position, limit=1)
        at_hand = names.index(stored.record.position.message_id)
        assert before.older_count + len(before.messages) == at_hand
    unread = sum(each.record.position > at(20, "20") for each in page.messages)
    assert store.summary(GROUP).unread == unread
    return [str(name) for name in names]


def test_the_newest_go_at_once_and_the_rest_in_slices_and_back(
    sqlite_store: SqliteProfileStore,
) -> None:
    memory = MemoryProfileStore()
    fill(sqlite_store, memory)
    for muted in (True, False):
        mute(sqlite_store, memory, muted=muted)
        shown = {name for name in rows_of(sqlite_store) if int(name, 36) and name > "35"}
        assert ("38" in shown, "waits" in shown) == (not muted, not muted)
        slices = 0
        while sqlite_store.mark_muted():
            rows_of(sqlite_store)
            slices += 1
        assert slices >= 4
        assert rows_of(sqlite_store) == rows_of(memory)


def test_what_is_done_meanwhile_holds(sqlite_store: SqliteProfileStore) -> None:
    memory = MemoryProfileStore()
    fill(sqlite_store, memory)
    mute(sqlite_store, memory, muted=True)
    sqlite_store.mark_muted()
    for store in (sqlite_store, memory):
        store.apply(
            [
                row(60, "60", sender_id=ALICE),
                row(2, "late", sender_id=ALICE),
                row(4, "04", sender_id=ALICE, text="changed"),
                HideMessage(conversation_id=GROUP, message_id=MessageId("05")),
                HideMessage(conversation_id=GROUP, message_id=MessageId("38")),
            ]
        )
    rows_of(sqlite_store)
    mute(sqlite_store, memory, muted=False)
    sqlite_store.mark_muted()
    mute(sqlite_store, memory, muted=True)
    sqlite_store.mark_muted()
    mute(sqlite_store, memory, muted=False)
    while sqlite_store.mark_muted():
        rows_of(sqlite_store)
    assert rows_of(sqlite_store) == rows_of(memory)
    assert {"60", "late"} < set(rows_of(sqlite_store))
    assert {"05", "38"}.isdisjoint(rows_of(sqlite_store))


def test_it_goes_on_after_the_process_died(database_path: Path, key: bytes) -> None:
    store, memory = SqliteProfileStore.open(database_path, key), MemoryProfileStore()
    fill(store, memory)
    mute(store, memory, muted=True)
    store.mark_muted()
    store.close()
    again = SqliteProfileStore.open(database_path, key)
    assert rows_of(again) != rows_of(memory)
    while again.mark_muted():
        pass
    assert rows_of(again) == rows_of(memory)
    again.close()


def test_of_a_conversation_that_is_left_nothing_is_gone_through(
    sqlite_store: SqliteProfileStore,
) -> None:
    fill(sqlite_store)
    sqlite_store.apply([PutGroup(group=group(OTHER_GROUP))])
    mute(sqlite_store, muted=True)
    sqlite_store.apply([RemoveGroup(conversation_id=GROUP)])
    assert not sqlite_store.mark_muted()
