"""The people of one group, as its session meets them: who may speak, who came, left, was renamed.

Members come by signed statements, from a message's content or from beside it; what somebody said
before their statement came waits in parking.  A new name is content like any other, signed by its
author and in the log, so that everybody has it in the end: of all that somebody said of their name
the latest counts, whatever the order in which it comes.  Our own is told when it is not what the
group knows, which also mends what a crash kept from being told, and at most once in
``RENAME_EVERY_MS``.  Nothing here knows SDS.
"""

from collections.abc import Sequence

from engine.codec.join import decode_join
from engine.core.content import Body, Join, Leave, Profile
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.membership.members import Membership
from engine.core.ports import PutMember
from engine.core.records import MemberRecord
from engine.crypto.identity import participant_id_of
from engine.crypto.join import verify_join
from engine.session.group.parking import Parking
from engine.session.group.saved import SavedGroup
from engine.session.group.wire import Verified
from engine.session.transition_builder import TransitionBuilder
from engine.session.transitions import MembersNoted

RENAME_EVERY_MS = 60_000


class GroupPeople:
    def __init__(self, seed: SavedGroup, counters: Counters) -> None:
        conversation_id = seed.group.conversation_id
        group_id = group_id_of(conversation_id)
        self.membership = Membership(
            conversation_id,
            verify_join=lambda join: verify_join(join, group_id=group_id),
            records=seed.members,
        )
        self._own_id = seed.identity.participant_id
        self._own_name = seed.own_name
        self._counters = counters
        self._parking: Parking[Verified] = Parking()
        everyone = self.membership.everyone()
        self._statements = {record.join_statement for record in everyone if record.join_statement}
        """Those that are believed: one comes with every message, and costs no more than a look."""

    # --- who ----------------------------------------------------------------------------------

    def others(self) -> frozenset[ParticipantId]:
        return self.membership.member_ids() - {self._own_id}

    def name_of(self, who: ParticipantId) -> str:
        """Empty for somebody unknown."""
        record = self.membership.record(who)
        return record.name if record else ""

    def everyone(self) -> dict[ParticipantId, MemberRecord]:
        """Whoever ever joined, by id; those who left carry ``left_ms``."""
        return {record.participant_id: record for record in self.membership.everyone()}

    def statements(self, *people: ParticipantId) -> tuple[bytes, ...]:
        """Join statements to send along.

        Our own travels in every seal, a repaired author's too: so nobody's words have to wait
        until the message that announced them was repaired.
        """
        records = (self.membership.record(who) for who in dict.fromkeys(people))
        return tuple(r.join_statement for r in records if r is not None and r.join_statement)

    # --- who comes ----------------------------------------------------------------------------

    def joins(self, verified: Verified) -> bytes | None:
        """The sender's own statement, if the message is a join.  Raises RemoteProtocolError."""
        body = verified.content.body if verified.content else None
        if not isinstance(body, Join):
            return None
        if participant_id_of(body.public_key) != verified.opened.sender_id:
            raise RemoteProtocolError("foreign_join")
        return body.statement

    def admit(
        self, statement: bytes, builder: TransitionBuilder, *, clock_ms: UnixMs
    ) -> Sequence[Verified] | None:
        """Take a self-signed join; gives back what its author said meanwhile.

        None if it is no news.  Raises RemoteProtocolError.
        """
        if statement in self._statements:
            return None
        join = decode_join(statement)
        who = participant_id_of(join.public_key)
        known = self.membership.record(who)
        member = self.membership.join(who, join, now_ms=clock_ms)
        if member is None:
            return None
        if known is not None:
            self._statements.discard(known.join_statement)
        self._statements.add(statement)
        self._note(member, builder)
        return self._parking.take(who)

    def park(self, verified: Verified) -> None:
        """Of somebody unknown: it waits for their statement.  Raises RemoteProtocolError."""
        if verified.content is None:
            raise RemoteProtocolError("stranger")
        dropped = self._parking.park(
            verified.message.message_id, verified.opened.sender_id, verified.size, verified
        )
        self._counters.add("group.parked")
        if dropped:
            self._counters.add("group.parking_full", dropped)

    # --- what they say of themselves ----------------------------------------------------------

    def said(
        self, who: ParticipantId, body: Body, sent_ms: UnixMs, builder: TransitionBuilder
    ) -> bool:
        """Take note of a leave or of a new name; whether that changed who is a member."""
        match body:
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
        """When to tell how we are called now; None if the group knows."""
        own = self.membership.record(self._own_id)
        if own is None or own.left_ms is not None or own.name == self._own_name():
            return None
        return UnixMs(own.named_ms + RENAME_EVERY_MS if own.named_ms else own.joined_ms)

    def name_to_tell(self, clock_ms: UnixMs) -> Profile | None:
        due_ms = self.tell_name_ms()
        if due_ms is None or clock_ms < due_ms <= clock_ms + RENAME_EVERY_MS:
            return None  # Later than that it never is, unless the clock was set back.
        return Profile(name=self._own_name())

    def sent_ms(self, body: Body, clock_ms: UnixMs) -> UnixMs:
        """When we say it: names and leaves after what we said before, however the clock was set."""
        own = self.membership.record(self._own_id)
        if own is None or not isinstance(body, Profile | Leave):
            return clock_ms
        return UnixMs(max(clock_ms, own.named_ms + 1, own.joined_ms + 1))
