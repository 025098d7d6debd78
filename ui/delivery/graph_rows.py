"""The causal graph in rows: as words for the table on the screen, and as values for CSV."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from engine.core.ids import ParticipantId
from engine.delivery_views import DeliveryMessage
from ui.delivery.export import csv_of
from ui.delivery.loaded import ABSENT
from ui.delivery.words import (
    came_at_ms,
    held_by_words,
    mark_words,
    names_of_holders,
    time_words,
    utc,
    who_words,
)
from ui.regional import grouped
from ui.translate import tr

_COLUMNS: Final = (
    "message_id",
    "state",
    "sender_id",
    "sender_name",
    "is_own",
    "lamport_timestamp",
    "received_utc",
    "placed_utc",
    "missing_since_utc",
    "sent_utc",
    "late_by_ms",
    "held_by",
    "of",
    "certain_holders",
    "possible_holders",
    "causal_history",
)


def headings() -> tuple[str, ...]:
    return (
        tr("Lamport timestamp"),
        tr("Sender"),
        tr("Time"),
        tr("State"),
        tr("Held by"),
        tr("It names"),
    )


def row_of(message: DeliveryMessage, now: datetime) -> tuple[str, ...]:
    lamport = message.lamport_timestamp
    return (
        tr("not known") if lamport is None else grouped(lamport),
        who_words(message),
        time_words(message, now),
        mark_words(message),
        held_by_words(message),
        grouped(len(message.names)),
    )


def messages_csv(messages: Iterable[DeliveryMessage], names: Mapping[ParticipantId, str]) -> bytes:
    return csv_of(_COLUMNS, (_values(each, names) for each in messages))


def _values(
    each: DeliveryMessage, names: Mapping[ParticipantId, str]
) -> Sequence[str | int | None]:
    is_absent = each.mark in ABSENT
    return (
        each.message_id,
        each.mark.value,
        each.sender_id,
        each.sender_name,
        int(each.is_own),
        each.lamport_timestamp,
        "" if is_absent else utc(came_at_ms(each)),
        utc(each.received_ms) if each.position else "",
        utc(each.received_ms) if is_absent else "",
        utc(each.sent_ms),
        each.late_by_ms,
        each.held_by,
        each.of,
        names_of_holders(each, names, certain=True),
        names_of_holders(each, names, certain=False),
        " ".join(each.names),
    )
