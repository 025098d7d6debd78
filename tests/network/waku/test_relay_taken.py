"""A message is written once a stream has it, and taken once a peer has shown that it read it.

Asking peers costs little.
"""

import asyncio

import pytest

from engine.core.counters import Counters
from engine.core.errors import TransportError, TransportFault
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.waku.relay.taken import MAX_UNCONFIRMED, Progress, Unconfirmed
from tests.network.waku.memory_host import Lane, MemoryStream
from tests.network.waku.relay_net import TOPIC, Net, waku_data
from tests.patience import PATIENCE_S


class Peer:
    """Confirms when told to, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.questions = asyncio.Semaphore(0)
        self.answers = asyncio.Semaphore(0)

    async def confirm(self) -> None:
        self.asked += 1
        self.questions.release()
        await self.answers.acquire()


class PeerStream(MemoryStream):
    def __init__(self, peer: Peer) -> None:
        super().__init__(PeerId("peer"), ProtocolId("/test"), Lane(), Lane())
        self._peer = peer

    async def confirm(self) -> None:
        await self._peer.confirm()


async def test_a_message_is_taken_when_its_peer_reads_and_not_before() -> None:
    async with Net() as net:
        one, other = await net.pair()
        there = [each.outward for each in one.host.streams]
        for lane in there:
            await lane.set(frozen=True)
        progress = Progress()
        assert await one.relay.publish(TOPIC, waku_data(1), progress=progress) == 1
        for _ in range(100):
            await asyncio.sleep(0)
        assert not progress.taken.done()
        for lane in there:
            await lane.set(frozen=False)
        async with asyncio.timeout(PATIENCE_S):
            await progress.taken
        await other.until(lambda: other.inbox == [1])


async def test_a_message_is_written_when_a_stream_takes_it_and_not_before() -> None:
    async with Net() as net:
        one, _ = await net.pair()
        there = [each.outward for each in one.host.streams]
        for lane in there:
            await lane.set(frozen=True)
        progress = Progress()
        await one.relay.publish(TOPIC, waku_data(1), progress=progress)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not progress.written.done()
        for lane in there:
            await lane.set(frozen=False)
        async with asyncio.timeout(PATIENCE_S):
            await progress.written


async def test_each_message_is_written_in_its_turn() -> None:
    unconfirmed = Unconfirmed(pause_s=0, counters=Counters())
    first, second, third = Progress(), Progress(), Progress()
    for progress in (first, None, second, third):
        unconfirmed.add(progress)
    unconfirmed.wrote(2)
    assert [each.written.done() for each in (first, second, third)] == [True, False, False]
    second.written.set_result(None)  # By another peer.
    unconfirmed.wrote(2)
    assert third.written.done()
    assert not any(each.taken.done() for each in (first, second, third))


async def test_one_peer_that_reads_is_enough() -> None:
    async with Net() as net:
        one, other = await net.pair()
        third = await net.node("third")
        await one.host.connect("/memory/third")
        await one.until_meshed(2)
        for stream in one.host.streams:
            if stream.peer_id == third.host.peer_id:
                await stream.outward.set(frozen=True)
        progress = Progress()
        assert await one.relay.publish(TOPIC, waku_data(1), progress=progress) == 2
        async with asyncio.timeout(PATIENCE_S):
            await progress.taken
        await other.until(lambda: other.inbox == [1])
        assert third.inbox == []


async def test_a_peer_that_refused_a_ping_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream lasts, and it reads: one failure must not cost all later ticks."""
    refusals, confirm = [1], MemoryStream.confirm

    async def confirm_later(stream: MemoryStream) -> None:
        if refusals:
            refusals.pop()
            raise TransportError("no ping now", TransportFault.FAILED)
        await confirm(stream)

    monkeypatch.setattr(MemoryStream, "confirm", confirm_later)
    async with Net() as net:
        one, _ = await net.pair()
        for number in (1, 2):
            progress = Progress()
            await one.relay.publish(TOPIC, waku_data(number), progress=progress)
            async with asyncio.timeout(PATIENCE_S):
                await progress.taken
        assert one.counters["relay.confirm_failed"] == 1


async def test_a_burst_costs_one_question_and_one_more() -> None:
    peer, unconfirmed = Peer(), Unconfirmed(pause_s=0, counters=Counters())
    confirming = asyncio.create_task(unconfirmed.confirm(PeerStream(peer)))
    burst = [Progress() for _ in range(200)]
    for progress in burst:
        unconfirmed.add(progress)
        unconfirmed.wrote(1)
        await asyncio.sleep(0)
    await peer.questions.acquire()
    assert not any(each.taken.done() for each in burst)
    peer.answers.release()
    await peer.questions.acquire()
    assert burst[0].taken.done()
    assert not burst[-1].taken.done()
    peer.answers.release()
    await burst[-1].taken
    assert peer.asked == 2
    confirming.cancel()


async def test_what_nobody_waits_for_is_not_asked_about() -> None:
    peer, unconfirmed = Peer(), Unconfirmed(pause_s=0, counters=Counters())
    confirming = asyncio.create_task(unconfirmed.confirm(PeerStream(peer)))
    answered_by_another = Progress()
    answered_by_another.taken.set_result(None)
    for progress in (None, answered_by_another, None):
        unconfirmed.add(progress)
        unconfirmed.wrote(1)
        for _ in range(10):
            await asyncio.sleep(0)
    assert peer.asked == 0
    confirming.cancel()


async def test_what_was_written_to_a_broken_stream_is_not_confirmed_by_the_next() -> None:
    peer, unconfirmed = Peer(), Unconfirmed(pause_s=0, counters=Counters())
    lost, kept = Progress(), Progress()
    unconfirmed.add(lost)
    unconfirmed.add(kept)
    unconfirmed.wrote(1)
    unconfirmed.lose_written()
    confirming = asyncio.create_task(unconfirmed.confirm(PeerStream(peer)))
    unconfirmed.wrote(1)
    peer.answers.release()
    await kept.taken
    assert not lost.taken.done()
    confirming.cancel()


async def test_so_many_wait_for_one_peer_and_no_more() -> None:
    counters = Counters()
    unconfirmed = Unconfirmed(pause_s=0, counters=counters)
    for _ in range(MAX_UNCONFIRMED + 3):
        unconfirmed.add(Progress())
    assert counters["relay.too_many_unconfirmed"] == 3
