"""What recording deliveries costs: on the way of a message, and in rows that the disk takes.

Rounds with and without take turns, so that what else the machine does meets both alike; the figure
is the ratio of the medians of all messages.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.e2e import one_round
from benchmarks.report import Figure, Report
from engine.delivery.log_writer import Limits, LogWriter, Owner
from engine.delivery.rows import EventRow, Rows
from engine.delivery.sqlite_log import LogReader

SLOWER_BAR = 1.05
MESSAGES = 200
QUICK = 60
ROUNDS = 4
ROWS = 200_000
BATCH = 1_000


def run(quick: bool) -> Report:
    report = Report(name="delivery")
    count = QUICK if quick else MESSAGES
    ratios: list[float] = []
    plain: list[float] = []
    recorded: list[float] = []
    for _ in range(1 if quick else ROUNDS):
        one = one_round(count, "")
        other = one_round(count, "", record=True)
        plain += one
        recorded += other
        ratios.append(statistics.median(other) / statistics.median(one))
    report.figures.append(
        Figure(
            figure="e2e p50 while both record, against not",
            value=statistics.median(recorded) / statistics.median(plain),
            unit="times",
            spread=(min(ratios), max(ratios)),
            bar=SLOWER_BAR,
        )
    )
    written, read = _rows_per_s(ROWS // 10 if quick else ROWS)
    for name, value in (("rows written a second", written), ("rows read a second", read)):
        report.figures.append(Figure(figure=name, value=value, unit="1/s", spread=(value, value)))
    return report


def _rows_per_s(count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        writer = LogWriter(
            Path(place),
            Owner(participant="a" * 16, key_id="b" * 16, app_version="1", network="bench"),
            limits=Limits(file_bytes=2**40, total_bytes=2**41),
            now_ms=lambda: time.time_ns() // 1_000_000,
            random_bytes=os.urandom,
        )
        row = EventRow("c" * 16, "sds", "delivered", "m" * 22, 7, bytes(32), 1, 1, 1, 1, "d" * 16)
        began_s = time.perf_counter()
        for _ in range(count // BATCH):
            writer.append(Rows(events=[row] * BATCH))
        written_s = time.perf_counter() - began_s
        writer.close()
        began_s = time.perf_counter()
        with LogReader(writer.path) as log:
            read = sum(map(len, log.batches()))
        return count / written_s, read / (time.perf_counter() - began_s)
