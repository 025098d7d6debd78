"""Several Stores as one stream: its order, its bounds, and the slow."""

import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType

import pytest

from engine.core.history.config import HistoryConfig
from engine.core.history.merging import StoresQuery
from engine.core.history.queries import (
    Advanced,
    Answered,
    ByHash,
    End,
    Failed,
    FailureKind,
    Outcome,
    Refusal,
)
from engine.core.waku_store import StoreStatus
from tests.core.history.history_model import (
    NOW_NS,
    ONE,
    SECOND_NS,
    THREE,
    TWO,
    ModelStore,
    Request,
    Shuffled,
    Wrapped,
    hashes,
    history,
    stored,
    window_of,
    without_some,
)
from tests.core.history.history_world import World, ask_stores, run_query

CONFIG = HistoryConfig()


def times(world: World) -> list[int]:
    return [item.message.timestamp_ns or 0 for item in world.messages]


def is_ascending(values: list[int]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def slow(messages: ModelStore, rtt_ms: int) -> ModelStore:
    messages.rtt_ms = rtt_ms
    return messages


def test_the_union_of_stores_of_different_speed_comes_out_oldest_first() -> None:
    messages = history(2_000)
    stores = {
        ONE: slow(ModelStore(messages[::2]), 5),
        TWO: slow(ModelStore(messages[1::2]), 40),
        THREE: slow(ModelStore(messages[::3]), 17),
    }
    world = run_query(window_of(messages), stores)
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == len(messages)
    assert is_ascending(times(world))


def test_whoever_is_ahead_waits_and_the_buffer_stays_bounded() -> None:
    messages = history(5_000)
    world = ask_stores(
        window_of(messages),
        {ONE: ModelStore(messages), TWO: slow(ModelStore(without_some(messages)), 300)},
    )
    most = 0
    query = world.machine
    assert isinstance(query, StoresQuery)
    while world.step():
        most = max(most, query.waiting)
    assert 0 < most <= CONFIG.buffer_messages + 2 * CONFIG.page_messages
    assert hashes(world.messages) == hashes(messages)


def test_large_messages_fill_the_buffer_by_their_bytes() -> None:
    messages = [stored(n, NOW_NS - (60 - n) * SECOND_NS, size=1_000) for n in range(60)]
    config = HistoryConfig(buffer_bytes=20_000, page_messages=10)
    world = ask_stores(
        window_of(messages),
        {ONE: ModelStore(messages), TWO: slow(ModelStore(messages), 500)},
        config=config,
    )
    query = world.machine
    assert isinstance(query, StoresQuery)
    most = 0
    while world.step():
        most = max(most, query.waiting)
    assert 20 <= most < 20 + config.page_messages
    assert len(world.messages) == 60


def test_a_slow_store_does_not_hold_up_the_others_and_still_adds_what_it_has() -> None:
    messages = history(2_000)
    fast = without_some(messages)
    stores = {ONE: ModelStore(fast), TWO: slow(ModelStore(messages), 9_000)}
    world = ask_stores(window_of(messages), stores)
    started_ms = world.now_ms
    while not hashes(fast) <= hashes(world.messages):
        assert world.step()
    assert world.now_ms - started_ms < 3 * CONFIG.patience_ms
    world.run()
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == len(messages)


def test_a_short_history_is_not_kept_back_by_a_store_that_never_answers() -> None:
    messages = history(20)
    stores = {ONE: ModelStore(messages), TWO: slow(ModelStore(messages), 10**9)}
    world = ask_stores(window_of(messages), stores)
    started_ms = world.now_ms
    while len(world.messages) < 20:
        assert world.step()
    assert world.now_ms - started_ms <= CONFIG.patience_ms + 5


def test_patience_is_over_in_its_time_whatever_the_others_say_meanwhile() -> None:
    messages = history(2_000)
    talkative = slow(ModelStore(messages), CONFIG.patience_ms // 4)
    silent = slow(ModelStore(messages), 10**9)
    world = ask_stores(window_of(messages), {ONE: talkative, TWO: silent})
    started_ms = world.now_ms
    while len(world.messages) <= 1:  # The first is at the window's start, and waits for nobody.
        assert world.step()
    assert world.now_ms - started_ms == talkative.rtt_ms + CONFIG.patience_ms


def test_what_any_store_omits_is_counted_whichever_place_it_has() -> None:
    messages = history(50)
    omitting = ModelStore(messages[:30])
    world = run_query(window_of(messages), {ONE: ModelStore(messages), TWO: omitting})
    assert {note.store: note.omitted for note in world.ended().notes} == {ONE: 0, TWO: 20}


def test_a_store_that_is_busy_when_all_is_found_is_asked_no_more() -> None:
    messages = history(5)
    busy = Wrapped(messages, lambda _n, _r, _o: Refusal(StoreStatus.TOO_MANY_REQUESTS))
    query = ByHash(hashes=tuple(item.message_hash for item in messages))
    stores = {ONE: slow(ModelStore(messages), 100), TWO: busy}
    world = run_query(query, stores, config=HistoryConfig(lookup_stores=2))
    assert world.ended().end is End.COMPLETE
    assert len(busy.requests) == 1


def test_a_store_that_was_busy_catches_up_and_is_gone_by_again() -> None:
    messages = history(3_000)

    def busy(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Refusal(429) if 2 <= number <= 5 else honest

    stores = {ONE: slow(ModelStore(messages[::2]), 400), TWO: Wrapped(messages[1::2], busy)}
    world = run_query(window_of(messages), stores)
    assert hashes(world.messages) == hashes(messages)
    assert is_ascending(times(world)[-500:])


def test_reached_is_where_the_slowest_is_even_if_it_was_left_behind() -> None:
    messages = history(1_000)
    stores = {ONE: ModelStore(messages), TWO: slow(ModelStore(messages), 9_000)}
    world = ask_stores(window_of(messages), stores)
    while len(world.messages) < 1_000:
        assert world.step()
    reached = [event.reached_ns for event in world.events if isinstance(event, Advanced)]
    assert reached[-1] < (messages[200].message.timestamp_ns or 0)
    world.run()
    assert world.ended().reached_ns == messages[-1].message.timestamp_ns


def test_a_replacement_pages_from_the_beginning_and_repeats_nothing() -> None:
    messages = history(1_500)

    def lost(number: int, _request: Request, honest: Outcome) -> Outcome:
        return honest if number < 9 else Failed(FailureKind.BROKEN, "broken")

    config = HistoryConfig(window_stores=1)
    stores = {ONE: Wrapped(without_some(messages), lost), TWO: ModelStore(messages)}
    world = run_query(window_of(messages), stores, config=config)
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == len(messages)
    assert world.ended().end is End.COMPLETE


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    messages = history(5)
    world = ask_stores(window_of(messages), {ONE: ModelStore(messages)})
    late = Answered(77, Refusal(500))
    assert world.machine.handle(late, now_ms=world.now_ms).events == ()
    world.run()
    assert world.machine.handle(late, now_ms=world.now_ms).events == ()
    assert len(world.messages) == 5


def calls_of(action: Callable[[], object]) -> int:
    """How many functions it calls: work, and not time."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.slow
def test_the_work_for_a_page_does_not_grow_with_what_came_before() -> None:
    messages = history(20_000)
    stores = {ONE: ModelStore(messages), TWO: Shuffled(messages), THREE: ModelStore(messages[::2])}
    world = ask_stores(window_of(messages), stores)
    query, now_ms = world.machine, world.now_ms
    assert isinstance(query, StoresQuery)
    work: list[int] = []
    open_asks = [ask for _, ask in world.asked]
    while open_asks:
        ask = open_asks.pop(0)
        answered = Answered(ask.ask_id, stores[ask.store].answer(ask.request))
        transition = [query.begin(now_ms)][:0]
        work.append(
            calls_of(lambda: transition.append(query.handle(answered, now_ms=now_ms)))  # noqa: B023 - called at once
        )
        open_asks += transition[0].asks
    early, late = sorted(work[20:80]), sorted(work[-80:-20])
    assert late[len(late) // 2] <= early[len(early) // 2] * 1.5
    assert max(work) <= 20 * (CONFIG.buffer_messages + 3 * CONFIG.page_messages)
