"""The people of one group: who may speak, who joined, left or changed their name.

Members are admitted by signed statements, in a message's content or beside it.  Messages that come
before their author's statement are parked.  This module knows nothing of SDS.

A new name is ordinary content, signed and logged, so every member receives it in the end.  The
latest one by time counts, in whatever order they arrive.  In a governed group the admin log decides
who is a member (``follow``), and statements only say who that is: those of people whom the log does
not know yet are kept for a while.  We send our own name when the group has
another one, also after a crash kept us from it, and at most once in ``RENAME_EVERY_MS``.  In a
governed group a newcomer may be unable to read that, and their first look at us is our statement
with the name of then: whoever was renamed says it once more, before what they say next.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from engine.codec.join import decode_join
from engine.core.admin_log.acts import Role
from engine.core.content import Body, Join, Leave, Profile
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.membership.members import Membership
from engine.core.ports import PutMember
from engine.core.records import MemberRecord
from engine.crypto.identity import participant_id_of
from engine.crypto.join import verify_join
from engine.session.group.governance import Governance
from engine.session.group.parking import Parking
from engine.session.group.saved import SavedGroup
from engine.session.group.wire import Verified
from engine.session.transitions import MembersNoted, TransitionBuilder

RENAME_EVERY_MS = 60_000
MAX_UNKNOWN: Final = 64
"""Statements kept of people whom the admin log does not know."""


class GroupPeople:
    def __init__(
        self, seed: SavedGroup, counters: Counters, governance: Governance | None = None
    ) -> None:
        conversation_id = seed.group.conversation_id
        group_id = group_id_of(conversation_id)
        self.membership = Membership(
            conversation_id,
            verify_join=lambda join: verify_join(join, group_id=group_id),
            records=seed.members,
        )
        self._governance = governance
        self._unknown: OrderedDict[ParticipantId, bytes] = OrderedDict()
        self.own_id = seed.identity.participant_id
        self._own_name = seed.own_name
        self._counters = counters
        self._parking: Parking[Verified] = Parking()
        everyone = self.membership.everyone()
        others = (one.known_ms for one in everyone if one.participant_id != self.own_id)
        self._newcomer_ms = max(others, default=0)
        """When somebody came last, by our clock."""
        self._statements = {record.join_statement for record in everyone if record.join_statement}
        """Known statements.  One comes with every message, so checking it must cost only a
        look-up."""

    # --- members ------------------------------------------------------------------------------

    def others(self) -> frozenset[ParticipantId]:
        return self.membership.member_ids() - {self.own_id}

    def name_of(self, who: ParticipantId) -> str:
        """The person's name, or "" if unknown."""
        record = self.membership.record(who)
        return record.name if record else ""

    def encryption_key_of(self, who: ParticipantId) -> bytes:
        """That of their join statement; b"" if none is here."""
        record = self.membership.record(who)
        return record.encryption_key if record else b""

    def everyone(self) -> dict[ParticipantId, MemberRecord]:
        """Everyone who ever joined, by id; those who left have ``left_ms``."""
        return {record.participant_id: record for record in self.membership.everyone()}

    def statements(self, *people: ParticipantId) -> tuple[bytes, ...]:
        """Join statements to send along with a message.

        Every seal carries our own, and a repaired author's too.  So no message has to wait until
        the one with its author's join is repaired.
        """
        records = (self.membership.record(who) for who in dict.fromkeys(people))
        return tuple(r.join_statement for r in records if r is not None and r.join_statement)

    # --- admission ----------------------------------------------------------------------------

    def joins(self, verified: Verified) -> bytes | None:
        """The statement, if the message is the sender's own join; else None.

        Raises RemoteProtocolError for someone else's join.
        """
        body = verified.content.body if verified.content else None
        if not isinstance(body, Join):
            return None
        if participant_id_of(body.public_key) != verified.opened.sender_id:
            raise RemoteProtocolError("foreign_join")
        return body.statement

    def admit(
        self, statement: bytes, builder: TransitionBuilder, *, clock_ms: UnixMs
    ) -> Sequence[Verified] | None:
        """Admit the author of a self-signed join; returns the messages of theirs that were parked.

        Returns None if the join is not news.  Raises RemoteProtocolError.
        """
        if statement in self._statements:
            return None
        join = decode_join(statement)
        who = participant_id_of(join.public_key)
        if self._governance is not None and not self._governance.is_known(who):
            self._keep_unknown(who, statement)
            return None
        known = self.membership.record(who)
        member = self.membership.join(who, join, now_ms=clock_ms)
        if member is None:
            return None
        if known is not None:
            self._statements.discard(known.join_statement)
        else:
            self._newcomer_ms = clock_ms
        self._statements.add(statement)
        self._note(member, builder)
        self.follow(builder, clock_ms=clock_ms)
        return self._parking.take(who)

    def _keep_unknown(self, who: ParticipantId, statement: bytes) -> None:
        self._unknown[who] = statement
        if len(self._unknown) > MAX_UNKNOWN:
            self._unknown.popitem(last=False)
            self._counters.add("group.unknown_full")

    def be_governed(self, governance: Governance) -> None:
        """The link ended."""
        self._governance = governance

    def known_now(self) -> tuple[bytes, ...]:
        """Statements of people whom the admin log has come to know, to be admitted."""
        governance = self._governance
        if governance is None:
            return ()
        people = [who for who in self._unknown if governance.is_known(who)]
        return tuple(self._unknown.pop(who) for who in people)

    def follow(self, builder: TransitionBuilder, *, clock_ms: UnixMs) -> bool:
        """Take over who is a member from the admin log; whether that changed anything."""
        if self._governance is None:
            return False
        roles = self._governance.state.roles
        admins = {who for who, role in roles.items() if role >= Role.ADMIN}
        if any(one.left_ms is not None for one in map(self.membership.record, roles) if one):
            self._newcomer_ms = clock_ms  # They are back.
        changed = self.membership.follow(roles, admins, now_ms=clock_ms)
        for member in changed:
            self._note(member, builder)
        return bool(changed)

    def park(self, verified: Verified) -> None:
        """Keep a stranger's message until their statement arrives.  Raises RemoteProtocolError."""
        if verified.content is None:
            raise RemoteProtocolError("stranger")
        dropped = self._parking.park(
            verified.message.message_id, verified.opened.sender_id, verified.size, verified
        )
        self._counters.add("group.parked")
        if dropped:
            self._counters.add("group.parking_full", dropped)

    def parked(self, is_wanted: Callable[[MessageId], bool]) -> list[Verified]:
        """Messages of strangers that are wanted all the same, since members' messages name them."""
        return self._parking.take_wanted(is_wanted)

    # --- leaves and names ---------------------------------------------------------------------

    def said(
        self, who: ParticipantId, body: Body, sent_ms: UnixMs, builder: TransitionBuilder
    ) -> bool:
        """Apply a leave or a new name; True if the set of members changed."""
        match body:
            case Leave() if self._governance is not None:
                return False  # An entry says so.
            case Leave():
                member = self.membership.leave(who, sent_ms)
            case Profile():
                member = self.membership.rename(who, body.name, sent_ms)
            case _:
                return False
        if member is not None:
            self._note(member, builder)
        return member is not None and isinstance(body, Leave)

    def _note(self, member: MemberRecord, builder: TransitionBuilder) -> None:
        builder.writes.append(PutMember(member=member))
        builder.notes.append(MembersNoted())

    # --- our own name -------------------------------------------------------------------------

    def tell_name_ms(self) -> UnixMs | None:
        """When to send our current name; None if the group knows it."""
        own = self.membership.record(self.own_id)
        if own is None or own.left_ms is not None or own.name == self._own_name():
            return None
        return UnixMs(own.named_ms + RENAME_EVERY_MS if own.named_ms else own.joined_ms)

    def name_to_tell(self, clock_ms: UnixMs) -> Profile | None:
        due_ms = self.tell_name_ms()
        if due_ms is None or clock_ms < due_ms <= clock_ms + RENAME_EVERY_MS:
            return None  # It can only be later than that if the clock was set back.
        return Profile(name=self._own_name())

    def name_for_newcomers(self) -> Profile | None:
        """Our name, if we said it before somebody came; None if they can know it."""
        own = self.membership.record(self.own_id)
        if self._governance is None or own is None or not own.named_ms:
            return None
        return Profile(name=own.name) if own.named_ms < self._newcomer_ms else None

    def sent_ms(self, body: Body, clock_ms: UnixMs) -> UnixMs:
        """The time to sign ``body`` with.  Names and leaves always follow our earlier ones."""
        own = self.membership.record(self.own_id)
        if own is None or not isinstance(body, Profile | Leave):
            return clock_ms
        return UnixMs(max(clock_ms, own.named_ms + 1, own.joined_ms + 1))
