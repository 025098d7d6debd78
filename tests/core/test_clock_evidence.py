"""Whether our clock is wrong: what a majority says stands, and what liars say does not."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.core.clock_evidence import (
    CLEAR_MS,
    KNOWN_LONG_MS,
    MAX_PEOPLE,
    MEMORY_MS,
    NOTICE_MS,
    ClockEvidence,
    Echo,
)
from engine.core.ids import ParticipantId, UnixMs

NOW = UnixMs(1_795_000_000_000)
YEAR_MS = 365 * 24 * 3_600_000
OFFSETS = st.integers(-YEAR_MS, YEAR_MS)
SMALL = st.integers(1 - NOTICE_MS, NOTICE_MS - 1)


def who(number: int) -> ParticipantId:
    return ParticipantId(f"{number:032x}")


def heard(known: Sequence[int], strangers: Sequence[int] = ()) -> ClockEvidence:
    """Offsets said by people known for a day, then by others."""
    evidence = ClockEvidence()
    for number, offset_ms in enumerate(known):
        echo = Echo(participant_id=who(number), offset_ms=offset_ms)
        evidence.hear(echo, known_for_ms=KNOWN_LONG_MS, now_ms=NOW)
    for number, offset_ms in enumerate(strangers, start=1_000_000):
        echo = Echo(participant_id=who(number), offset_ms=offset_ms)
        evidence.hear(echo, known_for_ms=KNOWN_LONG_MS - 1, now_ms=NOW)
    return evidence


@st.composite
def minority_of_liars(draw: st.DrawFn, honest: st.SearchStrategy[int]) -> tuple[list[int], ...]:
    truths = draw(st.lists(honest, min_size=1, max_size=12))
    lies = draw(st.lists(OFFSETS, max_size=len(truths) - 1))
    return truths, lies, draw(st.permutations(truths + lies))


@given(minority_of_liars(SMALL), st.lists(OFFSETS, max_size=300))
def test_liars_in_the_minority_and_any_number_of_strangers_produce_no_verdict(
    people: tuple[list[int], ...], strangers: list[int]
) -> None:
    *_, said = people
    assert heard(said, strangers).verdict(NOW) is None


@given(minority_of_liars(OFFSETS))
def test_a_verdict_never_goes_beyond_what_the_honest_say(people: tuple[list[int], ...]) -> None:
    truths, _lies, said = people
    verdict = heard(said).verdict(NOW)
    if verdict is not None:
        assert min(truths) <= verdict.offset_ms <= max(truths)
        assert verdict.heard == len(said)
        assert 2 * len(verdict.by) > len(said)


@given(minority_of_liars(st.integers(NOTICE_MS, YEAR_MS)), st.sampled_from([1, -1]))
def test_what_the_honest_majority_agrees_on_is_always_told(
    people: tuple[list[int], ...], sign: int
) -> None:
    truths, _lies, said = people
    verdict = heard([sign * one for one in said]).verdict(NOW)
    assert verdict is not None
    assert min(truths) <= sign * verdict.offset_ms <= max(truths)


def test_two_liars_do_not_stretch_what_an_honest_clock_is_off_by() -> None:
    """They are the majority of those who find it wrong, not of those who were heard."""
    verdict = heard([0, 0, 20_000, YEAR_MS, YEAR_MS]).verdict(NOW)
    assert verdict is not None
    assert verdict.offset_ms == 20_000


def test_half_is_no_majority() -> None:
    assert heard([0, YEAR_MS]).verdict(NOW) is None
    assert heard([-YEAR_MS, YEAR_MS]).verdict(NOW) is None


def test_where_nobody_is_known_for_a_day_one_word_is_shown_as_that() -> None:
    verdict = heard([], [60_000, 0, -70_000]).verdict(NOW)
    assert verdict is not None
    assert verdict.offset_ms == -70_000
    assert verdict.by == (who(1_000_002),)
    assert not verdict.known_long


def test_somebody_known_for_a_day_outweighs_every_stranger() -> None:
    assert heard([0], [YEAR_MS] * 10 * MAX_PEOPLE).verdict(NOW) is None


def test_a_flood_of_strangers_pushes_nobody_out_who_is_known() -> None:
    evidence = heard([20_000] * 5, [-YEAR_MS] * 10 * MAX_PEOPLE)
    verdict = evidence.verdict(NOW)
    assert verdict is not None
    assert verdict.heard == 5


def test_what_was_told_stands_until_it_is_clearly_over() -> None:
    evidence = heard([NOTICE_MS - 1])
    assert evidence.verdict(NOW) is None
    assert evidence.verdict(NOW, least_ms=CLEAR_MS) is not None


def test_an_echo_is_forgotten_after_an_hour_and_when_the_clock_was_set() -> None:
    evidence = heard([YEAR_MS])
    assert evidence.verdict(UnixMs(NOW + MEMORY_MS)) is not None
    assert evidence.verdict(UnixMs(NOW + MEMORY_MS + 1)) is None
    evidence.forget()
    assert evidence.verdict(NOW) is None


def test_only_the_newest_word_of_each_counts() -> None:
    evidence = heard([YEAR_MS])
    evidence.hear(Echo(participant_id=who(0), offset_ms=0), known_for_ms=KNOWN_LONG_MS, now_ms=NOW)
    assert evidence.verdict(NOW) is None
