"""Which query is due: who waits comes first, look-ups in batches, progress, retries, the edge."""

import random
from itertools import pairwise

from engine.core.counters import Counters
from engine.core.history.config import HistoryConfig
from engine.core.history.progress import (
    DropProgress,
    Progress,
    Purpose,
    SaveProgress,
    ms_of,
    rest_ns,
    widened,
)
from engine.core.history.queries import (
    ByHash,
    Candidate,
    Covered,
    DependenciesMissing,
    End,
    Failed,
    FailureKind,
    GaveUp,
    HashesMissing,
    PressureChanged,
    QueryEnded,
    QueryStarted,
    StoresChanged,
    StoreVersion,
    Window,
    WindowCancelled,
    WindowWanted,
)
from engine.core.history.scheduler import HistoryScheduler
from engine.core.ids import UnixMs
from engine.core.waku_store import StoreQueryRequest
from tests.core.history.history_model import (
    NOW_MS,
    NOW_NS,
    ONE,
    SECOND_NS,
    TWO,
    Endless,
    ModelStore,
    Wrapped,
    hashes,
    history,
    stored,
)
from tests.core.history.history_world import CONVERSATION, TOPICS, World, world_of

CONFIG = HistoryConfig()
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONG_AGO = UnixMs(NOW_MS - 365 * DAY_MS)
MESSAGES = history(1_000, step_ns=60 * SECOND_NS)


def started(world: World) -> list[tuple[Purpose, Window | ByHash]]:
    return [(e.purpose, e.query) for e in world.events if isinstance(e, QueryStarted)]


def purposes(world: World) -> list[Purpose]:
    return [purpose for purpose, _ in started(world)]


def saved(world: World) -> list[Progress]:
    writes = [write for transition in world.transitions for write in transition.writes]
    return [write.progress for write in writes if isinstance(write, SaveProgress)]


def connect(since_ms: UnixMs = LONG_AGO) -> WindowWanted:
    return WindowWanted(purpose=Purpose.CONNECT, since_ms=since_ms)


def user(since_ms: UnixMs = LONG_AGO) -> WindowWanted:
    return WindowWanted(purpose=Purpose.USER, since_ms=since_ms)


def test_what_was_missed_is_asked_for_and_then_its_trailing_edge() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(connect())
    late = stored(5_000, NOW_NS - 19 * SECOND_NS)
    while not any(isinstance(event, Covered) for event in world.events):
        assert world.step()
    store.insert(late)
    world.run()
    assert purposes(world) == [Purpose.CONNECT, Purpose.TRAILING]
    assert late.message_hash in hashes(world.messages)
    covered = [event for event in world.events if isinstance(event, Covered)]
    assert [event.through_ms >= NOW_MS for event in covered] == [True, True]
    assert covered[0].through_ms == NOW_MS
    assert covered[1].through_ms - NOW_MS >= CONFIG.trailing_ms
    edge = started(world)[1][1]
    assert isinstance(edge, Window)
    assert edge.start_ns == NOW_NS - CONFIG.overlap_ns


def test_a_window_in_the_past_has_no_trailing_edge() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    until_ms = UnixMs(NOW_MS - DAY_MS)
    world.tell(WindowWanted(purpose=Purpose.EARLIER, since_ms=LONG_AGO, until_ms=until_ms))
    world.run()
    assert purposes(world) == [Purpose.EARLIER]


def test_nothing_is_asked_without_a_store_and_everything_when_there_is_one() -> None:
    world = world_of({})
    world.tell(connect())
    world.tell(DependenciesMissing((MESSAGES[0].message_hash,)))
    assert (world.asked, world.machine.next_deadline()) == ([], None)
    world.stores = {ONE: ModelStore(MESSAGES)}
    world.tell(StoresChanged((Candidate(store=ONE),)))
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES)


def test_going_offline_interrupts_and_coming_back_goes_on_with_the_rest() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(connect())
    for _ in range(4):
        world.step()
    world.tell(StoresChanged(()))
    assert world.machine.next_deadline() is None
    world.tell(StoresChanged((Candidate(store=ONE),)))
    world.run()
    first, second = (query for purpose, query in started(world) if purpose is Purpose.CONNECT)
    assert isinstance(first, Window)
    assert isinstance(second, Window)
    assert second.start_ns == (MESSAGES[399].message.timestamp_ns or 0) - CONFIG.overlap_ns
    assert hashes(world.messages) == hashes(MESSAGES)


def test_somebody_who_waits_interrupts_what_runs_by_itself() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(connect())
    world.step()
    world.tell(user(UnixMs(NOW_MS - DAY_MS)))
    world.run()
    assert purposes(world)[:3] == [Purpose.CONNECT, Purpose.USER, Purpose.CONNECT]
    assert hashes(world.messages) == hashes(MESSAGES)
    ends = [event.end for event in world.events if isinstance(event, QueryEnded)]
    assert ends[:3] == [End.CANCELLED, End.COMPLETE, End.COMPLETE]


def test_what_runs_by_itself_does_not_interrupt_somebody_who_waits() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(user())
    world.step()
    world.tell(connect())
    assert purposes(world) == [Purpose.USER]
    world.run()
    assert purposes(world)[:2] == [Purpose.USER, Purpose.CONNECT]


def test_somebody_cancels() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(user())
    world.step()
    transition = world.tell(WindowCancelled(Purpose.USER))
    assert transition.writes == (DropProgress(CONVERSATION, Purpose.USER),)
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES[:100])
    assert purposes(world) == [Purpose.USER]


# --- progress -----------------------------------------------------------------------------------


def test_progress_is_saved_with_the_messages_and_dropped_at_the_end() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(connect())
    world.run()
    reached = [progress.reached_ns for progress in saved(world)]
    assert reached == sorted(reached)
    assert len(reached) == 10, "once when it was wanted, then with each page but the last"
    drops = [w for t in world.transitions for w in t.writes if isinstance(w, DropProgress)]
    assert drops == [DropProgress(CONVERSATION, Purpose.CONNECT)]


def test_after_a_crash_the_rest_is_asked_for_with_an_overlap() -> None:
    before = world_of({ONE: ModelStore(MESSAGES)})
    before.tell(connect())
    for _ in range(5):
        before.step()
    store = ModelStore(MESSAGES)
    after = world_of({ONE: store}, progress=saved(before)[-1:])
    after.run()
    assert hashes(before.messages) | hashes(after.messages) == hashes(MESSAGES)
    assert len(hashes(after.messages)) == 502, "what lacked, and two in the overlap"
    covered = next(event for event in after.events if isinstance(event, Covered))
    assert covered.through_ms == ms_of(saved(before)[0].through_ns)


def test_a_later_wish_of_the_same_purpose_keeps_what_was_reached() -> None:
    old = Progress(
        conversation_id=CONVERSATION,
        purpose=Purpose.CONNECT,
        start_ns=100,
        end_ns=500,
        through_ns=400,
        reached_ns=300,
    )
    later = Progress(
        conversation_id=CONVERSATION,
        purpose=Purpose.CONNECT,
        start_ns=200,
        end_ns=900,
        through_ns=800,
        reached_ns=200,
    )
    both = widened(old, later)
    assert (both.start_ns, both.end_ns, both.through_ns, both.reached_ns) == (100, 900, 800, 300)
    assert widened(later, old).reached_ns == 100
    assert rest_ns(both, overlap_ns=50) == (250, 900)
    assert rest_ns(both, overlap_ns=1_000) == (100, 900)


def test_a_wish_that_begins_earlier_begins_again() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(user(UnixMs(NOW_MS - DAY_MS // 4)))
    world.step()
    world.tell(user())
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES)


def test_a_wish_that_grew_while_it_ran_goes_on_to_its_new_end() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(connect())
    world.step()
    world.now_ms = UnixMs(NOW_MS + DAY_MS)
    later = stored(7_000, (NOW_MS + DAY_MS // 2) * 10**6)
    store.insert(later)
    world.tell(connect(UnixMs(NOW_MS - 1_000)))
    while not any(isinstance(event, Covered) for event in world.events):
        assert world.step()
    assert later.message_hash in hashes(world.messages)
    covered = next(event for event in world.events if isinstance(event, Covered))
    assert covered.through_ms == NOW_MS + DAY_MS


def test_a_query_that_reached_its_own_end_does_not_end_a_wish_that_grew_meanwhile() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(connect())
    world.step()
    world.now_ms = grown_ms = UnixMs(world.now_ms + 10_000)  # Before the answer is overdue.
    world.tell(connect(UnixMs(NOW_MS - 1_000)))
    first_query = world.ended_queries()
    while world.ended_queries() == first_query:
        assert world.step()
    assert not any(isinstance(event, Covered) for event in world.events)
    world.run()
    covered = next(event for event in world.events if isinstance(event, Covered))
    assert covered.through_ms == grown_ms


def test_a_history_of_more_pages_than_a_query_may_have_is_continued_at_once() -> None:
    config = HistoryConfig(max_pages=3)
    world = world_of({ONE: ModelStore(MESSAGES)}, config=config)
    world.tell(connect())
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES)
    assert purposes(world).count(Purpose.CONNECT) == 4


def test_a_store_that_never_ends_alone_is_given_up() -> None:
    last_ns = MESSAGES[-1].message.timestamp_ns
    endless = Endless(MESSAGES, invents=lambda n: stored(50_000 + n, last_ns))
    config = HistoryConfig(max_pages=20)
    world = world_of({ONE: endless}, config=config)
    world.tell(connect())
    world.run()
    assert [e.end for e in world.events if isinstance(e, GaveUp)] == [End.TOO_MANY_PAGES]
    assert len(endless.requests) <= 20 * (2 + config.max_continuations)
    assert hashes(world.messages) >= hashes(MESSAGES)


def test_a_window_that_gets_nowhere_is_tried_again_later_and_less_often_then_given_up() -> None:
    store = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))
    world = world_of({ONE: store})
    world.tell(connect())
    world.run()
    tries = [at_ms for at_ms, _ in world.asked]
    assert len(tries) == 1 + CONFIG.max_retries
    waits = [b - a for a, b in pairwise(tries)]
    for number, wait_ms in enumerate(waits):
        full_ms = CONFIG.retry_ms << number
        assert full_ms / 2 <= wait_ms - 5 <= full_ms
    assert [(e.end, e.reason) for e in world.events if isinstance(e, GaveUp)] == [
        (End.FAULTED, "broken")
    ]
    world.stores = {TWO: ModelStore(MESSAGES)}
    world.tell(StoresChanged((Candidate(store=TWO),)))
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES)


# --- look-ups -----------------------------------------------------------------------------------


def test_dependencies_are_looked_up_in_batches_beside_a_window() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(connect(UnixMs(NOW_MS - DAY_MS // 4)))
    world.tell(DependenciesMissing(tuple(m.message_hash for m in MESSAGES[:250])))
    world.run()
    assert hashes(MESSAGES[:250]) <= hashes(world.messages)
    sizes = [len(query.hashes) for _, query in started(world) if isinstance(query, ByHash)]
    assert sizes == [100, 100, 50]


def test_what_no_store_has_is_said_once_all_were_asked() -> None:
    absent = stored(99_999, NOW_NS).message_hash
    world = world_of({ONE: ModelStore(MESSAGES), TWO: ModelStore(MESSAGES)})
    world.tell(DependenciesMissing((absent, MESSAGES[3].message_hash)))
    world.run()
    assert [event.hashes for event in world.events if isinstance(event, HashesMissing)] == [
        (absent,)
    ]


def test_a_store_that_never_answers_does_not_keep_the_others_from_counting() -> None:
    absent = stored(9_999, NOW_NS).message_hash
    silent = Wrapped([], lambda _n, _r, _o: Failed(FailureKind.TIMEOUT))
    world = world_of({ONE: ModelStore(MESSAGES), TWO: silent})
    for rounds in range(1, CONFIG.unanswered_rounds + 2):
        world.tell(DependenciesMissing((absent,)))
        world.run()
        said = [event for event in world.events if isinstance(event, HashesMissing)]
        assert len(said) == rounds
        assert (said[-1].hashes, said[-1].lacked, said[-1].silent) == ((absent,), 1, (TWO,))
        assert said[-1].decided is (rounds >= CONFIG.unanswered_rounds)


def test_where_no_store_answers_nothing_is_ever_decided_but_who_was_silent_is_told() -> None:
    absent = stored(9_999, NOW_NS).message_hash
    silent = Wrapped([], lambda _n, _r, _o: Failed(FailureKind.TIMEOUT))
    world = world_of({ONE: silent})
    for _ in range(CONFIG.unanswered_rounds + 2):
        world.tell(DependenciesMissing((absent,)))
        world.run()
    said = [event for event in world.events if isinstance(event, HashesMissing)]
    assert {(event.lacked, event.silent, event.decided) for event in said} == {(0, (ONE,), False)}


def test_what_turned_up_is_waited_for_anew_when_it_lacks_again() -> None:
    """Patience is for one message and one absence."""
    late = stored(9_999, NOW_NS)
    store, mood = ModelStore(MESSAGES), [FailureKind.TIMEOUT]
    silent = Wrapped([], lambda _n, _r, outcome: Failed(mood[0]) if mood else outcome)
    world = world_of({ONE: store, TWO: silent})
    for _ in range(CONFIG.unanswered_rounds - 1):
        world.tell(DependenciesMissing((late.message_hash,)))
        world.run()
    store.insert(late)
    world.tell(DependenciesMissing((late.message_hash,)))
    world.run()
    assert late.message_hash in hashes(world.messages)
    store.messages.remove(late)
    world.tell(DependenciesMissing((late.message_hash,)))
    world.run()
    assert not any(event.decided for event in world.events if isinstance(event, HashesMissing))


def test_the_same_message_is_not_looked_up_twice_at_once() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    want = MESSAGES[3].message_hash
    for _ in range(3):
        world.tell(DependenciesMissing((want, want)))
    world.run()
    assert len(world.asked) == 1
    world.tell(DependenciesMissing((want,)))
    world.run()
    assert len(world.asked) == 2, "later it may be asked for again"


def test_too_many_dependencies_are_counted_and_not_kept() -> None:
    counters = Counters()
    schedule = HistoryScheduler(
        CONVERSATION,
        TOPICS,
        config=HistoryConfig(max_lookups=10),
        random_unit=random.Random(0).random,
        counters=counters,
    )
    wants = tuple(m.message_hash for m in MESSAGES[:15])
    schedule.handle(DependenciesMissing(wants), now_ms=NOW_MS)
    assert counters["history.too_many_wants"] == 5


def around(at_ms: int, *, before_ms: int = 0) -> WindowWanted:
    """Where a session expects a missing message."""
    since_ms, until_ms = UnixMs(at_ms - before_ms), UnixMs(at_ms + 60_000)
    return WindowWanted(purpose=Purpose.DEPENDENCY, since_ms=since_ms, until_ms=until_ms)


def test_windows_for_dependencies_that_overlap_are_asked_for_together_and_told_as_one() -> None:
    world = world_of({ONE: ModelStore(MESSAGES, versions=(StoreVersion.V2,))})
    at_ms = ms_of(MESSAGES[500].message.timestamp_ns or 0)
    world.tell(connect())
    wanted = [around(at_ms, before_ms=HOUR_MS), around(at_ms + 30_000, before_ms=HOUR_MS)]
    for each in wanted:
        world.tell(each)
    world.run()
    windows = [purpose for purpose, query in started(world) if isinstance(query, Window)]
    assert windows.count(Purpose.DEPENDENCY) == 1
    (covered,) = [
        event
        for event in world.events
        if isinstance(event, Covered) and event.purpose is Purpose.DEPENDENCY
    ]
    assert (covered.since_ms, covered.until_ms) == (wanted[0].since_ms, wanted[1].until_ms)


def test_windows_for_dependencies_are_bounded_and_the_rest_is_counted() -> None:
    counters = Counters()
    schedule = HistoryScheduler(
        CONVERSATION,
        TOPICS,
        config=CONFIG,
        random_unit=random.Random(0).random,
        counters=counters,
    )
    for number in range(60):
        schedule.handle(around(NOW_MS - number * DAY_MS), now_ms=NOW_MS)
    assert counters["history.too_many_windows"] == 60 - CONFIG.max_dependency_windows


def test_a_window_for_dependencies_that_fails_makes_room_for_others() -> None:
    world = world_of({ONE: Wrapped([], lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))})
    for number in range(60):
        world.tell(around(NOW_MS - number * DAY_MS))
        world.run()
    gave_up = [event for event in world.events if isinstance(event, GaveUp)]
    assert len(gave_up) == 60


# --- back-pressure ------------------------------------------------------------------------------


def test_many_waiting_messages_hold_the_window_until_their_dependencies_were_looked_up() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(connect())
    world.step()
    world.tell(PressureChanged(CONFIG.pressure_messages))
    world.tell(DependenciesMissing(tuple(m.message_hash for m in MESSAGES[800:950])))
    before = len(store.requests)
    world.run()
    kinds = [
        bool(isinstance(request, StoreQueryRequest) and request.message_hashes)
        for request in store.requests[before:]
    ]
    assert kinds[:4] == [False, True, True, False], "the window's open ask, two look-ups, the rest"
    assert hashes(world.messages) == hashes(MESSAGES)


def test_a_window_that_begins_meanwhile_is_held_too() -> None:
    store = ModelStore(MESSAGES)
    world = world_of({ONE: store})
    world.tell(PressureChanged(CONFIG.pressure_messages))
    store.rtt_ms = 50
    world.tell(DependenciesMissing(tuple(m.message_hash for m in MESSAGES[700:950])))
    store.rtt_ms = 5
    world.tell(connect())
    world.run()
    kinds = [
        bool(isinstance(request, StoreQueryRequest) and request.message_hashes)
        for request in store.requests
    ]
    assert kinds[:5] == [False, True, True, True, False], "the window's first ask, then it waits"


def test_pressure_without_anything_to_look_up_holds_nothing() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(PressureChanged(10_000))
    world.tell(connect())
    world.run()
    assert hashes(world.messages) == hashes(MESSAGES)


# --- clocks -------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_puts_nothing_off() -> None:
    store = Wrapped(
        MESSAGES, lambda n, _r, o: Failed(FailureKind.BROKEN, "broken") if n == 1 else o
    )
    world = world_of({ONE: store})
    world.tell(connect())
    world.step()
    world.now_ms = UnixMs(NOW_MS - DAY_MS)
    world.tell(connect())
    world.step()
    assert len(world.asked) >= 2


def test_what_was_asked_for_since_a_time_overlaps_with_it() -> None:
    world = world_of({ONE: ModelStore(MESSAGES)})
    world.tell(connect(UnixMs(NOW_MS - 1_000)))
    query = started(world)[0][1]
    assert isinstance(query, Window)
    assert query.start_ns == NOW_NS - SECOND_NS - CONFIG.overlap_ns
    assert query.end_ns == NOW_NS + 20 * SECOND_NS
