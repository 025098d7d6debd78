"""A dependency that nobody has is stated as lost, with what is known, and closes months later."""

from collections.abc import Sequence

from engine.core.content import Text
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.inputs import (
    DeadlineReached,
    RetrieveLostRequested,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.sds.vocabulary import AskStore
from engine.session.inputs import RetrieveKeptBack
from engine.session.transitions import GapNoted
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant
from tests.session.test_group_session import NOW, give, pair, settle, texts

DAY_MS = 24 * 3_600_000


def a_day_later_without_it() -> tuple[
    SessionParticipant, SessionParticipant, Sequence[Outgoing], int
]:
    alice, bob = pair()
    settle(alice, bob, NOW, 60)
    at_ms = NOW + 60_000
    lost = alice.say(Text(text="lost"), now_ms=UnixMs(at_ms))
    give(bob, alice.say(Text(text="heard"), now_ms=UnixMs(at_ms + 1)), at_ms + 1)
    missing = alice.session.channel.snapshot().log[-2].position.message_id
    later_ms = at_ms + DAY_MS + 10_000
    lacks = StoresMissing(message_ids=(missing,))
    bob.session.handle(StoreChanged(reachable=True), now_ms=UnixMs(at_ms + 10_000))
    bob.session.handle(lacks, now_ms=UnixMs(at_ms + 20_000))
    gap = bob.session.gap()
    assert gap is not None
    assert (gap.missing, gap.lost) == (1, ()), "it may still come: nobody gives it up so soon"
    search(bob, lacks, later_ms)
    return alice, bob, lost, later_ms


def search(bob: SessionParticipant, lacks: StoresMissing, now_ms: int) -> None:
    """No Store has it, neither by its hint nor by its time."""
    told = bob.session.handle(lacks, now_ms=UnixMs(now_ms))
    due = bob.session.handle(DeadlineReached(), now_ms=UnixMs(now_ms))
    bob.store.apply([*told.writes, *due.writes])
    for ask in [*told.sends, *due.sends]:
        for window in ask.windows if isinstance(ask, AskStore) else ():
            answer = WindowAnswered(window=window)
            bob.store.apply(bob.session.handle(answer, now_ms=UnixMs(now_ms)).writes)


def test_what_is_known_of_it_is_told() -> None:
    alice, bob, _, _ = a_day_later_without_it()
    gap = bob.session.gap()
    assert gap is not None
    assert (gap.missing, gap.waiting, gap.lost_total) == (0, 0, 1)
    (lost,) = gap.lost
    assert lost.sender_id in {None, alice.participant_id}
    assert lost.before is not None
    heard = bob.session.channel.snapshot().log[-1].position
    assert lost.before == heard


def test_it_closes_months_later() -> None:
    _, bob, said, later_ms = a_day_later_without_it()
    give(bob, said, later_ms + 90 * DAY_MS)
    assert bob.session.gap() is None
    assert texts(bob)[-2:] == ["lost", "heard"]


def lost_id(bob: SessionParticipant) -> MessageId:
    gap = bob.session.gap()
    assert gap is not None
    (lost,) = gap.lost
    assert lost.message_id is not None
    return lost.message_id


def test_who_gave_no_answer_is_told_and_when_it_was_asked_for_again() -> None:
    _, bob, _, later_ms = a_day_later_without_it()
    again_ms, missing = UnixMs(later_ms + 1_000), lost_id(bob)
    told = bob.session.handle(RetrieveLostRequested(message_ids=(missing,)), now_ms=again_ms)
    assert GapNoted() in told.notes
    silent = StoresMissing(message_ids=(missing,), lacked=1, silent=("/dns4/silent/tcp/1",))
    answered = bob.session.handle(silent, now_ms=UnixMs(again_ms + 10_000))
    assert GapNoted() in answered.notes
    gap = bob.session.gap()
    assert gap is not None
    (lost,) = gap.lost
    assert (lost.asked_again_ms, lost.stores_ms) == (again_ms, again_ms + 10_000)
    assert (lost.lacked_by, lost.silent_stores) == (1, ("/dns4/silent/tcp/1",))


def test_what_comes_because_somebody_tried_again_takes_its_place() -> None:
    _, bob, said, later_ms = a_day_later_without_it()
    bob.session.handle(
        RetrieveLostRequested(message_ids=(lost_id(bob),)), now_ms=UnixMs(later_ms + 1_000)
    )
    give(bob, said, later_ms + 2_000)
    assert bob.session.gap() is None
    assert texts(bob)[-2:] == ["lost", "heard"]


def test_what_is_only_older_than_all_one_wants_to_see_is_no_loss_until_more_is_wanted() -> None:
    """A Store has it: it would be wrong to say that nobody does."""
    _, bob, _, later_ms = a_day_later_without_it()
    missing = lost_id(bob)
    kept_back = StoresMissing(message_ids=(missing,), lacked=0, kept_back=True)
    bob.store.apply(bob.session.handle(kept_back, now_ms=UnixMs(later_ms + 1)).writes)
    assert bob.session.gap() is None
    bob.restart(now_ms=UnixMs(later_ms + 2))
    assert bob.session.gap() is None
    assert not bob.session.channel.wants(missing)
    bob.session.handle(RetrieveKeptBack(), now_ms=UnixMs(later_ms + 3))
    assert bob.session.channel.wants(missing)
    bob.session.handle(StoresMissing(message_ids=(missing,)), now_ms=UnixMs(later_ms + 4))
    assert lost_id(bob) == missing, "now no Store has it"
