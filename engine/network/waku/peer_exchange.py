"""34/WAKU2-PEER-EXCHANGE, the client's side: ask one peer where others may be dialled.

Every record becomes dialable addresses that end in the peer's id, so that whoever answers must
prove it.  Records that cannot be used are counted and left out.  Asking tells that peer that we are
looking for others; there is no server, for a node must not give away whom it is connected to, and
has no other peers to give.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from engine.codec.libp2p import encode_public_key
from engine.codec.waku_enr import NodeRecord, decode_enr
from engine.codec.waku_peer_exchange import (
    MAX_EXCHANGE_BYTES,
    MAX_RECORDS,
    SUCCESS,
    decode_peer_exchange_response,
    encode_peer_exchange_query,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError
from engine.network.libp2p.keys import KeyType, PublicKey
from engine.network.libp2p.multiaddr import HostKind, Multiaddr, multiaddr_from_bytes
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.ports import Host, PeerId, ProtocolId
from engine.network.waku.service.exchange import ExchangeLimits, ask

PEER_EXCHANGE_PROTOCOL: Final = ProtocolId("/vac/waku/peer-exchange/2.0.0-alpha1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedPeer:
    """``multiaddrs`` have /p2p/ and at least one member."""

    peer_id: PeerId
    multiaddrs: tuple[str, ...]
    cluster_id: int | None
    shards: tuple[int, ...]


class PeerExchangeClient:
    def __init__(
        self, host: Host, *, counters: Counters, limits: ExchangeLimits | None = None
    ) -> None:
        self._host = host
        self._counters = counters
        self._limits = limits or ExchangeLimits(max_response_bytes=MAX_EXCHANGE_BYTES)

    async def peers(self, peer_id: PeerId, count: int) -> tuple[ExchangedPeer, ...]:
        """At most ``count``.  Raises TransportError also for a refusal; RemoteProtocolError."""
        wanted = min(count, MAX_RECORDS)
        query = encode_peer_exchange_query(wanted)
        response = decode_peer_exchange_response(
            await ask(self._host, peer_id, PEER_EXCHANGE_PROTOCOL, query, self._limits)
        )
        if response.status_code != SUCCESS:
            raise TransportError(
                f"{peer_id} gives no peers: {response.status_code} {response.status_desc}"
            )
        found: dict[PeerId, ExchangedPeer] = {}
        for record in response.records:
            await asyncio.sleep(0)  # each costs 2 ms of hashing and checking
            try:
                peer = _peer(decode_enr(record))
            except RemoteProtocolError as error:
                self._counters.add(f"peer_exchange.{error.reason}")
            else:
                found.setdefault(peer.peer_id, peer)
        found.pop(self._host.peer_id, None)
        return tuple(found.values())[:wanted]


def _peer(record: NodeRecord) -> ExchangedPeer:
    """Raises RemoteProtocolError ``enr_without_address``."""
    key = PublicKey(key_type=KeyType.SECP256K1, data=record.public_key)
    peer_id = peer_id_of_key(encode_public_key(key))
    addresses = dict.fromkeys(str(address.with_peer(peer_id)) for address in _addresses(record))
    if not addresses:
        raise RemoteProtocolError("enr_without_address")
    return ExchangedPeer(
        peer_id=peer_id,
        multiaddrs=tuple(addresses),
        cluster_id=record.cluster_id,
        shards=record.shards,
    )


def _addresses(record: NodeRecord) -> Iterator[Multiaddr]:
    """A multiaddr that names a peer is one of a circuit relay, which this node does not use."""
    if record.ip4 is not None and record.tcp4 is not None:
        host = str(ip_address(record.ip4))
        yield Multiaddr(host_kind=HostKind.IP4, host=host, port=record.tcp4)
    if record.ip6 is not None and record.tcp6 is not None:
        host = str(ip_address(record.ip6))
        yield Multiaddr(host_kind=HostKind.IP6, host=host, port=record.tcp6)
    for encoded in record.multiaddrs:
        try:
            address = multiaddr_from_bytes(encoded)
        except RemoteProtocolError:
            continue
        if address.peer_id is None:
            yield address
