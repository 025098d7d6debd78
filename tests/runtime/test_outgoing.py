"""What a session is told of a copy that it handed to the network."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from engine.core.counters import Counters
from engine.core.ids import ContentTopic, MessageId, WakuHash
from engine.core.sds.vocabulary import SendPurpose
from engine.core.waku import WakuMessage
from engine.network.transport import Receipt
from engine.runtime.job_queue import JobQueue
from engine.runtime.outgoing import Outgoing
from engine.session.inputs import CopiesAccepted
from engine.session.transitions import Publish
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from engine.runtime.runner_context import RunnerContext
    from engine.session.contract import ConversationRecord

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
    context = SimpleNamespace(counters=counters, transport=network, recorder=None)
    jobs = JobQueue(counters)
    outgoing = Outgoing(
        cast("RunnerContext", context),
        jobs,
        record=lambda: cast("ConversationRecord", None),
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
    taken.set_result(None)
    await jobs.wait(PATIENCE_S)
    job = jobs.take()
    assert job is not None
    assert job.input_ == CopiesAccepted(message_ids=OWN, peers=max(peers, 1), waku_hash=HASH)
    sending.cancel()
