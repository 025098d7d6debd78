"""Evidence that is none: echoes of our own, twins of a number, names that are made up."""

from engine.core.ids import HolderSource, ParticipantId, UnixMs
from engine.core.sds.holders import MAYBE_HOLDERS
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import HeldByChanged, OutgoingChanged
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    NOW,
    after,
    content,
    dep,
    holds,
    id_of,
    member,
    opened,
    said,
    sync,
)

DAY = 86_400_000


def sent_by(alice: ChannelParticipant, text: str = "mine") -> MessageReceived:
    (sent,) = opened(alice.send(text, now_ms=NOW))
    return sent


def sources(alice: ChannelParticipant) -> list[tuple[ParticipantId, HolderSource]]:
    holders = alice.channel.snapshot().holders
    return [(entry.participant_id, entry.source) for entry in holders]


def repaired(received: MessageReceived, by: ParticipantId) -> MessageReceived:
    return MessageReceived(received.message, received.raw, author=received.author, repaired_by=by)


def test_our_own_repair_that_comes_back_acknowledges_nothing() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(repaired(mine, ALICE), now_ms=after(1))
    assert said(alice, OutgoingChanged) == said(alice, HeldByChanged) == []
    assert [entry.message_id for entry in alice.channel.snapshot().outgoing] == [id_of(mine)]
    alice.handle(repaired(mine, BOB), now_ms=after(2))
    assert alice.channel.snapshot().outgoing == ()
    assert sources(alice) == [(BOB, HolderSource.REPAIR)]


def _twin(number: int, text: str, lamport: int) -> MessageReceived:
    """Verified and ours: a profile that was copied has used the number as well."""
    return content(ALICE, text, lamport=lamport, sequence=number)


def test_a_number_that_we_used_twice_ends_neither_the_review_nor_the_channel() -> None:
    alice = member()
    sent_by(alice)
    for number in range(3):
        alice.handle(_twin(1, f"twin {number}", NOW + number), now_ms=after(1))
    twins = dep(_twin(1, "twin 1", NOW + 1))
    alice.handle(content(BOB, "reply", lamport=NOW + 5, history=twins), now_ms=after(5))
    later = UnixMs(NOW + 31 * DAY)
    alice.restart(now_ms=later)
    alice.send("goes on", now_ms=later)
    assert alice.channel.snapshot().holders == ()


def test_names_made_up_in_an_open_channel_do_not_grow_the_table_of_holders() -> None:
    alice = member(members=frozenset())
    mine = sent_by(alice)
    for number in range(MAYBE_HOLDERS + 50):
        liar = ParticipantId(f"liar-{number}")
        reply = sync(liar, lamport=NOW + number, history=dep(mine), verified=False)
        alice.handle(reply, now_ms=after(number))
    assert len(alice.channel.snapshot().holders) == MAYBE_HOLDERS
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(999))
    assert (BOB, HolderSource.CAUSAL) in sources(alice)


def test_the_first_certain_source_stays_whatever_comes_next() -> None:
    alice = member()
    mine = sent_by(alice)
    alice.handle(sync(BOB, history=dep(mine)), now_ms=after(1))
    claim = holds((ALICE, 1, 1))
    alice.handle(sync(BOB, lamport=NOW + 2, holdings=claim), now_ms=after(2))
    alice.handle(repaired(mine, BOB), now_ms=after(3))
    assert sources(alice) == [(BOB, HolderSource.CAUSAL)]
    assert said(alice, HeldByChanged) == []
