"""What ``ProfileStore`` promises to MVDS, of both stores alike.

Records come as they are due and in whole epochs; bodies stay as long as a record needs them; what
is held and what is to be acknowledged is kept.  When something is due is the node's business.
"""

import pytest
from msgspec.structs import replace

from engine.core.contacts import ContactState
from engine.core.errors import LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.mvds.vocabulary import (
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
from engine.core.ports import ProfileStore, PutContact
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    OTHER_PAIR,
    PAIR,
    body,
    contact,
    mvds,
    mvds_id,
    record,
)


def records_of(*puts: PutRecord) -> tuple[Record, ...]:
    return tuple(put.record for put in puts)


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
