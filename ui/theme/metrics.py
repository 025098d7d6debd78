"""Spacing, radii, fixed sizes and how they grow with the text size.

Sizes are logical pixels at 100 %.  Text, row heights, glyphs, beads and avatars grow with the text
size (``scaled``); spacing and radii stay up to 130 % and then grow half as fast (``gap``);
hairlines never grow.  How dense rows and bubbles stand is a choice of its own (``dense``).
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

MIN_TEXT_PERCENT = 85
MAX_TEXT_PERCENT = 200
_SPACING_STAYS_UNTIL = 1.3


class Density(StrEnum):
    COMFORTABLE = "comfortable"
    COMPACT = "compact"


class Spacing(IntEnum):
    TINY = 4
    SMALL = 6
    SNUG = 8
    MEDIUM = 12
    LARGE = 16
    EDGE = 24
    WIDE = 36


class Radius(IntEnum):
    TIGHT = 4
    """The bubble's corner toward its bead."""
    GROUPED = 6
    BUTTON = 9
    SEARCH = 10
    ROW = 12
    BUBBLE = 14
    DIALOG = 18


SHADOW_REACH = 6
"""How far the shadow of what floats is to be seen around it."""
GROUP_AVATAR_RADIUS = 0.28
"""Of the side."""


def clamp_percent(percent: int) -> int:
    return max(MIN_TEXT_PERCENT, min(MAX_TEXT_PERCENT, percent))


@dataclass(frozen=True, slots=True)
class Metrics:
    text_percent: int = 100
    density: Density = Density.COMFORTABLE

    @property
    def is_compact(self) -> bool:
        return self.density is Density.COMPACT

    def dense(self, comfortable: float, compact: float) -> float:
        """The size of the two that counts."""
        return compact if self.is_compact else comfortable

    @property
    def factor(self) -> float:
        return self.text_percent / 100

    def scaled(self, size: float) -> int:
        """For what grows with the text: rows, glyphs, beads, avatars, icons."""
        return max(1, int(size * self.factor + 0.5))

    def gap(self, size: float) -> int:
        """For spacing and radii."""
        growth = max(0.0, self.factor - _SPACING_STAYS_UNTIL) / 2
        return int(size * (1 + growth) + 0.5)
