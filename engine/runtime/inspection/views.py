"""Makes the read model of a message out of what was read of it; pure, but for the copies noted.

Two kinds of conversation, two functions: SDS carries groups and open channels, MVDS carries pairs.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from engine.answers import Arrival, HolderView
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    HolderSource,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.mvds.vocabulary import RecordType
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord
from engine.core.sds.vocabulary import MissingEntry, MissingState, OutgoingEntry, OutgoingState
from engine.core.stored import StoredMessage
from engine.events import MessageView
from engine.inspection_views import (
    AgainView,
    CopyView,
    LinkView,
    MessageInspection,
    MvdsView,
    Occasion,
    PartView,
    Seal,
    SentBy,
    StoreReturned,
    WantedView,
    Whereabouts,
)
from engine.network.transport import TransportRole
from engine.runtime.inspection.copies import FIRST_KEPT, Copy, CopyNotes
from engine.runtime.inspection.message_bytes import sds_view
from engine.runtime.inspection.reading import Linked, MvdsFacts, SdsFacts
from engine.runtime.views import (
    Members,
    claimed_holder_views,
    holder_views,
    message_view,
    name_of,
    open_holder_views,
    pair_holder_views,
    sender_name,
)
from engine.session.contract import ConversationRecord
from engine.session.pair.factory import PAIR_CONFIG
from engine.session.rows import SAID

_SENT_BY = {TransportRole.RELAY: SentBy.RELAY, TransportRole.EDGE: SentBy.LIGHTPUSH}


class Looking(Struct, frozen=True, kw_only=True):
    """What is needed beside the facts."""

    message_id: MessageId
    own_id: ParticipantId
    members: Members
    claimed: frozenset[ParticipantId]
    """Members who said lately that they hold it."""
    copies: CopyNotes
    shown: Callable[[MessageView], MessageView]
    """Completes a row by what is known of its file."""
    looked_ms: UnixMs
    returned_by: Callable[[Iterable[bytes]], tuple[StoreReturned, ...]] = lambda _hashes: ()
    """Which Stores returned copies with these hashes."""
    olm_since_ms: UnixMs | None = None
    """Of a one-to-one conversation: since when both speak Olm, by our clock."""
    clock_offset_ms: int = 0
    """How far our clock is ahead of the time by which rows are kept."""


def channel_inspection(
    looking: Looking, about: GroupRecord | OpenChannelRecord, facts: SdsFacts
) -> MessageInspection:
    row, members, message_id = facts.row, looking.members, looking.message_id
    is_open = isinstance(about, OpenChannelRecord)
    me = about.sender_id if isinstance(about, OpenChannelRecord) else looking.own_id
    author = _author_of(facts)
    is_own = row.record.is_own if row else author == me
    saved_ms = _saved_ms(facts)
    hint = facts.entry.retrieval_hint if facts.entry else None
    copies, omitted = _copies(looking, about.conversation_id, saved_ms)
    return MessageInspection(
        conversation_id=about.conversation_id,
        message_id=message_id,
        whereabouts=_whereabouts(facts),
        is_open=is_open,
        looked_ms=looking.looked_ms,
        message=_shown(row, looking, about),
        sender_id=author,
        sender_name=_name(row.record.sender_id if row else author, members, about),
        is_own=is_own,
        saved_ms=saved_ms,
        arrival=Arrival(row.record.arrival) if row else Arrival.UNKNOWN,
        came_ms=facts.came_ms,
        repaired_by=_repairer(row, members),
        copies=copies,
        copies_omitted=omitted,
        copies_since_ms=looking.copies.since_ms(saved_ms),
        again=_again(facts.outgoing),
        holders=open_holder_views(facts.holders)
        if is_open
        else _holders(looking, facts, author, is_own=is_own),
        names=tuple(_link(each, members, about) for each in facts.names),
        named_by=tuple(_link(each, members, about) for each in facts.named_by),
        named_by_complete=facts.named_by_complete,
        waits_for=_waits_for(facts),
        returned_by=_returned_by(looking, about.conversation_id, hint),
        wanted=None if facts.missing is None or facts.entry else _wanted(facts.missing),
        sds=sds_view(facts.read, about, hint) if facts.read else None,
        parts=facts.read.parts if facts.read else (),
    )


def pair_inspection(looking: Looking, about: ContactRecord, facts: MvdsFacts) -> MessageInspection:
    row, members = facts.row, looking.members
    is_own = row.record.is_own if row else facts.message is not None
    saved_ms = row.record.received_ms if row else None
    copies, omitted = _copies(looking, about.conversation_id, saved_ms)
    author = looking.own_id if is_own else about.participant_id
    body = facts.message
    return MessageInspection(
        conversation_id=about.conversation_id,
        message_id=looking.message_id,
        whereabouts=_whereabouts_in_pair(facts),
        is_open=False,
        looked_ms=looking.looked_ms,
        message=_shown(row, looking, about),
        sender_id=author,
        sender_name=_name(author, members, about),
        is_own=is_own,
        saved_ms=saved_ms,
        arrival=Arrival(row.record.arrival) if row else Arrival.UNKNOWN,
        came_ms=facts.came_ms,
        copies=copies,
        copies_omitted=omitted,
        copies_since_ms=looking.copies.since_ms(saved_ms),
        again=_again_in_pair(facts) if is_own else None,
        returned_by=_returned_by(looking, about.conversation_id, None),
        holders=pair_holder_views(row, members, looking.own_id) if is_own else (),
        mvds=_mvds_view(looking, about, facts, copies, is_own=is_own),
        parts=(PartView(name="body", size=len(body.body)),) if body else (),
    )


def _mvds_view(
    looking: Looking,
    about: ContactRecord,
    facts: MvdsFacts,
    copies: tuple[CopyView, ...],
    *,
    is_own: bool,
) -> MvdsView:
    record, body = facts.record, facts.message
    return MvdsView(
        seal=_seal(looking, facts, copies, is_own=is_own),
        olm_since_ms=looking.olm_since_ms,
        message_id=looking.message_id,
        group_id=about.conversation_id,
        record=record.type.value if record else "",
        send_count=record.send_count if record else 0,
        send_epoch=None if record is None or record.given_up else record.send_epoch,
        timestamp=body.timestamp if body else None,
        body_size=len(body.body) if body else None,
    )


def _seal(
    looking: Looking, facts: MvdsFacts, copies: tuple[CopyView, ...], *, is_own: bool
) -> Seal | None:
    """By the copies that were noted, if all were; else by when it was, as far as that tells it.

    Since both speak Olm nothing is said otherwise, and nothing else is heard, but for requests and
    answers.  What came before may have gone by Olm, too: a session that the other lost tells
    nothing of when it began.
    """
    saved_ms = facts.row.record.received_ms if facts.row else None
    if is_own and saved_ms is not None and looking.copies.since_ms(saved_ms) is None:
        by_olm = {copy.by_olm for copy in copies}
        if len(by_olm) > 1:
            return Seal.BOTH
        return (Seal.OLM if True in by_olm else Seal.SIGNED) if by_olm else None
    came_ms = facts.came_ms or saved_ms
    is_said = facts.row is not None and facts.row.record.kind in SAID
    if came_ms is None or looking.olm_since_ms is None or not is_said:
        return Seal.NOT_NOTED
    is_since = came_ms + looking.clock_offset_ms >= looking.olm_since_ms
    return Seal.OLM if is_since else Seal.NOT_NOTED


def _holders(
    looking: Looking, facts: SdsFacts, author: ParticipantId | None, *, is_own: bool
) -> tuple[HolderView, ...]:
    if is_own:
        sent_ms = facts.row.record.sent_ms if facts.row else looking.looked_ms
        return holder_views(facts.holders, looking.members, looking.own_id, sent_ms=sent_ms)
    if author is None:
        return ()
    repairer = facts.row.record.repaired_by if facts.row else None
    claimed = claimed_holder_views(
        author, repairer, looking.claimed, looking.members, looking.own_id
    )
    # Nobody keeps for others' messages who named them; what is here of those messages tells it.
    named_it = {link.sender_id for link in facts.named_by}
    return tuple(
        replace(each, certain=True, source=HolderSource.CAUSAL)
        if each.source is None and each.participant_id in named_it
        else each
        for each in claimed
    )


def _shown(
    row: StoredMessage | None, looking: Looking, about: ConversationRecord
) -> MessageView | None:
    if row is None:
        return None
    return looking.shown(message_view(row, looking.members, looking.own_id, about))


def _copies(
    looking: Looking, conversation_id: ConversationId, saved_ms: UnixMs | None
) -> tuple[tuple[CopyView, ...], int]:
    noted = looking.copies.of(conversation_id, looking.message_id)
    are_all = looking.copies.since_ms(saved_ms) is None
    views = []
    for place, copy in enumerate(noted.kept):
        number = place + 1 + (noted.omitted if place >= FIRST_KEPT else 0)
        is_first = place == 0 and are_all
        views.append(_copy_view(copy, number, is_first=is_first, is_noted_first=place == 0))
    return tuple(views), noted.omitted


def _returned_by(
    looking: Looking, conversation_id: ConversationId, hint: bytes | None
) -> tuple[StoreReturned, ...]:
    """By the copies whose hashes are known here: the one that came, and those that went out."""
    copies = looking.copies.of(conversation_id, looking.message_id).kept
    hashes = {copy.waku_hash for copy in copies}
    return looking.returned_by(hashes | {hint} if hint else hashes)


def _copy_view(copy: Copy, number: int, *, is_first: bool, is_noted_first: bool) -> CopyView:
    return CopyView(
        number=number,
        at_ms=copy.at_ms,
        occasion=_occasion(copy, is_first=is_first, is_noted_first=is_noted_first),
        sent_by=None if copy.role is None else _SENT_BY[copy.role],
        peers=copy.peers,
        size=copy.size,
        waku_hash=copy.waku_hash.hex(),
        together_with=copy.together_with,
        by_olm=copy.by_olm,
        taken_ms=copy.taken_ms,
    )


def _occasion(copy: Copy, *, is_first: bool, is_noted_first: bool) -> Occasion:
    if copy.is_repair:
        return Occasion.REPAIR
    if copy.was_asked_for:
        return Occasion.ASKED_HERE
    if is_first:
        return Occasion.FIRST
    if is_noted_first and not copy.is_retransmission:
        return Occasion.NOT_NOTED  # Perhaps the first after all, perhaps of an earlier wish.
    return Occasion.UNACKNOWLEDGED


def _author_of(facts: SdsFacts) -> ParticipantId | None:
    if facts.entry is not None:
        return facts.entry.sender_id
    if facts.incoming is not None:
        return facts.incoming.message.sender_id
    return facts.missing.entry.sender_id if facts.missing else None


def _saved_ms(facts: SdsFacts) -> UnixMs | None:
    if facts.row is not None:
        return facts.row.record.received_ms
    if facts.incoming is not None:
        return facts.incoming.received_ms
    return facts.outgoing.created_ms if facts.outgoing else None


def _whereabouts(facts: SdsFacts) -> Whereabouts:
    if facts.entry is not None:
        return Whereabouts.LOGGED
    if facts.incoming is not None:
        return Whereabouts.WAITING
    return _sought(facts.missing)


def _sought(missing: MissingEntry | None) -> Whereabouts:
    if missing is None:
        return Whereabouts.UNKNOWN
    is_lost = missing.state is MissingState.LOST
    return Whereabouts.LOST if is_lost else Whereabouts.MISSING


def _whereabouts_in_pair(facts: MvdsFacts) -> Whereabouts:
    if facts.row is not None:
        return Whereabouts.WAITING if facts.row.record.waiting else Whereabouts.LOGGED
    is_asked = facts.record is not None and facts.record.type is RecordType.REQUEST
    return Whereabouts.MISSING if is_asked else Whereabouts.LOGGED


def _name(who: ParticipantId | None, members: Members, about: ConversationRecord) -> str:
    return "" if who is None else sender_name(who, members, about)


def _repairer(row: StoredMessage | None, members: Members) -> str:
    who = row.record.repaired_by if row else None
    return "" if who is None else name_of(who, members)


def _link(link: Linked, members: Members, about: ConversationRecord) -> LinkView:
    if link.position is not None:
        whereabouts = Whereabouts.LOGGED
    elif link.is_waiting:
        whereabouts = Whereabouts.WAITING
    else:
        whereabouts = _sought(link.missing)
    return LinkView(
        message_id=link.message_id,
        whereabouts=whereabouts,
        sender_id=link.sender_id,
        sender_name=_name(link.sender_id, members, about),
        position=link.position,
        is_shown=link.is_shown,
        saved_ms=link.saved_ms,
        retrieval_hint=(link.retrieval_hint or b"").hex(),
    )


def _waits_for(facts: SdsFacts) -> tuple[WantedView, ...]:
    """What a message that is here lacks; one in the log lacks nothing any more."""
    if facts.incoming is None:
        return ()
    return tuple(_wanted(each.missing) for each in facts.names if each.missing is not None)


def _wanted(missing: MissingEntry) -> WantedView:
    said = missing.stores
    is_lost = missing.state is MissingState.LOST
    return WantedView(
        message_id=missing.entry.message_id,
        since_ms=missing.since_ms,
        online_ms=missing.online_ms,
        requests=missing.requests,
        next_request_ms=None if is_lost else missing.request_at_ms,
        stores_asked_ms=said.at_ms if said else None,
        stores_lacked=said.lacked if said else 0,
        stores_silent=len(said.silent) if said else 0,
    )


def _again(outgoing: OutgoingEntry | None) -> AgainView | None:
    if outgoing is None:
        return None
    is_given_up = outgoing.state is OutgoingState.FAILED
    return AgainView(
        state=outgoing.state.value,
        attempts=outgoing.attempts,
        next_ms=None if is_given_up else outgoing.next_send_ms,
        accepted=outgoing.accepted,
    )


def _again_in_pair(facts: MvdsFacts) -> AgainView | None:
    record, row = facts.record, facts.row
    if record is None:
        return None
    epoch_ms = PAIR_CONFIG.epoch_ms
    delivery = row.delivery if row and row.shown_id is None else None
    return AgainView(
        state="given_up" if record.given_up else record.type.value,
        attempts=record.send_count,
        next_ms=None if record.given_up else UnixMs(record.send_epoch * epoch_ms),
        accepted=delivery is not None and delivery.state is DeliveryState.SENT,
    )
