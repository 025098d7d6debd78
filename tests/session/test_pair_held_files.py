"""Files in a pair: who has them as a whole, said once, signed, and for good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.content import MAX_FILES_HELD, Attachment
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.runtime.views import message_view
from engine.session.inputs import HoldsFiles, Say, SetBlocked
from engine.session.pair.held_files import MAX_REMEMBERED, HeldFiles
from engine.session.transitions import RowChanged, TransitionBuilder
from tests.session.pair_stage import NOW, PairPerson, exchange, friends

FILE = Attachment(
    name="a.bin",
    media_type="x/y",
    data=b"",
    manifest=Manifest(key=bytes(32), root=ChunkName(bytes(32)), size=300_000),
)


def sent_file(author: PairPerson, other: PairPerson) -> MessageId:
    transition = author.session.handle(Say(FILE), now_ms=NOW)
    exchange(author, other, author.perform(transition))
    assert transition.message_id is not None
    return transition.message_id


def claim(
    person: PairPerson, other: PairPerson, *held: MessageId, let_go: tuple[MessageId, ...] = ()
) -> bool:
    """Whether it says anything."""
    said = person.perform(person.session.handle(HoldsFiles(held, let_go), now_ms=NOW))
    exchange(person, other, said)
    return bool(said)


def holders(person: PairPerson, message_id: MessageId) -> tuple[ParticipantId, ...]:
    [row] = [each for each in person.rows() if each.record.position.message_id == message_id]
    file = message_view(row, person.session.members(), person.identity.participant_id).file
    assert file is not None
    return file.held_whole_by


def test_who_has_a_file_as_a_whole_says_so_once() -> None:
    alice, bob = friends()
    sent = sent_file(alice, bob)
    rows = [len(alice.rows()), len(bob.rows())]
    assert claim(bob, alice, sent)
    assert holders(alice, sent) == (bob.identity.participant_id,)
    assert alice.notes.count(RowChanged(message_id=sent)) >= 1
    assert not claim(bob, alice, sent)
    bob.restart()
    assert not claim(bob, alice, sent), "it is stored that it was said"
    assert [len(alice.rows()), len(bob.rows())] == rows, "a claim makes no row"
    alice.restart()
    assert holders(alice, sent) == (bob.identity.participant_id,)
    other = sent_file(alice, bob)
    assert claim(bob, alice, sent, other)
    assert holders(alice, other) == (bob.identity.participant_id,)


def test_it_comes_although_the_first_copies_were_lost() -> None:
    alice, bob = friends()
    sent = sent_file(alice, bob)
    bob.perform(bob.session.handle(HoldsFiles((sent,)), now_ms=NOW))
    bob.restart()
    for _ in range(20):
        exchange(bob, alice, bob.advance(60_000))
        alice.advance(60_000)
    assert holders(alice, sent) == (bob.identity.participant_id,)


def test_a_file_that_was_let_go_is_held_no_more_until_it_is_here_again() -> None:
    alice, bob = friends()
    sent, other = sent_file(alice, bob), sent_file(alice, bob)
    bob_id = bob.identity.participant_id
    assert claim(bob, alice, sent, other)
    assert claim(bob, alice, other, let_go=(sent,))
    assert (holders(alice, sent), holders(alice, other)) == ((), (bob_id,))
    bob.restart()
    alice.restart()
    assert not claim(bob, alice, other), "all of it was said"
    assert holders(alice, sent) == ()
    assert claim(bob, alice, other, sent)
    assert holders(alice, sent) == (bob_id,)


@given(orders=st.permutations(range(4)))
def test_the_newest_statement_counts_in_whatever_order_they_come(orders: list[int]) -> None:
    """MVDS brings them in any order, and each perhaps again."""
    alice, bob = friends()
    sent = sent_file(alice, bob)
    files, builder = HeldFiles("key", ""), TransitionBuilder()
    said = [files.news((sent,), builder, NOW), *files.gone((sent,), builder, UnixMs(NOW - 60_000))]
    said += [files.news((sent,), builder, UnixMs(NOW - 50_000))]
    said += [*files.gone((sent,), builder, NOW)]
    who = next(iter(alice.store.contacts()))
    for place in (*orders, *orders):
        heard = TransitionBuilder()
        statement = said[place]
        assert statement is not None
        HeldFiles("key", "").hear(statement, who, heard)
        alice.store.apply(heard.writes)
    assert holders(alice, sent) == ()


def test_what_was_sent_is_not_held_by_its_sender_too() -> None:
    """A claim about one's own file, or about none, changes nothing that is shown."""
    alice, bob = friends()
    sent = sent_file(bob, alice)
    assert claim(bob, alice, sent, MessageId("A" * 22))
    assert holders(alice, sent) == ()


def test_nothing_is_said_to_somebody_whom_one_blocked() -> None:
    alice, bob = friends()
    sent = sent_file(alice, bob)
    bob.perform(bob.session.handle(SetBlocked(blocked=True), now_ms=NOW))
    assert not claim(bob, alice, sent)
    bob.perform(bob.session.handle(SetBlocked(blocked=False), now_ms=NOW))
    assert claim(bob, alice, sent)


@pytest.mark.parametrize("count", [1, MAX_FILES_HELD, MAX_FILES_HELD + 1, 2 * MAX_REMEMBERED])
def test_what_is_said_and_remembered_is_bounded(count: int) -> None:
    builder, files = TransitionBuilder(), HeldFiles("key", "")
    held = [MessageId(f"{number}") for number in range(count)]
    for at in range(0, count, 10):
        said = files.news(held[at : at + 10], builder, NOW)
        assert said is not None
        assert said.message_ids == tuple(held[at : at + 10])
    assert files.news(held[-MAX_FILES_HELD:], builder, NOW) is None
    everything = HeldFiles("key", "").news(held, builder, NOW)
    assert everything is not None
    assert len(everything.message_ids) == min(count, MAX_FILES_HELD)
    assert len(builder.writes[-2].value.splitlines()) <= MAX_REMEMBERED + 1  # type: ignore[union-attr]
