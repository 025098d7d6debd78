"""A dialog that lies inside the window it belongs to: what sheets and the picture viewer share.

Under it lies a veil that keeps everything else from the mouse, the keys and the shortcuts; the
focus stays inside and goes back where it was, or to what takes the keys in that part of the window.
Where the window is not shown, the dialog is a window of its own.
"""

from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QDialog, QWidget
from shiboken6 import isValid

from ui.motion import Movement
from ui.shadow import draw_shadow
from ui.theme import Radius, current_theme, theme_changed

MARGIN = 12
"""Between the dialog and the edge of its window."""
_VEIL = 0.35


@runtime_checkable
class TakesFocus(Protocol):
    """A part of the window that knows where in it the focus belongs.

    A focus proxy would say the same, and take all else in that part out of Tab's round.
    """

    def take_focus(self) -> None: ...


class _Veil(QWidget):
    """Over all of a window but the dialog that lies on it."""

    resized = Signal()

    def __init__(self, window: QWidget, dialog: QDialog) -> None:
        super().__init__(window)
        self._window = window
        self._dialog = dialog
        window.installEventFilter(self)
        dialog.destroyed.connect(self.deleteLater)
        self._fade = Movement(self)
        self._fade.changed.connect(self.update)
        self.setGeometry(window.rect())
        self.show()
        self._fade.appear()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._window.rect())
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        dark = QColor(Qt.GlobalColor.black)
        dark.setAlphaF(_VEIL * self._fade.value)
        painter.fillRect(self.rect(), dark)
        if isValid(self._dialog) and self._dialog.isVisible():
            painter.setOpacity(self._fade.value)
            around = QRectF(self._dialog.geometry())
            draw_shadow(painter, around, theme.metrics.gap(Radius.DIALOG), theme)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.accept()


class OverlayDialog(QDialog):
    """``fit`` and ``appeared`` are for those who derive from it."""

    def __init__(self, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._host = None if parent is None else parent.window()
        self._veil: _Veil | None = None
        self._is_over = False
        self._focus_before: QWidget | None = None
        self._focus_wanted: QWidget | None = None
        theme_changed.connect(self.update)

    # --- where it lies ----------------------------------------------------------------------------

    @property
    def lies_inside(self) -> bool:
        """Rather than being a window of its own."""
        return self._veil is not None or (self._host is not None and self._host.isVisible())

    def room(self) -> QSize:
        """What it may take: its window, or the screen where it is a window of its own."""
        if self._host is not None and self.lies_inside:
            room = self._host.size()
        else:
            room = self.screen().availableGeometry().size()
        return room - QSize(2 * MARGIN, 2 * MARGIN)

    def fit(self) -> None:
        """Take the size that the room allows: before it appears, and when its window changes."""

    def appeared(self) -> None:
        """It is there, and something in it has the focus."""

    def setVisible(self, visible: bool) -> None:
        """As large as it needs, and where it belongs, before it is there."""
        appears = visible and not self.isVisible()
        if appears:
            self._lie_down()
            self.fit()
            self.centre()
        super().setVisible(visible)
        if appears and self._veil is not None:
            self._take_focus()
            self.appeared()

    def _lie_down(self) -> None:
        if self._host is None or not self.lies_inside or self._veil is not None:
            return
        self._focus_before = _last_focused(self._host)
        self._focus_wanted = _last_focused(self)  # Qt forgets it with the parent.
        self._veil = _Veil(self._host, self)
        self._veil.resized.connect(self._refit)
        self.setParent(self._veil, Qt.WindowType.SubWindow)
        if isinstance(app := QApplication.instance(), QApplication):
            app.focusChanged.connect(self._keep_focus)

    def _refit(self) -> None:
        """Its window has another size."""
        self.fit()
        self.centre()

    def centre(self) -> None:
        """In the middle of its window."""
        if self._veil is not None:
            self.move(self._veil.rect().center() - self.rect().center())
            self._stay_inside()
            self._veil.update()

    def _stay_inside(self) -> None:
        if self._veil is None:
            return
        frame, room = self.geometry(), self._veil.rect()
        left = max(min(frame.x(), room.right() - frame.width()), room.left())
        top = max(min(frame.y(), room.bottom() - frame.height()), room.top())
        self.move(left, top)

    def done(self, result: int) -> None:
        self._is_over = True
        if self._veil is not None:
            _give_back_focus(self._focus_before)  # Now: what goes away with it gives it to anybody.
        super().done(result)
        if self._veil is not None:
            self._veil.hide()

    # --- keys -------------------------------------------------------------------------------------

    def _take_focus(self) -> None:
        focused = QApplication.focusWidget()
        if focused is not None and self.isAncestorOf(focused):
            return
        wanted = self._focus_wanted
        if wanted is not None and wanted.isVisibleTo(self):
            wanted.setFocus()
        else:
            self.focusNextPrevChild(True)

    def _keep_focus(self, old: QWidget | None, now: QWidget | None) -> None:
        """The window below may want the keys by itself, as when a notification is clicked."""
        if self._is_over or now is None or now.window() is not self._host or _is_on_a_veil(now):
            return
        self._focus_before = now
        if old is not None and isValid(old) and self.isAncestorOf(old):
            self._focus_wanted = old
        self._take_focus()

    def focusNextPrevChild(self, forward: bool, /) -> bool:
        """Tab stays inside, as Qt has it for a sub-window.

        The chain of focus is not walked here: PySide takes what ``nextInFocusChain`` gives for a
        child of what was asked, and with the dialog the window's actions would be gone for Python.
        """
        moved = super().focusNextPrevChild(forward)
        return moved or self._veil is not None

    def event(self, event: QEvent) -> bool:
        """No shortcut of the window below does anything while it lies there."""
        if event.type() == QEvent.Type.ShortcutOverride and self._veil is not None:
            event.accept()
            return True
        return super().event(event)

    # --- looks ------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        if self._veil is None:
            painter.fillRect(self.rect(), theme.surface)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.surface)
        radius = theme.metrics.gap(Radius.DIALOG)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, radius, radius)


def _is_on_a_veil(widget: QWidget) -> bool:
    parent: QWidget | None = widget
    while parent is not None and not isinstance(parent, _Veil):
        parent = parent.parentWidget()
    return parent is not None


def _last_focused(dialog: QWidget) -> QWidget | None:
    """What was given the focus before anything could have it."""
    return dialog.focusWidget()


def _give_back_focus(widget: QWidget | None) -> None:
    """To ``widget``, or, if it went away meanwhile, to the part of the window that it was in."""
    if widget is None or not isValid(widget):
        return
    if widget.isVisible():
        widget.setFocus()
        return
    part = widget.parentWidget()
    while part is not None and not isinstance(part, TakesFocus):
        part = part.parentWidget()
    if part is not None:
        part.take_focus()
