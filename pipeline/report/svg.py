"""A line chart as a small SVG file, for documents: legible on light and on dark pages.

Nothing but lines with bands, marks of what others published, two axes and a legend; each axis
linear or logarithmic.  The file's bytes follow from the figures alone, so that a plot that is made
again is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Final

WIDTH: Final = 760
HEIGHT: Final = 440
"""With a legend of one row."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 20, 66, 68
_ROW: Final = 18
_COLUMNS: Final = 2
_MARK_DASHES: Final = ("5 3", "1 3", "9 3 2 3")
_MOST_LINEAR_TICKS: Final = 6
COLOURS: Final = ("#2f6fde", "#d1602b", "#1f8a5b", "#8a4fc7", "#b08900", "#c2347a")
"""Told apart by those who see no red or green too; with at least 3:1 on white and on #16181d."""
_STYLE: Final = """
text{font:13px system-ui,sans-serif;fill:#33363d}.t{font-size:15px;font-weight:600}
.s{font-size:12px;fill:#5c626e}.g{stroke:#d9dce3;stroke-width:1}.p{fill:#fff}
.m{stroke:#33363d;stroke-width:2.5;fill:none}
@media(prefers-color-scheme:dark){text{fill:#d7dae0}.s{fill:#a4a9b4}.g{stroke:#3a3e47}
.p{fill:#16181d}.m{stroke:#d7dae0}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """``points``: (x, y, lowest y, highest y).  What is not finite is left out."""

    name: str
    points: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure of somebody else: at ``x`` anything from ``low`` to ``high``."""

    name: str
    x: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    subtitle: str = ""
    """Under what conditions."""
    x: str
    y: str
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()
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
    names = [*(line.name for line in lines), *(mark.name for mark in chart.marks)]
    height = HEIGHT + _ROW * ((len(names) - 1) // _COLUMNS)
    bottom = HEIGHT - _BOTTOM
    x = _Axis(
        [*(p[0] for p in points), *(mark.x for mark in chart.marks)],
        log=chart.log_x,
        pixels=(_LEFT, WIDTH - _RIGHT),
    )
    y = _Axis(
        [
            *(value for p in points for value in p[1:]),
            *(value for mark in chart.marks for value in (mark.low, mark.high)),
        ],
        log=chart.log_y,
        pixels=(bottom, _TOP),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(chart.title)}</title><style>{_STYLE}</style>",
        f'<rect class="p" width="{WIDTH}" height="{height}"/>',
        f'<text class="t" x="{_LEFT}" y="24">{escape(chart.title)}</text>',
        f'<text class="s" x="{_LEFT}" y="45">{escape(chart.subtitle)}</text>',
        *_grid(chart, x, y),
    ]
    for number, line in enumerate(lines):
        parts += _drawn(line, x, y, COLOURS[number % len(COLOURS)])
    for number, mark in enumerate(chart.marks):
        parts += _marked(mark, x, y, _MARK_DASHES[number % len(_MARK_DASHES)])
    for number, name in enumerate(names):
        parts += _legend(number, name, number - len(lines))
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


def _drawn(line: Line, x: _Axis, y: _Axis, colour: str) -> list[str]:
    parts = []
    if any(low < high for _, _, low, high in line.points):
        there = [f"{x(p[0])},{y(p[3])}" for p in line.points]
        back = [f"{x(p[0])},{y(p[2])}" for p in reversed(line.points)]
        band = " ".join(there + back)
        parts.append(f'<polygon points="{band}" fill="{colour}" fill-opacity=".16"/>')
    path = " ".join(f"{x(p[0])},{y(p[1])}" for p in line.points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts += [f'<circle cx="{x(p[0])}" cy="{y(p[1])}" r="3" fill="{colour}"/>' for p in line.points]
    return parts


def _marked(mark: Mark, x: _Axis, y: _Axis, dashes: str) -> list[str]:
    """A bar with ends; of a single figure one end is left, a wider one."""
    at, low, high = x(mark.x), y(mark.low), y(mark.high)
    half = 8 if low != high else 20
    ends = "".join(f"M{at - half} {end}h{2 * half}" for end in sorted({low, high}))
    parts = [f'<path class="m" d="{ends}"/>']
    if low != high:
        parts.append(f'<path class="m" d="M{at} {low}V{high}" stroke-dasharray="{dashes}"/>')
    return parts


def _legend(number: int, name: str, mark: int) -> list[str]:
    """``mark``: which one it is, or less than 0 for a line."""
    left = _LEFT + number % _COLUMNS * 340
    top = HEIGHT - 12 + number // _COLUMNS * _ROW
    style = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="3"'
    if mark >= 0:
        style = f'class="m" stroke-dasharray="{_MARK_DASHES[mark % len(_MARK_DASHES)]}"'
    return [
        f'<path d="M{left} {top}h22" {style}/>',
        f'<text x="{left + 30}" y="{top + 4}">{escape(name)}</text>',
    ]


def _number(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g} {unit}"
    return f"{round(value, 6):g}"
