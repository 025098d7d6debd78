"""Saying that one is there: not to all in one moment, not to nobody again and again."""

from collections import Counter
from itertools import count, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import UnixMs
from engine.session.pair.presence import (
    ANSWER_EVERY_MS,
    MAX_SPREAD_MS,
    MOST_DOUBLINGS,
    SAY_EVERY_MS,
    TOLD_AT_ONCE,
    PresenceBoard,
    spread_ms,
)

NOW = 1_800_000_000_000
HOUR_MS = 3_600_000


def said(
    board: PresenceBoard, until_ms: int, *, from_ms: int = NOW, awaits: bool = False
) -> list[tuple[int, bool]]:
    """When it says that we are there, and whether it wants an answer."""
    out: list[tuple[int, bool]] = []
    for _ in count():
        deadline_ms = board.next_deadline()
        if deadline_ms is None or deadline_ms > until_ms:
            return out
        now_ms = UnixMs(max(deadline_ms, from_ms))
        board.expire(now_ms)
        wanted = board.due(now_ms, awaits=awaits)
        if wanted is not None:
            out.append((now_ms - NOW, wanted))
    return out


def test_five_hundred_contacts_are_told_over_half_a_minute() -> None:
    random_unit = Random(7).random
    seconds: Counter[int] = Counter()
    for _ in range(500):
        board = PresenceBoard()
        board.begin(now_ms=UnixMs(NOW), delay_ms=int(spread_ms(500) * random_unit()))
        ((at_ms, _wanted),) = said(board, NOW + MAX_SPREAD_MS)
        seconds[at_ms // 1_000] += 1
    assert seconds.total() == 500
    assert max(seconds.values()) <= 40
    assert len(seconds) >= 20


@given(st.integers(0, 1_000_000))
def test_the_time_to_tell_all_grows_with_them_and_is_bounded(contacts: int) -> None:
    assert 0 <= spread_ms(contacts) <= spread_ms(contacts + 1) <= MAX_SPREAD_MS
    assert spread_ms(contacts) == 0 or contacts > TOLD_AT_ONCE


def test_who_answers_has_said_that_they_are_there() -> None:
    """Two who come at the same time say three things, not four: ask, answer, and no more."""
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW), delay_ms=5_000)
    board.heard(UnixMs(NOW + 1_000))
    assert board.may_answer(UnixMs(NOW + 1_000))
    first, *_ = said(board, NOW + 2 * SAY_EVERY_MS, from_ms=NOW + 1_000)
    assert first == (1_000 + SAY_EVERY_MS, False)
    assert not board.may_answer(UnixMs(NOW + 1_000 + ANSWER_EVERY_MS - 1))


def test_nobody_who_was_heard_is_asked_for_an_answer() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW), delay_ms=20_000)
    board.heard(UnixMs(NOW + 10_000))
    assert said(board, NOW + 20_000) == [(20_000, False)]


def test_who_says_nothing_is_told_less_and_less_often() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW))
    times = said(board, NOW + HOUR_MS)
    assert all(wanted for _, wanted in times)
    waits = [later - earlier for (earlier, _), (later, _) in pairwise(times)]
    assert waits[:3] == [SAY_EVERY_MS, 2 * SAY_EVERY_MS, 4 * SAY_EVERY_MS]
    assert set(waits[2:]) == {SAY_EVERY_MS << MOST_DOUBLINGS}


def test_whom_something_waits_for_is_asked_every_minute() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW))
    times = said(board, NOW + HOUR_MS, awaits=True)
    assert len(times) == HOUR_MS // SAY_EVERY_MS + 1


def test_who_comes_back_is_told_every_minute_again() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW))
    quiet = said(board, NOW + HOUR_MS)
    heard_ms = NOW + quiet[-1][0] + 1_000
    board.heard(UnixMs(heard_ms))
    assert board.may_answer(UnixMs(heard_ms))
    first, *_ = said(board, heard_ms + 2 * SAY_EVERY_MS, from_ms=heard_ms)
    assert first == (heard_ms - NOW + SAY_EVERY_MS, False)


def test_who_asks_by_hand_is_answered_whatever_was_heard() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW))
    said(board, NOW)
    board.heard(UnixMs(NOW + 1_000))
    board.ask_again(now_ms=UnixMs(NOW + 2_000))
    assert board.may_answer(UnixMs(NOW + 1_500))
    assert said(board, NOW + 2_000) == [(2_000, True)]


def test_a_clock_set_back_keeps_nobody_silent() -> None:
    board = PresenceBoard()
    board.begin(now_ms=UnixMs(NOW))
    said(board, NOW)
    assert board.due(UnixMs(NOW - 24 * HOUR_MS), awaits=False) is not None


def test_nothing_is_said_while_it_is_not_wanted_and_soon_again_after() -> None:
    wanted = False
    board = PresenceBoard(announces=lambda: wanted)
    board.begin(now_ms=UnixMs(NOW))
    assert said(board, NOW + HOUR_MS) == []
    assert not board.may_answer(UnixMs(NOW + HOUR_MS))
    wanted = True
    assert board.may_answer(UnixMs(NOW + HOUR_MS))
    longest = SAY_EVERY_MS << MOST_DOUBLINGS
    assert len(said(board, NOW + HOUR_MS + longest, from_ms=NOW + HOUR_MS)) == 1
