"""Who is in a group: verified joins and leaves give the same result in any order.

``Membership`` takes join statements (checked by an injected ``VerifyJoin``) and leaves, and returns
``MemberRecord``s to make durable.  It defines n of "held by k of n".  Bytes, signatures, SDS and
the disk are handled elsewhere.

Convergence comes first.  Per participant only the latest join and the latest leave count, by the
participant's own times; they are a member if and only if the join is later.  So history may arrive
in any order, twice or late, and everyone ends with the same set.  For the same reason anyone who
*ever* joined is accepted: messages from before a leave may arrive after it.  A leave is a wish to
go, not an expulsion; that takes a new epoch key, which the leaver does not get.  A name comes from
the latest join or the latest ``rename``, whichever is later.
"""

from collections.abc import Callable, Container, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from engine.core.content import Join
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.records import MemberRecord

MAX_MEMBERS = 2000
"""Limit on everyone who ever joined, including those who left."""

VerifyJoin: TypeAlias = Callable[[Join], ParticipantId]
"""Verifies a statement for this group and returns whose it is.

Raises RemoteProtocolError or CryptoError.
"""


def by_joining(record: MemberRecord) -> tuple[UnixMs, ParticipantId]:
    """A key that sorts by time of joining, then by id."""
    return record.joined_ms, record.participant_id


class Membership:
    """The members of one group, loaded from ``records`` and changed by ``join`` and ``leave``."""

    def __init__(
        self,
        conversation_id: ConversationId,
        *,
        verify_join: VerifyJoin,
        records: Iterable[MemberRecord] = (),
    ) -> None:
        self._conversation_id = conversation_id
        self._verify_join = verify_join
        self._records = {record.participant_id: record for record in records}

    # --- members --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The number of current members, including us if we are one."""
        return len(self.member_ids())

    def member_ids(self) -> frozenset[ParticipantId]:
        """Current members, as SDS's ``MembersChanged`` takes them."""
        return frozenset(who for who, record in self._records.items() if record.left_ms is None)

    def members(self) -> tuple[MemberRecord, ...]:
        """Current members, by time of joining, then by id."""
        return tuple(record for record in self.everyone() if record.left_ms is None)

    def everyone(self) -> tuple[MemberRecord, ...]:
        """Everyone who ever joined, including those who left; by time of joining, then by id."""
        return tuple(sorted(self._records.values(), key=by_joining))

    def is_member(self, participant_id: ParticipantId) -> bool:
        """Whether they are a member now."""
        record = self._records.get(participant_id)
        return record is not None and record.left_ms is None

    def record(self, participant_id: ParticipantId) -> MemberRecord | None:
        return self._records.get(participant_id)

    # --- changes --------------------------------------------------------------------------------

    def admit_admin(
        self, participant_id: ParticipantId, public_key: bytes, *, now_ms: UnixMs, name: str = ""
    ) -> MemberRecord | None:
        """Add the admin from an invite, which has only a key; their own join brings the rest.

        ``now_ms`` is when we heard of it, by our own clock.  Returns the record to store, None if
        nothing changed.
        """
        known = self._records.get(participant_id)
        if known is not None:
            return None if known.is_admin else self._put(replace(known, is_admin=True))
        return self._put(
            MemberRecord(
                conversation_id=self._conversation_id,
                participant_id=participant_id,
                public_key=public_key,
                encryption_key=b"",
                name=name,
                is_admin=True,
                joined_ms=UnixMs(0),
                known_ms=now_ms,
            )
        )

    def join(self, sender_id: ParticipantId, join: Join, *, now_ms: UnixMs) -> MemberRecord | None:
        """Apply a join statement carried by a message of ``sender_id``.

        ``now_ms`` is when we heard of it, by our own clock; it is kept for a new member.  Returns
        the record to store, None if nothing changed.  Raises RemoteProtocolError ``foreign_join``
        or ``too_many_members``, or what verifying raises.
        """
        self._require_own(sender_id, join)
        known = self._records.get(sender_id)
        if known is None:
            self._require_room()
            return self._put(self._joined(sender_id, join, known_ms=now_ms))
        if (join.joined_ms, join.statement) <= (known.joined_ms, known.join_statement):
            return None
        joined = self._joined(
            sender_id,
            join,
            is_admin=known.is_admin,
            left_ms=known.left_ms,
            known_ms=known.known_ms,
        )
        return self._put(self._named_later(known, joined))

    def rename(self, sender_id: ParticipantId, name: str, named_ms: UnixMs) -> MemberRecord | None:
        """Apply a new name, from a message of ``sender_id`` written at ``named_ms``.

        Returns the record to store, None if nothing changed: unknown, or named later already.
        """
        known = self._records.get(sender_id)
        if known is None or named_ms <= known.joined_ms:
            return None
        if (named_ms, name) <= (known.named_ms, known.name if known.named_ms else ""):
            return None
        return self._put(replace(known, name=name, named_ms=named_ms))

    def leave(self, sender_id: ParticipantId, left_ms: UnixMs) -> MemberRecord | None:
        """Apply a leave, from a message of ``sender_id`` written at ``left_ms``.

        Returns the record to store, None if nothing changed: unknown, or joined again since.
        """
        known = self._records.get(sender_id)
        if known is None or left_ms < known.joined_ms:
            return None
        if known.left_ms is not None and left_ms <= known.left_ms:
            return None
        return self._put(replace(known, left_ms=left_ms))

    def follow(
        self,
        members: Container[ParticipantId],
        admins: Container[ParticipantId],
        *,
        now_ms: UnixMs,
    ) -> tuple[MemberRecord, ...]:
        """These are the members now, whatever joins and leaves say; returns the records to store.

        Of a governed group, whose admin log decides.  ``now_ms``: when somebody left, for us.
        """
        changed = []
        for record in [*self._records.values()]:
            who = record.participant_id
            left_ms = None if who in members else record.left_ms or now_ms
            if (record.left_ms, record.is_admin) != (left_ms, who in admins):
                changed.append(self._put(replace(record, left_ms=left_ms, is_admin=who in admins)))
        return tuple(changed)

    # --- internals ------------------------------------------------------------------------------

    def _joined(
        self,
        participant_id: ParticipantId,
        join: Join,
        *,
        known_ms: int,
        is_admin: bool = False,
        left_ms: UnixMs | None = None,
    ) -> MemberRecord:
        has_left = left_ms is not None and left_ms >= join.joined_ms
        return MemberRecord(
            conversation_id=self._conversation_id,
            participant_id=participant_id,
            public_key=join.public_key,
            encryption_key=join.encryption_key,
            name=join.name,
            is_admin=is_admin,
            joined_ms=join.joined_ms,
            left_ms=left_ms if has_left else None,
            join_statement=join.statement,
            known_ms=known_ms,
        )

    def _named_later(self, known: MemberRecord, joined: MemberRecord) -> MemberRecord:
        if known.named_ms <= joined.joined_ms:
            return joined
        return replace(joined, name=known.name, named_ms=known.named_ms)

    def _require_own(self, sender_id: ParticipantId, join: Join) -> None:
        if self._verify_join(join) != sender_id:
            raise RemoteProtocolError("foreign_join")

    def _require_room(self) -> None:
        if len(self._records) >= MAX_MEMBERS:
            raise RemoteProtocolError("too_many_members")

    def _put(self, record: MemberRecord) -> MemberRecord:
        self._records[record.participant_id] = record
        return record
