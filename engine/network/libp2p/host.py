"""The host: ``ports.Host`` over TCP and WebSocket, Noise, yamux and mplex, identify and ping.

It owns every socket, connection and task below it, and ``stop`` leaves none behind.  A connection
counts (``peers``, ``on_peer_connected``, protocol handlers) once the peer has been identified;
until then only identify and ping are served.  A peer with several connections is one peer.  Any
violation by a peer ends with a counter and a closed connection.  Waku is built on top of this.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence

from engine.codec.libp2p import encode_public_key
from engine.core.counters import Counters
from engine.core.errors import (
    ChatError,
    ConfigError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
    broken_protocol,
)
from engine.core.problems import LinkEnded, LinkReason, PeerRefusal
from engine.network.libp2p.admission import Handshakes, InboundRoom
from engine.network.libp2p.connection import Connection
from engine.network.libp2p.dialing import KeptPeers
from engine.network.libp2p.duplicates import Duplicates
from engine.network.libp2p.handshake import WrongPeerError
from engine.network.libp2p.identify import IDENTIFY, IDENTIFY_PUSH
from engine.network.libp2p.identify_service import IdentifyService
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.link_log import LinkLog, system_ms
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.peers import PeerTable, peer_view
from engine.network.libp2p.ping import PING, PING_BYTES, measure_ping, serve_ping
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import (
    DialFailedHandler,
    JudgeCopy,
    PeerId,
    ProtocolId,
    RemotePeer,
    Stream,
    StreamHandler,
)
from engine.network.libp2p.proxy import Proxy
from engine.network.libp2p.serving import StreamServer
from engine.network.libp2p.stream import MuxedStream
from engine.network.libp2p.tcp import Listener, Traffic, own_addresses
from engine.network.libp2p.transports import Transports
from engine.network.libp2p.upgrade import ALL_MUXERS, upgrade
from engine.network.owned_tasks import OwnedTasks
from engine.network_views import NetworkFacts

_EVERYBODY_BEFORE_IDENTIFY = frozenset({IDENTIFY, IDENTIFY_PUSH, PING})


class _NoRoomError(TransportError):
    """All inbound connections are taken, and none gives way."""


class TcpHost:
    """``listen`` holds multiaddrs; port 0 lets the system choose, an empty list only dials.

    Raises ConfigError for a malformed address.  ``entropy`` makes keys, pings and jitter;
    ``make_tls`` makes the context that checks the certificates of /wss peers.  With a ``proxy``
    every dial goes through it.  ``now_ms`` dates what happens to connections.  The name is older
    than the second transport.
    """

    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        identity_private_key: bytes,
        listen: Sequence[str],
        *,
        agent: str = "causerie",
        limits: HostLimits | None = None,
        muxers: Sequence[ProtocolId] = ALL_MUXERS,
        entropy: Callable[[int], bytes] = os.urandom,
        make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        proxy: Proxy | None = None,
        now_ms: Callable[[], int] = system_ms,
    ) -> None:
        self._identity = IdentityKey(identity_private_key)
        encoded_key = encode_public_key(self._identity.public_key)
        self._peer_id = peer_id_of_key(encoded_key)
        self._listen = [parse_multiaddr(text) for text in listen]
        self._limits = limits or HostLimits()
        self._entropy = entropy
        self._counters = Counters()
        self._traffic = Traffic()
        self._muxers = muxers
        self._transports = Transports(
            self._traffic, make_tls=make_tls, limits=self._limits, proxy=proxy
        )
        self._listeners: list[Listener] = []
        self._running = False
        self._cut_off: frozenset[PeerId] = frozenset()
        self.judge_copy: JudgeCopy | None = None
        self._tasks = OwnedTasks(self._counters, failed="libp2p.task_failed")
        self._connections: set[Connection] = set()
        self._handshakes = Handshakes(self._limits)
        self._log = LinkLog(now_ms)
        self._table = PeerTable(self._peer_id)
        self._duplicates = Duplicates(self._table, self._limits)
        self._dials: dict[str, asyncio.Task[RemotePeer]] = {}
        self._connected_handlers: list[Callable[[RemotePeer], None]] = []
        self._disconnected_handlers: list[Callable[[PeerId], None]] = []
        self._dial_failed_handlers: list[DialFailedHandler] = []
        self._server = StreamServer(
            limits=self._limits,
            counters=self._counters,
            open_to_strangers=_EVERYBODY_BEFORE_IDENTIFY,
        )
        self._server.set_handler(PING, serve_ping)
        self._identify = IdentifyService(
            encoded_key=encoded_key,
            agent=agent,
            addresses=self.addresses,
            server=self._server,
            table=self._table,
            spawn=self._tasks.spawn,
            counters=self._counters,
            limits=self._limits,
        )
        self._kept = KeptPeers(
            dial=self._connect,
            spawn=self._tasks.spawn,
            is_connected=lambda peer_id: self._table.peer(peer_id) is not None,
            random=lambda: int.from_bytes(self._entropy(4), "big") / 2**32,
            failed=self._dial_failed,
            limits=self._limits,
            counters=self._counters,
        )
        self._room = InboundRoom(
            self._limits,
            is_kept=self.is_kept,
            now=lambda: asyncio.get_running_loop().time(),
        )

    # --- life -----------------------------------------------------------------------------------

    @property
    def peer_id(self) -> PeerId:
        return self._peer_id

    async def start(self) -> None:
        """Listen.  Raises TransportError that names address and reason."""
        self._running = True
        try:
            for address in self._listen:
                self._listeners.append(await self._transports.listen(address, self._accept))
        except TransportError:
            await self.stop()
            raise
        self._kept.start()
        self._identify.start()

    async def stop(self) -> None:
        """Close everything; no task, socket or timer is left when it returns."""
        self._running = False
        self._identify.stop()
        for listener in self._listeners:
            listener.close()
        self._duplicates.stop()
        connections = tuple(self._connections)
        for connection in connections:
            connection.close()
        await self._tasks.cancel_all()
        for pipe in tuple(self._handshakes):  # their tasks were cancelled before their first step
            pipe.abort()
            await pipe.wait_closed()
        self._handshakes.clear()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))
        for listener in self._listeners:
            await listener.wait_closed()
        self._listeners.clear()

    def addresses(self) -> Sequence[str]:
        found: dict[str, None] = {}
        for listener in self._listeners:
            for address in own_addresses(listener.address):
                found[str(address.with_peer(self._peer_id))] = None
        return tuple(found)

    def connection_count(self) -> int:
        """Sockets in use; a peer may briefly have more than one."""
        return len(self._connections) + len(self._handshakes)

    def traffic(self) -> tuple[int, int]:
        return self._traffic.received, self._traffic.sent

    def counters(self) -> Mapping[str, int]:
        return self._counters.snapshot()

    def facts(self) -> NetworkFacts:
        now_s = asyncio.get_running_loop().time()
        views = [
            peer_view(
                remote,
                self._table.connections(remote.peer_id),
                since_ms=self._log.since_ms(remote.peer_id),
                is_kept=self.is_kept(remote.peer_id),
                now_s=now_s,
            )
            for remote in self._table.peers()
        ]
        return NetworkFacts(peers=tuple(views), events=self._log.events())

    # --- peers ----------------------------------------------------------------------------------

    def peers(self) -> Sequence[RemotePeer]:
        return self._table.peers()

    def peer(self, peer_id: PeerId) -> RemotePeer | None:
        return self._table.peer(peer_id)

    def on_peer_connected(self, handler: Callable[[RemotePeer], None]) -> None:
        self._connected_handlers.append(handler)

    def on_peer_disconnected(self, handler: Callable[[PeerId], None]) -> None:
        self._disconnected_handlers.append(handler)

    def on_dial_failed(self, handler: DialFailedHandler) -> None:
        self._dial_failed_handlers.append(handler)

    def judge_peers_by(self, score: Callable[[PeerId], float]) -> None:
        self._room.score = score

    def _dial_failed(self, address: Multiaddr, error: ChatError) -> None:
        self._log.not_reached(address, error)
        for handler in self._dial_failed_handlers:
            handler(str(address), error)

    async def connect(self, multiaddr: str) -> RemotePeer:
        """Raises ConfigError (malformed address) or TransportError (names the address)."""
        return await self._connect(parse_multiaddr(multiaddr))

    def keep_connected(self, multiaddrs: Sequence[str]) -> None:
        """Add to the peers to keep.  Unusable addresses are counted and skipped."""
        addresses: list[Multiaddr] = []
        for text in multiaddrs:
            try:
                address = parse_multiaddr(text)
            except ConfigError:
                self._counters.add("libp2p.kept_address_unusable")
                continue
            if address.peer_id != self._peer_id:
                addresses.append(address)
        self._kept.add(addresses)

    async def disconnect(self, peer_id: PeerId, why: PeerRefusal | None = None) -> None:
        """Close the peer's connections and stop keeping it connected."""
        self._kept.remove(peer_id)
        connections = [each for each in self._connections if each.peer_id == peer_id]
        for connection in connections:
            connection.close(why)
        await asyncio.gather(*(connection.wait_closed() for connection in connections))

    def cut_off(self, peers: Collection[PeerId]) -> None:
        """As the fault bench wants it; a peer that is let back is dialled again if it is kept."""
        before, self._cut_off = self._cut_off, frozenset(peers)
        for connection in tuple(self._connections):
            if connection.peer_id in self._cut_off:
                connection.close(LinkEnded(LinkReason.CUT_OFF))
        for peer_id in before - self._cut_off:
            self._kept.try_now(peer_id)

    async def ping(self, peer_id: PeerId) -> float:
        """Seconds of one round trip on a stream of its own.  Raises TransportError."""
        return await self._measure(await self.new_stream(peer_id, (PING,)))

    async def _measure(self, stream: Stream) -> float:
        now = asyncio.get_running_loop().time
        try:
            return await measure_ping(stream, payload=self._entropy(PING_BYTES), now=now)
        except RemoteProtocolError as error:
            await stream.reset()
            self._counters.add(f"libp2p.{error.reason}")
            problem = f"{stream.peer_id} answered a ping with something else"
            raise broken_protocol(problem, error) from error

    # --- streams --------------------------------------------------------------------------------

    def set_stream_handler(self, protocol: ProtocolId, handler: StreamHandler) -> None:
        self._server.set_handler(protocol, handler)
        if self._running:
            self._identify.push_soon()

    async def new_stream(self, peer_id: PeerId, protocols: Sequence[ProtocolId]) -> Stream:
        problem = TransportError(f"{peer_id} is not connected", TransportFault.NOT_CONNECTED)
        for connection in self._table.connections(peer_id):
            try:
                stream = connection.open_stream()
            except TransportError as error:
                problem = error
                continue
            await self._server.propose(stream, protocols)
            return stream
        raise problem

    def connections(self) -> tuple[Connection, ...]:
        """All that are established, to whomever."""
        return tuple(self._connections)

    # --- establishing ---------------------------------------------------------------------------

    def _accept(self, pipe: Pipe) -> None:
        if not self._running:
            pipe.abort()
            return
        connected = self._room.connected_from(pipe.remote_address)
        refusal = self._handshakes.refusal(pipe, connected=connected)
        if refusal is not None:
            self._counters.add(f"libp2p.{refusal}")
            self._log.not_admitted(pipe.remote_address, refusal)
            pipe.abort()
            return
        # Not in the task: the next pipe may arrive before it runs.
        gives_way = self._handshakes.add_inbound(pipe)
        if gives_way is not None:
            self._counters.add("libp2p.handshake_gave_way")
            gives_way.abort()
        self._tasks.spawn(self._serve_connection(pipe))

    async def _serve_connection(self, pipe: Pipe) -> None:
        try:
            await self._establish(pipe, initiator=False, expected_peer=None)
        except RemoteProtocolError as error:
            self._counters.add(f"libp2p.{error.reason}")
            self._log.handshake_failed(pipe.remote_address, error)
        except _NoRoomError:
            self._counters.add("libp2p.inbound_connections_limit")
            self._log.not_admitted(pipe.remote_address, "inbound_connections_limit")
        except TransportError as error:
            self._counters.add("libp2p.inbound_handshake_lost")
            self._log.handshake_failed(pipe.remote_address, error)

    async def _connect(self, address: Multiaddr) -> RemotePeer:
        if address.peer_id is not None:
            known = self._table.peer(address.peer_id)
            if known is not None:
                return known
        key = str(address)
        dial = self._dials.get(key)
        if dial is None:
            dial = self._dials[key] = self._tasks.spawn(self._dial(address))
            dial.add_done_callback(lambda _: self._dials.pop(key, None))
        await asyncio.wait((dial,))  # cancelling this leaves the dial running
        if dial.cancelled():
            raise TransportError("this node is stopping", TransportFault.STOPPED)
        return dial.result()

    async def _dial(self, address: Multiaddr) -> RemotePeer:
        try:
            self._check_dialable(address)
            pipe = await self._transports.dial(address)
        except TransportError:
            self._counters.add("libp2p.dial_failed")
            raise
        try:
            return await self._establish(pipe, initiator=True, expected_peer=address.peer_id)
        except WrongPeerError as error:
            self._counters.add("libp2p.dial_wrong_peer")
            raise error.during(str(address)) from error
        except RemoteProtocolError as error:
            self._counters.add(f"libp2p.{error.reason}")
            text = f"{address}: the peer broke the protocol ({error})"
            raise broken_protocol(text, error) from error
        except TransportError as error:
            self._counters.add("libp2p.outbound_handshake_lost")
            raise error.during(str(address)) from error

    def _check_dialable(self, address: Multiaddr) -> None:
        if not self._running:
            raise TransportError("this node is not running", TransportFault.STOPPED)
        if address.peer_id == self._peer_id:
            raise TransportError(f"{address} is this node itself", TransportFault.OURSELVES)
        if address.peer_id is not None:
            self._require_not_cut_off(address.peer_id)
        if self._in_use() >= self._limits.max_connections:
            text = f"{self._limits.max_connections} connections are open already"
            raise TransportError(text, TransportFault.FULL)

    async def _establish(
        self, pipe: Pipe, *, initiator: bool, expected_peer: PeerId | None
    ) -> RemotePeer:
        """Upgrade and identify.  Raises RemoteProtocolError, TransportError; the pipe is gone."""
        if initiator:
            self._handshakes.add_outbound(pipe)
        try:
            async with asyncio.timeout(self._limits.handshake_timeout_ms / 1_000):
                return await self._upgrade_and_identify(
                    pipe, initiator=initiator, expected_peer=expected_peer
                )
        except BaseException as error:
            pipe.abort()
            await pipe.wait_closed()
            if isinstance(error, TimeoutError):
                self._counters.add("libp2p.handshake_timeout")
                raise TransportError(
                    "the handshake took too long", TransportFault.NO_ANSWER
                ) from None
            raise
        finally:
            self._handshakes.discard(pipe)

    async def _upgrade_and_identify(
        self, pipe: Pipe, *, initiator: bool, expected_peer: PeerId | None
    ) -> RemotePeer:
        upgraded = await upgrade(
            pipe,
            initiator=initiator,
            identity=self._identity,
            expected_peer=expected_peer,
            entropy=self._entropy,
            limits=self._limits,
            muxers=self._muxers,
        )
        if upgraded.peer_id == self._peer_id:
            raise TransportError("the peer is this node itself", TransportFault.OURSELVES)
        self._require_not_cut_off(upgraded.peer_id)
        if not initiator:
            self._make_room(upgraded.peer_id, pipe)
        connection = Connection(
            upgraded.pipe,
            upgraded.muxer,
            peer_id=upgraded.peer_id,
            outbound=initiator,
            owner=self,
            limits=self._limits,
            counters=self._counters,
        )
        self._handshakes.discard(pipe)
        self._connections.add(connection)
        if not initiator:
            self._room.add(connection)
        connection.start()
        remote = await self._identify.query(connection)
        self._identified(connection, remote)
        return remote

    def _make_room(self, peer_id: PeerId, pipe: Pipe) -> None:
        """Called only now, so that a newcomer without a proven identity replaces no peer.

        Raises _NoRoomError.
        """
        limits = self._limits
        if (
            len(self._room) < limits.max_inbound_connections
            and self._in_use() < limits.max_connections
        ):
            return
        worse = self._room.worse_than(peer_id, pipe.remote_address)
        if worse is None:
            raise _NoRoomError("this node has no room for another connection", TransportFault.FULL)
        worse.drop("connection_gave_way")

    def _require_not_cut_off(self, peer_id: PeerId) -> None:
        if peer_id in self._cut_off:
            raise TransportError("this peer is cut off on purpose", TransportFault.CUT_OFF)

    def _in_use(self) -> int:
        return len(self._connections) + self._handshakes.outbound

    def _identified(self, connection: Connection, remote: RemotePeer) -> None:
        if connection.lost:
            raise TransportError("the connection was lost", TransportFault.LOST)
        if self._table.add(connection, remote):
            address = connection.remote_address
            self._log.connected(remote.peer_id, address, outbound=connection.outbound)
            for handler in self._connected_handlers:
                handler(remote)
        else:
            self._counters.add("libp2p.duplicate_connections")
            self._duplicates.found(connection.peer_id)
        connection.identified.set()

    # --- ConnectionOwner ------------------------------------------------------------------------

    def stream_opened(self, connection: Connection, stream: MuxedStream) -> None:
        if self._running and self._server.admit(connection, stream):
            self._tasks.spawn(self._server.serve(connection, stream))

    def connection_lost(self, connection: Connection, reason: str) -> None:
        del reason  # already counted
        self._connections.discard(connection)
        self._room.discard(connection)
        connection.identified.set()
        peer_id = connection.peer_id
        if self._table.remove(connection):
            address = connection.remote_address
            self._log.closed(peer_id, address, connection.ended, outbound=connection.outbound)
            self._kept.peer_lost(peer_id)
            for handler in self._disconnected_handlers:
                handler(peer_id)

    def probe(self, connection: Connection) -> None:
        self._tasks.spawn(self._probe(connection))

    async def _probe(self, connection: Connection) -> None:
        """Any answer proves that the peer lives; the connection watches for one."""
        try:
            await self.round_trip(connection)
        except TransportError:
            if connection.usable:  # otherwise it is closing
                self._counters.add("libp2p.probe_failed")

    async def round_trip(self, connection: Connection) -> None:
        stream = connection.open_stream(is_probe=True)
        try:
            await self._server.propose(stream, (PING,))
            connection.measured(await self._measure(stream))
        finally:
            stream.finish()  # The peer may never close its half.

    def is_kept(self, peer_id: PeerId) -> bool:
        return peer_id in self._kept
