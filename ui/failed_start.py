"""The window shown when the program could not start: why, and what to do.

There is no engine yet, and often no settings, so it needs neither.  Each action but two closes it
and is the caller's to carry out; opening the folder and saving a report leave it as it is.  The
technical text below the sentence is the command line's, to be copied into a question to others.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QHBoxLayout, QVBoxLayout

from engine.core.errors import ChatError, SettingsError, StorageError, StorageFault
from ui.controls import Area, Button, Text
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.icons import app_icon
from ui.theme import current_theme
from ui.translate import tr

_WIDTH = 520
_EDGE, _GAP = 24, 12
_LONGEST = 1_000
REPORT_NAME = "causerie-report.txt"


class StartAction(StrEnum):
    """What the user wants done before the next try; ``QUIT``: no further try."""

    TRY_AGAIN = "try_again"
    USE_DEFAULTS = "use_defaults"
    """Set the settings file aside."""
    ANY_PORT = "any_port"
    READ_WHAT_CAN_BE = "read_what_can_be"
    """Copy it into a profile beside the damaged one."""
    RESTORE = "restore"
    """A backup, into a profile beside the one that cannot be opened."""
    OPEN_RECOVERED = "open_recovered"
    QUIT = "quit"


class RecoveredRows(Struct, frozen=True, kw_only=True):
    """How much came over."""

    profile: str
    """The new one's name."""
    conversations: int
    messages: int
    people: int
    files: int
    others: int
    """Rows of all other kinds."""
    unreadable: int
    """Places that could not be read."""


class FailedStart(Struct, frozen=True, kw_only=True):
    """``error`` None: a bug of ours; ``details``: the command line's text."""

    error: ChatError | None
    details: str
    folder: Path
    actions: tuple[StartAction, ...] = (StartAction.TRY_AGAIN,)
    """Besides quitting, the likeliest to help first."""
    report: Callable[[], str]
    recovered: RecoveredRows | None = None
    """It did not fail: a new profile was made of a damaged one."""


def recovered_words(rows: RecoveredRows) -> str:
    came = tr("Came over: {conversations}, {messages}, {people}, {files}, {others}.").format(
        conversations=tr("%n conversations", "%n conversation", rows.conversations),
        messages=tr("%n messages", "%n message", rows.messages),
        people=tr("%n people", "%n person", rows.people),
        files=tr("%n files", "%n file", rows.files),
        others=tr("%n other records", "%n other record", rows.others),
    )
    lost = tr(
        "%n places could not be read; each held one row or more. Others may still have what is"
        " missing, and it is asked for.",
        "%n place could not be read; it held one row or more. Others may still have what is"
        " missing, and it is asked for.",
        rows.unreadable,
    )
    if not rows.unreadable:
        lost = tr("Nothing that could be found was left out.")
    where = tr("They are in the profile {name}; the damaged one stays as it is.").format(
        name=one_line(rows.profile, 60)
    )
    return f"{came} {lost} {where}"


def _action_words(action: StartAction) -> str:  # noqa: PLR0911 - a table of actions
    match action:
        case StartAction.TRY_AGAIN:
            return tr("Try again")
        case StartAction.USE_DEFAULTS:
            return tr("Use default settings")
        case StartAction.ANY_PORT:
            return tr("Use any free port")
        case StartAction.READ_WHAT_CAN_BE:
            return tr("Copy what can be read")
        case StartAction.RESTORE:
            return tr("Restore a backup")
        case StartAction.OPEN_RECOVERED:
            return tr("Open the new profile")
        case StartAction.QUIT:
            return tr("Quit")


def _title(failed: FailedStart) -> str:
    if failed.recovered is not None:
        return tr("What could be read was copied")
    if isinstance(failed.error, SettingsError):
        return tr("The settings cannot be used")
    return tr("Causerie could not start")


def _words(failed: FailedStart) -> str:
    if failed.recovered is not None:
        return recovered_words(failed.recovered)
    if failed.error is None:
        return tr("Something went wrong that should not. Please send a report to its makers.")
    said = error_words(failed.error)
    if failed.actions[:1] == (StartAction.USE_DEFAULTS,):
        kept = tr("With default settings it starts at once; your file is kept beside the new one.")
        return f"{said} {kept}"
    if StartAction.USE_DEFAULTS in failed.actions:
        kept = tr(
            "The line may be there to protect you, so it is not left out. Mend it and try again. "
            "Default settings do without it; your file is kept beside the new one."
        )
        return f"{said} {kept}"
    if isinstance(failed.error, StorageError) and failed.error.fault in (
        StorageFault.DAMAGED,
        StorageFault.NOT_DECRYPTED,
    ):
        kept = tr(
            "Nothing was changed. A backup is restored into a new profile; this one stays as it is."
        )
        if StartAction.READ_WHAT_CAN_BE in failed.actions:
            copied = tr("Without one, what can be read is copied into a new profile.")
            kept = f"{kept} {copied}"
        return f"{said} {kept}"
    return said


class FailedStartWindow(Area):
    chosen = Signal(str)
    """A ``StartAction``; closing the window means ``QUIT``."""

    def __init__(self, failed: FailedStart) -> None:
        super().__init__("canvas")
        self._failed = failed
        self._answered = False
        self.setWindowTitle("Causerie")
        self.setWindowIcon(app_icon())
        self.title = Text(_title(failed), face="heading", strong=True, wrap=True)
        self.words = Text(_words(failed), colour="ink2", wrap=True)
        self.details = Text(
            one_line(failed.details, _LONGEST), face="caption", colour="ink3", wrap=True
        )
        self.details.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.details.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # To be copied by keys, too.
        self.said = Text(face="caption", colour="ink2", wrap=True)
        self.said.hide()
        self.folder = Button(tr("Open the folder"), size="small")
        self.folder.clicked.connect(self._open_folder)
        self.report = Button(tr("Save a report…"), size="small")
        self.report.clicked.connect(self._ask_where)
        self.buttons = {
            action: Button(_action_words(action), kind="primary" if not place else "plain")
            for place, action in enumerate((*failed.actions, StartAction.QUIT))
        }
        for action, button in self.buttons.items():
            button.clicked.connect(lambda _=False, action=action: self._answer(action))
        self._lay_out()
        next(iter(self.buttons.values())).setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self) -> None:
        aids, foot = QHBoxLayout(), QHBoxLayout()
        aids.addWidget(self.folder)
        aids.addWidget(self.report)
        aids.addStretch(1)
        foot.setDirection(QBoxLayout.Direction.RightToLeft)
        for button in self.buttons.values():
            foot.addWidget(button)
        foot.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        whole.setSpacing(_GAP)
        for part in (self.title, self.words, self.details):
            whole.addWidget(part)
        whole.addLayout(aids)
        whole.addWidget(self.said)
        whole.addStretch(1)
        whole.addLayout(foot)
        width = current_theme().metrics.scaled(_WIDTH)
        self.resize(width, whole.totalHeightForWidth(width))

    def _answer(self, action: StartAction) -> None:
        if not self._answered:
            self._answered = True
            self.chosen.emit(action)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes it, as any dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self._answer(StartAction.QUIT)

    # --- what leaves the window open --------------------------------------------------------------

    def _open_folder(self) -> None:
        folder = self._failed.folder
        nearest = next((place for place in (folder, *folder.parents) if place.is_dir()), folder)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(nearest))):
            self._say(tr("No program opens folders here: {path}").format(path=nearest))

    def _ask_where(self) -> None:
        home = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        dialog = QFileDialog(self, tr("Save a report"), str(Path(home) / REPORT_NAME))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(REPORT_NAME)
        dialog.fileSelected.connect(lambda name: self.save_report(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save_report(self, path: Path) -> None:
        try:
            # The name of a folder may be anything.
            path.write_text(self._failed.report(), encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._say(tr("The file cannot be written: {detail}.").format(detail=reason))
        else:
            self._say(tr("Saved in {path}. It holds no messages.").format(path=path))

    def _say(self, words: str) -> None:
        self.said.setText(one_line(words, _LONGEST))
        self.said.show()
        needed = self.layout()
        if needed is not None:
            needed.activate()
            self.resize(self.width(), needed.totalHeightForWidth(self.width()))
