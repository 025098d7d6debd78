"""Reads a page of a conversation for the view of its delivery, and makes its read model.

Reading runs on the storage thread and finds everything by its place; the bytes of a message are
read and parsed once while a conversation is looked at, because what it names never changes.
``channel_page`` and ``pair_page`` are pure.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from engine.core.ids import (
    ConversationId,
    DeliveryState,
    HolderSource,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.inspection import PlacedMessage, WaitingMessage
from engine.core.ports import ProfileStore
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord
from engine.core.sds.vocabulary import HolderEntry, MissingEntry, MissingState
from engine.core.stored import StoredMessage, StoredPage
from engine.delivery_views import (
    MOST_IN_PAGE,
    DeliveryMark,
    DeliveryMessage,
    DeliveryPage,
    HolderMark,
)
from engine.runtime.inspection.message_bytes import causal_history
from engine.runtime.inspection.reading import LOOKED_AT
from engine.runtime.views import Members, audience_of, name_of
from engine.session.open.rows import stranger_name

MOST_HISTORIES: Final = 16_384
"""Causal histories that are remembered, of one conversation: some two megabytes."""


class Histories:
    """What messages of the log name.  It never changes, so each is read once."""

    def __init__(self) -> None:
        self._conversation_id = ConversationId("")
        self._known: dict[MessageId, tuple[MessageId, ...]] = {}
        self._ids: dict[MessageId, MessageId] = {}
        """Each id once: a message names a dozen that its neighbours name, too."""

    def read(
        self, store: ProfileStore, about: GroupRecord | OpenChannelRecord, ids: Sequence[MessageId]
    ) -> dict[MessageId, tuple[MessageId, ...]]:
        """Of another conversation than before, all is read anew."""
        if about.conversation_id != self._conversation_id:
            self.forget()
            self._conversation_id = about.conversation_id
        unknown = [each for each in ids if each not in self._known]
        raws = store.inspecting.raws(about.conversation_id, unknown) if unknown else {}
        is_open = isinstance(about, OpenChannelRecord)
        share = self._ids.setdefault
        for message_id, raw in raws.items():
            names = causal_history(raw, is_open=is_open)
            self._known[message_id] = tuple(share(each, each) for each in names)
        found = {each: self._known.get(each, ()) for each in ids}
        if len(self._known) > MOST_HISTORIES:
            self.forget()
        return found

    def forget(self) -> None:
        self._known.clear()
        self._ids.clear()
        self._conversation_id = ConversationId("")


class ChannelFacts(Struct, frozen=True, kw_only=True):
    placed: Sequence[PlacedMessage]
    names: Mapping[MessageId, tuple[MessageId, ...]]
    named_behind: Mapping[MessageId, frozenset[ParticipantId]]
    """Who names a message of the page in one that follows the page, or that waits."""
    holders: Mapping[MessageId, Sequence[HolderEntry]]
    """Of our own messages."""
    waiting: Sequence[WaitingMessage]
    missing: Sequence[MissingEntry]
    has_older: bool
    has_newer: bool


class LookingOn(Struct, frozen=True, kw_only=True):
    """What is needed beside the facts."""

    own_id: ParticipantId
    members: Members
    claimed: Mapping[MessageId, Collection[ParticipantId]]
    """Members who said lately that they hold it, of others' messages."""
    looked_ms: UnixMs


def read_channel(  # noqa: PLR0913 - the store, what is remembered of it, and the part wanted
    store: ProfileStore,
    about: GroupRecord | OpenChannelRecord,
    histories: Histories,
    own_id: ParticipantId,
    *,
    before: Position | None,
    limit: int,
) -> ChannelFacts:
    """At most ``limit`` messages of the log before a place; None: the newest."""
    conversation_id, inspecting = about.conversation_id, store.inspecting
    found = inspecting.placed(conversation_id, before, limit=limit + 1)
    placed = found[-limit:]
    ids = [each.position.message_id for each in placed]
    is_newest = before is None
    me = about.sender_id if isinstance(about, OpenChannelRecord) else own_id
    own = [each.position.message_id for each in placed if each.sender_id == me]
    # What a part of the log lacks stands ahead of its messages, and of those that wait behind it.
    first = placed[0].position if placed and len(found) > limit else None
    waiting = inspecting.waiting(conversation_id, limit=MOST_IN_PAGE + 1)
    return ChannelFacts(
        placed=placed,
        names=histories.read(store, about, ids),
        named_behind=_named_behind(store, about, placed, waiting, is_newest=is_newest),
        holders=inspecting.holders_of(conversation_id, own) if own else {},
        waiting=waiting if is_newest else (),
        missing=inspecting.missing_between(conversation_id, first, before, limit=MOST_IN_PAGE + 1),
        has_older=len(found) > limit,
        has_newer=not is_newest,
    )


def _named_behind(
    store: ProfileStore,
    about: GroupRecord | OpenChannelRecord,
    placed: Sequence[PlacedMessage],
    waiting: Sequence[WaitingMessage],
    *,
    is_newest: bool,
) -> dict[MessageId, frozenset[ParticipantId]]:
    is_open = isinstance(about, OpenChannelRecord)
    if is_open:
        return {}  # Anybody may sign with any name.
    found: dict[MessageId, set[ParticipantId]] = {}
    for each in waiting:
        for entry in each.causal_history:
            found.setdefault(entry.message_id, set()).add(each.sender_id)
    if placed and not is_newest:
        last = placed[-1].position
        for after in store.inspecting.following(about.conversation_id, last, limit=LOOKED_AT):
            for message_id in causal_history(after.raw, is_open=False):
                found.setdefault(message_id, set()).add(after.sender_id)
    return {message_id: frozenset(who) for message_id, who in found.items()}


class PairFacts(Struct, frozen=True, kw_only=True):
    page: StoredPage
    came_ms: Mapping[MessageId, UnixMs]
    """Of those that had to wait."""


def read_pair(
    store: ProfileStore, about: ContactRecord, before: Position | None, limit: int
) -> PairFacts:
    conversation_id = about.conversation_id
    if before is None:
        page = store.latest_page(conversation_id, limit=limit)
    else:
        page = store.page_before(conversation_id, before, limit=limit)
    ids = [each.record.position.message_id for each in page.messages]
    return PairFacts(page=page, came_ms=store.inspecting.came_ms(conversation_id, ids))


# --- the read model -------------------------------------------------------------------------------


def channel_page(
    about: GroupRecord | OpenChannelRecord, facts: ChannelFacts, looking: LookingOn
) -> DeliveryPage:
    is_open = isinstance(about, OpenChannelRecord)
    me = about.sender_id if isinstance(about, OpenChannelRecord) else looking.own_id
    name = stranger_name if is_open else partial(name_of, members=looking.members)
    seen = _Seen(facts, looking, me=me, name=name, is_open=is_open)
    placed = [seen.placed(each) for each in facts.placed]
    waiting = [seen.waiting(each) for each in facts.waiting[:MOST_IN_PAGE]]
    missing = [seen.missing(each) for each in facts.missing[:MOST_IN_PAGE]]
    places = [each.position for each in facts.placed]
    return DeliveryPage(
        conversation_id=about.conversation_id,
        looked_ms=looking.looked_ms,
        messages=_in_order(placed, waiting, missing),
        first=places[0] if places else None,
        has_older=facts.has_older,
        has_newer=facts.has_newer,
        is_open=is_open,
        is_pair=False,
        clock=max((each.lamport_timestamp for each in places), default=0),
        more_missing=len(facts.missing) > MOST_IN_PAGE,
        more_waiting=len(facts.waiting) > MOST_IN_PAGE,
    )


def _in_order(
    placed: Sequence[DeliveryMessage],
    waiting: Sequence[DeliveryMessage],
    missing: Sequence[DeliveryMessage],
) -> tuple[DeliveryMessage, ...]:
    """By place; a missing one ahead of what depends on it, and after all else if that is unknown.

    One that waits has a place to come: its Lamport timestamp and id.
    """

    def place(each: DeliveryMessage) -> tuple[int, str, bool]:
        if each.mark is DeliveryMark.WAITING:
            return each.lamport_timestamp or 0, each.message_id, True
        position = each.position or each.before
        if position is None:
            return 2**64, "", False
        return position.lamport_timestamp, position.message_id, each.position is not None

    return tuple(sorted((*placed, *waiting, *missing), key=place))


def _namers(facts: ChannelFacts) -> dict[MessageId, set[ParticipantId]]:
    """Who named each message: it had it then."""
    namers: dict[MessageId, set[ParticipantId]] = {
        message_id: set(who) for message_id, who in facts.named_behind.items()
    }
    for each in facts.placed:
        for named in facts.names.get(each.position.message_id, ()):
            namers.setdefault(named, set()).add(each.sender_id)
    return namers


_UNTAKEN: Final[Mapping[str | None, DeliveryMark]] = {
    DeliveryState.SAVED: DeliveryMark.ONLY_HERE,
    DeliveryState.FAILED: DeliveryMark.FAILED,
}


class _Seen:
    """What a page's facts say of each message in it."""

    def __init__(
        self,
        facts: ChannelFacts,
        looking: LookingOn,
        *,
        me: ParticipantId,
        name: Callable[[ParticipantId], str],
        is_open: bool,
    ) -> None:
        self._facts = facts
        self._looking = looking
        self._me = me
        self._name = name
        self._is_open = is_open
        self._namers = {} if is_open else _namers(facts)
        self._late = _late_by(facts.placed)
        self._others = [
            (who, member) for who, member in looking.members.items() if who != looking.own_id
        ]

    def placed(self, each: PlacedMessage) -> DeliveryMessage:
        message_id, is_own = each.position.message_id, each.sender_id == self._me
        holders, of = (
            self._own_holders(each) if is_own else self._holders_of(message_id, each.sender_id)
        )
        mark = DeliveryMark.LATE if each.late else DeliveryMark.HERE
        if is_own and not holders and each.delivery in _UNTAKEN:
            mark = _UNTAKEN[each.delivery]
        return DeliveryMessage(
            message_id=message_id,
            mark=mark,
            sender_id=each.sender_id,
            sender_name=each.row_sender_id or self._name(each.sender_id),
            is_own=is_own,
            lamport_timestamp=each.position.lamport_timestamp,
            position=each.position,
            received_ms=each.received_ms,
            came_ms=each.came_ms,
            sent_ms=each.sent_ms,
            late_by_ms=self._late.get(message_id),
            is_shown=each.is_shown,
            names=self._facts.names.get(message_id, ()),
            holders=holders,
            of=of,
            held_by=sum(holder.certain for holder in holders),
        )

    def waiting(self, each: WaitingMessage) -> DeliveryMessage:
        holders, of = self._holders_of(each.message_id, each.sender_id)
        return DeliveryMessage(
            message_id=each.message_id,
            mark=DeliveryMark.WAITING,
            sender_id=each.sender_id,
            sender_name=self._name(each.sender_id),
            is_own=each.sender_id == self._me,
            lamport_timestamp=each.lamport_timestamp,
            position=None,
            received_ms=each.received_ms,
            names=tuple(entry.message_id for entry in each.causal_history),
            holders=holders,
            of=of,
            held_by=len(holders),
        )

    def missing(self, each: MissingEntry) -> DeliveryMessage:
        sender_id, message_id = each.entry.sender_id, each.entry.message_id
        holders, of = self._holders_of(message_id, sender_id)
        return DeliveryMessage(
            message_id=message_id,
            mark=DeliveryMark.LOST if each.state is MissingState.LOST else DeliveryMark.MISSING,
            sender_id=sender_id,
            sender_name="" if sender_id is None else self._name(sender_id),
            is_own=sender_id == self._me,
            lamport_timestamp=None,
            position=None,
            before=each.before,
            received_ms=each.since_ms,
            holders=holders,
            of=of,
            held_by=len(holders),
        )

    def _own_holders(self, each: PlacedMessage) -> tuple[tuple[HolderMark, ...], int]:
        """Those who count are the ones whom the ticks count (``audience_of``)."""
        message_id = each.position.message_id
        marks = {
            entry.participant_id: HolderMark(
                participant_id=entry.participant_id,
                certain=entry.source is not HolderSource.BLOOM and not self._is_open,
                since_ms=entry.since_ms,
            )
            for entry in self._facts.holders.get(message_id, ())
        }
        if self._is_open:
            return tuple(marks.values()), 0
        certain = {who for who, mark in marks.items() if mark.certain}
        sent_ms = each.sent_ms if each.sent_ms is not None else self._looking.looked_ms
        audience = audience_of(
            self._looking.members, self._looking.own_id, certain, sent_ms=sent_ms
        )
        if each.delivery == DeliveryState.HELD:
            audience = [who for who in audience if who in certain]
        return tuple(marks[who] for who in audience if who in marks), len(audience)

    def _holders_of(
        self, message_id: MessageId, author: ParticipantId | None
    ) -> tuple[tuple[HolderMark, ...], int]:
        """Of others' messages: who said that they hold it, and who named it."""
        if self._is_open:
            return (), 0
        certain = {
            *self._looking.claimed.get(message_id, ()),
            *self._namers.get(message_id, ()),
        }
        audience = [who for who, member in self._others if member.left_ms is None]
        holders = tuple(
            HolderMark(participant_id=who, certain=True, since_ms=None)
            for who in audience
            if who in certain and who != author
        )
        return holders, len(audience) - (author in audience)


def _late_by(placed: Sequence[PlacedMessage]) -> dict[MessageId, int | None]:
    """Since when a message behind its place was here, when a late one came."""
    late: dict[MessageId, int | None] = {}
    earliest: int | None = None
    for each in reversed(placed):
        came = each.received_ms
        if came is None:
            continue
        if each.late and earliest is not None and earliest <= came:
            late[each.position.message_id] = came - earliest
        earliest = came if earliest is None else min(earliest, came)
    return late


def pair_page(
    about: ContactRecord, facts: PairFacts, looking: LookingOn, *, is_newest: bool
) -> DeliveryPage:
    page = facts.page
    placed = [_row(each, about, looking, facts.came_ms) for each in page.messages]
    places = [each.position for each in placed if each.position is not None]
    return DeliveryPage(
        conversation_id=about.conversation_id,
        looked_ms=looking.looked_ms,
        messages=tuple(placed),
        first=places[0] if places else None,
        has_older=page.has_older,
        has_newer=not is_newest,
        is_open=False,
        is_pair=True,
        clock=max((each.lamport_timestamp for each in places), default=0),
    )


def _row(
    row: StoredMessage,
    about: ContactRecord,
    looking: LookingOn,
    came_ms: Mapping[MessageId, UnixMs],
) -> DeliveryMessage:
    record = row.record
    state = row.delivery.state if row.delivery else None
    is_held = record.is_own and state is DeliveryState.HELD
    mark = DeliveryMark.LATE if record.late else DeliveryMark.HERE
    if record.waiting:
        mark = DeliveryMark.WAITING
    elif record.is_own and state in _UNTAKEN:
        mark = _UNTAKEN[state]
    other = HolderMark(participant_id=about.participant_id, certain=True, since_ms=None)
    return DeliveryMessage(
        message_id=record.position.message_id,
        mark=mark,
        sender_id=record.sender_id,
        sender_name=name_of(record.sender_id, looking.members),
        is_own=record.is_own,
        lamport_timestamp=record.position.lamport_timestamp,
        position=None if record.waiting else record.position,
        received_ms=record.received_ms,
        came_ms=came_ms.get(record.position.message_id),
        sent_ms=record.sent_ms,
        is_shown=True,
        holders=(other,) if is_held else (),
        of=int(record.is_own),
        held_by=int(is_held),
    )


def others_messages(facts: ChannelFacts, own_id: ParticipantId) -> list[MessageId]:
    """Those of which members say at times that they hold them."""
    return [each.position.message_id for each in facts.placed if each.sender_id != own_id]
