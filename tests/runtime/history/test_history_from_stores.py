"""What nobody sends any more comes from Store nodes: verified, in order, once, and durable."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ports import BeforeCommit, PutMessage, StoreWrite
from engine.core.waku_archive import ArchivePage, ArchiveQuery
from engine.core.waku_store import MAX_PAGE_MESSAGES
from engine.events import MessagesAdded
from engine.history_views import HistoryReason, HistoryState, StoreHealth, StoreOrigin
from engine.network.waku.store.intake import Archive
from tests.patience import PATIENCE_S
from tests.runtime.conftest import BreakableStore
from tests.runtime.history.bad_stores import Honest
from tests.runtime.history.history_stage import Person, StoreNode, say_in_a_group

MANY = 300
HOUR_MS = 3_600_000


@pytest.mark.parametrize("bytes_under_way", [None, 1])
async def test_a_newcomer_gets_what_no_member_sends_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_under_way: int | None
) -> None:
    """Also by one page at a time, as when messages are very large."""
    if bytes_under_way is not None:
        monkeypatch.setattr("engine.runtime.history.backfill.BYTES_UNDER_WAY", bytes_under_way)
    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    assert await bob.engine.groups.join(past.link) == past.group
    await bob.until_told(past.group, MANY)
    assert await bob.has_once(past.group, past.said)
    assert await bob.log_of(past.group, past.said) == past.logged
    await bob.until_fetched()
    done = next(v for v in bob.histories() if v.state is HistoryState.DONE)
    assert (done.reason, done.arrived) == (HistoryReason.CONNECT, MANY)
    (store,) = bob.engine.history.stores()
    assert (store.origin, store.health) == (StoreOrigin.FOUND, StoreHealth.GOOD)
    assert store.messages >= MANY
    bob.engine.faults.skew(-HOUR_MS)
    looked = bob.engine.network()
    (past_of_store,) = looked.stores
    ages_ms = [looked.at_ms - result.at_ms for result in past_of_store.results]
    assert all(0 <= age_ms < HOUR_MS for age_ms in ages_ms), "a wrong clock makes nothing older"
    bob.engine.faults.skew(0)
    assert past_of_store.store == store
    assert any(result.is_complete and result.messages for result in past_of_store.results)
    page = await bob.engine.timeline.latest_page(past.group)
    newest = next(one for one in reversed(page.messages) if not one.is_own)
    found = await bob.engine.inspection.message(past.group, newest.position.message_id)
    assert [each.address for each in found.returned_by] == [store.multiaddr]
    await bob.stop()
    await node.stop()


async def test_while_a_page_is_written_the_next_one_is_fetched_and_none_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine as well, what was given together is handled together.
    monkeypatch.setattr("engine.runtime.conversation_runner.FED_TOGETHER_MS", 1_000 * PATIENCE_S)
    second_given = asyncio.Event()
    is_writing, may_write = threading.Event(), threading.Event()

    class Counted(Honest):
        pages = 0

        async def query(self, query: ArchiveQuery, /) -> ArchivePage:
            page = await super().query(query)
            self.pages += len(page.rows) == MAX_PAGE_MESSAGES
            if self.pages == 2:
                second_given.set()
            return page

    def counted(archive: Archive) -> Archive:
        return Counted(archive)

    def hold_texts(writes: Sequence[StoreWrite]) -> None:
        if any(isinstance(w, PutMessage) and w.message.text in past.said for w in writes):
            is_writing.set()
            assert may_write.wait(PATIENCE_S)

    node = StoreNode(tmp_path, "store")
    await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    await node.stop()
    address = await node.start(wrap=counted)
    bob = await Person("Bob", tmp_path).start()
    assert bob.store is not None
    bob.store.before_write = hold_texts
    await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    async with asyncio.timeout(PATIENCE_S):
        await second_given.wait()
        assert await asyncio.to_thread(is_writing.wait, PATIENCE_S)
    assert not bob.texts(past.group), "nothing is shown before it is durable"
    may_write.set()
    await bob.until_told(past.group, MANY)
    assert await bob.has_once(past.group, past.said)
    together = [len(event.messages) for event in bob.told if isinstance(event, MessagesAdded)]
    assert sum(together) > MANY / 2, "a window does not act on each"
    await bob.stop()
    await node.stop()


async def test_on_a_local_network_the_other_desktop_is_the_store_without_any_settings(
    tmp_path: Path,
) -> None:
    ann = await Person("Ann", tmp_path, keeps=True).start()
    group = await ann.engine.groups.create("Friends")
    eve = await Person("Eve", tmp_path, keeps=True).start()
    await eve.engine.groups.join(await ann.engine.groups.make_invite_link(group))
    await eve.until_online()
    await ann.until_online()
    said = await ann.say(group, 50)
    await eve.until_told(group, len(said))
    await ann.stop()
    link = await eve.engine.groups.make_invite_link(group)
    bob = await Person("Bob", tmp_path, keeps=True).start()
    await bob.engine.groups.join(link)
    await bob.until_told(group, len(said))
    assert await bob.has_once(group, said)
    await bob.until_fetched()
    (store,) = bob.engine.history.stores()
    assert store.origin is StoreOrigin.FOUND
    assert store.messages >= len(said)
    assert "127.0.0.1" in store.multiaddr
    await bob.stop()
    await eve.stop()


async def test_a_page_whose_commit_fails_while_the_next_is_handled_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is told before it is durable, and in the end all is there, once."""
    node = StoreNode(tmp_path, "store")
    await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Person("Bob", tmp_path).start()
    apply, failures, told = BreakableStore.apply, [2], list[str]()

    def fail_twice(
        store: BreakableStore, writes: Sequence[StoreWrite], before_commit: BeforeCommit = None
    ) -> None:
        def broken() -> None:
            if before_commit is not None:
                before_commit()
            told.extend(bob.texts(past.group))
            raise StorageError("The disk is full.")

        texts = [w for w in writes if isinstance(w, PutMessage) and w.message.text in past.said]
        fails = bool(texts and failures[0])
        failures[0] -= fails
        apply(store, writes, broken if fails else before_commit)

    monkeypatch.setattr(BreakableStore, "apply", fail_twice)
    assert node.address is not None
    await bob.engine.history.add_store(node.address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, MANY)
    assert failures == [0]
    assert told == []
    assert len(bob.texts(past.group)) == MANY
    assert await bob.has_once(past.group, past.said)
    await bob.stop()
    await node.stop()
