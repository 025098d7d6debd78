"""The frame of every dialog: title, words, content, buttons; opened, never executed.

It lies inside the window it belongs to, on a veil that keeps everything else from the mouse, the
keys and the shortcuts.  ``exec()`` inside a coroutine would stop every task of the program, so a
sheet opens and its answer is awaited.  Closing it in any way answers no.
"""

import asyncio

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
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from engine.api import MAX_NAME_CHARACTERS
from ui.controls import Button, ButtonKind, Text
from ui.motion import Movement
from ui.shadow import draw_shadow
from ui.theme import Radius, current_theme, theme_changed
from ui.translate import tr

_WIDTH = 440
_EDGE = 24
_MARGIN = 12
"""Between a sheet and the edge of its window."""
_VEIL = 0.35


class _Veil(QWidget):
    """Over all of a window but the sheet that lies on it."""

    resized = Signal()

    def __init__(self, window: QWidget, sheet: QDialog) -> None:
        super().__init__(window)
        self._window = window
        self._sheet = sheet
        window.installEventFilter(self)
        sheet.destroyed.connect(self.deleteLater)
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
        if isValid(self._sheet) and self._sheet.isVisible():
            painter.setOpacity(self._fade.value)
            around = QRectF(self._sheet.geometry())
            draw_shadow(painter, around, theme.metrics.gap(Radius.DIALOG), theme)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.accept()


class Sheet(QDialog):
    def __init__(self, title: str, words: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._host = None if parent is None else parent.window()
        self._veil: _Veil | None = None
        self._is_over = False
        self._widest = 0
        self._focus_before: QWidget | None = None
        self._focus_wanted: QWidget | None = None
        self._page = QWidget()
        self._page.installEventFilter(self)
        self._frame = QScrollArea()
        self._frame.setFrameShape(QFrame.Shape.NoFrame)
        self._frame.setWidgetResizable(True)
        self._frame.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._frame.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._whole = QVBoxLayout(self._page)
        self._frame.setWidget(self._page)
        self._frame.viewport().setAutoFillBackground(False)
        self._page.setAutoFillBackground(False)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.addWidget(self._frame)
        self._whole.setContentsMargins(_EDGE, 22, _EDGE, 20)
        self._whole.setSpacing(0)
        self.title = Text(title, face="title", strong=True, wrap=True)
        self._whole.addWidget(self.title)
        if words:
            self._whole.addSpacing(6)
            self._whole.addWidget(Text(words, face="body", colour="ink2", wrap=True))
        self._whole.addSpacing(16)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        self._whole.addLayout(self.body)
        self._whole.addSpacing(20)
        self.footer = QHBoxLayout()
        self.footer.setSpacing(8)
        self._whole.addLayout(self.footer)
        theme_changed.connect(self.update)
        self._fit()

    def add_button(self, text: str, *, kind: ButtonKind = "plain", left: bool = False) -> Button:
        button = Button(text, kind=kind, size="big")
        if left:
            self.footer.insertWidget(0, button)
            self.footer.insertStretch(1, 1)
            if kind == "ghost":  # Its words, not its unseen edge, stand below the text.
                self.footer.insertSpacing(0, -button.inset())
        else:
            self.footer.addWidget(button)
        return button

    def add_close(self, text: str = "") -> Button:
        """``text``: "Close" if empty."""
        self.footer.addStretch(1)
        button = self.add_button(text or tr("Close"))
        button.clicked.connect(self.reject)
        button.setDefault(True)
        return button

    async def answered(self) -> bool:
        """Open it and wait; True if it was accepted."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(code: int) -> None:
            if not answer.done():
                answer.set_result(code == QDialog.DialogCode.Accepted.value)

        self.finished.connect(settle)
        self.open()
        return await answer

    # --- where it lies ----------------------------------------------------------------------------

    def room(self) -> QSize:
        """What it may take: its window, or the screen where it is a window of its own."""
        if self._host is not None and self._lies_inside():
            room = self._host.size()
        else:
            room = self.screen().availableGeometry().size()
        return room - QSize(2 * _MARGIN, 2 * _MARGIN)

    def _lies_inside(self) -> bool:
        return self._veil is not None or (self._host is not None and self._host.isVisible())

    def setVisible(self, visible: bool) -> None:
        """As high as it needs, and where it belongs, before it is there."""
        appears = visible and not self.isVisible()
        if appears:
            self._lie_down()
            self._fit_footer()
            self._fit_height()
            self._centre()
        super().setVisible(visible)
        if appears and self._veil is not None:
            self._take_focus()
            if not isinstance(QApplication.focusWidget(), QLineEdit):
                self._frame.verticalScrollBar().setValue(0)  # One reads it from its title on.

    def _lie_down(self) -> None:
        if self._host is None or not self._lies_inside() or self._veil is not None:
            return
        self._widest = self.width()
        self._focus_before = _last_focused(self._host)
        self._focus_wanted = _last_focused(self)  # Qt forgets it with the parent.
        self._veil = _Veil(self._host, self)
        self._veil.resized.connect(self._refit)
        self.setParent(self._veil, Qt.WindowType.SubWindow)
        if isinstance(app := QApplication.instance(), QApplication):
            app.focusChanged.connect(self._keep_focus)

    def _refit(self) -> None:
        """Its window has another size."""
        self.setFixedWidth(min(self._widest, self.room().width()))
        self._fit_height()
        self._centre()

    def done(self, result: int) -> None:
        self._is_over = True
        before = self._focus_before
        is_there = before is not None and isValid(before) and before.isVisible()
        if self._veil is not None and before is not None and is_there:
            before.setFocus()  # Now: what goes away with the focus gives it to anybody.
        super().done(result)
        if self._veil is not None:
            self._veil.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt never shrinks a dialog, and makes one too small whose texts wrap."""
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._fit_height()
        return super().eventFilter(watched, event)

    def needed_height(self) -> int:
        """Of all its words at its width."""
        self._whole.activate()
        return self._whole.totalHeightForWidth(self.width())

    def _fit_height(self) -> None:
        height = min(max(self.needed_height(), self.minimumHeight()), self.room().height())
        if height != self.height():
            self.resize(self.width(), height)
            if self.isVisible():
                self._centre()

    def _centre(self) -> None:
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
        self._veil.update()

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
        child of what was asked, and with the sheet the window's actions would be gone for Python.
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

    def _fit_footer(self) -> None:
        """Buttons that do not fit side by side stand in a column, the last one on top."""
        inner = self.width() - 2 * _EDGE
        if self.footer.minimumSize().width() > inner:
            self.footer.setDirection(QBoxLayout.Direction.BottomToTop)
            for button in self.findChildren(Button):
                if self.footer.indexOf(button) >= 0:
                    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

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

    def _fit(self) -> None:
        width = current_theme().metrics.scaled(_WIDTH)
        if self._host is not None and self._lies_inside():
            width = min(width, self._host.width() - 2 * _MARGIN)
        width = min(width, self.screen().availableGeometry().width() - 2 * _MARGIN)
        self.setFixedWidth(width)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)


def _is_on_a_veil(widget: QWidget) -> bool:
    parent: QWidget | None = widget
    while parent is not None and not isinstance(parent, _Veil):
        parent = parent.parentWidget()
    return parent is not None


def _last_focused(sheet: QWidget) -> QWidget | None:
    """What was given the focus before anything could have it."""
    return sheet.focusWidget()


def field_label(text: str, buddy: QWidget) -> Text:
    label = Text(text, face="small", colour="ink2", strong=True)
    label.setBuddy(buddy)
    buddy.setAccessibleName(text)
    return label


def problem_line() -> Text:
    """For an error said in place; empty until there is one."""
    line = Text(face="label", colour="danger", wrap=True)
    line.hide()
    return line


def say_problem(line: Text, text: str) -> None:
    line.setText(text)
    line.setAccessibleName(text)
    line.setVisible(bool(text))


def limit_name(field: QLineEdit, problem: Text) -> None:
    """As long as a name may be; what is cut off, of something pasted too, is said."""
    field.setMaxLength(MAX_NAME_CHARACTERS)
    words = tr(
        "A name has at most %n characters; the rest was left out.",
        "A name has at most %n character; the rest was left out.",
        MAX_NAME_CHARACTERS,
    )
    # After the field's own signals, which take back what was said before.
    queued = Qt.ConnectionType.QueuedConnection
    field.inputRejected.connect(lambda: say_problem(problem, words), queued)
