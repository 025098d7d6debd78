"""The published vectors of Noise XX (25519, ChaChaPoly, SHA256), both sides, byte for byte."""

import json
from pathlib import Path

import pytest

from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.network.libp2p.noise import MAX_MESSAGE_BYTES, NoiseSession, XXHandshake

VECTORS = Path(__file__).parents[2] / "vectors" / "noise" / "xx_25519_chachapoly_sha256.json"
(VECTOR,) = json.loads(VECTORS.read_text())["vectors"]
MESSAGES = [
    (bytes.fromhex(each["payload"]), bytes.fromhex(each["ciphertext"]))
    for each in VECTOR["messages"]
]


def side(role: str) -> XXHandshake:
    return XXHandshake(
        initiator=role == "init",
        static_private_key=bytes.fromhex(VECTOR[f"{role}_static"]),
        ephemeral_private_key=bytes.fromhex(VECTOR[f"{role}_ephemeral"]),
        prologue=bytes.fromhex(VECTOR[f"{role}_prologue"]),
    )


def handshake() -> tuple[NoiseSession, NoiseSession]:
    initiator, responder = side("init"), side("resp")
    writer, reader = initiator, responder
    for payload, ciphertext in MESSAGES[:3]:
        assert writer.write_message(payload) == ciphertext
        assert reader.read_message(ciphertext) == payload
        writer, reader = reader, writer
    return initiator.session(), responder.session()


def test_handshake_and_transport_messages_equal_the_vector() -> None:
    initiator, responder = handshake()
    assert initiator.handshake_hash.hex() == VECTOR["handshake_hash"]
    assert responder.handshake_hash.hex() == VECTOR["handshake_hash"]
    sender, receiver = responder, initiator  # message 4 is the responder's
    for payload, ciphertext in MESSAGES[3:]:
        assert sender.sending.encrypt(payload) == ciphertext
        assert receiver.receiving.decrypt(ciphertext) == payload
        sender, receiver = receiver, sender


def test_every_flipped_bit_of_messages_2_and_3_is_refused() -> None:
    for bit in range(len(MESSAGES[1][1]) * 8):
        initiator = side("init")
        initiator.write_message(MESSAGES[0][0])
        with pytest.raises(RemoteProtocolError):
            initiator.read_message(flipped(MESSAGES[1][1], bit))
    for bit in range(len(MESSAGES[2][1]) * 8):
        responder = side("resp")
        responder.read_message(MESSAGES[0][1])
        responder.write_message(MESSAGES[1][0])
        with pytest.raises(CryptoError):
            responder.read_message(flipped(MESSAGES[2][1], bit))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    # X25519 ignores the top bit of a public key, but the hash of the transcript does not.
    return bytes(changed)


@pytest.mark.parametrize("length", [0, 31])
def test_truncated_first_message(length: int) -> None:
    with pytest.raises(RemoteProtocolError, match="noise_message_too_short"):
        side("resp").read_message(bytes(length))


def test_ephemeral_key_of_small_order_is_refused() -> None:
    responder = side("resp")
    responder.read_message(bytes(32))
    with pytest.raises(CryptoError, match="noise_weak_key"):
        responder.write_message()


def test_a_replayed_or_reordered_transport_message_is_refused() -> None:
    initiator, responder = handshake()
    first, second = responder.sending.encrypt(b"first"), responder.sending.encrypt(b"second")
    with pytest.raises(CryptoError):
        initiator.receiving.decrypt(second)
    assert initiator.receiving.decrypt(first) == b"first"
    with pytest.raises(CryptoError):
        initiator.receiving.decrypt(first)
    assert initiator.receiving.decrypt(second) == b"second"


def test_out_of_turn_is_our_own_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        side("resp").write_message()
    with pytest.raises(LocalProtocolError):
        side("init").read_message(MESSAGES[0][1])
    with pytest.raises(LocalProtocolError):
        side("init").session()
    with pytest.raises(LocalProtocolError):
        side("init").write_message(bytes(MAX_MESSAGE_BYTES))
