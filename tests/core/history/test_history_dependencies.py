"""What windows for dependencies may take: so much per period, and not of every Store."""

from msgspec.structs import replace

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import Purpose, StoreRef, ns_of
from engine.core.history.queries import (
    Covered,
    Failed,
    FailureKind,
    GaveUp,
    Outcome,
    Page,
    QueryStarted,
    StoreVersion,
    Window,
    WindowWanted,
)
from engine.core.ids import UnixMs
from tests.core.history.history_model import (
    NOW_MS,
    ONE,
    TWO,
    Endless,
    ModelStore,
    Request,
    Wrapped,
    hashes,
    history,
    stored,
)
from tests.core.history.history_world import World, world_of

HOUR_MS = 3_600_000
PERIOD_MS = 10_000
CONFIG = HistoryConfig(
    dependency_asks=10,
    dependency_bytes=1_000,
    dependency_period_ms=PERIOD_MS,
    dependency_pages=100,
    max_dependency_periods=3,
)


def around(at_ms: int) -> WindowWanted:
    since_ms, until_ms = UnixMs(at_ms - HOUR_MS), UnixMs(at_ms)
    return WindowWanted(purpose=Purpose.DEPENDENCY, since_ms=since_ms, until_ms=until_ms)


def inventive() -> Endless:
    return Endless([], invents=lambda number: stored(number, ns_of(NOW_MS) - HOUR_MS * 10**6))


def sized(size: int) -> Wrapped:
    """Each page of one message has this size."""

    def trick(_number: int, _request: Request, outcome: Outcome) -> Outcome:
        assert isinstance(outcome, Page)
        return Page(messages=outcome.messages, cursor=outcome.cursor, size=size)

    store = Wrapped(history(100), trick)
    store.page_of = lambda _limit: 1
    return store


def asked_by_period(world: World) -> list[int]:
    """How often in each period."""
    numbers: dict[int, int] = {}
    for at_ms, _ in world.asked:
        period = (at_ms - NOW_MS) // PERIOD_MS
        numbers[period] = numbers.get(period, 0) + 1
    return [numbers.get(period, 0) for period in range(max(numbers) + 1)]


def covered(world: World) -> list[Purpose]:
    return [event.purpose for event in world.events if isinstance(event, Covered)]


def asked_for(world: World) -> list[Purpose]:
    return [
        event.purpose
        for event in world.events
        if isinstance(event, QueryStarted) and isinstance(event.query, Window)
    ]


def gave_up(world: World) -> int:
    return sum(isinstance(event, GaveUp) for event in world.events)


def test_asks_are_spent_per_period_and_a_window_may_use_up_three() -> None:
    world = world_of({ONE: inventive()}, config=CONFIG)
    world.tell(around(NOW_MS))
    world.run()
    assert asked_by_period(world) == [10, 10, 10]
    assert gave_up(world) == 1


def test_bytes_are_spent_per_period_too() -> None:
    world = world_of({ONE: sized(250)}, config=CONFIG)
    world.tell(around(NOW_MS))
    world.run()
    until_spent = 4
    assert asked_by_period(world) == [until_spent + 1] * 3, "the next ask is on its way by then"
    assert gave_up(world) == 1


def test_a_window_goes_on_in_the_next_period_where_it_was() -> None:
    messages = history(20, step_ns=2 * CONFIG.overlap_ns)
    store = ModelStore(messages, versions=(StoreVersion.V3,), page_of=lambda _limit: 1)
    world = world_of({ONE: store}, config=CONFIG)
    world.tell(around(NOW_MS))
    world.run()
    assert covered(world) == [Purpose.DEPENDENCY]
    assert hashes(world.messages) == hashes(messages)
    assert len(asked_by_period(world)) == 3


def test_what_is_asked_for_in_the_meantime_waits_for_the_next_period() -> None:
    world = world_of({ONE: inventive()}, config=CONFIG)
    world.tell(around(NOW_MS))
    while len(world.asked) < CONFIG.dependency_asks:
        assert world.step()
    world.tell(around(NOW_MS - 3 * HOUR_MS))
    assert world.next_ms() == NOW_MS + PERIOD_MS
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW_MS - HOUR_MS)))
    assert asked_for(world)[-1] is Purpose.USER, "what a person wants does not wait"


def test_nothing_is_due_before_the_period_ends() -> None:
    """Not for a window either that was to be tried again sooner."""

    def trick(number: int, _request: Request, outcome: Outcome) -> Outcome:
        assert isinstance(outcome, Page)
        if number == 1:
            return Failed(FailureKind.BROKEN, "broken")
        return Page(messages=outcome.messages, cursor=outcome.cursor, size=2_000)

    config = replace(CONFIG, dependency_period_ms=60_000, retry_ms=1_000)
    world = world_of({ONE: Wrapped(history(5), trick)}, config=config)
    for hour in (0, 3, 6):
        world.tell(around(NOW_MS - hour * HOUR_MS))
    while not world.messages:
        assert world.step()
    steps = 0
    while world.now_ms < NOW_MS + 60_000:
        world.step()
        steps += 1
        assert steps < 10, "it is woken again and again"


def test_a_store_that_has_too_much_is_left_out_while_there_are_others() -> None:
    config = replace(
        CONFIG,
        dependency_pages=3,
        dependency_asks=100,
        dependency_period_ms=60_000,
        dependency_rest_ms=HOUR_MS,
    )
    stores = {ONE: inventive(), TWO: ModelStore(history(5))}
    world = world_of(stores, config=config)

    def asked(at_ms: int) -> set[StoreRef]:
        world.now_ms, before = UnixMs(at_ms), len(world.asked)
        world.tell(around(at_ms))
        world.run()
        return {ask.store for _, ask in world.asked[before:]}

    assert asked(NOW_MS) == {ONE, TWO}
    assert asked(NOW_MS + HOUR_MS // 2) == {TWO}
    assert asked(world.now_ms + HOUR_MS) == {ONE, TWO}


def test_if_all_stores_have_too_much_all_are_asked() -> None:
    config = replace(CONFIG, dependency_pages=2, dependency_asks=100, max_continuations=2)
    store = inventive()
    world = world_of({ONE: store}, config=config)
    for _ in range(2):
        before = len(store.requests)
        world.tell(around(NOW_MS))
        world.run()
        assert len(store.requests) > before
