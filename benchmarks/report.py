"""What a benchmark prints: figures with spread and bar, the machine, and the load it had.

One JSON object per benchmark: ``{name, machine, load, notes, figures: [{figure, value, unit,
spread, bar, holds, peer}]}``.  ``value`` is a median unless the figure's name says otherwise;
``spread`` is (lowest, highest) of the runs; ``holds`` is None where there is no bar.
"""

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    figure: str
    value: float
    unit: str
    spread: tuple[float, float]
    bar: float | None = None
    bar_is: Literal["at most", "at least"] = "at most"
    peer: str | None = None
    """Whose figure this is, if it is not ours."""

    @property
    def holds(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value <= self.bar if self.bar_is == "at most" else self.value >= self.bar


def figure_of(name: str, values: Sequence[float], unit: str, bar: float | None = None) -> Figure:
    """The median of several runs; ``bar`` is at most."""
    spread = (min(values), max(values))
    return Figure(figure=name, value=statistics.median(values), unit=unit, spread=spread, bar=bar)


@dataclass(slots=True, kw_only=True)
class Report:
    name: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not run, and why."""
    load_before: tuple[float, float, float] = field(default_factory=os.getloadavg)

    def as_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "machine": machine(),
                "load": {"before": self.load_before, "after": os.getloadavg()},
                "notes": self.notes,
                "figures": [asdict(f) | {"holds": f.holds} for f in self.figures],
            },
            indent=2,
        )

    def as_table(self) -> str:
        rows = [("figure", "value", "spread", "bar", "")]
        for f in self.figures:
            bar = "" if f.bar is None else f"{'≤' if f.bar_is == 'at most' else '≥'} {f.bar:g}"
            verdict = {None: "", True: "holds", False: "MISSED"}[f.holds]
            name = f.figure if f.peer is None else f"{f.figure} [{f.peer}]"
            spread = f"{f.spread[0]:.4g} to {f.spread[1]:.4g}"
            rows.append((name, f"{f.value:.4g} {f.unit}", spread, bar, verdict))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        before = ", ".join(f"{x:.2f}" for x in self.load_before)
        return "\n".join([f"{self.name}   (load before: {before})", *lines, *self.notes])


def machine() -> dict[str, str | int]:
    """What the figures were measured on; no names, no paths."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "python": sys.version.split()[0],
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of ``values`` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
