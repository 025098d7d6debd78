"""Turns a message's content into the row that a timeline shows, or into what it says of another.

Spans are found once, when a row is stored, never while painting.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple, assert_never

from msgspec.structs import replace

from engine.core.blobs.manifest import Manifest
from engine.core.content import (
    ANNOTATION_KINDS,
    AdminEntry,
    Annotation,
    Attachment,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    Created,
    Edit,
    FilesHeld,
    Governing,
    Join,
    KeysWanted,
    KeyWraps,
    Leave,
    PrekeyTold,
    Profile,
    ProfileUpdate,
    Reaction,
    Retraction,
    Text,
    Unsupported,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.markup import find_spans
from engine.core.ports import PutMessage
from engine.core.records import (
    AnnotationRecord,
    FileRecord,
    MessageRecord,
    SpanRecord,
    TransferRecord,
    TransferState,
)
from engine.core.shown_text import MENTION

TEXT, CREATED, JOINED, LEFT, UNSUPPORTED = "text", "created", "joined", "left", "unsupported"
FILE = "file"
SAID = frozenset([TEXT, FILE])
"""What is worth a notification: the others tell who came and went."""
RENAMED = "renamed"
ASKED, ACCEPTED, DECLINED, WITHDRAWN = "asked", "accepted", "declined", "withdrawn"
REACTION, EDIT, RETRACTION = "reaction", "edit", "retraction"
WRITTEN_HERE, LIVE, STORE, REPAIR = "written_here", "live", "store", "repair"

LATEST_MS = UnixMs(253_370_764_800_000)
"""The year 9999.  A later foreign time is stored as this one: no calendar goes further."""


class Way(NamedTuple):
    """By which way a message came here first, as ``engine.answers.Arrival`` names it."""

    arrival: str
    repaired_by: ParticipantId | None = None


UNKNOWN_WAY = Way("unknown")
WRITTEN = Way(WRITTEN_HERE)


def makes_row(body: Body) -> bool:
    """Whether a timeline shows ``body``; ``row_of`` takes nothing else.

    An annotation that could not be decoded says nothing that could be shown.
    """
    if isinstance(body, Unsupported):
        return body.kind not in ANNOTATION_KINDS
    return not isinstance(body, ProfileUpdate | FilesHeld | Annotation | Governing)


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
    own_id: ParticipantId | None = None,
    way: Way = UNKNOWN_WAY,
    spans: tuple[SpanRecord, ...] | None = None,
) -> MessageRecord:
    """Raises LocalProtocolError for content that makes no row.

    ``own_id``: who we are, to see whether we are mentioned.  ``spans``: those of its text, if they
    were found before.

    ``sender_name``: the sender's name before this message.  A change of name stores the old and the
    new one, each on a line; otherwise no one could tell later who took the name.
    """
    kind, text = _kind_and_text(content)
    if kind == RENAMED:
        text = f"{sender_name}\n{text}"
    said = _said_in(content.body)
    if spans is None:
        spans = spans_in(said) if said else ()
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
        reply_to=said.reply_to if said else None,
        forwarded=said is not None and said.forwarded,
        mentions_me=said is not None and not is_own and own_id in said.mentions,
        arrival=way.arrival,
        repaired_by=way.repaired_by,
        file=_file_of(content.body, is_own=is_own),
    )


def _said_in(body: Body) -> Text | None:
    """The text or the caption, with what it answers and whom it mentions."""
    match body:
        case Text():
            return body
        case Attachment(caption=caption):
            return caption
        case (
            Created() | Join() | Leave() | Profile() | ContactRequest() | ContactAnswer()
            | ProfileUpdate() | FilesHeld() | Reaction() | Edit() | Retraction() | Unsupported()
            | AdminEntry() | PrekeyTold() | KeyWraps() | KeysWanted()
        ):  # fmt: skip
            return None
        case _:
            assert_never(body)


def _file_of(body: Body, *, is_own: bool) -> FileRecord | None:
    if not isinstance(body, Attachment):
        return None
    return FileRecord(
        name=body.name,
        media_type=body.media_type,
        size=body.size,
        width=body.width,
        height=body.height,
        transfer=None if body.manifest is None else _transfer_of(body.manifest, is_own=is_own),
    )


def _transfer_of(manifest: Manifest, *, is_own: bool) -> TransferRecord:
    state = TransferState.OFFERING if is_own else TransferState.OFFERED
    return TransferRecord(manifest=manifest, state=state)


def put_row(record: MessageRecord, body: Body, *, came_ms: UnixMs | None = None) -> PutMessage:
    """``came_ms``: when the message came, if it was made to wait."""
    has_waited = came_ms is not None and came_ms < record.received_ms
    return PutMessage(
        message=record,
        data=body.data if isinstance(body, Attachment) else b"",
        came_ms=came_ms if has_waited else None,
    )


def annotation_of(  # noqa: PLR0913 - one keyword per fact
    conversation_id: ConversationId,
    content: Content,
    *,
    position: Position,
    sender_id: ParticipantId,
    is_own: bool,
    now_ms: UnixMs,
    own_id: ParticipantId,
) -> AnnotationRecord:
    """What ``content`` says of another message.

    Raises LocalProtocolError for content that is no annotation.
    """
    body = content.body
    if not isinstance(body, Annotation):
        raise LocalProtocolError("this speaks of no other message")
    record = AnnotationRecord(
        conversation_id=conversation_id,
        position=position,
        kind=_kind_of_annotation(body),
        target_id=body.target_id,
        sender_id=sender_id,
        is_own=is_own,
        sent_ms=min(content.sent_ms, LATEST_MS),
        received_ms=now_ms,
    )
    match body:
        case Reaction():
            return replace(record, emoji=body.emoji, removed=body.removed)
        case Edit(text=said):
            mentions_me = not is_own and own_id in said.mentions
            return replace(record, text=said.text, spans=spans_in(said), mentions_me=mentions_me)
        case Retraction():
            return record
        case _:
            assert_never(body)


def retargeted(body: Body, replaced: Mapping[MessageId, MessageId]) -> Body:
    """``body``, speaking of the messages that replaced those of which it spoke."""
    match body:
        case Text(reply_to=str() as reply_to):
            return dataclasses.replace(body, reply_to=replaced.get(reply_to, reply_to))
        case Attachment(caption=Text(reply_to=str() as reply_to) as caption):
            caption = dataclasses.replace(caption, reply_to=replaced.get(reply_to, reply_to))
            return dataclasses.replace(body, caption=caption)
        case Reaction() | Retraction():
            return replace(body, target_id=replaced.get(body.target_id, body.target_id))
        case Edit():
            target_id = replaced.get(body.target_id, body.target_id)
            return dataclasses.replace(body, target_id=target_id)
        case (
            Text() | Attachment() | Created() | Join() | Leave() | Profile() | ContactRequest()
            | ContactAnswer() | ProfileUpdate() | FilesHeld() | Unsupported()
            | AdminEntry() | PrekeyTold() | KeyWraps() | KeysWanted()
        ):  # fmt: skip
            return body
        case _:
            assert_never(body)


def spans_in(said: Text) -> tuple[SpanRecord, ...]:
    """Markup and mentions, ascending.  Nothing begins or ends within a mention."""
    mentions = [
        SpanRecord(kind=MENTION, start=start, length=length, target=who)
        for who, (start, length) in zip(said.mentions, said.mention_places, strict=False)
    ]
    found = find_spans(said.text, said.mention_places)
    return tuple(sorted([*found, *mentions], key=lambda span: (span.start, -span.length)))


def _kind_of_annotation(body: Annotation) -> str:
    match body:
        case Reaction():
            return REACTION
        case Edit():
            return EDIT
        case Retraction():
            return RETRACTION
        case _:
            assert_never(body)


def _kind_and_text(  # noqa: PLR0911 - one case per kind of content
    content: Content,
) -> tuple[str, str]:
    body = content.body
    match body:
        case Text():
            return TEXT, body.text
        case Attachment():
            return FILE, body.caption.text
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
        case (
            ProfileUpdate() | FilesHeld() | Reaction() | Edit() | Retraction()
            | AdminEntry() | PrekeyTold() | KeyWraps() | KeysWanted()
        ):  # fmt: skip
            raise LocalProtocolError("this makes no row")
        case _:
            assert_never(body)


def _kind_of_contact(body: ContactRequest | ContactAnswer) -> str:
    if isinstance(body, ContactRequest):
        return ASKED
    if body.accepted:
        return ACCEPTED
    return WITHDRAWN if body.withdrawn else DECLINED
