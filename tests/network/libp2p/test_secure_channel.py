"""The libp2p handshake on top of Noise, and the framed channel that it leaves."""

import asyncio
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.libp2p import (
    IdentifyMessage,
    KeyType,
    NoisePayload,
    PublicKey,
    decode_identify,
    decode_noise_payload,
    encode_identify,
    encode_noise_payload,
    encode_public_key,
)
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.handshake import (
    MESSAGES_PER_TURN,
    SIGNATURE_PREFIX,
    SecuredPipe,
    SecureHandshake,
    WrongPeerError,
)
from engine.network.libp2p.identify import dialable_addresses, remote_peer, updated_peer
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.noise import XXHandshake
from engine.network.libp2p.peer_id import peer_id_of_key
from engine.network.libp2p.pipe import MAX_EARLY_BYTES
from engine.network.libp2p.ports import PeerId
from tests.network.libp2p.written_pipe import Wire

ALICE, BOB = IdentityKey(b"a" * 32), IdentityKey(b"b" * 32)
ALICE_ID = peer_id_of_key(encode_public_key(ALICE.public_key))
BOB_ID = peer_id_of_key(encode_public_key(BOB.public_key))


def initiator(expected: PeerId | None = None) -> SecureHandshake:
    return SecureHandshake(
        initiator=True,
        identity=ALICE,
        static_private_key=b"1" * 32,
        ephemeral_private_key=b"2" * 32,
        expected_peer=expected,
    )


def responder() -> SecureHandshake:
    return SecureHandshake(
        initiator=False,
        identity=BOB,
        static_private_key=b"3" * 32,
        ephemeral_private_key=b"4" * 32,
    )


def shake(first: SecureHandshake, second: SecureHandshake) -> None:
    second.read_message(first.write_message())
    first.read_message(second.write_message())
    second.read_message(first.write_message())


def test_both_sides_learn_who_the_other_is() -> None:
    alice, bob = initiator(BOB_ID), responder()
    shake(alice, bob)
    assert (alice.peer_id, bob.peer_id) == (BOB_ID, ALICE_ID)
    assert alice.session().handshake_hash == bob.session().handshake_hash


def test_message_1_carries_nothing() -> None:
    assert len(initiator().write_message()) == 32


def test_an_unexpected_peer_is_refused_before_our_identity_is_sent() -> None:
    alice, bob = initiator(ALICE_ID), responder()
    bob.read_message(alice.write_message())
    with pytest.raises(WrongPeerError, match=f"the peer is {BOB_ID}, expected was {ALICE_ID}"):
        alice.read_message(bob.write_message())
    with pytest.raises(LocalProtocolError):
        bob.peer_id  # noqa: B018 - the property raises


def answer_with(payload: Callable[[bytes], bytes]) -> None:
    """Alice hears a responder whose payload is made from its static public key."""
    alice = initiator()
    rogue = XXHandshake(
        initiator=False, static_private_key=b"5" * 32, ephemeral_private_key=b"6" * 32
    )
    rogue.read_message(alice.write_message())
    alice.read_message(rogue.write_message(payload(rogue.static_public_key)))


def test_a_secp256k1_identity_is_verified() -> None:
    private = ec.derive_private_key(12345, ec.SECP256K1())
    numbers = private.public_key().public_numbers()
    point = bytes([2 + numbers.y % 2]) + numbers.x.to_bytes(32, "big")
    key = encode_public_key(PublicKey(key_type=KeyType.SECP256K1, data=point))

    def signed(message: bytes) -> bytes:
        signature = private.sign(message, ec.ECDSA(SHA256()))
        return encode_noise_payload(NoisePayload(identity_key=key, identity_signature=signature))

    answer_with(lambda static: signed(SIGNATURE_PREFIX + static))
    with pytest.raises(CryptoError, match="identity_bad_signature"):
        answer_with(lambda static: signed(SIGNATURE_PREFIX + static[::-1]))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (lambda _: b"", "noise_payload_incomplete"),
        (lambda _: b"\xff", "noise_payload_undecodable"),
        (
            lambda static: encode_noise_payload(
                NoisePayload(identity_key=b"", identity_signature=BOB.sign(static))
            ),
            "public_key_incomplete",
        ),
        (
            lambda static: encode_noise_payload(
                NoisePayload(
                    identity_key=encode_public_key(BOB.public_key),
                    identity_signature=BOB.sign(static),  # without the prefix
                )
            ),
            "identity_bad_signature",
        ),
        (
            lambda static: encode_noise_payload(
                NoisePayload(
                    identity_key=encode_public_key(BOB.public_key),
                    identity_signature=ALICE.sign(SIGNATURE_PREFIX + static),
                )
            ),
            "identity_bad_signature",
        ),
    ],
)
def test_an_identity_that_is_not_proved_is_refused(
    payload: Callable[[bytes], bytes], reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        answer_with(payload)


@given(st.binary(max_size=300))
def test_noise_payload_decoder_lets_only_refusals_out(data: bytes) -> None:
    try:
        payload = decode_noise_payload(data)
    except RemoteProtocolError:
        return
    assert len(payload.identity_key) + len(payload.identity_signature) <= len(data)


def channel() -> tuple[SecuredPipe, Wire, SecuredPipe, Wire]:
    alice, bob = initiator(), responder()
    shake(alice, bob)
    wires = Wire(), Wire()
    return (
        SecuredPipe(wires[0], alice.session()),
        wires[0],
        SecuredPipe(wires[1], bob.session()),
        wires[1],
    )


@given(st.lists(st.integers(0, 140_000), min_size=1, max_size=4), st.integers(1, 70_000))
@settings(max_examples=25)
def test_what_is_written_is_read_whatever_the_pieces(sizes: list[int], piece: int) -> None:
    async def scenario() -> None:
        sender, wire, receiver, _ = channel()
        sent = b"".join(bytes([number]) * size for number, size in enumerate(sizes))
        start = 0
        for size in sizes:
            sender.write(sent[start : start + size])
            start += size
        for offset in range(0, len(wire.written), piece):
            receiver.bytes_received(wire.written[offset : offset + piece])
        assert await receiver.read_exactly(len(sent)) == sent

    asyncio.run(scenario())


@given(st.binary(min_size=2, max_size=100))
def test_garbage_on_the_channel_breaks_it_and_nothing_else(data: bytes) -> None:
    async def scenario() -> None:
        _, _, receiver, wire = channel()
        receiver.bytes_received(data)
        receiver.bytes_received(bytes(2))  # a message without a tag
        if not wire.closed:  # the garbage promised a longer message
            receiver.bytes_received(bytes(65_535))
        assert wire.closed
        with pytest.raises(RemoteProtocolError):
            await receiver.read_exactly(1)

    asyncio.run(scenario())


async def test_what_arrives_before_anybody_reads_is_bounded() -> None:
    sender, wire, receiver, receiver_wire = channel()
    sender.write(bytes(MAX_EARLY_BYTES))
    receiver.bytes_received(wire.written)
    assert not receiver_wire.closed
    wire.written = b""
    sender.write(b"1")
    receiver.bytes_received(wire.written)
    assert receiver_wire.closed


class Ears:
    """A sink that remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[bytes | Exception | None] = []

    def bytes_received(self, data: bytes) -> None:
        self.heard.append(data)

    def pipe_lost(self, error: Exception | None) -> None:
        self.heard.append(error)

    def writing_paused(self) -> None:
        return

    def writing_resumed(self) -> None:
        return


async def test_a_pipe_that_was_lost_before_it_was_attached_says_so() -> None:
    sender, wire, receiver, _ = channel()
    sender.write(b"last words")
    receiver.bytes_received(wire.written)
    receiver.pipe_lost(None)
    assert await receiver.read_exactly(5) == b"last "
    ears = Ears()
    receiver.attach(ears)
    assert ears.heard == [b"words", None]
    with pytest.raises(TransportError, match="closed after 0 of 1"):
        await receiver.read_exactly(1)


async def test_a_chunk_of_very_many_messages_takes_several_turns() -> None:
    sender, wire, receiver, receiver_wire = channel()
    ears = Ears()
    receiver.attach(ears)
    count = 3 * MESSAGES_PER_TURN
    for number in range(count):
        sender.write(b"%d " % number)
    receiver.bytes_received(wire.written[:-1])
    turns = 0
    while not receiver_wire.reading:
        turns += 1
        if turns == 2:
            receiver.pause_reading()
        if turns == 9:
            assert len(ears.heard) == 2  # nothing while the sink wants nothing
            receiver.resume_reading()
        await asyncio.sleep(0)
    receiver.bytes_received(wire.written[-1:])
    heard = [each.split() for each in ears.heard if isinstance(each, bytes)]
    assert max(len(each) for each in heard) == MESSAGES_PER_TURN
    assert [int(each) for piece in heard for each in piece] == list(range(count))


# --- identify -------------------------------------------------------------------------------------


def address_bytes(text: str) -> bytes:
    return parse_multiaddr(text).to_bytes()


NEAR: Multiaddr = parse_multiaddr("/ip4/127.0.0.1/tcp/9")
FAR: Multiaddr = parse_multiaddr("/ip4/8.8.8.8/tcp/9")


def test_identify_round_trip() -> None:
    message = IdentifyMessage(
        public_key=b"key",
        listen_addresses=(address_bytes("/ip4/1.2.3.4/tcp/5"),),
        protocols=("/a/1", "/b/1"),
        observed_address=address_bytes("/ip4/5.6.7.8/tcp/9"),
        protocol_version="p/1",
        agent_version="agent",
    )
    assert decode_identify(encode_identify(message)) == message
    assert decode_identify(b"") == IdentifyMessage()


def test_addresses_that_cannot_be_dialled_are_left_out() -> None:
    message = IdentifyMessage(
        listen_addresses=(
            address_bytes("/ip4/1.2.3.4/tcp/5"),
            address_bytes(f"/ip4/1.2.3.4/tcp/5/p2p/{BOB_ID}"),
            address_bytes(f"/ip4/1.2.3.4/tcp/6/p2p/{ALICE_ID}"),
            address_bytes("/ip4/0.0.0.0/tcp/5"),
            address_bytes("/ip4/1.2.3.4/tcp/0"),
            address_bytes("/ip4/127.0.0.1/tcp/7"),
            b"\x91\x02nonsense",
        )
    )
    own = f"/ip4/1.2.3.4/tcp/5/p2p/{BOB_ID}"
    assert dialable_addresses(message, peer_id=BOB_ID, seen_at=FAR) == (own,)
    loopback = f"/ip4/127.0.0.1/tcp/7/p2p/{BOB_ID}"
    assert dialable_addresses(message, peer_id=BOB_ID, seen_at=NEAR) == (own, loopback)


def test_a_partial_push_changes_only_what_it_holds() -> None:
    first = remote_peer(
        IdentifyMessage(protocols=("/a/1",), agent_version="old\x1b[31m"),
        peer_id=BOB_ID,
        seen_at=NEAR,
        outbound=True,
    )
    assert first.agent == "old[31m"
    second = updated_peer(first, IdentifyMessage(protocols=("/b/1",)), seen_at=NEAR)
    assert (second.protocols, second.agent, second.outbound) == (("/b/1",), "old[31m", True)


@given(st.binary(max_size=400))
def test_identify_lets_only_refusals_out(data: bytes) -> None:
    try:
        message = decode_identify(data)
    except RemoteProtocolError:
        return
    assert all(
        text.endswith(f"/p2p/{BOB_ID}")
        for text in dialable_addresses(message, peer_id=BOB_ID, seen_at=FAR)
    )


def test_endless_lists_are_cut() -> None:
    message = IdentifyMessage(
        protocols=("x" * 10_000, *(f"/p/{number}" for number in range(10_000))),
        listen_addresses=(address_bytes("/ip4/1.2.3.4/tcp/5"),) * 10_000,
        agent_version="a" * 10_000,
    )
    decoded = decode_identify(encode_identify(message))
    assert len(decoded.protocols) == 256
    assert len(decoded.listen_addresses) == 32
    assert len(decoded.agent_version) == 128
