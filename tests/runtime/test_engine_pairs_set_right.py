"""Clocks that are set and disks that refuse while the engine does something by itself."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from engine.core.contacts import ContactState
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId, UnixMs
from engine.core.ports import SaveValue
from engine.events import ConversationAdded, ConversationChanged, EngineEvent
from engine.network.memory import MemoryNetwork
from engine.runtime.job_queue import LookAtClock
from engine.runtime.people import UNTOLD_KEY
from engine.session.pair.presence import MOST_DOUBLINGS, SAY_EVERY_MS
from engine.session.pair.session import PairSession
from engine.session.transitions import SessionTransition
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person

HOUR_MS = 3_600_000


class Shifted(Person):
    """With a clock of their own."""

    ahead_ms = 0

    def now_ms(self) -> UnixMs:
        return UnixMs(super().now_ms() + self.ahead_ms)


def state_is(state: ContactState) -> Callable[[EngineEvent], bool]:
    return lambda event: (
        isinstance(event, ConversationChanged | ConversationAdded)
        and event.conversation.contact is not None
        and event.conversation.contact.state is state
    )


async def friends(alice: Person, bob: Person) -> ConversationId:
    bob.told.clear()
    pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(state_is(ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await alice.until(state_is(ContactState.ACCEPTED))
    return pair


def play(scenario: Callable[[MemoryNetwork], Coroutine[object, object, None]]) -> None:
    asyncio.run(scenario(MemoryNetwork()))


def test_a_clock_that_is_set_does_not_silence_us(tmp_path: Path) -> None:
    async def scenario(network: MemoryNetwork) -> None:
        alice = await Shifted("Alice", tmp_path, network).start()
        bob = await Person("Bob", tmp_path, network).start()
        assert isinstance(alice, Shifted)
        pair = await friends(alice, bob)
        runner = alice.engine.runner(pair)
        before_ms = runner.next_deadline()
        assert before_ms is not None
        latest_ms = (SAY_EVERY_MS << MOST_DOUBLINGS) + PATIENCE_S * 1_000
        for ahead_ms in (HOUR_MS, 0, -HOUR_MS, 0):
            alice.ahead_ms = ahead_ms
            await runner.do(LookAtClock())
            due_ms = runner.next_deadline()
            assert due_ms is not None
            assert -latest_ms < due_ms - before_ms < latest_ms < HOUR_MS
        await alice.engine.stop()
        await bob.engine.stop()

    play(scenario)


async def untold(person: Person, pair: ConversationId) -> None:
    """As after a crash between saving a profile and telling it."""
    await person.engine.runner(pair).write(SaveValue(key=UNTOLD_KEY, value="1"))


def test_a_profile_that_cannot_be_told_now_is_told_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(network: MemoryNetwork) -> None:
        alice = await Person("Alice", tmp_path, network).start()
        bob = await Person("Bob", tmp_path, network).start()
        await untold(alice, await friends(alice, bob))
        store = alice.store
        assert store is not None
        store.broken = True
        await alice.engine.people.tell_untold()
        store.broken = False
        assert alice.engine.counters()["engine.profile_not_told"] == 1
        with alice.disk() as disk:
            assert disk.value(UNTOLD_KEY) == "1"
        await alice.engine.stop()
        await bob.engine.stop()

    with caplog.at_level(logging.ERROR, logger="asyncio"):
        play(scenario)
    assert not [record for record in caplog.records if record.exc_info]


def test_who_is_removed_while_all_are_told_keeps_nobody_from_hearing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(network: MemoryNetwork) -> None:
        alice = await Person("Alice", tmp_path, network).start()
        bob = await Person("Bob", tmp_path, network).start()
        carol = await Person("Carol", tmp_path, network).start()
        first, second = await friends(alice, bob), await friends(alice, carol)
        await untold(alice, first)
        told: list[ConversationId] = []
        for pair in (first, second):
            runner = alice.engine.runner(pair)
            do = runner.do

            async def gone_or_told(
                work: Callable[[PairSession, UnixMs], SessionTransition],
                pair: ConversationId = pair,
                do: Callable[..., Coroutine[object, object, MessageId | None]] = do,
            ) -> MessageId | None:
                if pair == first:
                    await alice.engine.people.remove(first)
                told.append(pair)
                return await do(work)

            monkeypatch.setattr(runner, "do", gone_or_told)
        await alice.engine.people.tell_profile()
        assert told == [first, second]
        with pytest.raises(LocalProtocolError):
            alice.engine.runner(first)
        for person in (alice, bob, carol):
            await person.engine.stop()

    play(scenario)
