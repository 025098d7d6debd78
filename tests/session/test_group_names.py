"""Who calls themselves otherwise is called so by everybody in the end, in rows and in the list."""

import pytest

from engine.core.content import Leave, Profile, Text
from engine.core.ids import UnixMs
from engine.core.sds.inputs import DeadlineReached
from engine.session.group.people import RENAME_EVERY_MS
from engine.session.transitions import MembersNoted
from engine.sim.session_participant import SessionParticipant
from tests.session.test_group_session import NOW, conversation_of, give, names, pair, settle

MINUTE_MS = 60_000
YEAR_MS = 365 * 24 * 3_600_000


def call(someone: SessionParticipant, name: str) -> None:
    """As the profile sheet does; the group is told when it is due."""
    someone.rename(name)


def renamed_rows(someone: SessionParticipant) -> list[str]:
    page = someone.store.latest_page(conversation_of(someone), limit=100)
    return [m.record.text for m in page.messages if m.record.kind == "renamed"]


def together() -> tuple[SessionParticipant, SessionParticipant, int]:
    alice, bob = pair()
    give(alice, bob.say(Text(text="hello"), now_ms=NOW))
    return alice, bob, settle(alice, bob, NOW, 5)


def test_a_new_name_is_told_at_once_and_shown_with_the_old_one() -> None:
    alice, bob, now_ms = together()
    call(bob, "Robert")
    deadline = bob.next_deadline()
    assert deadline is not None
    assert deadline <= now_ms
    sent = bob.advance(now_ms=UnixMs(now_ms))
    assert names(bob) == {"Alice", "Robert"}
    give(alice, sent, now_ms)
    assert names(alice) == {"Alice", "Robert"}
    assert renamed_rows(alice) == renamed_rows(bob) == ["Bob\nRobert"]
    assert alice.session.members()[bob.participant_id].name == "Robert"


def test_the_members_are_told_as_changed() -> None:
    alice, bob, now_ms = together()
    call(bob, "Robert")
    bob_says = bob.session.handle(DeadlineReached(), now_ms=UnixMs(now_ms))
    assert MembersNoted() in bob_says.notes
    for sent in bob.perform(bob_says):
        alice.receive(sent.payload, now_ms=UnixMs(now_ms))
    alice.restart(now_ms=UnixMs(now_ms))
    assert alice.session.members()[bob.participant_id].name == "Robert"


def test_who_did_not_hear_it_learns_it_by_a_repair() -> None:
    alice, bob, now_ms = together()
    call(bob, "Robert")
    bob.advance(now_ms=UnixMs(now_ms))
    settle(alice, bob, now_ms, 120)
    assert names(alice) == {"Alice", "Robert"}


def test_what_a_crash_kept_from_being_told_is_told_after_a_start() -> None:
    alice, bob, now_ms = together()
    call(bob, "Robert")
    bob.restart(now_ms=UnixMs(now_ms))
    settle(alice, bob, now_ms, 10)
    assert names(alice) == {"Alice", "Robert"}


def test_many_names_in_a_minute_are_told_as_two() -> None:
    alice, bob, now_ms = together()
    for number in range(30):
        call(bob, f"Bob {number}")
        now_ms = settle(alice, bob, now_ms, 1)
    call(bob, "Bob")
    settle(alice, bob, now_ms, RENAME_EVERY_MS // 1_000 + 5)
    assert names(alice) == {"Alice", "Bob"}
    assert renamed_rows(alice) == ["Bob\nBob 0", "Bob 0\nBob"]


def test_a_name_taken_while_the_clock_was_a_year_ahead_does_not_last() -> None:
    alice, bob, now_ms = together()
    call(bob, "Robert")
    ahead = bob.advance(now_ms=UnixMs(now_ms + YEAR_MS))
    call(bob, "Rob")
    bob.restart(now_ms=UnixMs(now_ms))
    later = bob.advance(now_ms=UnixMs(now_ms + MINUTE_MS))
    give(alice, [*ahead, *later], now_ms + MINUTE_MS)
    settle(alice, bob, now_ms + MINUTE_MS, 60)
    assert names(bob) == {"Alice", "Rob"}
    assert bob.session.members()[bob.participant_id].named_ms > now_ms + YEAR_MS


def test_who_left_tells_nobody() -> None:
    alice, bob, now_ms = together()
    give(alice, bob.say(Leave(), now_ms=UnixMs(now_ms)), now_ms)
    call(bob, "Robert")
    now_ms = settle(alice, bob, now_ms + 1_000, 70)
    assert renamed_rows(alice) == []


@pytest.mark.parametrize("name", ["\u202eeve", "  Eve\n", "E" * 64])
def test_a_name_is_cleaned_as_every_other(name: str) -> None:
    alice, bob, now_ms = together()
    give(alice, bob.say(Profile(name=name), now_ms=UnixMs(now_ms)), now_ms)
    (shown,) = names(alice) - {"Alice"}
    assert shown in {"eve", "Eve", "E" * 64}
