"""Which daily backups stay: by the order of making, whatever the clock said."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.core.rolling_backups import Kept, RollingBackup, is_due, to_let_go

FIRST = date(2026, 1, 1)


def made_on(*days: date) -> list[RollingBackup]:
    return [
        RollingBackup(
            path=f"/b/{number}",
            mark=f"{number}",
            day=day.isoformat(),
            week="{}-W{:02}".format(*day.isocalendar()[:2]),
        )
        for number, day in enumerate(days)
    ]


def staying(made: list[RollingBackup], kept: Kept) -> list[RollingBackup]:
    going = to_let_go(made, kept)
    return [each for each in made if each not in going]


def test_of_two_months_seven_days_and_four_weeks_stay() -> None:
    made: list[RollingBackup] = []
    for backup in made_on(*(FIRST + timedelta(days=n) for n in range(60))):
        made = staying([*made, backup], Kept())
    newest = FIRST + timedelta(days=59)
    days = {each.day for each in made}
    assert {(newest - timedelta(days=n)).isoformat() for n in range(7)} <= days
    assert len({each.week for each in made}) == 4
    assert len(made) == 10  # All seven days are of one week.


def test_one_a_day_also_if_the_clock_goes_back() -> None:
    made = made_on(FIRST + timedelta(days=3))
    assert is_due([], FIRST.isoformat())
    assert not is_due(made, (FIRST + timedelta(days=3)).isoformat())
    assert is_due(made, FIRST.isoformat())
    assert is_due(made, (FIRST + timedelta(days=4)).isoformat())


def test_a_year_ahead_for_a_day_costs_nothing_and_goes_in_its_turn() -> None:
    wrong = FIRST + timedelta(days=365)
    right = [FIRST + timedelta(days=n) for n in range(6)]
    made = made_on(*right, wrong)
    assert staying(made, Kept()) == made
    later = made_on(*right, wrong, *(FIRST + timedelta(days=n) for n in range(6, 60)))
    assert wrong.isoformat() not in {each.day for each in staying(later, Kept())}


@given(
    st.lists(st.dates(date(2026, 1, 1), date(2026, 12, 31)), max_size=80),
    st.integers(1, 60),
    st.integers(0, 52),
)
def test_the_newest_stays_and_never_more_than_was_asked_for(
    days: list[date], daily: int, weekly: int
) -> None:
    made = made_on(*days)
    kept = staying(made, Kept(daily=daily, weekly=weekly))
    assert len(kept) <= daily + weekly
    assert kept[-1:] == made[-1:]
    assert staying(kept, Kept(daily=daily, weekly=weekly)) == kept
