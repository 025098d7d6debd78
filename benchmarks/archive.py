"""What a Store's archive takes in, and what a page costs, where every message has its own topic.

That is the worst that outsiders can make of it.  A page is asked for in both versions of the
protocol, from the beginning and from a cursor late in a range of time; then the archive is full and
takes in as much again.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.report import Figure, Report
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku_archive import ArchivedMessage, ArchiveQuery, Source
from engine.persistence.archive import Retention, SqliteArchive
from engine.persistence.archive_pages import ArchiveReader

COUNT: Final = 300_000
QUICK_COUNT: Final = 30_000
ASKED_TIMES: Final = 21
BATCH: Final = 500
MESSAGE_BYTES: Final = 1_000
NOW_NS: Final = 1_800_000_000 * 10**9
SHARD: Final = PubsubTopic("/waku/2/rs/42/0")
OURS: Final = ContentTopic("/causerie/1/ours/proto")
PAGE_BAR_MS: Final = 5.0


def run(quick: bool) -> Report:
    count = QUICK_COUNT if quick else COUNT
    report = Report(name="archive")
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        path = Path(place) / "archive.db"
        archive = SqliteArchive.open(path, Retention(max_bytes=0))
        report.figures.append(_taken_in("messages taken in", archive, 0, count))
        reader = ArchiveReader.open(path)
        for name, query in _queries(reader, count).items():
            report.figures.append(_asked(name, reader, query))
        reader.close()
        report.notes.append(f"{count} messages, almost all of a topic of their own")
        full = archive.statistics().used_bytes
        archive.close()
        archive = SqliteArchive.open(path, Retention(max_bytes=full))
        report.figures.append(_taken_in("… by a full archive", archive, count, count // 4))
        archive.close()
    return report


def _taken_in(name: str, archive: SqliteArchive, first: int, count: int) -> Figure:
    began = time.perf_counter()
    for begin in range(first, first + count, BATCH):
        archive.append([_message(n) for n in range(begin, begin + BATCH)], now_ns=NOW_NS)
    rate = count / (time.perf_counter() - began)
    return Figure(figure=name, value=rate, unit="per s", spread=(rate, rate))


def _queries(reader: ArchiveReader, count: int) -> dict[str, ArchiveQuery]:
    legacy = ArchiveQuery(
        by_digest=True, pubsub_topic=SHARD, forward=True, limit=100, max_bytes=2**22
    )
    topic = replace(legacy, by_digest=False, content_topics=(OURS,))
    late_ns = NOW_NS + count * 9 // 10
    found = reader.query(replace(legacy, time_start_ns=late_ns, limit=1), deadline_s=float("inf"))
    late = replace(
        legacy,
        cursor=found.page.rows[0].index,
        time_start_ns=NOW_NS,
        time_end_ns=NOW_NS + count,
    )
    return {
        "a page of a shard, 2.0.0-beta4": legacy,
        "… late in a range of time": late,
        "a page of a topic, 3.0.0": topic,
    }


def _asked(name: str, reader: ArchiveReader, query: ArchiveQuery) -> Figure:
    took_ms: list[float] = []
    for _ in range(ASKED_TIMES):
        began = time.perf_counter()
        reader.query(query, deadline_s=float("inf"))
        took_ms.append((time.perf_counter() - began) * 1_000)
    return Figure(
        figure=name,
        value=statistics.median(took_ms),
        unit="ms",
        spread=(min(took_ms), max(took_ms)),
        bar=PAGE_BAR_MS,
    )


def _message(number: int) -> ArchivedMessage:
    """One in a hundred is of one topic, each other of its own."""
    topic = OURS if number % 100 == 0 else ContentTopic(f"/causerie/1/{number}/proto")
    return ArchivedMessage(
        message_hash=WakuHash((number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "big") * 4),
        pubsub_topic=SHARD,
        content_topic=topic,
        timestamp_ns=NOW_NS + number,
        digest=(number * 0xC2B2AE3D27D4EB4F % 2**64).to_bytes(8, "big") * 4,
        data=bytes(MESSAGE_BYTES),
        source=Source(f"network {number % 7}", f"peer {number % 50}"),
    )
