"""Starts groups: created here, joined by link, or loaded from the store.

The factory returns records, writes and first messages; it performs nothing itself.  Every member
begins with a signed join statement, which travels with all their messages.  A newcomer also sends
it as a message; a creator sends that the group exists.

Sequence numbers belong to an *instance*: one profile's stay in one group.  A member who leaves and
comes back has forgotten the old numbers and gets a new instance.  Otherwise, holdings of the old
stay would cover messages of the new one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from msgspec.structs import replace

from engine.codec.join import decode_join
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import Create, MakeEpoch, Role
from engine.core.content import INSTANCE_ID_BYTES, AdminEntry, Body, Created
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.governed import Admission, PutEntry, PutPrekey
from engine.core.ids import (
    ContentTopic,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.invite import (
    EPOCH_KEY_BYTES,
    GROUP_ID_BYTES,
    MAX_SERVICE_NODES,
    Invite,
    conversation_id_of,
    group_id_of,
)
from engine.core.membership.members import Membership
from engine.core.ports import (
    ApplyChannel,
    ProfileStore,
    PutGroup,
    PutMember,
    PutNodeAddress,
    SaveValue,
    StoreWrite,
)
from engine.core.records import GroupRecord, OwnSequence, ProfileRecord
from engine.core.sds.config import FloodLimits, SdsConfig
from engine.core.sds.log_table import LogTable
from engine.core.sds.missing import kept_back
from engine.core.sds.vocabulary import ChannelState, PutMissing
from engine.crypto.admin_entry import sign_entry
from engine.crypto.epochs import read_prekey
from engine.crypto.identity import Identity, participant_id_of
from engine.crypto.join import build_join, verify_join
from engine.crypto.links import encode_invite
from engine.crypto.sealed import epoch_commitment, topic_of
from engine.session.group.saved import SavedGroup
from engine.session.group.session import GroupSession
from engine.session.group.whole_files import let_go_key

SMALL_GROUP = 16
_INSTANCE_DOMAIN = "causerie/1/instance"


@dataclass(slots=True, kw_only=True)
class GroupFactory:
    """The groups of one identity; ``profile`` is its name and picture from now on."""

    store: ProfileStore
    identity: Identity
    profile: ProfileRecord
    entropy: Entropy
    counters: Counters
    now_ms: Callable[[], UnixMs]
    online: Callable[[], bool]
    clock_offset_ms: Callable[[], int] = lambda: 0
    """How far our clock is ahead of ``now_ms``, which only ever goes on."""
    flood: FloodLimits = field(default_factory=FloodLimits)
    service_nodes: Callable[[], Sequence[str]] = tuple
    """The user's current service nodes; groups created here take them over."""

    @property
    def own_id(self) -> ParticipantId:
        return self.identity.participant_id

    def _clock_ms(self) -> UnixMs:
        return UnixMs(self.now_ms() + self.clock_offset_ms())

    def content_topic(self, group: GroupRecord) -> ContentTopic:
        return topic_of(group)

    def new_group(self, name: str) -> tuple[GroupRecord, Sequence[StoreWrite], Sequence[Body]]:
        """Create a group: its record, the writes, and the first messages."""
        random_bytes = self.entropy.random_bytes
        group = GroupRecord(
            conversation_id=conversation_id_of(random_bytes(GROUP_ID_BYTES)),
            name=name,
            epoch_keys=(random_bytes(EPOCH_KEY_BYTES),),
            admin_public_key=self.identity.public_key,
            created_ms=self._clock_ms(),
            service_nodes=tuple(self.service_nodes()[:MAX_SERVICE_NODES]),
        )
        writes, _ = self._beginning(group, ())
        return group, writes, (Created(name=name),)

    def new_governed_group(
        self, name: str
    ) -> tuple[GroupRecord, Sequence[StoreWrite], Sequence[Body]]:
        """Create a group whose members are in its admin log, and whose keys change."""
        group, _, _ = self.new_group(name)
        group_id = group_id_of(group.conversation_id)
        entry = sign_entry(
            self.identity,
            Create(name=name),
            group_id=group_id,
            lamport_timestamp=1,
            sent_ms=group.created_ms,
            heads=(),
        )
        first = entry.entry.entry_id
        (key,) = group.epoch_keys
        epoch = sign_entry(
            self.identity,
            MakeEpoch(
                commitment=epoch_commitment(group_id, key), recipients=frozenset((self.own_id,))
            ),
            group_id=group_id,
            lamport_timestamp=2,
            sent_ms=group.created_ms,
            heads=(first,),
        )
        group = replace(group, first_entry=first)
        entries = [
            PutEntry(conversation_id=group.conversation_id, data=each.data)
            for each in (entry, epoch)
        ]
        writes, _ = self._beginning(group, entries)
        opening = AdminEntry(entry.data), AdminEntry(epoch.data), Created(name=name)
        return group, writes, opening

    def admitted_group(
        self, admission: Admission
    ) -> tuple[GroupRecord, Sequence[StoreWrite], Sequence[Body]]:
        """A governed group that somebody let us into: record, writes, first messages."""
        conversation_id = conversation_id_of(admission.group_id)
        group = GroupRecord(
            conversation_id=conversation_id,
            name=admission.group_name,
            epoch_keys=admission.epoch_keys,
            admin_public_key=admission.admin_public_key,
            created_ms=self._clock_ms(),
            service_nodes=admission.service_nodes,
            first_entry=admission.first_entry,
            topic_name=admission.topic_name,
        )
        more: list[StoreWrite] = [
            PutEntry(conversation_id=conversation_id, data=data) for data in admission.entries
        ]
        more += [
            PutPrekey(
                conversation_id=conversation_id,
                participant_id=prekey.author,
                data=prekey.signed,
            )
            for prekey in map(read_prekey, admission.prekeys)
            if prekey.author != self.own_id
        ]
        before = tuple(
            PutMissing(entry=kept_back(each, self._clock_ms())) for each in admission.before
        )
        if before:
            more.append(ApplyChannel(conversation_id=conversation_id, writes=before))
        writes, join = self._beginning(group, more, admission)
        return group, writes, (join,)

    def joined_group(
        self, invite: Invite
    ) -> tuple[GroupRecord, Sequence[StoreWrite], Sequence[Body]]:
        """Join a group by an invitation that the user accepted: record, writes, first messages."""
        group = GroupRecord(
            conversation_id=invite.conversation_id,
            name=invite.group_name,
            epoch_keys=(invite.epoch_key,),
            admin_public_key=invite.admin_public_key,
            created_ms=self._clock_ms(),
            service_nodes=invite.service_nodes,
        )
        addresses = tuple(
            PutNodeAddress(multiaddr=address, seen_ms=self._clock_ms())
            for address in invite.node_addresses
        )
        writes, join = self._beginning(group, addresses)
        return group, writes, (join,)

    def _beginning(
        self, group: GroupRecord, more: Sequence[StoreWrite], admission: Admission | None = None
    ) -> tuple[Sequence[StoreWrite], Body]:
        now_ms = self._clock_ms()
        group_id = group_id_of(group.conversation_id)
        join = build_join(
            self.identity, group_id=group_id, name=self.profile.name, joined_ms=now_ms
        )
        membership = Membership(
            group.conversation_id, verify_join=lambda j: verify_join(j, group_id=group_id)
        )
        admin_id = participant_id_of(group.admin_public_key)
        membership.admit_admin(admin_id, group.admin_public_key, now_ms=now_ms, name="Admin")
        membership.join(self.own_id, join, now_ms=now_ms)
        if admission is not None:
            for each in map(decode_join, admission.statements):
                membership.join(participant_id_of(each.public_key), each, now_ms=now_ms)
            admins = {who for who, role in admission.roles.items() if role >= Role.ADMIN}
            membership.follow(admission.roles, admins, now_ms=now_ms)
        writes: list[StoreWrite] = [
            PutGroup(group=group, initial_state=ChannelState(lamport_timestamp=now_ms))
        ]
        writes += [PutMember(member=record) for record in membership.everyone()]
        writes.append(SaveValue(key=let_go_key(group.conversation_id), value=""))
        return (*writes, *more), join

    def invite_link(self, group: GroupRecord, node_addresses: Sequence[str]) -> str:
        return encode_invite(
            Invite(
                group_id=group_id_of(group.conversation_id),
                group_name=group.name,
                # There is only one epoch yet: its key opens messages and yields the topic.
                epoch_key=group.epoch_keys[0],
                admin_public_key=group.admin_public_key,
                inviter_name=self.profile.name,
                node_addresses=tuple(node_addresses),
                service_nodes=group.service_nodes,
            )
        )

    def load(self, group: GroupRecord, log: LogTable | None = None) -> GroupSession:
        """Build the session from the store; runs on the storage thread.

        ``log``: the group's log, if it was read already.
        """
        conversation_id = group.conversation_id
        members = self.store.members(conversation_id)
        small = len(members) <= SMALL_GROUP
        config = SdsConfig.for_small_group() if small else SdsConfig()
        held_since = self._clock_ms() - config.review_holders_ms
        governed = None
        if group.first_entry is not None:
            governed = self.store.governed(conversation_id)
            group = replace(group, epoch_keys=tuple(governed.known_ms))
        seed = SavedGroup(
            governed=governed,
            group=group,
            identity=self.identity,
            members=members,
            state=self.store.channel_state(conversation_id, log=log, held_since=held_since),
            own_sequence=self._own_sequence(group),
            own_name=lambda: self.profile.name,
            let_go=self.store.value(let_go_key(conversation_id)) or "",
        )
        return GroupSession(
            seed,
            entropy=self.entropy,
            counters=self.counters.part(),
            config=replace(config, flood=self.flood),
            online=self.online(),
            now_ms=self.now_ms(),
            clock_offset_ms=self.clock_offset_ms(),
        )

    def _own_sequence(self, group: GroupRecord) -> OwnSequence:
        stay = self._stay(group)
        kept = self.store.own_sequence(group.conversation_id, stay)
        return kept or OwnSequence(
            stay=stay, instance_id=stay, sequence=0, previous_id=MessageId("")
        )

    def _stay(self, group: GroupRecord) -> InstanceId:
        named = tuple_bytes(
            _INSTANCE_DOMAIN, self.profile.instance_id, group.conversation_id, group.created_ms
        )
        return InstanceId(sha256(named).digest()[:INSTANCE_ID_BYTES])
