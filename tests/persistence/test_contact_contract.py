"""What ``ProfileStore`` promises about contacts beside groups, of both stores alike.

A contact comes back exactly and keeps what belongs to the user; a conversation stays of its kind;
pictures, own or of a contact, are bounded.
"""

import pytest
from msgspec.structs import replace

from engine.core.contacts import MAX_PICTURE_BYTES, ContactState
from engine.core.errors import LocalProtocolError, StorageError
from engine.core.ids import UnixMs
from engine.core.ports import (
    ProfileStore,
    PutContact,
    PutGroup,
    RemoveGroup,
    SaveDraft,
    SaveMuted,
    SavePicture,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    StoreWrite,
)
from engine.core.records import PairState
from tests.persistence.store_examples import (
    ALICE,
    GROUP,
    NOW,
    OTHER_PAIR,
    PAIR,
    PROFILE,
    at,
    clock,
    contact,
    group,
)


def test_a_new_profile_knows_nobody(store: ProfileStore) -> None:
    assert store.contacts() == []
    assert store.picture() == b""


def test_a_contact_comes_back_exactly(store: ProfileStore) -> None:
    whole = replace(
        contact(name="Böb\0"),
        state=ContactState.ACCEPTED,
        local_name="Bobby",
        picture=b"\x89PNG" * (MAX_PICTURE_BYTES // 4),
        last_seen_ms=UnixMs(0),
        muted=True,
        draft="well…",
        read_up_to=at(7, "x"),
    )
    bare = contact(OTHER_PAIR, name="")
    store.apply([PutContact(contact=whole), PutContact(contact=bare)])
    assert store.contacts() == [whole, bare]


@pytest.mark.parametrize("state", ContactState)
def test_every_state_of_a_contact_can_be_kept(store: ProfileStore, state: ContactState) -> None:
    store.apply([PutContact(contact=replace(contact(), state=state))])
    assert [c.state for c in store.contacts()] == [state]


def test_replacing_a_contact_keeps_what_belongs_to_the_user(with_pair: ProfileStore) -> None:
    with_pair.apply(
        [
            SaveMuted(conversation_id=PAIR, muted=True),
            SaveDraft(conversation_id=PAIR, text="half a thought"),
            SaveReadMark(conversation_id=PAIR, up_to=at(3, "c")),
            clock(5),
        ]
    )
    changed = replace(
        contact(name="Robert"),
        participant_id=ALICE,
        public_key=b"p",
        encryption_key=b"e",
        state=ContactState.BLOCKED,
        created_ms=UnixMs(1),
        local_name="him",
        picture=b"jpeg",
        last_seen_ms=NOW,
        draft="not this",
    )
    with_pair.apply([PutContact(contact=changed)])
    assert with_pair.contacts() == [
        replace(changed, muted=True, draft="half a thought", read_up_to=at(3, "c"))
    ]
    assert with_pair.pair_state(PAIR).lamport_timestamp == 5


def test_groups_are_no_contacts_and_contacts_no_groups(store: ProfileStore) -> None:
    store.apply(
        [
            PutContact(contact=contact(OTHER_PAIR)),
            PutGroup(group=group()),
            PutContact(contact=contact()),
            PutContact(contact=contact(OTHER_PAIR, name="renamed")),
        ]
    )
    assert [g.conversation_id for g in store.groups()] == [GROUP]
    assert [c.conversation_id for c in store.contacts()] == [OTHER_PAIR, PAIR], "as they were added"


def test_a_conversation_stays_of_its_kind(with_pair: ProfileStore) -> None:
    with_pair.apply([PutGroup(group=group())])
    for write in (PutGroup(group=group(PAIR)), PutContact(contact=contact(GROUP))):
        with pytest.raises(StorageError):
            with_pair.apply([SaveValue(key="port", value="1"), write])
    assert with_pair.value("port") is None
    assert with_pair.groups() == [group()]
    assert with_pair.contacts() == [contact()]


def test_within_one_batch_too_a_conversation_has_one_kind(store: ProfileStore) -> None:
    with pytest.raises(StorageError):
        store.apply([PutContact(contact=contact()), PutGroup(group=group(PAIR))])
    with pytest.raises(StorageError):
        store.apply([PutGroup(group=group()), clock(1, GROUP)])
    assert (store.contacts(), store.groups()) == ([], [])
    store.apply(
        [
            PutContact(contact=contact()),
            RemoveGroup(conversation_id=PAIR),
            PutGroup(group=group(PAIR)),
        ]
    )
    assert (store.contacts(), store.groups()) == ([], [group(PAIR)])


def test_the_own_picture_is_replaced_removed_and_not_the_profiles(store: ProfileStore) -> None:
    store.apply([SavePicture(picture=b"png\0")])
    store.apply([SaveProfile(profile=PROFILE)])
    assert store.picture() == b"png\0"
    store.apply([SavePicture(picture=b"p" * MAX_PICTURE_BYTES)])
    assert len(store.picture()) == MAX_PICTURE_BYTES
    store.apply([SavePicture(picture=b"")])
    assert store.picture() == b""
    assert store.profile() == PROFILE


@pytest.mark.parametrize("of_contact", [True, False])
def test_a_picture_that_is_too_large_is_refused(with_pair: ProfileStore, of_contact: bool) -> None:
    picture = b"p" * (MAX_PICTURE_BYTES + 1)
    write: StoreWrite = (
        PutContact(contact=replace(contact(), picture=picture))
        if of_contact
        else SavePicture(picture=picture)
    )
    with pytest.raises(LocalProtocolError):
        with_pair.apply([clock(3), write])
    assert with_pair.contacts() == [contact()]
    assert with_pair.picture() == b""
    assert with_pair.pair_state(PAIR) == PairState()
