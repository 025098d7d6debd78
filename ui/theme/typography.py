"""The type scale, built from the system's own font so that the window feels at home.

Each token is a size, a line height and a weight; figures are tabular where the font has them, so
times and counts do not dance.  Line heights are minimums: a script that needs more room gets it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF

_UI_FALLBACKS = (
    "Segoe UI Variable",
    "Segoe UI",
    ".AppleSystemUIFont",
    "Cantarell",
    "Ubuntu",
    "Inter",
    "Noto Sans",
    "DejaVu Sans",
)
_MONO_FALLBACKS = ("Cascadia Mono", "Menlo", "JetBrains Mono", "DejaVu Sans Mono")
_EMOJI = ("Segoe UI Emoji", "Apple Color Emoji", "Noto Color Emoji")


@dataclass(frozen=True, eq=False)
class Typeface:
    """One token of the scale: a font and the height of its lines, in logical pixels."""

    font: QFont
    line_height: float

    def strong(self) -> QFont:
        """The same size at weight 600: names, counts, buttons."""
        font = QFont(self.font)
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def medium(self) -> QFont:
        font = QFont(self.font)
        font.setWeight(QFont.Weight.Medium)
        return font


@dataclass(frozen=True, kw_only=True, eq=False)
class TypeScale:
    title: Typeface
    heading: Typeface
    body: Typeface
    label: Typeface
    small: Typeface
    caption: Typeface
    micro: Typeface
    code: Typeface


def _families(system: QFontDatabase.SystemFont, fallbacks: Sequence[str]) -> list[str]:
    installed = set(QFontDatabase.families())
    own = QFontDatabase.systemFont(system).families()
    wanted = [*own, *fallbacks, *_EMOJI]
    present = [name for name in dict.fromkeys(wanted) if name in installed]
    # Platform names such as ".AppleSystemUIFont" are not listed but resolve.
    return list(dict.fromkeys([*own, *present])) or ["sans-serif"]


def _typeface(
    families: Sequence[str], size: float, line: float, weight: QFont.Weight, factor: float
) -> Typeface:
    font = QFont(list(families))
    font.setPixelSize(max(1, int(size * factor + 0.5)))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return Typeface(font, max(line * factor, QFontMetricsF(font).height()))


def type_scale(factor: float) -> TypeScale:
    """Needs a QGuiApplication, because fonts do."""
    ui = _families(QFontDatabase.SystemFont.GeneralFont, _UI_FALLBACKS)
    mono = _families(QFontDatabase.SystemFont.FixedFont, _MONO_FALLBACKS)
    normal, medium, strong = QFont.Weight.Normal, QFont.Weight.Medium, QFont.Weight.DemiBold
    return TypeScale(
        title=_typeface(ui, 20, 26, strong, factor),
        heading=_typeface(ui, 16, 21, strong, factor),
        body=_typeface(ui, 14, 20, normal, factor),
        label=_typeface(ui, 13, 18, normal, factor),
        small=_typeface(ui, 12.5, 17, medium, factor),
        caption=_typeface(ui, 12, 16, normal, factor),
        micro=_typeface(ui, 11, 16, normal, factor),
        code=_typeface(mono, 12, 18, normal, factor),
    )
