"""Rarely met: replacements that dawdle, look-ups cut short, clocks set back, wishes that meet."""

from itertools import count

import pytest

from engine.core.history.config import HistoryConfig
from engine.core.history.merging import StoresQuery
from engine.core.history.progress import Purpose, StoreRef, ms_of
from engine.core.history.queries import (
    ByHash,
    Cancel,
    Covered,
    DeadlineReached,
    End,
    Failed,
    FailureKind,
    GaveUp,
    HoldChanged,
    Outcome,
    Page,
    PressureChanged,
    QueryStarted,
    Refusal,
    StoreVersion,
    Window,
    WindowWanted,
)
from engine.core.ids import UnixMs
from tests.core.history.history_model import (
    NOW_MS,
    NOW_NS,
    ONE,
    SECOND_NS,
    THREE,
    TWO,
    Forgets,
    ModelStore,
    Request,
    Wrapped,
    hashes,
    history,
    limit_of,
    stored,
    window_of,
    without_some,
)
from tests.core.history.history_world import ask_stores, run_query, world_of

CONFIG = HistoryConfig()
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MESSAGES = history(1_000, step_ns=60 * SECOND_NS)
ALL_HASHES = tuple(item.message_hash for item in MESSAGES)


def broken(number: int, _request: Request, honest: Outcome) -> Outcome:
    return honest if number < 5 else Failed(FailureKind.BROKEN, "broken")


# --- several Stores -----------------------------------------------------------------------------


def test_a_replacement_that_dawdles_holds_nobody_up() -> None:
    config = HistoryConfig(window_stores=2)
    late = ModelStore(MESSAGES)
    late.rtt_ms = 10**9
    stores = {ONE: ModelStore(MESSAGES), TWO: Wrapped(MESSAGES, broken), THREE: late}
    world = ask_stores(window_of(MESSAGES), stores, config=config)
    while len(world.messages) < len(MESSAGES):
        assert world.step()
    assert world.now_ms - NOW_MS < config.patience_ms


def test_a_store_that_is_slow_but_never_stands_still_is_left_behind_too() -> None:
    messages = history(5_000)
    slow = ModelStore(without_some(messages))
    slow.rtt_ms = CONFIG.patience_ms - 500
    world = ask_stores(window_of(messages), {ONE: ModelStore(messages), TWO: slow})
    while len(world.messages) < len(messages):
        assert world.step()
    assert world.now_ms - NOW_MS < 5 * CONFIG.patience_ms


def test_a_store_that_caught_up_is_waited_for_again() -> None:
    messages = history(6_000)

    def busy_once(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Refusal(429) if 2 <= number <= 5 else honest

    early = Wrapped(messages[::2], busy_once)
    other = ModelStore(messages[1::2])
    other.rtt_ms = 600
    world = ask_stores(window_of(messages), {ONE: early, TWO: other})
    query = world.machine
    assert isinstance(query, StoresQuery)
    world.run()
    tail = [item.message.timestamp_ns or 0 for item in world.messages[-1_500:]]
    assert tail == sorted(tail)
    assert hashes(world.messages) == hashes(messages)


def test_a_cancelled_query_has_reached_what_all_its_stores_had() -> None:
    slow = ModelStore(MESSAGES)
    slow.rtt_ms = 12
    world = ask_stores(window_of(MESSAGES), {ONE: ModelStore(MESSAGES), TWO: slow})
    for _ in range(5):
        world.step()
    world.tell_query(Cancel())
    assert slow.requests
    assert world.ended().reached_ns == MESSAGES[99].message.timestamp_ns
    assert len(world.messages) > 100, "what waited for the slower one is handed out"


# --- look-ups -----------------------------------------------------------------------------------


def test_a_look_up_whose_answer_is_too_large_asks_for_less_and_forgets_nothing() -> None:
    def too_large(_number: int, request: Request, honest: Outcome) -> Outcome:
        return Failed(FailureKind.TOO_LARGE) if limit_of(request) > 30 else honest

    world = run_query(ByHash(hashes=ALL_HASHES[:250]), {ONE: Wrapped(MESSAGES, too_large)})
    assert hashes(world.messages) == set(ALL_HASHES[:250])


def test_a_look_up_whose_pages_never_end_ends() -> None:
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Page(cursor=ALL_HASHES[5]))
    world = run_query(ByHash(hashes=ALL_HASHES[:9]), {ONE: bad, TWO: ModelStore(MESSAGES)})
    assert hashes(world.messages) == set(ALL_HASHES[:9])
    assert len(bad.requests) == CONFIG.max_stale_pages
    assert world.ended().notes[0].end is End.NOTHING_NEW


def test_a_second_store_at_once_is_asked_no_further_when_all_is_found() -> None:
    second = ModelStore(MESSAGES)
    second.rtt_ms = 100
    config = HistoryConfig(lookup_stores=2)
    query = ByHash(hashes=ALL_HASHES[:250])
    world = run_query(query, {ONE: ModelStore(MESSAGES), TWO: second}, config=config)
    assert len(second.requests) == 1
    assert len(world.messages) == 250


@pytest.mark.parametrize("others", [0, 1, 33])
def test_nothing_lacks_unless_every_store_said_so(others: int) -> None:
    """Without a Store, with one that is broken, with more than are ever asked."""
    stores: dict[StoreRef, ModelStore] = {StoreRef(f"{n}"): ModelStore() for n in range(others)}
    if others == 1:
        stores[TWO] = Wrapped([], lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))
    ended = run_query(ByHash(hashes=ALL_HASHES[:1]), stores).ended()
    assert (ended.lacking, ended.unknown) == ((), ALL_HASHES[:1])


def _around(at_ms: UnixMs) -> WindowWanted:
    since_ms, until_ms = UnixMs(at_ms - HOUR_MS), UnixMs(at_ms + 60_000)
    return WindowWanted(purpose=Purpose.DEPENDENCY, since_ms=since_ms, until_ms=until_ms)


def test_two_windows_around_messages_that_wait_do_not_lose_each_other() -> None:
    """The second one comes while the first is being asked for, and begins earlier."""
    old = ModelStore(MESSAGES, versions=(StoreVersion.V2,))
    world = world_of({ONE: old})
    at_ms = ms_of(MESSAGES[500].message.timestamp_ns or 0)
    world.tell(_around(at_ms))
    while not any(
        isinstance(event, QueryStarted) and isinstance(event.query, Window)
        for event in world.events
    ):
        assert world.step()
    world.tell(_around(UnixMs(at_ms - HOUR_MS + 1_000)))
    world.run()
    assert {ALL_HASHES[499], ALL_HASHES[400]} <= hashes(world.messages)


# --- going on and giving up ---------------------------------------------------------------------


def test_a_window_that_comes_further_for_ever_is_given_up_too() -> None:
    config = HistoryConfig(max_pages=1, max_continuations=3)
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store}, config=config)
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(0)))
    world.run()
    assert [event.end for event in world.events if isinstance(event, GaveUp)] == [
        End.TOO_MANY_PAGES
    ]
    assert len(store.requests) == 4


@pytest.mark.parametrize("versions", [(StoreVersion.V3,), (StoreVersion.V2,)])
@pytest.mark.parametrize("page", [100, 20])
@pytest.mark.parametrize("max_pages", [2, 3, 2_000])
def test_more_messages_of_one_time_than_a_query_has_pages_for_hide_nothing_that_follows(
    max_pages: int, page: int, versions: tuple[StoreVersion, ...]
) -> None:
    """Anybody can send that many to a topic: a time alone would be no place to go on from."""
    at_ns = NOW_NS - 100 * SECOND_NS
    dense = [
        *(stored(number, at_ns) for number in range(350)),
        *(stored(1_000 + number, at_ns + number * SECOND_NS) for number in range(1, 50)),
        *(stored(2_000 + number, at_ns - number * SECOND_NS) for number in range(1, 50)),
    ]
    store = ModelStore(dense, versions=versions, page_of=lambda limit: min(limit, page))
    world = world_of({ONE: store}, config=HistoryConfig(max_pages=max_pages))
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW_MS - DAY_MS)))
    world.run()
    assert len(world.messages) >= len(dense)
    assert hashes(world.messages) == hashes(dense)
    assert any(isinstance(event, Covered) for event in world.events)
    assert not any(isinstance(event, GaveUp) for event in world.events)


def test_a_store_that_forgets_its_place_among_messages_of_one_time_ends_by_itself() -> None:
    """It gives no more of them than one page: nothing is known to lack, and it is said why."""
    dense = [stored(number, NOW_NS - SECOND_NS) for number in range(350)]
    store = Forgets(dense)
    world = world_of({ONE: store})
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW_MS - DAY_MS)))
    world.run()
    assert len(hashes(world.messages)) >= CONFIG.page_messages
    (gave_up,) = (event for event in world.events if isinstance(event, GaveUp))
    assert (gave_up.end, gave_up.reason) == (End.FAULTED, "store_cursor_unknown")
    assert len(store.requests) <= 10 * (1 + CONFIG.max_retries)


# --- holding and clocks -------------------------------------------------------------------------


def test_while_held_a_back_off_that_is_over_wakes_nobody() -> None:
    busy = Wrapped(MESSAGES, lambda _n, _r, _o: Refusal(429))
    world = ask_stores(window_of(MESSAGES), {ONE: busy})
    world.step()
    world.tell_query(HoldChanged(True))
    assert world.machine.next_deadline() is None


def test_a_clock_set_back_blames_no_store_that_is_about_to_answer() -> None:
    world = ask_stores(window_of(MESSAGES), {ONE: ModelStore(MESSAGES)})
    query = world.machine
    back_ms = UnixMs(NOW_MS - DAY_MS)
    assert query.handle(DeadlineReached(), now_ms=back_ms).abandoned == ()
    deadline_ms = query.next_deadline()
    assert deadline_ms == back_ms + CONFIG.page_timeout_ms


def test_a_clock_set_back_ends_every_back_off() -> None:
    busy = Wrapped(MESSAGES, lambda n, _r, o: Refusal(429) if n == 1 else o)
    world = ask_stores(window_of(MESSAGES), {ONE: busy})
    world.step()
    asks = world.machine.handle(DeadlineReached(), now_ms=UnixMs(NOW_MS - DAY_MS)).asks
    assert len(asks) == 1


def test_a_clock_set_back_ends_the_wait_before_a_window_is_tried_again() -> None:
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))
    world = world_of({ONE: bad})
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW_MS - DAY_MS)))
    world.step()
    assert len(world.asked) == 1
    world.now_ms = UnixMs(NOW_MS - DAY_MS)
    world.tell(PressureChanged(0))
    assert len(world.asked) == 2


def test_the_same_input_twice_and_a_deadline_too_early_are_harmless() -> None:
    messages = [stored(n, NOW_NS - n) for n in range(300)]
    world = ask_stores(window_of(messages), {ONE: ModelStore(messages)})
    for _ in count():
        assert world.take(world.machine.handle(DeadlineReached(), now_ms=world.now_ms)).asks == ()
        if not world.step():
            break
    assert len(world.messages) == 300
