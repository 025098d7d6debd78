"""What was done in a governed group, as rows of the timeline; and messages that an admin deleted.

An entry of the admin log has its row at the place of the message that it came in, and only while it
counts: a row comes and goes as the log is judged.  Entries that came with our admission have none
until their message comes; but the one that let us in stands where our own first message is, since
most newcomers may not read its message.  What has a row is on disk with where it is, so that a
start, or a crash between an entry and its judgement, shows no row twice and leaves none behind.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from engine.core.admin_log.acts import (
    Act,
    Add,
    Demote,
    EndLink,
    Entry,
    EntryId,
    Promote,
    Remove,
    Rename,
    SetInviters,
    SetPicture,
    SetTopic,
)
from engine.core.admin_log.epochs import Epoch
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminState
from engine.core.errors import LocalProtocolError
from engine.core.governed import DeedPlace, GovernedState, PutDeed, PutDeletion, RemoveRow
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.ports import PutMember, PutMessage
from engine.core.records import MessageRecord
from engine.governance_views import DeedKind
from engine.session.rows import LATEST_MS
from engine.session.transitions import RowAdded, RowChanged, RowRemoved, TransitionBuilder

DEED = "deed"
"""The kind of such a row."""


class Deed(NamedTuple):
    kind: DeedKind
    about: ParticipantId | None = None
    text: str = ""


def deed_of(  # noqa: C901, PLR0911 - a table of acts
    act: Act, author: ParticipantId
) -> Deed | None:
    """None for what has no row: keys, invitations, deleted messages, and the group's beginning."""
    match act:
        case EndLink(members=members) if members:
            return Deed(DeedKind.LINK_ENDED)
        case Add(member=member):
            return Deed(DeedKind.ADDED, member)
        case Remove(member=member) if member == author:
            return Deed(DeedKind.LEFT, member)
        case Remove(member=member):
            return Deed(DeedKind.REMOVED, member)
        case Promote(member=member):
            return Deed(DeedKind.PROMOTED, member)
        case Demote(member=member) if member == author:
            return Deed(DeedKind.STEPPED_DOWN, member)
        case Demote(member=member):
            return Deed(DeedKind.DEMOTED, member)
        case Rename(name=name):
            return Deed(DeedKind.RENAMED, None, name)
        case SetTopic(topic=topic):
            return Deed(DeedKind.TOPIC_SET, None, topic)
        case SetPicture():
            return Deed(DeedKind.PICTURE_SET)
        case SetInviters(least=least):
            return Deed(DeedKind.INVITERS_SET, None, least.name.lower())
        case _:
            return None


def text_of(deed: Deed) -> str:
    """As a row keeps it; ``deed_in`` reads it."""
    return "\n".join((deed.kind, deed.about or "", deed.text))


def deed_in(text: str) -> Deed:
    """Raises LocalProtocolError for what ``text_of`` did not write."""
    kind, _, rest = text.partition("\n")
    about, _, said = rest.partition("\n")
    try:
        return Deed(DeedKind(kind), ParticipantId(about) if about else None, said)
    except ValueError as error:
        raise LocalProtocolError("no deed") from error


class Deeds:
    """``find``: an entry that has room in the log; ``sender_of``: of a message that is here."""

    def __init__(
        self,
        conversation_id: ConversationId,
        own_id: ParticipantId,
        saved: GovernedState,
        find: Callable[[EntryId], Entry | None],
        sender_of: Callable[[MessageId], ParticipantId | None],
    ) -> None:
        self._conversation_id = conversation_id
        self._own_id = own_id
        self._find = find
        self._sender_of = sender_of
        self._places = {deed.entry_id: deed for deed in saved.deeds}
        self._deleted = dict(saved.deleted)
        self._named = defaultdict[ParticipantId, set[MessageId]](set)
        """By person the rows about them: their name is in these."""
        for deed in saved.deeds:
            if deed.is_shown:
                self._name(deed)

    def _name(self, deed: DeedPlace) -> None:
        entry = self._find(deed.entry_id)
        done = deed_of(entry.act, entry.author) if entry is not None else None
        if done is not None and done.about is not None:
            self._named[done.about].add(deed.position.message_id)

    def came(self, entry_id: EntryId, position: Position, builder: TransitionBuilder) -> None:
        """The message that an entry is in has its place; of several the first one counts."""
        known = self._place_here(entry_id)
        if known is not None:
            if known.position <= position and not self._stands_in(known):
                return
            self._take_out(known, builder)
        self._put(DeedPlace(entry_id=entry_id, position=position, is_shown=False), builder)

    def joined(self, added: EntryId, position: Position, builder: TransitionBuilder) -> None:
        """Our join statement has its place: who let us in is told there, until ``added`` came."""
        if self._place_here(added) is None:
            self._put(DeedPlace(entry_id=added, position=position, is_shown=False), builder)

    def is_told(self, entry_id: EntryId) -> bool:
        return self._place_here(entry_id) is not None

    def _place_here(self, entry_id: EntryId) -> DeedPlace | None:
        known = self._places.get(entry_id)
        is_here = known is not None and self._sender_of(known.position.message_id) is not None
        return known if is_here else None

    def _stands_in(self, deed: DeedPlace) -> bool:
        """Whether it is where our join statement is: the message is ours, the entry is not."""
        entry = self._find(deed.entry_id)
        is_ours = self._sender_of(deed.position.message_id) == self._own_id
        return is_ours and entry is not None and entry.author != self._own_id

    def _put(self, deed: DeedPlace, builder: TransitionBuilder) -> None:
        self._places[deed.entry_id] = deed
        builder.writes.append(PutDeed(conversation_id=self._conversation_id, deed=deed))

    def place_of(self, entry_id: EntryId) -> Position | None:
        """Where the message is that an entry came in; None if it came with our admission."""
        deed = self._places.get(entry_id)
        return deed.position if deed is not None else None

    def reads_after(self, who: ParticipantId, epochs: Sequence[Epoch]) -> Position | None:
        """Where the first key begins that somebody was given, if there are earlier ones.

        ``epochs``: the newest first.
        """
        first = next((one for one in reversed(epochs) if who in one.readers), None)
        return None if first is None or first is epochs[-1] else self.place_of(first.entry_id)

    def follow(self, state: AdminState, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Give rows to what counts now, and take those of what does not."""
        for deed in [*self._places.values()]:
            entry = self._find(deed.entry_id)
            done = None
            if entry is not None and _counts(state, entry.entry_id):
                done = deed_of(entry.act, entry.author)
            if entry is not None and done is not None and not deed.is_shown:
                self._show(deed, entry, done, builder, now_ms=now_ms)
            elif done is None and deed.is_shown:
                self._take_out(deed, builder)
                self._put(replace(deed, is_shown=False), builder)
        self._follow_deletions(state, builder)

    def _show(
        self,
        deed: DeedPlace,
        entry: Entry,
        done: Deed,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
    ) -> None:
        message_id, is_own = deed.position.message_id, entry.author == self._own_id
        record = MessageRecord(
            conversation_id=self._conversation_id,
            position=deed.position,
            sender_id=entry.author,
            is_own=is_own,
            kind=DEED,
            text=text_of(done),
            spans=(),
            sent_ms=min(entry.sent_ms, LATEST_MS),
            received_ms=now_ms,
        )
        builder.writes.append(PutMessage(message=record))
        builder.notes.append(RowAdded(message_id=message_id, is_own=is_own, notify=False))
        self._put(replace(deed, is_shown=True), builder)
        self._name(deed)

    def _take_out(self, deed: DeedPlace, builder: TransitionBuilder) -> None:
        if not deed.is_shown:
            return
        message_id = deed.position.message_id
        builder.writes.append(
            RemoveRow(conversation_id=self._conversation_id, position=deed.position)
        )
        builder.notes.append(RowRemoved(message_id=message_id))

    def _follow_deletions(self, state: AdminState, builder: TransitionBuilder) -> None:
        for deletion in sorted({*self._deleted, *state.deleted}):
            by = state.deleted.get(deletion)
            if by == self._deleted.get(deletion):
                continue
            builder.writes.append(
                PutDeletion(conversation_id=self._conversation_id, deletion=deletion, deleted_by=by)
            )
            builder.notes.append(RowChanged(message_id=deletion.message_id))
        self._deleted = dict(state.deleted)

    def follow_names(self, builder: TransitionBuilder) -> None:
        """Rows about people who have another name now than when they were shown."""
        renamed = {
            write.member.participant_id for write in builder.writes if isinstance(write, PutMember)
        }
        ids: Iterable[MessageId] = (each for who in renamed for each in self._named.get(who, ()))
        builder.notes += [RowChanged(message_id=each) for each in sorted(ids)]

    @property
    def rows(self) -> Collection[MessageId]:
        """Messages that have a row because of an entry in them."""
        return {one.position.message_id for one in self._places.values() if one.is_shown}


def _counts(state: AdminState, entry_id: EntryId) -> bool:
    return state.verdicts.get(entry_id) is Verdict.COUNTS and entry_id not in state.idle
