"""Letting recorded deliveries go: only those of earlier starts, and only what is a record."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from chat_app.space import WindowSpace

BEGAN_S = 1_800_000_000.0


def put(place: Path, at_s: float) -> None:
    place.write_text("x")
    os.utime(place, (at_s, at_s))


def test_only_records_of_earlier_starts_go(tmp_path: Path) -> None:
    records = tmp_path / "delivery"
    records.mkdir()
    for name in ("ab-0001.delivery.db", "ab-0001.delivery.db-wal", "invoice.pdf"):
        put(records / name, BEGAN_S - 60)
    put(records / "ab-0003.delivery.db", BEGAN_S + 60)
    # SQLite writes beside the file first: the file itself may look old while it is open.
    put(records / "ab-0002.delivery.db", BEGAN_S - 60)
    put(records / "ab-0002.delivery.db-wal", BEGAN_S + 60)

    def unused() -> None:
        raise AssertionError

    async def alone(work: Callable[[], int]) -> int:
        return work()

    space = WindowSpace(unused, records, alone, began_s=BEGAN_S)  # type: ignore[arg-type]
    asyncio.run(space.let_records_go())
    assert sorted(path.name for path in records.iterdir()) == [
        *("ab-0002.delivery.db", "ab-0002.delivery.db-wal", "ab-0003.delivery.db"),
        "invoice.pdf",
    ]
