"""What a TCP pipe reads into: small for a quiet peer, large for one that sends much."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from engine.network.libp2p.tcp import TcpPipe, Traffic

SMALL, LARGE = 8 * 1024, 256 * 1024


class Sink:
    def __init__(self) -> None:
        self.got: list[bytes] = []

    def bytes_received(self, data: bytes) -> None:
        self.got.append(data)

    def pipe_lost(self, error: Exception | None) -> None: ...

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


def filled(pipe: TcpPipe, data: bytes) -> int:
    """Put into the pipe's buffer what the loop would; how much of it."""
    buffer = pipe.get_buffer(-1)
    taken = data[: len(buffer)]
    buffer[: len(taken)] = taken
    pipe.buffer_updated(len(taken))
    return len(taken)


@given(st.lists(st.integers(1, 3 * LARGE), max_size=12))
def test_what_is_read_is_handed_on_whole_and_is_nobody_elses_later(sizes: list[int]) -> None:
    async def scenario() -> None:
        traffic, sink = Traffic(), Sink()
        pipe = TcpPipe(traffic)
        pipe.attach(sink)
        sent = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
        for data in sent:
            rest = data
            while rest:
                rest = rest[filled(pipe, rest) :]
        assert b"".join(sink.got) == b"".join(sent)
        assert traffic.received == sum(sizes)

    asyncio.run(scenario())


async def test_room_is_given_to_whom_fills_it_and_taken_back() -> None:
    pipe = TcpPipe(Traffic())
    pipe.attach(Sink())
    assert len(pipe.get_buffer(-1)) == SMALL
    filled(pipe, bytes(SMALL))
    assert len(pipe.get_buffer(-1)) == LARGE
    filled(pipe, bytes(LARGE))
    filled(pipe, bytes(SMALL))
    assert len(pipe.get_buffer(-1)) == LARGE
    filled(pipe, bytes(100))
    assert len(pipe.get_buffer(-1)) == SMALL
