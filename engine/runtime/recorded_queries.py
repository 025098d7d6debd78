"""Passes a runner's activity to the delivery recorder, if there is one.

It reports each batch once it is durable, each copy once the network has it, and each Store query
once it is over, after the messages it fetched.  Recording may begin and end at any time, so whoever
reports asks ``Recording`` each time.
"""

from itertools import count
from typing import assert_never

from engine.core.history.queries import ByHash, QueryEnded, QueryStarted
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord
from engine.delivery.contract import Protocol
from engine.delivery.recorder import Recorder
from engine.delivery.row_builder import Copy, Which
from engine.network.transport import Receipt
from engine.runtime.commit_batch import CommitBatch
from engine.session.contract import ConversationRecord
from engine.session.transitions import Publish


class Recording:
    """Who records the deliveries of this profile just now; None: nobody."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder


def which_is(record: ConversationRecord) -> Which:
    match record:
        case ContactRecord():
            return Which(record.conversation_id, Protocol.MVDS)
        case OpenChannelRecord():
            return Which(record.conversation_id, Protocol.SDS, record.sender_id)
        case GroupRecord():
            return Which(record.conversation_id, Protocol.SDS)
        case _:
            assert_never(record)


def record_batch(recorder: Recorder, record: ConversationRecord, batch: CommitBatch) -> None:
    if batch.steps:
        recorder.took(which_is(record), batch.steps, batch.writes)


def record_copy(
    recorder: Recorder, record: ConversationRecord, publish: Publish, receipt: Receipt
) -> None:
    copy = Copy(
        publish.purpose,
        publish.message_ids,
        publish.repairs,
        receipt.waku_hash,
        len(publish.message.payload),
        receipt.peers,
    )
    recorder.published(which_is(record), copy)


class RecordedQueries:
    """Reports the queries of one conversation; None: of none that is recorded."""

    def __init__(self, recording: Recording | None = None, which: Which | None = None) -> None:
        self._recording = recording or Recording()
        self._which = which
        self._numbers = count(1)
        self._running: dict[int, tuple[int, int]] = {}
        """Maps a query id, which restarts after a failure, to its number here and its hash
        count."""

    def started(self, started: QueryStarted) -> None:
        hashes = len(started.query.hashes) if isinstance(started.query, ByHash) else 0
        self._running[started.query_id] = next(self._numbers), hashes

    def feeds(self, query_id: int | None) -> None:
        """What the session makes durable from here on was fetched by this query; None: by none."""
        recorder, which = self._recording.recorder, self._which
        if recorder is None or which is None:
            return
        number = None if query_id is None else self._running.get(query_id, (None, 0))[0]
        recorder.asks(which, number)

    def ended(self, ended: QueryEnded) -> None:
        number, hashes = self._running.pop(ended.query_id, (None, 0))
        recorder, which = self._recording.recorder, self._which
        if recorder is not None and which is not None and number is not None:
            recorder.asked(which, number, hashes=hashes, end=ended.end.value)

    def forget(self) -> None:
        """Drop the running queries without reporting them."""
        self.feeds(None)
        self._running.clear()
