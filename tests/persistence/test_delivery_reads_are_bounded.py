"""What delivery view and inspector read of a log: as much of a small one as of a much larger one.

SQLite counts the instructions that it executes, so nothing here depends on the machine's speed.
"""

from collections.abc import Callable

import pytest

from engine.core.ids import DeliveryState, MessageId, Position
from engine.core.ports import ProfileStore, PutGroup, StoreWrite
from engine.delivery_views import MOST_IN_PAGE
from engine.persistence.database import memory_database
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.inspection.delivery import Histories, read_channel
from engine.runtime.inspection.reading import read_sds
from tests.persistence.store_examples import (
    ALICE,
    channel,
    delivery,
    group,
    logged,
    row,
)

SIZES = [(1_000, 3_000), pytest.param((10_000, 100_000), marks=pytest.mark.long)]


def named(number: int) -> str:
    return f"m{number:07}"


class CountedLog:
    """A log of so many messages, half of them ours, and what SQLite did to read of it."""

    def __init__(self, count: int) -> None:
        self.connection = memory_database()
        self.store: ProfileStore = SqliteProfileStore(self.connection)
        self.store.apply([PutGroup(group=group())])
        for first in range(1, count + 1, 500):
            writes: list[StoreWrite] = []
            for number in range(first, min(first + 500, count + 1)):
                own = number % 2 == 0
                writes.append(channel(logged(number, named(number))))
                writes.append(row(number, named(number), is_own=own))
                if own:
                    writes.append(delivery(named(number), DeliveryState.SENT))
            self.store.apply(writes)
        self.middle = Position(count // 2, MessageId(named(count // 2)))

    def steps(self, read: Callable[[], object]) -> int:
        taken = 0

        def step() -> int:
            nonlocal taken
            taken += 1
            return 0

        self.connection.set_progress_handler(step, 10)
        try:
            read()
        finally:
            self.connection.set_progress_handler(None, 0)
        return taken

    def read(self, before: Position | None) -> int:
        facts = read_channel(
            self.store, group(), Histories(), ALICE, before=before, limit=MOST_IN_PAGE
        )
        return len(facts.placed)

    def look_into(self, place: Position) -> bool:
        facts = read_sds(self.store, group(), place.message_id)
        return facts is not None and facts.row is not None


@pytest.fixture(scope="module", params=SIZES, ids=lambda sizes: "-".join(map(str, sizes)))
def logs(request: pytest.FixtureRequest) -> tuple[CountedLog, CountedLog]:
    small, large = request.param
    return CountedLog(small), CountedLog(large)


@pytest.mark.parametrize("newest", [True, False], ids=["newest", "middle"])
def test_a_page_costs_the_same_however_long_the_log_is(
    logs: tuple[CountedLog, CountedLog], *, newest: bool
) -> None:
    small, large = (
        log.steps(lambda log=log: log.read(None if newest else log.middle))  # type: ignore[misc]
        for log in logs
    )
    assert small > MOST_IN_PAGE / 10, "it was counted"
    assert large <= small * 1.05
    assert all(log.read(None) == MOST_IN_PAGE for log in logs)


def test_looking_into_a_message_costs_the_same_however_long_the_log_is(
    logs: tuple[CountedLog, CountedLog],
) -> None:
    small, large = (log.steps(lambda log=log: log.look_into(log.middle)) for log in logs)  # type: ignore[misc]
    assert small > 1, "it was counted"
    assert large <= small * 1.05
    assert all(log.look_into(log.middle) for log in logs)
