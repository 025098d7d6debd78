"""identify as a service: asks new peers, answers them, and pushes what changes.

The messages and what is believed of them are ``identify.py``'s.  Refuses to know how connections
come to be.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

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
from engine.network.libp2p.messages import IdentifyMessage
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.peers import PeerTable
from engine.network.libp2p.ports import RemotePeer, Stream
from engine.network.libp2p.serving import StreamServer
from engine.network.libp2p.stream import MuxedStream

PROTOCOL_VERSION = "causerie/1"


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
    ) -> None:
        self._encoded_key = encoded_key
        self._agent = agent
        self._addresses = addresses
        self._server = server
        self._table = table
        self._spawn = spawn
        self._counters = counters
        self._push_scheduled = False
        server.set_handler(IDENTIFY, self._serve)
        server.set_handler(IDENTIFY_PUSH, self._serve_push)

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
        message = await receive_identify(stream)
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


def _check_own_key(connection: Connection, message: IdentifyMessage) -> None:
    key = message.public_key
    if key is not None and peer_id_of_key(key) != connection.peer_id:
        raise RemoteProtocolError("identify_foreign_key")


def _connection_of(stream: Stream) -> Connection:
    if isinstance(stream, MuxedStream) and isinstance(stream.owner, Connection):
        return stream.owner
    raise LocalProtocolError("identify is served on this host's own streams only")
