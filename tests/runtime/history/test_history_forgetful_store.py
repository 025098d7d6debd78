"""A Store that forgets its cursors, and a flood of one time: it is marked, the next is asked."""

import hashlib
from pathlib import Path

from msgspec.structs import replace

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.history.queries import End
from engine.core.ids import ConversationId
from engine.core.problems import QueryFailed
from engine.core.waku_archive import (
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    CursorUnknownError,
)
from engine.history_views import HistoryState, StoreHealth
from engine.network.waku.message_hash import message_hash
from tests.runtime.history.bad_stores import Honest
from tests.runtime.history.history_stage import QUICK, Person, StoreNode, until_stored

FLOOD = 350
FORGETS = QueryFailed(End.FAULTED, "store_cursor_unknown")


class Forgets(Honest):
    """Each cursor that it gave, at once."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        if query.cursor is not None:
            raise CursorUnknownError
        return await super().query(query)


async def flooded(node: StoreNode) -> list[ArchivedMessage]:
    """Junk on the topic of the newest message, all of one time just after it."""
    assert node.archive is not None
    page = await node.archive.query(ArchiveQuery(limit=1, max_bytes=10**6))
    (row,) = page.rows
    pubsub_topic, newest = row.index.pubsub_topic, decode_waku_message(row.data)
    at_ns = (newest.timestamp_ns or 0) + 1
    junk = [
        replace(newest, payload=b"junk %d" % number, timestamp_ns=at_ns) for number in range(FLOOD)
    ]
    return [
        ArchivedMessage(
            message_hash=message_hash(pubsub_topic, one),
            pubsub_topic=pubsub_topic,
            content_topic=one.content_topic,
            timestamp_ns=at_ns,
            digest=hashlib.sha256(one.content_topic.encode() + one.payload).digest(),
            data=encode_waku_message(one),
        )
        for one in junk
    ]


async def say_around_a_flood(
    tmp_path: Path, *nodes: StoreNode
) -> tuple[ConversationId, str, list[str]]:
    """By Ann, who is gone then: the group, its invitation, and what was said in it."""
    addresses = tuple(node.address for node in nodes)
    ann = await Person("Ann", tmp_path, peers=addresses).start()
    await ann.until_online(len(nodes))
    group = await ann.engine.groups.create("Friends")
    said = await ann.say(group, 20, "before")
    for node in nodes:
        await until_stored(node, 1 + len(said))
    flood = await flooded(nodes[0])
    for node in nodes:
        assert node.archive is not None
        assert await node.archive.append(flood) == Appended(added=FLOOD)
    said += await ann.say(group, 20, "after")
    await ann.until_out(group)
    for node in nodes:
        await until_stored(node, 1 + len(said) + FLOOD)
    link = await ann.engine.groups.make_invite_link(group)
    await ann.stop()
    return group, link, said


async def test_the_one_that_forgets_is_marked_and_the_next_gives_everything(tmp_path: Path) -> None:
    forgets, honest = StoreNode(tmp_path, "forgets"), StoreNode(tmp_path, "honest")
    await forgets.start(Forgets)
    await honest.start()
    group, link, said = await say_around_a_flood(tmp_path, forgets, honest)
    bob = await Person("Bob", tmp_path, config=replace(QUICK, window_stores=1)).start()
    for node in (forgets, honest):
        await bob.engine.history.add_store(node.address)
    await bob.engine.groups.join(link)
    await bob.until_fetched()
    assert await bob.has_once(group, said)
    assert await bob.engine.timeline.gap(group) is None
    first, second = bob.engine.history.stores()
    assert (first.health, first.problem) == (StoreHealth.FAILED, FORGETS)
    assert (second.health, second.problem) == (StoreHealth.GOOD, None)
    assert second.messages > FLOOD
    await bob.stop()
    for node in (forgets, honest):
        await node.stop()


async def test_alone_it_gives_what_is_around_the_flood_and_nobody_calls_that_complete(
    tmp_path: Path,
) -> None:
    forgets = StoreNode(tmp_path, "forgets")
    await forgets.start(Forgets)
    group, link, said = await say_around_a_flood(tmp_path, forgets)
    bob = await Person("Bob", tmp_path).start()
    await bob.engine.history.add_store(forgets.address)
    await bob.engine.groups.join(link)
    await bob.until_told(group, len(said))
    assert await bob.has_once(group, said)
    await bob.until(lambda: any(view.is_over for view in bob.histories()))
    over = [view for view in bob.histories() if view.is_over]
    assert {view.state for view in over} == {HistoryState.FAILED}
    assert all(view.problem == FORGETS for view in over)
    (store,) = bob.engine.history.stores()
    assert (store.health, store.problem) == (StoreHealth.FAILED, FORGETS)
    with bob.disk() as disk:
        kept = disk.history(group)
    assert (kept.through_ms, kept.covered) == (None, {})
    await bob.stop()
    await forgets.stop()
