"""66/WAKU2-METADATA: peers tell each other their cluster and shards.

The client asks every peer that speaks the protocol as soon as it is connected; the server answers
every peer.  A peer of another cluster is disconnected by the side that learns it first.  So is a
peer that breaks the protocol it claims to speak.  The observer gets the reason.  Shards are never a
reason to disconnect: the specification advises against that.  A peer that does not speak the
protocol is left alone.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Protocol

from engine.codec.waku_metadata import (
    MAX_METADATA_BYTES,
    Metadata,
    decode_metadata,
    encode_metadata,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.problems import AnswersWrongly, OtherCluster, PeerRefusal
from engine.network.libp2p.ports import Host, PeerId, RemotePeer
from engine.network.owned_tasks import OwnedTasks
from engine.network.waku.protocols import METADATA_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits, ask
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings, serve_requests

_ASK_LIMITS = ExchangeLimits(timeout_s=10, max_response_bytes=MAX_METADATA_BYTES)


class MetadataObserver(Protocol):
    """Called on the loop; must neither block nor raise."""

    def peer_refused(self, peer_id: PeerId, reason: PeerRefusal, /) -> None:
        """The peer is being disconnected."""


class WakuMetadata:
    """Client and server of one node.  Create a new one for every start."""

    name = "metadata"
    protocol = METADATA_PROTOCOL
    settings = ServiceSettings(
        max_request_bytes=MAX_METADATA_BYTES, gate=GateLimits(per_second=1, burst=10)
    )

    def __init__(
        self,
        host: Host,
        own: Callable[[], Metadata],
        *,
        counters: Counters,
        observer: MetadataObserver,
        grace_s: float = 1.0,
    ) -> None:
        """``grace_s``: how long a peer of another cluster has to read our answer."""
        self._host = host
        self._own = own
        self._counters = counters
        self._observer = observer
        self._grace_s = grace_s
        self._tasks = OwnedTasks(counters, failed="metadata.task_failed")
        self._running = False

    def start(self) -> None:
        """Call before the host starts, so that no peer is missed."""
        self._running = True
        serve_requests(self._host, self, self._counters)
        self._host.on_peer_connected(self._peer_connected)

    async def stop(self) -> None:
        """Call before the host stops."""
        self._running = False
        await self._tasks.cancel_all()

    # --- server ---------------------------------------------------------------------------------

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        try:
            if (reason := self._refusal(decode_metadata(request))) is not None:
                self._spawn(self._part(peer_id, reason, self._grace_s))
        except RemoteProtocolError as error:
            self._counters.add(f"metadata.{error.reason}")
        return encode_metadata(self._own())

    def refuse(self, _request: bytes, /) -> bytes:
        return encode_metadata(self._own())

    # --- client ---------------------------------------------------------------------------------

    def _peer_connected(self, peer: RemotePeer) -> None:
        if METADATA_PROTOCOL in peer.protocols:
            self._spawn(self._ask(peer.peer_id))

    async def _ask(self, peer_id: PeerId) -> None:
        request = encode_metadata(self._own())
        try:
            response = await ask(self._host, peer_id, METADATA_PROTOCOL, request, _ASK_LIMITS)
            reason = self._refusal(decode_metadata(response))
        except TransportError:
            self._counters.add("metadata.no_answer")
            return
        except RemoteProtocolError as error:
            self._counters.add(f"metadata.{error.reason}")
            reason = AnswersWrongly(error.reason)
        if reason is not None:
            await self._part(peer_id, reason)

    # --- both -----------------------------------------------------------------------------------

    def _refusal(self, metadata: Metadata) -> PeerRefusal | None:
        """Why the peers must part, if they must."""
        ours, theirs = self._own().cluster_id, metadata.cluster_id
        if theirs is not None and ours is not None and theirs != ours:
            self._counters.add("metadata.other_cluster")
            return OtherCluster(theirs, ours)
        return None

    async def _part(self, peer_id: PeerId, reason: PeerRefusal, grace_s: float = 0) -> None:
        self._observer.peer_refused(peer_id, reason)
        await asyncio.sleep(grace_s)
        await self._host.disconnect(peer_id, reason)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        if not self._running:
            work.close()
            return
        self._tasks.spawn(work)
