"""26/WAKU2-PAYLOAD, symmetric: js-waku's own bytes, what others may write, and what nobody may.

``tests/interop/shared_key_vectors.mjs`` made the vectors with @waku/message-encryption.
"""

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TypedDict

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.waku_payload import (
    MAX_PAYLOAD_BYTES,
    PADDED_TO,
    SIGNATURE_BYTES,
    decode_waku_payload,
    encode_waku_payload,
)
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from engine.crypto.shared_key import open_payload, seal_payload

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "waku" / "shared_key.json"
KEY = bytes(range(32))
keys = st.binary(min_size=32, max_size=32)


class Made(TypedDict):
    payload: str
    signed: bool
    plain: str
    sealed: str


MADE: list[Made] = json.loads(VECTORS.read_text("utf-8"))["made"]


def reason_of(plain: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as error:
        decode_waku_payload(plain)
    return error.value.reason


def sealed_around(plain: bytes, key: bytes = KEY) -> bytes:
    nonce = bytes(12)
    return AESGCM(key).encrypt(nonce, plain, None) + nonce


@pytest.mark.parametrize("made", MADE, ids=lambda made: f"{len(made['payload']) // 2} bytes")
def test_what_js_waku_wrote_opens_and_is_what_we_write_but_for_the_signature(made: Made) -> None:
    payload, plain, sealed = (bytes.fromhex(each) for each in _parts(made))
    assert open_payload(KEY, sealed) == payload
    nonce = sealed[-12:]
    drawn = iter((nonce, plain[-1 * _padding(plain, payload) :]))
    if not made["signed"]:
        assert seal_payload(KEY, payload, lambda count: next(drawn)[:count]) == sealed


def _parts(made: Made) -> tuple[str, str, str]:
    return made["payload"], made["plain"], made["sealed"]


def _padding(plain: bytes, payload: bytes) -> int:
    return len(plain) - 1 - (plain[0] & 3) - len(payload)


@given(payload=st.binary(max_size=1_000), key=keys, seed=st.integers(0, 2**32))
def test_what_was_sealed_opens_and_no_size_below_256_bytes_shows(
    payload: bytes, key: bytes, seed: int
) -> None:
    sealed = seal_payload(key, payload, Random(seed).randbytes)
    assert open_payload(key, sealed) == payload
    assert (len(sealed) - 28) % PADDED_TO == 0


def test_no_two_copies_are_alike() -> None:
    draw = Random(1).randbytes
    assert seal_payload(KEY, b"again", draw) != seal_payload(KEY, b"again", draw)


@given(payload=st.binary(max_size=300), key=keys.filter(lambda key: key != KEY))
def test_another_key_opens_nothing(payload: bytes, key: bytes) -> None:
    sealed = seal_payload(key, payload, Random(2).randbytes)
    with pytest.raises(CryptoError) as error:
        open_payload(KEY, sealed)
    assert error.value.reason == "other_key"


@given(cut=st.integers(0, 284), flipped=st.integers(0, 284 * 8 - 1))
def test_what_was_cut_off_or_changed_is_no_more_ours_than_noise(cut: int, flipped: int) -> None:
    sealed = seal_payload(KEY, b"hello", Random(3).randbytes)
    changed = bytearray(sealed)
    changed[flipped // 8 % len(sealed)] ^= 1 << flipped % 8
    for wrong in (sealed[:cut][: len(sealed) - 1], bytes(changed)):
        with pytest.raises(CryptoError) as error:
            open_payload(KEY, wrong)
        assert error.value.reason == "other_key"


@given(
    payload=st.binary(max_size=300), padding=st.binary(max_size=300), length_bytes=st.integers(2, 3)
)
def test_the_padding_of_others_can_have_any_size_and_their_length_leading_zeros(
    payload: bytes, padding: bytes, length_bytes: int
) -> None:
    length = len(payload).to_bytes(length_bytes, "little")
    assert decode_waku_payload(bytes((length_bytes,)) + length + payload + padding) == payload
    signed = bytes((4 | length_bytes,)) + length + payload + padding + bytes(SIGNATURE_BYTES)
    assert decode_waku_payload(signed) == payload


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        (b"", "payload_flags"),
        (b"\x00" * 256, "payload_flags"),
        (b"\x04" + bytes(255), "payload_flags"),
        (b"\x09\x00" + bytes(254), "payload_flags"),
        (b"\x81\x00" + bytes(254), "payload_flags"),
        (b"\x01", "payload_length"),
        (b"\x03\x01\x00", "payload_length"),
        (b"\x01\x03ab", "payload_length"),
        (b"\x03\xff\xff\xff" + bytes(252), "payload_length"),
        (b"\x05\x01a" + bytes(SIGNATURE_BYTES - 1), "payload_length"),
        (b"\x05" + bytes(SIGNATURE_BYTES), "payload_length"),
    ],
)
def test_what_contradicts_itself_is_refused(plain: bytes, reason: str) -> None:
    assert reason_of(plain) == reason
    with pytest.raises(RemoteProtocolError) as error:
        open_payload(KEY, sealed_around(plain))
    assert error.value.reason == reason


@given(plain=st.binary(max_size=400))
def test_of_anything_a_part_is_read_or_it_is_refused(plain: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert decode_waku_payload(plain) in plain


def test_what_we_accept_we_can_send_again() -> None:
    """Whoever repairs it pads it anew, within the limit of a Waku message and its other fields."""
    longest = bytes(MAX_PAYLOAD_BYTES)
    sealed = seal_payload(KEY, longest, Random(4).randbytes)
    assert len(sealed) < MAX_WAKU_MESSAGE_BYTES - 300
    assert open_payload(KEY, sealed) == longest
    length = (MAX_PAYLOAD_BYTES + 1).to_bytes(3, "little")
    assert reason_of(b"\x03" + length + longest + b"x") == "payload_length"
    with pytest.raises(LocalProtocolError):
        encode_waku_payload(longest + b"x", Random(5).randbytes)
