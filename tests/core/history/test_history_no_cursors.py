"""A Store that knows none of its cursors: paged by time, and found out where a time is too full."""

from collections.abc import Iterator
from itertools import count

import pytest

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import Purpose, SaveProgress
from engine.core.history.queries import (
    Advanced,
    Covered,
    End,
    Fetched,
    GaveUp,
    HistoryMessage,
    StoreVersion,
    WindowWanted,
)
from engine.core.ids import UnixMs
from tests.core.history.history_model import (
    NOW_MS,
    NOW_NS,
    ONE,
    SECOND_NS,
    TWO,
    Forgets,
    ModelStore,
    Request,
    hashes,
    stored,
    times_of,
    window_of,
)
from tests.core.history.history_world import run_query, world_of

DAY_MS = 24 * 3_600_000
FLOOD_NS = NOW_NS - 1_000 * SECOND_NS
"""When more was said than a page holds."""


class Coarse(Forgets):
    """Its times are seconds."""

    def matches(self, request: Request) -> Iterator[HistoryMessage]:
        start_ns, end_ns = times_of(request)
        first, last = (start_ns or 0) // SECOND_NS, (end_ns or NOW_NS) // SECOND_NS
        for item in self.messages:
            if first <= (item.message.timestamp_ns or 0) // SECOND_NS <= last:
                yield item


def around(flood: int) -> tuple[list[HistoryMessage], list[HistoryMessage]]:
    """What was said besides, and the flood in its middle."""
    numbers = count(1)
    before = [stored(next(numbers), FLOOD_NS - back * SECOND_NS // 4) for back in range(1, 251)]
    after = [stored(next(numbers), FLOOD_NS + ahead * SECOND_NS // 4) for ahead in range(1, 251)]
    return [*before, *after], [stored(next(numbers), FLOOD_NS) for _ in range(flood)]


@pytest.mark.parametrize("versions", [(StoreVersion.V3,), (StoreVersion.V2,)])
def test_what_is_around_a_flood_comes_and_the_store_never_counts_as_complete(
    versions: tuple[StoreVersion, ...],
) -> None:
    others, flood = around(350)
    store = Forgets([*others, *flood], versions=versions)
    world = run_query(window_of(others), {ONE: store})
    assert hashes(others) <= hashes(world.messages)
    assert len(world.messages) == len(hashes(world.messages)), "each once"
    assert 100 <= len(hashes(world.messages) & hashes(flood)) < len(flood)
    ended = world.ended()
    assert (ended.end, ended.reason) == (End.FAULTED, "store_cursor_unknown")
    (note,) = ended.notes
    assert (note.end, note.reason) == (End.FAULTED, "store_cursor_unknown")
    reached = [event.reached_ns for event in world.events if isinstance(event, Advanced)]
    assert all(at <= FLOOD_NS for at in reached)


def test_two_floods_are_both_left_behind() -> None:
    others, flood = around(350)
    second_ns = FLOOD_NS + 30 * SECOND_NS + 1
    second = [stored(10_000 + number, second_ns) for number in range(350)]
    store = Forgets([*others, *flood, *second])
    world = run_query(window_of(others), {ONE: store})
    assert hashes(others) <= hashes(world.messages)
    assert world.ended().reason == "store_cursor_unknown"
    assert len(store.requests) < 60


def test_a_flood_that_a_store_cannot_leave_behind_ends_it() -> None:
    others, flood = around(350)
    store = Coarse([*others, *flood])
    world = run_query(window_of(others), {ONE: store})
    assert hashes(others) & hashes(world.messages), "what was said before"
    assert world.ended().reason == "store_cursor_unknown"
    assert len(store.requests) < 30


@pytest.mark.parametrize("flood", [40, 99])
def test_as_many_as_a_page_holds_are_no_flood(flood: int) -> None:
    others, few = around(flood)
    world = run_query(window_of(others), {ONE: Forgets([*others, *few])})
    assert hashes(world.messages) == hashes([*others, *few])
    assert world.ended().end is End.COMPLETE


def test_the_next_store_is_asked_and_gives_what_lacks() -> None:
    others, flood = around(350)
    everything = [*others, *flood]
    stores = {ONE: Forgets(everything), TWO: ModelStore(everything)}
    world = run_query(window_of(others), stores, config=HistoryConfig(window_stores=1))
    assert hashes(world.messages) == hashes(everything)
    assert len(world.messages) == len(everything), "each once"
    ended = world.ended()
    assert ended.end is End.COMPLETE
    assert [(note.store, note.end, note.reason) for note in ended.notes] == [
        (ONE, End.FAULTED, "store_cursor_unknown"),
        (TWO, End.COMPLETE, ""),
    ]


@pytest.mark.parametrize("max_pages", [8, 12, 2_000])
def test_what_is_durable_never_passes_what_was_skipped(max_pages: int) -> None:
    """Whoever is killed then, or comes to the end of the pages, asks for it again."""
    others, flood = around(350)
    everything = [*others, *flood]
    world = world_of({ONE: Forgets(everything)}, config=HistoryConfig(max_pages=max_pages))
    world.tell(WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW_MS - DAY_MS)))
    world.run()
    saved = [
        write.progress
        for transition in world.transitions
        for write in transition.writes
        if isinstance(write, SaveProgress)
    ]
    assert max(progress.reached_ns for progress in saved) <= FLOOD_NS
    assert any(isinstance(event, GaveUp) for event in world.events)
    assert not any(isinstance(event, Covered) for event in world.events)
    most = max(
        (item.message.timestamp_ns or 0)
        for event in world.events
        if isinstance(event, Fetched)
        for item in event.messages
    )
    assert most > FLOOD_NS, "though what follows was fetched"
    again = world_of({TWO: ModelStore(everything)}, progress=saved[-1:])
    again.run()
    assert hashes(everything) <= hashes([*world.messages, *again.messages])
    assert any(isinstance(event, Covered) for event in again.events)
