"""A few conversations ask Stores at a time; the one that the user waits for does not wait."""

import asyncio
from collections.abc import Callable

import pytest

from engine.core.history.progress import Purpose
from engine.core.ids import UnixMs
from engine.runtime.history.backfill import Backfill
from tests.core.history.history_model import NOW_MS
from tests.patience import PATIENCE_S
from tests.runtime.history.backfill_stage import STORE, Noted, StoresOfATest, running_backfill


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
