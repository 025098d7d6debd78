"""Samples one conversation while it is watched.  Implements ``live_views.DeliveryWatch``.

A sample reads only what changed since the last one, by its ids; of a quiet conversation it reads
nothing.
"""

from collections.abc import Callable
from typing import Final

from engine.codec.mvds_id import message_id_of
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.mvds.vocabulary import Epoch, Record
from engine.core.ports import ProfileStore
from engine.live_views import LiveSample, PairDelivery, RecordView
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.inspection.figures import LOOKED_AT
from engine.runtime.inspection.live import Followed, buffer_view, read_rows
from engine.runtime.runner_context import RunnerContext
from engine.session.pair.factory import PAIR_CONFIG

MOST_RECORDS: Final = 200


class DeliveryWatch:
    """``engine.live_views.DeliveryWatch``."""

    def __init__(
        self,
        context: RunnerContext,
        conversation_id: ConversationId,
        runner: Callable[[ConversationId], ConversationRunner],
    ) -> None:
        """``runner`` raises if the conversation is gone."""
        self._context = context
        self._conversation_id = conversation_id
        self._runner = runner
        self._tap = context.taps.open(conversation_id, context.clock.steady_ms())
        self._followed = Followed()
        self._is_first = True

    async def sample(self) -> LiveSample:
        conversation_id, tap, context = self._conversation_id, self._tap, self._context
        runner = self._runner(conversation_id)
        earlier: tuple[UnixMs, ...] = ()
        if tap.anything:
            tap.anything = False
            new, tap.placed_before = tap.placed - tap.placed_before, tap.placed
            read = await context.storage.run(
                read_rows,
                context.store,
                conversation_id,
                self._followed.unsettled(),
                LOOKED_AT if self._is_first else new,
            )
            self._followed.learn(read, others_of(runner))
            if self._is_first:
                times = (row.record.received_ms for row in read.newest)
                earlier = tuple(sorted(at_ms for at_ms in times if at_ms < tap.since_ms))
            self._is_first = False
        to_send, to_handle = runner.queued
        return LiveSample(
            conversation_id=conversation_id,
            at_ms=context.clock.steady_ms(),
            since_ms=tap.since_ms,
            placed=tap.placed,
            sent=tap.sent.view(),
            received=tap.received.view(),
            repairs_asked=tap.repairs_asked,
            skew=tap.take_skew(),
            buffers=buffer_view(
                runner.buffers(),
                to_send=to_send,
                to_handle=to_handle,
                clock_ms=context.clock.clock_ms(),
            ),
            own=self._followed.views(lambda each: context.copies.of(conversation_id, each).total),
            counted=dict(runner.counted()),
            earlier=earlier,
        )

    def close(self) -> None:
        self._context.taps.close(self._conversation_id, self._tap)


def others_of(runner: ConversationRunner) -> frozenset[ParticipantId]:
    """The members besides us, as far as they have not left; none in an open channel."""
    view = runner.view()
    return frozenset(
        member.participant_id
        for member in (view.members if view else ())
        if not member.is_self and not member.has_left
    )


def read_records(
    store: ProfileStore, conversation_id: ConversationId, now_ms: UnixMs
) -> PairDelivery:
    """On the storage thread."""
    records, _ = store.mvds_records(conversation_id, Epoch(0), limit=MOST_RECORDS + 1)
    shown = records[:MOST_RECORDS]
    ids = [message_id_of(record.message_id) for record in shown]
    rows = store.messages(conversation_id, ids)
    epoch_ms = PAIR_CONFIG.epoch_ms
    return PairDelivery(
        conversation_id=conversation_id,
        at_ms=now_ms,
        epoch=now_ms // epoch_ms,
        epoch_ms=epoch_ms,
        records=tuple(
            _record_view(record, epoch_ms, is_shown=message_id in rows)
            for record, message_id in zip(shown, ids, strict=True)
        ),
        is_all=len(records) <= MOST_RECORDS,
    )


def _record_view(record: Record, epoch_ms: int, *, is_shown: bool) -> RecordView:
    epoch = None if record.given_up else record.send_epoch
    return RecordView(
        message_id=message_id_of(record.message_id),
        record=record.type.value,
        send_count=record.send_count,
        send_epoch=epoch,
        next_ms=None if epoch is None else UnixMs(epoch * epoch_ms),
        created_ms=record.created_ms,
        size=record.body_bytes,
        is_shown=is_shown,
    )
