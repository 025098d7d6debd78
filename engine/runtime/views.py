"""Builds the read models that listeners get from stored rows and membership.

A group message's delivery state is derived at every read from its holders, which only grow, and its
audience: the members who had joined when it was sent, and everyone who proved to hold it since,
even if they left.  So a member who leaves never moves the state backwards.  Nor does a join that
becomes known late, because "held" is written down when it is first reached.

In a pair the state is the stored one, since the other acknowledges each message.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from msgspec.structs import replace

from engine.answers import HolderView, ReactorView, TimelinePage, VersionView
from engine.core.drafts import draft_mentions, draft_text
from engine.core.ids import (
    DeliveryState,
    HolderSource,
    ParticipantId,
    UnixMs,
)
from engine.core.problems import FailureReason, FileFault, FileProblem
from engine.core.records import (
    ContactRecord,
    DeliveryRecord,
    GroupRecord,
    MemberRecord,
    MessageRecord,
    OpenChannelRecord,
    SpanRecord,
    TransferRecord,
    TransferState,
)
from engine.core.sds.vocabulary import HolderEntry
from engine.core.shown_text import with_names, without_marks
from engine.core.stand_in_key import is_stand_in
from engine.core.stored import (
    ConversationSummary,
    StoredAnnotation,
    StoredMessage,
    StoredPage,
    StoredQuote,
    StoredReaction,
    StoredReactor,
    StoredVersion,
)
from engine.crypto.identity import fingerprint_of
from engine.crypto.pair import safety_number
from engine.events import (
    AnnotationKind,
    AnnotationView,
    ContactView,
    ConversationView,
    DeliveryView,
    MemberView,
    MessageKind,
    MessageView,
    OpenChannelView,
    QuoteView,
    ReactionView,
)
from engine.file_views import FileState, FileView
from engine.governance_views import DeedView
from engine.persistence.rules import QUOTED_CHARACTERS
from engine.session.contract import ConversationRecord
from engine.session.group.deeds import DEED, Deed, deed_in
from engine.session.open.rows import stranger_name
from engine.text_spans import SpanKind, TextSpan

ACKNOWLEDGED = "acknowledged"
"""The source for a pair: the other acknowledged the message."""

FILE_STATES = {
    TransferState.OFFERED: FileState.OFFERED,
    TransferState.WANTED: FileState.WAITING,
    TransferState.OFFERING: FileState.COMPLETE,
    TransferState.PAUSED: FileState.PAUSED,
    TransferState.COMPLETE: FileState.COMPLETE,
    TransferState.FAILED: FileState.FAILED,
}

Members = Mapping[ParticipantId, MemberRecord]


def message_view(
    stored: StoredMessage,
    members: Members,
    own_id: ParticipantId,
    about: ConversationRecord | None = None,
) -> MessageView:
    """``about``: the conversation, unless it is a group."""
    record = stored.record
    said_ms = record.sent_ms if stored.edited_ms is None else stored.edited_ms
    deed = deed_view(deed_in(record.text), members, own_id) if record.kind == DEED else None
    text, spans = ("", ()) if deed else shown_text(record.text, record.spans, members)
    return MessageView(
        conversation_id=record.conversation_id,
        position=record.position,
        sender_id=record.sender_id,
        sender_name=sender_name(record.sender_id, members, about),
        is_own=record.is_own,
        kind=MessageKind(record.kind),
        text=text,
        spans=spans,
        sent_ms=record.sent_ms,
        delivery=_delivery(stored, members, own_id, said_ms, about) if record.is_own else None,
        waiting=record.waiting,
        late=record.late,
        quote=_quote_view(stored, members),
        reactions=tuple(_reaction_view(one, members) for one in stored.reactions),
        more_reactions=stored.more_reactions,
        edited_ms=stored.edited_ms,
        retracted=stored.retracted,
        forwarded=record.forwarded and not stored.retracted,
        mentions_me=record.mentions_me,
        file=_file_of(record),
        deed=deed,
        retracted_by="" if stored.deleted_by is None else name_of(stored.deleted_by, members),
    )


def deed_view(deed: Deed, members: Members, own_id: ParticipantId) -> DeedView:
    return DeedView(
        kind=deed.kind,
        about=deed.about,
        about_name="" if deed.about is None else name_of(deed.about, members),
        about_self=deed.about == own_id,
        text=deed.text,
    )


def _file_of(said: MessageRecord | StoredQuote) -> FileView | None:
    file = said.file
    if file is None:
        return None
    shown = FileView(
        name=file.name,
        media_type=file.media_type,
        size=file.size,
        width=file.width,
        height=file.height,
    )
    if file.transfer is None:
        return shown
    return _blob_view(shown, file.transfer, sender_id=said.sender_id, is_own=said.is_own)


def _blob_view(
    file: FileView, transfer: TransferRecord, *, sender_id: ParticipantId, is_own: bool
) -> FileView:
    """As it is stored; ``engine.runtime.files`` knows how far it is at the moment."""
    fault = transfer.fault if transfer.state is TransferState.FAILED else ""
    return replace(
        file,
        thumbnail=transfer.manifest.thumbnail,
        state=FILE_STATES[transfer.state],
        is_upload=is_own,
        held_whole_by=tuple(who for who in transfer.holders if who != sender_id),
        problem=FileProblem(fault=FileFault(fault)) if fault else None,
    )


def shown_text(
    text: str, spans: tuple[SpanRecord, ...], members: Members
) -> tuple[str, tuple[TextSpan, ...]]:
    """``text`` with everybody who is mentioned under their present name, and its spans."""
    text, spans = _with_present_names(text, spans, members)
    return text, tuple(
        TextSpan(kind=SpanKind(s.kind), start=s.start, length=s.length, target=s.target)
        for s in spans
    )


def _with_present_names(
    text: str, spans: tuple[SpanRecord, ...], members: Members
) -> tuple[str, tuple[SpanRecord, ...]]:
    names = {
        span.target: f"@{name_of(ParticipantId(span.target), members)}"
        for span in spans
        if span.kind == SpanKind.MENTION
    }
    return with_names(text, spans, names) if names else (text, spans)


def _quote_view(stored: StoredMessage, members: Members) -> QuoteView | None:
    message_id, quote = stored.record.reply_to, stored.quote
    if message_id is None or stored.retracted:
        return None
    if quote is None:
        return QuoteView(message_id=message_id, from_before=stored.quotes_before)
    return QuoteView(
        message_id=message_id,
        position=quote.position,
        sender_id=quote.sender_id,
        sender_name=name_of(quote.sender_id, members),
        is_own=quote.is_own,
        text=_beginning(quote, members),
        retracted=quote.retracted,
        hidden=quote.hidden,
        file=_file_of(quote),
    )


def _beginning(quote: StoredQuote, members: Members) -> str:
    text, spans = _with_present_names(quote.text, quote.spans, members)
    return without_marks(text, spans)[:QUOTED_CHARACTERS]


def quote_of(stored: StoredMessage) -> StoredQuote:
    """A row that is shown, as another one would quote it."""
    record = stored.record
    is_said = record.kind in {MessageKind.TEXT, MessageKind.FILE}
    name = record.file.name if record.file else ""
    return StoredQuote(
        position=record.position,
        sender_id=record.sender_id,
        is_own=record.is_own,
        text=(record.text or name) if is_said else "",
        spans=record.spans if is_said else (),
        retracted=stored.retracted,
        hidden=False,
        file=record.file,
    )


def _reaction_view(reaction: StoredReaction, members: Members) -> ReactionView:
    return ReactionView(
        emoji=reaction.emoji,
        count=reaction.count,
        mine=reaction.mine,
        pending=reaction.pending,
        names=tuple(name_of(who, members) for who in reaction.participant_ids),
    )


def annotation_view(annotation: StoredAnnotation, members: Members) -> AnnotationView:
    return AnnotationView(
        kind=AnnotationKind(annotation.kind),
        message_id=annotation.message_id,
        target_id=annotation.target_id,
        target_text=_beginning(annotation.target, members),
        target_file=_file_of(annotation.target),
        sender_id=annotation.sender_id,
        sender_name=name_of(annotation.sender_id, members),
        is_own=annotation.is_own,
        sent_ms=annotation.sent_ms,
        emoji=annotation.emoji,
    )


def sender_name(who: ParticipantId, members: Members, about: ConversationRecord | None) -> str:
    """In an open channel a row's sender is the name that the message bears."""
    return who if isinstance(about, OpenChannelRecord) else name_of(who, members)


def name_of(who: ParticipantId, members: Members) -> str:
    member = members.get(who)
    return member.name if member else who[:8]


def _delivery(
    said: StoredMessage | StoredVersion | StoredReactor,
    members: Members,
    own_id: ParticipantId,
    sent_ms: UnixMs,
    about: ConversationRecord | None,
) -> DeliveryView:
    """The state of something of ours that was said at ``sent_ms``."""
    match about:
        case ContactRecord():
            return pair_delivery_view(said.delivery, members, own_id)
        case OpenChannelRecord():
            return open_delivery_view(said.delivery, said.holders)
        case GroupRecord() | None:
            return delivery_view(said.delivery, said.holders, members, own_id, sent_ms=sent_ms)
        case _:
            assert_never(about)


def delivery_view(
    delivery: DeliveryRecord | None,
    holders: Sequence[HolderEntry],
    members: Members,
    own_id: ParticipantId,
    *,
    sent_ms: UnixMs,
) -> DeliveryView:
    certain = {h.participant_id for h in holders if h.source is not HolderSource.BLOOM}
    maybe = {h.participant_id for h in holders} - certain
    base = delivery.state if delivery else DeliveryState.SENT
    audience = audience_of(members, own_id, certain, sent_ms=sent_ms)
    if base is DeliveryState.HELD:
        audience = [who for who in audience if who in certain]
    held_by = tuple(who for who in audience if who in certain)
    maybe_held_by = tuple(who for who in audience if who in maybe)
    if base is DeliveryState.HELD or (audience and len(held_by) == len(audience)):
        state = DeliveryState.HELD
    elif certain or maybe:
        state = DeliveryState.POSSIBLY_HELD
    else:
        state = base
    return DeliveryView(
        state=state,
        held_by=held_by,
        maybe_held_by=maybe_held_by,
        of=len(audience),
        attempts=delivery.attempts if delivery else 0,
        failure=_failure_of(delivery) if state is DeliveryState.FAILED else None,
    )


def _failure_of(delivery: DeliveryRecord | None) -> FailureReason:
    try:
        return FailureReason((delivery and delivery.failure) or "")
    except ValueError:  # of a version that wrote a sentence
        return FailureReason.NOBODY_TOOK_IT


def pair_delivery_view(
    delivery: DeliveryRecord | None, members: Members, own_id: ParticipantId
) -> DeliveryView:
    others = tuple(who for who in members if who != own_id)
    state = delivery.state if delivery else DeliveryState.SENT
    return DeliveryView(
        state=state,
        held_by=others if state is DeliveryState.HELD else (),
        of=len(others),
        attempts=delivery.attempts if delivery else 0,
        failure=_failure_of(delivery) if state is DeliveryState.FAILED else None,
    )


def version_views(
    versions: Sequence[StoredVersion],
    members: Members,
    own_id: ParticipantId,
    about: ConversationRecord | None = None,
) -> tuple[VersionView, ...]:
    views = []
    for each in versions:
        text, spans = shown_text(each.text, each.spans, members)
        delivery = _delivery(each, members, own_id, each.sent_ms, about)
        view = VersionView(
            message_id=each.message_id,
            text=text,
            spans=spans,
            sent_ms=each.sent_ms,
            received_ms=each.received_ms,
            is_shown=each.is_shown,
            delivery=delivery if each.is_own else None,
        )
        views.append(view)
    return tuple(views)


def reactor_views(
    reactors: Sequence[StoredReactor],
    members: Members,
    own_id: ParticipantId,
    about: ConversationRecord | None = None,
) -> tuple[ReactorView, ...]:
    return tuple(
        ReactorView(
            participant_id=each.participant_id,
            name=name_of(each.participant_id, members),
            emoji=each.emoji,
            sent_ms=each.sent_ms,
            is_own=each.is_own,
            delivery=_delivery(each, members, own_id, each.sent_ms, about) if each.is_own else None,
        )
        for each in reactors
    )


def open_delivery_view(
    delivery: DeliveryRecord | None, holders: Sequence[HolderEntry]
) -> DeliveryView:
    """Some names perhaps hold it; of how many there are, nobody knows."""
    state = delivery.state if delivery else DeliveryState.SENT
    maybe = tuple(stranger_name(each.participant_id) for each in holders)
    return DeliveryView(
        state=DeliveryState.POSSIBLY_HELD if maybe else state,
        maybe_held_by=maybe,
        attempts=delivery.attempts if delivery else 0,
        failure=_failure_of(delivery) if state is DeliveryState.FAILED else None,
    )


def audience_of(
    members: Members, own_id: ParticipantId, certain: set[ParticipantId], *, sent_ms: UnixMs
) -> list[ParticipantId]:
    """The members whose holding counts for a message sent at ``sent_ms`` by our clock."""
    return [
        who
        for who, member in members.items()
        if who != own_id
        and (who in certain or (member.left_ms is None and member.joined_ms <= sent_ms))
    ]


def page_view(
    page: StoredPage,
    members: Members,
    own_id: ParticipantId,
    about: ConversationRecord | None = None,
) -> TimelinePage:
    return TimelinePage(
        messages=tuple(message_view(stored, members, own_id, about) for stored in page.messages),
        has_older=page.has_older,
        has_newer=page.has_newer,
        older_count=page.older_count,
        total=page.total,
    )


def member_views(
    members: Sequence[MemberRecord],
    own_id: ParticipantId,
    muted: Collection[ParticipantId] = frozenset(),
) -> tuple[MemberView, ...]:
    own = next((one.public_key for one in members if one.participant_id == own_id), b"")
    return tuple(
        MemberView(
            participant_id=member.participant_id,
            name=member.name,
            is_self=member.participant_id == own_id,
            is_admin=member.is_admin,
            has_left=member.left_ms is not None,
            fingerprint=fingerprint_of(member.public_key),
            is_muted=member.participant_id in muted,
            has_keys=bool(member.encryption_key),
            safety_number=safety_number(own, key) if own != (key := member.public_key) else "",
        )
        for member in members
    )


def shown_name(record: ConversationRecord) -> str:
    """The conversation's name as the user sees it."""
    if isinstance(record, ContactRecord):
        return record.local_name or record.name
    return record.name


def conversation_view(  # noqa: PLR0913 - one keyword per source of the row
    record: ConversationRecord,
    summary: ConversationSummary,
    *,
    people: tuple[MemberView, ...],
    contact: ContactView | None,
    open_channel: OpenChannelView | None,
    last_message: MessageView | None,
    missing: int,
    last_annotation: AnnotationView | None = None,
) -> ConversationView:
    return ConversationView(
        conversation_id=record.conversation_id,
        name=shown_name(record),
        members=people,
        unread=summary.unread,
        first_unread=summary.first_unread,
        muted=record.muted,
        muted_until_ms=record.muted_until_ms,
        last_message=last_message,
        missing=missing,
        waiting_to_send=summary.waiting_to_send,
        failed=summary.failed,
        created_ms=record.created_ms,
        draft=draft_text(record.draft),
        draft_mentions=draft_mentions(record.draft),
        contact=contact,
        mentions=summary.mentions,
        first_mention=summary.first_mention,
        last_annotation=last_annotation,
        open_channel=open_channel,
        key_is_lost=isinstance(record, GroupRecord) and is_stand_in(record.epoch_keys[-1]),
    )


def open_channel_view(record: OpenChannelRecord, *, is_served: bool) -> OpenChannelView:
    return OpenChannelView(
        channel_id=record.channel_id,
        content_topic=record.content_topic,
        cluster_id=record.cluster_id,
        shard=record.shard,
        sender_id=record.sender_id,
        is_served=is_served,
        has_key=bool(record.key),
    )


def contact_view(
    record: ContactRecord,
    *,
    own_public_key: bytes,
    is_online: bool,
    forward_secret_ms: UnixMs | None,
    below_olm_ms: UnixMs | None = None,
) -> ContactView:
    return ContactView(
        participant_id=record.participant_id,
        name=record.name,
        local_name=record.local_name,
        state=record.state,
        fingerprint=fingerprint_of(record.public_key),
        safety_number=safety_number(own_public_key, record.public_key),
        picture=record.picture,
        last_seen_ms=record.last_seen_ms,
        is_online=is_online,
        forward_secret_ms=forward_secret_ms,
        below_olm_ms=below_olm_ms,
    )


def holder_views(
    entries: Sequence[HolderEntry], members: Members, own_id: ParticipantId, *, sent_ms: UnixMs
) -> tuple[HolderView, ...]:
    """One entry for everybody whom the ticks count, with the most certain source known."""
    certain = {e.participant_id: e for e in entries if e.source is not HolderSource.BLOOM}
    known = {e.participant_id: e for e in entries} | certain
    return tuple(
        HolderView(
            participant_id=who,
            name=members[who].name,
            certain=who in certain,
            source=known[who].source.value if who in known else None,
            since_ms=known[who].since_ms if who in known else None,
            false_probability=known[who].false_probability if who in known else None,
        )
        for who in audience_of(members, own_id, set(certain), sent_ms=sent_ms)
    )


def open_holder_views(entries: Sequence[HolderEntry]) -> tuple[HolderView, ...]:
    """One entry for every name under which somebody perhaps holds it."""
    return tuple(
        HolderView(
            participant_id=entry.participant_id,
            name=stranger_name(entry.participant_id),
            certain=False,
            source=entry.source.value,
            since_ms=entry.since_ms,
            false_probability=entry.false_probability,
        )
        for entry in entries
    )


def claimed_holder_views(
    author: ParticipantId,
    repairer: ParticipantId | None,
    claimed: Collection[ParticipantId],
    members: Members,
    own_id: ParticipantId,
) -> tuple[HolderView, ...]:
    """Who has somebody else's message: one entry for every other member but its author.

    ``repairer``: who sent it again.
    """

    def source_of(who: ParticipantId) -> str | None:
        if who == repairer:
            return HolderSource.REPAIR
        return HolderSource.HOLDINGS if who in claimed else None

    return tuple(
        HolderView(
            participant_id=who,
            name=member.name,
            certain=source_of(who) is not None,
            source=source_of(who),
            since_ms=None,
        )
        for who, member in members.items()
        if who not in {own_id, author} and member.left_ms is None
    )


def pair_holder_views(
    message: StoredMessage | None, members: Members, own_id: ParticipantId
) -> tuple[HolderView, ...]:
    """One entry: whether the other acknowledged the message."""
    delivery = message.delivery if message else None
    held = delivery is not None and delivery.state is DeliveryState.HELD
    return tuple(
        HolderView(
            participant_id=who,
            name=member.name,
            certain=held,
            source=ACKNOWLEDGED if held else None,
            since_ms=None,
        )
        for who, member in members.items()
        if who != own_id
    )
