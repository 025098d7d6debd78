"""One of two Stores never answers: what nobody has is stated as lost all the same, and closes."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.history.queries import End
from engine.core.ids import ConversationId
from engine.core.problems import QueryFailed
from engine.core.sds.vocabulary import MissingEntry
from engine.events import GapUpdated, GapView
from engine.history_views import LostView, StoreHealth
from tests.patience import PATIENCE_S
from tests.runtime.history.bad_stores import Silent, serving
from tests.runtime.history.history_stage import (
    QUICK,
    Person,
    Row,
    StoreNode,
    ask_stores_soon,
    until_stored,
)

DAY_MS = 24 * 3_600_000
HOUR_MS = 3_600_000
IMPATIENT = replace(QUICK, first_byte_timeout_ms=1_000)


async def gap_of(person: Person, group: ConversationId) -> GapView:
    gap = await person.engine.timeline.gap(group)
    assert gap is not None
    return gap


async def until_asked_in_vain(person: Person, group: ConversationId) -> MissingEntry:
    """Until members and Stores were asked for the only message that lacks: as the disk has it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with person.disk() as disk:
                state = disk.channel_state(group)
            for entry in state.missing:
                if entry.requests and entry.stores is not None:
                    return entry
            await asyncio.sleep(0.05)


async def ask_until_lost(person: Person, group: ConversationId) -> LostView:
    """As somebody who presses "Fetch" whenever the last time came to nothing."""

    def queries() -> int:
        return sum(store.queries for store in person.engine.history.stores())

    async with asyncio.timeout(PATIENCE_S):
        while not (gap := await gap_of(person, group)).lost:
            before = queries()
            await person.engine.timeline.fetch_missing(group)
            while queries() == before and not (await gap_of(person, group)).lost:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    return gap.lost[0]


async def say_what_one_store_lacks(
    tmp_path: Path, had: StoreNode, lacks: StoreNode
) -> tuple[ConversationId, str, Row]:
    """Ann and Eve, who are gone afterwards: the group, its invitation, and the row that lacks."""
    both = (had.address, lacks.address)
    ann = await Person("Ann", tmp_path, peers=both).start()
    eve = await Person("Eve", tmp_path, peers=both).start()
    await ann.until_online(len(both))
    await eve.until_online(len(both))
    group = await ann.engine.groups.create("Friends")
    await until_stored(lacks, 1)
    link = await ann.engine.groups.make_invite_link(group)
    await eve.engine.groups.join(link)
    await until_stored(lacks, 2)

    # What Ann says while one Store is off is heard by Eve.  Then the other goes away.
    await lacks.stop()
    await ann.engine.timeline.send_text(group, "lost")
    await eve.until_told(group, 1)
    await until_stored(had, 3)
    (row,) = await eve.log_of(group, {"lost"})
    await ann.stop()
    await eve.stop()
    await had.stop()

    # Eve says something after it, which comes to the one that lacks Ann's.
    await lacks.start_where_it_was()
    await eve.start_again()
    await eve.until_online()
    stored = await lacks.messages()
    await eve.engine.timeline.send_text(group, "after")
    await until_stored(lacks, stored + 1)
    await eve.stop()
    return group, link, row


def lacks_something(person: Person) -> bool:
    return any(isinstance(event, GapUpdated) for event in person.told)


async def test_what_no_store_and_no_member_has_is_lost_though_one_store_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_stores_soon(monkeypatch)
    had, lacks, silent = (StoreNode(tmp_path, name) for name in ("had", "lacks", "silent"))
    await had.start()
    await lacks.start()
    with serving(Silent, monkeypatch):
        await silent.start()
    group, link, lost_row = await say_what_one_store_lacks(tmp_path, had, lacks)

    # Dan has no more than Bob, and so no answer for him.
    dan = await Person("Dan", tmp_path, peers=(lacks.address,)).start()
    await dan.engine.groups.join(link)
    await dan.until(lambda: lacks_something(dan))
    bob = await Person("Bob", tmp_path, peers=(lacks.address,), config=IMPATIENT).start()
    for node in (lacks, silent):
        await bob.engine.history.add_store(node.address)
    await bob.engine.groups.join(link)
    await bob.until(lambda: lacks_something(bob))
    await bob.engine.timeline.fetch_missing(group)
    asked = await until_asked_in_vain(bob, group)
    assert asked.stores is not None
    assert (asked.stores.lacked, asked.stores.silent) == (1, (silent.address,))
    gap = await gap_of(bob, group)
    assert (gap.missing, gap.waiting, gap.lost) == (1, 1, ()), "it may still come"

    # A day later by Bob's timers; nobody gives anything up sooner.
    bob.passed_ms = DAY_MS + HOUR_MS
    lost = await ask_until_lost(bob, group)
    (after_row,) = await bob.log_of(group, {"after"})
    assert (lost.message_id, lost.sender_name) == (lost_row[1], "Ann")
    assert lost.before is not None
    assert (lost.before.lamport_timestamp, lost.before.message_id) == after_row[:2]
    assert (lost.lacked_by, lost.silent_stores) == (1, (silent.address,))
    health = [(view.multiaddr, view.health, view.problem) for view in bob.engine.history.stores()]
    assert health == [
        (lacks.address, StoreHealth.GOOD, None),
        (silent.address, StoreHealth.FAILED, QueryFailed(End.TIMEOUT)),
    ]
    gap = await gap_of(bob, group)
    assert (gap.missing, gap.waiting, gap.lost_total) == (0, 0, 1)
    assert bob.texts(group) == ["after"]

    # The Store that has it comes back.
    await had.start_where_it_was()
    await bob.engine.history.add_store(had.address)
    await bob.until_told(group, 2)
    assert await bob.engine.timeline.gap(group) is None
    assert await bob.log_of(group, {"lost", "after"}) == [lost_row, after_row]
    assert bob.texts(group) == ["after", "lost"], "each once"
    for person in (bob, dan):
        await person.stop()
    for node in (had, lacks, silent):
        await node.stop()
