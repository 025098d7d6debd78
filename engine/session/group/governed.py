"""The part of a group's session that only a governed group has, as one: log, people, void messages.

``GroupSession`` tells it what was said and asks it what may be said and shown.  In a group that
anyone with the link is in there is none of this.
"""

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from engine.codec.content import decode_content
from engine.codec.join import decode_join
from engine.core.admin_log.acts import (
    ANYONE,
    MAX_LAST_MESSAGES,
    Act,
    Add,
    EndLink,
    LastMessage,
    Remove,
    Role,
)
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.waiting import TOO_MANY
from engine.core.content import AdminEntry, Body, Governing, Join, KeysWanted, KeyWraps
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import RemoteProtocolError
from engine.core.governed import (
    MAX_BEFORE,
    Admission,
    GovernedState,
    GroupGovernance,
    NameGroup,
    may_let_in,
)
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord
from engine.core.sds.channel import SdsChannel
from engine.core.sds.inputs import SignedAnew
from engine.core.sds.vocabulary import (
    Event,
    LogEntry,
    MessageDelivered,
    MessageShownWaiting,
    OutgoingEntry,
)
from engine.crypto.sealed import SealedGroup
from engine.session.clock import SessionClock
from engine.session.group.author_binding import bound_author
from engine.session.group.deeds import Deeds
from engine.session.group.epoch_keys import EpochKeys, Saying
from engine.session.group.governance import SOON_MS, Governance
from engine.session.group.parking import Parking
from engine.session.group.people import GroupPeople
from engine.session.group.saved import SavedGroup
from engine.session.group.void_messages import VoidMessages
from engine.session.group.wire import GroupWire, Verified
from engine.session.inputs import MessageArrived
from engine.session.transitions import (
    EntriesLoaded,
    GovernanceNoted,
    GovernedLoaded,
    LoadForRepair,
    LoadToShow,
    MembersNoted,
    TransitionBuilder,
)

MAX_TOLD: Final = 32
RECALL_EVERY_MS: Final = 30_000
"""Entries are read from disk again this often at most."""
TELL_FIRST_MS: Final = 15_000
TELL_MOST_MS: Final = 3_600_000
_NOBODY: Final = ParticipantId("")


class GovernedPart:
    def __init__(  # noqa: PLR0913 - everything that is injected
        self,
        governance: Governance,
        people: GroupPeople,
        channel: SdsChannel,
        *,
        seed: SavedGroup,
        entropy: Entropy,
        counters: Counters,
        wire: GroupWire,
    ) -> None:
        self._governance = governance
        self._people = people
        self._counters = counters
        self._group = seed.group
        self._own_id = seed.identity.participant_id
        self._channel = channel
        self._void = VoidMessages(seed.group.conversation_id, channel.said_by, governance.state)
        self._deeds = Deeds(
            seed.group.conversation_id,
            self._own_id,
            seed.governed or GovernedState(),
            governance.find,
            channel.sender_of,
        )
        self._name = seed.group.name
        self._are_deeds_due = False
        self.is_new = True
        """Entries may have come that nobody judged before the start: ``settle`` soon."""
        self._settle_at_ms: UnixMs | None = None
        self._may_be_stale = False
        """Messages may have to be signed anew: see ``stale``."""
        self._recall_at_ms: UnixMs | None = None
        self._is_reading = False
        self._seen = governance.state
        self.keys = EpochKeys(
            seed,
            governance,
            people.encryption_key_of,
            on_key=self._take_key,
            entropy=entropy,
            counters=counters,
        )
        self._wire = wire
        self._locked: Parking[MessageArrived] = Parking()
        self._has_new_key = False
        self._entropy = entropy
        entries = sorted(one.position for one in seed.governed.deeds) if seed.governed else []
        self._told = deque((one.message_id for one in entries), maxlen=MAX_TOLD)
        """The newest messages that entries and wraps came in; of before the start only entries."""
        self._told_by_others = set[MessageId]()
        """Since ``_tell_at_ms`` was set."""
        self._end: MessageId | None = None
        """The message that ended the link of the group; looked up whenever it is to be told."""
        self._tell_at_ms: UnixMs | None = None
        self._tell_every_ms = TELL_FIRST_MS
        channel.send_nothing_before(lambda who: self._deeds.reads_after(who, self._seen.epochs))

    @property
    def governance(self) -> Governance:
        return self._governance

    def next_deadline(self, offset_ms: int) -> UnixMs | None:
        """``offset_ms``: how far our clock is ahead of the time that timers go by."""
        due = [self.keys.next_deadline(offset_ms), self._settle_at_ms, self._tell_at_ms]
        if self._governance.to_recall is not None:
            due.append(self._recall_at_ms)
        return min((each for each in due if each is not None), default=None)

    def _message_of_end(self) -> MessageId | None:
        """Of an end that counts, and says who is a member: forged ones tell nobody anything."""
        verdicts = self._governance.state.verdicts
        for name in (name for name, verdict in verdicts.items() if verdict is Verdict.COUNTS):
            entry, place = self._governance.find(name), self._deeds.place_of(name)
            if entry and place and isinstance(entry.act, EndLink) and entry.act.members:
                return place.message_id
        return None

    # --- what was said --------------------------------------------------------------------------

    def passes(
        self, event: Event, builder: TransitionBuilder, *, now_ms: UnixMs, clock_ms: UnixMs
    ) -> bool:
        """Take what keeps the group going; False if the message counts for nothing else."""
        if not isinstance(event, MessageDelivered | MessageShownWaiting):
            return True
        content = decode_content(event.message.content or b"")
        if isinstance(event, MessageDelivered) and isinstance(content.body, Governing):
            self._told.append(event.message.message_id)
            self._take(event.message.sender_id, content.body, builder, now_ms, clock_ms, event)
        if isinstance(event, MessageDelivered) and isinstance(content.body, Join):
            self._joined(event, builder)
        if not self._void.is_void(event.message, content):
            return True
        self._counters.add("group.void")
        builder.notes.append(GovernanceNoted())
        return False

    def _joined(self, event: MessageDelivered, builder: TransitionBuilder) -> None:
        added = self._governance.state.added.get(self._own_id)
        if added is not None and event.is_own and not event.came_back:
            self._deeds.joined(added, event.position, builder)
            self._are_deeds_due = True

    def hear(
        self,
        who: ParticipantId,
        body: Body,
        builder: TransitionBuilder,
        now_ms: UnixMs,
        clock: SessionClock,
    ) -> None:
        """A member's message came that has no place yet, since it waits for others.

        What keeps the group going is taken at once.  Else a fresh key could wait for a message that
        is sealed with it: one that its author said before they made the key, and sealed afterwards.
        """
        if isinstance(body, AdminEntry | KeyWraps | KeysWanted):
            self._take(who, body, builder, now_ms, clock.at(now_ms), None)

    def _take(  # noqa: PLR0913, PLR0917 - all that a body is taken with
        self,
        who: ParticipantId,
        body: Governing,
        builder: TransitionBuilder,
        now_ms: UnixMs,
        clock_ms: UnixMs,
        placed: MessageDelivered | None,
    ) -> None:
        """What an entry changes is done by ``settle``."""
        try:
            if not isinstance(body, AdminEntry):
                self.keys.take(who, body, builder, now_ms=now_ms, clock_ms=clock_ms)
                return
            entry_id = self._governance.take(body, who, builder)
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
            if error.reason != TOO_MANY or not isinstance(body, AdminEntry):
                return
            entry_id = self._governance.id_of(body)  # It is taken later, and needs its row then.
        if placed is not None:
            self._deeds.came(entry_id, placed.position, builder)
            self._are_deeds_due = True
        if self._governance.is_behind:
            may_wait = self._governance.is_large and who != self._own_id
            wait_ms = SOON_MS if may_wait and not self._channel.untaken() else 0
            due_ms = UnixMs(now_ms + wait_ms)
            self._settle_at_ms = min(due_ms, self._settle_at_ms or due_ms)

    def settle(
        self, builder: TransitionBuilder, *, now_ms: UnixMs, clock_ms: UnixMs
    ) -> tuple[bytes, ...] | None:
        """Do what follows from entries that came, if that is due.

        Returns join statements to admit now, or None if nothing is different.
        """
        is_due = self._settle_at_ms is not None and self._settle_at_ms <= now_ms
        if is_due:
            self._governance.settle()
            self._settle_at_ms = None
        if self.is_new:
            self._look_for_voids()
        is_news = self._governance.state is not self._seen
        changed = is_news or self.is_new
        removed_at = {} if self.is_new else self._seen.removed_at
        self.is_new = False
        if is_news:
            builder.notes.append(GovernanceNoted())
        if changed:
            self._may_be_stale = True
            self._seen = self._governance.state
            if self._have_others_removed(since=removed_at):
                self.keys.wait_for_theirs(now_ms)
            self._tell_every_ms = TELL_FIRST_MS
            self.keys.follow(builder, now_ms=now_ms, clock_ms=clock_ms)
            self._people.follow(builder, clock_ms=clock_ms)
            authors = {*self._people.everyone(), *self._governance.state.last_messages}
            self._void.follow(self._governance.state, authors)
        if changed or (self._are_deeds_due and not self._governance.is_behind):
            self._are_deeds_due = False
            self._deeds.follow(self._seen, builder, now_ms=UnixMs(clock_ms))
            self._follow_name(builder)
        self._deeds.follow_names(builder)
        self._go_on(builder)
        self._recall(builder, now_ms)
        return self._people.known_now() if changed else None

    def _have_others_removed(self, since: Mapping[ParticipantId, int]) -> bool:
        """Whether another member removed somebody, and therefore makes a fresh key.

        ``since``: what was known of removals before; nothing at a start, since that key may have
        come meanwhile and still be on its way here.
        """
        state, roles = self._seen, self._seen.roles
        return any(
            who not in roles and by in roles and by != self._own_id
            for who, by in state.removed_by.items()
            if state.removed_at[who] != since.get(who)
        )

    def _recall(self, builder: TransitionBuilder, now_ms: UnixMs) -> None:
        """Ask for entries that had no room when they came, and that others name now."""
        load = self._governance.to_recall
        if load is not None and (self._recall_at_ms or now_ms) <= now_ms:
            self._recall_at_ms = UnixMs(now_ms + RECALL_EVERY_MS)
            builder.sends.append(load)

    def _follow_name(self, builder: TransitionBuilder) -> None:
        name = self._seen.name
        if name and name != self._name:
            self._name = name
            builder.writes.append(NameGroup(conversation_id=self._group.conversation_id, name=name))
            builder.notes.append(MembersNoted())

    @property
    def record(self) -> GroupRecord:
        """With all keys that are here, and the name that it has now."""
        keys, group = self._wire.epoch_keys, self._group
        if len(keys) != len(group.epoch_keys) or self._name != group.name:
            self._group = replace(group, epoch_keys=keys, name=self._name)
        return self._group

    # --- messages of epochs whose keys come later -----------------------------------------------

    def lock(self, arrived: MessageArrived, *, now_ms: UnixMs) -> None:
        """Keep a message for when its key comes; who has it sends it again, if it is lost here.

        That of an epoch which the log keeps from us is dropped.
        """
        epoch = self.keys.find(SealedGroup.epoch_in(arrived.message.payload))
        if epoch is not None and self._own_id not in epoch.readers:
            self._counters.add("group.not_for_us")
            return
        size = len(arrived.message.payload)
        name = MessageId(arrived.waku_hash.hex())
        dropped = self._locked.park(name, _NOBODY, size, arrived)
        self._counters.add("group.locked")
        if dropped:
            self._counters.add("group.locked_full", dropped)
        if epoch is None:
            self._tell_soon(now_ms)

    def heard_in(self, epoch_id: bytes, verified: Verified, *, now_ms: UnixMs) -> None:
        """Whoever says something in the key that a link has did not hear that the link ended."""
        if epoch_id == self._wire.sending or verified.stored or verified.message.is_ephemeral:
            return
        is_governing = verified.content and isinstance(verified.content.body, Governing)
        if is_governing or verified.opened.repaired_by is not None:
            return
        epoch = self.keys.find(epoch_id)
        is_new = not self._channel.has_logged(verified.message.message_id)
        if is_new and epoch is not None and ANYONE in epoch.given:
            self._tell_soon(now_ms)

    def _tell_soon(self, now_ms: UnixMs) -> None:
        if self._tell_at_ms is None and self.is_member:
            self._told_by_others.clear()
            self._end = self._message_of_end()
            wait_ms = self._tell_every_ms * (1 + self._entropy.random_unit()) / 2
            self._tell_at_ms = UnixMs(now_ms + int(wait_ms))

    def advance(
        self,
        builder: TransitionBuilder,
        now_ms: UnixMs,
        clock_ms: UnixMs,
        *,
        is_history_complete: bool,
    ) -> list[Saying]:
        """Do what is due; returns what is to be said now."""
        self._tell(builder, now_ms=now_ms)
        return self.keys.advance(
            builder, now_ms=now_ms, clock_ms=clock_ms, is_history_complete=is_history_complete
        )

    def _tell(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Somebody writes in an epoch that we have not heard of, and may not have heard of ours.

        Two parts of a group that made one each, apart, would never meet: neither can read what the
        other says.  What led to ours is sealed in epochs that the others have, so it is sent again.
        """
        if self._tell_at_ms is None or self._tell_at_ms > now_ms:
            return
        self._tell_at_ms = None
        self._tell_every_ms = min(2 * self._tell_every_ms, TELL_MOST_MS)
        builder.sends += [
            LoadForRepair(message_id=each)
            for each in dict.fromkeys((self._end, *self._told))
            if each is not None and each not in self._told_by_others
        ]

    def told_by_other(self, message_id: MessageId) -> None:
        """Another member sent a message again: of what is to be told, that is said."""
        if self._tell_at_ms is not None and message_id in (self._end, *self._told):
            self._told_by_others.add(message_id)

    def _take_key(self, key: bytes) -> None:
        self._wire.add_key(key)
        self._has_new_key = True

    def unlocked(self) -> list[MessageArrived]:
        """Messages to try again: a key came since they were locked."""
        if not self._has_new_key:
            return []
        self._has_new_key = False
        return self._locked.take(_NOBODY)

    # --- void messages --------------------------------------------------------------------------

    def _look_for_voids(self) -> None:
        """To know how many there are: of the removed who wrote beyond the cut."""
        for who, named in self._seen.last_messages.items():
            last = {one.author.instance_id: one for one in self._channel.last_of(who) if one.author}
            is_in = who in self._seen.roles
            if any(_is_beyond(one, named.get(name), is_in=is_in) for name, one in last.items()):
                self._void.look_at(who)
        for who in self._people.everyone().keys() - self._seen.ever:
            self._void.look_at(who)  # They came by a link, and nobody knew of them when it ended.

    def take_loaded(
        self, loaded: GovernedLoaded, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        if isinstance(loaded, EntriesLoaded):
            self._governance.recall(loaded.entries)
            self._settle_at_ms = now_ms
            return
        self._void.take(loaded.load, loaded.written)
        self._is_reading = False
        self._go_on(builder)

    def _go_on(self, builder: TransitionBuilder) -> None:
        if self._void.is_due:
            again = self._void.settle(builder, keep=self._deeds.rows)
            builder.sends += [LoadToShow(position=position) for position in again]
        load = None if self._is_reading else self._void.next_load()
        if load is not None:
            self._is_reading = True
            builder.sends.append(load)

    # --- newcomers ------------------------------------------------------------------------------

    def admission(self, who: ParticipantId) -> Admission:
        """What somebody whom the log admits has to be given."""
        group = self._group
        return Admission(
            group_id=group_id_of(group.conversation_id),
            group_name=self._governance.state.name,
            first_entry=self._governance.first,
            entries=self._governance.entries(),
            epoch_keys=self.keys.keys_for(who),
            admin_public_key=group.admin_public_key,
            roles=self._governance.state.roles,
            statements=self._people.statements(*self._governance.state.roles),
            prekeys=self.keys.prekeys(),
            service_nodes=group.service_nodes,
            before=self._before(who),
            topic_name=self._governance.state.topic_name,
        )

    def _before(self, who: ParticipantId) -> tuple[MessageId, ...]:
        """What was said before their admission, or before the epoch that was made for them then.

        That epoch's entry, and the wraps that follow it, are sealed in the one before.
        """
        state, place_of = self._seen, self._deeds.place_of
        begun = [state.added[who]] if who in state.added else []
        begun += [
            epoch.entry_id
            for epoch, earlier in pairwise(state.epochs)
            if who in epoch.readers and who not in earlier.readers
        ][:1]
        places = [place for place in map(place_of, begun) if place is not None]
        if not places or all(who in epoch.readers for epoch in state.epochs):
            return ()
        return self._channel.before(max(places), MAX_BEFORE)

    def readmit(
        self,
        admission: Admission,
        builder: TransitionBuilder,
        now_ms: UnixMs,
        clock: SessionClock,
    ) -> None:
        """Somebody let us in again: the rest is done by ``settle``."""
        self._governance.take_verified(admission.entries, builder)
        self.keys.take_given(admission, builder, clock_ms=clock.at(now_ms))
        if self._governance.is_behind:
            self._settle_at_ms = now_ms

    def join_to_say(self) -> Join | None:
        """Our join statement, unless it is told already who let us in: then we said it before."""
        added = self._seen.added.get(self._own_id)
        if added is None or not self.is_member or self._deeds.is_told(added):
            return None
        (statement,) = self._people.statements(self._own_id)
        return decode_join(statement)

    def is_cut(self, instance_id: InstanceId) -> bool:
        """Whether a removal cut off this instance of ours: what it says now would be void."""
        cut = self._governance.state.last_messages.get(self._own_id, {})
        return bound_author(self._own_id, AuthorSequence(instance_id, 1)).instance_id in cut

    # --- what we may say ------------------------------------------------------------------------

    @property
    def is_member(self) -> bool:
        """Else nothing is sent at all: we were removed, or left."""
        return self._governance.role(self._own_id) is not Role.NOBODY

    def say_waiting(self, now_ms: UnixMs) -> bool:
        """Whether what is said now waits for another's key: see ``EpochKeys.waiting_in``.

        Until then it stands in the log and in the timeline, signed, and is not sent.
        """
        epoch_id = self.keys.waiting_in(now_ms)
        if epoch_id is None:
            return False
        self._wire.sending = epoch_id
        self._may_be_stale = True
        return True

    def is_due_anew(self, now_ms: UnixMs) -> bool:
        """Whether something has to be signed anew, and no other's key is waited for."""
        if not self._may_be_stale or self.keys.waiting_in(now_ms) is not None:
            return False
        self._may_be_stale = False
        return bool(self.stale())

    def holds_back(self, message_id: MessageId, raw: bytes) -> bool:
        """Whether a message of ours has to be signed anew before it is sent."""
        return self._channel.is_untaken(message_id) and self._is_stale(raw)

    def stale(self) -> list[OutgoingEntry]:
        """Messages of ours that nobody took, signed in an epoch that somebody removed has."""
        return [one for one in self._channel.untaken() if self._is_stale(one.raw)]

    def _is_stale(self, raw: bytes) -> bool:
        """Whether somebody removed has the key that it is signed in.

        Not so for what keeps the group going: a fresh key's entry names entries before it, and
        whoever had no key but that one could not read these.
        """
        is_good = self.keys.is_good(SealedGroup.epoch_of(raw))
        if is_good or not self.is_member:
            return False
        return not isinstance(self._wire.body_of(raw), Governing)

    def signed_anew(self, *, clock_ms: UnixMs) -> list[SignedAnew]:
        """The same in the epoch to write in, which there has to be: see ``EpochKeys.prepare``."""
        return [
            SignedAnew(one.message_id, self._wire.sign_anew(one.raw, clock_ms))
            for one in self.stale()
        ]

    def entry(self, act: Act, *, clock_ms: UnixMs) -> AdminEntry:
        """Raises CommandError for one that would not count.

        A removal names the last messages that are here, whatever it was asked to name.
        """
        if isinstance(act, Remove) and act.member != self._own_id:
            act = Remove(member=act.member, last_messages=self._last_messages(act.member))
        return self._governance.entry(act, clock_ms=clock_ms)

    def _last_messages(self, who: ParticipantId) -> tuple[LastMessage, ...]:
        last = (
            LastMessage(one.author.instance_id, one.author.sequence, one.position.message_id)
            for one in self._channel.last_of(who)[:MAX_LAST_MESSAGES]
            if one.author is not None
        )
        return tuple(sorted(last))

    # --- what others see of it ------------------------------------------------------------------

    def now(self) -> GroupGovernance:
        governance = self._governance
        state, own_id, role = governance.state, self._own_id, governance.role(self._own_id)
        by_rank = [*state.roles]
        let_in = self._let_in()
        below = by_rank[by_rank.index(own_id) + 1 :] if role >= Role.ADMIN else []
        return GroupGovernance(
            state=state,
            own_role=role,
            removed_by=None if role is not Role.NOBODY else state.removed_by.get(own_id),
            may_invite=may_let_in(state, own_id),
            outranked=frozenset(below),
            revocable=frozenset(
                invitation_id
                for invitation_id, one in state.invitations.items()
                if one.is_open and (role >= Role.ADMIN or one.made_by == own_id)
            )
            if role is not Role.NOBODY
            else frozenset(),
            newest_key_ms=self.keys.newest_ms(),
            voids=self._void.counts(),
            without_prekey=self.keys.without_prekey(),
            is_link_over=bool(state.topic_name) and own_id not in state.ever,
            is_history_withheld=let_in is not None and let_in[2].reads_from is None,
            withheld_by=None if let_in is None or let_in[2].reads_from == 1 else let_in[0],
            reads_since_ms=None if let_in is None else self.keys.reads_since_ms(let_in[1]),
        )

    def _let_in(self) -> tuple[ParticipantId, UnixMs, Add] | None:
        """Of an earlier stay there may be something to read, so only the first one counts."""
        added = self._seen.added.get(self._own_id)
        entry = None if added is None else self._governance.find(added)
        if entry is None or self._governance.was_removed_before(entry.entry_id, self._own_id):
            return None
        return (entry.author, entry.sent_ms, entry.act) if isinstance(entry.act, Add) else None


def _is_beyond(entry: LogEntry, last: LastMessage | None, *, is_in: bool) -> bool:
    """Whether the last message of an instance comes after the one that a removal left."""
    if last is None:
        return not is_in
    return entry.author is not None and entry.author.sequence > last.sequence
