"""Charts as SVG inside the page: no script, nothing fetched, colours from the page's own classes.

Each is about as wide as a column of the page, so that its text is as large as the page's.  Figures
that a chart shows can be read in a table as well, or as the title of what is drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Final

from pipeline.report.numbers import ms_text, share_text

WIDTH: Final = 560
_NARROW: Final = 370
"""Three of these stand side by side."""
_RIGHT: Final = 14
_TOP: Final = 12
_FLOOR: Final = 34
"""Below the plot: ticks and what they are of."""
_TICKS: Final = ((2, (1, 2, 5)), (4, (1, 3)))
"""Up to so many decades, these of each."""
_MOST_TICKS: Final = 5
_LEGEND_ROW: Final = 20
_CHAR: Final = 6.6
"""About how wide a character is."""
COLOURS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A share that grows with time: ``points`` of (ms, share), the first from ``begin_ms`` on."""

    name: str
    begin_ms: float
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """``values``: one for each part of the time."""

    name: str
    values: Sequence[float]


def _drawn(title: str, height: float, parts: Sequence[str], width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:g}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    of = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{of}>{escape(text)}</text>'


def _legend(names: Sequence[str], top: float, left: float) -> tuple[list[str], float]:
    """And where it ends."""
    parts, x, y = [], left, top + 10
    for number, name in enumerate(names):
        width = 22 + _CHAR * len(name) + 14
        if x > left and x + width > WIDTH:
            x, y = left, y + _LEGEND_ROW
        parts.append(
            f'<rect class="c{number % COLOURS}" x="{x:.1f}" y="{y - 9:.1f}" width="14" height="10"'
            ' rx="2"/>'
        )
        parts.append(_text(x + 20, y, name))
        x += width
    return parts, y + 12


# --- shares over time -----------------------------------------------------------------------------


def curves(title: str, lines: Sequence[Steps]) -> str:
    """On a logarithmic scale; what has not come by the end keeps a line below 100 %."""
    left, height = 48, 250
    legend, top = (
        ([], float(_TOP)) if len(lines) == 1 else _legend([e.name for e in lines], 4, left)
    )
    low, high, ticks = _time_scale(lines)
    bottom = height - _FLOOR

    def x(ms: float) -> float:
        place = (log10(max(ms, low)) - log10(low)) / (log10(high) - log10(low))
        return left + (WIDTH - _RIGHT - left) * min(place, 1.0)

    def y(share: float) -> float:
        return bottom - (bottom - top) * share

    parts = [*legend]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<path class="g" d="M{left} {y(share):.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(_text(left - 6, y(share) + 4, f"{100 * share:.0f} %", "end", "s"))
    for ms in ticks:
        parts.append(f'<path class="g" d="M{x(ms):.1f} {top}V{bottom}"/>')
        parts.append(_text(x(ms), bottom + 15, ms_text(ms), "middle", "s"))
    parts.append(_text((left + WIDTH) / 2, height - 3, "time after sending", "middle", "s"))
    for number, line in enumerate(lines):
        path = [f"M{x(line.begin_ms):.1f} {y(0):.1f}"]
        path += [f"L{x(ms):.1f} {y(share):.1f}" for ms, share in line.points]
        path.append(f"H{WIDTH - _RIGHT}")
        last = line.points[-1][1]
        told = f"{line.name}: {share_text(last)} within {ms_text(line.points[-1][0])}"
        parts.append(
            f'<path class="l{number % COLOURS}" d="{"".join(path)}">'
            f"<title>{escape(told)}</title></path>"
        )
    return _drawn(title, height, parts)


def _time_scale(lines: Sequence[Steps]) -> tuple[float, float, list[float]]:
    times = [ms for line in lines for ms, _ in line.points if ms > 0]
    times += [line.begin_ms for line in lines if line.begin_ms > 0]
    low = max(min(times, default=1.0), 1.0)
    high = max(max(times, default=1.0), low * 3)
    decades = log10(high) - log10(low)
    steps = next((some for most, some in _TICKS if decades <= most), (1,))
    found = [
        step * 10.0**decade
        for decade in range(floor(log10(low)), ceil(log10(high)) + 1)
        for step in steps
    ]
    return low, high, [ms for ms in found if low <= ms <= high]


# --- amounts --------------------------------------------------------------------------------------


def bars(title: str, rows: Sequence[tuple[str, float]], show: Callable[[object], str]) -> str:
    """One below the other, each with its name and value."""
    left, row = 10 + _CHAR * max((len(name) for name, _ in rows), default=0), 27
    room = WIDTH - left - 84
    most = max((value for _, value in rows), default=0) or 1
    parts = []
    for number, (name, value) in enumerate(rows):
        y = 8 + row * number
        width = room * value / most
        parts.append(_text(left - 8, y + 14, name, "end"))
        parts.append(
            f'<rect class="c0" x="{left:.1f}" y="{y}" width="{width:.1f}" height="19" rx="2"/>'
        )
        parts.append(_text(left + width + 7, y + 14, show(value), "start", "s"))
    return _drawn(title, 12 + row * len(rows), parts)


def stacked(
    title: str, starts: Sequence[int], names: Callable[[int], str], series: Sequence[Series]
) -> str:
    """Bars over time, one for each of ``starts``; ``names`` tells what to call one of them."""
    left, height = 48, 250
    legend, top = _legend([one.name for one in series], 4, left)
    bottom, right = height - _FLOOR + 12, WIDTH - _RIGHT
    most = max((sum(one.values[n] for one in series) for n in range(len(starts))), default=0)
    ticks = _linear_ticks(most)
    scale = (bottom - top) / ticks[-1]
    each = (right - left) / max(len(starts), 1)
    parts = [*legend]
    for value in ticks:
        y = bottom - value * scale
        parts.append(f'<path class="g" d="M{left} {y:.1f}H{right}"/>')
        parts.append(_text(left - 6, y + 4, f"{value:g}", "end", "s"))
    for n, start in enumerate(starts):
        y = float(bottom)
        for number, one in enumerate(series):
            if one.values[n]:
                tall = one.values[n] * scale
                y -= tall
                told = escape(f"{names(start)}: {one.values[n]:g} {one.name}")
                parts.append(
                    f'<rect class="c{number % COLOURS}" x="{left + each * n + each * 0.08:.1f}"'
                    f' y="{y:.1f}" width="{max(each * 0.84, 1):.1f}" height="{tall:.1f}">'
                    f"<title>{told}</title></rect>"
                )
    for n in _few(len(starts)):
        anchor = "start" if n == 0 else "end" if n == len(starts) - 1 and n else "middle"
        x = left + each * (n + (0 if n == 0 else 1 if anchor == "end" else 0.5))
        parts.append(_text(x, bottom + 16, names(starts[n]), anchor, "s"))
    return _drawn(title, height, parts)


def _few(count: int) -> list[int]:
    """Which of so many are named below the axis."""
    if count <= 1:
        return list(range(count))
    return [0, count // 2, count - 1] if count > 2 else [0, count - 1]  # noqa: PLR2004


def _linear_ticks(most: float) -> list[float]:
    span = most or 1.0
    step = 10.0 ** floor(log10(span / _MOST_TICKS))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if span / (step * m) <= _MOST_TICKS)
    step = max(step, 1.0) if most >= 1 else step
    return [step * n for n in range(ceil(span / step - 1e-9) + 1)]


# --- across runs ----------------------------------------------------------------------------------


def trend(
    title: str, values: Sequence[float | None], names: Sequence[str], show: Callable[[object], str]
) -> str:
    """A point for each run, the newest on the right; a run without a finite value has none."""
    left, height, top = 62, 150, 18
    bottom, right = height - 26, _NARROW - _RIGHT
    there = [value for value in values if value is not None and isfinite(value)]
    most = max(there, default=0) or 1
    each = (right - left) / max(len(values) - 1, 1)
    points = [
        (left + each * n, bottom - (bottom - top) * value / most, n, value)
        for n, value in enumerate(values)
        if value is not None and isfinite(value)
    ]
    parts = [
        f'<path class="g" d="M{left} {y}H{right}"/>' + _text(left - 8, y + 4, show(v), "end", "s")
        for v, y in ((0, bottom), (most, top))
    ]
    path = "".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y, _, _) in enumerate(points))
    parts.append(f'<path class="l0" d="{path}"/>')
    for x, y, n, value in points:
        told = escape(f"{names[n]}: {show(value)}")
        parts.append(
            f'<circle class="c0" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{told}</title></circle>'
        )
    for n in sorted({0, len(values) - 1}):
        anchor = "start" if n == 0 else "end"
        parts.append(_text(left + each * n, height - 8, names[n], anchor, "s"))
    return _drawn(title, height, parts, _NARROW)
