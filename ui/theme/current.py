"""The theme in force, and how to change it.

One theme holds for the whole process, as one palette does for the application: widgets read it
with ``current_theme()`` while painting and repaint on ``theme_changed``.  Palettes are our own on
the Fusion style, because asking Qt for a colour scheme does nothing on a bare X11 desktop.
"""

from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QObject, Qt, Signal, SignalInstance
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from ui.theme.avatars import avatar_index
from ui.theme.colours import AVATAR_FILLS, COLOURS, Colours, ThemeMode
from ui.theme.metrics import Density, Metrics, clamp_percent
from ui.theme.palettes import palette_of
from ui.theme.stylesheet import stylesheet_of
from ui.theme.typography import TypeScale, type_scale


@dataclass(frozen=True, kw_only=True, eq=False)
class Theme(Colours):
    """Colours by role (``theme.warnBg``), ``type``, ``metrics`` and who has which colour."""

    mode: ThemeMode
    type: TypeScale
    metrics: Metrics

    @property
    def is_dark(self) -> bool:
        return self.mode is not ThemeMode.LIGHT

    @property
    def is_high_contrast(self) -> bool:
        return self.mode is ThemeMode.HIGH_CONTRAST

    @property
    def header(self) -> QColor:
        """Header strip and composer: ``surface`` by day, ``panel`` by night."""
        return self.panel if self.is_dark else self.surface

    @property
    def focus_width(self) -> float:
        return 3 if self.is_high_contrast else 2

    def avatar_fill(self, stable_id: str) -> QColor:
        return AVATAR_FILLS[avatar_index(stable_id)]

    def sender_colour(self, stable_id: str) -> QColor:
        return self.names[avatar_index(stable_id)]


class _Signals(QObject):
    changed = Signal()


_SIGNALS = _Signals()
theme_changed: SignalInstance = _SIGNALS.changed
"""Emitted without arguments after colours or text size have changed."""

_current: Theme | None = None


@cache
def _build(mode: ThemeMode, text_percent: int, density: Density = Density.COMFORTABLE) -> Theme:
    metrics = Metrics(text_percent, density)
    type_ = type_scale(metrics.factor, compact=metrics.is_compact)
    return Theme(**vars(COLOURS[mode]), mode=mode, type=type_, metrics=metrics)


def current_theme() -> Theme:
    """The theme in force; light at 100 % until ``set_theme`` was called."""
    return _current if _current is not None else _build(ThemeMode.LIGHT, 100)


def set_theme(
    app: QApplication,
    mode: ThemeMode,
    *,
    text_percent: int = 100,
    density: Density = Density.COMFORTABLE,
) -> Theme:
    """Give the whole application this look.  ``text_percent`` is kept within 85 to 200."""
    global _current  # noqa: PLW0603 - one look per process, as Qt's own palette is.
    theme = _build(mode, clamp_percent(text_percent), density)
    if theme is _current:
        return theme
    _current = theme
    _desktop_palette()
    if app.style().objectName() != "fusion":
        app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(palette_of(theme))
    app.setFont(theme.type.body.font)
    app.setStyleSheet(stylesheet_of(theme, theme.type, theme.metrics))
    theme_changed.emit()
    return theme


def system_mode() -> ThemeMode:
    """What the desktop asks for, where it says so; light otherwise."""
    match QGuiApplication.styleHints().colorScheme():
        case Qt.ColorScheme.Dark:
            return ThemeMode.DARK
        case Qt.ColorScheme.Light:
            return ThemeMode.LIGHT
        case _:
            return ThemeMode.DARK if is_dark(_desktop_palette()) else ThemeMode.LIGHT


def is_dark(palette: QPalette) -> bool:
    return palette.windowText().color().lightness() > palette.window().color().lightness()


@cache
def _desktop_palette() -> QPalette:
    """As the desktop gave it: first called before our own palette is set."""
    return QPalette(QGuiApplication.palette())
