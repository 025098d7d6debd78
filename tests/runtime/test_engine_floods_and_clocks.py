"""Junk in masses, and clocks that jump: the loop keeps turning, what is due is done, nothing spins.

The loop of these tests takes no timer that the window's would not take: Qt counts milliseconds in
32 bits.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextvars import Context
from pathlib import Path
from typing import TypeVarTuple

import pytest

from engine.core.ids import UnixMs, WakuHash
from engine.core.invite import group_id_of
from engine.core.waku import WakuMessage
from engine.crypto.sealed import SealedGroup
from engine.events import EngineEvent, MessageAdded, MessageChanged
from engine.network.memory import MemoryNetwork
from engine.runtime.job_queue import LookAtClock
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person

Ts = TypeVarTuple("Ts")
YEAR_MS = 365 * 24 * 3_600_000
QT_LONGEST_MS = 2**31 - 1


class QtLikeLoop(asyncio.SelectorEventLoop):
    """Refuses the timers that Qt refuses."""

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if (when - self.time()) * 1000 > QT_LONGEST_MS:
            raise OverflowError("Python int too large to convert to C int")
        return super().call_at(when, callback, *args, context=context)


class Turns:
    """Counts the turns of the running loop; keeps it busy meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self.count += 1
        self._next = asyncio.get_running_loop().call_soon(self._turn)

    def stop(self) -> None:
        self._next.cancel()


class Clocked(Person):
    """A person whose clock can be set."""

    ahead_ms = 0

    def now_ms(self) -> UnixMs:
        return UnixMs(super().now_ms() + self.ahead_ms)


def play(scenario: Callable[[Clocked, Clocked], Coroutine[object, object, None]], at: Path) -> None:
    """Alice and Bob, in a group that neither has been told about yet."""

    async def whole() -> None:
        network = MemoryNetwork()
        alice, bob = Clocked("Alice", at, network), Clocked("Bob", at, network)
        try:
            await alice.start()
            await bob.start()
            async with asyncio.timeout(2 * PATIENCE_S):
                await scenario(alice, bob)
        finally:
            await alice.engine.stop()
            await bob.engine.stop()

    with asyncio.Runner(loop_factory=QtLikeLoop) as runner:
        runner.run(whole())


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


def is_held(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, MessageChanged)
        and event.message.text == text
        and event.message.delivery is not None
        and bool(event.message.delivery.held_by)
    )


def test_a_flood_of_junk_leaves_the_loop_turning_and_wishes_are_not_behind_it(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await alice.engine.groups.create("Tide")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        runner = alice.engine.runner(group)
        topic = alice.topic(group)
        record = alice.group(group)
        sealed = SealedGroup(group_id=group_id_of(group), epoch_keys=record.epoch_keys)
        for _ in range(2_500):
            payload = sealed.seal(b"junk of a member", random_bytes=os.urandom)
            junk = WakuMessage(payload=payload, content_topic=topic, timestamp_ns=1)
            runner.on_message(junk, WakuHash(bytes(32)))
        assert alice.engine.counters()["runner.inbox_full"] >= 500
        turns = Turns()
        await alice.engine.timeline.send_text(group, "through the flood")
        refused = alice.engine.counters().get("group.malformed", 0)
        assert refused < 1_000, "a wish does not wait for two thousand others"
        await bob.until(shows("through the flood"))
        await alice.until_counted("group.malformed", 2_000)
        assert turns.count > 2_000 / 128
        turns.stop()

    play(scenario, tmp_path)


def test_what_is_due_is_done_although_the_inbox_is_never_empty(tmp_path: Path) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await alice.engine.groups.create("Tide")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        runner = bob.engine.runner(group)
        over = asyncio.Event()

        async def keep_busy() -> None:
            """While one of two is told that its jobs are done, the other's still wait."""
            while not over.is_set():
                await runner.feed([LookAtClock()] * 1_000)

        busy = [asyncio.create_task(keep_busy()) for _ in range(2)]
        await alice.engine.timeline.send_text(group, "who holds this?")
        await alice.until(is_held("who holds this?"))
        over.set()
        await asyncio.gather(*busy)

    play(scenario, tmp_path)


def test_junk_of_strangers_does_not_crowd_out_what_members_say(tmp_path: Path) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await alice.engine.groups.create("Tide")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        await alice.engine.timeline.send_text(group, "before")
        await bob.until(shows("before"))
        runner = bob.engine.runner(group)
        topic = bob.topic(group)
        for _ in range(5_000):
            junk = WakuMessage(payload=os.urandom(300), content_topic=topic, timestamp_ns=1)
            runner.on_message(junk, WakuHash(bytes(32)))
        await alice.engine.timeline.send_text(group, "after")
        await bob.until(shows("after"))
        assert bob.engine.counters().get("runner.inbox_full", 0) == 0

    play(scenario, tmp_path)


def test_a_connection_that_comes_back_during_a_flood_is_noticed(tmp_path: Path) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await alice.engine.groups.create("Tide")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        runner = alice.engine.runner(group)
        topic = alice.topic(group)
        alice.transport.set_online(False)
        await alice.engine.timeline.send_text(group, "written offline")
        for _ in range(2_500):
            junk = WakuMessage(payload=b"junk", content_topic=topic, timestamp_ns=1)
            runner.on_message(junk, WakuHash(bytes(32)))
        alice.transport.set_online(True)
        await bob.until(shows("written offline"))

    play(scenario, tmp_path)


@pytest.mark.parametrize("jump_ms", [-YEAR_MS, YEAR_MS, -60_000, 8 * 3_600_000])
def test_an_own_clock_that_jumps_keeps_the_engine_working(tmp_path: Path, jump_ms: int) -> None:
    async def scenario(alice: Clocked, bob: Clocked) -> None:
        group = await alice.engine.groups.create("Tide")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        await alice.engine.timeline.send_text(group, "before")
        await bob.until(shows("before"))
        alice.ahead_ms = bob.ahead_ms = jump_ms
        for someone, other in ((alice, bob), (bob, alice)):
            await someone.engine.timeline.send_text(group, f"after, {someone.name}")
            if jump_ms > -300_000:
                await other.until(shows(f"after, {someone.name}"))
        assert "runner.crashed" not in alice.engine.counters()
        assert "runner.crashed" not in bob.engine.counters()

    play(scenario, tmp_path)
