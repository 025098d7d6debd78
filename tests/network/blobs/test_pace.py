"""How fast the bytes of files go out: of all requests together, and less beside texts."""

import asyncio

import pytest

from engine.network.blobs.client import BlobClient
from engine.network.blobs.pace import FilePace, PaceLimits
from engine.network.blobs.server import PIECE_BYTES, BlobServing
from tests.network.blobs.test_blob_service import CHUNKS, NAMES, BlobNet, Shelf, got

LIMITS = PaceLimits(bytes_per_s=1_000, beside_texts_per_s=100, quiet_s=1.0, burst_s=0.1)


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def sent_in(
    pace: FilePace, clock: Clock, seconds: float, *, piece: int = 10, talking: bool = False
) -> int:
    """How many bytes one who writes as fast as may be gets out."""
    until_s, sent = clock.now_s + seconds, 0
    while True:
        if talking:
            pace.give_way()
        wait_s = pace.admit(piece).wait_s
        if clock.now_s + wait_s > until_s:
            return sent
        clock.now_s += wait_s
        sent += piece


def test_in_the_long_run_it_is_as_fast_as_it_may_be() -> None:
    clock = Clock()
    assert sent_in(FilePace(LIMITS, clock), clock, 10) == pytest.approx(10_000, rel=0.02)


def test_beside_texts_it_is_slower_until_it_is_quiet() -> None:
    clock = Clock()
    pace = FilePace(LIMITS, clock)
    assert sent_in(pace, clock, 1) == pytest.approx(1_000, rel=0.15)
    assert sent_in(pace, clock, 10, talking=True) == pytest.approx(1_000, rel=0.15)
    clock.now_s += 2
    assert sent_in(pace, clock, 5) == pytest.approx(5_000, rel=0.05)


def test_what_was_not_used_for_long_is_not_sent_at_once() -> None:
    clock = Clock()
    pace = FilePace(LIMITS, clock)
    clock.now_s += 1_000
    at_once = 0
    while not pace.admit(10).wait_s:
        at_once += 10
    assert at_once == pytest.approx(LIMITS.bytes_per_s * LIMITS.burst_s, abs=10)


def test_pieces_go_out_in_the_order_in_which_they_came() -> None:
    pace = FilePace(LIMITS, Clock())
    waits = [pace.admit(100).wait_s for _ in range(5)]
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(0.3)


def test_a_file_is_fast_right_after_the_message_that_it_came_with() -> None:
    """20 MiB at 40 MB/s, although a message came just now."""
    clock = Clock()
    pace = FilePace(PaceLimits(), clock)
    pace.give_way()
    seconds = 20 * 1024 * 1024 / 40e6
    assert sent_in(pace, clock, seconds, piece=PIECE_BYTES) > 20 * 1024 * 1024


async def test_requests_of_all_peers_share_one_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a text slows all of them."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay_s: float) -> None:
        waits.append(delay_s)
        await sleep(0)

    pieces = 2 * -(-len(CHUNKS[0]) // PIECE_BYTES)
    slow = PaceLimits(bytes_per_s=PIECE_BYTES, beside_texts_per_s=1_000, burst_s=0.0)
    async with BlobNet() as net:
        host, server = await net.serving(BlobServing(pace=slow))
        server.shelf = Shelf()
        askers = [await net.anybody() for _ in range(2)]
        for asker in askers:
            await asker.connect(host.addresses()[0])
        monkeypatch.setattr("engine.network.blobs.server.asyncio.sleep", noted)
        await asyncio.gather(*(got(BlobClient(each), host.peer_id, NAMES[:1]) for each in askers))
        assert max(waits) == pytest.approx(pieces - 1, abs=2)
        server.give_way()
        await got(BlobClient(askers[0]), host.peer_id, NAMES[1:2])
        assert max(waits) > 2 * PIECE_BYTES / 1_000


def test_what_gave_way_holds_nobody_up() -> None:
    clock = Clock()
    pace = FilePace(LIMITS, clock)
    pace.admit(100)
    before = pace.admit(100)
    for _ in range(50):
        pace.give_back(pace.admit(100))
    after = pace.admit(100)
    assert after.wait_s == pytest.approx(before.wait_s + before.takes_s)
