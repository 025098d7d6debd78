"""A group's admin log as others use it: entries go in, in any order; what is in force comes out.

``state`` is a function of the set of entries that are here with all they name.  It is computed anew
when it is asked for after a change, so add many before asking.  Nothing is sent or stored here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.core.admin_log.acts import (
    LATEST_CREATE,
    LEAST_ROLE,
    MAX_ENTRIES,
    MAX_HEADS,
    MAX_STEP,
    Add,
    Create,
    DeleteMessage,
    Demote,
    EndLink,
    Entry,
    EntryId,
    Invite,
    LastMessage,
    Remove,
    Rename,
    Revoke,
    Role,
    SetInviters,
    SetPicture,
    SetTopic,
)
from engine.core.admin_log.ancestry import Ancestry
from engine.core.admin_log.epochs import Epoch, epochs_of
from engine.core.admin_log.foresight import verdict_on_next
from engine.core.admin_log.judging import Judgement, Verdict, judge
from engine.core.admin_log.room import Room
from engine.core.admin_log.standing import Standing
from engine.core.admin_log.waiting import Waiting
from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId, MessageId, ParticipantId, UnixMs


class Invitation(Struct, frozen=True, kw_only=True):
    made_by: ParticipantId
    made_ms: UnixMs
    """By its author's clock."""
    lamport_timestamp: int
    token_hash: bytes
    uses: int
    expires_ms: UnixMs
    came: tuple[ParticipantId, ...] = ()
    """Who was added by it, in the order of the log."""
    is_revoked: bool = False

    @property
    def is_open(self) -> bool:
        """Neither revoked nor used up; whether it has expired is for whoever has a clock."""
        return not self.is_revoked and len(self.came) < self.uses


class Deletion(Struct, frozen=True, order=True):
    """Of a message of ``author``: one with this id by anybody else stays."""

    message_id: MessageId
    author: ParticipantId


class AdminState(Struct, frozen=True, kw_only=True):
    """What is in force."""

    roles: Mapping[ParticipantId, Role]
    """Of each member, the highest rank first."""
    ever: frozenset[ParticipantId]
    """Everybody who was a member at some time."""
    name: str
    picture: bytes
    topic: str
    topic_name: bytes
    """Of the content topic, if the group began with a link that anyone could come in by."""
    inviters: Role
    """Members of this role and above may invite and add."""
    invitations: Mapping[EntryId, Invitation]
    """All that count, in the order of the log."""
    deleted: Mapping[Deletion, ParticipantId]
    """And who did it first."""
    epochs: tuple[Epoch, ...]
    """The newest first."""
    last_messages: Mapping[ParticipantId, Mapping[InstanceId, LastMessage]]
    """By person who was ever removed, or left before there was a log: ``cuts.void_messages`` says
    what is void."""
    removed_by: Mapping[ParticipantId, ParticipantId]
    """Who removed somebody last, themselves if they left; they may be members again."""
    removed_at: Mapping[ParticipantId, int]
    """The Lamport timestamp of that."""
    added: Mapping[ParticipantId, EntryId]
    """By which entry somebody was admitted last."""
    verdicts: Mapping[EntryId, Verdict]
    idle: frozenset[EntryId]
    """Removals and demotions that count, and changed nothing: nobody had that role."""


class AdminLog:
    """``first``: id of the ``Create`` that the group began with, as its members know it.

    ``size``: how many entries have room.
    """

    def __init__(
        self, first: EntryId, entries: Iterable[Entry] = (), *, size: int = MAX_ENTRIES
    ) -> None:
        self._first: Final = first
        self._size: Final = size
        self._standing: Final = Standing(first)
        self._room: Final = Room(size)
        self._waiting: Final = Waiting()
        self._ancestry = Ancestry()
        self._now: tuple[Judgement, AdminState] | None = None
        self._refused: set[EntryId] = set()
        self.take(entries)

    @property
    def heads(self) -> tuple[EntryId, ...]:
        """The newest entries, MAX_HEADS at most."""
        self._deal_room()
        return self._ancestry.heads(self._ancestry.loose())

    def heads_for(self, author: ParticipantId) -> tuple[EntryId, ...]:
        """What a new entry of theirs names.

        Somebody may have written more than MAX_HEADS that know of nothing, so that the newest do
        not even know of the author.  Then it names what the author wrote and is, and what each
        member wrote last, the highest rank first, so that it counts whoever floods the log.
        """
        self._deal_room()
        loose = self._ancestry.loose()
        if len(loose) <= MAX_HEADS:
            return self._ancestry.heads(loose)
        judgement, state = self._judged()
        last = {entry.author: number for number, entry in enumerate(self._ancestry.entries)}
        terms = (term.number for term in judgement.terms if term.who == author)
        wanted = [last.get(author), next(terms, None), *map(last.get, state.roles)]
        first = (number for number in wanted if number is not None)
        return self._ancestry.heads((loose[0], *first, *loose))

    @property
    def missing(self) -> tuple[EntryId, ...]:
        """Entries that others name and that are not here; sorted."""
        return tuple(sorted(self._waiting.missing))

    @property
    def wanted_again(self) -> frozenset[EntryId]:
        """Those that were refused, and that others name now: ``take`` them."""
        return frozenset(self._refused & self._waiting.missing)

    @property
    def wanted_of(self) -> frozenset[ParticipantId]:
        """Of whom some were refused since too many waited: ``take`` what they wrote."""
        return self._waiting.eased

    def was_refused(self, entry_id: EntryId) -> bool:
        return entry_id in self._refused

    @property
    def state(self) -> AdminState:
        return self._judged()[1]

    def _judged(self) -> tuple[Judgement, AdminState]:
        if self._now is None:
            self._deal_room()
            futures = self._ancestry.futures()
            judgement = judge(self._ancestry, futures, self._first)
            self._now = judgement, _in_force(self._ancestry, judgement, futures)
        return self._now

    @property
    def people(self) -> Collection[ParticipantId]:
        """Everybody who may ever have had a role, if all entries counted.  It only grows."""
        return self._standing.people

    def find(self, entry_id: EntryId) -> Entry | None:
        """One that has its place in the log, and room."""
        number = self._ancestry.number(entry_id)
        return None if number is None else self._ancestry.entries[number]

    def knew(self, later: EntryId, earlier: EntryId) -> bool:
        """Whether the author of one entry that has room knew another one that has."""
        late, early = self._ancestry.number(later), self._ancestry.number(earlier)
        return late is not None and early is not None and self._ancestry.knew(late, early)

    def needed(self) -> tuple[EntryId, ...]:
        """Those that have room, and those that these name; each after all that it names."""
        self._deal_room()
        return self._ancestry.needed()

    def has(self, entry_id: EntryId) -> bool:
        """Whether it is here, if only to wait."""
        return self._ancestry.has(entry_id) or entry_id in self._waiting

    def lamport_of(self, entry_ids: Iterable[EntryId]) -> int:
        """The highest Lamport timestamp among entries that are here, 0 for none."""
        here = (each for each in entry_ids if self._ancestry.has(each))
        return max(map(self._ancestry.lamport_of, here), default=0)

    def verdict_on(self, entry: Entry) -> Verdict | None:
        """What would become of one that names ``heads``, if it were added now.

        None if it would have no room.  It may take that of another; whatever was to be said of
        that one is said as if it had room.
        """
        judgement, state = self._judged()
        if len(self._ancestry.entries) >= self._size:
            share = self._standing.share_of(entry, self._standing.past(entry))
            if not self._room.has_some(entry, share):
                return None
        return verdict_on_next(judgement, state.inviters, entry)

    def add(self, entry: Entry) -> bool:
        """Whether ``state`` may have changed.

        Raises RemoteProtocolError ``malformed_entry``, ``entry_ahead``, ``too_many_entries`` if too
        many of its author wait, or ``no_room_in_log``.  Whoever adds them has to keep the latter
        two, and ``take`` them again when ``wanted_again`` or ``wanted_of`` says so.
        """
        if self.has(entry.entry_id):
            return False
        _require_shape(entry)
        lacking = [head for head in entry.heads if not self._ancestry.has(head)]
        if lacking:
            self._wait(entry, lacking)
            return False
        if self._is_ahead(entry):
            raise RemoteProtocolError("entry_ahead")
        is_news = self._place(entry)
        if len(self._ancestry.entries) >= 2 * self._size:
            self._deal_room()
        if not self._ancestry.has(entry.entry_id):
            raise RemoteProtocolError("no_room_in_log")
        return is_news

    def take(self, entries: Iterable[Entry]) -> None:
        """Those of them that are of use, in whatever order they come."""
        self._waiting.try_again()
        left = self._refusals(entries)
        while True:
            while wanted := [left.pop(each) for each in self.missing if each in left]:
                refused = self._refusals(wanted)
                left |= refused
                if len(refused) == len(wanted):
                    break  # They are of no use, whoever names them.
            count = len(left)
            left = self._refusals(left.values())
            if len(left) == count:
                return

    def _refusals(self, entries: Iterable[Entry]) -> dict[EntryId, Entry]:
        refused = {}
        for entry in entries:
            try:
                self.add(entry)
            except RemoteProtocolError:
                refused[entry.entry_id] = entry
        return refused

    def _wait(self, entry: Entry, lacking: Iterable[EntryId]) -> None:
        try:
            self._waiting.add(entry, lacking)
        except RemoteProtocolError:
            self._refused.add(entry.entry_id)
            raise
        self._refused.discard(entry.entry_id)

    def _place(self, entry: Entry) -> bool:
        """Put it in, and whatever waited for it alone, and so on."""
        ready, is_news = [entry], False
        while ready:
            one = ready.pop()
            if self._is_ahead(one):
                continue
            past = self._standing.past(one)
            self._standing.hear(one, past)
            share = self._standing.share_of(one, past)
            has_room = not self._room.has_none(one, share)
            if not has_room and not self._waiting.is_wanted(one.entry_id):
                self._refused.add(one.entry_id)
                continue
            self._refused.discard(one.entry_id)
            self._standing.keep(one, past, self._room.count(one, share))
            self._ancestry.add(one, has_room=has_room)
            ready += self._waiting.release(one.entry_id, self._ancestry.has)
            is_news |= has_room
        if is_news:
            self._now = None
        return is_news

    def _is_ahead(self, entry: Entry) -> bool:
        """By the entries that it names, so that all members refuse the same ones."""
        newest = self.lamport_of(entry.heads) if entry.heads else LATEST_CREATE
        return entry.lamport_timestamp > newest + MAX_STEP

    def _deal_room(self) -> None:
        if len(self._ancestry.entries) > self._size:
            self._ancestry = self._ancestry.with_no_room(self._room.deal())


def _require_shape(entry: Entry) -> None:
    """An id commits to its heads, so a cycle cannot be made; that need not be looked for."""
    heads = entry.heads
    is_first = isinstance(entry.act, Create)
    if is_first != (not heads) or len(heads) > MAX_HEADS or len(set(heads)) != len(heads):
        raise RemoteProtocolError("malformed_entry")


def _in_force(ancestry: Ancestry, judgement: Judgement, futures: Sequence[int]) -> AdminState:
    counting = [
        entry
        for entry, verdict in zip(ancestry.entries, judgement.verdicts, strict=True)
        if verdict is Verdict.COUNTS
    ]
    counting.sort(key=lambda entry: (entry.lamport_timestamp, entry.entry_id))
    roles: dict[ParticipantId, Role] = {}
    for term in judgement.terms:  # The highest comes first.
        roles.setdefault(term.who, term.role)
    settings = _settings(counting)
    removed = {entry.act.member: entry for entry in counting if isinstance(entry.act, Remove)}
    return AdminState(
        roles=MappingProxyType(roles),
        ever=judgement.ever.union(
            one.member
            for entry in counting
            if isinstance(entry.act, EndLink)
            for one in entry.act.left
        ),
        name=settings.name,
        picture=settings.picture,
        topic=settings.topic,
        topic_name=settings.topic_name,
        inviters=settings.inviters,
        invitations=MappingProxyType(_invitations(counting)),
        deleted=MappingProxyType(
            {
                Deletion(entry.act.message_id, entry.act.author): entry.author
                for entry in reversed(counting)
                if isinstance(entry.act, DeleteMessage)
            }
        ),
        epochs=epochs_of(ancestry, judgement, futures, roles.keys()),
        last_messages=MappingProxyType(_last_messages(counting)),
        removed_by=MappingProxyType({who: one.author for who, one in removed.items()}),
        removed_at=MappingProxyType({who: one.lamport_timestamp for who, one in removed.items()}),
        added=MappingProxyType(
            {entry.act.member: entry.entry_id for entry in counting if isinstance(entry.act, Add)}
        ),
        idle=frozenset(
            entry.entry_id
            for number, entry in enumerate(ancestry.entries)
            if isinstance(entry.act, Remove | Demote) and not judgement.endings >> number & 1
        ),
        verdicts=MappingProxyType(
            {
                entry.entry_id: verdict
                for entry, verdict in zip(ancestry.entries, judgement.verdicts, strict=True)
            }
        ),
    )


class _Settings(Struct):
    name: str = ""
    picture: bytes = b""
    topic: str = ""
    topic_name: bytes = b""
    inviters: Role = LEAST_ROLE[Add]


def _settings(counting: Iterable[Entry]) -> _Settings:
    """The newest of each, by the order of the log."""
    settings = _Settings()
    for entry in counting:
        match entry.act:
            case Create(name=name) | Rename(name=name):
                settings.name = name
            case EndLink(name=name, topic_name=topic_name):
                settings.name, settings.topic_name = name, topic_name
            case SetPicture(picture=picture):
                settings.picture = picture
            case SetTopic(topic=topic):
                settings.topic = topic
            case SetInviters(least=least):
                settings.inviters = least
            case _:
                pass
    return settings


def _invitations(counting: Iterable[Entry]) -> dict[EntryId, Invitation]:
    found: dict[EntryId, Invitation] = {}
    for entry in counting:
        match entry.act:
            case Invite(token_hash=token_hash, uses=uses, expires_ms=expires_ms):
                found[entry.entry_id] = Invitation(
                    made_by=entry.author,
                    made_ms=entry.sent_ms,
                    lamport_timestamp=entry.lamport_timestamp,
                    token_hash=token_hash,
                    uses=uses,
                    expires_ms=expires_ms,
                )
            case Add(member=member, invitation=invitation) if invitation is not None:
                used = found[invitation]  # An admission by it counts, so it came before.
                found[invitation] = replace(used, came=(*used.came, member))
            case _:
                pass
    for entry in counting:
        if isinstance(entry.act, Revoke) and entry.act.invitation in found:
            found[entry.act.invitation] = replace(found[entry.act.invitation], is_revoked=True)
    return found


def _last_messages(
    counting: Iterable[Entry],
) -> dict[ParticipantId, Mapping[InstanceId, LastMessage]]:
    """Of several removals that name an instance the lowest number counts, then the lowest id."""
    found: dict[ParticipantId, dict[InstanceId, LastMessage]] = {}
    for entry in counting:
        for who, last_messages in _cuts_of(entry):
            named = found.setdefault(who, {})
            for last in last_messages:
                named[last.instance_id] = min(last, named.get(last.instance_id, last))
    return {who: MappingProxyType(named) for who, named in found.items()}


def _cuts_of(entry: Entry) -> Sequence[tuple[ParticipantId, Sequence[LastMessage]]]:
    match entry.act:
        case Remove(member=member, last_messages=last) if member != entry.author:
            return ((member, last),)
        case EndLink(left=left):
            return [(one.member, one.last_messages) for one in left]
        case _:
            return ()
