"""mDNS by ``zeroconf``: announces this node and hears others on given interfaces, until closed.

TXT records are read as they arrive, in an answer of their own or beside a PTR: libp2p's
implementations differ there, and some send neither SRV nor addresses, which libp2p does not need.
For a PTR without a TXT, the TXT is requested.  ``zeroconf`` bounds its own cache and packets; this
module bounds the requests.

Only this module imports ``zeroconf``, and only ``discovery.py`` imports this module, late.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

from zeroconf import (
    IPVersion,
    NonUniqueNameException,
    NotRunningException,
    RecordUpdate,
    RecordUpdateListener,
    ServiceStateChange,
    Zeroconf,
)
from zeroconf._dns import DNSText
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from engine.core.errors import TransportError
from engine.network.discovery.announcement import MAX_TXT_BYTES, SERVICE_TYPE, encode_txt
from engine.network.libp2p.multiaddr import parse_multiaddr

MAX_QUESTIONS: Final = 4
_QUESTION_TIMEOUT_MS: Final = 3_000
_MAX_NAME: Final = 255
_GOODBYE_S: Final = 1

# Its warnings are about other nodes' packets, and may be many.
logging.getLogger("zeroconf").setLevel(logging.CRITICAL)

Heard = Callable[[str, bytes], None]
Gone = Callable[[str], None]


class _Listener(RecordUpdateListener):
    def __init__(self, heard: Heard, gone: Gone) -> None:
        super().__init__()
        self._heard = heard
        self._gone = gone

    def async_update_records(self, zc: Zeroconf, now: float, records: list[RecordUpdate]) -> None:
        del zc, now
        for update in records:
            record = update.new
            if not isinstance(record, DNSText) or not _is_ours(record.key):
                continue
            if record.ttl <= _GOODBYE_S:
                self._gone(record.key)
            elif len(record.text) <= MAX_TXT_BYTES:
                self._heard(record.key, record.text)

    def async_update_records_complete(self) -> None:
        """Nothing to do: records are handled as they arrive."""


def _is_ours(name: str) -> bool:
    return len(name) <= _MAX_NAME and name.lower().endswith(f".{SERVICE_TYPE}")


class Mdns:
    """One session on the network, under one name."""

    def __init__(self, *, heard: Heard, gone: Gone) -> None:
        self._heard = heard
        self._gone = gone
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._listener: _Listener | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, interfaces: Sequence[str], name: str, addresses: Sequence[str]) -> None:
        """Raises TransportError.  Without ``addresses`` it only listens."""
        try:
            await self._open(interfaces)
            if addresses:
                await self._announce(name, addresses)
        except (OSError, RuntimeError, NonUniqueNameException, NotRunningException) as error:
            await self.close()
            raise TransportError(f"mDNS is not possible: {error}") from error

    async def _open(self, interfaces: Sequence[str]) -> None:
        has_ipv6 = any(":" in interface for interface in interfaces)
        self._zeroconf = AsyncZeroconf(
            interfaces=list(interfaces), ip_version=IPVersion.All if has_ipv6 else IPVersion.V4Only
        )
        zeroconf = self._zeroconf.zeroconf
        await zeroconf.async_wait_for_start()
        self._listener = _Listener(self._heard, self._gone)
        zeroconf.async_add_listener(self._listener, None)
        self._browser = AsyncServiceBrowser(zeroconf, SERVICE_TYPE, handlers=[self._changed])

    async def _announce(self, name: str, addresses: Sequence[str]) -> None:
        parsed = [parse_multiaddr(address) for address in addresses]
        info = AsyncServiceInfo(
            SERVICE_TYPE,
            f"{name}.{SERVICE_TYPE}",
            port=parsed[0].port,
            server=f"{name}.local.",
            parsed_addresses=list(dict.fromkeys(address.host for address in parsed)),
            properties=encode_txt(addresses),
        )
        if self._zeroconf is not None:
            # The name is random, so there is no need to check that it is free.
            said = await self._zeroconf.async_register_service(info, cooperating_responders=True)
            self._own(asyncio.ensure_future(said))

    async def close(self) -> None:
        """Say goodbye and leave no socket or task."""
        zeroconf, self._zeroconf = self._zeroconf, None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if zeroconf is None:
            return
        if self._browser is not None:
            await self._browser.async_cancel()
        if self._listener is not None:
            zeroconf.zeroconf.async_remove_listener(self._listener)
        with contextlib.suppress(OSError, NotRunningException):  # the network went first
            await zeroconf.async_close()

    def _changed(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        if state_change is ServiceStateChange.Removed:
            self._gone(name.lower())
        elif state_change is ServiceStateChange.Added and len(self._tasks) < MAX_QUESTIONS:
            info = AsyncServiceInfo(service_type, name)
            if not info.load_from_cache(zeroconf) and not info.text:
                self._own(asyncio.ensure_future(_ask(info, zeroconf)))

    def _own(self, task: "asyncio.Future[None]") -> None:
        if isinstance(task, asyncio.Task):
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the network went away; the interfaces are checked anyway


async def _ask(info: AsyncServiceInfo, zeroconf: Zeroconf) -> None:
    """Send a request.  The answer comes to the listener."""
    await info.async_request(zeroconf, _QUESTION_TIMEOUT_MS)
