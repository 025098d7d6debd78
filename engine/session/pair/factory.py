"""Starts one-to-one conversations, or loads them from the store.

They start from a contact link, from what is known of a member of a group, or from a request.

The factory returns records and writes; it performs nothing itself.  As in groups, sequence numbers
belong to an *instance*: one profile's stay with one person.  A person who is removed and added
again gets a new instance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from engine.codec.tuples import tuple_bytes
from engine.core.contacts import CONTACT_LINK_DAYS, ContactLink, ContactState
from engine.core.content import INSTANCE_ID_BYTES, ContactRequest
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import (
    ContentTopic,
    ConversationId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.invite import conversation_id_of
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ProfileStore, PutContact, SaveValue, StoreWrite
from engine.core.ratchet import KeyNumbers
from engine.core.records import ContactRecord, MemberRecord, OwnSequence
from engine.crypto.identity import Identity, participant_id_of
from engine.crypto.links import encode_contact_link
from engine.crypto.pair import OpenedPair, PairSeal, inbox_topic_of, pair_group_id
from engine.session.pair.channel import KEY_NUMBER, SavedChannel
from engine.session.pair.saved import (
    KeptAgreement,
    OwnProfile,
    SavedPair,
    agreement_key,
    before_block_key,
    both,
    declined_key,
    files_held_key,
)
from engine.session.pair.sealing import RatchetSeed
from engine.session.pair.session import PairSession

DAY_MS = 24 * 3_600_000
PAIR_CONFIG = MvdsConfig(seen_again_ms=2_000, seen_spares_epochs=1, seen_retry_epochs=2)
"""A peer that sends anything is online, so unacknowledged messages are soon offered to it again."""
_INSTANCE_DOMAIN = "causerie/1/pair-instance"


@dataclass(slots=True, kw_only=True)
class PairFactory:
    """The contacts of one identity; ``own`` is the profile that they are sent from now on."""

    store: ProfileStore
    identity: Identity
    instance_id: InstanceId
    own: OwnProfile
    entropy: Entropy
    counters: Counters
    now_ms: Callable[[], UnixMs]
    online: Callable[[], bool]
    clock_offset_ms: Callable[[], int] = lambda: 0
    """How far our clock is ahead of ``now_ms``, which only ever goes on."""
    config: MvdsConfig
    contacts: Callable[[], int] = lambda: 1
    """How many contacts there are now."""
    announces: Callable[[], bool] = lambda: True
    """Whether contacts are told that we are online."""
    olm: bool = True
    """False: as a program does that does not know Olm, to compare with."""
    _numbers: KeyNumbers | None = field(default=None, init=False)

    def _clock_ms(self) -> UnixMs:
        return UnixMs(self.now_ms() + self.clock_offset_ms())

    @property
    def inbox_topic(self) -> ContentTopic:
        return inbox_topic_of(self.identity.public_key)

    def content_topic(self, contact: ContactRecord) -> ContentTopic:
        seal = PairSeal(
            self.identity,
            peer_public_key=contact.public_key,
            peer_encryption_key=contact.encryption_key,
        )
        return seal.content_topic

    def conversation_id(self, public_key: bytes) -> ConversationId:
        """Raises LocalProtocolError for our own key."""
        return conversation_id_of(pair_group_id(self.identity.public_key, public_key))

    def contact_link(self, node_addresses: Sequence[str]) -> str:
        return encode_contact_link(
            self.identity,
            name=self.own.name,
            expires_ms=UnixMs(self._clock_ms() + CONTACT_LINK_DAYS * DAY_MS),
            node_addresses=node_addresses,
        )

    def asked(self, link: ContactLink) -> ContactRecord:
        """A record for a person whom we ask to talk."""
        return self._new(
            link.public_key, link.encryption_key, name=link.name, state=ContactState.ASKED
        )

    def asked_member(self, member: MemberRecord) -> ContactRecord:
        """A record for a member of a group whom we ask to talk.  Their keys have to be here."""
        return self._new(
            member.public_key, member.encryption_key, name=member.name, state=ContactState.ASKED
        )

    def asking(self, opened: OpenedPair, request: ContactRequest) -> ContactRecord:
        """A record for a person who asks us to talk."""
        return self._new(
            opened.sender_public_key,
            opened.sender_encryption_key,
            name=request.name,
            picture=request.picture,
            state=ContactState.ASKING,
        )

    def _new(
        self,
        public_key: bytes,
        encryption_key: bytes,
        *,
        name: str,
        state: ContactState,
        picture: bytes = b"",
    ) -> ContactRecord:
        return ContactRecord(
            conversation_id=self.conversation_id(public_key),
            participant_id=participant_id_of(public_key),
            public_key=public_key,
            encryption_key=encryption_key,
            name=name,
            picture=picture,
            state=state,
            created_ms=self._clock_ms(),
        )

    def beginning(self, contact: ContactRecord) -> Sequence[StoreWrite]:
        """The first writes of a conversation; they also erase what an earlier stay left."""
        return (PutContact(contact=contact), *self.ending(contact))

    def ending(self, contact: ContactRecord) -> Sequence[StoreWrite]:
        """Writes that erase what the profile keeps outside the conversation's own tables."""
        keys = (
            declined_key(contact),
            before_block_key(contact),
            agreement_key(contact),
            files_held_key(contact),
        )
        return tuple(SaveValue(key=key, value="") for key in keys)

    def read_again(self, contact: ContactRecord) -> ContactRecord:
        """The contact as it is on disk now."""
        same = (c for c in self.store.contacts() if c.conversation_id == contact.conversation_id)
        return next(same, contact)

    def people(self, contact: ContactRecord) -> dict[ParticipantId, MemberRecord]:
        """Both people, as members of their conversation."""
        return both(contact, self.identity, own_name=self.own.name)

    def load(self, contact: ContactRecord) -> PairSession:
        """Build the session from the store; runs on the storage thread."""
        store, conversation_id = self.store, contact.conversation_id
        declined_ms = store.value(declined_key(contact))
        before_block = store.value(before_block_key(contact))
        files_held = store.value(files_held_key(contact)) or ""
        kept = KeptAgreement.of_text(store.value(agreement_key(contact)) or "")
        own_sequence, order = self._own_sequence(contact), store.pair_state(conversation_id)
        seed = SavedPair(
            contact=contact,
            identity=self.identity,
            channel=SavedChannel(
                mvds=store.mvds_state(conversation_id, limit=self.config.load_records),
                order=order,
                own_sequence=own_sequence,
                ratchet=RatchetSeed(
                    stay=own_sequence.stay,
                    saved=order.ratchet,
                    numbers=self._key_numbers(),
                    used=self.olm,
                ),
                statement=kept.statement,
            ),
            kept=kept,
            declined_ms=UnixMs(int(declined_ms)) if declined_ms else None,
            before_block=ContactState(before_block) if before_block else None,
            files_held=files_held,
        )
        return PairSession(
            seed,
            profile=lambda: self.own,
            entropy=self.entropy,
            counters=self.counters.part(),
            config=self.config,
            online=self.online(),
            now_ms=self.now_ms(),
            clock_offset_ms=self.clock_offset_ms(),
            contacts=self.contacts,
            announces=self.announces,
        )

    def _key_numbers(self) -> KeyNumbers:
        if self._numbers is None:
            self._numbers = KeyNumbers(int(self.store.value(KEY_NUMBER) or 0))
        return self._numbers

    def _own_sequence(self, contact: ContactRecord) -> OwnSequence:
        named = tuple_bytes(
            _INSTANCE_DOMAIN, self.instance_id, contact.conversation_id, contact.created_ms
        )
        stay = InstanceId(sha256(named).digest()[:INSTANCE_ID_BYTES])
        kept = self.store.own_sequence(contact.conversation_id, stay)
        return kept or OwnSequence(
            stay=stay, instance_id=stay, sequence=0, previous_id=MessageId("")
        )
