"""The icon in the desktop's tray, where there is one: unread count, menu, and Qt's own balloons.

A tray may come and go with the panel that it is in, so it is asked for each time it matters.  On
Windows and macOS notifications are Qt's (``TrayNotifications``): one at a time, without buttons.
"""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from ui.badge import badge_text
from ui.desktop.port import DesktopNotification, Heard, Opened
from ui.icons import app_icon
from ui.theme import current_theme
from ui.translate import tr

_SIDES: Final = (16, 22, 24, 32, 48, 64)
_MOST_COUNTED: Final = 99
_COUNT: Final = QColor("#A8201A")
"""The panel has colours of its own, whatever the window's are."""
_SHOWN_MS: Final = 8_000
_OPENING: Final = frozenset(
    {QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick}
)


def unread_words(number: int) -> str:
    if not number:
        return "Causerie"
    return tr("Causerie: %n unread", "Causerie: %n unread", number)


def badged_icon(number: int) -> QIcon:
    """The program's sign with a count at its lower right; 0: without one."""
    plain = app_icon()
    if not number:
        return plain
    result = QIcon()
    for side in _SIDES:
        pixmap = QPixmap(plain.pixmap(side, side))
        _draw_count(pixmap, badge_text(number, _MOST_COUNTED))
        result.addPixmap(pixmap)
    return result


def _draw_count(pixmap: QPixmap, text: str) -> None:
    side = float(pixmap.width())
    height = side * 0.62
    font = QFont(current_theme().type.micro.strong())
    font.setPixelSize(max(1, round(height * (0.86 if len(text) == 1 else 0.72))))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(font)
    width = max(height, painter.fontMetrics().horizontalAdvance(text) + height * 0.35)
    box = QRectF(side - min(width, side), side - height, min(width, side), height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(_COUNT)
    painter.drawRoundedRect(box, height / 2, height / 2)
    painter.setPen(Qt.GlobalColor.white)
    painter.drawText(box.translated(QPointF(0, side / 64)), Qt.AlignmentFlag.AlignCenter, text)
    painter.end()


class Tray(QObject):
    open_requested = Signal()

    def __init__(self, menu: QMenu, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.icon = QSystemTrayIcon(self)
        self._shown: int | None = None
        self.icon.setContextMenu(menu)
        self.icon.activated.connect(self._activated)
        self.show_unread(0)
        self.icon.show()

    def is_there(self) -> bool:
        """Whether the user sees it, so that a window which goes away can be had back."""
        return self.icon.isVisible() and QSystemTrayIcon.isSystemTrayAvailable()

    def show_unread(self, number: int) -> None:
        if number != self._shown:
            self._shown = number
            self.icon.setIcon(badged_icon(number))
            self.icon.setToolTip(unread_words(number))

    def hide(self) -> None:
        self.icon.hide()

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in _OPENING:
            self.open_requested.emit()


class TrayNotifications:
    """What Qt offers on Windows and macOS; a click opens the one that was shown last."""

    def __init__(self, icon: QSystemTrayIcon) -> None:
        self._icon = icon
        self._heard: Heard | None = None
        self._last = ""
        icon.messageClicked.connect(self._clicked)

    def listen(self, heard: Heard, /) -> None:
        self._heard = heard

    def show(self, notification: DesktopNotification, /) -> None:
        self._last = notification.key
        picture = QIcon(QPixmap.fromImage(notification.picture))
        self._icon.showMessage(notification.title, notification.body, picture, _SHOWN_MS)

    def withdraw(self, key: str, /) -> None:
        """Balloons go by themselves."""
        if key == self._last:
            self._last = ""

    def close(self) -> None:
        self._heard, self._last = None, ""

    def _clicked(self) -> None:
        if self._heard is not None and self._last:
            self._heard(Opened(self._last))


TrayMaker = Callable[[QMenu, QObject], Tray | None]


def make_tray(menu: QMenu, parent: QObject) -> Tray | None:
    """None where the desktop has none."""
    return Tray(menu, parent) if QSystemTrayIcon.isSystemTrayAvailable() else None
