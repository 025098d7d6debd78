"""More author instances than a claim names: equal logs make equal claims, and silence follows."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import (
    AuthorSequence,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.sds.claims import MAX_INSTANCES, Claims
from engine.core.sds.log import LogIndex
from engine.core.sds.vocabulary import Claim, LogEntry
from engine.sim.channel_participant import ChannelParticipant, instance_of, open_payload
from tests.core.sds.sds_bench import ALICE, BOB, NOW, SMALL, content, member, sync

FEW = replace(SMALL, holdings_max_instances=4)


def _entry(number: int, author: int) -> LogEntry:
    sender = ParticipantId(f"member-{author}")
    return LogEntry(
        Position(NOW + number // 2, MessageId(f"{number:022}")),
        sender,
        None,
        AuthorSequence(instance_id=instance_of(sender), sequence=number + 1),
    )


@given(st.lists(st.integers(0, 9), max_size=30), st.randoms(use_true_random=False), st.booleans())
def test_whoever_holds_the_same_claims_the_same_whenever_it_came(
    authors: list[int], random: Random, loaded: bool
) -> None:
    entries = [_entry(number, author) for number, author in enumerate(authors)]
    shuffled = list(entries)
    random.shuffle(shuffled)
    one, other = LogIndex(entries if loaded else ()), LogIndex()
    for entry in () if loaded else entries:
        one.insert(entry)
    for entry in shuffled:
        other.insert(entry)
        other.holdings(max_instances=4, max_ranges=9)
    mine, theirs = Claims(one, FEW), Claims(other, FEW)
    assert mine.own() == theirs.own()
    assert len(mine.own()) == min(4, len(set(authors)))
    mine.hear(BOB, NOW, Claim(theirs.own()))
    assert mine.are_level([BOB])


def test_a_group_with_more_authors_than_a_claim_names_falls_silent() -> None:
    both = frozenset({ALICE, BOB})
    alice, bob = (member(name, members=both, config=FEW) for name in (ALICE, BOB))
    messages = [
        content(ParticipantId(f"member-{number}"), "x", lamport=NOW + number, sequence=1)
        for number in range(12)
    ]
    for message in messages:
        alice.handle(message, now_ms=NOW)
    for message in reversed(messages):
        bob.handle(message, now_ms=NOW)
    pair = (alice, bob)
    for _ in range(500):
        due = [(at_ms, one) for one in pair if (at_ms := one.next_deadline()) is not None]
        if not due:
            break
        at_ms, speaker = min(due, key=lambda item: item[0])
        _pass_on(speaker, alice if speaker is bob else bob, at_ms)
    assert alice.next_deadline() is bob.next_deadline() is None
    assert "repair" not in alice.sends | bob.sends


def _pass_on(speaker: ChannelParticipant, listener: ChannelParticipant, at_ms: UnixMs) -> None:
    for sent in speaker.advance(now_ms=at_ms):
        listener.handle(open_payload(sent.payload), now_ms=at_ms)


def test_instances_that_somebody_made_up_cost_each_claim_only_so_much() -> None:
    log = LogIndex()
    for number in range(3_000):
        log.insert(_entry(number, number))
    claims = Claims(log, FEW)
    claims.hear(BOB, NOW, Claim({}))
    compared = list(claims.lacking(BOB))
    assert len(compared) == MAX_INSTANCES + FEW.holdings_max_instances
    ids = {instance_id for numbers in compared for instance_id, _ in numbers}
    assert ids >= {instance_of(ParticipantId(f"member-{number}")) for number in (0, 2_999)}


def test_one_claim_makes_us_look_at_only_so_many_messages() -> None:
    """And yet all are sent in the end, since what was sent is not looked at for a while."""
    alice = member(config=replace(SMALL, push_per_claim=2, holdings_max_instances=64))
    for number in range(40):
        sender = ParticipantId(f"member-{number}")
        alice.handle(content(sender, "x", lamport=NOW - 9_000 + number, sequence=1), now_ms=NOW)
    for number in range(40):
        claim = sync(BOB, lamport=NOW + number, holdings={})
        now_ms = UnixMs(NOW + 2_000 * number)
        alice.handle(claim, now_ms=now_ms)
        alice.advance(now_ms=UnixMs(now_ms + SMALL.repair_t_max_ms))
    assert alice.sends["repair"] >= 40
