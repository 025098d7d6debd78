"""Peer exchange: node records of js-waku become addresses, and junk becomes nothing."""

import asyncio
import base64
import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.waku_enr import MAX_ENR_BYTES, NodeRecord, decode_enr
from engine.codec.waku_peer_exchange import (
    PeerExchangeResponse,
    decode_peer_exchange_response,
    encode_peer_exchange_response,
)
from engine.core.errors import CryptoError, RemoteProtocolError, TransportError
from engine.crypto import keccak
from engine.crypto.keccak import keccak256
from engine.network.libp2p.ports import Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.peer_exchange import (
    PEER_EXCHANGE_PROTOCOL,
    ExchangedPeer,
    PeerExchangeClient,
)
from tests.network.waku.service_net import PATIENT, ServiceNet

VECTORS = Path(__file__).parents[2] / "vectors" / "waku" / "enr.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text("utf-8"))["cases"]


def record_bytes(case: dict[str, Any]) -> bytes:
    text = str(case["enr"]).removeprefix("enr:")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


RECORDS = [record_bytes(case) for case in CASES]


@dataclass
class Exchange:
    peers: tuple[ExchangedPeer, ...]
    counters: dict[str, int]


async def exchanged(response: bytes, count: int = 10) -> Exchange:
    async def answers(stream: Stream) -> None:
        await stream.read_some(100)
        await stream.write(encode_frame(response))
        await stream.close_write()

    async with ServiceNet() as net:
        server, host = await net.host("server"), await net.host("client")
        server.set_stream_handler(PEER_EXCHANGE_PROTOCOL, answers)
        await host.connect("/memory/server")
        client = PeerExchangeClient(host, counters=net.counters, limits=PATIENT)
        found = await client.peers(server.peer_id, count)
        return Exchange(peers=found, counters=dict(net.counters.snapshot()))


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: str(case["name"]))
def test_records_of_js_waku_are_read_as_js_waku_reads_them(case: dict[str, Any]) -> None:
    response = encode_peer_exchange_response(PeerExchangeResponse(records=(record_bytes(case),)))
    (peer,) = asyncio.run(exchanged(response)).peers
    assert peer.peer_id == case["peer_id"]
    assert set(peer.multiaddrs) == {each for each in case["multiaddrs"] if "/udp/" not in each}
    shard_info = case.get("shard_info") or {"clusterId": None, "shards": []}
    assert (peer.cluster_id, list(peer.shards)) == (shard_info["clusterId"], shard_info["shards"])


def test_records_without_use_are_counted_and_left_out() -> None:
    records = (*RECORDS[3:], b"\xc0", bytes(MAX_ENR_BYTES + 1), b"", RECORDS[0], RECORDS[0])
    response = encode_peer_exchange_response(PeerExchangeResponse(records=records))
    found = asyncio.run(exchanged(response))
    assert len(found.peers) == 1
    assert found.counters == {
        "peer_exchange.enr_malformed": 1,
        "peer_exchange.enr_oversized": 1,
        "peer_exchange.enr_without_address": 1,
    }


def test_no_more_are_taken_than_were_asked_for() -> None:
    response = encode_peer_exchange_response(PeerExchangeResponse(records=tuple(RECORDS[:1])))
    assert asyncio.run(exchanged(response, count=0)).peers == ()


def test_a_refusal_is_an_error_in_words() -> None:
    response = encode_peer_exchange_response(
        PeerExchangeResponse(status_code=429, status_desc="slow down")
    )
    with pytest.raises(TransportError, match="429 slow down"):
        asyncio.run(exchanged(response))


@pytest.mark.parametrize(
    ("response", "reason"),
    [(b"\xff", "peer_exchange_malformed"), (b"", "peer_exchange_without_response")],
)
def test_an_answer_that_is_none_is_refused(response: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        asyncio.run(exchanged(response))


PRIVATE = ec.derive_private_key(7, ec.SECP256K1())
POINT = PRIVATE.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
KEY = (b"secp256k1", POINT)


def rlp(*parts: bytes) -> bytes:
    """A list of byte strings."""

    def head(kind: int, size: int) -> bytes:
        if size < 56:
            return bytes([kind + size])
        length = size.to_bytes((size.bit_length() + 7) // 8, "big")
        return bytes([kind + 55 + len(length)]) + length

    content = b"".join(head(0x80, len(part)) + part for part in parts)
    return head(0xC0, len(content)) + content


def record_of(*pairs: bytes, signature: bytes | None = None) -> bytes:
    """A record with a number before its pairs, signed by ``PRIVATE`` if not otherwise."""
    items = (b"\x81", *pairs)
    if signature is None:
        algorithm = ec.ECDSA(Prehashed(SHA256()))
        r, s = decode_dss_signature(PRIVATE.sign(keccak256(rlp(*items)), algorithm))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return rlp(signature, *items)


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ((b"id", b"v5", *KEY), "enr_unknown_scheme"),
        (KEY, "enr_unknown_scheme"),
        ((b"id", b"v4"), "enr_without_key"),
        ((b"id", b"v4", b"secp256k1", b"\x02" * 32), "enr_without_key"),
        ((b"id", b"v4", b"secp256k1", b"\x02" + b"\xff" * 32), "identity_bad_key"),
        ((*KEY, b"id", b"v4"), "enr_keys_unsorted"),
        ((b"id", b"v4", b"id", b"v4", *KEY), "enr_keys_unsorted"),
        ((b"id", b"v4", b"ip"), "enr_malformed"),
    ],
)
def test_records_that_break_the_rules_are_refused(pairs: tuple[bytes, ...], reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as refused:
        decode_enr(record_of(*pairs))
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "signature",
    [bytes(64), b"", bytes(63), b"\x01" * 64, b"\xff" * 64, bytes(65)],
    ids=["zero", "none", "short", "made up", "beyond the order", "long"],
)
def test_a_record_with_a_bad_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(CryptoError, match="identity_bad_signature"):
        decode_enr(record_of(b"id", b"v4", *KEY, signature=signature))


def test_nobody_moves_somebody_elses_record() -> None:
    """One changed bit anywhere in the signature or behind it, and it is nobody's record."""
    record = RECORDS[0]
    for bit in range(8 * 2, 8 * len(record)):  # the head of the list holds its length
        changed = bytearray(record)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError):
            decode_enr(bytes(changed))


def test_keccak_is_sha3_but_for_its_padding() -> None:
    assert keccak256(b"").hex() == (
        "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    )

    @given(st.binary(max_size=500))
    @settings(deadline=None, max_examples=50)
    def like_the_library(data: bytes) -> None:
        assert keccak._sponge(data, 0x06) == hashlib.sha3_256(data).digest()

    like_the_library()


def test_values_of_the_wrong_size_are_read_over() -> None:
    cut_off = b"\x00\x02ab\x00\x09abc"
    record = decode_enr(
        record_of(b"id", b"v4", b"ip", bytes(5), b"multiaddrs", cut_off, *KEY, b"tcp", bytes(3))
    )
    assert record == NodeRecord(public_key=KEY[1], multiaddrs=(b"ab",))
    response = encode_peer_exchange_response(
        PeerExchangeResponse(records=(record_of(b"id", b"v4", b"multiaddrs", b"\x00\x02ab", *KEY),))
    )
    found = asyncio.run(exchanged(response))
    assert found.peers == ()
    assert found.counters == {"peer_exchange.enr_without_address": 1}


def test_a_bit_vector_of_shards_is_read() -> None:
    vector = bytearray(128)
    vector[0], vector[127] = 0b101, 0b1000_0000
    record = decode_enr(record_of(b"id", b"v4", b"rsv", b"\x00\x2a" + bytes(vector), *KEY))
    assert record == NodeRecord(public_key=POINT, cluster_id=42, shards=(0, 2, 1023))


def mutated(seed: bytes, data: st.DataObject) -> bytes:
    changed = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    return bytes(changed[: data.draw(st.integers(1, len(changed)))])


@given(st.binary(max_size=320) | st.builds(mutated, st.sampled_from(RECORDS), st.data()))
def test_junk_records_are_refused_and_nothing_else_escapes(junk: bytes) -> None:
    with suppress(RemoteProtocolError):
        decode_enr(junk)
    with suppress(RemoteProtocolError):
        decode_peer_exchange_response(junk)
    response = encode_peer_exchange_response(PeerExchangeResponse(records=(junk,)))
    assert decode_peer_exchange_response(response).records == ((junk,) if junk else ())
