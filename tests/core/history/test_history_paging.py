"""One honest Store: both versions, both directions, boundaries, look-ups, refusals, limits."""

import random
from itertools import count, pairwise

import pytest

from engine.core.errors import LocalProtocolError
from engine.core.history.config import HistoryConfig
from engine.core.history.merging import StoresQuery
from engine.core.history.queries import (
    ByHash,
    Cancel,
    Candidate,
    End,
    Failed,
    FailureKind,
    HoldChanged,
    Outcome,
    Page,
    Refusal,
    StoreEnded,
    StoreVersion,
    Window,
)
from engine.core.waku_store import HistoryIndex, HistoryQuery, StoreQueryRequest, StoreStatus
from tests.core.history.history_model import (
    NOW_MS,
    NOW_NS,
    ONE,
    PUBSUB,
    SECOND_NS,
    TOPIC,
    TWO,
    ModelStore,
    Request,
    Wrapped,
    cursor_of,
    hashes,
    history,
    limit_of,
    stored,
    times_of,
    window_of,
)
from tests.core.history.history_world import ask_stores, run_query

V3, V2 = StoreVersion.V3, StoreVersion.V2
MINUTE_NS = 60 * SECOND_NS


@pytest.mark.parametrize("version", [V3, V2])
@pytest.mark.parametrize("end_inclusive", [True, False])
def test_a_window_is_fetched_oldest_first(version: StoreVersion, end_inclusive: bool) -> None:
    messages = history(250)
    store = ModelStore(messages, versions=(version,), end_inclusive=end_inclusive)
    world = run_query(window_of(messages), {ONE: store})
    assert [item.message_hash for item in world.messages] == [m.message_hash for m in messages]
    ended = world.ended()
    assert (ended.end, ended.fetched, ended.reached_ns) == (
        End.COMPLETE,
        250,
        messages[-1].message.timestamp_ns,
    )
    assert ended.notes[0].version is version


def test_only_what_is_within_the_window_comes() -> None:
    messages = history(30, step_ns=1)
    world = run_query(window_of(messages[10:20]), {ONE: ModelStore(messages)})
    assert hashes(world.messages) == hashes(messages[10:20])
    assert world.ended().end is End.COMPLETE


def test_messages_of_one_time_on_both_sides_of_a_page_all_come_once() -> None:
    messages = [stored(number, NOW_NS) for number in range(330)]
    world = run_query(window_of(messages), {ONE: ModelStore(messages)})
    assert len(world.messages) == 330
    assert hashes(world.messages) == hashes(messages)


def test_a_message_without_time_counts_as_of_its_place() -> None:
    messages = [*history(5), stored(99, None)]
    store = Wrapped(messages, lambda _n, _r, _o: Page(messages=tuple(messages)))
    assert hashes(run_query(window_of(messages[:5]), {ONE: store}).messages) == hashes(messages)


def test_an_empty_history_is_complete() -> None:
    world = run_query(window_of(history(3)), {ONE: ModelStore()})
    assert (world.ended().end, world.messages) == (End.COMPLETE, [])


def test_without_a_store_the_query_says_so() -> None:
    assert (run_query(window_of(history(3)), {}).ended().reason) == "no_store"


def test_the_version_that_a_node_does_not_speak_is_given_up_at_once() -> None:
    messages = history(120)
    store = ModelStore(messages, versions=(V2,))
    world = run_query(window_of(messages), {ONE: store})
    assert hashes(world.messages) == hashes(messages)
    assert [type(request) for request in store.requests[:2]] == [StoreQueryRequest, HistoryQuery]


def test_a_node_that_lists_only_the_older_version_is_asked_in_no_other() -> None:
    messages = history(3)
    store = ModelStore(messages, versions=(V2,))
    ask_stores(window_of(messages), {ONE: store}, known_versions=True).run()
    assert {type(request) for request in store.requests} == {HistoryQuery}


def test_a_version_that_goes_away_while_paging_is_changed_with_an_overlap_in_time() -> None:
    messages = history(450, step_ns=SECOND_NS // 10)
    store = ModelStore(messages)

    def after_two_pages(answers: int) -> None:
        if answers == 3:
            store.versions = (V2,)

    world = ask_stores(window_of(messages), {ONE: store})
    world.before_answer = after_two_pages
    world.run()
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == 450


def test_a_node_that_speaks_neither_version_is_left() -> None:
    ended = run_query(window_of(history(3)), {ONE: ModelStore(versions=())}).ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "protocol_unsupported")


# --- look-ups -----------------------------------------------------------------------------------


def test_messages_are_looked_up_a_hundred_at_a_time() -> None:
    messages = history(250)
    store = ModelStore(messages)
    world = run_query(ByHash(hashes=tuple(m.message_hash for m in messages)), {ONE: store})
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == 250
    sizes = [len(r.message_hashes) for r in store.requests if isinstance(r, StoreQueryRequest)]
    assert sizes == [100, 100, 50]


def test_what_a_cut_page_of_a_look_up_lacks_is_asked_for_again_without_its_cursor() -> None:
    messages = history(100)
    store = ModelStore(messages, page_of=lambda _limit: 30)
    world = run_query(ByHash(hashes=tuple(m.message_hash for m in messages)), {ONE: store})
    assert hashes(world.messages) == hashes(messages)
    assert all(cursor_of(request) is None for request in store.requests)
    assert len(store.requests) == 4


def test_the_next_store_is_asked_only_for_what_the_first_does_not_have() -> None:
    messages = history(10)
    one, two = ModelStore(messages[:7]), ModelStore(messages)
    absent = stored(99, NOW_NS).message_hash
    wanted = (*(m.message_hash for m in messages), absent)
    world = run_query(ByHash(hashes=wanted), {ONE: one, TWO: two})
    assert hashes(world.messages) == hashes(messages)
    asked = two.requests[0]
    assert isinstance(asked, StoreQueryRequest)
    assert set(asked.message_hashes) == hashes(messages[7:]) | {absent}
    assert world.ended().lacking == (absent,)
    assert world.ended().unknown == ()


def test_a_store_that_has_everything_leaves_the_others_unasked() -> None:
    messages = history(10)
    two = ModelStore(messages)
    run_query(
        ByHash(hashes=tuple(m.message_hash for m in messages)),
        {ONE: ModelStore(messages), TWO: two},
    )
    assert two.requests == []


def test_nothing_is_said_to_be_absent_while_a_store_could_not_be_asked() -> None:
    absent = stored(99, NOW_NS).message_hash
    two = ModelStore(versions=(V2,))
    ended = run_query(ByHash(hashes=(absent,)), {ONE: ModelStore(), TWO: two}).ended()
    assert (ended.lacking, ended.unknown) == ((), (absent,))


def test_a_store_of_the_older_version_cannot_look_up() -> None:
    store = ModelStore(history(3), versions=(V2,))
    query = ByHash(hashes=(store.messages[0].message_hash,))
    world = ask_stores(query, {ONE: store}, known_versions=True)
    assert (world.ended().end, world.ended().unknown) == (End.CANNOT, query.hashes)
    assert store.requests == []


# --- cursors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V3, V2])
def test_a_cursor_that_is_not_known_any_more_costs_an_overlap_and_no_message(
    version: StoreVersion,
) -> None:
    messages = history(450)
    store = ModelStore(messages, versions=(version,))
    removed: list[int] = []

    def prune(_answers: int) -> None:
        """The Store throws its cursors' messages away; nobody asks for them any more."""
        gone = {cursor if isinstance(cursor, bytes) else None for cursor in store.given}
        digests = {getattr(cursor, "digest", None) for cursor in store.given}
        kept = [m for m in store.messages if m.message_hash not in gone | digests]
        removed.append(len(store.messages) - len(kept))
        store.messages = kept

    world = ask_stores(window_of(messages), {ONE: store})
    world.before_answer = prune
    world.run()
    assert sum(removed) > 0
    assert furthest_back(store) == MINUTE_NS
    assert hashes(world.messages) == hashes(messages)
    assert len(world.messages) == 450
    assert world.ended().end is End.COMPLETE


def furthest_back(store: ModelStore) -> int:
    """How long before the message of the first cursor that it refused the next request began."""
    refused, restart = next(
        (before, after)
        for before, after in pairwise(store.requests)
        if cursor_of(before) is not None and cursor_of(after) is None
    )
    cursor, (start_ns, _) = cursor_of(refused), times_of(restart)
    assert cursor is not None
    named = cursor.digest if isinstance(cursor, HistoryIndex) else cursor
    (at_ns,) = [m.message.timestamp_ns or 0 for m in history(450) if m.message_hash == named]
    return at_ns - 1 - (start_ns or 0)


def test_every_request_for_a_window_wants_messages_oldest_first() -> None:
    messages = history(30)
    v3, v2 = ModelStore(messages, versions=(V3,)), ModelStore(messages, versions=(V2,))
    run_query(window_of(messages), {ONE: v3, TWO: v2})
    newer = [one for one in v3.requests if isinstance(one, StoreQueryRequest)]
    older = [one for one in v2.requests if isinstance(one, HistoryQuery)]
    assert newer
    assert all(one.include_data and one.pagination_forward for one in newer)
    assert older
    assert all(one.forward for one in older)


def test_everything_that_a_store_has_is_a_window_without_topics() -> None:
    everything = Window(pubsub_topic=None, content_topics=(), start_ns=0, end_ns=NOW_NS)
    older = ModelStore(history(3), versions=(V2,))
    assert run_query(everything, {ONE: older}).ended().end is End.CANNOT
    with pytest.raises(LocalProtocolError):
        Window(pubsub_topic=None, content_topics=(TOPIC,), start_ns=0, end_ns=NOW_NS)


def test_a_store_that_never_knows_its_cursors_is_paged_by_time() -> None:
    messages = history(450, step_ns=SECOND_NS // 50)

    def forget(_number: int, request: Request, honest: Outcome) -> Outcome:
        lost = cursor_of(request) is not None
        return Refusal(StoreStatus.BAD_RESPONSE) if lost else honest

    world = run_query(window_of(messages), {ONE: Wrapped(messages, forget)})
    assert hashes(world.messages) == hashes(messages)
    assert world.ended().end is End.COMPLETE


def test_more_of_one_time_than_a_page_holds_needs_cursors() -> None:
    messages = [stored(number, NOW_NS) for number in range(300)]

    def forget(_number: int, request: Request, honest: Outcome) -> Outcome:
        lost = cursor_of(request) is not None
        return Refusal(StoreStatus.BAD_RESPONSE) if lost else honest

    ended = run_query(window_of(messages), {ONE: Wrapped(messages, forget)}).ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "store_cursor_unknown")


def test_the_refusal_of_a_request_without_cursor_is_final() -> None:
    messages = history(3)
    for code, reason in ((300, "bad_response"), (400, "bad_request"), (777, "status_unknown")):
        refuse = Wrapped(messages, lambda _n, _r, _o, code=code: Refusal(code))  # type: ignore[misc]
        ended = run_query(window_of(messages), {ONE: refuse}).ended()
        assert (ended.end, ended.reason) == (End.FAULTED, reason)
        assert len(refuse.requests) == 1


# --- refusals and failures ----------------------------------------------------------------------


def test_a_busy_store_is_waited_for_with_growing_and_random_back_off() -> None:
    messages = history(3)

    def busy(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Refusal(429) if number < 6 else honest

    waits = []
    for seed in (1, 2):
        world = ask_stores(window_of(messages), {ONE: Wrapped(messages, busy)}, seed=seed)
        world.run()
        assert hashes(world.messages) == hashes(messages)
        waits.append([b - a for (a, _), (b, _) in pairwise(world.asked)])
    config = HistoryConfig()
    for times in waits:
        for number, wait_ms in enumerate(times):
            full_ms = config.back_off_ms << number
            assert full_ms / 2 <= wait_ms - 5 <= full_ms
    assert waits[0] != waits[1]


def test_nothing_is_asked_before_its_back_off_is_over() -> None:
    messages = history(3)
    world = ask_stores(
        window_of(messages),
        {ONE: Wrapped(messages, lambda n, _r, o: Refusal(503) if n == 1 else o)},
    )
    world.step()
    assert world.machine.next_deadline() is not None
    assert len(world.asked) == 1
    world.tell_query(HoldChanged(False))
    assert len(world.asked) == 1
    world.run()
    assert len(world.asked) == 2


def test_a_storm_of_429_ends_with_its_reason() -> None:
    messages = history(3)
    store = Wrapped(messages, lambda _n, _r, _o: Refusal(429))
    ended = run_query(window_of(messages), {ONE: store}).ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "too_many_requests")
    assert len(store.requests) == HistoryConfig().max_refusals


def test_a_connection_lost_within_a_page_is_tried_again_from_the_same_cursor() -> None:
    messages = history(350)
    lost = {3, 4, 7}

    def lose(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Failed(FailureKind.UNREACHABLE) if number in lost else honest

    store = Wrapped(messages, lose)
    world = run_query(window_of(messages), {ONE: store})
    assert [m.message_hash for m in world.messages] == [m.message_hash for m in messages]
    assert cursor_of(store.requests[2]) == cursor_of(store.requests[4])
    assert [limit_of(request) for request in store.requests[:5]] == [100, 100, 100, 50, 25]


def test_a_store_that_cannot_be_reached_is_left_after_three_times() -> None:
    store = Wrapped(history(3), lambda _n, _r, _o: Failed(FailureKind.UNREACHABLE))
    ended = run_query(window_of(store.messages), {ONE: store}).ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "unreachable")
    assert len(store.requests) == 3


@pytest.mark.parametrize(
    "cut",
    [
        Failed(FailureKind.TOO_LARGE),
        Failed(FailureKind.BROKEN, "exchange_ended_early"),
        Failed(FailureKind.BROKEN, "frame_oversized"),
    ],
)
def test_a_page_too_large_is_halved_before_anybody_is_blamed(cut: Failed) -> None:
    messages = history(300)

    def too_large(_number: int, request: Request, honest: Outcome) -> Outcome:
        return cut if limit_of(request) > 30 else honest

    store = Wrapped(messages, too_large)
    world = run_query(window_of(messages), {ONE: store})
    assert hashes(world.messages) == hashes(messages)
    limits = [limit_of(request) for request in store.requests]
    assert limits[:3] == [100, 50, 25]
    assert set(limits[2:]) == {25}


def test_after_lost_connections_pages_grow_again() -> None:
    messages = history(900)

    def lose(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Failed(FailureKind.UNREACHABLE) if number == 1 else honest

    store = Wrapped(messages, lose)
    run_query(window_of(messages), {ONE: store})
    assert [limit_of(request) for request in store.requests[:6]] == [100, 50, 50, 50, 50, 100]


# --- what the caller does -----------------------------------------------------------------------


def test_cancelling_hands_out_what_is_there_and_abandons_the_ask() -> None:
    messages = history(300)
    world = ask_stores(window_of(messages), {ONE: ModelStore(messages)})
    world.step()
    transition = world.tell_query(Cancel())
    assert transition.abandoned == (world.asked[-1][1].ask_id,)
    assert world.ended().end is End.CANCELLED
    assert world.ended().reached_ns == messages[99].message.timestamp_ns
    assert hashes(world.messages) == hashes(messages[:100])
    assert not world.step()


def test_nothing_is_asked_for_while_held() -> None:
    messages = history(300)
    world = ask_stores(window_of(messages), {ONE: ModelStore(messages)})
    world.tell_query(HoldChanged(True))
    world.run()
    assert len(world.asked) == 1
    assert len(world.messages) == 100
    world.tell_query(HoldChanged(False))
    world.run()
    assert len(world.messages) == 300


def test_a_window_has_topics_and_ends_after_it_starts() -> None:
    for topics, start_ns, end_ns in (((), 1, 2), ((TOPIC,) * 11, 1, 2), ((TOPIC,), 2, 1)):
        with pytest.raises(LocalProtocolError):
            Window(pubsub_topic=PUBSUB, content_topics=topics, start_ns=start_ns, end_ns=end_ns)
    with pytest.raises(LocalProtocolError):
        ByHash(hashes=())


def test_all_of_history_is_asked_for_without_a_start() -> None:
    store = ModelStore(history(3))
    window = Window(pubsub_topic=PUBSUB, content_topics=(TOPIC,), start_ns=0, end_ns=NOW_NS)
    assert len(run_query(window, {ONE: store}).messages) == 3
    assert times_of(store.requests[0])[0] is None


def test_a_store_named_twice_is_asked_once() -> None:
    messages = history(3)
    twice = StoresQuery(
        1,
        window_of(messages),
        [Candidate(store=ONE), Candidate(store=ONE)],
        config=HistoryConfig(),
        random_unit=random.Random(0).random,
        ask_ids=count(1),
    )
    assert len(twice.begin(NOW_MS).asks) == 1


def test_statistics_tell_what_a_store_brought() -> None:
    messages = history(250)
    world = run_query(window_of(messages), {ONE: ModelStore(messages)})
    statistics = next(e for e in world.events if isinstance(e, StoreEnded)).statistics
    assert (statistics.pages, statistics.messages, statistics.new) == (3, 250, 250)
    assert statistics.busy_ms == 15
