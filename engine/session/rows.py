"""Turns a message's content into the row that a timeline shows.

Spans are found once, when a row is stored, never while painting.
"""

from typing import assert_never

from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Join,
    Leave,
    Profile,
    ProfileUpdate,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, ParticipantId, Position, UnixMs
from engine.core.markup import find_spans
from engine.core.records import MessageRecord, SpanRecord

TEXT, CREATED, JOINED, LEFT, UNSUPPORTED = "text", "created", "joined", "left", "unsupported"
RENAMED = "renamed"
ASKED, ACCEPTED, DECLINED, WITHDRAWN = "asked", "accepted", "declined", "withdrawn"

LATEST_MS = UnixMs(253_370_764_800_000)
"""The year 9999.  A later foreign time is stored as this one: no calendar goes further."""


def makes_row(body: Body) -> bool:
    """Whether a timeline shows ``body``; ``row_of`` takes nothing else."""
    return not isinstance(body, ProfileUpdate)


def row_of(  # noqa: PLR0913 - one keyword per fact of the row
    conversation_id: ConversationId,
    content: Content,
    *,
    position: Position,
    sender_id: ParticipantId,
    is_own: bool,
    now_ms: UnixMs,
    waiting: bool = False,
    late: bool = False,
    sender_name: str = "",
) -> MessageRecord:
    """Raises LocalProtocolError for content that makes no row.

    ``sender_name``: the sender's name before this message.  A change of name stores the old and the
    new one, each on a line; otherwise no one could tell later who took the name.
    """
    kind, text = _kind_and_text(content)
    if kind == RENAMED:
        text = f"{sender_name}\n{text}"
    spans: tuple[SpanRecord, ...] = find_spans(text) if kind == TEXT else ()
    return MessageRecord(
        conversation_id=conversation_id,
        position=position,
        sender_id=sender_id,
        is_own=is_own,
        kind=kind,
        text=text,
        spans=spans,
        sent_ms=min(content.sent_ms, LATEST_MS),
        received_ms=now_ms,
        waiting=waiting,
        late=late,
    )


def _kind_and_text(  # noqa: PLR0911 - one case per kind of content
    content: Content,
) -> tuple[str, str]:
    body = content.body
    match body:
        case Text():
            return TEXT, body.text
        case Created():
            return CREATED, body.name
        case Join():
            return JOINED, body.name
        case Leave():
            return LEFT, ""
        case Profile():
            return RENAMED, body.name
        case ContactRequest() | ContactAnswer():
            return _kind_of_contact(body), body.name
        case Unsupported():
            return UNSUPPORTED, body.kind
        case ProfileUpdate():
            raise LocalProtocolError("a profile update makes no row")
        case _:
            assert_never(body)


def _kind_of_contact(body: ContactRequest | ContactAnswer) -> str:
    if isinstance(body, ContactRequest):
        return ASKED
    if body.accepted:
        return ACCEPTED
    return WITHDRAWN if body.withdrawn else DECLINED
