"""What ``ProfileStore`` promises about one-to-one conversations and MVDS, of both stores alike."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core.contacts import MAX_PICTURE_BYTES, ContactState
from engine.core.errors import LocalProtocolError, StorageError
from engine.core.mvds.types import (
    NEVER,
    DropMessage,
    Epoch,
    KeepMessage,
    MvdsState,
    NoteHeld,
    PutPendingAck,
    PutRecord,
    Record,
    RecordType,
    RemovePendingAck,
    RemoveRecord,
)
from engine.core.ports import (
    HideMessage,
    PairState,
    ProfileStore,
    PutContact,
    PutDelivery,
    PutGroup,
    RemoveGroup,
    RemoveLost,
    RemoveWaiting,
    SaveDraft,
    SaveMuted,
    SavePairAuthor,
    SavePairClock,
    SavePicture,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    StoreWrite,
)
from engine.core.sds.types import ChannelState, SaveClock
from engine.core.types import ConversationId, DeliveryState, InstanceId, MessageId, UnixMs
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    NOW,
    OTHER_PAIR,
    PAIR,
    PROFILE,
    at,
    body,
    channel,
    contact,
    delivery,
    given_up,
    group,
    member,
    mvds,
    mvds_id,
    record,
    row,
    waiting,
)


@pytest.fixture
def with_pair(store: ProfileStore) -> ProfileStore:
    store.apply([PutContact(contact=contact())])
    return store


def clock(lamport_timestamp: int, conversation_id: ConversationId = PAIR) -> SavePairClock:
    return SavePairClock(conversation_id=conversation_id, lamport_timestamp=lamport_timestamp)


def author(
    sequence: int, instance_id: InstanceId = INSTANCE, conversation_id: ConversationId = PAIR
) -> SavePairAuthor:
    return SavePairAuthor(
        conversation_id=conversation_id, instance_id=instance_id, sequence=sequence
    )


def records_of(*puts: PutRecord) -> tuple[Record, ...]:
    return tuple(put.record for put in puts)


# --- contacts beside groups ---------------------------------------------------------------------


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


# --- what a pair is not -------------------------------------------------------------------------


def test_a_pair_has_no_channel_and_no_members(with_pair: ProfileStore) -> None:
    with pytest.raises(StorageError):
        with_pair.channel_state(PAIR)
    in_pair = replace(member(ALICE).member, conversation_id=PAIR)
    for write in (
        channel(SaveClock(lamport_timestamp=1), conversation_id=PAIR),
        channel(conversation_id=PAIR),
        replace(member(ALICE), member=in_pair),
    ):
        with pytest.raises(StorageError):
            with_pair.apply([clock(3), write])
    assert with_pair.pair_state(PAIR) == PairState()
    assert with_pair.members(PAIR) == []
    assert with_pair.raw(PAIR, MessageId("m")) is None
    assert with_pair.holders(PAIR, MessageId("m")) == []


def pair_writes(conversation_id: ConversationId) -> list[StoreWrite]:
    return [
        mvds(record("a"), conversation_id=conversation_id),
        mvds(conversation_id=conversation_id),
        clock(1, conversation_id),
        author(1, conversation_id=conversation_id),
        waiting("w", conversation_id=conversation_id),
        RemoveWaiting(conversation_id=conversation_id, message_id=MessageId("w")),
        given_up(2, 3, conversation_id=conversation_id),
        RemoveLost(conversation_id=conversation_id, instance_id=INSTANCE, first=2),
    ]


@pytest.mark.parametrize("where", [GROUP, OTHER_PAIR], ids=["a group", "nowhere"])
@pytest.mark.parametrize("number", range(len(pair_writes(PAIR))))
def test_what_is_a_pairs_is_refused_elsewhere(
    with_pair: ProfileStore, where: ConversationId, number: int
) -> None:
    with_pair.apply([PutGroup(group=group())])
    with pytest.raises(StorageError):
        with_pair.apply([clock(3), pair_writes(where)[number]])
    assert with_pair.pair_state(PAIR) == PairState(), "nor is what stood before it in the batch"
    assert with_pair.channel_state(GROUP) == ChannelState(lamport_timestamp=0)


@pytest.mark.parametrize("where", [GROUP, OTHER_PAIR], ids=["a group", "nowhere"])
def test_elsewhere_there_is_nothing_of_a_pair_to_read(
    store: ProfileStore, where: ConversationId
) -> None:
    store.apply([PutGroup(group=group())])
    assert store.pair_state(where) == PairState()
    assert store.mvds_state(where, limit=5) == MvdsState()
    assert store.mvds_records(where, Epoch(0), limit=5) == ((), None)
    assert store.mvds_record(where, BOB, mvds_id("a")) is None
    assert store.mvds_message(where, mvds_id("a")) is None


def test_an_empty_pair_state_is_nobody_elses(store: ProfileStore) -> None:
    read = store.pair_state(PAIR)
    assert isinstance(read.authors, dict)
    read.authors[INSTANCE] = 5
    assert store.pair_state(PAIR) == PairState()


# --- the order of a pair ------------------------------------------------------------------------


def test_the_clock_never_moves_backwards(with_pair: ProfileStore) -> None:
    assert with_pair.pair_state(PAIR) == PairState()
    with_pair.apply([clock(2**53 - 1), clock(7)])
    with_pair.apply([clock(0)])
    assert with_pair.pair_state(PAIR).lamport_timestamp == 2**53 - 1


def test_authors_are_kept_per_instance(with_pair: ProfileStore) -> None:
    second = InstanceId(b"\x00" * 16)
    with_pair.apply([PutContact(contact=contact(OTHER_PAIR)), author(4), author(1, second)])
    with_pair.apply([author(5), author(9, conversation_id=OTHER_PAIR)])
    assert with_pair.pair_state(PAIR).authors == {INSTANCE: 5, second: 1}
    assert with_pair.pair_state(OTHER_PAIR).authors == {INSTANCE: 9}


def test_what_waits_is_replaced_in_place_and_removed_once(with_pair: ProfileStore) -> None:
    with_pair.apply([waiting("b"), waiting("a"), waiting("c", b"\x00\xff"), waiting("d", b"")])
    gone = RemoveWaiting(conversation_id=PAIR, message_id=MessageId("a"))
    with_pair.apply([waiting("b", b"again", shown=True), gone, gone])
    expected = (waiting("b", b"again", shown=True), waiting("c", b"\x00\xff"), waiting("d", b""))
    assert with_pair.pair_state(PAIR).waiting == tuple(put.waiting for put in expected)
    with_pair.apply([waiting("a")])
    assert [w.message_id for w in with_pair.pair_state(PAIR).waiting] == ["b", "c", "d", "a"]


def test_what_was_given_up_comes_back_by_instance_and_number(with_pair: ProfileStore) -> None:
    second = InstanceId(b"\x00" * 16)
    with_pair.apply([PutContact(contact=contact(OTHER_PAIR))])
    there = given_up(1, 1, conversation_id=OTHER_PAIR)
    with_pair.apply([given_up(9, 9), given_up(2, 7), given_up(4, 2**53, instance_id=second), there])
    with_pair.apply([given_up(2, 3)])
    expected = (given_up(4, 2**53, instance_id=second), given_up(2, 3), given_up(9, 9))
    assert with_pair.pair_state(PAIR).lost == tuple(put.lost for put in expected)
    assert with_pair.pair_state(OTHER_PAIR).lost == (there.lost,)
    gone = RemoveLost(conversation_id=PAIR, instance_id=INSTANCE, first=2)
    with_pair.apply([gone, gone, replace(gone, first=3)])
    assert with_pair.pair_state(PAIR).lost == (expected[0].lost, expected[2].lost)
    with_pair.apply([RemoveGroup(conversation_id=PAIR), PutContact(contact=contact())])
    assert with_pair.pair_state(PAIR).lost == ()
    assert with_pair.pair_state(OTHER_PAIR).lost == (there.lost,)


# --- MVDS: records ------------------------------------------------------------------------------


def test_a_pair_starts_with_nothing_to_send(with_pair: ProfileStore) -> None:
    assert with_pair.mvds_state(PAIR, limit=1) == MvdsState()


def test_a_record_comes_back_exactly(with_pair: ProfileStore) -> None:
    whole = Record(
        peer_id=ALICE,
        message_id=mvds_id("\x00é"),
        type=RecordType.REQUEST,
        send_count=2**31,
        send_epoch=NEVER,
        body_bytes=0,
        created_ms=UnixMs(2**53),
    )
    with_pair.apply([mvds(PutRecord(whole))])
    assert with_pair.mvds_record(PAIR, ALICE, mvds_id("\x00é")) == whole
    (read,) = with_pair.mvds_state(PAIR, limit=5).records
    assert read == whole
    assert isinstance(read.type, RecordType)
    assert read.given_up


@pytest.mark.parametrize("before", RecordType)
@pytest.mark.parametrize("after", RecordType)
@pytest.mark.parametrize("epoch", [3, 7, NEVER])
def test_a_peer_and_message_have_one_record_whatever_its_type(
    with_pair: ProfileStore, before: RecordType, after: RecordType, epoch: int
) -> None:
    new = record("a", epoch, type_=after)
    with_pair.apply([mvds(record("a", type_=before), new)])
    assert with_pair.mvds_state(PAIR, limit=5).records == records_of(new)
    with_pair.apply([mvds(record("a", type_=before))])
    with_pair.apply([mvds(new), mvds(new)])
    assert with_pair.mvds_state(PAIR, limit=5).records == records_of(new)
    assert with_pair.mvds_record(PAIR, BOB, mvds_id("a")) == new.record


def test_records_are_apart_by_peer_message_and_conversation(with_pair: ProfileStore) -> None:
    with_pair.apply([PutContact(contact=contact(OTHER_PAIR))])
    here = (record("a", 1), record("a", 2, peer_id=ALICE), record("b", 3))
    there = record("a", 4)
    with_pair.apply([mvds(*here), mvds(there, conversation_id=OTHER_PAIR)])
    assert with_pair.mvds_state(PAIR, limit=5).records == records_of(*here)
    gone = RemoveRecord(peer_id=BOB, message_id=mvds_id("a"))
    with_pair.apply([mvds(gone, gone)])
    assert with_pair.mvds_state(PAIR, limit=5).records == records_of(*here[1:])
    assert with_pair.mvds_record(PAIR, BOB, mvds_id("a")) is None
    assert with_pair.mvds_record(PAIR, ALICE, mvds_id("a")) == here[1].record
    assert with_pair.mvds_record(PAIR, ALICE, mvds_id("b")) is None
    assert with_pair.mvds_state(OTHER_PAIR, limit=5).records == records_of(there)
    with_pair.apply([mvds(here[0], RemoveRecord(peer_id=ALICE, message_id=mvds_id("a")))])
    assert with_pair.mvds_state(PAIR, limit=5).records == records_of(here[0], here[2])


def test_records_come_as_they_are_due_and_of_one_epoch_the_oldest_first(
    with_pair: ProfileStore,
) -> None:
    by_due = (
        record("z", 1, created_ms=9),
        record("y", 2, created_ms=1),
        record("b", 2, created_ms=2, peer_id=ALICE),
        record("c", 2, created_ms=2, peer_id=ALICE),
        record("a", 2, created_ms=2, peer_id=BOB),
        record("x", 2, created_ms=3),
        record("0", NEVER, created_ms=0),
    )
    with_pair.apply([mvds(*by_due[::-1])])
    assert with_pair.mvds_state(PAIR, limit=7).records == records_of(*by_due)


@pytest.mark.parametrize(
    ("limit", "loaded_before"), [(1, 1), (2, 4), (3, NEVER), (4, NEVER), (5, None), (10**30, None)]
)
def test_a_start_says_from_which_epoch_on_it_is_not_complete(
    with_pair: ProfileStore, limit: int, loaded_before: int | None
) -> None:
    by_due = [record(*put) for put in (("a", 1), ("b", 1), ("c", 4), ("d", NEVER), ("e", NEVER))]
    with_pair.apply([mvds(*by_due)])
    state = with_pair.mvds_state(PAIR, limit=limit)
    assert state.records == records_of(*by_due[:limit])
    assert state.loaded_before == loaded_before


@pytest.mark.parametrize(
    ("from_epoch", "limit", "expected", "loaded_before"),
    [
        (0, 1, "ab", 4),  # one epoch comes whole, beyond the limit
        (0, 2, "ab", 4),
        (0, 3, "abc", 5),
        (0, 4, "abc", 5),  # there is room for one more, but not for its whole epoch
        (0, 6, "abcdef", NEVER),
        (2, 1, "c", 5),
        (4, 1, "c", 5),
        (5, 2, "def", NEVER),
        (5, 4, "def", NEVER),
        (5, 5, "defgh", None),
        (NEVER, 1, "gh", None),
        (NEVER, 2, "gh", None),
        (-(2**62), 10**30, "abcdefgh", None),
        (NEVER + 1, 1, "", None),
    ],
)
def test_more_records_come_in_whole_epochs(
    with_pair: ProfileStore,
    from_epoch: int,
    limit: int,
    expected: str,
    loaded_before: int | None,
) -> None:
    epochs = {"a": 1, "b": 1, "c": 4, "d": 5, "e": 5, "f": 5, "g": NEVER, "h": NEVER}
    by_due = {name: record(name, epoch) for name, epoch in epochs.items()}
    with_pair.apply([mvds(*by_due.values()), PutContact(contact=contact(OTHER_PAIR))])
    with_pair.apply([mvds(record("foreign", 2), conversation_id=OTHER_PAIR)])
    records, before = with_pair.mvds_records(PAIR, Epoch(from_epoch), limit=limit)
    assert records == records_of(*(by_due[name] for name in expected))
    assert before == loaded_before


def test_paging_through_the_epochs_meets_every_record_once(with_pair: ProfileStore) -> None:
    puts = [record(f"r{n:03}", n * n % 23) for n in range(200)]
    with_pair.apply([mvds(*puts)])
    first = with_pair.mvds_state(PAIR, limit=30)
    assert first.loaded_before is not None
    seen = [r for r in first.records if r.send_epoch < first.loaded_before]
    from_epoch: Epoch | None = first.loaded_before
    while from_epoch is not None:
        records, from_epoch = with_pair.mvds_records(PAIR, from_epoch, limit=30)
        assert records
        seen += records
    assert seen == list(with_pair.mvds_state(PAIR, limit=200).records)
    assert len({r.message_id for r in seen}) == 200


@pytest.mark.parametrize("limit", [0, -1])
def test_no_records_are_asked_for_by_mistake_only(with_pair: ProfileStore, limit: int) -> None:
    for conversation_id in (PAIR, OTHER_PAIR):
        with pytest.raises(LocalProtocolError):
            with_pair.mvds_state(conversation_id, limit=limit)
        with pytest.raises(LocalProtocolError):
            with_pair.mvds_records(conversation_id, Epoch(0), limit=limit)


# --- MVDS: bodies, acknowledgements, what is held -----------------------------------------------


def test_a_body_is_kept_until_it_is_dropped_and_nothing_else_goes_with_it(
    with_pair: ProfileStore,
) -> None:
    kept = body(b"\x00\xff" * 50_000)
    empty = replace(body(b""), timestamp=-(2**63))
    with_pair.apply(
        [
            mvds(
                KeepMessage(mvds_id("a"), kept),
                KeepMessage(mvds_id("b"), empty),
                record("other"),
                PutPendingAck(BOB, mvds_id("a")),
                NoteHeld(mvds_id("a")),
            )
        ]
    )
    before = with_pair.mvds_state(PAIR, limit=5)
    assert with_pair.mvds_message(PAIR, mvds_id("a")) == kept
    assert with_pair.mvds_message(PAIR, mvds_id("b")) == empty
    with_pair.apply([mvds(KeepMessage(mvds_id("b"), empty), DropMessage(mvds_id("a")))])
    with_pair.apply([mvds(DropMessage(mvds_id("a")))])
    assert with_pair.mvds_message(PAIR, mvds_id("a")) is None
    assert with_pair.mvds_message(PAIR, mvds_id("b")) == empty
    assert with_pair.mvds_state(PAIR, limit=5) == before
    with_pair.apply([mvds(RemoveRecord(BOB, mvds_id("b")))])
    assert with_pair.mvds_message(PAIR, mvds_id("b")) == empty, "the node says when it goes"


def test_a_body_that_a_record_still_needs_is_not_dropped(with_pair: ProfileStore) -> None:
    """The node may not have loaded another peer's record of the same message."""
    id_ = mvds_id("a")
    with_pair.apply(
        [
            PutContact(contact=contact(OTHER_PAIR)),
            mvds(KeepMessage(id_, body()), record("a"), record("a", NEVER, peer_id=ALICE)),
            mvds(KeepMessage(id_, body()), conversation_id=OTHER_PAIR),
        ]
    )
    with_pair.apply([mvds(RemoveRecord(BOB, id_), DropMessage(id_))])
    assert with_pair.mvds_message(PAIR, id_) == body()
    assert with_pair.mvds_record(PAIR, ALICE, id_) is not None
    with_pair.apply([mvds(DropMessage(id_), conversation_id=OTHER_PAIR)])
    assert with_pair.mvds_message(OTHER_PAIR, id_) is None, "a record elsewhere is none here"
    with_pair.apply([mvds(RemoveRecord(ALICE, id_), RemoveRecord(ALICE, id_), DropMessage(id_))])
    assert with_pair.mvds_message(PAIR, id_) is None


def test_a_request_needs_no_body_of_ours(with_pair: ProfileStore) -> None:
    """It asks for theirs: of a message with the same id that we have, nothing is kept for it."""
    id_ = mvds_id("a")
    request = replace(record("a").record, peer_id=ALICE, type=RecordType.REQUEST)
    with_pair.apply([mvds(KeepMessage(id_, body()), record("a"), PutRecord(request))])
    with_pair.apply([mvds(DropMessage(id_))])
    assert with_pair.mvds_message(PAIR, id_) == body(), "Bob still needs it"
    with_pair.apply([mvds(RemoveRecord(BOB, id_), DropMessage(id_))])
    assert with_pair.mvds_message(PAIR, id_) is None
    assert with_pair.mvds_record(PAIR, ALICE, id_) == request


def test_how_long_something_waited_is_kept(with_pair: ProfileStore) -> None:
    waited = replace(record("a").record, waited_epochs=2_591_999)
    with_pair.apply([mvds(PutRecord(waited))])
    assert with_pair.mvds_state(PAIR, limit=5).records == (waited,)
    assert with_pair.mvds_record(PAIR, BOB, mvds_id("a")) == waited


def test_bodies_are_apart_by_conversation(with_pair: ProfileStore) -> None:
    with_pair.apply(
        [PutContact(contact=contact(OTHER_PAIR)), mvds(KeepMessage(mvds_id("a"), body()))]
    )
    assert with_pair.mvds_message(OTHER_PAIR, mvds_id("a")) is None
    with_pair.apply([mvds(DropMessage(mvds_id("a")), conversation_id=OTHER_PAIR)])
    assert with_pair.mvds_message(PAIR, mvds_id("a")) == body()


def test_what_is_held_is_held_for_ever(with_pair: ProfileStore) -> None:
    ids = [mvds_id(f"h{n}") for n in range(5)]
    with_pair.apply([mvds(*(NoteHeld(id_) for id_ in ids[:3]))])
    with_pair.apply([mvds(*(NoteHeld(id_) for id_ in ids[2:]), NoteHeld(ids[4]))])
    with_pair.apply(
        [
            mvds(
                DropMessage(ids[0]),
                RemoveRecord(BOB, ids[0]),
                RemovePendingAck(BOB, ids[0]),
            ),
            PutContact(contact=replace(contact(), state=ContactState.DECLINED)),
        ]
    )
    held = with_pair.mvds_state(PAIR, limit=1).held
    assert held == frozenset(ids)
    assert {type(id_) for id_ in held} == {bytes}


def test_pending_acks_keep_their_order_and_are_said_once(with_pair: ProfileStore) -> None:
    pairs = [(BOB, mvds_id("b")), (ALICE, mvds_id("b")), (BOB, mvds_id("a"))]
    with_pair.apply([mvds(*(PutPendingAck(peer, id_) for peer, id_ in [*pairs, pairs[0]]))])
    assert with_pair.mvds_state(PAIR, limit=1).pending_acks == tuple(pairs)
    with_pair.apply([mvds(RemovePendingAck(*pairs[0]), RemovePendingAck(*pairs[0]))])
    assert with_pair.mvds_state(PAIR, limit=1).pending_acks == tuple(pairs[1:])
    with_pair.apply([mvds(PutPendingAck(*pairs[0]))])
    assert with_pair.mvds_state(PAIR, limit=1).pending_acks == (pairs[1], pairs[2], pairs[0])


# --- all or nothing, and the end ----------------------------------------------------------------


def everything() -> list[StoreWrite]:
    return [
        mvds(
            record("a"),
            KeepMessage(mvds_id("a"), body()),
            NoteHeld(mvds_id("h")),
            PutPendingAck(BOB, mvds_id("h")),
        ),
        clock(9),
        author(3),
        waiting("w"),
        row(9, "m", is_own=True, conversation_id=PAIR),
        replace(delivery("m", DeliveryState.SAVED), conversation_id=PAIR),
        SaveDraft(conversation_id=PAIR, text="so…"),
    ]


def story(store: ProfileStore) -> tuple[object, ...]:
    return (
        store.contacts(),
        store.picture(),
        store.pair_state(PAIR),
        store.mvds_state(PAIR, limit=100),
        store.mvds_message(PAIR, mvds_id("a")),
        store.latest_page(PAIR, limit=100),
        store.summary(PAIR),
    )


def test_a_batch_that_fails_leaves_nothing_of_a_pair_behind(with_pair: ProfileStore) -> None:
    before = story(with_pair)
    with pytest.raises(StorageError):
        with_pair.apply(
            [
                SavePicture(picture=b"p"),
                PutContact(contact=contact(name="renamed")),
                *everything(),
                clock(1, OTHER_PAIR),
            ]
        )
    assert story(with_pair) == before
    with_pair.apply(everything())
    assert story(with_pair) != before


def test_a_removed_pair_is_forgotten_and_can_begin_again(with_pair: ProfileStore) -> None:
    fresh = story(with_pair)
    with_pair.apply([PutContact(contact=contact(OTHER_PAIR)), PutGroup(group=group()), row(1, "a")])
    there = mvds(record("a"), NoteHeld(mvds_id("h")), conversation_id=OTHER_PAIR)
    with_pair.apply([*everything(), there])
    full = story(with_pair)
    with_pair.apply([RemoveGroup(conversation_id=PAIR)])
    assert [c.conversation_id for c in with_pair.contacts()] == [OTHER_PAIR]
    assert with_pair.mvds_state(PAIR, limit=5) == MvdsState()
    assert len(with_pair.mvds_state(OTHER_PAIR, limit=5).held) == 1
    assert with_pair.latest_page(GROUP, limit=5).total == 1
    with_pair.apply([RemoveGroup(conversation_id=OTHER_PAIR), PutContact(contact=contact())])
    assert story(with_pair) == fresh
    with_pair.apply(everything())
    assert story(with_pair)[1:] == full[1:]


def test_the_window_may_speak_of_a_pair_that_was_just_removed(with_pair: ProfileStore) -> None:
    with_pair.apply(
        [
            RemoveGroup(conversation_id=PAIR),
            SaveDraft(conversation_id=PAIR, text="late"),
            SaveMuted(conversation_id=PAIR, muted=True),
            SaveReadMark(conversation_id=PAIR, up_to=at(1)),
            HideMessage(conversation_id=PAIR, message_id=MessageId("m")),
        ]
    )
    assert with_pair.contacts() == []


def put_delivery(state: DeliveryState, failure: str | None = None) -> PutDelivery:
    return replace(delivery("mine", state, failure), conversation_id=PAIR)


@pytest.mark.parametrize(
    ("write", "counts"),
    [
        (lambda: put_delivery(DeliveryState.SAVED), (1, 0)),
        (lambda: put_delivery(DeliveryState.FAILED, "not in 30 days"), (0, 1)),
        (lambda: put_delivery(DeliveryState.HELD), (0, 0)),
    ],
    ids=["saved", "failed", "held"],
)
def test_an_own_message_of_a_pair_has_a_delivery_and_no_holders(
    with_pair: ProfileStore, write: Callable[[], PutDelivery], counts: tuple[int, int]
) -> None:
    with_pair.apply([row(1, "mine", is_own=True, conversation_id=PAIR), write()])
    stored = with_pair.message(PAIR, MessageId("mine"))
    assert stored is not None
    assert (stored.delivery, stored.holders) == (write().delivery, ())
    summary = with_pair.summary(PAIR)
    assert (summary.waiting_to_send, summary.failed) == counts
    assert summary.last_message == stored
