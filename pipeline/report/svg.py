"""A line chart as a small SVG file, for documents: legible on light and on dark pages.

Nothing but lines with bands, two axes and a legend; each axis linear or logarithmic.  The file's
bytes follow from the figures alone, so that a plot that is made again is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Final

WIDTH: Final = 760
HEIGHT: Final = 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 20, 46, 86
_MOST_LINEAR_TICKS: Final = 6
COLOURS: Final = ("#2f6fde", "#d1602b", "#1f8a5b", "#8a4fc7", "#b08900", "#c2347a")
"""Told apart by those who see no red or green too; with at least 3:1 on white and on #16181d."""
_STYLE: Final = """
text{font:13px system-ui,sans-serif;fill:#33363d}.t{font-size:15px;font-weight:600}
.g{stroke:#d9dce3;stroke-width:1}.p{fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#d7dae0}.g{stroke:#3a3e47}.p{fill:#16181d}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """``points``: (x, y, lowest y, highest y).  What is not finite is left out."""

    name: str
    points: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False


class _Axis:
    """From values to pixels."""

    def __init__(self, values: Sequence[float], *, log: bool, pixels: tuple[int, int]) -> None:
        self._log = log
        self._pixels = pixels
        usable = [value for value in values if value > 0] if log else list(values)
        low, high = (min(usable), max(usable)) if usable else (0.0, 1.0)
        if log:
            low, high = 10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high) - 1e-9)
            high = high if high > low else low * 10
            self.ticks = [10.0**n for n in range(round(log10(low)), round(log10(high)) + 1)]
        else:
            self.ticks = _linear_ticks(min(low, 0.0), high)
            low, high = self.ticks[0], self.ticks[-1]
        self._low, self._span = self._place(low), self._place(high) - self._place(low)

    def _place(self, value: float) -> float:
        return log10(value) if self._log else value

    def __call__(self, value: float) -> float:
        start, end = self._pixels
        value = max(value, self.ticks[0])
        return round(start + (end - start) * (self._place(value) - self._low) / self._span, 1)


def _linear_ticks(low: float, high: float) -> list[float]:
    span = (high - low) or 1.0
    step = 10.0 ** floor(log10(span / _MOST_LINEAR_TICKS))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if span / (step * m) <= _MOST_LINEAR_TICKS)
    return [low + step * n for n in range(ceil(span / step - 1e-9) + 1)]


def svg(chart: Chart) -> str:
    lines = [
        Line(line.name, [point for point in line.points if all(map(isfinite, point))])
        for line in chart.lines
    ]
    points = [point for line in lines for point in line.points]
    x = _Axis([p[0] for p in points], log=chart.log_x, pixels=(_LEFT, WIDTH - _RIGHT))
    y = _Axis(
        [value for p in points for value in p[1:]],
        log=chart.log_y,
        pixels=(HEIGHT - _BOTTOM, _TOP),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(chart.title)}</title><style>{_STYLE}</style>",
        f'<rect class="p" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="t" x="{_LEFT}" y="24">{escape(chart.title)}</text>',
        *_grid(chart, x, y),
    ]
    for number, line in enumerate(lines):
        parts += _drawn(line, x, y, COLOURS[number % len(COLOURS)], number)
    return "\n".join([*parts, "</svg>", ""])


def _grid(chart: Chart, x: _Axis, y: _Axis) -> list[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts = [f'<path class="g" d="M{_LEFT} {y(v)}H{right}"/>' for v in y.ticks]
    parts += [f'<path class="g" d="M{x(v)} {_TOP}V{bottom}"/>' for v in x.ticks]
    parts += [
        f'<text x="{_LEFT - 8}" y="{y(v) + 4}" text-anchor="end">{_number(v)}</text>'
        for v in y.ticks
    ]
    parts += [
        f'<text x="{x(v)}" y="{bottom + 18}" text-anchor="middle">{_number(v)}</text>'
        for v in x.ticks
    ]
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x)}</text>'
    )
    turned = f'transform="rotate(-90 16 {(_TOP + bottom) / 2})" text-anchor="middle"'
    parts.append(f'<text x="16" y="{(_TOP + bottom) / 2}" {turned}>{escape(chart.y)}</text>')
    return parts


def _drawn(line: Line, x: _Axis, y: _Axis, colour: str, number: int) -> list[str]:
    parts = []
    if any(low < high for _, _, low, high in line.points):
        there = [f"{x(p[0])},{y(p[3])}" for p in line.points]
        back = [f"{x(p[0])},{y(p[2])}" for p in reversed(line.points)]
        band = " ".join(there + back)
        parts.append(f'<polygon points="{band}" fill="{colour}" fill-opacity=".16"/>')
    path = " ".join(f"{x(p[0])},{y(p[1])}" for p in line.points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts += [f'<circle cx="{x(p[0])}" cy="{y(p[1])}" r="3" fill="{colour}"/>' for p in line.points]
    column, row = number % 2, number // 2
    left, top = _LEFT + column * 340, HEIGHT - 30 + row * 18
    parts.append(f'<path d="M{left} {top}h22" stroke="{colour}" stroke-width="3"/>')
    parts.append(f'<text x="{left + 30}" y="{top + 4}">{escape(line.name)}</text>')
    return parts


def _number(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g} {unit}"
    return f"{round(value, 6):g}"
