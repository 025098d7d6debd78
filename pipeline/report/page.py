"""The report as one HTML file: nothing is fetched and nothing runs, whatever the reader's colours.

Charts are SVG and bars in tables, drawn here; every figure can be read in a table or as a title.
It refuses to know Spark: it is made from ``Content``.
"""

from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine.core.message_link import message_link
from pipeline.coverage import ENDS_EARLY, GAP, NOTHING
from pipeline.metrics.figures import ALL
from pipeline.report import charts
from pipeline.report.charts import Series, Steps
from pipeline.report.content import Content, Row
from pipeline.report.numbers import amount_text, bytes_text, ms_text, share_text, utc_text
from pipeline.report.observed import Observed, span_of
from pipeline.report.traces import MARKS, Happening, marks_of
from pipeline.summary import tried_lines
from pipeline.witness import COUNTED, Story, Witness, happened, origin, times_of, why

_PURPOSES: Final = {
    "first": "first copies",
    "again": "sent again",
    "repair": "repairs",
    "sync": "sync",
    "ephemeral": "ephemeral",
}
_WAYS: Final = ("relay", "filter", "lightpush", "repair", "store")
_DIMENSIONS: Final = {
    ALL: "All together",
    "version": "By version",
    "network": "By network",
    "channel": "Channels, the worst first",
    "participant": "Participants, the worst first",
}
_CURVES: Final = {
    "delivery": "Delivered to the other members",
    "held": "Held by everybody, by their logs",
    "ack": "Acknowledged for certain",
    "known": "Known by its sender to be held by everybody",
}
_AGAIN: Final = {
    "retransmitted": "sent again",
    "repairs_sent": "repairs",
    "by_repair": "came by repair",
    "by_store": "came from a Store",
}
_BARS: Final = (
    ("way", "on the way"),
    ("missing", "known to be missing"),
    ("waiting", "waits for what it depends on"),
    ("held", "held"),
)
"""Of a trace."""
_TROUBLE: Final = {
    "sent": "written",
    "missing": "missed",
    "lost": "given up",
    "on_purpose": "done on purpose",
}
_RARE: Final = ("early", "unconfirmed", "conflict")
MOST_PEOPLE: Final = 10
"""On either side of a heat map."""


def page(content: Content) -> str:
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            content=content,
            charts={name: Markup(drawn) for name, drawn in drawn_charts(content).items()},  # noqa: S704 - escaped there
            heat=heat_map(content.links),
            bars=_BARS,
            marks=marks_of(content.traces),
            dimensions=_DIMENSIONS,
            purposes=_PURPOSES,
            ways=_WAYS,
            span=span_of(content.observed),
            wrong=wrong_of(content.summary.stories),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {
        "ms": ms_text,
        "share": share_text,
        "amount": amount_text,
        "bytes": bytes_text,
        "anchor": anchor,
        "message_link": message_link,
        "clock": clock_text,
    }
    environment.filters.update(filters)
    environment.globals.update(
        told=told,
        tried_lines=tried_lines,
        ticks=ticks,
        place=place,
        stay=stay,
        limit=limit,
        log_place=log_place,
        mark_class=mark_class,
    )
    return environment


def wrong_of(stories: Sequence[Story]) -> list[str]:
    """What logs that differ are counted by; the rare kinds only where there are some."""
    there = {name for story in stories for name, count in story.counts.items() if count}
    return [name for name in COUNTED if name not in _RARE or name in there]


def limit(one: Observed, problem: str) -> str:
    """With its number, where it has one."""
    if problem == GAP:
        return f"{amount_text(one.dropped)} rows dropped"
    if problem == ENDS_EARLY:
        return f"ends early, {amount_text(one.unobserved)} messages sent after that"
    return "its log says nothing of this channel" if problem == NOTHING else problem


def anchor(log: Story) -> str:
    return f"log-{log.channel}-{log.participant}"


def told(witness: Witness) -> Sequence[str]:
    """Who wrote it and holds it, what the log itself says, and what is wrong."""
    times = times_of(witness)
    wrong = why(witness, times)
    return origin(witness, times), happened(witness, times), f"{wrong[:1].upper()}{wrong[1:]}."


def clock_text(at_ms: object) -> str:
    """In UTC, as everything on the page that is not of a single device."""
    return utc_text(at_ms) if isinstance(at_ms, int) else ""


# --- bars in tables -------------------------------------------------------------------------------


def place(begin: float, end: float, low: float, high: float) -> str:
    """Style of a bar from ``begin`` to ``end`` where ``low`` to ``high`` is the whole width."""
    span = (high - low) or 1
    left = 100 * min(max((begin - low) / span, 0.0), 1.0)
    right = 100 * min(max((end - low) / span, 0.0), 1.0)
    return f"left:{left:.2f}%;width:{max(right - left, 0):.2f}%"


def stay(one: tuple[int, int | None], span: tuple[int, int]) -> str:
    begin, end = one
    return place(begin, span[1] if end is None else end, *span)


def log_place(ms: float, end_ms: float) -> float:
    """0 to 1 on a scale that shows the first second as well as the last minute."""
    return log10(1 + max(ms, 0) / 10) / log10(1 + max(end_ms, 1) / 10)


def mark_class(mark: Happening) -> str:
    return MARKS[mark.kind][0]


def ticks(end_ms: int) -> list[tuple[float, str]]:
    """(place, words) on that scale."""
    steps = (10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
    return [
        (0.0, "0"),
        *((log_place(ms, end_ms), ms_text(ms)) for ms in steps if ms < 0.8 * end_ms),
    ]


# --- who reaches whom -----------------------------------------------------------------------------


def heat_map(links: Sequence[Row]) -> dict[str, object]:
    """Senders down, receivers across: those with the worst links."""
    if not links:
        return {}
    by_pair = {(row["sender"], row["receiver"]): row for row in links}
    senders = list(dict.fromkeys(str(row["sender"]) for row in links))
    receivers = list(dict.fromkeys(str(row["receiver"]) for row in links))
    shown = senders[:MOST_PEOPLE], receivers[:MOST_PEOPLE]
    slowest = max((_finite(row["delivery_p95_ms"]) for row in links), default=0.0)
    cells = {
        key: {**row, "loss_heat": _loss_heat(row["loss"]), "late_heat": _late_heat(row, slowest)}
        for key, row in by_pair.items()
    }
    return {
        "senders": sorted(shown[0]),
        "receivers": sorted(shown[1]),
        "cells": cells,
        "left_out": max(len(senders), len(receivers)) - MOST_PEOPLE,
    }


def _finite(value: object) -> float:
    return value if isinstance(value, float) and value != float("inf") else 0.0


def _loss_heat(loss: object) -> int:
    """In %, so that the first lost message can be seen."""
    share = loss if isinstance(loss, float) else 0.0
    return round(12 + 68 * share) if share else 0


def _late_heat(row: Row, slowest: float) -> int:
    ms = row["delivery_p95_ms"]
    if not isinstance(ms, float):
        return 0
    if ms == float("inf"):
        return 80
    return round(60 * log10(1 + ms / 50) / log10(1 + max(slowest, 1) / 50))


# --- charts ---------------------------------------------------------------------------------------


def drawn_charts(content: Content) -> dict[str, str]:
    """By name."""
    found = {}
    for figure, title in _CURVES.items():
        lines = [
            Steps(name=one.name, begin_ms=one.begin_ms, points=one.points)
            for one in content.curves
            if one.figure == figure and one.points
        ]
        if lines:
            found[figure] = charts.curves(title, lines)
    cost = content.total("cost")
    if cost:
        rows = [(text, _number(cost.get(f"{name}_bytes"))) for name, text in _PURPOSES.items()]
        found["cost"] = charts.bars("Bytes sent, by purpose", rows, bytes_text)
    recovery = content.total("recovery")
    if recovery:
        ways = [(way, _number(recovery.get(f"by_{way}"))) for way in _WAYS]
        found["ways"] = charts.bars("How messages came first", ways, _whole)
    if any(row[name] for row in content.activity for name in _AGAIN):
        found["again"] = _over_time(content.activity, _AGAIN, "Sent again and brought back")
    if any(row[name] for row in content.activity for name in _TROUBLE):
        found["activity"] = _over_time(content.activity, _TROUBLE, "Written and missed")
    if len(content.runs) > 1:
        found |= _trends(content)
    return found


def _over_time(rows: Sequence[Row], names: dict[str, str], title: str) -> str:
    """Parts of the time in which nothing happened are there, too."""
    by_start = {int(_number(row["start_ms"])): row for row in rows}
    width = int(_number(rows[0]["width_ms"])) or 1
    starts = list(range(min(by_start), max(by_start) + 1, width))
    series = [
        Series(
            name=text,
            values=[_number(by_start[at][name]) if at in by_start else 0.0 for at in starts],
        )
        for name, text in names.items()
    ]
    there = [one for one in series if any(one.values)]
    return charts.stacked(title, starts, _moment, there)


def _moment(at_ms: int) -> str:
    text = clock_text(at_ms)
    return text[5:] if text[:1].isdigit() else text


def _trends(content: Content) -> dict[str, str]:
    runs = content.runs
    names = [_moment(run.made_ms)[:-3] for run in runs]
    return {
        "trend-missing": charts.trend(
            "Missing in the end", [float(run.missing) for run in runs], names, _whole
        ),
        "trend-late": charts.trend(
            "To delivery, 95 %", [run.delivery_p95_ms for run in runs], names, ms_text
        ),
        "trend-bytes": charts.trend(
            "Sent per message", [run.bytes_per_message for run in runs], names, bytes_text
        ),
    }


def _whole(value: object) -> str:
    return amount_text(int(value)) if isinstance(value, int | float) else amount_text(value)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
