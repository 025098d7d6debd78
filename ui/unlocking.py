"""The window before a profile that only its passphrase opens: asks for it, or leads to a backup.

It stands alone: there is no engine yet, and nothing of the profile is known but its name.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from ui.controls import Area, Text
from ui.fitted_scroll_area import FittedScrollArea
from ui.icons import app_icon
from ui.lock_port import UnlockPort
from ui.tasks import Tasks
from ui.theme import current_theme
from ui.translate import tr
from ui.unlock_form import ForgottenFoot, UnlockForm

_WIDTH = 440
_EDGE, _GAP = 16, 12
_FRAME = 40
_SAID = 72
"""What may be said below the field."""


class UnlockWindow(Area):
    finished = Signal(bool)
    """Whether the passphrase was right."""
    restore_requested = Signal()

    def __init__(self, port: UnlockPort, tasks: Tasks, *, profile: str, reason: str = "") -> None:
        """``reason``: why the passphrase is asked for, if something else should open it."""
        super().__init__("canvas")
        self.setWindowTitle("Causerie")
        self.setWindowIcon(app_icon())
        self._is_over = False
        words = tr("Your messages on this device are encrypted. Your passphrase opens them.")
        if profile != "default":
            words += " " + tr("Profile: {name}").format(name=profile)
        self.form = UnlockForm(port, tasks, title=tr("Enter your passphrase"), words=words)
        self.reason = Text(
            tr(
                "What opens this profile otherwise does not work just now: the system keyring is"
                " locked or was changed, or a file is missing. The passphrase opens it all the"
                " same."
            ),
            face="small",
            colour="warn",
            wrap=True,
        )
        self.reason.setVisible(bool(reason))
        self.foot = ForgottenFoot()
        self.restore, self.quit = self.foot.restore, self.foot.quit
        self._lay_out()
        self.form.unlocked.connect(lambda: self._end(is_open=True))
        self.restore.clicked.connect(self._ask_for_restore)
        self.quit.clicked.connect(self.close)
        self.form.begin()

    def _lay_out(self) -> None:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        column.setSpacing(_GAP)
        for part in (self.form, self.reason):
            column.addWidget(part)
        column.addStretch(1)
        column.addWidget(self.foot)
        self.area: QScrollArea = FittedScrollArea(content)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.area)
        room = self.screen().availableGeometry().size()
        width = min(current_theme().metrics.scaled(_WIDTH), room.width())
        height = column.totalHeightForWidth(width) + current_theme().metrics.scaled(_SAID)
        self.resize(width, min(height, room.height() - _FRAME))

    def _ask_for_restore(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.restore_requested.emit()

    def _end(self, *, is_open: bool) -> None:
        if not self._is_over:
            self._is_over = True
            self.finished.emit(is_open)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.form.end()
        self._end(is_open=False)
