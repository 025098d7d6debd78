"""``StoreNetwork`` over libp2p hosts: the connections of the relay role and of the edge role.

A connected Store is queried where it is connected; one from the settings is dialled if necessary.
Its protocols are those it named when identified.  Hashes are verified, and computed for
2.0.0-beta4, before a caller sees a message.  Messages that fail are left out, with a reason.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from engine.codec.waku_history import MAX_HISTORY_RESPONSE_BYTES
from engine.codec.waku_store import MAX_STORE_RESPONSE_BYTES
from engine.core.errors import (
    ChatError,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    Ask,
    Failed,
    FailureKind,
    HistoryMessage,
    Outcome,
    Page,
    Refusal,
    StoreVersion,
)
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku_store import HistoryQuery, StoreQueryRequest
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, RemotePeer
from engine.network.peers_by_protocol import Reached
from engine.network.stores.port import FoundStore, TestedStore
from engine.network.stores.probe import test_store
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import LEGACY_STORE_PROTOCOL, STORE_QUERY_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits
from engine.network.waku.store.client import HistoryPage, StoreClient, StorePage
from engine.network.waku.topics import Sharding

PROTOCOLS: Final = {
    StoreVersion.V3: STORE_QUERY_PROTOCOL,
    StoreVersion.V2: LEGACY_STORE_PROTOCOL,
}
"""The preferred one first."""
_PEER: Final = "/p2p/"
_TOO_LARGE: Final = "frame_oversized"
_ALMOST_S: Final = 0.05


class HostStores:
    def __init__(self, hosts: Callable[[], Sequence[Host]], sharding: Sharding) -> None:
        """``hosts``: the running ones, the preferred one first."""
        self._hosts = hosts
        self._sharding = sharding

    def pubsub_topic(self, content_topic: ContentTopic, /) -> PubsubTopic:
        try:
            return self._sharding.pubsub_topic(content_topic)
        except RemoteProtocolError as error:
            raise LocalProtocolError(f"no content topic: {content_topic}") from error

    # --- who there is ---------------------------------------------------------------------------

    def found(self) -> tuple[FoundStore, ...]:
        found: dict[PeerId, FoundStore] = {}
        for host in self._hosts():
            for peer in host.peers():
                versions = versions_of(peer.protocols)
                if versions and peer.peer_id not in found:
                    store = StoreRef(f"{_PEER}{peer.peer_id}")
                    address = next(iter(peer.listen_addresses), store)
                    found[peer.peer_id] = FoundStore(
                        store=store, address=address, versions=versions
                    )
        return tuple(found.values())

    def versions(self, store: StoreRef, /) -> tuple[StoreVersion, ...]:
        reached = self._connected(peer_id_of(store))
        return () if reached is None else versions_of(reached.peer.protocols)

    def _connected(self, peer_id: PeerId | None) -> Reached | None:
        for host in self._hosts():
            peer = None if peer_id is None else host.peer(peer_id)
            if peer is not None:
                return Reached(host=host, peer=peer)
        return None

    async def _reach(self, store: StoreRef) -> Reached:
        """Raises TransportError, ConfigError."""
        known = self._connected(peer_id_of(store))
        if known is not None:
            return known
        hosts = self._hosts()
        if not hosts:
            raise TransportError("this node is not running", TransportFault.STOPPED)
        if store.startswith(_PEER):
            raise TransportError(f"{store} is not connected", TransportFault.NOT_CONNECTED)
        peer: RemotePeer = await hosts[0].connect(store)
        return Reached(host=hosts[0], peer=peer)

    # --- asking ---------------------------------------------------------------------------------

    async def perform(self, ask: Ask, /) -> Outcome:
        try:
            async with asyncio.timeout(ask.first_byte_timeout_ms / 1_000):
                reached = await self._reach(ask.store)
        except (TimeoutError, ChatError):
            return Failed(FailureKind.UNREACHABLE)
        if reached.peer.protocols and PROTOCOLS[ask.version] not in reached.peer.protocols:
            return Failed(FailureKind.UNSUPPORTED)
        return await self._ask(reached, ask)

    async def _ask(self, reached: Reached, ask: Ask) -> Outcome:
        first_byte_s, whole_s = ask.first_byte_timeout_ms / 1_000, ask.timeout_ms / 1_000
        limits = ExchangeLimits(
            first_byte_timeout_s=first_byte_s,
            timeout_s=whole_s,
            max_response_bytes=max(MAX_STORE_RESPONSE_BYTES, MAX_HISTORY_RESPONSE_BYTES),
        )
        client, peer_id, request = (
            StoreClient(reached.host, limits=limits),
            reached.peer.peer_id,
            ask.request,
        )
        now_s = asyncio.get_running_loop().time
        asked_s = now_s()
        try:
            if isinstance(request, StoreQueryRequest):
                return _page_of_v3(await client.query(peer_id, request))
            return _page_of_v2(await client.query_history(peer_id, request), request)
        except RemoteProtocolError as error:
            too_large = error.reason == _TOO_LARGE
            kind = FailureKind.TOO_LARGE if too_large else FailureKind.BROKEN
            return Failed(kind, error.reason)
        except ChatError:
            too_slow = now_s() - asked_s >= min(first_byte_s, whole_s) - _ALMOST_S
            return Failed(FailureKind.TIMEOUT if too_slow else FailureKind.UNREACHABLE)

    async def test(
        self, multiaddr: str, content_topics: Sequence[ContentTopic], /, *, timeout_s: float
    ) -> TestedStore:
        store = StoreRef(multiaddr)
        if not store.startswith(_PEER):
            parse_multiaddr(multiaddr)
        return await test_store(
            lambda: self._reach(store),
            sharding=self._sharding,
            content_topics=content_topics,
            timeout_s=timeout_s,
            versions_of=versions_of,
        )


def versions_of(protocols: Sequence[ProtocolId]) -> tuple[StoreVersion, ...]:
    return tuple(version for version, protocol in PROTOCOLS.items() if protocol in protocols)


def peer_id_of(store: StoreRef) -> PeerId | None:
    """None if the address names no peer."""
    _, separator, peer_id = store.rpartition(_PEER)
    return PeerId(peer_id) if separator and peer_id else None


def _page_of_v3(page: StorePage) -> Outcome:
    if not page.succeeded:
        return Refusal(page.status_code)
    messages = tuple(
        HistoryMessage(item.message_hash, item.message, item.pubsub_topic)
        for item in page.messages
        if item.message is not None and item.pubsub_topic is not None
    )
    return Page(messages=messages, cursor=page.cursor, refused=page.refused, size=page.size)


def _page_of_v2(page: HistoryPage, query: HistoryQuery) -> Outcome:
    topic = query.pubsub_topic
    if not page.succeeded:
        return Refusal(page.error)
    if topic is None:
        raise LocalProtocolError("history is asked for on one pubsub topic")
    messages = tuple(
        HistoryMessage(message_hash(topic, message), message, topic) for message in page.messages
    )
    return Page(messages=messages, cursor=page.cursor, refused=page.refused, size=page.size)
