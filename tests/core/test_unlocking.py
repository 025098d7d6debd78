"""Wrong passphrases are slowed, more and more, and nobody is locked out for ever."""

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import UnixMs
from engine.core.unlocking import FREE_TRIES, LONGEST_WAIT_MS, Attempts, delay_ms

TIMES = st.integers(0, 1 << 50).map(UnixMs)


def test_the_first_ones_are_free_and_each_later_one_waits_longer() -> None:
    waits = [delay_ms(failures) for failures in range(12)]
    assert waits[:FREE_TRIES] == [0] * FREE_TRIES
    assert waits[FREE_TRIES:9] == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000]
    assert waits[9:] == [LONGEST_WAIT_MS] * 3


@given(st.integers(0, 1_000_000), TIMES, TIMES)
def test_the_wait_is_bounded_whatever_the_clock_says(
    failures: int, last_ms: UnixMs, now_ms: UnixMs
) -> None:
    attempts = Attempts(failures=failures, last_ms=last_ms)
    assert 0 <= attempts.wait_ms(now_ms) <= LONGEST_WAIT_MS
    seen = attempts.seen_at(now_ms)
    assert seen.wait_ms(UnixMs(now_ms + LONGEST_WAIT_MS)) == 0


def test_a_clock_that_was_set_back_gains_nothing() -> None:
    attempts = Attempts()
    for _ in range(5):
        attempts = attempts.failed(UnixMs(1_000_000))
    assert attempts.wait_ms(UnixMs(1_000_000)) == 8_000
    assert attempts.seen_at(UnixMs(5)).wait_ms(UnixMs(5)) == 8_000
    assert attempts.wait_ms(UnixMs(1_000_000 + 8_000)) == 0
