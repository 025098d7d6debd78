"""The type scale, built from the system's own font so that the window feels at home.

Where the desktop names no font that is installed, as on a bare X11, it is Inter, which travels with
the program.  Each token is a size, a line height and a weight; figures are tabular where the font
has them, so times and counts do not dance.  Line heights are minimums: a script that needs more
room gets it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo, QFontMetricsF

from assets import font_paths

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


@cache
def bundled_families() -> tuple[str, ...]:
    """Those of the fonts that travel with the program, registered on the first call."""
    loaded = (QFontDatabase.addApplicationFont(str(path)) for path in font_paths())
    found = (QFontDatabase.applicationFontFamilies(number) for number in loaded if number >= 0)
    return tuple(dict.fromkeys(name for names in found for name in names))


def _is_installed(family: str) -> bool:
    """Names such as "Sans Serif" are listed, but stand for whatever there is.

    Platform names such as ".AppleSystemUIFont" are not listed but resolve.
    """
    return family.startswith(".") or QFontInfo(QFont(family)).family() == family


def _ui_families() -> list[str]:
    own = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).families()
    if not any(map(_is_installed, own)):
        own = [*bundled_families(), *own]
    return _present(own, _UI_FALLBACKS)


def _mono_families() -> list[str]:
    own = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families()
    return _present(own, _MONO_FALLBACKS)


def _present(own: Sequence[str], fallbacks: Sequence[str]) -> list[str]:
    installed = set(QFontDatabase.families())
    wanted = [*own, *fallbacks, *_EMOJI]
    present = [name for name in dict.fromkeys(wanted) if name in installed]
    return list(dict.fromkeys([*own, *present])) or ["sans-serif"]


def _typeface(
    families: Sequence[str], size: float, line: float, weight: QFont.Weight, factor: float
) -> Typeface:
    font = QFont(list(families))
    font.setPixelSize(max(1, int(size * factor + 0.5)))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return Typeface(font, max(line * factor, QFontMetricsF(font).height()))


def type_scale(factor: float, *, compact: bool = False) -> TypeScale:
    """Needs a QGuiApplication, because fonts do.  ``compact``: messages are a little smaller."""
    ui, mono = _ui_families(), _mono_families()
    normal, medium, strong = QFont.Weight.Normal, QFont.Weight.Medium, QFont.Weight.DemiBold
    return TypeScale(
        title=_typeface(ui, 20, 26, strong, factor),
        heading=_typeface(ui, 16, 21, strong, factor),
        body=_typeface(ui, *((13, 18) if compact else (14, 20)), normal, factor),
        label=_typeface(ui, 13, 18, normal, factor),
        small=_typeface(ui, 12.5, 17, medium, factor),
        caption=_typeface(ui, 12, 16, normal, factor),
        micro=_typeface(ui, 11, 16, normal, factor),
        code=_typeface(mono, 12, 18, normal, factor),
    )
