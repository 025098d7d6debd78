"""What ``ProfileStore`` promises about a one-to-one conversation, of both stores alike.

What a pair is not, the order of its messages, and that it changes, and is forgotten, as a whole.
Whom it is with is the contact's module, what MVDS keeps for it a third.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from engine.core.errors import StorageError
from engine.core.ids import ConversationId, DeliveryState, InstanceId, MessageId, UnixMs
from engine.core.mvds.vocabulary import Epoch, KeepMessage, MvdsState, NoteHeld, PutPendingAck
from engine.core.ports import (
    HideMessage,
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
    SavePicture,
    SaveReadMark,
    StoreWrite,
)
from engine.core.ratchet import KeptSession, KeyBundle, RatchetState, SaveRatchet
from engine.core.records import PairState
from engine.core.sds.vocabulary import ChannelState, SaveClock
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    OTHER_PAIR,
    PAIR,
    at,
    body,
    channel,
    clock,
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


def ratchet(*session_ids: str, pickle: str = "pickle") -> RatchetState:
    """The sessions in order: those with the highest generation first."""
    keys = KeyBundle(
        number=7, identity_key=b"i" * 32, one_time_keys=(b"o" * 32,), fallback_key=b"f" * 32
    )
    return RatchetState(
        stay=INSTANCE,
        pickle_key=bytes(32),
        account="account",
        ours=keys,
        theirs=keys if session_ids else None,
        told=7,
        sessions=tuple(
            KeptSession(generation=9 - place, session_id=name, pickle=pickle, heard=place > 0)
            for place, name in enumerate(session_ids)
        ),
        heard=(bytes(16), b"h" * 16),
        sent_ms=UnixMs(2**53 - 1),
        since_ms=UnixMs(5),
        must_renew=True,
    )


def author(
    sequence: int, instance_id: InstanceId = INSTANCE, conversation_id: ConversationId = PAIR
) -> SavePairAuthor:
    return SavePairAuthor(
        conversation_id=conversation_id, instance_id=instance_id, sequence=sequence
    )


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
        SaveRatchet(conversation_id=conversation_id, state=ratchet("s")),
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


def test_a_ratchet_is_kept_whole_and_sessions_go_that_are_not_in_it(
    with_pair: ProfileStore,
) -> None:
    with_pair.apply([PutContact(contact=contact(OTHER_PAIR))])
    states = (ratchet("a", "b"), ratchet("c", "b", pickle="later"), ratchet())
    for state in states:
        with_pair.apply([SaveRatchet(conversation_id=PAIR, state=state)])
        assert with_pair.pair_state(PAIR).ratchet == state
        assert with_pair.pair_state(OTHER_PAIR).ratchet is None


def test_an_empty_pair_state_is_nobody_elses(store: ProfileStore) -> None:
    read = store.pair_state(PAIR)
    assert isinstance(read.authors, dict)
    read.authors[INSTANCE] = 5
    assert store.pair_state(PAIR) == PairState()


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
