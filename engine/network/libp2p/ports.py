"""The parts of libp2p that protocols use: streams and the host that opens them.

Waku's protocols depend only on these, so transports and muxers can be added below, and protocols
above, without other changes.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NewType, Protocol

from msgspec import Struct

from engine.core.errors import ChatError
from engine.core.problems import PeerRefusal
from engine.network_views import NetworkFacts

PeerId = NewType("PeerId", str)
"""Base58btc text of a libp2p peer id, for example "12D3KooW…"."""

ProtocolId = NewType("ProtocolId", str)


class Stream(Protocol):
    """One multiplexed stream.  Every method may raise TransportError once it is broken."""

    @property
    def peer_id(self) -> PeerId: ...

    @property
    def protocol(self) -> ProtocolId: ...

    @property
    def returns_window(self) -> bool:
        """Reading sends frames to the peer, which it may get after the end of our half."""

    async def read_some(self, limit: int, /) -> bytes:
        """At least one and at most ``limit`` bytes; b"" at the end of the stream."""

    async def read_exactly(self, count: int, /) -> bytes:
        """Raises TransportError if the stream ends before."""

    async def write(self, data: bytes, /) -> None:
        """Return once the bytes are queued within the peer's window: back-pressure."""

    async def confirm(self) -> None:
        """Return once the peer has shown that it read what was written before, on any stream.

        That is its answer to a ping that follows on the same connection.
        """

    async def close_write(self) -> None:
        """Say that no more will be written; reading goes on."""

    async def reset(self) -> None:
        """Drop the stream immediately, both ways.  Never raises."""


class RemotePeer(Struct, frozen=True, kw_only=True):
    """A connected and identified peer."""

    peer_id: PeerId
    protocols: tuple[ProtocolId, ...]
    listen_addresses: tuple[str, ...]
    """Multiaddrs with /p2p/, as far as they are dialable (bounded, validated)."""
    agent: str
    outbound: bool
    host: str = ""
    """Where the connection leads: an IP address, or a name that a proxy resolved."""


StreamHandler = Callable[[Stream], Awaitable[None]]
DialFailedHandler = Callable[[str, ChatError], None]
"""Called with the multiaddr and the error."""


class PeerCopy(Struct, frozen=True, kw_only=True):
    """A message on its way to a peer, or from it.  ``go_on`` does with it what was to be done."""

    peer_id: PeerId
    is_out: bool
    topic: str
    data: bytes
    go_on: Callable[[], object]
    doubles: bool = True
    """Whether a second one may go on."""


JudgeCopy = Callable[[PeerCopy], bool]
"""Whether it goes on now.  If not, it is lost, or ``go_on`` is called later."""


class Host(Protocol):
    """One libp2p node: listens, dials, keeps connections, multiplexes streams."""

    @property
    def peer_id(self) -> PeerId: ...

    async def start(self) -> None:
        """Listen.  Raises TransportError (names address and reason) if it cannot."""

    async def stop(self) -> None: ...

    def addresses(self) -> Sequence[str]:
        """Own listen multiaddrs with /p2p/."""

    def set_stream_handler(self, protocol: ProtocolId, handler: StreamHandler, /) -> None:
        """Serve ``protocol``; each stream runs in a task that the host owns and bounds."""

    async def new_stream(self, peer_id: PeerId, protocols: Sequence[ProtocolId], /) -> Stream:
        """Open a stream with the first protocol that the peer speaks.  Raises TransportError."""

    async def connect(self, multiaddr: str, /) -> RemotePeer:
        """Dial now, or return an existing connection.  Raises TransportError, ConfigError."""

    def keep_connected(self, multiaddrs: Sequence[str], /) -> None:
        """Dial these, and redial with back-off and jitter whenever they are lost."""

    async def disconnect(self, peer_id: PeerId, why: PeerRefusal | None = None, /) -> None: ...

    def cut_off(self, peers: Collection[PeerId], /) -> None:
        """Close the connections to these, and have none with them until they are left out.

        Those that are kept connected are dialled again soon after that.
        """

    judge_copy: JudgeCopy | None
    """Who decides on messages to single peers and from them; None: all go on.  See ``goes_on``."""

    def peers(self) -> Sequence[RemotePeer]: ...

    def peer(self, peer_id: PeerId, /) -> RemotePeer | None:
        """None if it is not connected."""

    def on_peer_connected(self, handler: Callable[[RemotePeer], None], /) -> None:
        """Call ``handler`` after identify has completed."""

    def on_peer_disconnected(self, handler: Callable[[PeerId], None], /) -> None: ...

    def on_dial_failed(self, handler: DialFailedHandler, /) -> None:
        """For kept peers; called at every attempt."""

    def judge_peers_by(self, score: Callable[[PeerId], float], /) -> None:
        """A peer's score, below 0 if it misbehaved: decides which peers stay when room is short."""

    def traffic(self) -> tuple[int, int]:
        """Bytes read and written on all connections since the start."""

    def counters(self) -> Mapping[str, int]: ...

    def facts(self) -> NetworkFacts:
        """The connected peers, and what happened to connections."""
