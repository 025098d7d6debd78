"""What a session is told of a copy that it handed to the network, and who waits for it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.ids import ContentTopic, ConversationId, MessageId, UnixMs, WakuHash
from engine.core.sds.vocabulary import SendPurpose
from engine.core.waku import WakuMessage
from engine.events import MessageAdded
from engine.network.memory import MemoryNetwork
from engine.network.transport import Receipt, Transport
from engine.network.wrapped import WrappedTransport
from engine.runtime import conversation_runner
from engine.runtime.inspection.copies import CopyNotes
from engine.runtime.inspection.live import Taps
from engine.runtime.job_queue import JobQueue
from engine.runtime.outgoing import Outgoing
from engine.runtime.recorded_queries import Recording
from engine.session.inputs import CopiesAccepted
from engine.session.transitions import Publish
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person

if TYPE_CHECKING:
    from engine.runtime.runner_context import RunnerContext
    from engine.session.contract import ConversationRecord

PLACE = ConversationId("place")
OWN = (MessageId("own"),)
HASH = WakuHash(bytes(32))


@pytest.mark.parametrize("peers", [0, 2])
async def test_a_copy_counts_once_it_is_taken_also_if_no_stream_was_open(peers: int) -> None:
    """A peer's stream may be opened just after the copy was queued for it."""
    taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def publish(_: WakuMessage) -> Receipt:
        return Receipt(waku_hash=HASH, peers=peers, taken=taken)

    counters = Counters()
    network = SimpleNamespace(publish=publish)
    notes = CopyNotes(lambda: UnixMs(7))
    context = SimpleNamespace(
        counters=counters,
        transport=network,
        recording=Recording(),
        copies=notes,
        faults=None,
        taps=Taps(),
    )
    jobs = JobQueue(counters)
    outgoing = Outgoing(
        cast("RunnerContext", context),
        jobs,
        record=lambda: cast("ConversationRecord", SimpleNamespace(conversation_id=PLACE)),
        alone=lambda: False,
    )
    sending = asyncio.create_task(outgoing.send_all())
    message = WakuMessage(payload=b"text", content_topic=ContentTopic("/causerie/1/out/proto"))
    await outgoing.enqueue(Publish(message=message, purpose=SendPurpose.CONTENT, message_ids=OWN))
    await outgoing.flush(timeout_ms=PATIENCE_S * 1_000)
    job = jobs.take()
    assert job is not None
    assert job.input_ == CopiesAccepted(message_ids=OWN, peers=0, waku_hash=HASH)
    assert len(jobs) == 0
    (noted,) = notes.of(PLACE, OWN[0]).kept
    assert (noted.peers, noted.size, noted.taken_ms) == (peers, len(message.payload), None)
    taken.set_result(None)
    await jobs.wait(PATIENCE_S)
    job = jobs.take()
    assert job is not None
    assert job.input_ == CopiesAccepted(message_ids=OWN, peers=max(peers, 1), waku_hash=HASH)
    assert noted.taken_ms is not None
    sending.cancel()


class SlowToWrite(WrappedTransport):
    """Its peers take a copy when the test says so."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.unwritten: list[asyncio.Future[None]] = []
        self.news = asyncio.Event()
        self.takes_all = True

    async def publish(self, message: WakuMessage, /) -> Receipt:
        receipt = await super().publish(message)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.unwritten.append(written)
        self.news.set()
        if self.takes_all:
            self.take_all()
        return replace(receipt, written=written)

    def take_all(self) -> None:
        self.takes_all = True
        while self.unwritten:
            self.unwritten.pop().set_result(None)


class Sender(Person):
    """Somebody else is online, too."""

    slow: SlowToWrite

    async def start(self) -> Person:
        await self.network.attach("somebody").start()
        return await super().start()

    def _worn(self) -> Transport:
        self.slow = SlowToWrite(self.transport)
        return self.slow

    def shows(self, text: str) -> bool:
        return any(isinstance(e, MessageAdded) and e.message.text == text for e in self.told)


async def test_a_text_is_shown_to_its_author_after_it_was_written_to_a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Painting takes longer than the way to the socket, and the others wait for it."""
    sender = Sender("sender", tmp_path, MemoryNetwork())
    await sender.start()
    try:
        group = await sender.engine.groups.create("Tea")
        monkeypatch.setattr(conversation_runner, "HAND_OVER_MS", PATIENCE_S * 1_000)
        slow = sender.slow
        slow.takes_all = False
        slow.news.clear()
        sending = asyncio.create_task(sender.engine.timeline.send_text(group, "hello"))
        async with asyncio.timeout(PATIENCE_S):
            await slow.news.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not sending.done()
        assert not sender.shows("hello")
        slow.take_all()
        async with asyncio.timeout(PATIENCE_S):
            await sending
        assert sender.shows("hello")
    finally:
        await sender.engine.stop()


async def test_a_peer_that_takes_nothing_delays_no_text_for_long(tmp_path: Path) -> None:
    sender = Sender("sender", tmp_path, MemoryNetwork())
    await sender.start()
    try:
        group = await sender.engine.groups.create("Tea")
        sender.slow.takes_all = False
        async with asyncio.timeout(PATIENCE_S):
            await sender.engine.timeline.send_text(group, "hello")
        assert sender.shows("hello")
        assert sender.slow.unwritten
    finally:
        await sender.engine.stop()
