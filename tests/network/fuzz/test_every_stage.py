"""Junk at each stage of a live connection over loopback, from whoever dials and whoever answers.

Up to its stage the rude side does everything right, with the real parts; then it says junk, and
holds still, half-closes, closes or cuts.  Afterwards nothing is left: no task, no socket, no line
in the log, no warning, and the host still serves whoever behaves.  Each connection that junk ended
before it was established has a counter that says why.
"""

import asyncio
import gc
import os
import random
import ssl
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from engine.core.errors import ChatError, RemoteProtocolError, TransportError
from engine.network.libp2p.handshake import NOISE, SecureHandshake, secure
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.identify import IDENTIFY
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.mplex import Flag
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.multistream import (
    HEADER,
    Initiator,
    Responder,
    encode_message,
    negotiate,
)
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import ProtocolId, RemotePeer
from engine.network.libp2p.tcp import Traffic
from engine.network.libp2p.transports import Transports
from engine.network.libp2p.upgrade import MPLEX, YAMUX
from engine.network.libp2p.varint import encode_varint
from engine.network.libp2p.yamux import HEADER as YAMUX_HEADER
from tests.patience import PATIENCE_S

LIMITS = HostLimits(
    handshake_timeout_ms=80, dial_timeout_ms=500, stream_timeout_ms=60, close_timeout_ms=20
)
LOOPBACK = "/ip4/127.0.0.1/tcp/0"
RUDE = IdentityKey(b"r" * 32)
TIMES = 8
LAYERS = pytest.mark.parametrize("layer", ["", "/ws"])


def junk(chance: random.Random) -> bytes:
    noise = chance.randbytes(chance.choice([0, 1, 2, 20, 300, 70_000]))
    framed = [
        noise,
        len(noise[:60_000]).to_bytes(2, "big") + noise[:60_000],
        encode_varint(len(noise)) + noise,
        b"\xff\xff" + noise,
        encode_message(HEADER) + noise,
        encode_message(HEADER) + encode_message("/noise") + noise,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + noise,
    ]
    return chance.choice(framed)


# --- the rude side, up to a stage -----------------------------------------------------------------

Stage = Callable[[Pipe, bool], Awaitable[Pipe]]
"""From a fresh pipe, and whether it was dialled, to the pipe on which junk comes next."""


async def _at_multistream(pipe: Pipe, dialled: bool) -> Pipe:
    del dialled
    return pipe


async def _at_noise(pipe: Pipe, dialled: bool) -> Pipe:
    await negotiate(Initiator([NOISE]) if dialled else Responder({NOISE}), pipe, pipe.write)
    return pipe


def _shaking(dialled: bool) -> SecureHandshake:
    return SecureHandshake(
        initiator=dialled,
        identity=RUDE,
        static_private_key=os.urandom(32),
        ephemeral_private_key=os.urandom(32),
    )


async def _at_the_last_noise_message(pipe: Pipe, dialled: bool) -> Pipe:
    """After one message in each direction if dialled; else after the first has come."""
    await _at_noise(pipe, dialled)
    handshake = _shaking(dialled)
    if dialled:
        message = handshake.write_message()
        pipe.write(len(message).to_bytes(2, "big") + message)
    length = int.from_bytes(await pipe.read_exactly(2), "big")
    handshake.read_message(await pipe.read_exactly(length))
    return pipe


async def _at_secured_frames(pipe: Pipe, dialled: bool) -> Pipe:
    """The handshake is done, and what comes next is not even encrypted."""
    await _at_noise(pipe, dialled)
    await secure(pipe, _shaking(dialled))
    return pipe


async def _at_the_muxers(pipe: Pipe, dialled: bool) -> Pipe:
    await _at_noise(pipe, dialled)
    return await secure(pipe, _shaking(dialled))


def _at_frames_of(muxer: ProtocolId) -> Stage:
    async def reach(pipe: Pipe, dialled: bool) -> Pipe:
        secured = await _at_the_muxers(pipe, dialled)
        machine = Initiator([muxer]) if dialled else Responder({muxer})
        await negotiate(machine, secured, secured.write)
        return secured

    return reach


def _at_a_stream_of(muxer: ProtocolId, *, answering: bool) -> Stage:
    """A stream of ours, or our answer to the first of theirs, which asks who we are."""

    async def reach(pipe: Pipe, dialled: bool) -> Pipe:
        secured = await _at_frames_of(muxer)(pipe, dialled)
        said = encode_message(HEADER)
        if answering:
            await secured.read_exactly(1)  # they have opened it
            said += encode_message(IDENTIFY)
        number = (2 if dialled else 1) if answering else (1 if dialled else 2)
        if muxer == YAMUX:
            flags = 2 if answering else 1
            secured.write(YAMUX_HEADER.pack(0, 0, flags, number, len(said) + 70_000) + said)
        else:
            flag = Flag.MESSAGE_RECEIVER if answering else Flag.MESSAGE_INITIATOR
            new = b"" if answering else encode_varint(Flag.NEW_STREAM) + b"\0"
            secured.write(new + encode_varint(flag) + encode_varint(len(said) + 70_000) + said)
        return secured

    return reach


STAGES: dict[str, Stage] = {
    "multistream": _at_multistream,
    "noise": _at_noise,
    "last noise message": _at_the_last_noise_message,
    "secured frames": _at_secured_frames,
    "muxers": _at_the_muxers,
    "yamux frames": _at_frames_of(YAMUX),
    "mplex frames": _at_frames_of(MPLEX),
    "a yamux stream": _at_a_stream_of(YAMUX, answering=False),
    "an mplex stream": _at_a_stream_of(MPLEX, answering=False),
    "identify over yamux": _at_a_stream_of(YAMUX, answering=True),
    "identify over mplex": _at_a_stream_of(MPLEX, answering=True),
}
AT_EACH_STAGE = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


async def misbehave(stage: Stage, below: Pipe, dialled: bool, chance: random.Random) -> bool:
    """Junk at the stage, and one of the ways to end it; returns when the socket is gone.

    False if a busy machine did not get so far within the other side's time for handshakes.
    """
    try:
        pipe = await stage(below, dialled)
    except TransportError:
        below.abort()
        await below.wait_closed()
        return False
    pipe.write(junk(chance))
    await asyncio.sleep(0)
    how = chance.choice(["hold", "close", "cut", "more"])
    if how == "close":
        below.close()
    elif how == "cut":
        below.abort()
    elif how == "more":
        pipe.write(junk(chance))
    async with asyncio.timeout(PATIENCE_S):
        if how in {"hold", "more"}:  # it is the other side that ends it, or has done with us
            with suppress(TimeoutError, RemoteProtocolError, TransportError):
                async with asyncio.timeout(LIMITS.handshake_timeout_ms / 1_000 * 4):
                    await below.wait_closed()
            below.abort()
        await below.wait_closed()
    return True


# --- what must be left ----------------------------------------------------------------------------


def sockets() -> int:
    """Open descriptors of this process that are sockets; 0 where the system does not say."""
    folder = Path("/dev/fd")
    found = 0
    for entry in list(folder.iterdir()) if folder.is_dir() else ():
        with suppress(OSError):  # the folder's own is closed again
            found += stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode)
    return found


@asynccontextmanager
async def nothing_left(layer: str) -> AsyncIterator[TcpHost]:
    """A host, which must end as if nothing had happened, and be of use until then."""
    tasks, before = asyncio.all_tasks(), sockets()
    host = TcpHost(b"h" * 32, [LOOPBACK + layer], limits=LIMITS)
    await host.start()
    listening = sockets()
    try:
        yield host
        async with asyncio.timeout(PATIENCE_S):
            while host.connection_count():
                await _turn()
        assert sockets() <= listening  # fewer, if what other tests have left went meanwhile
        friend = TcpHost(b"f" * 32, [])
        await friend.start()
        await _patiently_connect(friend, host.addresses()[0])
        assert [peer.peer_id for peer in host.peers()] == [friend.peer_id]
        await friend.stop()
        counters = host.counters()
        assert "libp2p.stream_handler_failed" not in counters
        assert "libp2p.task_failed" not in counters
    finally:
        await host.stop()
    await _turn()
    assert asyncio.all_tasks() == tasks
    assert sockets() <= before
    gc.collect()  # whatever was left unclosed warns now, and warnings are errors


async def _patiently_connect(friend: TcpHost, address: str) -> None:
    """The host's time for a handshake is short, and a busy machine may need longer than that."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(TransportError):
                await friend.connect(address)
                return


async def _turn() -> None:
    await asyncio.sleep(0)


def refused(host: TcpHost) -> int:
    """Connections that have a counter; one that took too long has two."""
    counters = dict(host.counters())
    counters.pop("libp2p.handshake_timeout", None)
    return sum(counters.values())


def transports() -> Transports:
    return Transports(Traffic(), make_tls=_no_tls, limits=LIMITS)


def _no_tls() -> ssl.SSLContext:
    raise AssertionError("nobody dials /wss here")


# --- who dials ------------------------------------------------------------------------------------


@LAYERS
@AT_EACH_STAGE
async def test_junk_from_whoever_dials(
    stage: Stage, layer: str, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(f"dials {layer}")
    reached = 0
    async with nothing_left(layer) as host:
        known: list[RemotePeer] = []  # junk may happen to say who one is: nothing, say
        host.on_peer_connected(known.append)
        address = parse_multiaddr(host.addresses()[0])
        for _ in range(TIMES):
            with suppress(TransportError):  # an upgrade that a busy machine was too slow for
                below = await transports().dial(address)
                reached += await misbehave(stage, below, True, chance)
        async with asyncio.timeout(PATIENCE_S):
            while host.connection_count():
                await _turn()
        assert host.peers() == []
        assert refused(host) + len(known) >= TIMES
        assert reached
    assert not caplog.records


@pytest.mark.parametrize("layer", ["", "/ws"])
async def test_junk_from_a_bare_socket(layer: str, caplog: pytest.LogCaptureFixture) -> None:
    """For /ws this is junk instead of an upgrade."""
    chance = random.Random(f"socket {layer}")
    async with nothing_left(layer) as host:
        port = parse_multiaddr(host.addresses()[0]).port
        for _ in range(3 * TIMES):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(junk(chance))
            if chance.random() < 0.5:
                writer.write_eof()
            with suppress(ConnectionError):
                async with asyncio.timeout(PATIENCE_S):
                    while await reader.read(65_536):
                        pass
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        async with asyncio.timeout(PATIENCE_S):
            while host.connection_count():
                await _turn()
        assert refused(host) == 3 * TIMES
    assert not caplog.records


# --- who answers ----------------------------------------------------------------------------------


@LAYERS
@AT_EACH_STAGE
async def test_junk_from_whoever_answers(
    stage: Stage, layer: str, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(f"answers {layer}")
    rude: set[asyncio.Task[bool]] = set()

    async def answer(below: Pipe) -> bool:
        return await misbehave(stage, below, False, chance)

    async with nothing_left(layer) as host:
        listener = await transports().listen(
            parse_multiaddr(LOOPBACK + layer),
            lambda pipe: rude.add(asyncio.create_task(answer(pipe))),
        )
        for _ in range(TIMES):
            with suppress(ChatError):
                peer = await host.connect(str(listener.address))
                await host.disconnect(peer.peer_id)
        assert any(await asyncio.gather(*rude))
        listener.close()
        await listener.wait_closed()
        assert len(rude) == TIMES
    assert not caplog.records
