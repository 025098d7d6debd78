"""The colour roles and their values in the three themes.

A role says what a colour is for, never what it looks like; the names are those of the design
tokens.  Contrast was computed for every pair that is used (text 4.5, in high contrast 7; graphics
3), and a test computes it again.  Meaning is never carried by colour alone.
"""
# ruff: noqa: N815 - the roles are spelt as the design tokens spell them.

from dataclasses import dataclass, fields
from enum import StrEnum

from PySide6.QtGui import QColor


class ThemeMode(StrEnum):
    LIGHT = "light"
    DARK = "dark"
    HIGH_CONTRAST = "high_contrast"


@dataclass(frozen=True, kw_only=True, eq=False)
class Colours:
    canvas: QColor
    """Timeline and page background."""
    panel: QColor
    """Conversation list, inspector, status strip."""
    surface: QColor
    """Incoming bubble, cards, header, composer; in the dark the last two use ``panel``."""
    surface2: QColor
    """Search field, quote, segmented track."""
    code: QColor
    hover: QColor
    selected: QColor
    band: QColor
    """Full-width band behind a message that mentions you."""
    line: QColor
    """Hairline between areas, bubble outline."""
    line2: QColor
    """Outline of controls."""
    thread: QColor
    """The 2 px thread in the timeline."""
    ink: QColor
    ink2: QColor
    ink3: QColor
    accent: QColor
    accentHover: QColor
    onAccent: QColor
    accentSoft: QColor
    accentInk: QColor
    own: QColor
    ownInk: QColor
    ownMeta: QColor
    ownLine: QColor
    warn: QColor
    warnBg: QColor
    warnLine: QColor
    warnDot: QColor
    danger: QColor
    dangerBg: QColor
    dangerLine: QColor
    late: QColor
    lateBg: QColor
    lateLine: QColor
    ok: QColor
    badgeMute: QColor
    onMute: QColor
    focus: QColor
    shadow: QColor
    """Only under floating things; wholly transparent in high contrast."""
    names: tuple[QColor, ...]
    """Sender names, by ``avatar_index``."""


_ROLES = tuple(field.name for field in fields(Colours) if field.name not in {"shadow", "names"})

_FILLS = "#B0472B #856000 #5C6E14 #2A7A45 #0F7274 #1F6CA6 #4A5CC0 #7B4BB5 #A03A84 #B5385A"
AVATAR_FILLS = tuple(map(QColor, _FILLS.split()))
"""Rust, ochre, olive, pine, petrol, azure, indigo, violet, plum, rose: the same in all themes."""

AVATAR_INITIAL = QColor("#FFFFFF")


def _colours(values: str, *, shadow: QColor, names: str) -> Colours:
    by_role = dict(zip(_ROLES, map(QColor, values.split()), strict=True))
    return Colours(**by_role, shadow=shadow, names=tuple(map(QColor, names.split())))


# Values stand in the order of the fields above, one group of roles per line.
LIGHT = _colours(
    "#EDF1F0 #F8FAF9 #FFFFFF #F0F4F3 #F3F6F5 #ECF1F0 #DCEDEA #DFEDEA"
    " #DBE2E0 #84938F #C6D1CE #14201F #465654 #5C6B68"
    " #0B6B66 #08544F #FFFFFF #D8EDEA #07514D #CDE8E3 #0E211F #2F5B56 #A9D2CB"
    " #7A4A00 #FFF3DC #DDA63C #B5760B #A8201A #FDECEA #E4A19C"
    " #4F3FA8 #EDEAFC #B5AAEA #1A6E3F #5F6F6C #FFFFFF #0B6B66",
    shadow=QColor(16, 34, 32, 26),
    names=_FILLS,
)
DARK = _colours(
    "#0E1515 #141C1C #1D2726 #182120 #141C1B #1B2524 #1A3634 #122826"
    " #283433 #687B78 #324140 #E6EEEC #AEBCB9 #91A19E"
    " #52C3B6 #74D4C9 #04211E #163A37 #8EE0D5 #1A4743 #E9F6F3 #A6D2CB #2C635D"
    " #F2C063 #2E2512 #80621F #E0A63A #FF7B78 #371C1A #8B403B"
    " #BFB4FF #252144 #5E53A8 #72D49C #43514F #E6EEEC #52C3B6",
    shadow=QColor(0, 0, 0, 115),
    names="#F2A58E #DDB65A #B9CC68 #7FD09B #6CCFCB #82BDF0 #A5B2FF #C9A6F5 #EE9AD6 #FA9DB2",
)
HIGH_CONTRAST = _colours(
    "#000000 #000000 #000000 #0A0A0A #0A0A0A #1A1A1A #002824 #001F1C"
    " #9A9A9A #FFFFFF #BFBFBF #FFFFFF #EDEDED #D6D6D6"
    " #5FF2E0 #9BFFF3 #000000 #003B36 #9BFFF3 #003B36 #FFFFFF #D3FFF8 #5FF2E0"
    " #FFD24A #000000 #FFD24A #FFD24A #FFA0A8 #000000 #FFA0A8"
    " #CFC6FF #000000 #CFC6FF #7CFFB0 #D6D6D6 #000000 #FFFF00",
    shadow=QColor(0, 0, 0, 0),
    names="#FFB39E #FFD667 #D6F07A #8CF0AC #7DF0EA #9CD0FF #BFC8FF #DCBEFF #FFACE8 #FFB3C6",
)

COLOURS = {
    ThemeMode.LIGHT: LIGHT,
    ThemeMode.DARK: DARK,
    ThemeMode.HIGH_CONTRAST: HIGH_CONTRAST,
}
