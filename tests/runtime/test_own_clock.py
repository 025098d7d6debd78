"""Our clock and steady time: what moves which, and when what a person set is dropped."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError
from engine.core.ids import UnixMs
from engine.runtime.own_clock import (
    JUMP_MS,
    TOLD_FROM_MS,
    OwnClock,
    StoredOffset,
    boot_time_ms,
    read_offset,
    saved,
)

START = 1_795_000_000_000
HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS


class Machine:
    """A system's time that can be set, and a counter that cannot."""

    def __init__(self) -> None:
        self.system_ms, self.counted_ms = START, 77
        self.clock = OwnClock(lambda: UnixMs(self.system_ms), lambda: self.counted_ms)

    def pass_by(self, elapsed_ms: int) -> None:
        self.system_ms += elapsed_ms
        self.counted_ms += elapsed_ms


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS])
def test_setting_the_systems_time_moves_our_clock_and_no_timer(jump_ms: int) -> None:
    machine = Machine()
    machine.pass_by(1_000)
    machine.system_ms += jump_ms
    assert machine.clock.steady_ms() == START + 1_000
    assert machine.clock.clock_ms() == START + 1_000 + jump_ms
    assert machine.clock.offset_ms() == jump_ms


@given(st.lists(st.tuples(st.integers(0, HOUR_MS), st.integers(-YEAR_MS, YEAR_MS)), max_size=30))
def test_steady_time_only_ever_goes_on(moves: list[tuple[int, int]]) -> None:
    machine = Machine()
    before = machine.clock.steady_ms()
    for elapsed_ms, jump_ms in moves:
        machine.pass_by(elapsed_ms)
        machine.system_ms = max(machine.system_ms + jump_ms, 0)
        now = machine.clock.steady_ms()
        assert now - before == elapsed_ms
        assert abs(now + machine.clock.offset_ms() - machine.clock.clock_ms()) < TOLD_FROM_MS
        before = now


def test_what_a_person_set_is_added_and_can_be_taken_back() -> None:
    machine = Machine()
    machine.clock.set_offset(-HOUR_MS)
    assert machine.clock.clock_ms() == START - HOUR_MS
    assert machine.clock.offset_ms() == -HOUR_MS
    assert machine.clock.steady_ms() == START
    machine.clock.set_offset(None)
    assert machine.clock.clock_ms() == START
    assert machine.clock.offset_ms() == 0


def test_a_jump_drops_what_was_set_and_says_so_once() -> None:
    machine = Machine()
    stored = machine.clock.set_offset(HOUR_MS)
    machine.pass_by(60_000)
    machine.system_ms += HOUR_MS
    assert machine.clock.clock_ms() == START + 60_000 + HOUR_MS, "not two hours"
    assert machine.clock.stored is None
    assert machine.clock.take_dropped() == stored
    assert machine.clock.take_dropped() is None


def test_sleep_and_what_keeps_a_clock_right_are_no_jumps() -> None:
    machine = Machine()
    machine.clock.set_offset(HOUR_MS)
    machine.pass_by(8 * HOUR_MS)
    for _ in range(100):
        machine.system_ms += JUMP_MS // 2
        machine.clock.clock_ms()
    assert machine.clock.stored is not None
    assert machine.clock.offset_ms() == HOUR_MS + 50 * JUMP_MS


def test_less_than_a_second_is_no_news() -> None:
    machine = Machine()
    machine.system_ms += TOLD_FROM_MS - 1
    assert machine.clock.offset_ms() == 0
    machine.system_ms += 1
    assert machine.clock.offset_ms() == TOLD_FROM_MS


def test_it_is_restored_unless_the_systems_time_is_earlier_than_when_it_was_set() -> None:
    machine = Machine()
    stored = machine.clock.set_offset(HOUR_MS)
    again = read_offset(saved(stored).value)
    assert again == stored
    later = Machine()
    assert later.clock.restore(again)
    assert later.clock.clock_ms() == START + HOUR_MS
    earlier = Machine()
    earlier.system_ms -= 1
    assert not earlier.clock.restore(again)
    assert earlier.clock.stored is None
    assert read_offset(saved(None).value) is None
    assert read_offset(None) is None


@pytest.mark.parametrize("offset_ms", [-START - 1, 101 * YEAR_MS, -101 * YEAR_MS])
def test_an_offset_that_leads_out_of_time_is_refused(offset_ms: int) -> None:
    machine = Machine()
    machine.clock.set_offset(HOUR_MS)
    with pytest.raises(ConfigError):
        machine.clock.set_offset(offset_ms)
    assert machine.clock.stored == StoredOffset(offset_ms=HOUR_MS, since_ms=UnixMs(START))


def test_the_real_counter_counts_and_agrees_with_the_monotonic_clock() -> None:
    first_ns, before, second_ns = time.monotonic_ns(), boot_time_ms(), time.monotonic_ns()
    while boot_time_ms() - before < 20:
        pass
    third_ns, after, fourth_ns = time.monotonic_ns(), boot_time_ms(), time.monotonic_ns()
    # However long the machine did something else between two of these.
    least_ms, most_ms = (third_ns - second_ns) / 1_000_000, (fourth_ns - first_ns) / 1_000_000
    assert least_ms - 1 <= after - before <= most_ms + 1
