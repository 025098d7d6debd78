"""Tool tips of our own: rounded, with the one shadow, and lines as long as they are good to read.

Qt's label can have neither soft corners nor a shadow.  A widget with a tip has a filter of its own,
which hears only of that widget; while a tip is shown, the application is watched for what ends it,
as Qt does with its own.
"""

import html
from textwrap import wrap
from typing import Final, Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QRegion,
)
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from ui.menu import blends_windows
from ui.shadow import draw_shadow
from ui.theme import SHADOW_REACH, Radius, Spacing, current_theme

_CHARACTERS: Final = 60
"""In a line."""
_WORDS: Final = "tip"
"""The property that has a widget's words."""
_BELOW: Final = QPoint(2, 20)
"""Of the mouse, so that the pointer hides nothing."""
_ABOVE: Final = 6
_FAR: Final = 32
"""Further from where it was asked for the mouse is at something else."""
_LEAST_MS, _MS_PER_CHARACTER = 8_000, 50
_ENDS: Final = frozenset(
    {
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseButtonDblClick,
        QEvent.Type.Wheel,
        QEvent.Type.KeyPress,
    }
)
_ENDS_OF_OWNER: Final = frozenset({QEvent.Type.Leave, QEvent.Type.Hide})
_ENDS_OF_WINDOW: Final = frozenset({QEvent.Type.WindowDeactivate, QEvent.Type.Close})


def set_tip(widget: QWidget, text: str) -> None:
    """A tool tip, and the same words for screen readers."""
    said = widget.property(_WORDS)
    if said == text:
        return
    if said is None:
        widget.installEventFilter(_asked())
    widget.setProperty(_WORDS, text)
    widget.setToolTip(plain_tip(text))
    widget.setAccessibleDescription(text)


def plain_tip(text: str) -> str:
    """For what Qt shows itself: nothing in it is read as markup, and its lines are ours."""
    return f"<div style='white-space:pre'>{html.escape(_lines(text))}</div>" if text else ""


def show_tip(at: QPoint, text: str, owner: QWidget) -> None:
    """``at``: the mouse, on the screen; without a text nothing is shown any more."""
    global _shown  # noqa: PLW0603 - one mouse, one tip.
    if _shown is not None and isValid(_shown):
        if text and _shown.words == _lines(text) and _shown.owner is owner:
            return
        _shown.end()
    _shown = _Tip(at, _lines(text), owner) if text else None


def shown_tip() -> str:
    """The words in view; "" for none."""
    return _shown.words if _shown is not None and isValid(_shown) and _shown.isVisible() else ""


def _lines(text: str) -> str:
    lines = (part for line in text.split("\n") for part in wrap(line, _CHARACTERS) or [""])
    return "\n".join(lines)


@runtime_checkable
class TipByPlace(Protocol):
    """A widget that has been given a tip, and has others for some of its places."""

    def tip_at(self, point: QPoint) -> str: ...


class _Asked(QObject):
    """Shows the words of the widget that the mouse rests on."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.ToolTip:
            return False
        words = watched.property(_WORDS)
        if isinstance(watched, TipByPlace) and isinstance(event, QHelpEvent):
            words = watched.tip_at(event.pos())
        if not words or not isinstance(event, QHelpEvent) or not isinstance(watched, QWidget):
            return False
        show_tip(event.globalPos(), str(words), watched)
        return True


class _Tip(QWidget):
    def __init__(self, at: QPoint, words: str, owner: QWidget) -> None:
        kind = Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint
        super().__init__(owner, kind | Qt.WindowType.NoDropShadowWindowHint)
        self.words = words
        self._at = at
        self._blends = blends_windows()
        self._reach = SHADOW_REACH if self._blends else 0
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        if self._blends:
            self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.resize(self._size())
        self.move(self._place())
        if not self._blends:
            radius = current_theme().metrics.gap(Radius.GROUPED)
            shape = QPainterPath()
            shape.addRoundedRect(QRectF(self.rect()), radius, radius)
            self.setMask(QRegion(shape.toFillPolygon().toPolygon()))
        QTimer.singleShot(_LEAST_MS + _MS_PER_CHARACTER * len(words), self, self.end)
        if isinstance(app := QApplication.instance(), QApplication):
            app.installEventFilter(self)
        self.show()

    @property
    def owner(self) -> QWidget:
        """What it speaks of, and goes with.

        No reference is held: it could be the last, and Qt would destroy both within the tip's end.
        """
        return self.parentWidget() or self

    def end(self) -> None:
        if isinstance(app := QApplication.instance(), QApplication):
            app.removeEventFilter(self)
        self.hide()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if (
            kind in _ENDS
            or (kind in _ENDS_OF_OWNER and watched is self.owner)
            or (kind in _ENDS_OF_WINDOW and watched is self.owner.window())
            or (kind == QEvent.Type.MouseMove and self._is_far(event))
        ):
            self.end()
        return False

    def _is_far(self, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent) or self.owner.property(_WORDS) is not None:
            return False
        return (event.globalPosition().toPoint() - self._at).manhattanLength() > _FAR

    # --- where, and how large ---------------------------------------------------------------------

    def _text_box(self) -> QRectF:
        gap, reach = current_theme().metrics.gap, self._reach
        across, down = gap(Spacing.SNUG) + reach, gap(Spacing.TINY) + reach
        return QRectF(self.rect()).adjusted(across, down, -across, -down)

    def _size(self) -> QSize:
        theme = current_theme()
        gap, metrics = theme.metrics.gap, QFontMetricsF(theme.type.caption.font)
        lines = self.words.split("\n")
        width = max(metrics.horizontalAdvance(line) for line in lines)
        height = len(lines) * theme.type.caption.line_height
        across, down = gap(Spacing.SNUG) + self._reach, gap(Spacing.TINY) + self._reach
        return QSize(int(width + 2 * across) + 2, int(height + 2 * down) + 2)

    def _place(self) -> QPoint:
        """Below the mouse, or above it where the screen ends."""
        reach = QPoint(self._reach, self._reach)
        screen = QGuiApplication.screenAt(self._at) or self.owner.screen()
        room, place = screen.availableGeometry(), QRect(self._at + _BELOW - reach, self.size())
        if place.bottom() > room.bottom():
            place.moveBottom(self._at.y() - _ABOVE + self._reach)
        place.moveLeft(max(room.left(), min(place.left(), room.right() - place.width())))
        place.moveTop(max(room.top(), place.top()))
        return place.topLeft()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter, reach = current_theme(), QPainter(self), self._reach
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(reach, reach, -reach, -reach)
        radius = theme.metrics.gap(Radius.GROUPED)
        if self._blends:
            draw_shadow(painter, box, radius, theme)
        painter.setPen(QPen(theme.line2, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        painter.setFont(theme.type.caption.font)
        painter.setPen(theme.ink)
        text = self._text_box()
        for number, line in enumerate(self.words.split("\n")):
            height = theme.type.caption.line_height
            place = QRectF(text.left(), text.top() + number * height, text.width(), height)
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(place, int(flags | Qt.TextFlag.TextDontClip), line)


_shown: _Tip | None = None
_filter: _Asked | None = None


def _asked() -> _Asked:
    """One for all widgets."""
    global _filter  # noqa: PLW0603 - as above; made when there is an application.
    if _filter is None or not isValid(_filter):
        _filter = _Asked(QApplication.instance())
    return _filter
