"""Review ACK Status and the table of holders: certain only what is signed, never backwards."""

import pytest

from engine.core.errors import RemoteProtocolError
from engine.core.ids import HolderSource, MessageId, ParticipantId
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import HeldByChanged, HolderEntry, OutgoingChanged
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    after,
    content,
    dep,
    entries,
    holds,
    id_of,
    member,
    opened,
    said,
    sync,
)


def bloom_of(*ids: MessageId) -> bytes:
    bloom = BloomFilter(capacity=64, fixed=False)
    for message_id in ids:
        bloom.add(message_id)
    return bytes(bloom)


def sent_by(alice: ChannelParticipant, text: str = "mine") -> MessageReceived:
    (sent,) = opened(alice.send(text, now_ms=NOW))
    return sent


def held_by(alice: ChannelParticipant) -> tuple[dict[ParticipantId, HolderSource], list[str]]:
    """(certain holders with source, maybe holders) as last told by the last input."""
    (event,) = said(alice, HeldByChanged)
    assert isinstance(event, HeldByChanged)

    def sources(holders: tuple[HolderEntry, ...]) -> dict[ParticipantId, HolderSource]:
        return {entry.participant_id: entry.source for entry in holders}

    return sources(event.certain), list(sources(event.maybe))


def states(alice: ChannelParticipant) -> list[str]:
    return [event.state.value for event in said(alice, OutgoingChanged)]  # type: ignore[union-attr]


def test_a_causal_history_acknowledges_and_ends_the_rebroadcast() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(content(BOB, "reply", lamport=NOW + 1, history=dep(mine)), now_ms=after(1))
    assert held_by(alice) == ({BOB: HolderSource.CAUSAL}, [])
    assert states(alice) == ["acknowledged"]
    (event,) = said(alice, OutgoingChanged)
    assert isinstance(event, OutgoingChanged)
    assert event.attempts == 0  # It was not given up.
    assert alice.channel.snapshot().outgoing == ()


def test_sync_messages_and_messages_with_unmet_dependencies_acknowledge_too() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(1))
    assert states(alice) == ["acknowledged"]
    waiting = content(CAROL, "w", lamport=NOW + 1, history=(*dep(mine), *entries("missing")))
    alice.handle(waiting, now_ms=after(1))
    certain, _ = held_by(alice)
    assert certain.keys() == {BOB, CAROL}


def test_the_filter_of_a_sync_message_acknowledges_possibly() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, bloom=bloom_of(id_of(mine))), now_ms=after(1))
    assert states(alice) == ["possibly_acknowledged"]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("stage", ["logged", "waiting", "held aside"])
def test_another_form_of_what_is_here_is_refused_and_the_first_stays(
    stage: str, *, restarted: bool
) -> None:
    alice = member()
    lamport = after(10**9) if stage == "held aside" else after(1)
    history = entries("unknown") if stage == "waiting" else ()
    first = content(BOB, "reply", lamport=lamport, history=history)
    alice.handle(first, now_ms=NOW)
    mine = sent_by(alice)
    if restarted and stage != "logged":  # Of those in the log only the last are remembered.
        alice.restart(now_ms=NOW)
    other = content(BOB, "reply", lamport=lamport, history=history, bloom=bloom_of(id_of(mine)))
    with pytest.raises(RemoteProtocolError, match="another_form"):
        alice.handle(other, now_ms=after(2))
    assert [entry.state for entry in alice.store.state().outgoing] == ["unacknowledged"]
    alice.handle(first, now_ms=after(3))
    state = alice.store.state()
    kept = [alice.store.raw.get(id_of(first)), *(entry.raw for entry in state.incoming)]
    assert first.raw in kept
    assert other.raw not in kept


def test_filters_only_ever_say_possibly_however_many_agree() -> None:
    alice = member()
    mine = sent_by(alice)
    bloom = bloom_of(id_of(mine))
    for number in range(5):
        alice.handle(sync(BOB, bloom=bloom, lamport=NOW + number), now_ms=after(number))
    alice.handle(sync(CAROL, bloom=bloom), now_ms=after(9))
    assert held_by(alice) == ({}, [BOB, CAROL])
    (entry,) = alice.channel.snapshot().outgoing
    assert entry.state == "possibly_acknowledged"


@pytest.mark.parametrize("bloom", [b"\xff" * 64, b"\xff" * 18_752, b"\xff" * 63])
def test_an_overfull_or_misshapen_filter_is_ignored_and_counted(bloom: bytes) -> None:
    alice = member()
    sent_by(alice)
    alice.handle(sync(BOB, bloom=bloom), now_ms=after(1))
    assert alice.events == []
    counted = {name: n for name, n in alice.counters.snapshot().items() if "bloom" in name}
    assert list(counted.values()) == [1]


def test_holdings_cover_bursts_longer_than_a_history() -> None:
    alice = member()
    for number in range(30):
        alice.send(str(number), now_ms=after(number))
    alice.handle(sync(BOB, holdings=holds((ALICE, 1, 29))), now_ms=after(100))
    assert len(said(alice, HeldByChanged)) == 29
    assert [entry.message_id for entry in alice.channel.snapshot().outgoing] == alice.seen.sent[29:]
    alice.handle(sync(BOB, holdings=holds((ALICE, 1, 30)), lamport=NOW + 1), now_ms=after(101))
    assert len(said(alice, HeldByChanged)) == 1


def test_unverified_senders_are_only_ever_maybe_yet_end_the_rebroadcast() -> None:
    alice = member()
    mine = sent_by(alice)
    claim = sync(BOB, history=dep(mine), holdings=holds((ALICE, 1, 1)), verified=False)
    alice.handle(claim, now_ms=after(1))
    assert held_by(alice) == ({}, [BOB])
    assert states(alice) == ["acknowledged"]


def test_whoever_repairs_our_message_holds_it() -> None:
    alice = member()
    mine = sent_by(alice)
    again = MessageReceived(
        message=mine.message, raw=mine.raw, author=mine.author, repaired_by=CAROL
    )
    alice.handle(again, now_ms=after(1))
    assert held_by(alice) == ({CAROL: HolderSource.REPAIR}, [])


def test_a_state_never_moves_backwards_and_the_first_certain_source_stays() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, bloom=bloom_of(id_of(mine))), now_ms=after(1))
    assert held_by(alice) == ({}, [BOB])
    alice.handle(sync(BOB, holdings=holds((ALICE, 1, 1)), lamport=NOW + 1), now_ms=after(2))
    assert held_by(alice) == ({BOB: HolderSource.HOLDINGS}, [])
    alice.handle(
        sync(BOB, lamport=NOW + 2, history=dep(mine), bloom=bloom_of(id_of(mine))),
        now_ms=after(3),
    )
    assert said(alice, HeldByChanged) == []


def test_review_ends_when_everybody_holds_it() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(1))
    assert len(alice.channel.snapshot().holders) == 1
    alice.handle(sync(CAROL, history=dep(mine)), now_ms=after(2))
    certain, _ = held_by(alice)
    assert certain.keys() == {BOB, CAROL}
    assert alice.channel.snapshot().holders == ()


def test_review_ends_after_thirty_days() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(1))
    later = after(31 * 24 * 3_600_000)
    alice.send("much later", now_ms=later)
    alice.handle(sync(CAROL, history=dep(mine), lamport=later), now_ms=later)
    assert said(alice, HeldByChanged) == []


def test_whose_newest_claim_covers_a_message_is_known_of_everybodys() -> None:
    alice = member()
    theirs, unnumbered = content(BOB, "b", sequence=1), content(BOB, "no number")
    for message in (theirs, unnumbered, sync(CAROL, holdings=holds((BOB, 1, 1)))):
        alice.handle(message, now_ms=NOW)
    assert alice.channel.claimed_by(id_of(theirs)) == {CAROL}
    assert alice.channel.claimed_by(id_of(unnumbered)) == frozenset()
    assert alice.channel.claimed_by(MessageId("unknown")) == frozenset()


def test_what_is_reviewed_no_more_is_acknowledged_all_the_same() -> None:
    alice, later = member(), after(31 * 24 * 3_600_000)
    (old,) = opened(alice.send("old", now_ms=NOW))
    (young,) = opened(alice.send("young", now_ms=later))
    alice.handle(sync(BOB, lamport=later, history=dep(old)), now_ms=later)
    assert [each.message_id for each in alice.channel.snapshot().outgoing] == [id_of(young)]


def test_a_member_who_left_is_not_waited_for() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(1))
    alice.set_members(frozenset({ALICE, BOB}), now_ms=after(2))
    assert alice.channel.snapshot().holders == ()


def test_lying_holdings_about_absurd_ranges_cost_nothing() -> None:
    alice = member()
    sent_by(alice)
    claim = sync(BOB, holdings=holds((ALICE, 1, 2**50), (CAROL, 1, 2**50)))
    alice.handle(claim, now_ms=after(1))
    certain, _ = held_by(alice)
    assert certain == {BOB: HolderSource.HOLDINGS}


@pytest.mark.parametrize("others", [1, 30, 60])
def test_maybe_comes_with_the_chance_that_the_filter_is_wrong(others: int) -> None:
    alice = member()
    mine = sent_by(alice)
    ids = [MessageId(f"other-{number}") for number in range(others)]
    bloom = BloomFilter(capacity=64, fixed=False)
    bloom.rebuild([id_of(mine), *ids])
    data = bytes(bloom)
    alice.handle(sync(BOB, bloom=data), now_ms=after(1))
    (event,) = said(alice, HeldByChanged)
    assert isinstance(event, HeldByChanged)
    (maybe,) = event.maybe
    ones = int.from_bytes(data, "big").bit_count()
    assert maybe.false_probability == pytest.approx((ones / (8 * len(data))) ** 10)
    alice.restart(now_ms=after(1))
    assert alice.channel.snapshot().holders == alice.store.state().holders == (maybe,)
    alice.handle(content(BOB, "r", lamport=NOW + 1, history=dep(mine)), now_ms=after(2))
    (event,) = said(alice, HeldByChanged)
    assert isinstance(event, HeldByChanged)
    assert [entry.false_probability for entry in event.certain] == [None]
