"""Turns steps of an MVDS node into rows.

MVDS delivers in no order.  A pair assigns places itself and reports them by its timeline rows.  For
a bare node, in a simulation, timestamp and id give the place.
"""

from engine.codec.mvds_id import message_id_of, mvds_id_of
from engine.core.ids import MessageId, ParticipantId
from engine.core.mvds.vocabulary import (
    Acknowledged,
    AppendMessage,
    GivenUp,
    MvdsDelivered,
    MvdsEvent,
    MvdsMessage,
    PayloadReceived,
    PutRecord,
    RecordType,
    SendPayload,
)
from engine.delivery.channel_rows import ChannelRows
from engine.delivery.contract import AckSource, Kind
from engine.delivery.steps import MvdsStep

MS_PER_SECOND = 1_000


def add_mvds(rows: ChannelRows, step: MvdsStep, *, bare: bool) -> None:
    """``bare``: no pair assigns the places, so this does."""
    at_ms, input_, transition = step
    for write in transition.writes:
        if isinstance(write, PutRecord):
            _add_record(rows, at_ms, write)
    if bare and isinstance(input_, AppendMessage):
        _place(rows, at_ms, input_.message, rows.own_id)
    if isinstance(input_, PayloadReceived):
        _add_payload(rows, step, input_)
    for event in transition.events:
        _add_event(rows, at_ms, event, bare=bare)
    for send in transition.sends:
        if isinstance(send, SendPayload):
            for mvds_id in send.requests:
                rows.add(Kind.REPAIR_REQUESTED, at_ms, message_id_of(mvds_id), peer=send.peer_id)


def _add_event(rows: ChannelRows, at_ms: int, event: MvdsEvent, *, bare: bool) -> None:
    message_id, peer_id = message_id_of(event.message_id), event.peer_id
    match event:
        case MvdsDelivered():
            if bare:
                _place(rows, at_ms, event.message, peer_id)
        case Acknowledged():
            source = AckSource.MVDS.value
            rows.add(Kind.ACKED, at_ms, message_id, peer=peer_id, ack_source=source)
        case GivenUp():
            rows.add(Kind.GIVEN_UP, at_ms, message_id, peer=peer_id)


def _add_record(rows: ChannelRows, at_ms: int, write: PutRecord) -> None:
    record = write.record
    message_id = message_id_of(record.message_id)
    if record.type is RecordType.REQUEST and record.created_ms == at_ms:
        rows.add(Kind.MISSING, at_ms, message_id, peer=record.peer_id)


def _add_payload(rows: ChannelRows, step: MvdsStep, received: PayloadReceived) -> None:
    at_ms, arrived = step.at_ms, rows.arrived
    waku_hash = arrived.waku_hash if arrived else None
    wire_bytes, via = rows.bytes_of(None), rows.copy_via()
    new = {e.message_id for e in step.transition.events if isinstance(e, MvdsDelivered)}
    ids = list(map(mvds_id_of, received.payload.messages))
    for mvds_id in ids:
        is_new = mvds_id in new
        new.discard(mvds_id)
        rows.add(
            Kind.RECEIVED if is_new else Kind.DUPLICATE,
            at_ms,
            message_id_of(mvds_id),
            waku_hash=waku_hash,
            peer=received.peer_id,
            wire_bytes=wire_bytes,
            via=via,
        )
        if is_new:
            rows.store_hit(at_ms, message_id_of(mvds_id), waku_hash)
        wire_bytes = None
    if not ids:
        rows.add(
            Kind.SYNC_RECEIVED,
            at_ms,
            waku_hash=waku_hash,
            peer=received.peer_id,
            wire_bytes=wire_bytes,
            via=via,
        )


def _place(rows: ChannelRows, at_ms: int, message: MvdsMessage, sender: ParticipantId) -> None:
    message_id: MessageId = message_id_of(mvds_id_of(message))
    sent_ms = message.timestamp * MS_PER_SECOND  # Comparable with times of joining.
    if rows.place(at_ms, message_id, sent_ms, sender):
        rows.add_message(
            message_id, sent_ms, sender, sent_ms=sent_ms, parents=(), content=message.body
        )
