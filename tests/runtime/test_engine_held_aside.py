"""What a wrong clock said: held aside, shown as that, also after a restart, then in its place."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine.core.ids import UnixMs
from engine.events import (
    EngineEvent,
    HeldUpdated,
    MessageAdded,
    NoticeCleared,
    NoticeRaised,
)
from engine.network.memory import MemoryNetwork
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person
from ui.window.notices import notice_words

HOURS_MS = 3 * 3_600_000


class Clocked(Person):
    """A person whose clock can be set."""

    ahead_ms = 0

    def now_ms(self) -> UnixMs:
        return UnixMs(super().now_ms() + self.ahead_ms)


def holds(*texts: str) -> Callable[[EngineEvent], bool]:
    def told(event: EngineEvent) -> bool:
        if not isinstance(event, HeldUpdated):
            return False
        messages = event.held.messages if event.held is not None else ()
        return [message.text for message in messages] == [*texts]

    return told


async def test_it_is_told_survives_a_restart_and_takes_its_place_in_time(tmp_path: Path) -> None:
    network = MemoryNetwork()
    alice, bob = Clocked("Alice", tmp_path, network), Clocked("Bob", tmp_path, network)
    people = [await alice.start(), await bob.start()]
    try:
        async with asyncio.timeout(PATIENCE_S):
            group = await alice.engine.groups.create("Tide")
            await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
            await alice.engine.timeline.send_text(group, "before")
            await bob.until(lambda e: isinstance(e, MessageAdded) and e.message.text == "before")
            assert await alice.engine.timeline.held(group) is None
            bob.ahead_ms = HOURS_MS
            await bob.engine.timeline.send_text(group, "from the future")
            event = await alice.until(holds("from the future"))
            assert isinstance(event, HeldUpdated)
            assert event.held == await alice.engine.timeline.held(group)
            notice = await alice.until(lambda e: isinstance(e, NoticeRaised))
            assert isinstance(notice, NoticeRaised)
            assert notice_words(notice.content).startswith(
                "Tide: 1 message is held, because the clock of Bob"
            )
            await alice.engine.stop()

            network = MemoryNetwork()  # Nobody else is there.
            alice = Clocked("Alice", tmp_path, network)
            alice.transport.set_online(False)
            people.append(await alice.start())
            again = await alice.until(holds("from the future"))
            assert isinstance(again, HeldUpdated)
            assert again.held is not None
            assert event.held is not None
            assert again.held.messages == event.held.messages
            assert again.held.clocks == event.held.clocks

            alice.ahead_ms = HOURS_MS
            await alice.engine.timeline.send_text(group, "what time is it?")
            await alice.until(
                lambda e: isinstance(e, MessageAdded) and e.message.text == "from the future"
            )
            await alice.until(holds())
            await alice.until(lambda e: isinstance(e, NoticeCleared))
            assert await alice.engine.timeline.held(group) is None
            page = await alice.engine.timeline.latest_page(group)
            texts = [m.text for m in page.messages if m.kind == "text"]
            assert texts == ["before", "from the future", "what time is it?"]
            assert not any(m.held for m in page.messages)
    finally:
        for one in people:
            await one.engine.stop()
