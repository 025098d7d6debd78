"""Which files a member of a group has as a whole reaches the others, whatever is lost."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from engine.codec.holdings import MAX_WHOLE_FILES
from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.content import Attachment, Text
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.ports import PutFileHolder, SaveValue
from engine.core.sds.vocabulary import Claim
from engine.session.group.whole_files import REPEATS, WholeFiles
from engine.session.transitions import TransitionBuilder
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

GROUP = ConversationId("g")

NOW = UnixMs(1_800_000_000_000)
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MANIFEST = Manifest(key=bytes(32), root=ChunkName(bytes(32)), size=1_000)


def give(receiver: SessionParticipant, sent: list[Outgoing], at_ms: UnixMs) -> list[Outgoing]:
    return [out for item in sent for out in receiver.receive(item.payload, now_ms=at_ms)]


def meet(
    one: SessionParticipant,
    other: SessionParticipant,
    start_ms: int,
    lasting_ms: int,
    *,
    comes: Callable[[SessionParticipant], bool] = lambda _: True,
) -> int:
    """Both live for a while, woken when they want to be.  Returns how often ``other`` spoke.

    ``comes``: whether what this one sends is not lost.
    """
    now_ms, said = start_ms, 0
    while True:
        due = [at for each in (one, other) if (at := each.next_deadline()) is not None]
        if not due or min(due) >= start_ms + lasting_ms:
            return said
        now_ms = max(now_ms, min(due))
        at_ms = UnixMs(now_ms)
        for sender, receiver in ((one, other), (other, one)):
            deadline = sender.next_deadline()
            if deadline is not None and deadline <= at_ms:
                sent = list(sender.advance(now_ms=at_ms))
                said += len(sent) if sender is other else 0
                if comes(sender):
                    answered = give(receiver, sent, at_ms)
                    said += len(answered) if receiver is other else 0
                    if comes(receiver):
                        give(sender, answered, at_ms)


def people_with_a_file() -> tuple[SessionParticipant, SessionParticipant, MessageId, int]:
    alice = SessionParticipant("Alice", seed=3, now_ms=NOW)
    bob = SessionParticipant("Bob", seed=3, now_ms=NOW)
    alice.create_group("Tide", now_ms=NOW)
    give(alice, bob.join_group(alice.invite_link(), now_ms=NOW), NOW)
    meet(alice, bob, NOW, 2 * MINUTE_MS)
    now_ms = UnixMs(NOW + 2 * MINUTE_MS)
    file = Attachment(name="tide.pdf", media_type="application/pdf", data=b"", manifest=MANIFEST)
    give(bob, alice.say(file, now_ms=now_ms), now_ms)
    meet(alice, bob, now_ms, HOUR_MS)
    return alice, bob, alice.seen.sent[-1], now_ms + HOUR_MS


def test_a_claim_that_is_lost_comes_again_although_its_member_says_nothing_else() -> None:
    alice, bob, file_id, now_ms = people_with_a_file()

    bob.hold_files([file_id], now_ms=UnixMs(now_ms))
    meet(alice, bob, now_ms, 20_000, comes=lambda sender: sender is not bob)
    assert alice.holders_of_files() == {file_id: frozenset()}, "the first one is lost"
    meet(alice, bob, now_ms + 20_000, 5 * MINUTE_MS)

    assert alice.holders_of_files() == {file_id: frozenset({bob.participant_id})}


def test_a_claim_that_came_before_its_file_comes_again_after_it() -> None:
    alice, bob, file_id, now_ms = people_with_a_file()
    late = SessionParticipant("Carol", seed=3, now_ms=UnixMs(now_ms))
    joined = late.join_group(alice.invite_link(), now_ms=UnixMs(now_ms))
    give(bob, joined, UnixMs(now_ms))

    bob.hold_files([file_id], now_ms=UnixMs(now_ms))
    meet(late, bob, now_ms, 15_000, comes=lambda _: False)
    meet(late, bob, now_ms + 15_000, 10 * MINUTE_MS)

    assert late.holders_of_files() == {file_id: frozenset({bob.participant_id})}


def test_a_claim_made_offline_is_said_once_online() -> None:
    alice, bob, file_id, now_ms = people_with_a_file()

    bob.set_online(False, now_ms=UnixMs(now_ms))
    bob.hold_files([file_id], now_ms=UnixMs(now_ms))
    assert meet(alice, bob, now_ms, HOUR_MS) == 0
    online_ms = UnixMs(now_ms + HOUR_MS)
    give(alice, bob.set_online(True, now_ms=online_ms), online_ms)
    meet(alice, bob, online_ms, MINUTE_MS)

    assert alice.holders_of_files() == {file_id: frozenset({bob.participant_id})}


def test_a_claim_is_not_repeated_for_ever() -> None:
    alice, bob, file_id, now_ms = people_with_a_file()
    assert meet(alice, bob, now_ms, 24 * HOUR_MS) == 0, "nothing is to be said"

    later_ms = now_ms + 24 * HOUR_MS
    bob.hold_files([file_id], now_ms=UnixMs(later_ms))
    said = meet(alice, bob, later_ms, 24 * HOUR_MS)

    assert REPEATS < said < 2 * (REPEATS + 1)
    assert meet(alice, bob, later_ms + 24 * HOUR_MS, 24 * HOUR_MS) == 0


def test_a_member_that_lets_a_file_go_takes_its_claim_back_also_after_a_restart() -> None:
    alice, bob, file_id, now_ms = people_with_a_file()
    bob.hold_files([file_id], now_ms=UnixMs(now_ms))
    meet(alice, bob, now_ms, HOUR_MS)
    assert alice.holders_of_files() == {file_id: frozenset({bob.participant_id})}

    later_ms = now_ms + HOUR_MS
    bob.hold_files([], let_go=[file_id], now_ms=UnixMs(later_ms))
    bob.restart(now_ms=UnixMs(later_ms))
    bob.hold_files([], now_ms=UnixMs(later_ms))
    later = UnixMs(later_ms + 1)
    give(alice, bob.say(Text(text="Still here."), now_ms=later), later)

    assert alice.holders_of_files() == {file_id: frozenset()}


def claims_of_bob(file_id: MessageId) -> list[Claim]:
    """As he has it, lets it go, gets it again, lets it go, with a clock that is set back."""
    book = WholeFiles(GROUP, lambda _: True, tuple)
    claims: list[Claim] = []
    for at_ms, held in ((NOW, True), (NOW - HOUR_MS, False), (NOW - 9, True), (NOW - 8, False)):
        ids, gone = ([file_id], []) if held else ([], [file_id])
        assert book.hold(ids, gone, TransitionBuilder(), UnixMs(at_ms))
        claim = book.beside(Claim())
        assert claim is not None
        claims.append(claim)
    return claims


@given(order=st.lists(st.integers(0, 4), max_size=8), last=st.permutations(range(5)))
def test_whatever_order_claims_come_in_the_newest_counts(order: list[int], last: list[int]) -> None:
    """One of an older version, which bears no number, among them."""
    file_id = MessageId("A" * 22)
    bob = ParticipantId("bob")
    claims = [*claims_of_bob(file_id), Claim(whole_files=(file_id,))]
    heard, builder = WholeFiles(GROUP, lambda _: True, tuple), TransitionBuilder()
    for place in (*order, *last):
        heard.hear(bob, claims[place], builder, is_own=False)
    puts = [each for each in builder.writes if isinstance(each, PutFileHolder)]
    assert not puts[-1].held
    assert [each.as_of for each in puts] == sorted({each.as_of for each in puts})


def test_more_than_fit_one_claim_are_told_in_turn() -> None:
    book, builder = WholeFiles(GROUP, lambda _: True, tuple), TransitionBuilder()
    gone = [MessageId(f"{number:022}") for number in range(3 * MAX_WHOLE_FILES - 5)]
    assert book.hold([], gone, builder, NOW)
    claims = [book.beside(Claim()) for _ in range(3)]
    told = [each for claim in claims if claim is not None for each in claim.let_go_files]
    assert sorted(told) == gone
    saved = builder.writes[-1]
    assert isinstance(saved, SaveValue)
    again = WholeFiles(GROUP, lambda _: True, tuple, saved.value)
    assert not again.hold([], [], builder, NOW), "nothing is new"
    assert again.beside(Claim()) == claims[0]
