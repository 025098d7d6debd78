"""Whether the own clock is right: many voices, none of which is believed by itself."""

import pytest

from engine.core.history.types import StoreRef
from engine.core.types import PubsubTopic, UnixMs
from engine.core.waku_store import HistoryIndex
from engine.events import EngineEvent, NoticeCleared, NoticeRaised
from engine.runtime.history.clock_check import (
    APART_MS,
    KEY,
    LEAST_SAMPLES,
    MEMORY_MS,
    SAMPLES,
    WARN_MS,
    ClockCheck,
)

NS = 1_000_000
NOW = 1_760_000_000_000


class Desk:
    """A device whose clock can be set, in a network whose clocks are right."""

    def __init__(self, own_ahead_ms: int = 0) -> None:
        self.true_ms = NOW
        self.own_ahead_ms = own_ahead_ms
        self.told: list[EngineEvent] = []
        self.check = ClockCheck(self.now_ms, self.told.append)

    def now_ms(self) -> UnixMs:
        return UnixMs(self.true_ms + self.own_ahead_ms)

    def hear(self, count: int, *, wrong_by_ms: int = 0, apart_ms: int = APART_MS) -> None:
        for _ in range(count):
            self.true_ms += apart_ms
            self.check.hear((self.true_ms + wrong_by_ms) * NS)

    def words(self) -> str:
        (notice,) = self.told
        assert isinstance(notice, NoticeRaised)
        assert notice.key == KEY
        return notice.text


@pytest.mark.parametrize(
    ("ahead_ms", "where"), [(WARN_MS + 1_000, "ahead of"), (-WARN_MS - 1_000, "behind")]
)
def test_a_clock_that_is_off_is_told_once(ahead_ms: int, where: str) -> None:
    desk = Desk(ahead_ms)
    desk.hear(LEAST_SAMPLES - 1)
    assert desk.told == []
    desk.hear(SAMPLES)
    assert f"16 s {where} the network's" in desk.words()


@pytest.mark.parametrize(
    ("off_ms", "said"),
    [
        (15_400, "15 s"),
        (20_000, "20 s"),
        (119_000, "119 s"),
        (120_000, "2 min"),
        (7_200_000, "2 h"),
    ],
)
def test_seconds_are_said_where_a_minute_would_be_too_coarse(off_ms: int, said: str) -> None:
    desk = Desk(off_ms)
    desk.hear(SAMPLES)
    assert f"The clock of this device is {said} ahead of" in desk.words()


def test_a_clock_that_is_nearly_right_is_not_worth_a_word() -> None:
    for ahead_ms in (0, WARN_MS - 1, -WARN_MS + 1):
        desk = Desk(ahead_ms)
        desk.hear(SAMPLES)
        assert desk.told == []


def test_a_clock_that_is_set_right_clears_the_notice_without_a_restart() -> None:
    desk = Desk(60_000)
    desk.hear(SAMPLES)
    desk.own_ahead_ms = 0
    desk.hear(SAMPLES)
    assert desk.told[1:] == [NoticeCleared(key=KEY)]


def test_a_minority_of_wrong_clocks_moves_nobody() -> None:
    desk = Desk()
    for _ in range(20):
        desk.hear(3)
        desk.hear(2, wrong_by_ms=86_400_000)
    assert desk.told == []


def test_a_burst_of_one_sender_is_one_opinion() -> None:
    desk = Desk()
    desk.hear(1_000, wrong_by_ms=3_600_000, apart_ms=1)
    assert desk.told == []


def test_what_was_heard_long_ago_does_not_count() -> None:
    desk = Desk()
    desk.hear(LEAST_SAMPLES - 1, wrong_by_ms=60_000)
    desk.true_ms += MEMORY_MS
    desk.hear(1, wrong_by_ms=60_000)
    assert desk.told == []


def test_a_message_without_time_says_nothing() -> None:
    desk = Desk(60_000)
    for timestamp_ns in (None, 0):
        for _ in range(SAMPLES):
            desk.true_ms += APART_MS
            desk.check.hear(timestamp_ns)
    assert desk.told == []


# --- Stores ---------------------------------------------------------------------------------------


def index_of(sent_ns: int, taken_in_ms: int) -> HistoryIndex:
    return HistoryIndex(
        digest=bytes(32),
        receiver_time_ns=taken_in_ms * NS,
        sender_time_ns=sent_ns,
        pubsub_topic=PubsubTopic(""),
    )


def say_when(desk: Desk, store: str, *, store_ahead_ms: int = 0) -> None:
    """A message is heard, whose sender's clock is years off, and the Store says when it had it."""
    desk.true_ms += APART_MS
    sent_ns = (desk.true_ms - 400 * 86_400_000) * NS
    desk.check.hear(sent_ns)
    desk.check.hear_store(StoreRef(store), index_of(sent_ns, desk.true_ms + store_ahead_ms))


def test_two_stores_tell_a_wrong_clock_whatever_the_senders_clocks_are() -> None:
    desk = Desk(20_000)
    desk.check.hear((desk.true_ms + 1) * NS)
    for store in ("one", "two", "three"):
        assert desk.told == [] or store == "three"
        say_when(desk, store)
    assert "20 s ahead of" in desk.words()


def test_one_store_decides_nothing_however_often_it_says_so() -> None:
    desk = Desk()
    for _ in range(LEAST_SAMPLES - 1):
        say_when(desk, "liar", store_ahead_ms=3_600_000)
    assert desk.told == []


def test_a_time_of_a_message_that_nobody_heard_says_nothing() -> None:
    desk = Desk(60_000)
    for store in ("one", "two", "three"):
        sent_ns = (desk.true_ms + 5) * NS
        desk.check.hear_store(StoreRef(store), index_of(sent_ns, desk.true_ms))
        desk.check.hear_store(StoreRef(store), index_of(sent_ns, 0))
    assert desk.told == []
