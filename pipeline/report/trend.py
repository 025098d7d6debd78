"""What earlier runs into the same ``--out`` found, so that a page shows which way it goes.

A line is added to ``trend.csv`` for each report; a line that cannot be read is left out, and only
the newest are shown.
"""

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

FILE: Final = "trend.csv"
MOST: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """None: not known.  Infinite: never."""

    made_ms: int
    logs: int
    differing: int
    missing: int
    delivery_p95_ms: float | None = None
    ack_p95_ms: float | None = None
    bytes_per_message: float | None = None


def add(place: Path, run: Run) -> list[Run]:
    """All runs that are remembered, the newest last: this one."""
    path = place / FILE
    is_new = not path.exists()
    place.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        if is_new:
            out.writerow(field.name for field in fields(Run))
        out.writerow("" if value is None else value for value in asdict(run).values())
    return read(place)


def read(place: Path) -> list[Run]:
    try:
        with (place / FILE).open(encoding="utf-8", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))[-MOST:]
    except (OSError, csv.Error):
        return []
    return [run for row in rows if (run := _run(row)) is not None]


def _run(row: Mapping[str, str | None]) -> Run | None:
    try:
        return Run(
            made_ms=int(row["made_ms"] or ""),
            logs=int(row["logs"] or ""),
            differing=int(row["differing"] or ""),
            missing=int(row["missing"] or ""),
            delivery_p95_ms=_number(row.get("delivery_p95_ms")),
            ack_p95_ms=_number(row.get("ack_p95_ms")),
            bytes_per_message=_number(row.get("bytes_per_message")),
        )
    except (KeyError, ValueError):
        return None


def _number(text: str | None) -> float | None:
    return float(text) if text else None
