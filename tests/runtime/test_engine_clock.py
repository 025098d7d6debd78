"""Our clock on real engines: who says that it is wrong, what a person decides, and jumps of it.

The time of a person's system can be set by ``ahead_ms``, which moves no timer.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from engine.core.errors import ConfigError, StorageError
from engine.core.ids import ConversationId, DeliveryState, WakuHash
from engine.core.waku import WakuMessage
from engine.events import (
    ClockJudged,
    ClockOffsetDropped,
    EngineEvent,
    HeldUpdated,
    MessageAdded,
    MessageChanged,
    OwnClockView,
)
from engine.network.memory import MemoryNetwork
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
CLOSE_MS = 10_000
OWN_MESSAGES = 4
"""Of a founder who said two things: what a clock that was ahead dated is said again."""
LONGEST_TIMER_MS = 60_000
"""A sync message's, twice over; a jump would have moved it by an hour at least."""


class Clocked(Person):
    published = 0

    def __init__(
        self, name: str, place: Path, network: MemoryNetwork, *, ahead_ms: int = 0
    ) -> None:
        self.ahead_ms = ahead_ms
        super().__init__(name, place, network)

    async def listen(self, group: ConversationId) -> None:
        """Count what comes by the network from now on; somebody is there as long as it listens."""
        ear = self.network.attach(f"{self.name}'s ear")
        ear.subscribe(self.topic(group), self._heard)
        await ear.start()

    def _heard(self, _message: WakuMessage, _waku_hash: WakuHash) -> None:
        self.published += 1

    async def until_published(self, count: int) -> None:
        while self.published < count:  # noqa: ASYNC110 - patience is the scenario's
            await asyncio.sleep(0)


def play(names: str, at: Path, scenario: Callable[..., Coroutine[object, object, None]]) -> None:
    async def whole() -> None:
        network = MemoryNetwork()
        people = [Clocked(name, at, network) for name in names.split()]
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(*people)
        finally:
            for one in people:
                await one.engine.stop()

    asyncio.run(whole())


async def together(founder: Clocked, *others: Clocked) -> ConversationId:
    await founder.start()
    group = await founder.engine.groups.create("Tide")
    for other in others:
        await other.start()
        await other.engine.groups.join(await founder.engine.groups.make_invite_link(group))
    return group


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def judged(by: int) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ClockJudged) and event.clock is not None and len(event.clock.by) == by
    )


def is_held(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, HeldUpdated)
        and event.held is not None
        and text in [message.text for message in event.held.messages]
    )


def is_acknowledged(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, MessageChanged)
        and event.message.text == text
        and event.message.delivery is not None
        and bool(event.message.delivery.held_by)
    )


def is_out(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, MessageChanged)
        and event.message.text == text
        and event.message.delivery is not None
        and event.message.delivery.state is not DeliveryState.SAVED
    )


def dropped(event: EngineEvent) -> bool:
    return isinstance(event, ClockOffsetDropped)


async def ask_and_answer(group: ConversationId, asker: Clocked, *others: Clocked) -> None:
    await asker.engine.timeline.send_text(group, "what time is it?")
    for other in others:
        await other.until(shows("what time is it?"))
        await other.engine.timeline.send_text(group, f"{other.name}'s answer")


def clock_of(event: EngineEvent) -> OwnClockView:
    assert isinstance(event, ClockJudged)
    assert event.clock is not None
    return event.clock


def test_one_word_is_told_the_person_decides_and_what_was_held_takes_its_place(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        alice.ahead_ms = -HOUR_MS
        group = await together(alice, bob)
        await ask_and_answer(group, alice, bob)
        clock = clock_of(await alice.until(judged(by=1)))
        assert abs(clock.behind_ms - HOUR_MS) < CLOSE_MS
        assert (clock.by, clock.heard, clock.known_long) == (("Bob",), 1, False)
        await alice.until(is_held("Bob's answer"))

        await alice.engine.set_clock_offset(clock.others_ahead_ms)
        await alice.until(shows("Bob's answer"))
        going = alice.engine.own_clock()
        assert going is not None
        assert (going.offset_ms, going.behind_ms) == (clock.others_ahead_ms, 0)
        await alice.engine.timeline.send_text(group, "right now")
        there = await bob.until(shows("right now"))
        assert isinstance(there, MessageAdded)
        assert abs(there.message.sent_ms - bob.now_ms()) < CLOSE_MS

        await alice.engine.set_clock_offset(None)
        assert alice.engine.own_clock() is None

    play("Alice Bob", tmp_path, scenario)


@pytest.mark.parametrize("ahead_ms", [-HOUR_MS, 1_000 * -30, HOUR_MS, YEAR_MS])
def test_the_majority_of_those_known_for_a_day_is_told_by_name(
    tmp_path: Path, ahead_ms: int
) -> None:
    async def scenario(alice: Clocked, *others: Clocked) -> None:
        group = await together(alice, *others)
        for other in others:
            await alice.engine.timeline.send_text(group, f"hello, {other.name}")
            await other.until(shows(f"hello, {other.name}"))
        for one in (alice, *others):
            one.passed_ms = 2 * DAY_MS
        alice.ahead_ms = ahead_ms
        await alice.engine.timeline.send_text(group, "what time is it?")
        for other in others:
            await other.until(
                shows("what time is it?") if ahead_ms < HOUR_MS else is_held("what time is it?")
            )
            await other.engine.timeline.send_text(group, f"{other.name}'s answer")
        clock = clock_of(await alice.until(judged(by=len(others))))
        assert abs(clock.behind_ms + ahead_ms) < CLOSE_MS
        assert (clock.by, clock.heard, clock.known_long) == (("Bob", "Carol", "Dave"), 3, True)

    play("Alice Bob Carol Dave", tmp_path, scenario)


def test_what_was_decided_outlives_a_restart_and_is_dropped_when_the_clock_is_set(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        alice.ahead_ms = -HOUR_MS
        await together(alice, bob)
        await alice.engine.set_clock_offset(HOUR_MS)
        await alice.engine.stop()

        again = Clocked("Alice", tmp_path, bob.network, ahead_ms=-HOUR_MS)
        try:
            await again.start()
            clock = again.engine.own_clock()
            assert clock is not None
            assert clock.offset_ms == HOUR_MS
            again.ahead_ms = 0
            assert again.engine.own_clock() is None
            event = await again.until(dropped)
            assert isinstance(event, ClockOffsetDropped)
            assert event.offset_ms == HOUR_MS
        finally:
            await again.engine.stop()

        last = Clocked("Alice", tmp_path, bob.network)
        try:
            await last.start()
            assert last.engine.own_clock() is None, "that it was dropped is on disk, too"
            assert not any(map(dropped, last.told))
        finally:
            await last.engine.stop()

    play("Alice Bob", tmp_path, scenario)


def test_a_system_that_starts_before_the_decision_has_another_clock(tmp_path: Path) -> None:
    async def scenario(alice: Clocked) -> None:
        await alice.start()
        await alice.engine.set_clock_offset(HOUR_MS)
        await alice.engine.stop()
        again = Clocked("Alice", tmp_path, alice.network, ahead_ms=-DAY_MS)
        try:
            await again.start()
            assert again.engine.own_clock() is None
            assert any(map(dropped, again.told))
        finally:
            await again.engine.stop()

    play("Alice", tmp_path, scenario)


def test_a_decision_that_cannot_be_kept_is_none(tmp_path: Path) -> None:
    async def scenario(alice: Clocked) -> None:
        await alice.start()
        with pytest.raises(ConfigError):
            await alice.engine.set_clock_offset(101 * YEAR_MS)
        assert alice.store is not None
        alice.store.broken = True
        with pytest.raises(StorageError):
            await alice.engine.set_clock_offset(HOUR_MS)
        alice.store.broken = False
        assert alice.engine.own_clock() is None

    play("Alice", tmp_path, scenario)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS])
def test_a_jump_of_the_system_moves_no_timer_and_makes_no_burst(
    tmp_path: Path, jump_ms: int
) -> None:
    """What is to be sent again waits as long as before; nothing is said because of the jump."""

    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await together(alice, bob)
        await alice.engine.timeline.send_text(group, "before")
        await bob.until(shows("before"))
        await alice.listen(group)
        bob.transport.set_online(False)
        await alice.engine.timeline.send_text(group, "unacknowledged")
        await alice.until(is_out("unacknowledged"))
        runner = alice.engine.runner(group)
        due_ms = runner.next_deadline()
        assert due_ms is not None
        published = alice.published
        alice.ahead_ms = jump_ms
        alice.engine.own_clock()
        for _ in range(2_000):
            await asyncio.sleep(0)
        said_again = OWN_MESSAGES if jump_ms < 0 else 0
        assert alice.published - published <= 1 + said_again, "with a sync message that was due"
        after_ms = runner.next_deadline()
        assert after_ms is not None
        assert abs(after_ms - due_ms) <= LONGEST_TIMER_MS
        published = alice.published
        alice.passed_ms += LONGEST_TIMER_MS
        await alice.engine.timeline.fetch_missing(group)  # Whatever wakes it.
        await alice.until_published(published + 1)  # What nobody acknowledged is sent again.
        assert "runner.crashed" not in alice.engine.counters()

    play("Alice Bob", tmp_path, scenario)


async def said_from_the_future(alice: Clocked, bob: Clocked, jump_ms: int) -> ConversationId:
    """By Bob; it is held with Alice, behind what she said before."""
    group = await together(alice, bob)
    await alice.engine.timeline.send_text(group, "before")
    await bob.until(shows("before"))
    bob.ahead_ms = jump_ms
    await bob.engine.timeline.send_text(group, "from the future")
    await alice.until(is_held("from the future"))
    return group


@pytest.mark.parametrize("jump_ms", [HOUR_MS, YEAR_MS])
def test_what_is_held_takes_its_place_when_the_clock_is_set_forward(
    tmp_path: Path, jump_ms: int
) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await said_from_the_future(alice, bob, jump_ms)
        alice.ahead_ms = jump_ms
        alice.engine.own_clock()
        await alice.until(shows("from the future"))
        assert await alice.engine.timeline.held(group) is None

    play("Alice Bob", tmp_path, scenario)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, YEAR_MS])
def test_what_a_wrong_clock_dated_is_said_again_and_everybody_can_read_it(
    tmp_path: Path, jump_ms: int
) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await said_from_the_future(alice, bob, jump_ms)
        bob.ahead_ms = 0
        bob.engine.own_clock()
        await alice.until(shows("from the future"))
        await alice.engine.timeline.send_text(group, "and after")
        await bob.until(shows("and after"))
        for one in (alice, bob):
            page = await one.engine.timeline.latest_page(group)
            texts = [message.text for message in page.messages if message.kind == "text"]
            assert texts == ["before", "from the future", "and after"]
            assert await one.engine.timeline.held(group) is None

    play("Alice Bob", tmp_path, scenario)


def test_an_acknowledgement_comes_as_soon_after_a_jump_as_without_one(tmp_path: Path) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await together(alice, bob)
        alice.ahead_ms = bob.ahead_ms = -YEAR_MS
        await alice.engine.timeline.send_text(group, "a year ago")
        await bob.until(shows("a year ago"))
        await bob.engine.timeline.send_text(group, "I have it")
        await alice.until(is_acknowledged("a year ago"))

    play("Alice Bob", tmp_path, scenario)
