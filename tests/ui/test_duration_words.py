"""One number and one unit, whatever the length."""

import pytest

from ui.times import duration_words

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("length_ms", "words"),
    [
        (-5, "1 min"),
        (0, "1 min"),
        (10 * MINUTE + 59_999, "10 min"),
        (2 * HOUR - 1, "119 min"),
        (2 * HOUR, "2 h"),
        (48 * HOUR - 1, "47 h"),
        (2 * DAY, "2 days"),
        (730 * DAY - 1, "729 days"),
        (730 * DAY, "2 years"),
        (2**53, "285616 years"),
    ],
)
def test_a_length_is_said_in_the_largest_unit_that_keeps_a_number_to_it(
    length_ms: int, words: str
) -> None:
    assert duration_words(length_ms) == words
