"""Peer exchange requests and responses ↔ bytes: 34/WAKU2-PEER-EXCHANGE.

A response holds node records as bytes (``waku_enr``), bounded in number.  Its status is in no
specification; where there is none, the answer is a success.
"""

from dataclasses import dataclass
from typing import Final

from engine.codec.waku_rpc import parsed, shown_description
from engine.core.errors import RemoteProtocolError
from proto import waku_peer_exchange_pb2

MAX_EXCHANGE_BYTES: Final = 64 * 1024
MAX_RECORDS: Final = 100
SUCCESS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerExchangeResponse:
    records: tuple[bytes, ...] = ()
    status_code: int = SUCCESS
    status_desc: str = ""


def encode_peer_exchange_query(count: int) -> bytes:
    return waku_peer_exchange_pb2.PeerExchangeRpc(
        query=waku_peer_exchange_pb2.PeerExchangeQuery(num_peers=count)
    ).SerializeToString()


def encode_peer_exchange_response(response: PeerExchangeResponse) -> bytes:
    return waku_peer_exchange_pb2.PeerExchangeRpc(
        response=waku_peer_exchange_pb2.PeerExchangeResponse(
            peer_infos=[waku_peer_exchange_pb2.PeerInfo(enr=record) for record in response.records],
            status_code=response.status_code,
            status_desc=response.status_desc or None,
        )
    ).SerializeToString()


def decode_peer_exchange_response(data: bytes) -> PeerExchangeResponse:
    """Raises RemoteProtocolError, for example ``peer_exchange_malformed``."""
    rpc = parsed(
        waku_peer_exchange_pb2.PeerExchangeRpc,
        data,
        max_bytes=MAX_EXCHANGE_BYTES,
        what="peer_exchange",
    )
    if not rpc.HasField("response"):
        raise RemoteProtocolError("peer_exchange_without_response")
    response = rpc.response
    return PeerExchangeResponse(
        records=tuple(info.enr for info in response.peer_infos[:MAX_RECORDS] if info.enr),
        status_code=response.status_code or SUCCESS,
        status_desc=shown_description(response.status_desc),
    )
