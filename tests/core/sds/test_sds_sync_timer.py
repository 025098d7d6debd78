"""The timer of sync messages by itself: when rounds slow down, and when they are frequent again."""

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.sync import SyncTimer
from tests.core.sds.sds_bench import NOW, after

CONFIG = SdsConfig()
SLOWEST = CONFIG.sync_slowdown_max


def always_longest() -> float:
    return 1.0


def rounds(timer: SyncTimer, number: int) -> list[float]:
    """How long the timer waits after each of so many rounds for a silent member, in intervals."""
    waits = []
    for _ in range(number):
        timer.stated(NOW, for_silent_member=True)
        assert timer.at_ms is not None
        waits.append((timer.at_ms - NOW) / CONFIG.sync_interval_ms)
    return waits


def test_three_rounds_are_patient_and_each_after_them_waits_twice_as_long() -> None:
    timer = SyncTimer(CONFIG, always_longest)
    own = CONFIG.sync_multiplier_own_sync
    slower = [own * min(2**each, SLOWEST) for each in range(1, 7)]
    assert rounds(timer, 9) == [own] * CONFIG.sync_patient_rounds + slower
    timer.progressed()
    assert rounds(timer, 4) == [own] * CONFIG.sync_patient_rounds + slower[:1]
    timer.woke()
    assert rounds(timer, 4) == [own] * CONFIG.sync_patient_rounds + slower[:1]
    timer.delivered(MessageId("x"), NOW, small_group=False)
    assert rounds(timer, 4) == [own] * CONFIG.sync_patient_rounds + slower[:1]


def test_who_repeats_itself_is_answered_after_waits_that_double_up_to_an_hour() -> None:
    timer = SyncTimer(CONFIG, always_longest)
    first = CONFIG.answer_sync_after_ms
    waits = []
    for _ in range(15):
        timer.stated(NOW, for_silent_member=False)
        wait_ms = next(
            wait_ms for wait_ms in (first << n for n in range(20)) if is_answered(timer, wait_ms)
        )
        waits.append(wait_ms)
    patient = CONFIG.sync_patient_rounds
    longest = CONFIG.answer_sync_longest_ms
    assert waits[: patient + 3] == [first] * patient + [2 * first, 4 * first, 8 * first]
    assert waits[-1] >= longest > first << 6
    timer.stated(NOW, for_silent_member=False)
    assert is_answered(timer, longest)
    assert not is_answered(timer, longest - 1)


def is_answered(timer: SyncTimer, after_ms: int) -> bool:
    return timer.asked(UnixMs(NOW + after_ms))


def test_a_clock_set_back_makes_no_round_wait_longer_than_an_interval() -> None:
    timer = SyncTimer(CONFIG, always_longest)
    rounds(timer, 9)
    back = after(-3_600_000)
    timer.bring_forward(back)
    assert timer.at_ms == back + CONFIG.sync_interval_ms
    assert timer.asked(UnixMs(back + CONFIG.answer_sync_longest_ms))


def test_who_heard_the_same_said_waits_again_unless_there_is_something_to_say() -> None:
    quiet, busy, asking = (SyncTimer(CONFIG, always_longest) for _ in range(3))
    quiet.arm(1.0, NOW)
    busy.delivered(MessageId("x"), NOW, small_group=False)
    asking.arm(1.0, NOW)
    asking.for_repairs = True
    before = [timer.at_ms for timer in (quiet, busy, asking)]
    for timer in (quiet, busy, asking):
        timer.heard_level_sync(after(1_000))
    again = after(1_000 + CONFIG.sync_interval_ms)
    assert [quiet.at_ms, busy.at_ms, asking.at_ms] == [again, *before[1:]]
    stopped = SyncTimer(CONFIG, always_longest)
    stopped.heard_level_sync(NOW)
    assert stopped.at_ms is None
