"""The report as one HTML file: nothing is fetched, whatever the reader's network or colours are.

Plots are drawn by plotly, which is inside the file; tables and the verdict are there without any
script.  It refuses to know Spark: it is made from ``Content``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from engine.core.message_link import message_link
from pipeline.metrics.figures import ALL
from pipeline.report.content import Content, Curve, Row
from pipeline.summary import tried_lines
from pipeline.witness import Story, Witness, happened, origin, times_of, why

NOTHING: Final = "\u2013"
_PURPOSES: Final = ("first", "again", "repair", "sync", "ephemeral")
_PURPOSE_TEXTS: Final = {
    "first": "first copies",
    "again": "sent again",
    "repair": "repairs",
    "sync": "sync",
    "ephemeral": "ephemeral",
}
_TICKS: Final = ((2, (1, 2, 5)), (4, (1, 3)))
"""Up to so many decades, these of each."""
_WAYS: Final = ("relay", "filter", "lightpush", "repair", "store")
_DIMENSION_TEXTS: Final = {
    ALL: "All together",
    "version": "By version",
    "network": "By network",
    "channel": "Channels, the worst first",
    "participant": "Participants, the worst first",
}


def page(content: Content) -> str:
    plotly = files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    drawn = plots(content)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            content=content,
            plots=drawn,
            plots_json=_json(drawn),
            plotly=plotly,
            dimensions=_DIMENSION_TEXTS,
            purposes=_PURPOSE_TEXTS,
            ways=_WAYS,
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
    environment.filters["ms"] = ms_text
    environment.filters["share"] = share_text
    environment.filters["amount"] = amount_text
    environment.filters["bytes"] = bytes_text
    environment.filters["anchor"] = anchor
    environment.filters["message_link"] = message_link
    environment.globals["told"] = told
    environment.globals["tried_lines"] = tried_lines
    return environment


def _json(value: object) -> str:
    """Safe inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# --- numbers as people read them ------------------------------------------------------------------


def ms_text(value: object) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    if not isfinite(value):
        return "never"
    for limit, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} ms"


def share_text(value: object) -> str:
    """Never 100 % unless it is all."""
    if not isinstance(value, int | float):
        return NOTHING
    if 0.9999 < value < 1:  # noqa: PLR2004 - would be rounded up
        return "99.99 %"
    return f"{100 * value:.4g} %"


def amount_text(value: object) -> str:
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else NOTHING


def bytes_text(value: object) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} B"


def anchor(log: Story) -> str:
    return f"log-{log.channel}-{log.participant}"


def told(witness: Witness) -> Sequence[str]:
    """Who wrote it and holds it, what the log itself says, and what is wrong."""
    times = times_of(witness)
    return origin(witness, times), happened(witness, times), why(witness, times)


# --- plots ----------------------------------------------------------------------------------------


def plots(content: Content) -> dict[str, object]:
    """By the id of the element: data and layout as plotly takes them, without colours of a page."""
    found: dict[str, object] = {}
    for figure, title in (("delivery", "delivered"), ("ack", "acknowledged for certain")):
        lines = [curve for curve in content.curves if curve.figure == figure and curve.points]
        if lines:
            found[f"curve-{figure}"] = _curve_plot(lines, title)
    hours = content.groups.get("delivery", {}).get("hour", ())
    if len(hours) > 1:
        found["hours"] = _hour_plot(hours)
    cost = content.total("cost")
    if cost:
        found["cost"] = _bars(
            [_PURPOSE_TEXTS[one] for one in _PURPOSES],
            [cost.get(f"{one}_bytes") or 0 for one in _PURPOSES],
            "bytes sent",
            bytes_text,
        )
    recovery = content.total("recovery")
    if recovery:
        counts = [recovery.get(f"by_{way}") or 0 for way in _WAYS]
        found["ways"] = _bars(list(_WAYS), counts, "first copies received", amount_text)
    return found


def _curve_plot(lines: Sequence[Curve], title: str) -> Mapping[str, object]:
    data = [
        {
            "x": [point[0] / 1_000 for point in line.points],
            "y": [point[1] for point in line.points],
            "name": line.name,
            "mode": "lines",
            "line": {"shape": "hv", "width": 2.5},
            "hovertemplate": "%{y:.2%} within %{x:.3g} s<extra>" + line.name + "</extra>",
        }
        for line in lines
    ]
    layout = {
        "xaxis": {"type": "log", "title": {"text": "time after sending"}, **_time_ticks(lines)},
        "yaxis": {
            "tickformat": ".0%",
            "range": [0, 1.03],
            "title": {"text": f"share {title}"},
        },
        "showlegend": len(lines) > 1,
    }
    return {"data": data, "layout": layout}


def _time_ticks(lines: Sequence[Curve]) -> Mapping[str, object]:
    """Few of each decade where there are many; in words, not in powers."""
    times = [point[0] for line in lines for point in line.points if point[0] > 0]
    low, high = floor(log10(min(times, default=1))), ceil(log10(max(times, default=1)))
    steps = next((some for most, some in _TICKS if high - low <= most), (1,))
    ticks = [step * 10.0**decade for decade in range(low, high + 1) for step in steps]
    return {
        "tickvals": [ms / 1_000 for ms in ticks],
        "ticktext": [ms_text(ms) for ms in ticks],
        "tickangle": 0,
    }


def _hour_plot(hours: Sequence[Row]) -> Mapping[str, object]:
    x = [str(row["value"]) + ":00" for row in hours]
    late = [row["delivery_p95_ms"] for row in hours]
    seconds = [
        value / 1_000 if isinstance(value, float) and isfinite(value) else None for value in late
    ]
    data: list[Mapping[str, object]] = [
        {"x": x, "y": [row["delivery_rate"] for row in hours], "name": "delivered",
         "mode": "lines+markers"},
        {"x": x, "y": seconds, "name": "p95, seconds", "mode": "lines+markers", "yaxis": "y2"},
    ]  # fmt: skip
    layout = {
        "yaxis": {
            "tickformat": ".0%",
            "range": [0, 1.03],
            "title": {"text": "share delivered"},
        },
        "yaxis2": {
            "overlaying": "y",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
            "nticks": 6,
            "title": {"text": "p95, seconds"},
        },
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def _bars(
    names: Sequence[str], values: Sequence[object], title: str, show: Callable[[object], str]
) -> Mapping[str, object]:
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(names),
            "x": list(values),
            "text": [show(value) for value in values],
            "textposition": "outside",
            "cliponaxis": False,
            "hoverinfo": "none",
        }
    ]
    layout = {
        "xaxis": {"title": {"text": title}, "rangemode": "tozero", "nticks": 5},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "margin": {"r": 70},
        "showlegend": False,
    }
    return {"data": data, "layout": layout}
