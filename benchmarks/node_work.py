"""Some of the devices that use one node: ``… node_work ADDRESS FIRST DEVICES TOPICS``.

Each is a whole edge node, as a device in the edge role has it, at an address of its own in
127.16.0.0/12.  A line of JSON is a command, the next line of output its answer, as in
``network_side.py``.  Messages begin with the clock's nanoseconds, which all processes share.
"""

import asyncio
import contextlib
import gc
import json
import os
import sys
import time
from contextvars import ContextVar
from typing import Any, Final

from benchmarks.network_ours import next_line
from benchmarks.network_side import Answer, Heard, serve
from engine.core.errors import TransportError
from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.edge.edge_node import EdgeNode
from engine.network.edge.settings import EdgeSettings

MESSAGE_BYTES: Final = 1_500
QUIET_S: Final = 2.0
_source: ContextVar[str] = ContextVar("source")
"""The address from which a device dials, and all tasks that it starts."""


class Loop(asyncio.SelectorEventLoop):
    """Dials from the address of the device whose task it is."""

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- asyncio's
        return await super().create_connection(*args, **kwargs, local_addr=(_source.get(), 0))


def address_of(number: int) -> str:
    """Never two in one /24, which is what shares of the archive and of slots go by."""
    return f"127.{16 + number // 250}.{1 + number % 250}.1"


def topic_of(number: int, topics: int) -> ContentTopic:
    return ContentTopic(f"/causerie/1/bench-{number % topics}/proto")


class Device(Heard):
    def __init__(self, number: int, topics: int, node: str) -> None:
        super().__init__()
        self.number = number
        self.edge = EdgeNode(EdgeSettings(network_key=os.urandom(32), service_nodes=(node,)))
        self.edge.subscribe(topic_of(number, topics), self._take)

    async def start(self) -> None:
        _source.set(address_of(self.number))
        await self.edge.start()

    @property
    def subscribed(self) -> bool:
        """At the node, and able to push there."""
        return self.edge.status().peers > 0

    def _take(self, heard: WakuMessage, _: WakuHash) -> None:
        self.take(heard.payload)

    async def push(self, topic: ContentTopic) -> bool:
        payload = time.monotonic_ns().to_bytes(8, "big") + os.urandom(MESSAGE_BYTES - 8)
        message = WakuMessage(payload=payload, content_topic=topic, timestamp_ns=time.time_ns())
        try:
            return (await self.edge.publish(message)).peers > 0
        except TransportError:
            return False


class Devices:
    """Every public method is a command."""

    def __init__(self, node: str, first: int, count: int, topics: int) -> None:
        self._topics = topics
        self._devices = [Device(first + number, topics, node) for number in range(count)]

    async def connect(self, at_once: int, patience_s: float) -> Answer:
        """Each when it is its turn; return how many are subscribed, and when the last one was."""
        turns = asyncio.Semaphore(at_once)
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await asyncio.gather(*(self._connect(each, turns) for each in self._devices))
        gc.collect()
        gc.freeze()  # Else its pauses, of five hundred nodes in one process, would be measured.
        return {
            "subscribed": sum(each.subscribed for each in self._devices),
            "seconds": time.monotonic() - began,
        }

    async def _connect(self, device: Device, turns: asyncio.Semaphore) -> None:
        async with turns:
            await device.start()
            while not device.subscribed:  # noqa: ASYNC110 -- costs little
                await asyncio.sleep(0.05)

    async def talk(self, messages: int, per_second: float) -> Answer:
        """Each message from another device, on a topic to which it does not listen itself."""
        pushes: list[asyncio.Task[bool]] = []
        due_s = time.monotonic()
        late_ms = 0.0
        for number in range(messages):
            device = self._devices[number * 7 % len(self._devices)]
            topic = topic_of(device.number + 1, self._topics)
            late_ms = max(late_ms, (time.monotonic() - due_s) * 1_000)
            pushes.append(asyncio.create_task(device.push(topic)))
            due_s += 1 / per_second
            await asyncio.sleep(max(due_s - time.monotonic(), 0))
        accepted = sum(await asyncio.gather(*pushes))
        return {"accepted": accepted, "late_ms": late_ms}

    async def heard(self) -> Answer:
        """Once nothing has come for a while; then forget it."""
        before, quiet_since = -1, time.monotonic()
        while time.monotonic() - quiet_since < QUIET_S:
            now = sum(each.messages for each in self._devices)
            if now != before:
                before, quiet_since = now, time.monotonic()
            await asyncio.sleep(0.1)
        latencies_ms = [ms for each in self._devices for ms in each.latencies_ms]
        for each in self._devices:
            each.forget()
        return {"heard": before, "latencies_ms": latencies_ms}


async def main(node: str, first: int, count: int, topics: int) -> None:
    devices = Devices(node, first, count, topics)
    print(json.dumps({"address": ""}), flush=True)
    await serve(devices, next_line)
    os._exit(0)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main(sys.argv[1], *map(int, sys.argv[2:])))
