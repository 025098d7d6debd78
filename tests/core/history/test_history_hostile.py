"""What a Store may try: each ends by itself, names its reason, and costs the others nothing."""

import hashlib

import pytest

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    ByHash,
    End,
    Failed,
    FailureKind,
    HistoryMessage,
    Outcome,
    Page,
    Query,
    StoreEnded,
    StoreVersion,
)
from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku_store import HistoryIndex
from tests.core.history.history_model import (
    NOW_NS,
    ONE,
    SECOND_NS,
    THREE,
    TWO,
    Endless,
    ModelStore,
    Request,
    Shuffled,
    Wrapped,
    hashes,
    history,
    limit_of,
    stored,
    window_of,
    without_some,
)
from tests.core.history.history_world import World, ask_stores, run_query

MESSAGES = history(600)
WINDOW = window_of(MESSAGES)
CONFIG = HistoryConfig()


def beside_an_honest_one(bad: ModelStore, query: Query = WINDOW) -> tuple[World, StoreEnded]:
    """All of history comes all the same; how the bad one ended."""
    world = run_query(query, {ONE: bad, TWO: ModelStore(MESSAGES)})
    assert hashes(world.messages) >= hashes(MESSAGES)
    assert len(world.messages) == len(hashes(world.messages))
    assert world.ended().end is End.COMPLETE
    end = next(e for e in world.events if isinstance(e, StoreEnded) and e.store == ONE)
    return world, end


def fresh_cursor(number: int) -> WakuHash:
    return WakuHash(hashlib.sha256(b"cursor %d" % number).digest())


def test_a_store_that_omits_is_made_good_by_another_and_noted() -> None:
    bad = ModelStore(without_some(MESSAGES))
    world, end = beside_an_honest_one(bad)
    assert end.end is End.COMPLETE
    notes = {note.store: note for note in world.ended().notes}
    omitted = len(MESSAGES) - len(bad.messages)
    assert notes[ONE].omitted == omitted
    assert notes[TWO].omitted == 0


def test_a_store_that_shuffles_and_repeats_changes_nothing() -> None:
    world, end = beside_an_honest_one(Shuffled(MESSAGES))
    assert end.end is End.COMPLETE
    assert hashes(world.messages) == hashes(MESSAGES)


def test_a_store_that_shuffles_by_itself_loses_nothing() -> None:
    world = run_query(WINDOW, {ONE: Shuffled(MESSAGES)})
    assert hashes(world.messages) == hashes(MESSAGES)
    assert len(world.messages) == len(MESSAGES)


def test_pages_that_never_end_and_repeat_are_left_after_three_with_nothing_new() -> None:
    bad = Endless(MESSAGES, invents=None)
    _, end = beside_an_honest_one(bad)
    assert end.end is End.NOTHING_NEW
    assert len(bad.requests) == 6 + CONFIG.max_stale_pages


def test_pages_that_never_end_and_invent_are_left_after_two_thousand() -> None:
    bad = Endless(
        MESSAGES, invents=lambda n: stored(10_000 + n, MESSAGES[n % 600].message.timestamp_ns)
    )
    world, end = beside_an_honest_one(bad)
    assert end.end is End.TOO_MANY_PAGES
    assert len(bad.requests) == CONFIG.max_pages == 2_000
    notes = {note.store: note for note in world.ended().notes}
    assert notes[TWO].omitted == 0, "what only such a Store had is not held against others"


def test_three_stores_one_drops_one_shuffles_one_never_ends() -> None:
    """Nothing lacks, whatever their order, and it ends by itself within the bounds."""
    alone = run_query(WINDOW, {ONE: ModelStore(MESSAGES)})
    expected = sorted(item.message_hash for item in alone.messages)
    for first in range(3):
        bad = [
            ModelStore(without_some(MESSAGES)),
            Shuffled(MESSAGES),
            Endless(MESSAGES, invents=None),
        ]
        bad = bad[first:] + bad[:first]
        world = run_query(WINDOW, dict(zip((ONE, TWO, THREE), bad, strict=True)))
        assert sorted(item.message_hash for item in world.messages) == expected
        assert world.ended().end is End.COMPLETE
        assert sum(len(store.requests) for store in bad) < 40


@pytest.mark.parametrize("version", list(StoreVersion))
def test_a_cursor_that_repeats_an_earlier_one(version: StoreVersion) -> None:
    given: list[WakuHash | HistoryIndex] = []

    def repeat(_number: int, _request: Request, honest: Outcome) -> Outcome:
        assert isinstance(honest, Page)
        if honest.cursor is not None:
            given.append(honest.cursor)
        return Page(messages=honest.messages, cursor=given[0]) if len(given) == 3 else honest

    bad = Wrapped(MESSAGES, repeat)
    bad.versions = (version,)
    _, end = beside_an_honest_one(bad)
    assert (end.end, end.reason) == (End.FAULTED, "store_cursor_repeated")


def test_a_cursor_that_never_advances() -> None:
    def stick(number: int, _request: Request, _honest: Outcome) -> Outcome:
        some = MESSAGES[100 * number : 100 * (number + 1)]
        return Page(messages=tuple(some), cursor=fresh_cursor(1))

    bad = Wrapped(MESSAGES, stick)
    _, end = beside_an_honest_one(bad)
    assert (end.end, end.reason) == (End.FAULTED, "store_cursor_stuck")
    assert len(bad.requests) == 2


def test_a_stuck_cursor_that_the_client_noticed_already() -> None:
    def stick(number: int, _request: Request, honest: Outcome) -> Outcome:
        return Failed(FailureKind.BROKEN, "store_cursor_stuck") if number == 2 else honest

    _, end = beside_an_honest_one(Wrapped(MESSAGES, stick))
    assert (end.end, end.reason) == (End.FAULTED, "store_cursor_stuck")


def test_a_cursor_of_the_other_version() -> None:
    foreign = HistoryIndex(
        digest=bytes(32),
        receiver_time_ns=1,
        sender_time_ns=1,
        pubsub_topic=MESSAGES[0].pubsub_topic,
    )
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Page(messages=tuple(MESSAGES[:9]), cursor=foreign))
    _, end = beside_an_honest_one(bad)
    assert end.reason == "store_cursor_malformed"


def test_empty_pages_with_ever_new_cursors() -> None:
    bad = Wrapped(MESSAGES, lambda n, _r, _o: Page(cursor=fresh_cursor(n)))
    bad.messages = []
    _, end = beside_an_honest_one(bad)
    assert end.end is End.NOTHING_NEW
    assert len(bad.requests) == CONFIG.max_stale_pages


@pytest.mark.parametrize("reason", ["store_hash_mismatch", "store_entry_without_data"])
def test_a_forged_hash_names_its_store_and_the_rest_of_the_page_is_kept(reason: str) -> None:
    def forge(_number: int, _request: Request, honest: Outcome) -> Outcome:
        assert isinstance(honest, Page)
        return Page(messages=honest.messages[1:], cursor=honest.cursor, refused=(reason,))

    bad = Wrapped(MESSAGES, forge)
    world, end = beside_an_honest_one(bad)
    assert (end.end, end.reason) == (End.FAULTED, reason)
    assert (end.statistics.messages, end.statistics.refused) == (99, 1)
    assert len(bad.requests) == 1
    assert hashes(world.messages) == hashes(MESSAGES)


def test_malformed_messages_that_a_store_took_in_are_nothing_to_leave_it_for() -> None:
    """Anybody can have it relay such; page after page of them must not end history."""
    messages = history(30)

    def dirty(number: int, _request: Request, _honest: Outcome) -> Outcome:
        if number <= 10:
            return Page(cursor=fresh_cursor(number), refused=("meta_oversized",) * 100)
        return Page(messages=tuple(messages))

    store = Wrapped(messages, dirty)
    world = run_query(window_of(messages), {ONE: store})
    assert hashes(world.messages) == hashes(messages)
    assert world.ended().notes[0].statistics.refused == 1_000


def other_page(*items: HistoryMessage) -> Wrapped:
    return Wrapped(MESSAGES, lambda _n, _r, _o: Page(messages=(*MESSAGES[:5], *items)))


def test_a_message_of_another_topic() -> None:
    wrong = stored(1, NOW_NS - SECOND_NS, topic=ContentTopic("/causerie/1/other/proto"))
    world, end = beside_an_honest_one(other_page(wrong))
    assert (end.end, end.reason) == (End.FAULTED, "store_entry_unasked")
    assert wrong.message_hash not in hashes(world.messages)


@pytest.mark.parametrize("timestamp_ns", [1, NOW_NS + 86_400 * SECOND_NS])
def test_a_message_of_another_time(timestamp_ns: int) -> None:
    wrong = stored(1, timestamp_ns)
    world, end = beside_an_honest_one(other_page(wrong))
    assert (end.end, end.reason) == (End.FAULTED, "store_entry_outside_window")
    assert wrong.message_hash not in hashes(world.messages)


def test_a_message_that_nobody_looked_up() -> None:
    wanted = ByHash(hashes=(MESSAGES[0].message_hash,))
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Page(messages=(MESSAGES[1],)))
    world = run_query(wanted, {ONE: bad, TWO: ModelStore(MESSAGES)})
    assert hashes(world.messages) == {MESSAGES[0].message_hash}
    assert world.ended().notes[0].reason == "store_entry_unasked"


def test_an_older_store_that_reads_over_times_is_no_liar() -> None:
    old = ModelStore(MESSAGES, versions=(StoreVersion.V2,), reads_times=False)
    wanted = MESSAGES[550:560]
    world = run_query(window_of(wanted), {ONE: old})
    assert hashes(world.messages) == hashes(wanted)
    assert world.ended().end is End.COMPLETE
    assert world.ended().notes[0].statistics.messages == 10


def test_an_older_store_that_repeats_other_times_for_ever_is_left() -> None:
    other = tuple(MESSAGES[:100])
    bad = Wrapped(MESSAGES, lambda n, _r, _o: Page(messages=other, cursor=index(n)))
    bad.versions = (StoreVersion.V2,)
    ended = run_query(window_of(MESSAGES[550:560]), {ONE: bad}).ended()
    assert ended.end is End.NOTHING_NEW
    assert len(bad.requests) == 2 + CONFIG.max_stale_pages, "one in the other version, one new"


def index(number: int) -> HistoryIndex:
    return HistoryIndex(
        digest=fresh_cursor(number),
        receiver_time_ns=number,
        sender_time_ns=number,
        pubsub_topic=MESSAGES[0].pubsub_topic,
    )


def test_a_page_that_is_always_too_large() -> None:
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.TOO_LARGE))
    _, end = beside_an_honest_one(bad)
    assert (end.end, end.reason) == (End.FAULTED, "frame_oversized")
    assert [limit_of(request) for request in bad.requests] == [100, 50, 25, 12, 6, 3, 1]


@pytest.mark.parametrize("reason", ["history_page_too_long", "store_response_malformed"])
def test_an_answer_that_breaks_the_protocol(reason: str) -> None:
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.BROKEN, reason))
    _, end = beside_an_honest_one(bad)
    assert (end.end, end.reason) == (End.FAULTED, reason)
    assert len(bad.requests) == 1


def test_a_store_that_does_not_answer_is_left_at_its_deadline() -> None:
    bad = ModelStore(MESSAGES)
    bad.rtt_ms = 10**9
    world = ask_stores(WINDOW, {ONE: bad, TWO: ModelStore(MESSAGES)})
    started_ms = world.now_ms
    ask = world.asked[0][1]
    assert (ask.first_byte_timeout_ms, ask.timeout_ms) == (10_000, 30_000)
    while world.machine.next_deadline() is not None:
        world.step()
    assert hashes(world.messages) == hashes(MESSAGES)
    assert world.now_ms - started_ms == 30_000
    end = next(e for e in world.events if isinstance(e, StoreEnded) and e.store == ONE)
    assert end.end is End.TIMEOUT
    assert ask.ask_id in world.transitions[-1].abandoned


def test_a_first_byte_that_is_late_leaves_a_store_that_never_answered() -> None:
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.TIMEOUT))
    _, end = beside_an_honest_one(bad)
    assert end.end is End.TIMEOUT
    assert len(bad.requests) == 1


def test_a_store_that_dawdles_for_ever_ends_with_its_time() -> None:
    bad = Endless(MESSAGES, invents=lambda n: stored(10_000 + n, NOW_NS - SECOND_NS))
    bad.rtt_ms = 29_000
    _, end = beside_an_honest_one(bad)
    assert end.end is End.TIMEOUT
    assert len(bad.requests) <= 1 + CONFIG.query_timeout_ms // 29_000


def test_a_faulty_stores_place_is_taken_by_the_next_in_order() -> None:
    four = StoreRef("four")
    five = StoreRef("five")
    bad = Wrapped(MESSAGES, lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))
    stores = {
        ONE: ModelStore(without_some(MESSAGES)),
        TWO: bad,
        THREE: ModelStore(without_some(MESSAGES)),
        four: ModelStore(MESSAGES),
        five: ModelStore(MESSAGES),
    }
    world = run_query(WINDOW, stores)
    assert hashes(world.messages) == hashes(MESSAGES)
    assert stores[four].requests
    assert not stores[five].requests, "three are enough"


def test_a_list_of_bad_stores_is_not_followed_for_ever() -> None:
    stores: dict[StoreRef, ModelStore] = {
        StoreRef(f"bad {n}"): Wrapped([], lambda _n, _r, _o: Failed(FailureKind.BROKEN, "broken"))
        for n in range(20)
    }
    ended = run_query(WINDOW, stores).ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "broken")
    assert sum(bool(store.requests) for store in stores.values()) == CONFIG.max_stores
    assert ended.reached_ns == WINDOW.start_ns


def test_what_a_faulty_store_claims_to_have_reached_counts_for_nothing() -> None:
    """It goes straight to the end and lies there: next time the window begins at its start."""
    last = (*MESSAGES[:1], MESSAGES[-1])
    bad = Wrapped(
        MESSAGES,
        lambda _n, _r, _o: Page(
            messages=last, refused=("store_hash_mismatch",), cursor=fresh_cursor(1)
        ),
    )
    assert run_query(WINDOW, {ONE: bad}).ended().reached_ns == WINDOW.start_ns
