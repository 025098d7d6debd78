"""Asks for the profile's passphrase: a field, what is wrong, how long to wait, a hint on caps lock.

The same form stands in the window before a profile opens and on the page over a locked window.
While a passphrase is tried the field rests, and the window goes on.
"""

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.core.errors import ChatError, StorageError, StorageFault
from ui.controls import Button, Text
from ui.dialogs.backup import secret_field
from ui.dialogs.sheet import field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.icons import icon
from ui.lock_port import UnlockPort
from ui.problem_words import sentence
from ui.tasks import Tasks
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_TICK_MS: Final = 1_000
_ICON: Final = 36
_GAP: Final = 8


class UnlockForm(QWidget):
    unlocked = Signal()

    def __init__(self, port: UnlockPort, tasks: Tasks, *, title: str, words: str) -> None:
        super().__init__()
        self._port = port
        self._tasks = tasks
        self._is_trying = False
        self._picture = QLabel()
        self.title = Text(title, face="heading", strong=True, wrap=True)
        self.words = Text(words, colour="ink2", wrap=True)
        self.passphrase = secret_field()
        self.caps_lock = Text(tr("Caps lock is on."), face="small", colour="warn", wrap=True)
        self.caps_lock.hide()
        self.problem = problem_line()
        self.confirm = Button(tr("Unlock"), kind="primary", size="big")
        self._tick = QTimer(self)
        self._tick.setInterval(_TICK_MS)
        self._tick.timeout.connect(self._count_down)
        self._lay_out()
        self.passphrase.installEventFilter(self)
        self.passphrase.returnPressed.connect(self.submit)
        self.passphrase.textChanged.connect(self._judge)
        self.confirm.clicked.connect(self.submit)
        theme_changed.connect(self._dress)
        self._dress()
        self._judge()

    def _lay_out(self) -> None:
        self.setFocusProxy(self.passphrase)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(_GAP)
        column.addWidget(self._picture)
        column.addWidget(self.title)
        column.addWidget(self.words)
        column.addSpacing(_GAP)
        for part in (
            field_label(tr("Passphrase"), self.passphrase),
            self.passphrase,
            self.caps_lock,
            self.problem,
        ):
            column.addWidget(part)
        column.addSpacing(_GAP)
        column.addWidget(self.confirm, 0, Qt.AlignmentFlag.AlignLeft)

    def begin(self) -> None:
        """Empty, and ready to be typed in, unless wrong ones are being waited for."""
        self.passphrase.clear()
        self.caps_lock.hide()
        say_problem(self.problem, "")
        self._wait_if_needed()
        self.passphrase.setFocus(Qt.FocusReason.OtherFocusReason)

    def end(self) -> None:
        self.passphrase.clear()
        self._tick.stop()

    def _judge(self) -> None:
        rests = self._is_trying or self._tick.isActive()
        self.passphrase.setReadOnly(rests)
        self.confirm.setEnabled(bool(self.passphrase.text()) and not rests)

    # --- trying -----------------------------------------------------------------------------------

    def submit(self) -> None:
        if not self.confirm.isEnabled():
            return
        passphrase = self.passphrase.text()

        async def work() -> None:
            try:
                await self._port.try_passphrase(passphrase)
            except ChatError as error:
                self._refused(error)
            else:
                self._is_trying = False
                self.confirm.rename(tr("Unlock"))
                self.end()
                self._judge()
                self.unlocked.emit()

        self._is_trying = True
        say_problem(self.problem, "")
        self.confirm.rename(tr("One moment…"))
        self._judge()
        self._tasks.spawn(work, purpose=tr("try the passphrase"), retry=False)

    def _refused(self, error: ChatError) -> None:
        self._is_trying = False
        self.confirm.rename(tr("Unlock"))
        say_problem(self.problem, sentence(error_words(error)))
        self._say(self.problem.text())
        if isinstance(error, StorageError) and error.fault is not StorageFault.TOO_SOON:
            self.passphrase.selectAll()
        self._wait_if_needed()
        self.passphrase.setFocus(Qt.FocusReason.OtherFocusReason)

    def _wait_if_needed(self) -> None:
        if self._port.wait_ms():
            self._tick.start()
            self._count_down()
            self._say(self.problem.text())
        self._judge()

    def _count_down(self) -> None:
        wait_ms = self._port.wait_ms()
        if wait_ms:
            seconds = -(-wait_ms // 1_000)
            words = tr(
                "This was not the passphrase. Try again in %n seconds.",
                "This was not the passphrase. Try again in %n second.",
                seconds,
            )
            say_problem(self.problem, words)
            return
        self._tick.stop()
        say_problem(self.problem, "")
        self._judge()

    def _say(self, words: str) -> None:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.passphrase, words))

    # --- keys and looks ---------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """No desktop tells Qt of caps lock; a letter that was typed does."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            self._look_at(event)
        return super().eventFilter(watched, event)

    def _look_at(self, event: QKeyEvent) -> None:
        text, modifiers = event.text(), event.modifiers()
        if event.key() == Qt.Key.Key_CapsLock:
            self.caps_lock.hide()  # It may be on or off now; the next letter tells.
        elif len(text) == 1 and text.lower() != text.upper():
            shifted = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
            self.caps_lock.setVisible((text == text.upper()) is not shifted)

    def _dress(self) -> None:
        theme = current_theme()
        size = theme.metrics.scaled(_ICON)
        self._picture.setPixmap(icon("lock", theme.accentInk, size).pixmap(size, size))


class ForgottenFoot(QWidget):
    """What somebody can do who cannot unlock it, one below the other: large text needs the room."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Text(
            tr(
                "Forgotten? Nobody can find it out. A backup, which has a passphrase of its own,"
                " can be restored into a new profile; this one stays as it is."
            ),
            face="small",
            colour="ink2",
            wrap=True,
        )
        self.restore = Button(tr("Restore a backup"), kind="ghost")
        self.quit = Button(tr("Quit"), kind="ghost")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(_GAP)
        column.addWidget(self.words)
        for button in (self.restore, self.quit):
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
