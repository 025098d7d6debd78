"""From silver tables to files: every table of figures as Parquet and CSV, and the page.

A table is written first and read again for the page, so that nothing is counted twice.
"""

import csv
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from math import isfinite
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.metrics.compute import Silver, metrics
from pipeline.metrics.figures import ALL
from pipeline.report.compare import FEW_BLOCKS, Difference, Sample
from pipeline.report.content import Content, Row, curves, grouped
from pipeline.report.live import write_whole
from pipeline.report.page import ms_text, page, share_text
from pipeline.summary import Summary

TABLES: Final = "tables"
MOST_REFUSED: Final = 50
MOST_CLOCKS: Final = 50


def write_tables(
    spark: SparkSession, silver: Silver, place: Path, more: Mapping[str, DataFrame] | None = None
) -> dict[str, DataFrame]:
    """Figures and ``more`` below ``place``, whole or not at all; what is read again from there."""
    waiting = place.with_name(f".{place.name}")
    shutil.rmtree(waiting, ignore_errors=True)
    found = metrics(silver)
    tables = {**found.tables, **(more or {})}
    try:
        for name, table in tables.items():
            table.coalesce(1).write.parquet(str(waiting / name))
    finally:
        found.release()
    for name, table in tables.items():
        written = spark.read.schema(table.schema).parquet(str(waiting / name))
        write_csv(written, waiting / f"{name}.csv")
    shutil.rmtree(place, ignore_errors=True)
    waiting.rename(place)
    return {
        name: spark.read.schema(table.schema).parquet(str(place / name))
        for name, table in tables.items()
    }


def write_csv(table: DataFrame, path: Path) -> None:
    """Row by row, in the order of its first columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(table.columns)
        out.writerows(tuple(row) for row in table.orderBy(*table.columns[:4]).toLocalIterator())


def content_of(
    tables: Mapping[str, DataFrame], summary: Summary, refused: DataFrame, *, now_ms: int
) -> Content:
    clocks = tables["clock"].where("corrected").orderBy(F.desc(F.abs("offset_ms")), "sender")
    unread = refused.groupBy("table", "file", "reason").agg(F.sum("rows").alias("rows"))
    when = datetime.fromtimestamp(now_ms / 1_000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    logs = summary.total
    return Content(
        title="Delivery report",
        made=f"{logs} log{'' if logs == 1 else 's'} of participants in channels, {when}",
        summary=summary,
        groups=grouped(tables),
        curves=curves(tables["histogram"]),
        false_acks=_rows(tables["false_acks"].orderBy("ack_source", "filters")),
        clocks=_rows(clocks.limit(MOST_CLOCKS)),
        quarantine=_rows(unread.orderBy(F.desc("rows"), "file").limit(MOST_REFUSED)),
    )


def write_page(content: Content, path: Path) -> None:
    write_whole(path, page(content))


def _rows(table: DataFrame) -> list[Row]:
    return [row.asDict() for row in table.collect()]


# --- two against each other -----------------------------------------------------------------------


def sample_of(name: str, histogram: DataFrame) -> Sample:
    """At most so many rows as there are blocks and buckets."""
    pairs: dict[str, dict[tuple[int, int], int]] = {}
    for row in histogram.where(F.col("dimension") == ALL).collect():
        figure = pairs.setdefault(row["figure"], {})
        figure[row["block"], row["bucket"]] = row["pairs"]
    return Sample(name=name, pairs=pairs)


CLOSED: Final = (
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src"
    " 'unsafe-inline'\">"
)
"""Nothing is fetched and nothing runs."""
_STYLE: Final = """
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:980px;
margin:28px auto;padding:0 20px}table{border-collapse:collapse;width:100%;
font-variant-numeric:tabular-nums}th,td{text-align:right;padding:7px 12px;
border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}
th:first-child,td:first-child{text-align:left}.w{opacity:.7}b{font-weight:650}
div{overflow-x:auto}.n{color:light-dark(#b3261e,#ff8a80)}
"""


def comparison_page(a: str, b: str, found: Sequence[Difference]) -> str:
    clear = [one for one in found if one.is_clear]
    heading = "No clear difference" if found else "There is nothing to compare"
    if clear:
        heading = f"{len(clear)} of {len(found)} figures clearly differ"
    few = [one for one in found if min(one.blocks) < FEW_BLOCKS]
    note = (
        f"There are fewer than {FEW_BLOCKS} blocks (channel and hour) on one side: these intervals"
        " say little."
        if few
        else ""
    )
    lines = "".join(map(_comparison_line, found))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>{CLOSED}"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{escape(heading)}</title><style>{_STYLE}</style><h1>{escape(heading)}</h1>"
        f"<p class=w>A: {escape(a)}<br>B: {escape(b)}</p><p>{note}</p>"
        "<div><table><tr><th>figure</th><th>A</th><th>B</th><th>B less A, 95 % interval</th>"
        "<th>clear</th><th>blocks A, B</th></tr>"
        f"{lines}</table></div><p class=w>Intervals: 1 000 block bootstraps from a fixed seed;"
        " times are exact to 5 %.</p></html>"
    )


def _comparison_line(one: Difference) -> str:
    show = share_text if one.unit == "share" else ms_text
    interval = f"{_signed(one.low, one.unit)} to {_signed(one.high, one.unit)}"
    clear = "no"
    if one.is_clear:
        clear = "<b>B is better</b>" if (one.low > 0) is (one.unit == "share") else _WORSE
    return (
        f"<tr><td>{escape(one.figure)}</td><td>{show(one.a)}</td><td>{show(one.b)}</td>"
        f"<td>{interval}</td><td>{clear}</td><td>{one.blocks[0]}, {one.blocks[1]}</td></tr>"
    )


_WORSE: Final = "<b class=n>B is worse</b>"


def _signed(value: float, unit: str) -> str:
    """Of shares in percentage points; without end where one side never came."""
    sign = "\u2212" if value < 0 else "+" if value > 0 else ""
    if not isfinite(value):
        return f"{sign}\u221e"
    return sign + (f"{100 * abs(value):.3g} points" if unit == "share" else ms_text(abs(value)))


def comparison_rows(found: Iterable[Difference]) -> list[tuple[object, ...]]:
    """For CSV."""
    head = ("figure", "unit", "a", "b", "low", "high", "clear", "blocks_a", "blocks_b")
    return [
        head,
        *(
            (one.figure, one.unit, one.a, one.b, one.low, one.high, one.is_clear, *one.blocks)
            for one in found
        ),
    ]
