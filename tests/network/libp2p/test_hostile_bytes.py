"""Whatever bytes come, at whatever moment: nothing escapes but a refused connection.

Each layer is fed in turn: Noise messages, secured frames, the muxers behind a finished handshake,
identify on a real stream, and a real exchange that is bent at one place.
"""

import asyncio
import os
import random
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ChatError, RemoteProtocolError, TransportError
from engine.network.libp2p.handshake import SecuredPipe, SecureHandshake
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.mplex import Flag
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.noise import XXHandshake
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.libp2p.tcp import Traffic
from engine.network.libp2p.transports import Transports
from engine.network.libp2p.upgrade import MPLEX, YAMUX, upgrade
from engine.network.libp2p.varint import encode_varint
from tests.patience import PATIENCE_S

RunningHosts = Callable[..., AbstractAsyncContextManager[list[TcpHost]]]
ALICE, BOB = IdentityKey(b"a" * 32), IdentityKey(b"b" * 32)
ONLY_REFUSALS = (RemoteProtocolError, TransportError)


def handshakes() -> tuple[SecureHandshake, SecureHandshake]:
    """Initiator and responder."""
    first, second = (
        SecureHandshake(
            initiator=initiator,
            identity=identity,
            static_private_key=os.urandom(32),
            ephemeral_private_key=os.urandom(32),
        )
        for initiator, identity in ((True, ALICE), (False, BOB))
    )
    return first, second


# --- the handshake --------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.integers(0, 2))
def test_garbage_instead_of_any_handshake_message(garbage: bytes, at: int) -> None:
    reader, writer = handshakes()
    if at != 1:
        reader, writer = writer, reader
    for _ in range(at):
        sides = (reader, writer) if reader.writes_next else (writer, reader)
        sides[1].read_message(sides[0].write_message())
    with pytest.raises(RemoteProtocolError):
        _go_on(reader, garbage)


def _go_on(reader: SecureHandshake, garbage: bytes) -> None:
    """Any 32 bytes are a first message, unless the key in them is weak; but not a third one."""
    reader.read_message(garbage)
    reader.write_message()
    reader.read_message(garbage)


@given(st.integers(0, 2), st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_never_leads_to_a_session(at: int, place: int, change: int) -> None:
    """A changed first message is noticed in the second, for its hash is in every later one."""
    first, second = handshakes()
    sides = {True: (first, second), False: (second, first)}
    refused = False
    for number in range(3):
        writer, reader = sides[number % 2 == 0]
        message = bytearray(writer.write_message())
        if number == at:
            message[place % len(message)] ^= change
        try:
            reader.read_message(bytes(message))
        except RemoteProtocolError:
            refused = True
            break
    assert refused
    assert not (first.finished and second.finished)


@given(st.binary(max_size=200), st.integers(0, 3))
def test_a_second_message_of_a_stranger(payload: bytes, cut: int) -> None:
    """A peer with a right Noise handshake and any payload: no identity, no session."""
    first, _ = handshakes()
    rogue = XXHandshake(
        initiator=False, static_private_key=b"5" * 32, ephemeral_private_key=b"6" * 32
    )
    rogue.read_message(first.write_message())
    message = rogue.write_message(payload)
    with pytest.raises(RemoteProtocolError):
        first.read_message(message[: len(message) - cut])
    assert not first.finished or first.writes_next


# --- after the handshake --------------------------------------------------------------------------


async def rogue(host: TcpHost, muxer: ProtocolId) -> SecuredPipe:
    """A peer that finishes the handshake and then does what the test wants."""
    limits = HostLimits()
    dialling = Transports(Traffic(), make_tls=_no_tls, limits=limits)
    upgraded = await upgrade(
        await dialling.dial(parse_multiaddr(host.addresses()[0])),
        initiator=True,
        identity=IdentityKey(b"r" * 32),
        expected_peer=host.peer_id,
        entropy=os.urandom,
        limits=limits,
        muxers=(muxer,),
    )
    return upgraded.pipe


def _no_tls() -> ssl.SSLContext:
    raise AssertionError("nobody dials /wss here")


def mplex_frame(randomness: random.Random) -> bytes:
    payload = randomness.randbytes(randomness.choice([0, 1, 30, 300]))
    head = randomness.randrange(4) << 3 | randomness.choice(list(Flag))
    return encode_varint(head) + encode_varint(len(payload)) + payload


def yamux_frame(randomness: random.Random) -> bytes:
    payload = randomness.randbytes(randomness.choice([0, 1, 30, 300]))
    kind, flags = randomness.choice([0, 0, 1, 2, 3]), randomness.randrange(16)
    stream_id = randomness.choice([0, 1, 2, 3, 5])
    length = len(payload) if kind == 0 else randomness.choice([0, 1, 2**32 - 1])
    header = bytes([0, kind]) + flags.to_bytes(2, "big") + stream_id.to_bytes(4, "big")
    return header + length.to_bytes(4, "big") + (payload if kind == 0 else b"")


@pytest.mark.parametrize("layer", ["", "/ws"])
@pytest.mark.parametrize(("muxer", "make"), [(YAMUX, yamux_frame), (MPLEX, mplex_frame)])
async def test_nonsense_behind_a_right_handshake(
    running_hosts: RunningHosts,
    caplog: pytest.LogCaptureFixture,
    layer: str,
    muxer: ProtocolId,
    make: Callable[[random.Random], bytes],
) -> None:
    randomness = random.Random(23)
    limits = HostLimits(handshake_timeout_ms=5_000, close_timeout_ms=20)
    async with running_hosts(2, layer=layer, limits=limits) as (alice, bob):
        for number in range(40):
            pipe = await rogue(alice, muxer)
            frames = [make(randomness) for _ in range(randomness.randrange(1, 30))]
            if number % 4 == 0:
                frames.append(randomness.randbytes(200))
            pipe.write(b"".join(frames))
            await asyncio.sleep(0)
            pipe.close()
            await pipe.wait_closed()
        async with asyncio.timeout(PATIENCE_S):
            while alice.connection_count():
                await _turn()
        assert "libp2p.stream_handler_failed" not in alice.counters()
        assert "libp2p.task_failed" not in alice.counters()
        await bob.connect(alice.addresses()[0])
        assert [each.peer_id for each in alice.peers()] == [bob.peer_id]
    assert not caplog.records


async def _turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("layer", ["", "/ws"])
async def test_a_real_exchange_bent_at_one_place(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture, layer: str
) -> None:
    """A proxy changes, drops or doubles one byte of what two hosts say to each other."""
    randomness = random.Random(24)
    limits = HostLimits(handshake_timeout_ms=300, dial_timeout_ms=300)
    async with running_hosts(2, layer=layer, limits=limits) as (alice, bob):
        target = parse_multiaddr(bob.addresses()[0])
        for _ in range(40):
            bend = _Bend(randomness)
            server = await asyncio.start_server(
                partial(_bent, port=target.port, bend=bend), "127.0.0.1", 0
            )
            port = server.sockets[0].getsockname()[1]
            address = f"/ip4/127.0.0.1/tcp/{port}{layer}"
            try:
                remote = await alice.connect(address)
            except ChatError:
                pass
            else:  # bent after the handshake, or not at all
                assert remote.peer_id == bob.peer_id
                await alice.disconnect(PeerId(bob.peer_id))
            server.close()
            await server.wait_closed()
            async with asyncio.timeout(PATIENCE_S):
                while alice.connection_count() or bob.connection_count():
                    await _turn()
                if bend.task is not None:
                    await asyncio.wait((bend.task,))
    assert not caplog.records


class _Bend:
    def __init__(self, randomness: random.Random) -> None:
        self._left = randomness.randrange(1_500)
        self._how = randomness.choice(["change", "drop", "double"])
        self.task: asyncio.Task[object] | None = None
        """The wire's own."""

    def __call__(self, data: bytes) -> bytes:
        at, self._left = self._left, self._left - len(data)
        if not 0 <= at < len(data):
            return data
        place = data[at : at + 1]
        bent = {"change": bytes([place[0] ^ 0x41]), "drop": b"", "double": place * 2}[self._how]
        return data[:at] + bent + data[at + 1 :]


async def _bent(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, bend: _Bend
) -> None:
    bend.task = asyncio.current_task()
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)

    async def forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                sink.write(bend(data))
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()

    await asyncio.gather(forward(reader, far_writer), forward(far_reader, writer))


# --- identify -------------------------------------------------------------------------------------


async def test_garbage_as_an_answer_to_identify(running_hosts: RunningHosts) -> None:
    randomness = random.Random(25)
    async with running_hosts(1) as (alice,):
        for _ in range(30):
            peer = await rogue(alice, MPLEX)
            garbage = encode_message(HEADER) + encode_message("/ipfs/id/1.0.0")
            garbage += randomness.randbytes(randomness.randrange(1, 200))
            # Alice asks on the first stream that she opens: 0.
            peer.write(encode_varint(Flag.MESSAGE_RECEIVER) + encode_varint(len(garbage)) + garbage)
            peer.write(encode_varint(Flag.CLOSE_RECEIVER) + b"\x00")
            await peer.wait_closed()
        assert sum(alice.counters().values()) == 30
        assert alice.peers() == []
