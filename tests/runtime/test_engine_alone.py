"""A founder who waits for the others: relays are there, and nobody else is in the group."""

import asyncio
from pathlib import Path

from engine.events import MessageAdded
from engine.network.memory import MemoryNetwork
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person


async def test_nothing_is_sent_again_until_somebody_joins_who_then_gets_it_all(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    founder = Person("founder", tmp_path, network)
    await founder.start()
    stranger = await Person("stranger", tmp_path, network).start()
    try:
        group = await founder.engine.groups.create("Tea")
        heard: list[bytes] = []
        stranger.transport.subscribe(
            founder.topic(group), lambda message, _hash: heard.append(message.payload)
        )
        for number in range(20):
            await founder.engine.timeline.send_text(group, f"text {number}")
        async with asyncio.timeout(PATIENCE_S):
            while len(heard) < 20:  # noqa: ASYNC110 - a network in memory tells nobody
                await asyncio.sleep(0.01)
        written = len(heard)
        for number in range(1, 4):
            founder.pass_time(group, 60_000 * 4**number)
            await founder.until_counted("runner.sent_to_nobody_again", 20 * number)
        assert len(heard) == written
        await stranger.engine.groups.join(await founder.engine.groups.make_invite_link(group))
        texts: set[str] = set()
        wanted = {f"text {number}" for number in range(20)}
        seen = 0
        async with asyncio.timeout(PATIENCE_S):
            while not texts >= wanted:
                founder.pass_time(group, 1_000)
                await asyncio.sleep(0.02)
                for event in stranger.told[seen:]:
                    if isinstance(event, MessageAdded) and event.message.text:
                        texts.add(event.message.text)
                seen = len(stranger.told)
    finally:
        await founder.engine.stop()
        await stranger.engine.stop()
