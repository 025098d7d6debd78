"""The pages from figures, verdicts and witnesses: a report, and two inputs against each other."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from math import isfinite
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.metrics.figures import ALL
from pipeline.report import trend
from pipeline.report.compare import FEW_BLOCKS, Difference, Sample
from pipeline.report.content import Content, Row, curves, grouped
from pipeline.report.live import write_whole
from pipeline.report.numbers import ms_text, share_text
from pipeline.report.page import page
from pipeline.report.tables import Written
from pipeline.report.trend import Run
from pipeline.summary import Summary

MOST_REFUSED: Final = 50
MOST_PARTS: Final = 200
MOST_CLOCKS: Final = 50


def content_of(written: Written, summary: Summary, refused: DataFrame, *, now_ms: int) -> Content:
    """What follows from the tables."""
    figures = written.figures
    clocks = [row for row in figures["clock"] if row["corrected"]]
    clocks.sort(key=lambda row: -abs(_float(row["offset_ms"]) or 0))
    unread = refused.groupBy("table", "file", "reason").agg(F.sum("rows").alias("rows"))
    when = datetime.fromtimestamp(now_ms / 1_000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    logs = summary.total
    return Content(
        title="Delivery report",
        made=f"{logs} log{'' if logs == 1 else 's'} of participants in channels, {when}",
        summary=summary,
        groups=grouped(figures),
        curves=curves(figures["histogram"]),
        false_acks=figures["false_acks"],
        clocks=clocks[:MOST_CLOCKS],
        quarantine=[
            row.asDict()
            for row in unread.orderBy(F.desc("rows"), "file").limit(MOST_REFUSED).collect()
        ],
        sums=_sums(written.audit["verdicts"]),
        links=sorted(figures["links"], key=_worst_link),
        activity=figures["activity"][:MOST_PARTS],
    )


def _worst_link(row: Row) -> tuple[float, float]:
    return -(_float(row["loss"]) or 0.0), -(_float(row["delivery_p95_ms"]) or 0.0)


def with_trend(content: Content, place: Path, *, now_ms: int) -> Content:
    """Remember this report in ``place``, beside those before."""
    delivery, acks, cost = (content.total(name) for name in ("delivery", "acks", "cost"))
    run = Run(
        made_ms=now_ms,
        logs=content.summary.total,
        differing=content.summary.differing,
        missing=content.missing or 0,
        delivery_p95_ms=_float(delivery.get("delivery_p95_ms")),
        ack_p95_ms=_float(acks.get("ack_p95_ms")),
        bytes_per_message=_float(cost.get("bytes_per_message")),
    )
    return replace(content, runs=trend.add(place, run))


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _sums(verdicts: DataFrame) -> dict[str, int]:
    names = [name for name in ("expected", "missing") if name in verdicts.columns]
    (row,) = verdicts.agg(*(F.sum(name).alias(name) for name in names)).collect()
    return {name: row[name] or 0 for name in names}


def write_page(content: Content, path: Path) -> None:
    write_whole(path, page(content))


# --- two against each other -----------------------------------------------------------------------


def sample_of(name: str, histogram: Iterable[Row]) -> Sample:
    """At most so many rows as there are blocks and buckets."""
    pairs: dict[str, dict[tuple[int, int], int]] = {}
    for row in histogram:
        if row["dimension"] == ALL:
            figure = pairs.setdefault(str(row["figure"]), {})
            block, bucket, count = (row[name] for name in ("block", "bucket", "pairs"))
            if isinstance(block, int) and isinstance(bucket, int) and isinstance(count, int):
                figure[block, bucket] = count
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
th:first-child{text-align:left}caption{text-align:left;opacity:.7}.w{opacity:.7}b{font-weight:650}
div{overflow-x:auto}.n{color:light-dark(#b3261e,#ff8a80)}
"""


_HEADS: Final = "".join(
    f"<th scope=col>{head}</th>"
    for head in ("figure", "A", "B", "B less A, 95 % interval", "clear", "blocks A, B")
)


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
        f"<div><table><caption>Figures of A and B</caption><thead><tr>{_HEADS}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
        "<p class=w>Intervals: 1 000 block bootstraps from a fixed seed; times are exact to"
        " 5 %.</p></html>"
    )


def _comparison_line(one: Difference) -> str:
    show = share_text if one.unit == "share" else ms_text
    interval = f"{_signed(one.low, one.unit)} to {_signed(one.high, one.unit)}"
    clear = "no"
    if one.is_clear:
        clear = "<b>B is better</b>" if (one.low > 0) is (one.unit == "share") else _WORSE
    return (
        f"<tr><th scope=row>{escape(one.figure)}</th><td>{show(one.a)}</td><td>{show(one.b)}</td>"
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
