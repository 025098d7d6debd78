"""The fault bench's decisions: nothing is invented, everything is accounted for, all is bounded."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError
from engine.core.fault_bench import (
    Course,
    Fate,
    FaultLink,
    FaultRule,
    Offered,
    Phase,
    Preset,
    WaitingRoom,
    phases_of,
)
from engine.core.faults import MAX_DELAY_MS, FaultSpec

PAUSED = FaultRule(paused=True)
SHARES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
RULES = st.builds(
    FaultRule,
    spec=st.builds(
        FaultSpec,
        loss=SHARES,
        dup=SHARES,
        reorder=SHARES,
        delay_ms=st.tuples(st.integers(0, 500), st.integers(500, MAX_DELAY_MS)),
        seed=st.integers(0, 1_000),
    ),
    bytes_per_s=st.sampled_from([0, 100, 5_000, 1_000_000]),
    paused=st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(0, 3_000)),
        st.tuples(st.just("wait"), st.integers(0, 70_000)),
        st.tuples(st.just("change"), RULES),
    ),
    max_size=60,
)
TIGHT = 12_000


def link_of(rule: FaultRule, room: WaitingRoom | None = None) -> FaultLink[int]:
    return FaultLink(rule, "link", room or WaitingRoom())


@given(rule=RULES, steps=STEPS)
def test_what_comes_out_went_in_and_the_rest_is_accounted_for(
    rule: FaultRule, steps: list[tuple[str, object]]
) -> None:
    room = WaitingRoom(max_bytes=TIGHT, max_copies=20)
    link, now_ms, came = link_of(rule, room), 0, Counter[int]()
    fates: dict[int, Offered] = {}
    offered_ms: dict[int, int] = {}
    for number, (what, value) in enumerate(steps):
        if isinstance(value, FaultRule):
            link.change(value, now_ms)
        elif isinstance(value, int) and what == "offer":
            fates[number] = link.offer(number, value, now_ms=now_ms)
            offered_ms[number] = now_ms
            came[number] += fates[number].now
        elif isinstance(value, int):
            now_ms += value
            came.update(link.due(now_ms))
        assert 0 <= room.waiting_bytes <= TIGHT
        assert 0 <= room.copies <= 20
        due_ms = link.next_due_ms()
        assert due_ms is None or due_ms <= now_ms + 5 * MAX_DELAY_MS
    came.update(link.drain())
    assert room.waiting_bytes == room.copies == 0
    assert set(came) <= set(fates)
    for number, offered in fates.items():
        most = 2 if Fate.DOUBLED in offered.fates else 1
        assert came[number] <= most
        if came[number] < most:
            assert {Fate.LOST, Fate.OVERFLOWED} & set(offered.fates)
        if not offered.fates:
            assert offered.now == 1


@given(rule=RULES, sizes=st.lists(st.integers(0, 2_000), max_size=30))
def test_the_same_seed_decides_the_same(rule: FaultRule, sizes: list[int]) -> None:
    first, again = link_of(rule), link_of(rule)
    for number, size in enumerate(sizes):
        at_ms = number * 700
        assert first.offer(number, size, now_ms=at_ms) == again.offer(number, size, now_ms=at_ms)
        assert first.due(at_ms) == again.due(at_ms)


def test_no_loss_loses_nothing_and_all_of_it_everything() -> None:
    whole, none = link_of(FaultRule()), link_of(FaultRule(spec=FaultSpec(loss=1.0)))
    for number in range(200):
        assert whole.offer(number, 9, now_ms=0) == Offered(1)
        assert none.offer(number, 9, now_ms=0) == Offered(0, (Fate.LOST,))


def test_loss_takes_about_its_share() -> None:
    link = link_of(FaultRule(spec=FaultSpec(loss=0.3, seed=4)))
    lost = sum(not link.offer(n, 1, now_ms=0).now for n in range(2_000))
    assert 540 < lost < 660


def test_nothing_comes_before_its_time() -> None:
    link = link_of(FaultRule(spec=FaultSpec(delay_ms=(400, 400))))
    assert link.offer(1, 5, now_ms=1_000) == Offered(0, (Fate.DELAYED,), 400)
    assert link.next_due_ms() == 1_400
    assert link.due(1_399) == []
    assert link.due(1_400) == [1]


def test_a_narrow_line_takes_one_after_the_other_and_refuses_what_would_take_a_minute() -> None:
    link = link_of(FaultRule(bytes_per_s=1_000))
    link.offer(1, 500, now_ms=0)
    link.offer(2, 500, now_ms=0)
    assert link.due(500) == [1]
    assert link.due(999) == []
    assert link.due(1_000) == [2]
    assert link.offer(3, 61_000, now_ms=1_000) == Offered(0, (Fate.OVERFLOWED,))
    assert link.offer(4, 1_000, now_ms=1_000).fates == (Fate.DELAYED,)


def test_a_pause_holds_in_order_and_its_end_lets_go() -> None:
    link = link_of(PAUSED)
    for number in range(5):
        assert link.offer(number, 10, now_ms=0) == Offered(0, (Fate.HELD,))
    assert link.due(MAX_DELAY_MS * 9) == []
    link.change(FaultRule(), 77)
    assert link.next_due_ms() == 77
    assert link.due(77) == [0, 1, 2, 3, 4]


def test_a_full_room_is_shared_and_what_finds_none_is_named() -> None:
    room = WaitingRoom(max_bytes=100)
    first, second = link_of(PAUSED, room), link_of(PAUSED, room)
    assert first.offer(1, 60, now_ms=0).fates == (Fate.HELD,)
    assert second.offer(2, 60, now_ms=0).fates == (Fate.OVERFLOWED,)
    assert first.drain() == [1]
    assert second.offer(3, 60, now_ms=0).fates == (Fate.HELD,)


@pytest.mark.parametrize("preset", Preset)
def test_presets_end_by_themselves(preset: Preset) -> None:
    course = Course(phases_of(preset, seed=3), began_ms=1_000)
    end_ms = course.ends_ms
    assert end_ms is not None
    assert course.rule(1_000) is not None
    assert course.rule(end_ms - 1) is not None
    assert course.rule(end_ms) is None
    assert course.next_change_ms(end_ms) is None


def test_the_partition_is_whole_and_lasts_30_seconds() -> None:
    (phase,) = phases_of(Preset.PARTITION, seed=0)
    assert phase.rule.cuts_off
    assert phase.for_ms == 30_000
    by_hand = Course((Phase(rule=PAUSED),), began_ms=0)
    assert by_hand.ends_ms is None
    assert by_hand.rule(10**12) == PAUSED


@pytest.mark.parametrize("bytes_per_s", [-1, 1, 99, 1_000_000_001])
def test_limits_are_kept(bytes_per_s: int) -> None:
    with pytest.raises(ConfigError):
        FaultRule(bytes_per_s=bytes_per_s)


@pytest.mark.parametrize("cut_off", [PAUSED, FaultRule(spec=FaultSpec(loss=1.0))])
def test_what_was_on_its_way_waits_too_while_nothing_comes_through(cut_off: FaultRule) -> None:
    late = FaultRule(spec=FaultSpec(delay_ms=(500, 500)))
    link = link_of(late)
    link.offer(1, 10, now_ms=0)
    link.change(cut_off, 100)
    link.offer(2, 10, now_ms=200)
    assert link.due(10_000) == []
    assert link.next_due_ms() is None
    link.change(late, 10_000)
    assert link.due(10_000) == ([1, 2] if cut_off.paused else [1])
