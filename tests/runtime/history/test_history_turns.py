"""A few conversations ask Stores at a time; what the user waits for does not wait; how far back."""

import asyncio
from collections.abc import Callable

import pytest

from engine.core.history.progress import Purpose
from engine.core.ids import UnixMs
from engine.core.waku_store import StoreQueryRequest
from engine.history_views import HistoryReason, HistoryState
from engine.runtime.history.backfill import DAY_MS, Backfill
from tests.core.history.history_model import NOW_MS, ModelStore, history
from tests.patience import PATIENCE_S
from tests.runtime.history.backfill_stage import STORE, Noted, StoresOfATest, running_backfill
from tests.runtime.history.history_stage import QUICK

HOURS = 5


def at_once(backfill: Backfill) -> None:
    backfill.stores_changed((STORE,))


def while_others_are_told(backfill: Backfill) -> None:
    backfill.stores_changed(())
    backfill.stores_changed((STORE,))


@pytest.mark.parametrize("begin", [at_once, while_others_are_told])
async def test_what_the_user_wants_before_it_begins_waits_for_no_turn(
    begin: Callable[[Backfill], None],
) -> None:
    network = StoresOfATest()
    async with running_backfill(network, Noted(), free=0) as backfill, asyncio.timeout(PATIENCE_S):
        begin(backfill)
        backfill.request(Purpose.USER, UnixMs(NOW_MS - 1_000_000))
        await network.asked.wait()


def times_asked(store: ModelStore) -> list[UnixMs]:
    """From when on it was asked, each time."""
    asked = [one for one in store.requests if isinstance(one, StoreQueryRequest)]
    return [UnixMs((one.time_start_ns or 0) // 1_000_000) for one in asked]


@pytest.mark.parametrize("days", [7, None])
async def test_stores_are_not_asked_for_what_was_withheld(days: int | None) -> None:
    """By themselves, when the user asks for days or for all, and beyond the oldest row."""
    sink, store = Noted(), ModelStore(history(20, step_ns=3_600 * 10**9))
    sink.reads_since_ms = reads_since_ms = UnixMs(NOW_MS - HOURS * 3_600_000)
    sink.oldest_ms = UnixMs(reads_since_ms + 60_000)
    async with running_backfill(StoresOfATest(store), sink, config=QUICK) as backfill:
        async with asyncio.timeout(PATIENCE_S):
            backfill.stores_changed((STORE,))
            backfill.connect()
            since_ms = 0 if days is None else NOW_MS - days * DAY_MS
            backfill.request(Purpose.USER, UnixMs(since_ms))
            await backfill.durable()
            while not (backfill.view and backfill.view.is_over):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        sink.oldest_ms = reads_since_ms
        backfill.want_earlier()
        await backfill.durable()
        view = backfill.view
        assert view is not None
        assert (view.reason, view.state) == (HistoryReason.EARLIER, HistoryState.DONE)
        overlap_ms = QUICK.overlap_ns // 1_000_000
        assert min(times_asked(store)) >= reads_since_ms - overlap_ms - 1
        assert len(sink.fed) >= HOURS
