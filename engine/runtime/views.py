"""Builds the read models that listeners get from stored rows and membership.

A group message's delivery state is derived at every read from its holders, which only grow, and its
audience: the members who had joined when it was sent, and everyone who proved to hold it since,
even if they left.  So a member who leaves never moves the state backwards.  Nor does a join that
becomes known late, because "held" is written down when it is first reached.

In a pair the state is the stored one, since the other acknowledges each message.
"""

from collections.abc import Collection, Mapping, Sequence

from engine.answers import HolderView, TimelinePage
from engine.core.ids import (
    DeliveryState,
    HolderSource,
    ParticipantId,
    UnixMs,
)
from engine.core.ports import ConversationSummary, StoredMessage, StoredPage
from engine.core.problems import FailureReason
from engine.core.records import ContactRecord, MemberRecord
from engine.core.sds.vocabulary import HolderEntry
from engine.crypto.identity import fingerprint_of
from engine.crypto.pair import safety_number
from engine.events import (
    ContactView,
    ConversationView,
    DeliveryView,
    MemberView,
    MessageKind,
    MessageView,
    SpanKind,
    TextSpan,
)
from engine.session.contract import ConversationRecord

ACKNOWLEDGED = "acknowledged"
"""The source for a pair: the other acknowledged the message."""

Members = Mapping[ParticipantId, MemberRecord]


def message_view(
    stored: StoredMessage, members: Members, own_id: ParticipantId, *, is_pair: bool = False
) -> MessageView:
    record = stored.record
    delivery = pair_delivery_view if is_pair else delivery_view
    return MessageView(
        conversation_id=record.conversation_id,
        position=record.position,
        sender_id=record.sender_id,
        sender_name=name_of(record.sender_id, members),
        is_own=record.is_own,
        kind=MessageKind(record.kind),
        text=record.text,
        spans=tuple(
            TextSpan(kind=SpanKind(s.kind), start=s.start, length=s.length, target=s.target)
            for s in record.spans
        ),
        sent_ms=record.sent_ms,
        delivery=delivery(stored, members, own_id) if record.is_own else None,
        waiting=record.waiting,
        late=record.late,
    )


def name_of(who: ParticipantId, members: Members) -> str:
    member = members.get(who)
    return member.name if member else who[:8]


def delivery_view(stored: StoredMessage, members: Members, own_id: ParticipantId) -> DeliveryView:
    certain = {h.participant_id for h in stored.holders if h.source is not HolderSource.BLOOM}
    maybe = {h.participant_id for h in stored.holders} - certain
    base = stored.delivery.state if stored.delivery else DeliveryState.SENT
    audience = audience_of(members, own_id, certain, sent_ms=stored.record.sent_ms)
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
        attempts=stored.delivery.attempts if stored.delivery else 0,
        failure=_failure_of(stored) if state is DeliveryState.FAILED else None,
    )


def _failure_of(stored: StoredMessage) -> FailureReason:
    try:
        return FailureReason((stored.delivery and stored.delivery.failure) or "")
    except ValueError:  # of a version that wrote a sentence
        return FailureReason.NOBODY_TOOK_IT


def pair_delivery_view(
    stored: StoredMessage, members: Members, own_id: ParticipantId
) -> DeliveryView:
    others = tuple(who for who in members if who != own_id)
    state = stored.delivery.state if stored.delivery else DeliveryState.SENT
    return DeliveryView(
        state=state,
        held_by=others if state is DeliveryState.HELD else (),
        of=len(others),
        attempts=stored.delivery.attempts if stored.delivery else 0,
        failure=_failure_of(stored) if state is DeliveryState.FAILED else None,
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
    page: StoredPage, members: Members, own_id: ParticipantId, *, is_pair: bool = False
) -> TimelinePage:
    return TimelinePage(
        messages=tuple(
            message_view(stored, members, own_id, is_pair=is_pair) for stored in page.messages
        ),
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
    return tuple(
        MemberView(
            participant_id=member.participant_id,
            name=member.name,
            is_self=member.participant_id == own_id,
            is_admin=member.is_admin,
            has_left=member.left_ms is not None,
            fingerprint=fingerprint_of(member.public_key),
            is_muted=member.participant_id in muted,
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
    last_message: MessageView | None,
    missing: int,
) -> ConversationView:
    return ConversationView(
        conversation_id=record.conversation_id,
        name=shown_name(record),
        members=people,
        unread=summary.unread,
        first_unread=summary.first_unread,
        muted=record.muted,
        last_message=last_message,
        missing=missing,
        waiting_to_send=summary.waiting_to_send,
        failed=summary.failed,
        created_ms=record.created_ms,
        draft=record.draft,
        contact=contact,
    )


def contact_view(record: ContactRecord, *, own_public_key: bytes, is_online: bool) -> ContactView:
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
    )


def holder_views(
    entries: Sequence[HolderEntry], members: Members, own_id: ParticipantId
) -> tuple[HolderView, ...]:
    """One entry for every other current member, with the most certain source known."""
    certain = {e.participant_id: e for e in entries if e.source is not HolderSource.BLOOM}
    known = {e.participant_id: e for e in entries} | certain
    return tuple(
        HolderView(
            participant_id=who,
            name=member.name,
            certain=who in certain,
            source=known[who].source.value if who in known else None,
            since_ms=known[who].since_ms if who in known else None,
            false_probability=known[who].false_probability if who in known else None,
        )
        for who, member in members.items()
        if who != own_id and member.left_ms is None
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
