"""Turns a session's notes into events that carry whole read models.

Notes carry ids; the rows shown are those read from the disk after the writes.  It keeps what a row
of the conversation list needs: the record, the members and the counts.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.records import ContactRecord, OpenChannelRecord
from engine.core.stored import ConversationSummary, StoredAnnotation, StoredMessage
from engine.events import (
    ContactView,
    ConversationChanged,
    ConversationView,
    FloodsChanged,
    FloodView,
    ForksFound,
    ForkView,
    GapUpdated,
    HeldUpdated,
    HeldView,
    IndexMadeAgain,
    MemberView,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    MessagesAdded,
    MessageView,
    NoticeLevel,
    NoticeRaised,
    OpenChannelView,
    ReactionReceived,
    TimelineChanged,
    TypingChanged,
)
from engine.runtime.held_views import fork_view, held_notice, held_view, without
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import (
    Members,
    annotation_view,
    contact_view,
    conversation_view,
    member_views,
    message_view,
    name_of,
    open_channel_view,
    quote_of,
    sender_name,
    shown_name,
)
from engine.session.contract import ConversationRecord, Session
from engine.session.pair.session import PairSession
from engine.session.rows import REACTION
from engine.session.transitions import (
    AnnotationAdded,
    EchoHeard,
    ForkNoted,
    GapNoted,
    GovernanceNoted,
    HeldAsideNoted,
    MembersNoted,
    Note,
    RowAdded,
    RowChanged,
    RowRemoved,
    SetAsideNoted,
    TypingNoted,
)

LONGEST_MUTE_MS: Final = 86_400_000
"""That ends by itself."""
RING_AGAIN_MS: Final = 600_000
"""Who takes a reaction back and adds it again is heard once in this time."""
MAX_RUNG: Final = 1_024


class RecentRings:
    """Whose reactions rang lately, and to which message."""

    def __init__(self) -> None:
        self._last_ms: OrderedDict[tuple[ParticipantId, MessageId], UnixMs] = OrderedDict()

    def ring(self, who: ParticipantId, message_id: MessageId, now_ms: UnixMs) -> bool:
        """Whether it may ring; if so, it counts as rung."""
        key = who, message_id
        last_ms = self._last_ms.get(key)
        if last_ms is not None and now_ms < last_ms + RING_AGAIN_MS:
            return False
        self._last_ms[key] = now_ms
        self._last_ms.move_to_end(key)
        if len(self._last_ms) > MAX_RUNG:
            self._last_ms.popitem(last=False)
        return True


def in_log_order(notes: Sequence[Note], rows: Mapping[MessageId, StoredMessage]) -> list[Note]:
    """What concerns rows, as those follow each other in the log; before it the rest.

    ``rows`` are as they are after all of ``notes``, so in another order a message could be told of
    in its place before what it depends on is.
    """
    others: list[Note] = []
    placed: list[tuple[Position, bool, Note]] = []
    for note in notes:
        row_id = _row_of(note)
        if row_id is None or row_id not in rows:
            others.append(note)
        else:
            placed.append((rows[row_id].record.position, not isinstance(note, RowAdded), note))
    return [*others, *(note for *_, note in sorted(placed, key=lambda each: each[:2]))]


def _row_of(note: Note) -> MessageId | None:
    match note:
        case RowAdded(message_id=message_id) | RowChanged(message_id=message_id):
            return message_id
        case AnnotationAdded(annotation=annotation):
            return annotation.target_id
        case _:
            return None


class EventPublisher:
    """``summary`` is None and ``members`` is empty until a session is loaded."""

    def __init__(self, record: ConversationRecord, context: RunnerContext) -> None:
        self.record = record
        self.summary: ConversationSummary | None = None
        self.members: Members = {}
        self.muted: frozenset[ParticipantId] = frozenset()
        """Members whose messages are not shown."""
        self.shown_unloaded = False
        """Whether somebody saw it before its session was loaded."""
        self._people: tuple[MemberView, ...] = ()
        self._rung = RecentRings()
        self._context = context

    @property
    def is_pair(self) -> bool:
        return isinstance(self.record, ContactRecord)

    @property
    def _conversation_id(self) -> ConversationId:
        return self.record.conversation_id

    def introduce(
        self, members: Members, summary: ConversationSummary, muted: frozenset[ParticipantId]
    ) -> None:
        """Take over what the store knows before a session is loaded."""
        self.members, self.summary, self.muted = members, summary, muted
        self._people = member_views(tuple(members.values()), self._context.own_id, muted)

    def learn(self, session: Session) -> None:
        """Take over the members and names that the session knows."""
        known, mine = session.record, self.record
        self.record = replace(
            known,
            muted=mine.muted,
            muted_until_ms=mine.muted_until_ms,
            draft=mine.draft,
            read_up_to=mine.read_up_to,
        )
        self.members = session.members()
        everybody = tuple(self.members.values())
        self._people = member_views(everybody, self._context.own_id, self.muted)

    @property
    def is_alone(self) -> bool:
        """Whether no other member of the group is known."""
        return not self.is_pair and self.members.keys() == {self._context.own_id}

    @property
    def is_muted(self) -> bool:
        """Whether the conversation is: one that is muted until some time is not any more after."""
        return self.record.muted and not self.mute_is_over

    @property
    def mute_is_over(self) -> bool:
        """An end further away than any that can be set was made by a wrong clock, and is over."""
        until_ms = self.record.muted_until_ms
        if until_ms is None:
            return False
        return not 0 < until_ms - self._context.clock.clock_ms() <= LONGEST_MUTE_MS

    # --- read models --------------------------------------------------------------------------

    def view(self, session: Session | None) -> ConversationView | None:
        if self.summary is None:
            return None
        if session is None:
            self.shown_unloaded = True
        gap, last = session.gap() if session else None, self.summary.last_message
        said = self.summary.last_annotation
        return conversation_view(
            self.record,
            self.summary,
            people=self._people,
            contact=self._contact_view(session),
            open_channel=self._open_channel_view(),
            last_message=self._message_view(last) if last else None,
            missing=gap.missing if gap else 0,
            last_annotation=annotation_view(said, self.members) if said else None,
        )

    def held(self, session: Session) -> HeldView | None:
        aside = without(session.held_aside(), self.muted)
        return held_view(self._conversation_id, aside, self.members, self._context.own_id)

    def floods(self, session: Session) -> tuple[FloodView, ...]:
        return tuple(
            FloodView(
                conversation_id=self._conversation_id,
                participant_id=one.sender_id,
                name=sender_name(one.sender_id, self.members, self.record),
                waiting=one.waiting,
                size=one.size,
                dropped=one.bare,
            )
            for one in session.set_aside()
        )

    def forks(self, session: Session) -> tuple[ForkView, ...]:
        own_id, conversation_id = self._context.own_id, self._conversation_id
        return tuple(
            fork_view(conversation_id, fork, self.members, own_id) for fork in session.forks()
        )

    def _contact_view(self, session: Session | None) -> ContactView | None:
        own = self.members.get(self._context.own_id)
        if not isinstance(self.record, ContactRecord) or own is None:
            return None
        since_ms = below_olm_ms = None
        if isinstance(session, PairSession):
            since_ms = session.forward_secret_since or UnixMs(0)
            below_olm_ms = session.below_olm_ms
        return contact_view(
            self.record,
            own_public_key=own.public_key,
            is_online=session is not None and session.other_is_here,
            forward_secret_ms=since_ms,
            below_olm_ms=below_olm_ms,
        )

    def _open_channel_view(self) -> OpenChannelView | None:
        if not isinstance(self.record, OpenChannelRecord):
            return None
        served = self.record.cluster_id == self._context.transport.sharding.cluster_id
        return open_channel_view(self.record, is_served=served)

    def _message_view(self, stored: StoredMessage) -> MessageView:
        return message_view(stored, self.members, self._context.own_id, self.record)

    # --- events -------------------------------------------------------------------------------

    def tell_loaded(self, session: Session) -> None:
        """Publish what only the session knows; what is held aside follows by itself."""
        conversation_id, publish = self._conversation_id, self._context.publish
        publish(GapUpdated(conversation_id=conversation_id, gap=session.gap()))
        if floods := self.floods(session):
            publish(FloodsChanged(conversation_id=conversation_id, floods=floods))
        if forks := self.forks(session):
            publish(ForksFound(conversation_id=conversation_id, forks=forks))
        self._context.tell_governance(conversation_id)
        self.tell_conversation(session)

    def tell_index_made_again(self) -> None:
        """Publish that what was kept of the log could not be used."""
        content = IndexMadeAgain(conversation_name=shown_name(self.record))
        key = f"index/{self._conversation_id}"
        self._context.publish(NoticeRaised(key=key, level=NoticeLevel.INFO, content=content))

    def tell(
        self, session: Session, notes: Sequence[Note], rows: Mapping[MessageId, StoredMessage]
    ) -> None:
        if not notes:
            return
        if any(isinstance(note, MembersNoted) for note in notes):
            self.learn(session)
        self.tell_rows(notes, rows)
        self.tell_concerned(notes, rows)
        self.tell_others(session, notes)

    def tell_others(self, session: Session, notes: Sequence[Note]) -> None:
        """Publish everything except the rows."""
        if any(isinstance(note, GapNoted) for note in notes):
            gap = GapUpdated(conversation_id=self._conversation_id, gap=session.gap())
            self._context.publish(gap)
        if any(isinstance(note, HeldAsideNoted) for note in notes):
            self._tell_held(session)
        if any(isinstance(note, SetAsideNoted) for note in notes):
            floods = self.floods(session)
            event = FloodsChanged(conversation_id=self._conversation_id, floods=floods)
            self._context.publish(event)
        if any(isinstance(note, ForkNoted) for note in notes):
            forks = ForksFound(conversation_id=self._conversation_id, forks=self.forks(session))
            self._context.publish(forks)
        if any(isinstance(note, GovernanceNoted | MembersNoted) for note in notes):
            self._context.tell_governance(self._conversation_id)
        if any(isinstance(note, TypingNoted) for note in notes):
            self._tell_typing(session)
        for note in notes:
            if isinstance(note, EchoHeard):
                who = note.echo.participant_id
                self._context.hear_echo(note, name_of(who, self.members))
        if any(not isinstance(note, TypingNoted | EchoHeard) for note in notes):
            self.tell_conversation(session)

    def set_muted(
        self, participant_id: ParticipantId, session: Session | None, *, muted: bool
    ) -> None:
        """Mute or unmute a member, and publish what changes by that."""
        one = frozenset((participant_id,))
        self.muted = self.muted | one if muted else self.muted - one
        if session is None:
            return
        self.learn(session)
        self._tell_held(session)
        self._tell_typing(session)
        self.tell_timeline(session)

    def tell_timeline(self, session: Session | None) -> None:
        """Publish that many rows appeared or disappeared."""
        self._context.publish(TimelineChanged(conversation_id=self._conversation_id))
        self.tell_conversation(session)

    def tell_conversation(self, session: Session | None) -> None:
        view = self.view(session)
        if view is not None:
            self._context.publish(ConversationChanged(conversation=view))

    def _tell_held(self, session: Session) -> None:
        publish = self._context.publish
        publish(HeldUpdated(conversation_id=self._conversation_id, held=self.held(session)))
        aside = without(session.held_aside(), self.muted)
        publish(held_notice(aside, self.members, self.record))

    def tell_rows(self, notes: Sequence[Note], rows: Mapping[MessageId, StoredMessage]) -> None:
        """Publish the rows that ``notes`` name."""
        publish = self._context.publish
        told: set[MessageId] = set()
        for note in notes:
            if isinstance(note, AnnotationAdded):
                self._hear(note, rows.get(note.annotation.target_id))
            if isinstance(note, RowRemoved):
                conversation_id, message_id = self._conversation_id, note.message_id
                publish(MessageRemoved(conversation_id=conversation_id, message_id=message_id))
            row_id = _row_of(note)
            if row_id is None or row_id not in rows or row_id in told:
                continue
            told.add(row_id)
            view = self._message_view(rows[row_id])
            if isinstance(note, RowAdded):
                publish(MessageAdded(message=view, notify=note.notify and self._rings(view)))
            else:
                publish(MessageChanged(message=view))

    def tell_many(self, notes: Sequence[Note], rows: Mapping[MessageId, StoredMessage]) -> None:
        """As ``tell_rows``, with one event for new rows that follow each other and do not ring."""

        def is_quiet(note: Note) -> bool:
            return isinstance(note, RowAdded) and not note.notify and note.message_id in rows

        for are_quiet, some in groupby(notes, is_quiet):
            if not are_quiet:
                self.tell_rows(list(some), rows)
                continue
            ids = dict.fromkeys(note.message_id for note in some if isinstance(note, RowAdded))
            views = tuple(self._message_view(rows[message_id]) for message_id in ids)
            added = MessagesAdded(conversation_id=self._conversation_id, messages=views)
            self._context.publish(added)

    def tell_concerned(
        self, notes: Sequence[Note], rows: Mapping[MessageId, StoredMessage]
    ) -> None:
        """Publish the other rows that were read, because they look different now."""
        named = {note.message_id for note in notes if isinstance(note, RowAdded | RowChanged)}
        named |= {note.annotation.target_id for note in notes if isinstance(note, AnnotationAdded)}
        for message_id, stored in rows.items():
            if message_id not in named:
                self._context.publish(MessageChanged(message=self._message_view(stored)))

    def _rings(self, message: MessageView) -> bool:
        """Whether a live message by somebody else is worth a notification."""
        if not self.is_muted:
            return True
        return message.mentions_me and self._context.mentions_when_muted()

    def _hear(self, note: AnnotationAdded, target: StoredMessage | None) -> None:
        said = note.annotation
        if target is None:
            return
        if said.kind != REACTION:
            if said.sender_id != target.record.sender_id:
                counted = "pair.changed_by_another" if self.is_pair else "group.changed_by_another"
                self._context.counters.add(counted)
            return
        if self._reaction_rings(note, target):
            annotation = annotation_view(
                StoredAnnotation(
                    kind=said.kind,
                    message_id=said.position.message_id,
                    target_id=said.target_id,
                    sender_id=said.sender_id,
                    is_own=said.is_own,
                    sent_ms=said.sent_ms,
                    emoji=said.emoji,
                    target=quote_of(target),
                ),
                self.members,
            )
            received = ReactionReceived(
                conversation_id=self._conversation_id, annotation=annotation
            )
            self._context.publish(received)

    def _reaction_rings(self, note: AnnotationAdded, target: StoredMessage) -> bool:
        """Whether somebody's live reaction to a message of ours is worth a notification."""
        said = note.annotation
        wanted = note.notify and not said.removed and not target.retracted
        if self.is_muted or said.sender_id in self.muted:
            return False
        if not (wanted and target.record.is_own):
            return False
        return self._rung.ring(said.sender_id, said.target_id, said.received_ms)

    def _tell_typing(self, session: Session) -> None:
        typing = (who for who in session.typing_now() if who not in self.muted)
        names = tuple(self.members[who].name for who in typing if who in self.members)
        self._context.publish(TypingChanged(conversation_id=self._conversation_id, names=names))
