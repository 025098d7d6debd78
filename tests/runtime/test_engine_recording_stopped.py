"""A directory that takes no delivery log, on real engines: chats go on, and the user is told."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import find_logs
from engine.events import EngineEvent, NoticeCleared, NoticeRaised, RecordingStopped
from engine.network.memory import MemoryNetwork
from engine.runtime.engine import Engine
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person
from tests.runtime.test_engine_pairs_bad_networks import shows


def stopped(event: EngineEvent) -> bool:
    return isinstance(event, NoticeRaised) and isinstance(event.content, RecordingStopped)


def goes_on(event: EngineEvent) -> bool:
    return isinstance(event, NoticeCleared) and event.key == "recording"


async def first(wanted: Callable[[EngineEvent], bool], told: asyncio.Queue[EngineEvent]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not wanted(await told.get()):
            pass


async def test_recording_stops_with_a_notice_and_goes_on_by_itself(tmp_path: Path) -> None:
    network, logs = MemoryNetwork(), tmp_path / "logs"
    logs.write_bytes(b"")  # Where a directory should be: nobody can write in there.
    alice, bob = Person("Alice", tmp_path, network), Person("Bob", tmp_path, network)
    settings = RecorderSettings(
        directory=logs, key=bytes(32), app_version="1", network="test", linger_ms=1
    )
    recorder = Recorder(settings, now_ms=alice.now_ms, random_bytes=os.urandom)
    alice.engine = Engine(replace(alice.parts, recorder=recorder))
    told: asyncio.Queue[EngineEvent] = asyncio.Queue()
    alice.engine.subscribe(told.put_nowait)
    await alice.start()
    await bob.start()
    await first(stopped, told)
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await alice.engine.timeline.send_text(group, "chats go on")
    await bob.until(shows("chats go on"))
    later: asyncio.Queue[EngineEvent] = asyncio.Queue()
    alice.engine.subscribe(later.put_nowait)
    await first(stopped, later)  # A window that comes later is told, too.
    logs.unlink()
    await first(goes_on, told)
    await alice.engine.stop()
    await bob.engine.stop()
    assert len(find_logs(logs)) == 1
    assert recorder.dropped > 0
