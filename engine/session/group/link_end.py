"""How a group that anyone with the link is in becomes a governed one, in place.

The group's creator, whose key the link names, writes an ``EndLink`` entry: who is in now, and up to
where what those who had left wrote counts.  Whoever receives it has an admin log from then on, with
a beginning that everybody with the link could compute (``engine.crypto.admin_entry``).  The entry,
and all that follows it up to the first fresh key, is sealed in the key that the link has.
"""

from typing import Final

from msgspec.structs import replace

from engine.codec.admin_entry import id_bytes_of
from engine.core.admin_log.acts import (
    MAX_LAST_MESSAGES,
    Act,
    EndLink,
    Entry,
    LastMessage,
    Left,
    Remove,
)
from engine.core.admin_log.judging import Verdict
from engine.core.content import AdminEntry
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import CommandError, CommandRefusal, RemoteProtocolError
from engine.core.governed import Admission, BecomeGoverned, GovernedState, PutEntry
from engine.core.ids import ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.sds.channel import SdsChannel
from engine.core.sds.vocabulary import ChannelState
from engine.crypto.admin_entry import (
    link_create,
    link_create_id,
    read_entry,
    sign_entry,
    sign_link_create,
    verify_entry,
)
from engine.crypto.identity import participant_id_of
from engine.crypto.sealed import epoch_commitment, topic_name_of
from engine.session.group.governance import Governance
from engine.session.group.governed import GovernedPart
from engine.session.group.people import GroupPeople
from engine.session.group.saved import SavedGroup
from engine.session.group.wire import GroupWire
from engine.session.transitions import (
    GovernanceNoted,
    LoadEntries,
    MembersNoted,
    TransitionBuilder,
)

MAX_KEPT: Final = 512
"""Entries that are kept before the one that ends the link, since they came first: so many of the
creator's, and so many of all others, who may be anybody with the link."""
KEY_OF_CREATOR_MS: Final = 10_000
"""At least: whoever hears that the link ended makes no key by themselves before that."""
BYTES_OF_MEMBER: Final = 16
BYTES_OF_LEFT: Final = 32
BYTES_OF_LAST: Final = 56
ROOM_BYTES: Final = 38_000
"""For people in one entry, about."""


class LinkEnd:
    """Of a session whose group anyone with the link is in, as long as that is so."""

    def __init__(  # noqa: PLR0913 - everything that is injected
        self,
        seed: SavedGroup,
        people: GroupPeople,
        channel: SdsChannel,
        wire: GroupWire,
        *,
        entropy: Entropy,
        counters: Counters,
    ) -> None:
        self._seed = replace(seed, members=(), state=ChannelState(lamport_timestamp=0))
        self._people = people
        self._channel = channel
        self._wire = wire
        self._entropy = entropy
        self._counters = counters
        self._group_id = group_id_of(seed.group.conversation_id)
        self._creator_key = seed.group.admin_public_key
        self._first = link_create_id(self._creator_key, group_id=self._group_id)
        self._kept: dict[bool, set[bytes]] = {True: set(), False: set()}
        """By whether the creator wrote them."""

    # --- ending it ------------------------------------------------------------------------------

    def entries_to_end(self, act: Act, *, clock_ms: UnixMs) -> list[AdminEntry]:
        """What is to be said before ``act``: the first ends the link.

        Raises CommandError for anything but the removal of a member by the group's creator.
        """
        own_id = self._people.own_id
        if not isinstance(act, Remove) or participant_id_of(self._creator_key) != own_id:
            raise CommandError(CommandRefusal.NOT_GOVERNED)
        if act.member == own_id or not self._people.membership.is_member(act.member):
            raise CommandError(CommandRefusal.NOT_IN_GROUP)
        members, left = self._people.membership.member_ids(), self._left()
        entries: list[AdminEntry] = []
        room = ROOM_BYTES - BYTES_OF_MEMBER * len(members)
        while not entries or left:
            part: list[Left] = []
            while left and (room := room - _size(left[0])) >= 0:
                part.append(left.pop(0))
            entries.append(self._entry(members, tuple(part), clock_ms=clock_ms))
            members, room = frozenset[ParticipantId](), ROOM_BYTES
        return entries

    def _left(self) -> list[Left]:
        """Those who left, and the last message of each of their instances."""
        gone = sorted(
            who for who, one in self._people.everyone().items() if one.left_ms is not None
        )
        found = []
        for who in gone:
            last = self._channel.last_of(who)[:MAX_LAST_MESSAGES]
            named = (
                LastMessage(one.author.instance_id, one.author.sequence, one.position.message_id)
                for one in last
                if one.author is not None
            )
            found.append(Left(who, tuple(sorted(named))))
        return sorted(found, key=lambda one: id_bytes_of(one.member))

    def _entry(
        self, members: frozenset[ParticipantId], left: tuple[Left, ...], *, clock_ms: UnixMs
    ) -> AdminEntry:
        identity = self._seed.identity
        signed = sign_entry(
            identity,
            EndLink(
                name=self._seed.group.name,
                members=members,
                left=left,
                topic_name=topic_name_of(self._seed.group.topic_secret),
                create_signature=sign_link_create(identity, group_id=self._group_id),
                key_commitment=epoch_commitment(self._group_id, self._seed.group.epoch_keys[0]),
            ),
            group_id=self._group_id,
            lamport_timestamp=2,
            sent_ms=clock_ms,
            heads=(self._first,),
        )
        return AdminEntry(signed.data)

    # --- hearing of it --------------------------------------------------------------------------

    def take(
        self, body: AdminEntry, who: ParticipantId, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> GovernedPart | None:
        """What the session has from now on, if this ends the link.

        Other entries are kept: they may come before the one that ends it.  Raises
        RemoteProtocolError, CryptoError.
        """
        entry = verify_entry(body.data, group_id=self._group_id)
        if entry.author != who:
            raise RemoteProtocolError("foreign_entry")
        part = self._ended(entry, body.data, builder, now_ms=now_ms)
        kept = self._kept[who == participant_id_of(self._creator_key)]
        if part is None and body.data not in kept and len(kept) < MAX_KEPT:
            kept.add(body.data)
            builder.writes.append(self._put(body.data))
        return part

    def take_admission(
        self, admission: Admission, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> GovernedPart | None:
        """Somebody lets us into a group of whose link's end we have not heard."""
        for data in admission.entries:
            entry = read_entry(data, group_id=self._group_id)
            part = self._ended(entry, data, builder, now_ms=now_ms)
            if part is not None:
                return part
        return None

    def _put(self, data: bytes) -> PutEntry:
        return PutEntry(conversation_id=self._seed.group.conversation_id, data=data)

    def _ended(
        self, entry: Entry, data: bytes, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> GovernedPart | None:
        act = entry.act
        # One that names only those who had left leaves us out; that of the members is waited for.
        if not isinstance(act, EndLink) or not act.members or entry.heads != (self._first,):
            return None
        if entry.author != participant_id_of(self._creator_key):
            return None
        create = link_create(self._creator_key, act.create_signature, group_id=self._group_id)
        group, identity = self._seed.group, self._seed.identity
        both = (create.data, data)
        governance = Governance(group.conversation_id, self._first, both, identity)
        if governance.state.verdicts.get(entry.entry_id) is not Verdict.COUNTS:
            return None
        group = replace(
            group, first_entry=self._first, topic_name=topic_name_of(group.topic_secret)
        )
        builder.writes += [
            self._put(create.data),
            self._put(data),
            BecomeGoverned(
                conversation_id=group.conversation_id,
                first_entry=self._first,
                topic_name=group.topic_name,
            ),
        ]
        builder.notes += [GovernanceNoted(), MembersNoted()]
        # Others may have come before it: they are on disk.
        authors = frozenset(self._people.everyone())
        builder.sends.append(LoadEntries(wanted=frozenset(), authors=authors))
        known_ms = dict.fromkeys(group.epoch_keys, group.created_ms)
        self._people.be_governed(governance)
        part = GovernedPart(
            governance,
            self._people,
            self._channel,
            seed=replace(
                self._seed, group=group, governed=GovernedState(entries=both, known_ms=known_ms)
            ),
            entropy=self._entropy,
            counters=self._counters,
            wire=self._wire,
        )
        if entry.author != self._people.own_id:
            part.keys.wait_for_theirs(now_ms)
            wait_ms = KEY_OF_CREATOR_MS * (1 + self._entropy.random_unit())
            part.keys.make_none_until(UnixMs(now_ms + int(wait_ms)))
        return part


def _size(left: Left) -> int:
    return BYTES_OF_LEFT + BYTES_OF_LAST * len(left.last_messages)
