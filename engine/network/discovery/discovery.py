"""Runs discovery beside a node: announces it, hears others, tries them, and follows the network.

The mDNS library is imported in a thread some time after the start, so that it does not delay the
window.  The machine's interfaces are checked every few seconds.  If they have changed, or the
machine has slept, discovery starts anew under a new name.  If mDNS is unavailable on a network, it
is tried again; that is no error of the node.
"""

import asyncio
import importlib
import ipaddress
import logging
import time
from collections.abc import Callable, Sequence
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.core.counters import Counters
from engine.core.errors import OwnWords, TransportError
from engine.network.discovery.announcement import (
    Scope,
    addresses_to_announce,
    random_name,
    read_txt,
)
from engine.network.discovery.neighbours import Neighbours
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId
from engine.network.transport import Transport
from engine.network.wrapped import WrappedTransport

if TYPE_CHECKING:
    from engine.network.discovery.mdns import Mdns

_LOGGER = logging.getLogger(__name__)

BEGIN_AFTER_S: Final = 1.5
CHECK_EVERY_S: Final = 10.0
SLEPT_S: Final = 30.0
"""The two clocks may drift apart by this much without counting as sleep."""


class Surface(Struct, frozen=True, kw_only=True):
    """What discovery needs from its node."""

    addresses: Callable[[], Sequence[str]]
    """Own multiaddrs with /p2p/; empty for a node that only listens to others."""
    try_peers: Callable[[Sequence[str]], None]


class _Place(Struct, frozen=True, kw_only=True):
    """Our place on the network.  When it changes, discovery starts anew."""

    interfaces: tuple[str, ...]
    announced: tuple[str, ...]


class Discovery:
    def __init__(
        self,
        surface: Surface,
        *,
        listen_host: str,
        counters: Counters,
        random: Random | None = None,
        begin_after_s: float = BEGIN_AFTER_S,
    ) -> None:
        """``listen_host``: where the node listens; on loopback, only this machine is searched."""
        self._surface = surface
        self._listen_host = listen_host
        is_loopback = ipaddress.ip_address(listen_host).is_loopback
        self._scope = Scope.MACHINE if is_loopback else Scope.LOCAL_NETWORK
        self._counters = counters
        self._random = random or SystemRandom()
        self._begin_after_s = begin_after_s
        self._neighbours: Neighbours | None = None
        self._mdns: Mdns | None = None
        self._place: _Place | None = None
        self._failing = False
        self._news = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Say goodbye and leave no task, socket or timer."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._leave()
        await asyncio.gather(*self._closing)

    # --- the run --------------------------------------------------------------------------------

    async def _run(self) -> None:
        await asyncio.sleep(self._begin_after_s)
        for module in ("mdns", "interfaces"):
            await asyncio.to_thread(importlib.import_module, f"engine.network.discovery.{module}")
        looked_s, wall_s = time.monotonic(), time.time()
        await self._follow(slept=False)
        while True:
            await self._wait()
            now_s, now_wall_s = time.monotonic(), time.time()
            slept = (now_wall_s - wall_s) - (now_s - looked_s) > SLEPT_S
            if slept or now_s - looked_s >= CHECK_EVERY_S:
                looked_s, wall_s = now_s, now_wall_s
                await self._follow(slept=slept)
            self._try_due()

    async def _wait(self) -> None:
        """Wait for news, for a neighbour that is due, or for the next check of the interfaces."""
        wait_s = CHECK_EVERY_S
        due_ms = None if self._neighbours is None else self._neighbours.next_due_ms()
        if due_ms is not None:
            wait_s = min(wait_s, max(0.05, (due_ms - _now_ms()) / 1_000))
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    def _try_due(self) -> None:
        if self._neighbours is not None:
            for announced in self._neighbours.take_due(now_ms=_now_ms()):
                self._surface.try_peers(announced.addresses)

    # --- the network ----------------------------------------------------------------------------

    async def _follow(self, *, slept: bool) -> None:
        place = await self._look_around()
        if place == self._place and not slept and not self._failing:
            return
        await self._leave()
        self._place = place
        if place.interfaces:
            await self._enter(place)

    async def _look_around(self) -> _Place:
        from engine.network.discovery.interfaces import interfaces_for  # noqa: PLC0415 - is there

        try:
            interfaces = await asyncio.to_thread(interfaces_for, self._listen_host)
        except OSError:
            self._counters.add("discovery.no_interfaces")
            interfaces = ()
        own = self._surface.addresses()
        announced = addresses_to_announce(own, interfaces, self._scope)
        return _Place(interfaces=tuple(interfaces), announced=tuple(announced))

    async def _enter(self, place: _Place) -> None:
        from engine.network.discovery.mdns import Mdns  # noqa: PLC0415 - is there by now

        own = [parse_multiaddr(address).peer_id for address in self._surface.addresses()]
        peer_id = next((each for each in own if each is not None), PeerId(""))
        self._neighbours = Neighbours(peer_id, random=self._random, counters=self._counters)
        mdns = Mdns(heard=self._heard, gone=self._gone)
        try:
            await mdns.open(place.interfaces, random_name(self._random), place.announced)
        except TransportError as error:
            self._counters.add("discovery.not_possible")
            if not self._failing:
                _LOGGER.warning("nobody is found by mDNS", extra={"problem": OwnWords(error)})
            self._failing = True
            return
        except BaseException:
            await self._close(mdns)
            raise
        self._failing = False
        self._mdns = mdns

    async def _leave(self) -> None:
        mdns, self._mdns = self._mdns, None
        self._neighbours = None
        if mdns is not None:
            await self._close(mdns)

    async def _close(self, mdns: "Mdns") -> None:
        """Close fully, even if cancelled on the way."""
        closing = asyncio.create_task(mdns.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    def _heard(self, name: str, txt: bytes) -> None:
        announced = read_txt(txt, self._scope)
        if announced is None:
            self._counters.add("discovery.unusable")
        elif self._neighbours is not None:
            self._neighbours.heard(name, announced, now_ms=_now_ms())
            self._news.set()

    def _gone(self, name: str) -> None:
        if self._neighbours is not None:
            self._neighbours.gone(name)


def _now_ms() -> int:
    return int(time.monotonic() * 1_000)


class DiscoveringTransport(WrappedTransport):
    """A transport whose node is announced on the local network, and finds others there.

    Discovery runs while the inner transport does; everything else is the inner transport's.
    """

    def __init__(
        self, inner: Transport, *, listen_host: str, begin_after_s: float = BEGIN_AFTER_S
    ) -> None:
        super().__init__(inner)
        self._listen_host = listen_host
        self._begin_after_s = begin_after_s
        self._discovery: Discovery | None = None

    async def start(self) -> None:
        await super().start()
        self._discovery = Discovery(
            Surface(addresses=self._inner.addresses, try_peers=self._inner.try_peers),
            listen_host=self._listen_host,
            counters=self._counters,
            begin_after_s=self._begin_after_s,
        )
        self._discovery.start()

    async def stop(self) -> None:
        discovery, self._discovery = self._discovery, None
        if discovery is None:
            await super().stop()
        else:  # stopped together, because a goodbye takes a moment
            await asyncio.gather(discovery.stop(), super().stop())
