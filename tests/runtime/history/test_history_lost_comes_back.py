"""What a pair gave up comes back from a Store: in its place, once, and its sender is done."""

import asyncio
from pathlib import Path

from engine.core.ids import ConversationId, DeliveryState, MessageId
from engine.events import MessageKind
from engine.history_views import HistoryReason
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import Person, StoreNode, connected_friends, until_stored

DAY_MS = 24 * 3_600_000
HOUR_MS = 3_600_000


def records_of(person: Person, pair: ConversationId) -> int:
    """How much of what this person said still has to be acknowledged."""
    with person.disk() as disk:
        state = disk.mvds_state(pair, limit=100)
    assert state.loaded_before is None
    return len(state.records)


async def until_nothing_to_send(person: Person, pair: ConversationId) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while records_of(person, pair):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def until_it_waits(person: Person, pair: ConversationId) -> None:
    """Until something came for which an earlier one lacks."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with person.disk() as disk:
                state = disk.pair_state(pair)
            if state.waiting:
                return
            await asyncio.sleep(0.05)


async def delivered_to(person: Person, pair: ConversationId) -> dict[str, DeliveryState]:
    page = await person.engine.timeline.latest_page(pair, limit=100)
    texts = [row for row in page.messages if row.kind is MessageKind.TEXT]
    return {row.text: row.delivery.state for row in texts if row.delivery is not None}


async def say_what_one_store_lacks(
    ann: Person, pair: ConversationId, had: StoreNode, lacks: StoreNode
) -> MessageId:
    """Two messages, each to one Store alone; gives back the first.  Nobody is there then."""
    await lacks.stop()
    stored = await had.messages()
    lost = await ann.engine.timeline.send_text(pair, "lost")
    await until_stored(had, stored + 1)
    await ann.stop()
    await had.stop()
    await lacks.start_where_it_was()
    await ann.start_again()
    await ann.until_online()
    stored = await lacks.messages()
    await ann.engine.timeline.send_text(pair, "after")
    await until_stored(lacks, stored + 1)
    assert records_of(ann, pair) == len(("lost", "after"))
    await ann.stop()
    return lost


async def test_what_a_pair_lost_comes_back_from_a_store_and_its_sender_is_done_with_it(
    tmp_path: Path,
) -> None:
    had, lacks = StoreNode(tmp_path, "had"), StoreNode(tmp_path, "lacks")
    for node in (had, lacks):
        await node.start()
    ann, bob, pair = await connected_friends(tmp_path, had, lacks)
    await until_nothing_to_send(ann, pair)
    await until_nothing_to_send(bob, pair)
    await bob.stop()
    lost_id = await say_what_one_store_lacks(ann, pair, had, lacks)

    # A day later by Bob's timers the first one is given up.
    await bob.start_again()
    await until_it_waits(bob, pair)
    assert await bob.engine.timeline.gap(pair) is None, "it is shown after a minute"
    assert bob.texts(pair) == []
    bob.passed_ms = DAY_MS + HOUR_MS
    await bob.engine.timeline.fetch_missing(pair)
    await bob.until_told(pair, 1)
    gap = await bob.engine.timeline.gap(pair)
    assert gap is not None
    (lost,) = gap.lost
    (after_row,) = await bob.log_of(pair, {"after"})
    assert (lost.sender_name, lost.count, lost.message_id) == ("Ann", 1, None)
    assert lost.before is not None
    assert (lost.before.lamport_timestamp, lost.before.message_id) == after_row[:2]
    assert (gap.missing, gap.waiting, gap.lost_total) == (0, 0, 1)

    # The Store that has it comes back, while Ann is not there to send it once more.
    bob.ahead_ms = -bob.passed_ms  # The Stores go by what time it is.
    await had.start_where_it_was()
    stored = await lacks.messages()
    await bob.engine.history.add_store(had.address)
    await bob.until_told(pair, 2)
    assert await bob.engine.timeline.gap(pair) is None
    log = await bob.log_of(pair, {"lost", "after"})
    assert [row[2] for row in log] == ["lost", "after"]
    assert [row[1] for row in log] == [lost_id, after_row[1]]
    assert bob.texts(pair) == ["after", "lost"], "each once"
    await until_stored(lacks, stored + 1)
    await bob.stop()

    # What Bob acknowledged comes to Ann, who asks the Stores as well.
    await ann.start_again()
    await until_nothing_to_send(ann, pair)
    assert await delivered_to(ann, pair) == {
        "lost": DeliveryState.HELD,
        "after": DeliveryState.HELD,
    }
    await ann.stop()
    for node in (had, lacks):
        await node.stop()


async def test_trying_again_at_the_gap_brings_it_from_a_store_that_was_away(tmp_path: Path) -> None:
    had, lacks = StoreNode(tmp_path, "had"), StoreNode(tmp_path, "lacks")
    for node in (had, lacks):
        await node.start()
    ann, bob, pair = await connected_friends(tmp_path, had, lacks)
    (said,) = await ann.say(pair, 1, "early")
    await bob.until_told(pair, 1)
    for node in (had, lacks):
        await bob.engine.history.add_store(node.address)
    await until_nothing_to_send(ann, pair)
    await until_nothing_to_send(bob, pair)
    await bob.stop()
    lost_id = await say_what_one_store_lacks(ann, pair, had, lacks)
    await bob.start_again()
    await until_it_waits(bob, pair)
    bob.passed_ms = DAY_MS + HOUR_MS
    await bob.engine.timeline.fetch_missing(pair)
    await bob.until_told(pair, 1)
    bob.ahead_ms = -bob.passed_ms  # The Stores go by what time it is.
    await had.start_where_it_was()
    gap = await bob.engine.timeline.gap(pair)
    assert gap is not None
    (lost,) = gap.lost
    assert lost.before is not None
    await bob.engine.timeline.fetch_lost(pair, [lost.before.message_id])
    await bob.until_told(pair, 2)
    assert await bob.engine.timeline.gap(pair) is None
    log = await bob.log_of(pair, {said, "lost", "after"})
    assert [row[2] for row in log] == [said, "lost", "after"]
    assert log[1][1] == lost_id
    wished = [view for view in bob.histories() if view.reason is HistoryReason.USER]
    assert wished, "somebody pressed it"
    for person in (ann, bob):
        await person.stop()
    for node in (had, lacks):
        await node.stop()
