"""An empty profile that fetches a long conversation: ``… history_fill N DIR ADDRESS LINK``.

Everything but the window: engine, encrypted profile on disk, node, Store client.  The clock runs
from joining the group until the last message was told to the window, and is durable.  Beside it a
task measures how late the loop wakes it.  Prints one line of JSON.
"""

import asyncio
import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from random import SystemRandom
from typing import Final

from chat_app.compose import opening_command
from chat_app.main_thread_gc import EVERY_MS, MainThreadCollector
from engine.core.entropy import Entropy
from engine.core.ids import UnixMs
from engine.events import EngineEvent, MessageAdded, MessageKind, MessagesAdded
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore

TICK_S: Final = 0.002
SWITCH_INTERVAL_S: Final = 0.0005
"""As in the application."""
PATIENCE_S: Final = 600


def reader(place: Path, address: str) -> Engine:
    """It has not started yet; ``address``: of the Store."""
    store = SqliteProfileStore
    return Engine(
        EngineDependencies(
            open_store=lambda: OpenedStore(
                store=store.open(place / "causerie.db", bytes(32)), key_storage="key file"
            ),
            make_transport=lambda seed: EmbeddedNode(NodeSettings(network_key=seed.network_key)),
            port_of=lambda _transport: None,
            entropy=Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random),
            now_ms=lambda: UnixMs(time.time_ns() // 1_000_000),
            peers=(address,),
            opening_command=opening_command(),
        )
    )


class TextsTold:
    """``done`` once so many texts were told to a window."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self.done = asyncio.Event()

    def hear(self, event: EngineEvent) -> None:
        match event:
            case MessageAdded(message=message):
                self._missing -= message.kind is MessageKind.TEXT
            case MessagesAdded(messages=messages):
                self._missing -= sum(each.kind is MessageKind.TEXT for each in messages)
            case _:
                return
        if self._missing <= 0:
            self.done.set()


async def fill(count: int, place: Path, address: str, link: str) -> dict[str, object]:
    engine, told = reader(place, address), TextsTold(count)
    engine.subscribe(told.hear)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    await engine.start()
    await engine.create_identity("Reader")
    while not engine.history.stores():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    collecting = asyncio.create_task(collect_as_the_program())
    await asyncio.sleep(0)  # It has collected once.
    before_mib = resident_mib()
    late_ms: list[float] = []
    resident: list[float] = []
    watch = asyncio.create_task(measure(late_ms, resident))
    began, processor_s = time.perf_counter(), processor_time_s()
    loop_s = time.thread_time()
    await engine.groups.join(link)
    async with asyncio.timeout(PATIENCE_S):
        await told.done.wait()
    took_s = time.perf_counter() - began
    processor_s = processor_time_s() - processor_s
    loop_s = time.thread_time() - loop_s
    watch.cancel()
    collecting.cancel()
    await engine.stop()
    late_ms.sort()
    return {
        "seconds": took_s,
        "cpu_seconds": processor_s,
        "loop_cpu_seconds": loop_s,
        "late_p99_ms": late_ms[int(len(late_ms) * 0.99)],
        "late_max_ms": late_ms[-1],
        "before_mib": before_mib,
        "after_mib": max(resident),
        "half_way_mib": resident[len(resident) // 2],
    }


async def collect_as_the_program() -> None:
    """Cycles are looked for on this thread only, twice a second."""
    gc.disable()
    gc.collect()
    gc.freeze()  # What the program is made of is not looked through again.
    while True:
        await asyncio.sleep(EVERY_MS / 1_000)
        MainThreadCollector.collect_due()


async def measure(late_ms: list[float], resident: list[float]) -> None:
    now_s = asyncio.get_running_loop().time
    looked_s = 0.0
    while True:
        due_s = now_s() + TICK_S
        await asyncio.sleep(TICK_S)
        late_ms.append(max(now_s() - due_s, 0.0) * 1_000)
        if now_s() - looked_s > 0.25:
            looked_s = now_s()
            resident.append(resident_mib())


def processor_time_s() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    arguments = sys.argv
    found = asyncio.run(fill(int(arguments[1]), Path(arguments[2]), arguments[3], arguments[4]))
    print(json.dumps(found), flush=True)
