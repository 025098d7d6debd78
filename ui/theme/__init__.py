"""How everything looks: colours by role, type, spacing and the palettes made of them.

Every widget asks ``current_theme()`` when it paints and listens to ``theme_changed``; nobody keeps
a colour of their own.  This package knows no widget and nothing of the engine.
"""

from ui.theme.avatars import avatar_index, initials
from ui.theme.colours import Colours, ThemeMode
from ui.theme.current import Theme, current_theme, set_theme, system_mode, theme_changed
from ui.theme.metrics import (
    MAX_TEXT_PERCENT,
    MIN_TEXT_PERCENT,
    SHADOW_REACH,
    Density,
    Metrics,
    Radius,
    Spacing,
    clamp_percent,
)
from ui.theme.typography import Typeface, TypeScale

__all__ = [
    "MAX_TEXT_PERCENT",
    "MIN_TEXT_PERCENT",
    "SHADOW_REACH",
    "Colours",
    "Density",
    "Metrics",
    "Radius",
    "Spacing",
    "Theme",
    "ThemeMode",
    "TypeScale",
    "Typeface",
    "avatar_index",
    "clamp_percent",
    "current_theme",
    "initials",
    "set_theme",
    "system_mode",
    "theme_changed",
]
