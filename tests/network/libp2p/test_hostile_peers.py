"""What peers may do to a host: garbage, floods, lies about themselves, silence, and crowding.

Each is dropped and counted by its reason, costs few tasks and little of a turn, and the next one is
served.  Bytes that are wrong in smaller ways are the module on hostile bytes.
"""

import asyncio
import random

import pytest

from engine.codec.libp2p import IdentifyMessage, encode_identify, encode_public_key
from engine.core.errors import TransportError
from engine.network.libp2p.identify import IDENTIFY
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.varint import encode_varint
from engine.network.libp2p.yamux import FRAMES_PER_CALL, INITIAL_WINDOW
from engine.network.libp2p.yamux import HEADER as FRAME
from tests.network.libp2p.loopback_hosts import RunningHosts, rogue, send_raw
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("data", "counter"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10, "libp2p.multistream_no_newline"),
        (b"\x16\x03\x01" * 30, "libp2p.multistream_no_newline"),
        (b"\xff" * 100, "libp2p.multistream_message_too_long"),
        (b"", "libp2p.inbound_handshake_lost"),
        (
            encode_message(HEADER) + encode_message("/tls/1.0.0") * 40,
            "libp2p.multistream_too_many_proposals",
        ),
        (
            encode_message(HEADER) + encode_message("/noise") + b"\x00\x05hello",
            "libp2p.noise_message_too_short",
        ),
        (
            encode_message(HEADER) + encode_message("/noise") + b"\x00\x20" + bytes(32),
            "libp2p.noise_weak_key",
        ),
        (
            encode_message(HEADER)
            + encode_message("/noise")
            + (b"\x00\x20" + b"\x09" + bytes(31))
            + (b"\x00\x80" + bytes(128)),
            "libp2p.noise_bad_tag",
        ),
    ],
)
async def test_garbage_on_the_socket_is_dropped_and_counted(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture, data: bytes, counter: str
) -> None:
    async with running_hosts(2) as (alice, bob):
        await send_raw(alice, data)
        assert alice.counters() == {counter: 1}
        await bob.connect(alice.addresses()[0])  # and alice serves on
    assert not caplog.records


async def test_random_garbage_never_gets_further(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture
) -> None:
    randomness = random.Random(20)
    async with running_hosts(2) as (alice, bob):
        start = encode_message(HEADER) + encode_message("/noise")
        for number in range(60):
            prefix = start[: randomness.choice([0, 5, len(start)])]
            await send_raw(alice, prefix + randomness.randbytes(randomness.randrange(400)))
            assert sum(alice.counters().values()) == number + 1
        await bob.connect(alice.addresses()[0])
    assert not caplog.records


async def test_a_peer_that_turns_bad_after_the_handshake(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        flood = await rogue(alice)
        flood.write(FRAME.pack(0, 0, 1, 1, INITIAL_WINDOW + 1) + bytes(100))
        await flood.wait_closed()
        assert alice.counters()["libp2p.yamux_window_exceeded"] == 1
        randomness = random.Random(21)
        for _ in range(30):
            peer = await rogue(alice)
            peer.write(b"\x07" + randomness.randbytes(randomness.randrange(11, 400)))
            await peer.wait_closed()
        assert alice.counters()["libp2p.yamux_bad_version"] == 30
        await bob.connect(alice.addresses()[0])
        assert [each.peer_id for each in alice.peers()] == [bob.peer_id]


async def test_streams_opened_and_reset_at_once_start_few_tasks(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(2, limits=HostLimits(max_inbound_streams=8)) as (alice, bob):
        peer = await rogue(alice)
        opened_and_reset = b"".join(
            FRAME.pack(0, 1, 1, number, 0) + FRAME.pack(0, 1, 8, number, 0)
            for number in range(1, 2_001, 2)
        )
        before = len(asyncio.all_tasks())
        peer.write(opened_and_reset)
        while "libp2p.stream_handlers_limit" not in alice.counters():
            assert len(asyncio.all_tasks()) <= before + 8
            await asyncio.sleep(0)
        peer.abort()
        await bob.connect(alice.addresses()[0])


async def test_a_peer_that_says_goodbye_again_and_again_does_not_put_it_off(
    running_hosts: RunningHosts,
) -> None:
    limits = HostLimits(close_timeout_ms=50, handshake_timeout_ms=60_000)
    async with running_hosts(1, limits=limits) as (alice,):
        peer = await rogue(alice)
        pipe_closed = asyncio.ensure_future(peer.wait_closed())
        async with asyncio.timeout(PATIENCE_S):
            while not pipe_closed.done():
                peer.write(FRAME.pack(0, 3, 0, 0, 0))
                await asyncio.wait((pipe_closed,), timeout=0.01)


async def test_no_flood_of_frames_is_handled_in_one_turn(running_hosts: RunningHosts) -> None:
    async with running_hosts(1) as (alice,):
        peer = await rogue(alice)
        ears = Ears()
        peer.attach(ears)
        pings = range(20_000)
        peer.write(b"".join(FRAME.pack(0, 2, 1, 0, number) for number in pings))
        async with asyncio.timeout(PATIENCE_S):
            while not ears.pongs or ears.pongs[-1] != pings[-1]:
                ears.news.clear()
                await ears.news.wait()
        assert ears.pongs == list(pings)
        assert ears.most_at_once <= 2 * FRAMES_PER_CALL
        peer.abort()


class Ears:
    """Collects pongs, and how many a Noise message held at most."""

    def __init__(self) -> None:
        self.pongs: list[int] = []
        self.most_at_once = 0
        self.news = asyncio.Event()
        self._rest = b""

    def bytes_received(self, data: bytes) -> None:
        data, before = self._rest + data, len(self.pongs)
        whole = len(data) - len(data) % FRAME.size
        self._rest = data[whole:]
        for _, kind, flags, _, opaque in FRAME.iter_unpack(data[:whole]):
            if (kind, flags) == (2, 2):
                self.pongs.append(opaque)
        self.most_at_once = max(self.most_at_once, len(self.pongs) - before)
        self.news.set()

    def pipe_lost(self, error: Exception | None) -> None: ...

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


def identify_answer(message: IdentifyMessage) -> bytes:
    encoded = encode_identify(message)
    return encode_varint(len(encoded)) + encoded


@pytest.mark.parametrize(
    ("answer", "counter"),
    [
        (
            identify_answer(
                IdentifyMessage(public_key=encode_public_key(IdentityKey(b"x" * 32).public_key))
            ),
            "libp2p.identify_foreign_key",
        ),
        (b"\xff\xff\xff\xff", "libp2p.identify_too_long"),
        (b"\x02\xff\xff", "libp2p.identify_undecodable"),
    ],
)
async def test_a_peer_that_identifies_itself_wrongly_is_dropped(
    running_hosts: RunningHosts, answer: bytes, counter: str
) -> None:
    async with running_hosts(1) as (alice,):
        peer = await rogue(alice)
        reply = encode_message(HEADER) + encode_message(IDENTIFY) + answer
        # Alice is the server of the session: her identify request is stream 2.
        peer.write(FRAME.pack(0, 0, 2, 2, len(reply)) + reply)
        await peer.wait_closed()
        assert alice.counters()[counter] == 1
        assert alice.peers() == []


async def test_silence_in_the_handshake_ends_it(running_hosts: RunningHosts) -> None:
    async with running_hosts(1, limits=HostLimits(handshake_timeout_ms=400)) as (alice,):
        answer = await send_raw(alice, encode_message(HEADER), end=False)
        assert answer == encode_message(HEADER)
        assert alice.counters()["libp2p.handshake_timeout"] == 1
        peer = await rogue(alice)  # never answers identify
        await peer.wait_closed()
        assert alice.counters()["libp2p.handshake_timeout"] == 2


async def test_connections_are_bounded(running_hosts: RunningHosts) -> None:
    limits = HostLimits(max_connections=1)
    async with running_hosts(3, limits=limits) as (alice, bob, carol):
        await bob.connect(alice.addresses()[0])
        with pytest.raises(TransportError):
            await carol.connect(alice.addresses()[0])
        assert alice.counters()["libp2p.inbound_connections_limit"] == 1
        with pytest.raises(TransportError, match="1 connections are open already"):
            await bob.connect(carol.addresses()[0])


async def test_strangers_leave_room_for_own_dials(running_hosts: RunningHosts) -> None:
    limits = HostLimits(max_connections=2, max_inbound_connections=1)
    async with running_hosts(3, limits=limits) as (alice, bob, carol):
        await bob.connect(alice.addresses()[0])
        with pytest.raises(TransportError):
            await carol.connect(alice.addresses()[0])
        await alice.connect(carol.addresses()[0])
