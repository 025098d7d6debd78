"""The frame of every dialog: title, words, content, buttons; opened, never executed.

It lies inside the window it belongs to (``ui.dialogs.overlay``).  ``exec()`` inside a coroutine
would stop every task of the program, so a sheet opens and its answer is awaited.  Closing it in any
way answers no.
"""

import asyncio

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QSpacerItem,
    QVBoxLayout,
    QWidget,
)

from engine.api import MAX_NAME_CHARACTERS
from ui.controls import Button, ButtonKind, Text
from ui.dialogs.overlay import MARGIN, OverlayDialog
from ui.theme import current_theme
from ui.translate import tr

_WIDTH = 440
_LIST_HEIGHT, _LEAST_LIST_HEIGHT = 360, 96
_EDGE = 24


class ScrolledPart(QScrollArea):
    """As high as its content, up to a bound; lower where its sheet has no room for that.

    So it is the only part that scrolls, and title and buttons stay in view.
    """

    def __init__(self, content: QWidget, name: str) -> None:
        super().__init__()
        self._content = content
        self._most: int | None = None
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(content)
        # Both are filled by default, and the second only once it was handed over.
        self.viewport().setAutoFillBackground(False)
        content.setAutoFillBackground(False)

    def sizeHint(self) -> QSize:
        wanted = min(_LIST_HEIGHT, self._content.sizeHint().height() + 4)
        return QSize(super().sizeHint().width(), wanted if self._most is None else self._most)

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self.sizeHint().height())

    def spare(self, pixels: int) -> None:
        """Be lower by this much, or higher again, within the bounds."""
        now, self._most = self.sizeHint().height(), None
        wanted = self.sizeHint().height()
        lower = max(_LEAST_LIST_HEIGHT, now - pixels)
        self._most = lower if lower < wanted else None
        if self.sizeHint().height() != now:
            self.updateGeometry()


class Sheet(OverlayDialog):
    def __init__(self, title: str, words: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._widest = 0
        self._overhang: QSpacerItem | None = None
        """Of a ghost button's unseen edge, to the left, while buttons stand side by side."""
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
        self._fit()

    def add_button(self, text: str, *, kind: ButtonKind = "plain", left: bool = False) -> Button:
        button = Button(text, kind=kind, size="big")
        if left:
            self.footer.insertWidget(0, button)
            self.footer.insertStretch(1, 1)
            if kind == "ghost":  # Its words, not its unseen edge, stand below the text.
                self._overhang = QSpacerItem(-button.inset(), 0)
                self.footer.insertItem(0, self._overhang)
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

    # --- how large it is --------------------------------------------------------------------------

    def fit(self) -> None:
        """As high as it needs."""
        self._widest = max(self._widest, self.width())
        self.setFixedWidth(min(self._widest, self.room().width()))
        self._fit_footer()
        self._fit_height()

    def appeared(self) -> None:
        if not isinstance(QApplication.focusWidget(), QLineEdit):
            self._frame.verticalScrollBar().setValue(0)  # One reads it from its title on.

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
        for part in self._page.findChildren(ScrolledPart):
            part.spare(self.needed_height() - self.room().height())
        needed = max(self.needed_height(), self.minimumHeight())
        height = min(needed, self.room().height())
        # A bar takes width, so that words wrap which else would not: shown once, it would stay.
        fits = height >= needed
        policy = Qt.ScrollBarPolicy
        self._frame.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if fits else policy.ScrollBarAsNeeded
        )
        if height != self.height():
            self.resize(self.width(), height)
            if self.isVisible():
                self.centre()

    # --- looks ------------------------------------------------------------------------------------

    def _fit_footer(self) -> None:
        """Buttons that do not fit side by side stand in a column, the last one on top."""
        inner = self.width() - 2 * _EDGE
        if self.footer.minimumSize().width() > inner:
            if self._overhang is not None:
                self.footer.removeItem(self._overhang)
                self._overhang = None
            self.footer.setDirection(QBoxLayout.Direction.BottomToTop)
            for button in self.findChildren(Button):
                if self.footer.indexOf(button) >= 0:
                    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def _fit(self) -> None:
        width = current_theme().metrics.scaled(_WIDTH)
        if self.lies_inside:
            width = min(width, self.room().width())
        width = min(width, self.screen().availableGeometry().width() - 2 * MARGIN)
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
