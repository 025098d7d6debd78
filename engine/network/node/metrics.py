"""Prometheus metrics over HTTP for the operator of a node: loopback only, one page, no secrets.

Counters become ``causerie_{area}_{reason}_total`` and gauges ``causerie_{name}``.  All names come
from the program, none from a peer.  The server accepts only GET /metrics, reads at most a few
kilobytes, and closes.  Format: Prometheus text exposition 0.0.4.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.network.owned_tasks import OwnedTasks

_LOOPBACK: Final = "127.0.0.1"
_MAX_REQUEST_BYTES: Final = 8 * 1024
_TIMEOUT_S: Final = 5.0
_MAX_CLIENTS: Final = 8
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Measured(Struct, frozen=True, kw_only=True):
    counters: Mapping[str, int]
    gauges: Mapping[str, float]


def exposition(measured: Measured) -> str:
    """The page.  Names are sorted, so that two pages can be compared."""
    lines: list[str] = []
    for name, amount in sorted(measured.counters.items()):
        metric = f"causerie_{_NOT_IN_A_NAME.sub('_', name)}_total"
        lines += (f"# TYPE {metric} counter", f"{metric} {amount}")
    for name, value in sorted(measured.gauges.items()):
        metric = f"causerie_{_NOT_IN_A_NAME.sub('_', name)}"
        lines += (f"# TYPE {metric} gauge", f"{metric} {float(value):g}")
    return "\n".join(lines) + "\n"


class MetricsServer:
    def __init__(
        self, port: int, measure: Callable[[], Awaitable[Measured]], *, counters: Counters
    ) -> None:
        """Port 0 means any free one."""
        self._port = port
        self._measure = measure
        self._server: asyncio.Server | None = None
        self._clients = OwnedTasks(counters, failed="metrics.task_failed")

    @property
    def port(self) -> int:
        if self._server is None:
            return self._port
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Raises TransportError that names the port."""
        try:
            self._server = await asyncio.start_server(
                self._accept, _LOOPBACK, self._port, limit=_MAX_REQUEST_BYTES
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TransportError(f"metrics port {self._port}: {reason}") from error

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        await self._clients.cancel_all()
        await self._server.wait_closed()
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= _MAX_CLIENTS:
            writer.transport.abort()
            return
        self._clients.spawn(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._response(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _response(self, head: bytes) -> bytes:
        if not re.match(rb"GET /metrics(\?\S*)? HTTP/1\.[01]\r\n", head):
            return _http("404 Not Found", "only GET /metrics is here\n")
        return _http("200 OK", exposition(await self._measure()))


def _http(status: str, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {_CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
