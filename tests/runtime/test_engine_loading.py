"""Starting with a long past: the window is there at once, the log is read behind it.

The logs here come to no end until the test says so.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, UnixMs
from engine.core.stored import Listed
from engine.events import (
    ConversationChanged,
    DatabaseDamaged,
    GapUpdated,
    IndexMadeAgain,
    MessageAdded,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
)
from engine.network.memory import MemoryNetwork
from engine.persistence.database import open_database
from engine.runtime.load_order import LoadOrder
from tests.patience import PATIENCE_S
from tests.runtime.conftest import KEY, BreakableStore, Person


async def group_of_two(place: Path, network: MemoryNetwork) -> ConversationId:
    """Alice's group with Bob, in which both spoke; both stopped again."""
    alice, bob = Person("Alice", place, network), Person("Bob", place, network)
    await alice.start()
    await bob.start()
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.until(
        lambda event: isinstance(event, ConversationChanged) and len(event.conversation.members) > 1
    )
    await alice.engine.timeline.send_text(group, "before")
    await bob.until(
        lambda event: isinstance(event, MessageAdded) and event.message.text == "before"
    )
    await alice.engine.stop()
    await bob.engine.stop()
    return group


async def test_before_its_log_is_read_a_conversation_is_there_with_its_newest_page(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    group = await group_of_two(tmp_path, network)
    alice = Person("Alice", tmp_path, network)
    alice.endless = True
    await alice.start()
    (view,) = await alice.engine.conversations()
    assert view.name == "Tide"
    assert {member.name for member in view.members} == {"Alice", "Bob"}
    assert view.last_message is not None
    assert view.last_message.text == "before"
    page = await alice.engine.timeline.latest_page(group)
    assert [row.text for row in page.messages if row.kind == "text"] == ["before"]
    assert await alice.engine.timeline.gap(group) is None
    await alice.engine.stop()


async def groups_of_alice(place: Path, *names: str) -> list[ConversationId]:
    """She is alone in them, and stopped again."""
    alice = await Person("Alice", place, MemoryNetwork()).start()
    groups = [await alice.engine.groups.create(name) for name in names]
    await alice.engine.stop()
    return groups


async def test_the_list_is_read_together_before_the_start_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = await groups_of_alice(tmp_path, "Tide", "Rowing", "Books")
    asked: list[Sequence[ConversationId]] = []
    read = BreakableStore.listed

    def listed(
        store: BreakableStore, ids: Sequence[ConversationId]
    ) -> Mapping[ConversationId, Listed]:
        asked.append(ids)
        return read(store, ids)

    monkeypatch.setattr(BreakableStore, "listed", listed)
    alice = await Person("Alice", tmp_path, MemoryNetwork()).start()
    assert [set(ids) for ids in asked] == [set(groups)]
    shown = [alice.engine.runner(group).view() for group in groups]
    assert [view and view.name for view in shown] == ["Tide", "Rowing", "Books"]
    await alice.engine.loaded()
    assert len(asked) == 1
    await alice.engine.stop()


async def test_one_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tide, rowing, books = await groups_of_alice(tmp_path, "Tide", "Rowing", "Books")
    read = BreakableStore.listed

    def listed(
        store: BreakableStore, ids: Sequence[ConversationId]
    ) -> Mapping[ConversationId, Listed]:
        if rowing in ids:
            raise StorageError("The database is damaged.", StorageFault.DAMAGED)
        return read(store, ids)

    monkeypatch.setattr(BreakableStore, "listed", listed)
    alice = await Person("Alice", tmp_path, MemoryNetwork()).start()
    views = await alice.engine.conversations()
    assert {view.conversation_id for view in views} == {tide, books}
    await alice.until(
        lambda told: isinstance(told, NoticeRaised) and isinstance(told.content, DatabaseDamaged)
    )
    await alice.engine.stop()


async def test_what_is_written_or_arrives_meanwhile_is_handled_once_the_log_is_read(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    group = await group_of_two(tmp_path, network)
    alice, bob = Person("Alice", tmp_path, network), Person("Bob", tmp_path, network)
    alice.endless = True
    await alice.start()
    await bob.start()
    await alice.engine.conversations()
    written = asyncio.create_task(alice.engine.timeline.send_text(group, "written meanwhile"))
    await bob.engine.timeline.send_text(group, "arrives meanwhile")
    for _ in range(50):
        await alice.engine.timeline.latest_page(group)
    assert not written.done()
    told = len(alice.told)
    assert alice.store is not None
    alice.store.endless = False
    message_id = await written
    page = await alice.engine.timeline.latest_page(group)
    assert message_id in {row.position.message_id for row in page.messages}
    await alice.until(
        lambda event: isinstance(event, MessageAdded) and event.message.text == "arrives meanwhile"
    )
    await bob.until(
        lambda event: isinstance(event, MessageAdded) and event.message.text == "written meanwhile"
    )
    since = alice.told[told:]
    assert any(isinstance(event, GapUpdated) for event in since)
    assert any(isinstance(event, ConversationChanged) for event in since)
    await alice.engine.stop()
    await bob.engine.stop()


async def test_a_profile_is_closed_while_its_log_is_being_read_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    group = await group_of_two(tmp_path, network)
    alice = Person("Alice", tmp_path, network)
    alice.endless = True
    await alice.start()
    await alice.engine.conversations()
    async with asyncio.timeout(PATIENCE_S):
        await alice.engine.stop()
    later = await Person("Alice", tmp_path, network).start()
    await later.engine.timeline.send_text(group, "after")
    page = await later.engine.timeline.latest_page(group)
    assert [row.text for row in page.messages if row.kind == "text"] == ["before", "after"]
    await later.engine.stop()


async def test_what_arrives_for_a_log_that_cannot_be_read_is_kept_and_that_is_told(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    group = await group_of_two(tmp_path, network)
    alice, bob = Person("Alice", tmp_path, network), Person("Bob", tmp_path, network)
    alice.unreadable = True
    await alice.start()
    await bob.start()
    told = await alice.until(lambda event: isinstance(event, NoticeRaised))
    assert isinstance(told, NoticeRaised)
    assert told.level is NoticeLevel.ERROR
    assert isinstance(told.content, DatabaseDamaged)
    await bob.engine.timeline.send_text(group, "arrives meanwhile")
    await alice.until_counted("runner.storage_failed", 3)
    (view,) = await alice.engine.conversations()
    assert view.name == "Tide", "the window still shows what it can"
    assert alice.store is not None
    alice.store.unreadable = False
    await alice.until(
        lambda event: isinstance(event, MessageAdded) and event.message.text == "arrives meanwhile"
    )
    assert any(isinstance(event, NoticeCleared) for event in alice.told)
    await alice.engine.stop()
    await bob.engine.stop()


async def test_an_index_that_had_to_be_made_again_is_told_of(tmp_path: Path) -> None:
    network = MemoryNetwork()
    group = await group_of_two(tmp_path, network)
    alice = Person("Alice", tmp_path, network)
    connection = open_database(tmp_path / "Alice.db", KEY)
    # Short logs have no index yet: this one says that it has one.
    connection.execute("INSERT INTO log_index VALUES (1, 512, 1, x'00', NULL, zeroblob(16), 0, 2)")
    connection.close()
    await alice.start()
    told = await alice.until(
        lambda event: isinstance(event, NoticeRaised) and isinstance(event.content, IndexMadeAgain)
    )
    assert isinstance(told, NoticeRaised)
    assert told.content == IndexMadeAgain(conversation_name="Tide")
    assert alice.engine.counters()["runner.index_made_again"] == 1
    page = await alice.engine.timeline.latest_page(group)
    assert [row.text for row in page.messages if row.kind == "text"] == ["before"]
    await alice.engine.timeline.send_text(group, "after")
    await alice.engine.stop()


# --- the order ----------------------------------------------------------------------------------


async def test_the_one_opened_last_goes_first_then_the_most_recently_active() -> None:
    order, went = LoadOrder(), list[str]()

    async def load(name: str, active_ms: int) -> None:
        async with order.turn(ConversationId(name), UnixMs(active_ms)):
            went.append(name)
            await asyncio.sleep(0)

    order.opened(ConversationId("opened first"))
    order.opened(ConversationId("opened last"))
    names = [("first", 1), ("old", 2), ("recent", 9), ("opened first", 3), ("opened last", 1)]
    await asyncio.gather(*(load(name, active_ms) for name, active_ms in names))
    assert went == ["first", "opened last", "opened first", "recent", "old"]


async def test_a_turn_of_one_who_is_cancelled_is_the_next_ones() -> None:
    order, went = LoadOrder(), list[str]()

    async def load(name: str) -> None:
        async with order.turn(ConversationId(name), UnixMs(0)):
            await asyncio.sleep(0)
            went.append(name)

    for turns in range(8):
        tasks = [asyncio.create_task(load(name)) for name in ("a", "b", "c")]
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[1].cancel()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert {"a", "c"} <= {*went}
        went.clear()
