"""identify as a service: asks new peers, answers them, and pushes changes.

Changes are handlers added later, and new addresses, as when a laptop moves to another network.
Peers may push as well, at a limited rate.  ``identify.py`` defines the messages and which of their
claims are accepted.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from weakref import WeakKeyDictionary

from engine.codec.libp2p import IdentifyMessage
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.connection import Connection
from engine.network.libp2p.identify import (
    IDENTIFY,
    IDENTIFY_PUSH,
    receive_identify,
    remote_peer,
    send_identify,
    updated_peer,
)
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.peers import PeerTable
from engine.network.libp2p.ports import RemotePeer, Stream
from engine.network.libp2p.serving import StreamServer
from engine.network.libp2p.stream import MuxedStream

PROTOCOL_VERSION = "causerie/1"
PUSH_BURST = 32
"""Pushes accepted at once; after that one a second."""


class IdentifyService:
    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        *,
        encoded_key: bytes,
        agent: str,
        addresses: Callable[[], Sequence[str]],
        server: StreamServer,
        table: PeerTable,
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        counters: Counters,
        limits: HostLimits,
    ) -> None:
        self._encoded_key = encoded_key
        self._agent = agent
        self._addresses = addresses
        self._server = server
        self._table = table
        self._spawn = spawn
        self._counters = counters
        self._limits = limits
        self._push_scheduled = False
        self._known_addresses: tuple[str, ...] = ()
        self._address_timer: asyncio.TimerHandle | None = None
        self._pushes: WeakKeyDictionary[Connection, PushBudget] = WeakKeyDictionary()
        server.set_handler(IDENTIFY, self._serve)
        server.set_handler(IDENTIFY_PUSH, self._serve_push)

    def start(self) -> None:
        """Check our own addresses from time to time, and push changes."""
        self._known_addresses = tuple(self._addresses())
        self._look_later()

    def stop(self) -> None:
        if self._address_timer is not None:
            self._address_timer.cancel()
            self._address_timer = None

    def _look_later(self) -> None:
        interval = self._limits.address_check_interval_ms / 1_000
        loop = asyncio.get_running_loop()
        self._address_timer = loop.call_later(interval, self._look_at_addresses)

    def _look_at_addresses(self) -> None:
        addresses = tuple(self._addresses())
        if addresses != self._known_addresses:
            self._known_addresses = addresses
            self._counters.add("libp2p.own_addresses_changed")
            self.push_soon()
        self._look_later()

    async def query(self, connection: Connection) -> RemotePeer:
        """Ask the peer.  Raises RemoteProtocolError, TransportError."""
        stream = connection.open_stream()
        await self._server.propose(stream, (IDENTIFY,))
        message = await receive_identify(stream)
        stream.finish()
        _check_own_key(connection, message)
        return remote_peer(
            message,
            peer_id=connection.peer_id,
            seen_at=connection.remote_address,
            outbound=connection.outbound,
        )

    def push_soon(self) -> None:
        """Tell all peers what has changed, once for all changes of this turn of the loop."""
        if not self._push_scheduled and self._table.peers():
            self._push_scheduled = True
            asyncio.get_running_loop().call_soon(self._push)

    def _own_message(self, observed: Multiaddr | None) -> IdentifyMessage:
        addresses = (parse_multiaddr(text).with_peer(None) for text in self._addresses())
        return IdentifyMessage(
            public_key=self._encoded_key,
            listen_addresses=tuple(address.to_bytes() for address in addresses),
            protocols=tuple(sorted(self._server.protocols())),
            observed_address=None if observed is None else observed.to_bytes(),
            protocol_version=PROTOCOL_VERSION,
            agent_version=self._agent,
        )

    async def _serve(self, stream: Stream) -> None:
        await send_identify(stream, self._own_message(_connection_of(stream).remote_address))

    async def _serve_push(self, stream: Stream) -> None:
        connection = _connection_of(stream)
        budget = self._pushes.setdefault(connection, PushBudget())
        budget.take(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(self._limits.stream_timeout_ms / 1_000):
                message = await receive_identify(stream)
        except TimeoutError:
            raise RemoteProtocolError("identify_push_timeout") from None
        _check_own_key(connection, message)
        known = self._table.remote(connection)
        if known is not None:
            self._table.update(
                connection, updated_peer(known, message, seen_at=connection.remote_address)
            )

    def _push(self) -> None:
        self._push_scheduled = False
        for remote in self._table.peers():
            if IDENTIFY_PUSH in remote.protocols:
                for connection in self._table.connections(remote.peer_id)[:1]:
                    self._spawn(self._push_to(connection))

    async def _push_to(self, connection: Connection) -> None:
        try:
            stream = connection.open_stream()
            await self._server.propose(stream, (IDENTIFY_PUSH,))
            await send_identify(stream, self._own_message(None))
            stream.finish()
        except TransportError:
            self._counters.add("libp2p.identify_push_failed")


class PushBudget:
    """The budget of one connection."""

    def __init__(self) -> None:
        self._left = float(PUSH_BURST)
        self._at = 0.0

    def take(self, now: float) -> None:
        """Raises RemoteProtocolError("identify_push_limit")."""
        self._left = min(PUSH_BURST, self._left + now - self._at)
        self._at = now
        if self._left < 1:
            raise RemoteProtocolError("identify_push_limit")
        self._left -= 1


def _check_own_key(connection: Connection, message: IdentifyMessage) -> None:
    key = message.public_key
    if key is not None and peer_id_of_key(key) != connection.peer_id:
        raise RemoteProtocolError("identify_foreign_key")


def _connection_of(stream: Stream) -> Connection:
    if isinstance(stream, MuxedStream) and isinstance(stream.owner, Connection):
        return stream.owner
    raise LocalProtocolError("identify is served on this host's own streams only")
