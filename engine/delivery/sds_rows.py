"""Turns steps of an SDS channel into rows: what each input and its transition mean for messages."""

from collections.abc import Mapping
from math import log
from typing import Final

from engine.core.ids import HolderSource, MessageId
from engine.core.sds.bloom import HASHES, bits_of, fill_of
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import (
    AppendToLog,
    AskStore,
    DependencyLost,
    Message,
    MessageDelivered,
    MissingEntry,
    MissingState,
    OutgoingChanged,
    OutgoingState,
    PutHolder,
    PutIncoming,
    PutMissing,
    PutOutgoing,
    RepairRequested,
    Transition,
    Write,
)
from engine.delivery.channel_rows import ChannelRows
from engine.delivery.contract import Kind
from engine.delivery.steps import SdsStep

_NO_BLOOM: Final = (0, 0, None)


def add_sds(
    rows: ChannelRows, step: SdsStep, sent_ms: Mapping[MessageId, int], *, bare: bool
) -> None:
    """``sent_ms``: times of the messages that became timeline rows in this step.

    ``bare``: there is no runtime to report Store queries, so this does.
    """
    at_ms, input_, transition = step
    if isinstance(input_, MessageReceived):
        _add_received(rows, at_ms, input_, transition)
    _add_writes(rows, step)
    for event in transition.events:
        match event:
            case MessageDelivered(message=message, position=position):
                lamport = position.lamport_timestamp
                rows.place(at_ms, message.message_id, lamport, message.sender_id)
                _add_message(rows, message, sent_ms.get(message.message_id))
            case DependencyLost(entry=entry):
                rows.add(Kind.LOST, at_ms, entry.message_id, peer=entry.sender_id)
            case OutgoingChanged(message_id=message_id, state=OutgoingState.FAILED):
                rows.add(Kind.GIVEN_UP, at_ms, message_id)
            case RepairRequested(message_ids=message_ids):
                requests = _requests(transition)
                for message_id in message_ids:
                    asked = requests.get(message_id)
                    rows.add(Kind.REPAIR_REQUESTED, at_ms, message_id, attempt=asked)
            case _:
                pass
    for send in transition.sends:
        if bare and isinstance(send, AskStore):
            rows.add(Kind.STORE_QUERY, at_ms, amount=len(send.missing))


def _add_received(
    rows: ChannelRows, at_ms: int, received: MessageReceived, transition: Transition
) -> None:
    message, waku_hash = received.message, received.retrieval_hint
    kind, message_id = Kind.DUPLICATE, message.message_id
    kept: type[Write] | None = None
    if message.is_ephemeral:
        kind = Kind.EPHEMERAL_RECEIVED
    elif message.is_sync:
        kind = Kind.SYNC_RECEIVED
    elif (kept := _kept(message_id, transition)) is not None:
        kind = Kind.RECEIVED
    is_content = kind in {Kind.RECEIVED, Kind.DUPLICATE}
    via = rows.copy_via(is_repair=received.repaired_by is not None)
    rows.add(
        kind,
        at_ms,
        message_id if is_content else None,
        waku_hash=waku_hash,
        lamport=message.lamport_timestamp,
        peer=received.repaired_by or message.sender_id,
        wire_bytes=rows.bytes_of(waku_hash),
        via=via,
    )
    if kind is Kind.RECEIVED:
        if kept is PutIncoming:
            _add_message(rows, message, None)
        rows.store_hit(at_ms, message_id, waku_hash)


def _kept(message_id: MessageId, transition: Transition) -> type[Write] | None:
    """The kind of write that kept the message: logged or waiting; None if neither."""
    for write in transition.writes:
        if isinstance(write, AppendToLog):
            if write.entry.position.message_id == message_id:
                return AppendToLog
        elif isinstance(write, PutIncoming) and write.entry.message.message_id == message_id:
            return PutIncoming
    return None


def _add_message(rows: ChannelRows, message: Message, sent_ms: int | None) -> None:
    rows.add_message(
        message.message_id,
        message.lamport_timestamp or 0,
        message.sender_id,
        sent_ms=sent_ms,
        parents=[entry.message_id for entry in message.causal_history],
        content=message.content,
    )


def _add_writes(rows: ChannelRows, step: SdsStep) -> None:
    bloom: tuple[int, int, int | None] | None = None
    for write in step.transition.writes:
        match write:
            case PutOutgoing(entry=outgoing):
                rows.note_attempt(outgoing.message_id, outgoing.attempts)
            case PutMissing(entry=missing) if _is_news(missing, step.at_ms):
                wanted = missing.entry
                rows.add(Kind.MISSING, step.at_ms, wanted.message_id, peer=wanted.sender_id)
            case PutHolder(entry=holder):
                is_sure = holder.source is not HolderSource.BLOOM
                if not is_sure and bloom is None:
                    bloom = _bloom(step)
                rows.add(
                    Kind.ACKED if is_sure else Kind.POSSIBLY_ACKED,
                    step.at_ms,
                    holder.message_id,
                    peer=holder.participant_id,
                    ack_source=holder.source.value,
                    bloom=_NO_BLOOM if is_sure or bloom is None else bloom,
                )
            case _:
                pass


def _is_news(missing: MissingEntry, at_ms: int) -> bool:
    return missing.state is MissingState.WANTED and missing.since_ms == at_ms


def _requests(transition: Transition) -> dict[MessageId, int]:
    return {
        write.entry.entry.message_id: write.entry.requests
        for write in transition.writes
        if isinstance(write, PutMissing)
    }


def _bloom(step: SdsStep) -> tuple[int, int, int | None]:
    """The filter's bits, the bits per id, and the number of ids that its fill suggests."""
    data = step.input.message.bloom_filter if isinstance(step.input, MessageReceived) else None
    if not data or len(data) % 8:
        return _NO_BLOOM
    bits, fill = bits_of(len(data)), fill_of(data)
    held = None if fill >= 1 else round(-bits / HASHES * log(1 - fill))
    return bits, HASHES, held
