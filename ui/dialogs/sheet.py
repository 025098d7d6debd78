"""The frame of every dialog: title, words, content, buttons; opened, never executed.

``exec()`` inside a coroutine would stop every task of the program, so a sheet opens and its answer
is awaited.  Closing it in any way answers no.
"""

import asyncio

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.api import MAX_NAME_CHARACTERS
from ui.controls import Button, ButtonKind, Text
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_WIDTH = 440
_EDGE = 24


class Sheet(QDialog):
    def __init__(self, title: str, words: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._whole = QVBoxLayout(self)
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

    def setVisible(self, visible: bool) -> None:
        """As high as it needs, and where it belongs, before it is there.

        A window manager may lose it otherwise, or put it into the screen's corner when it grows.
        """
        if visible and not self.isVisible():
            self._fit_footer()
            self._fit_height()
            self._centre()
        super().setVisible(visible)

    def event(self, event: QEvent) -> bool:
        """Qt never shrinks a dialog, and makes one too small whose texts wrap."""
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._fit_height()
        return handled

    def _fit_height(self) -> None:
        self._whole.activate()
        height = self._whole.totalHeightForWidth(self.width())
        room = self.screen().availableGeometry().height()
        height = min(max(height, self.minimumHeight()), room)
        if height != self.height():
            self.resize(self.width(), height)
            if self.isVisible():
                self._stay_on_screen()

    def _fit_footer(self) -> None:
        """Buttons that do not fit side by side stand in a column, the last one on top."""
        inner = self.width() - 2 * _EDGE
        if self.footer.minimumSize().width() > inner:
            self.footer.setDirection(QBoxLayout.Direction.BottomToTop)
            for button in self.findChildren(Button):
                if self.footer.indexOf(button) >= 0:
                    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def _centre(self) -> None:
        """In the middle of its window, and wholly on that window's screen."""
        parent = self.parentWidget()
        if parent is not None:
            middle = parent.window().frameGeometry().center()
            self.move(middle - self.rect().center())
            self._stay_on_screen()

    def _stay_on_screen(self) -> None:
        frame, room = self.frameGeometry(), self.screen().availableGeometry()
        left = max(min(frame.x(), room.right() - frame.width()), room.left())
        top = max(min(frame.y(), room.bottom() - frame.height()), room.top())
        if (left, top) != (frame.x(), frame.y()):
            self.move(left, top)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().surface)

    def _fit(self) -> None:
        width = current_theme().metrics.scaled(_WIDTH)
        parent = self.parentWidget()
        if parent is not None:
            # Not wider than a narrow window, unless its letters are large.
            width = min(width, max(280, int(width * 0.75), parent.window().width() - 24))
        width = min(width, self.screen().availableGeometry().width() - 24)
        self.setFixedWidth(width)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)


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
