"""The study's plots and its page: medians over the seeds, with the lowest and highest as a band."""

import csv
import statistics
from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Final

from pipeline.report.svg import Chart, Line, svg
from pipeline.simulate.plot_list import PLOTS, Plot, Row

COMMAND: Final = "causerie-pipeline simulate --study --large --seeds 10 --out docs/study"


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
                subtitle=plot.about,
                x=plot.x_text,
                y=plot.y_text,
                lines=lines,
                marks=plot.marks,
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
        text += [f"{plot.about}. {plot.y_text}, by {plot.x_text}:", ""]
        text.append("| | " + " | ".join(line.name or "value" for line in lines) + " |")
        text.append("| --- |" + " --- |" * len(lines))
        columns = [{point[0]: point for point in line.points} for line in lines]
        for at in sorted({at for column in columns for at in column}):
            cells = [_cell(column.get(at)) for column in columns]
            text.append(f"| {at:g} | " + " | ".join(cells) + " |")
        text += [""] if plot.marks else []
        text += [f"- {mark.name}, at {mark.x:g}" for mark in plot.marks]
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
