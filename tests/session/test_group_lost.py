"""A dependency that nobody has is stated as lost, with what is known, and closes months later."""

from collections.abc import Sequence

from engine.core.content import Text
from engine.core.types import UnixMs
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
    bob.session.stores_lack([missing], now_ms=UnixMs(at_ms + 20_000))
    gap = bob.session.gap()
    assert gap is not None
    assert (gap.missing, gap.lost) == (1, ()), "it may still come: nobody gives it up so soon"
    given_up = bob.session.stores_lack([missing], now_ms=UnixMs(later_ms))
    bob.store.apply(given_up.writes)
    return alice, bob, lost, later_ms


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
