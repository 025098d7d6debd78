"""The study's plots and its page: medians over the seeds, with the lowest and highest as a band."""

import csv
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Final, TypeAlias

from pipeline.report.svg import Chart, Line, svg

Row: TypeAlias = Mapping[str, object]
COMMAND: Final = "causerie-pipeline simulate --study --large --out docs/study"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """``unit``: what the figure is divided by."""

    file: str
    sweep: str
    title: str
    x: str
    x_text: str
    ys: Sequence[tuple[str, str]]
    """(column, text)"""
    y_text: str
    line: Callable[[Row], str] = lambda _row: ""
    unit: float = 1.0
    x_unit: float = 1.0
    log_x: bool = False
    log_y: bool = False


def _mode(row: Row) -> str:
    if row["config"] == "reference":
        return f"{row['mode']}, reference's back-off"
    return "ours, hints and Store copies" if row["presence"] else "ours, neither"


def _config(row: Row) -> str:
    return "js-waku's defaults" if row["config"] == "reference" else "ours"


_TIMES: Final = [("delivery_p50_ms", "delivered, p50"), ("delivery_p95_ms", "delivered, p95"),
                 ("ack_p95_ms", "acknowledged, p95")]  # fmt: skip
PLOTS: Final = (
    Plot(file="mvds-bandwidth", sweep="mvds-offline", title="MVDS: bandwidth", x="offline",
         x_text="share of the time that each is offline", ys=[("bytes_per_message", "")],
         y_text="bytes on the wire per message of 1 000", line=_mode, log_y=True),
    Plot(file="mvds-latency-p50", sweep="mvds-offline", title="MVDS: latency, median", x="offline",
         x_text="share of the time that each is offline", ys=[("delivery_p50_ms", "")],
         y_text="seconds to delivery", line=_mode, unit=1_000, log_y=True),
    Plot(file="mvds-latency-p95", sweep="mvds-offline", title="MVDS: latency, 95th percentile",
         x="offline", x_text="share of the time that each is offline",
         ys=[("delivery_p95_ms", "")], y_text="seconds to delivery", line=_mode, unit=1_000,
         log_y=True),
    Plot(file="sds-loss-delivery", sweep="sds-loss", title="SDS, 8 members: delivery", x="loss",
         x_text="share of copies lost, at each receiver",
         ys=[("delivery_p95_ms", "delivered, p95")], y_text="seconds", line=_config, unit=1_000,
         log_y=True),
    Plot(file="sds-loss-acks", sweep="sds-loss", title="SDS, 8 members: acknowledgement", x="loss",
         x_text="share of copies lost, at each receiver", ys=[("ack_p95_ms", "acknowledged, p95")],
         y_text="seconds", line=_config, unit=1_000, log_y=True),
    Plot(file="sds-loss-overhead", sweep="sds-loss", title="SDS, 8 members: bandwidth", x="loss",
         x_text="share of copies lost, at each receiver", ys=[("bytes_per_message", "")],
         y_text="bytes broadcast per message of 200", line=_config, log_y=True),
    Plot(file="sds-size-times", sweep="sds-size", title="SDS, a tenth lost: group size",
         x="members", x_text="members", ys=_TIMES, y_text="seconds", unit=1_000, log_x=True,
         log_y=True),
    Plot(file="sds-size-overhead", sweep="sds-size", title="SDS, a tenth lost: bandwidth",
         x="members", x_text="members", ys=[("bytes_per_message", "bytes per message")],
         y_text="bytes broadcast per message of 200", log_x=True, log_y=True),
    Plot(file="sds-crowd", sweep="sds-crowd", title="SDS, crowds, 30 s after the last message",
         x="members", x_text="members, a tenth lost",
         ys=[("delivered_share", "delivered"), ("acked_share", "acknowledged")],
         y_text="share of messages and members", log_x=True),
    Plot(file="sds-crowd-overhead", sweep="sds-crowd", title="SDS, crowds: bandwidth",
         x="members", x_text="members, a tenth lost",
         ys=[("bytes_per_message", "bytes per message")],
         y_text="bytes broadcast per message of 200", log_x=True, log_y=True),
    Plot(file="sds-history", sweep="sds-history", title="SDS, 24 members, a fifth lost: history",
         x="history", x_text="entries of the causal history", ys=_TIMES, y_text="seconds",
         unit=1_000, log_x=True),
    Plot(file="sds-history-overhead", sweep="sds-history",
         title="SDS, 24 members, a fifth lost: bandwidth", x="history",
         x_text="entries of the causal history", ys=[("bytes_per_message", "bytes per message")],
         y_text="bytes broadcast per message of 200", log_x=True),
    Plot(file="sds-bloom", sweep="sds-bloom", title="SDS, open channel of 8, a fifth lost: filter",
         x="bloom_capacity", x_text="ids that the filter is made for",
         ys=[("bytes_per_message", "bytes per message")],
         y_text="bytes broadcast per message of 200", log_x=True),
    Plot(file="sds-sync", sweep="sds-sync", title="SDS, 24 members, a fifth lost: sync interval",
         x="sync_interval_ms", x_text="seconds", ys=_TIMES, y_text="seconds", unit=1_000,
         x_unit=1_000),
    Plot(file="sds-sync-overhead", sweep="sds-sync",
         title="SDS, 24 members, a fifth lost: bandwidth", x="sync_interval_ms", x_text="seconds",
         ys=[("bytes_per_message", "bytes per message")],
         y_text="bytes broadcast per message of 200", x_unit=1_000),
)  # fmt: skip


def number_of(value: object) -> float:
    return float(value) if isinstance(value, int | float) else inf


def series(plot: Plot, rows: Sequence[Row]) -> list[Line]:
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row["sweep"] == plot.sweep:
            for column, text in plot.ys:
                name = ", ".join(filter(None, [plot.line(row), text]))
                at = number_of(row[plot.x]) / plot.x_unit
                value = number_of(row[column]) / plot.unit
                found.setdefault(name, {}).setdefault(at, []).append(value)
    return [
        Line(
            name,
            [
                (at, statistics.median(values), min(values), max(values))
                for at, values in sorted(points.items())
            ],
        )
        for name, points in found.items()
    ]


def draw(rows: Sequence[Row], place: Path) -> list[tuple[Plot, list[Line]]]:
    """Each plot as a file of its own below ``place``."""
    place.mkdir(parents=True, exist_ok=True)
    drawn = []
    for plot in PLOTS:
        lines = series(plot, rows)
        if lines:
            chart = Chart(
                title=plot.title,
                x=plot.x_text,
                y=plot.y_text,
                lines=lines,
                log_x=plot.log_x,
                log_y=plot.log_y,
            )
            (place / f"{plot.file}.svg").write_text(svg(chart), encoding="utf-8")
            drawn.append((plot, lines))
    return drawn


def write_csv(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def write_figures(
    drawn: Sequence[tuple[Plot, list[Line]]], rows: Sequence[Row], path: Path
) -> None:
    """A page with every plot and its numbers."""
    seeds = sorted({int(number_of(row["seed"])) for row in rows})
    text = [
        "# Figures of the study",
        "",
        f"Made by `{COMMAND}`, of {len(rows)} runs with the seeds {seeds[0]} to {seeds[-1]};",
        "every run, with all its parameters and figures, is a row of [runs.csv](runs.csv). Numbers",
        "are medians over the seeds, lowest and highest in brackets where they differ.",
        "`never`: not within the run.",
    ]
    for plot, lines in drawn:
        text += ["", f"## {plot.title}", "", f"![{plot.title}]({plot.file}.svg)", ""]
        text += [f"{plot.y_text}, by {plot.x_text}:", ""]
        text.append("| | " + " | ".join(line.name or "value" for line in lines) + " |")
        text.append("| --- |" + " --- |" * len(lines))
        columns = [{point[0]: point for point in line.points} for line in lines]
        for at in sorted({at for column in columns for at in column}):
            cells = [_cell(column.get(at)) for column in columns]
            text.append(f"| {at:g} | " + " | ".join(cells) + " |")
    path.write_text("\n".join([*text, ""]), encoding="utf-8")


def _cell(point: tuple[float, float, float, float] | None) -> str:
    if point is None:
        return ""
    _, middle, low, high = point
    if low == high:
        return _short(middle)
    return f"{_short(middle)} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    if not isfinite(value):
        return "never"
    return f"{value:,.0f}".replace(",", " ") if value >= 1_000 else f"{value:.3g}"  # noqa: PLR2004 - digits
