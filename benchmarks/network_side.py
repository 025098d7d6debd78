"""What each side of the network benchmark does, whichever library it does it with.

One process of it serves, another measures.  A line of JSON is a command, the next line of output
its answer; the first line says where it listens.  ``network_ours.py`` and ``network_py.py`` say how
their library opens streams and publishes; ``network_js.mjs`` repeats all of it in JavaScript, with
the same commands and sizes.  It imports the standard library only, because it also runs in
py-libp2p's environment.

Messages of the gossip part begin with the clock's nanoseconds, which all processes here share.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

ECHO, ANSWER, COUNT = "/bench/echo/1", "/bench/answer/1", "/bench/count/1"
PING_BYTES, REQUEST_BYTES, MESSAGE_BYTES, PIECE = 32, 100, 1_024, 65_536

Answer = dict[str, Any]
Action = Callable[..., Awaitable[Answer]]
Peer = TypeVar("Peer")


class Stream(Protocol):
    """The part of a library's stream that is measured."""

    @property
    def write(self) -> Callable[[bytes], Awaitable[None]]: ...

    @property
    def close_write(self) -> Callable[[], Awaitable[None]]: ...

    @property
    def reset(self) -> Callable[[], Awaitable[None]]: ...

    async def read_some(self, limit: int, /) -> bytes:
        """b"" at the end."""

    async def read_exactly(self, count: int, /) -> bytes: ...


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(PIECE):
        await stream.write(data)


async def answer(stream: Stream) -> None:
    await stream.write(await read_to_end(stream))


async def count(stream: Stream) -> None:
    """Say how many messages came, each taken by itself, and how many bytes after them."""
    messages, size = 0, int.from_bytes(await stream.read_exactly(4), "big")
    while messages < size:
        await stream.read_exactly(MESSAGE_BYTES)
        messages += 1
    rest = 0
    while data := await stream.read_some(PIECE):
        rest += len(data)
    await stream.write(f"{messages} {rest}".encode())


HANDLERS = {ECHO: echo, ANSWER: answer, COUNT: count}


async def read_to_end(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while data := await stream.read_some(PIECE):
        pieces.append(data)
    return b"".join(pieces)


class Heard:
    """What one leaf has heard."""

    def __init__(self) -> None:
        self.messages = 0
        self.latencies_ms: list[float] = []
        self.last_ns = 0

    def take(self, payload: bytes) -> None:
        self.last_ns = time.monotonic_ns()
        self.messages += 1
        sent_ns = int.from_bytes(payload[:8], "big")
        self.latencies_ms.append((self.last_ns - sent_ns) / 1e6)

    def forget(self) -> None:
        self.messages = 0
        self.latencies_ms.clear()


class NetworkSide(ABC, Generic[Peer]):
    """Every public method is a command."""

    def __init__(self) -> None:
        self._heard: list[Heard] = []
        """By each leaf in this process."""

    # --- what a library does its own way --------------------------------------------------------

    @abstractmethod
    async def _connect(self, address: str) -> Peer:
        """Dial, or return the peer that is connected already."""

    @abstractmethod
    async def _open(self, peer: Peer, protocol: str) -> Stream: ...

    async def _finish(self, stream: Stream) -> None:
        """Both have closed their side: what a library wants besides."""

    @abstractmethod
    async def _disconnect(self, peer: Peer) -> None: ...

    @abstractmethod
    async def _publish(self, payload: bytes) -> None: ...

    @abstractmethod
    async def _sleep(self, seconds: float) -> None:
        """Perhaps for 0 seconds."""

    # --- streams --------------------------------------------------------------------------------

    async def connect(self, address: str, times: int) -> Answer:
        """From the dial to the first answer on a stream."""
        taken: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            peer = await self._connect(address)
            stream = await self._open(peer, ECHO)
            await stream.write(bytes(PING_BYTES))
            await stream.read_exactly(PING_BYTES)
            taken.append(time.perf_counter() - began)
            await self._disconnect(peer)
        return {"ms": median(taken) * 1e3}

    async def rtt(self, address: str, times: int) -> Answer:
        stream = await self._open(await self._connect(address), ECHO)
        taken: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            await stream.write(bytes(PING_BYTES))
            await stream.read_exactly(PING_BYTES)
            taken.append(time.perf_counter() - began)
        await stream.reset()
        return {"ms": median(taken) * 1e3}

    async def requests(self, address: str, times: int) -> Answer:
        """One after another, each on a new stream."""
        peer = await self._connect(address)
        began = time.perf_counter()
        for _ in range(times):
            stream = await self._open(peer, ANSWER)
            await stream.write(bytes(REQUEST_BYTES))
            await stream.close_write()
            assert len(await read_to_end(stream)) == REQUEST_BYTES  # noqa: S101
            await self._finish(stream)
        return {"per_second": times / (time.perf_counter() - began)}

    async def messages(self, address: str, times: int) -> Answer:
        stream = await self._open(await self._connect(address), COUNT)
        began = time.perf_counter()
        await stream.write(times.to_bytes(4, "big"))
        for _ in range(times):
            await stream.write(bytes(MESSAGE_BYTES))
        await self._counted(stream, f"{times} 0")
        return {"per_second": times / (time.perf_counter() - began)}

    async def bulk(self, address: str, mib: int) -> Answer:
        stream = await self._open(await self._connect(address), COUNT)
        began = time.perf_counter()
        await stream.write(bytes(4))
        for _ in range(mib * 16):
            await stream.write(bytes(PIECE))
        await self._counted(stream, f"0 {mib * 2**20}")
        return {"mb_per_second": mib * 2**20 / 1e6 / (time.perf_counter() - began)}

    async def _counted(self, stream: Stream, expected: str) -> None:
        await stream.close_write()
        told = (await read_to_end(stream)).decode()
        await self._finish(stream)
        if told != expected:
            raise RuntimeError(f"{expected} were sent and {told} came")

    # --- gossip ---------------------------------------------------------------------------------

    async def publish(self, times: int, pace_ms: float) -> Answer:
        """Of the hub."""
        began_ns = time.monotonic_ns()
        for _ in range(times):
            stamp = time.monotonic_ns().to_bytes(8, "big")
            await self._publish(stamp + os.urandom(MESSAGE_BYTES - 8))
            await self._sleep(pace_ms / 1e3)
        return {"began_ns": began_ns}

    async def heard(self, expected: int, quiet_s: float) -> Answer:
        """Of the leaves: when each has all, or nothing has come for a while; then forget it."""
        quiet_since, before = time.monotonic(), -1
        while time.monotonic() - quiet_since < quiet_s:
            now = sum(leaf.messages for leaf in self._heard)
            if now != before:
                quiet_since, before = time.monotonic(), now
            if now >= expected * len(self._heard):
                break
            await self._sleep(0.02)
        told = {
            "counts": [leaf.messages for leaf in self._heard],
            "last_ns": max(leaf.last_ns for leaf in self._heard),
            "latency_ms": median(ms for leaf in self._heard for ms in leaf.latencies_ms or [0.0]),
        }
        for leaf in self._heard:
            leaf.forget()
        return told


async def serve(program: object, next_line: Callable[[], Awaitable[str]]) -> None:
    """Answer commands, one after another, until there are no more."""
    while line := await next_line():
        fields = json.loads(line)
        action: Action = getattr(program, fields.pop("command"))
        try:
            told = await action(**fields)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the figure is not made
            told = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)
