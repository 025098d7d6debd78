"""The window shown when the program could not start: why, and what to do.

There is no engine yet, and often no settings, so it needs neither.  Each action but two closes it
and is the caller's to carry out; opening the folder and saving a report leave it as it is.  The
technical text below the sentence is the command line's, to be copied into a question to others.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QHBoxLayout, QVBoxLayout

from engine.core.errors import ChatError, SettingsError, StorageError, StorageFault
from engine.core.ids import UnixMs
from ui.controls import Area, Button, Text
from ui.error_words import error_words
from ui.file_choice import usual_folder
from ui.foreign_text import one_line
from ui.icons import app_icon
from ui.theme import current_theme
from ui.times import date_words, moment
from ui.translate import tr

_WIDTH = 520
_EDGE, _GAP = 24, 12
_LONGEST = 1_000
_MOST_LOST = 5
"""Conversations that lost messages; there may be hundreds."""
_OF_THE_DATABASE = (
    StorageFault.DAMAGED,
    StorageFault.NOT_DECRYPTED,
    StorageFault.DATABASE_GONE,
)
_MOST_NAMED = 8
REPORT_NAME = "causerie-report.txt"


class StartAction(StrEnum):
    """What the user wants done before the next try; ``QUIT``: no further try."""

    TRY_AGAIN = "try_again"
    USE_DEFAULTS = "use_defaults"
    """Set the settings file aside."""
    ANY_PORT = "any_port"
    SALVAGE = "salvage"
    """Put what can be read of a damaged database in its place, and keep that beside it."""
    RESTORE = "restore"
    """A backup, into a profile beside the one that cannot be opened."""
    OPEN_SALVAGED = "open_salvaged"
    QUIT = "quit"


class LostRows(Struct, frozen=True, kw_only=True):
    """Messages of one conversation that the damage took."""

    conversation: str
    messages: int
    first_ms: UnixMs
    last_ms: UnixMs


class SalvagedRows(Struct, frozen=True, kw_only=True):
    """How much came over, and what is gone."""

    kept_as: str
    """The damaged database's new name."""
    conversations: int
    messages: int
    people: int
    files: int
    others: int
    """Rows of all other kinds."""
    unreadable: int
    """Places that could not be read."""
    mended: int = 0
    """Pages of which one bit had changed."""
    lost: tuple[LostRows, ...] = ()
    asked_for: int = 0
    """Messages that others are asked for."""
    keyless: int = 0
    """Groups whose key is gone."""
    is_cut_short: bool = False
    """What was saved last is gone."""


class LeftBehind(Struct, frozen=True, kw_only=True):
    """Of a profile that was erased."""

    paths: tuple[str, ...] = ()
    """Not ours, or they could not be removed."""
    keyring_entry: str = ""
    """That the keyring did not give up."""


class FailedStart(Struct, frozen=True, kw_only=True):
    """``error`` None: a bug of ours; ``details``: the command line's text."""

    error: ChatError | None
    details: str
    folder: Path
    actions: tuple[StartAction, ...] = (StartAction.TRY_AGAIN,)
    """Besides quitting, the likeliest to help first."""
    report: Callable[[], str]
    salvaged: SalvagedRows | None = None
    """It did not fail: what could be read of a damaged database is in its place."""
    left: LeftBehind | None = None
    """Likewise: a profile was erased."""


def salvaged_words(rows: SalvagedRows) -> str:
    came = tr("Came over: {conversations}, {messages}, {people}, {files}, {others}.").format(
        conversations=tr("%n conversations", "%n conversation", rows.conversations),
        messages=tr("%n messages", "%n message", rows.messages),
        people=tr("%n people", "%n person", rows.people),
        files=tr("%n files", "%n file", rows.files),
        others=tr("%n other records", "%n other record", rows.others),
    )
    kept = tr("The damaged database is kept as {name}, with a report of this beside it.").format(
        name=one_line(rows.kept_as, 80)
    )
    return "\n\n".join((came, _what_is_gone(rows), kept))


def _what_is_gone(rows: SalvagedRows) -> str:
    cut = tr("What was saved last is gone: the end of the file with the newest changes is missing.")
    lines = [cut] if rows.is_cut_short else []
    if rows.unreadable:
        lines += _unreadable_lines(rows)
    if lines:
        return "\n".join(lines)
    whole = tr("Nothing that could be found is missing.")
    mended = tr(
        "On %n pages one bit had changed; they are as they were.",
        "On %n page one bit had changed; it is as it was.",
        rows.mended,
    )
    return f"{mended} {whole}" if rows.mended else whole


def _unreadable_lines(rows: SalvagedRows) -> Iterator[str]:
    yield tr("%n places could not be read.", "%n place could not be read.", rows.unreadable)
    yield from (_lost_line(lost) for lost in rows.lost[:_MOST_LOST])
    if (more := len(rows.lost) - _MOST_LOST) > 0:
        yield tr("… and in %n others.", "… and in %n other.", more)
    if rows.asked_for:
        yield tr(
            "%n messages are asked for again: members and Stores may have them.",
            "%n message is asked for again: members and Stores may have it.",
            rows.asked_for,
        )
    if rows.keyless:
        yield tr(
            "%n groups lost their key: what was said can be read, but nothing comes or goes. "
            "Leave them, and join them by a new invitation.",
            "%n group lost its key: what was said can be read, but nothing comes or goes. "
            "Leave it, and join it by a new invitation.",
            rows.keyless,
        )


def _lost_line(lost: LostRows) -> str:
    return tr("{conversation}: {messages} gone, of {when}").format(
        conversation=one_line(lost.conversation, 60) or tr("without a name"),
        messages=tr("%n messages", "%n message", lost.messages),
        when=_span(lost.first_ms, lost.last_ms),
    )


def _span(first_ms: UnixMs, last_ms: UnixMs) -> str:
    first, last = (_day(at_ms) for at_ms in (first_ms, last_ms))
    return first if first == last else tr("{first} to {last}").format(first=first, last=last)


def _day(at_ms: UnixMs) -> str:
    return date_words(moment(at_ms))


def left_words(left: LeftBehind) -> str:
    parts: list[str] = []
    if left.paths:
        words = tr("These stay, as they are not Causerie's or could not be removed: {names}.")
        names = ", ".join(one_line(Path(path).name, 40) for path in left.paths[:_MOST_NAMED])
        more = len(left.paths) - _MOST_NAMED
        if more > 0:
            names = tr("{names}, and %n more", "{names}, and %n more", more).format(names=names)
        parts.append(words.format(names=names))
    if left.keyring_entry:
        parts.append(
            tr(
                "The keyring did not give up its entry, which opens nothing any more: its service"
                " is Causerie, its account {entry}."
            ).format(entry=left.keyring_entry)
        )
    return " ".join(parts)


def _action_words(action: StartAction) -> str:  # noqa: PLR0911 - a table of actions
    match action:
        case StartAction.TRY_AGAIN:
            return tr("Try again")
        case StartAction.USE_DEFAULTS:
            return tr("Use default settings")
        case StartAction.ANY_PORT:
            return tr("Use any free port")
        case StartAction.SALVAGE:
            return tr("Repair the database")
        case StartAction.RESTORE:
            return tr("Restore a backup")
        case StartAction.OPEN_SALVAGED:
            return tr("Open Causerie")
        case StartAction.QUIT:
            return tr("Quit")


def _title(failed: FailedStart) -> str:
    if failed.salvaged is not None:
        return tr("The database was repaired")
    if failed.left is not None:
        return tr("The profile is erased from this device")
    if isinstance(failed.error, SettingsError):
        return tr("The settings cannot be used")
    return tr("Causerie could not start")


def _words(failed: FailedStart) -> str:  # noqa: PLR0911 - a table of what happened
    if failed.salvaged is not None:
        return salvaged_words(failed.salvaged)
    if failed.left is not None:
        return left_words(failed.left)
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
    if isinstance(failed.error, StorageError) and failed.error.fault in _OF_THE_DATABASE:
        return f"{said} {_what_can_be_done(failed)}"
    return said


def _what_can_be_done(failed: FailedStart) -> str:
    backup = tr(
        "Nothing was removed. A backup is restored into a new profile; this one stays as it is."
    )
    if StartAction.SALVAGE not in failed.actions:
        return backup
    repaired = tr(
        "Repairing it puts what can be read in its place, keeps the damaged one beside it, and"
        " asks others for what is missing."
    )
    return f"{repaired} {backup}"


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
        if failed.left is not None:  # Nothing failed, and the folder may be gone.
            self.report.hide()
            self.folder.setVisible(bool(failed.left.paths))
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
        place = usual_folder(QStandardPaths.StandardLocation.DocumentsLocation)
        dialog = QFileDialog(self, tr("Save a report"), str(place / REPORT_NAME))
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
