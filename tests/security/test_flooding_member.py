"""One member sends more than anybody can want: what it costs the others, and what they still read.

The quota of a day is scaled down, so that a flood of seconds passes it many times over.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Self

from msgspec.structs import replace

from engine.core.sds.config import FloodLimits
from engine.events import FloodsChanged, FloodView, MessageAdded, TimelineChanged
from tests.security.mallory import Mallory
from tests.security.stage import NOTHING_KEPT, Stage, Victim, figure

KIB: Final = 1024
LARGE: Final = "flood " * (10 * KIB)
"""60 KiB."""
LIMITS: Final = FloodLimits(
    bytes_per_day=512 * KIB,
    messages_per_day=40,
    waiting_bytes=512 * KIB,
    waiting_messages=40,
    bare_ids=60,
)
FLOOD: Final = 60
OVERHEAD: Final = 512 * KIB
"""All else that is on disk."""
HONEST: Final = 12
"""Texts of each of the others meanwhile."""


async def test_a_flood_costs_no_more_than_the_quota_and_what_is_kept_aside(stage: Stage) -> None:
    stage.settings, stage.flood = NOTHING_KEPT, LIMITS
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    before = disk(alice)
    async with Heartbeat() as heart:
        said = await talk_through(stage, mallory, [LARGE] * FLOOD)
        placed = [len(said & {*await person.texts()}) for person in (alice, bob)]
    took_s = await stage.heals(said)
    for person in (alice, bob):
        await stage.until(partial(has_taken, person, mallory, FLOOD))
        state = await person.state()
        logged = await sizes_of(person, mallory)
        aside = [entry.size for entry in state.set_aside]
        assert sum(logged) <= LIMITS.bytes_per_day
        assert sum(aside) <= LIMITS.waiting_bytes
        assert len(logged) + len(aside) == FLOOD + 1, "the join and all texts are known"
        assert {entry.sender_id for entry in state.set_aside} == {mallory.me}
        assert not state.missing
        (flood,) = await person.engine.timeline.floods(stage.group)
        assert (flood.name, flood.waiting) == ("Mallory", sum(map(bool, aside)))
        assert [event for event in person.told if isinstance(event, FloodsChanged)]
    await alice.stop()
    grown = disk(alice) - before
    figure(
        f"a flood of {FLOOD} texts, {FLOOD * len(LARGE) // KIB} KiB: {grown // KIB} KiB more "
        f"on Alice's disk, {placed} of {len(said)} honest texts placed meanwhile, all after "
        f"{took_s:.1f} s; the loop was busy for {heart.longest_ms} ms at most"
    )
    # A text is kept twice: as it was signed, and as it is shown.
    assert grown < 2 * LIMITS.bytes_per_day + LIMITS.waiting_bytes + OVERHEAD


async def test_many_small_texts_are_bound_by_their_number(stage: Stage) -> None:
    stage.settings, stage.flood = NOTHING_KEPT, LIMITS
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    said = await talk_through(stage, mallory, [f"small {n}" for n in range(5 * FLOOD)])
    took_s = await stage.heals(said)
    for person in (alice, bob):
        await stage.until(partial(has_counted, person, 5 * FLOOD + 1 - LIMITS.messages_per_day))
        state = await person.state()
        logged, aside = await sizes_of(person, mallory), state.set_aside
        assert len(logged) == LIMITS.messages_per_day
        assert sum(entry.size > 0 for entry in aside) == LIMITS.waiting_messages
        assert sum(entry.size == 0 for entry in aside) == LIMITS.bare_ids
    figure(
        f"a flood of {5 * FLOOD} small texts: {LIMITS.messages_per_day} in the log, "
        f"{LIMITS.waiting_messages} wait, {LIMITS.bare_ids} ids are kept; all {len(said)} "
        f"honest texts placed after {took_s:.1f} s"
    )


async def test_nobody_waits_for_what_is_set_aside_and_what_is_shown_takes_its_place(
    stage: Stage,
) -> None:
    stage.settings, stage.flood = NOTHING_KEPT, LIMITS
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    flood = [f"flood {number}" for number in range(60)]
    for text in flood:
        await mallory.say(text)
    for person in (alice, bob):
        await stage.until(partial(has_taken, person, mallory, len(flood)))
    await alice.engine.groups.show_flood(stage.group, mallory.me)
    await stage.until(partial(reads_all, alice, flood))
    await stage.until(partial(floods_are, alice, ()))
    await alice.say("I have read all of that")
    took_s = await stage.until(partial(reads_all, bob, ["I have read all of that"]))
    named = {
        entry.message_id for entry in (await bob.state()).set_aside if entry.sender_id == mallory.me
    }
    assert len(named) == len(flood) + 1 - LIMITS.messages_per_day
    assert await bob.missing() == 0, "nothing is looked for that was set aside"
    await bob.restart()
    await stage.until_connected()
    (kept,) = await bob.engine.timeline.floods(stage.group)
    assert kept.waiting == len(named), "it survives a restart"
    await mallory.say("one more")
    await stage.until(partial(reads_all, alice, ["one more"]))
    await stage.until(partial(is_set_aside, bob, len(named) + 1))
    await bob.engine.groups.show_flood(stage.group, mallory.me)
    healed_s = await stage.heals([*flood, "one more", "I have read all of that"])
    assert await bob.texts() == await alice.texts()
    figure(
        f"{len(named)} set aside at Bob: who names them was placed after {took_s:.1f} s; "
        f"shown, logs are alike after {healed_s:.1f} s"
    )


async def test_a_fork_of_which_one_branch_is_set_aside_is_found_once_it_is_shown(
    stage: Stage,
) -> None:
    """Alice and Bob each have another branch in the log and the other one aside."""
    stage.settings, stage.flood = NOTHING_KEPT, replace(LIMITS, messages_per_day=3)
    alice, bob = await stage.founded("Alice", "Bob")
    mallory = await Mallory.joined(stage, await stage.relay())
    await stage.until_members(3)
    await mallory.say("before the fork")
    await stage.heals(["before the fork"])
    branches = {alice: mallory.message("I am for it"), bob: mallory.message("I am against it")}
    for person, branch in branches.items():
        others = [other for other in stage.victims if other is not person]
        for other in others:
            other.on_the_way = lambda _message: ()
        await mallory.relay.publish(mallory.payload(branch))
        await stage.until(partial(has_taken, person, mallory, 2))
        for other in others:
            other.on_the_way = lambda message: (message,)
    for branch in branches.values():
        await mallory.relay.publish(mallory.payload(branch))
    for person in branches:
        await stage.until(partial(is_set_aside, person, 1))
    await alice.say("who is for it?")
    await stage.until(partial(reads_all, bob, ["who is for it?"]))
    assert not any([await person.engine.timeline.forks(stage.group) for person in branches])
    assert await alice.texts() != await bob.texts()
    for person in branches:
        await person.engine.groups.show_flood(stage.group, mallory.me)
    took_s = await stage.heals(["I am for it", "I am against it", "who is for it?"])
    await alice.restart()
    for person in branches:
        (fork,) = await person.engine.timeline.forks(stage.group)
        assert {fork.first_id, fork.second_id} == {b.message_id for b in branches.values()}
        proof = await person.engine.timeline.fork_proof(fork)
        assert len({row.text for row in proof.messages if row}) == 2
    figure(
        f"a fork with one branch aside: shown, logs are alike and it is proved to 2 of 2 after "
        f"{took_s:.1f} s"
    )


async def test_who_fetches_many_days_of_several_authors_is_not_kept_from_it(stage: Stage) -> None:
    stage.flood = LIMITS
    people = await stage.founded("Alice", "Bob")
    said: list[str] = []
    for day in range(3):
        await stage.until_connected()
        for number in range(30):
            for person in people:
                said.append(f"{person.name} on day {day}: {number}")
                await person.say(said[-1])
        await stage.heals(said)
        await stage.next_day()
    await stage.until_connected()
    newcomer = await stage.victim("Carol")
    await stage.join(newcomer)
    took_s = await stage.until(partial(reads_all, newcomer, said))
    counted = [person.counted("sds.set_aside") for person in stage.victims]
    figure(
        f"a newcomer fetches {len(said)} texts of 2 authors and 3 days, more than twice the "
        f"quota of each, in {took_s:.1f} s: {sum(counted)} set aside"
    )
    assert not any(counted)


async def have_equal_logs(victims: Sequence[Victim]) -> bool:
    logs = [[entry.position for entry in (await each.state()).log] for each in victims]
    return all(log == logs[0] for log in logs)


async def test_a_muted_member_is_received_and_not_shown(stage: Stage) -> None:
    alice, bob, carol = await stage.founded("Alice", "Bob", "Carol")
    await carol.say("before")
    await stage.heals(["before"])
    await alice.engine.groups.set_member_muted(stage.group, carol.participant_id, muted=True)
    assert "before" not in await alice.texts()
    told = len(alice.told)
    await carol.say("while muted")
    await stage.until(partial(reads_all, bob, ["while muted"]))
    await bob.say("I answer")
    await stage.until(partial(reads_all, alice, ["I answer"]))
    assert {"before", "while muted"}.isdisjoint(await alice.texts())
    added = [event.message for event in alice.told[told:] if isinstance(event, MessageAdded)]
    assert [message.text for message in added] == ["I answer"], "no row, and no notification"
    (view,) = await alice.engine.conversations()
    assert view.unread == 1
    assert [m.name for m in view.members if m.is_muted] == ["Carol"]
    await stage.until(
        partial(have_equal_logs, stage.victims)
    )  # Kept and acknowledged all the same.
    await alice.restart()
    await stage.until_connected()
    assert {"before", "while muted"}.isdisjoint(await alice.texts())
    await alice.engine.groups.set_member_muted(stage.group, carol.participant_id, muted=False)
    assert [event for event in alice.told if isinstance(event, TimelineChanged)]
    assert await alice.texts() == ["before", "while muted", "I answer"]
    figure("a muted member: 0 of 2 texts shown, 3 of 3 logs alike, all back when not muted")


class Heartbeat:
    """How long the loop was busy with other things, at most."""

    def __init__(self) -> None:
        self.longest_ms = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        last_s = loop.time()
        while True:
            await asyncio.sleep(0)
            now_s = loop.time()
            self.longest_ms = max(self.longest_ms, round((now_s - last_s) * 1000))
            last_s = now_s


async def talk_through(stage: Stage, mallory: Mallory, flood: Sequence[str]) -> set[str]:
    """Everybody else goes on talking while it comes: what they said."""
    said: set[str] = set()
    for number, text in enumerate(flood):
        await mallory.say(text)
        if number % (len(flood) // HONEST) == 0:
            for person in stage.victims:
                await person.say(f"{person.name} {number}")
                said.add(f"{person.name} {number}")
    return said


async def sizes_of(person: Victim, mallory: Mallory) -> list[int]:
    """Of the signed parts in the log."""
    state = await person.state()
    raws = [await person.raw(e.position.message_id) for e in state.log if e.sender_id == mallory.me]
    return [len(raw or b"") for raw in raws]


async def has_taken(person: Victim, mallory: Mallory, texts: int) -> bool:
    """All of these and the join are logged or set aside."""
    state = await person.state()
    logged = sum(entry.sender_id == mallory.me for entry in state.log)
    return logged + len(state.set_aside) == texts + 1


async def has_counted(person: Victim, set_aside: int) -> bool:
    return person.counted("sds.set_aside") >= set_aside


async def is_set_aside(person: Victim, count: int) -> bool:
    return len((await person.state()).set_aside) == count


async def reads_all(person: Victim, texts: Sequence[str]) -> bool:
    return {*texts} <= {*await person.texts()}


async def floods_are(person: Victim, floods: Sequence[FloodView]) -> bool:
    (view,) = await person.engine.conversations()
    return tuple(await person.engine.timeline.floods(view.conversation_id)) == tuple(floods)


def disk(person: Victim) -> int:
    """All files of the profile."""
    return sum(path.stat().st_size for path in person.place.rglob("*") if path.is_file())
