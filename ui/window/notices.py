"""The bar of notices: what the user must know, with an action where there is one.

A notice replaces an older one of the same key.  At most three are shown, the gravest first; the
rest are counted.  Fifty are kept, and the oldest goes first.  One that only confirms what the user
did goes by itself.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, assert_never

from msgspec import Struct
from PySide6.QtCore import QRectF, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.core.errors import SettingsError
from engine.events import (
    ClocksAhead,
    DatabaseDamaged,
    IndexMadeAgain,
    NoticeContent,
    NoticeLevel,
    NotSaved,
    RecordingStopped,
    SearchMadeAgain,
)
from ui.controls import Area, Button, ButtonKind, ColourRole, IconButton, Text, colour_of
from ui.error_words import error_words
from ui.foreign_text import one_line
from ui.icons import draw_icon
from ui.setting_words import settings_words
from ui.speaking import announce
from ui.theme import current_theme
from ui.times import duration_words
from ui.translate import tr

MAX_SHOWN = 3
MAX_KEPT = 50
_LONGEST = 500
_NAMES_SAID = 3
_STACK_BELOW = 720
_BESIDE = 92
"""The sign, the button that closes it, and the edges."""
_GRAVITY = {NoticeLevel.ERROR: 0, NoticeLevel.WARNING: 1, NoticeLevel.INFO: 2}


Actions: TypeAlias = tuple[tuple[str, Callable[[], None]], ...]


class Notice(Struct, frozen=True, kw_only=True):
    key: str
    level: NoticeLevel
    text: str
    actions: Actions = ()
    """What the buttons say and do; of several the first is the safer one."""
    lasts_ms: int | None = None
    """Then it goes by itself, unless the mouse or the focus is on it; None: until it is closed."""


def notice_words(content: NoticeContent) -> str:
    match content:
        case ClocksAhead():
            return _clocks_ahead(content)
        case NotSaved(error=error):
            words = tr("Not saved: {why} Trying again by itself.")
            return words.format(why=error_words(error))
        case IndexMadeAgain(conversation_name=name):
            words = tr(
                "{group}: the index of its messages was damaged or out of date. It was made again; "
                "no message is lost."
            )
            return words.format(group=name)
        case SearchMadeAgain():
            return tr(
                "What the search knew of your messages was damaged. It is made again; no message "
                "is lost."
            )
        case DatabaseDamaged():
            return tr(
                "The database is damaged: a part of it cannot be read. Nothing is written over it."
            )
        case RecordingStopped(directory=directory):
            words = tr(
                "Deliveries are not recorded: nothing can be written to {directory}. Chats go on. "
                "Make room there, or allow writing; recording then goes on by itself, and the log "
                "says how much is missing."
            )
            return words.format(directory=directory)
        case _:
            assert_never(content)


def repairing(content: NoticeContent, repair: Callable[[], None] | None) -> Actions:
    """What a notice about damage offers."""
    if isinstance(content, DatabaseDamaged) and repair is not None:
        return ((tr("Close and repair…"), repair),)
    return ()


def offered(content: NoticeContent, bar: "NoticesBar") -> Actions:
    """What a notice of the engine's offers."""
    if isinstance(content, RecordingStopped) and bar.open_recording is not None:
        return ((tr("Recording settings"), bar.open_recording),)
    return repairing(content, bar.repair)


def _clocks_ahead(content: ClocksAhead) -> str:
    words = tr(
        "{group}: %n messages are held, because the clock of {names} is {duration} ahead. "
        "They take their place when their time has come, or when the clocks agree.",
        "{group}: %n message is held, because the clock of {names} is {duration} ahead. "
        "They take their place when their time has come, or when the clocks agree.",
        content.messages,
    )
    names = ", ".join(content.names[:_NAMES_SAID])
    if len(content.names) > _NAMES_SAID:
        names = tr("{names} and others").format(names=names)
    duration = duration_words(content.ahead_ms)
    return words.format(group=content.conversation_name, names=names, duration=duration)


def unreadable_page(reason: str, again: Callable[[], None]) -> Notice:
    return Notice(
        key="page",
        level=NoticeLevel.ERROR,
        text=tr("Could not read the messages: {reason}").format(reason=reason),
        actions=((tr("Try again"), again),),
    )


def earlier_profile_kept(file: str) -> Notice:
    return Notice(
        key="earlier profile",
        level=NoticeLevel.INFO,
        text=tr(
            "Your earlier profile was written by a test version whose format is not "
            "used any more. It is kept in {file}; a new one begins here."
        ).format(file=file),
    )


def other_version_started() -> Notice:
    return Notice(
        key="other_version",
        level=NoticeLevel.INFO,
        text=tr(
            "Another version of Causerie was started while this one is open. A link that it "
            "brought is opened here. For anything else, quit this one and start the other again."
        ),
    )


def wrong_settings(
    errors: tuple[SettingsError, ...], file: str, open_url: Callable[[QUrl], bool]
) -> Notice:
    """``errors``: at least one, in ``file``; their settings have their defaults."""

    def open_file() -> None:
        open_url(QUrl.fromLocalFile(file))

    said = settings_words(errors[0])
    rest = len(errors) - 1
    if rest:
        more = tr("Another %n lines are wrong.", "Another %n line is wrong.", rest)
        said = f"{said} {more}"
    default = tr("The default is used instead.")
    return Notice(
        key="settings",
        level=NoticeLevel.WARNING,
        text=f"{said} {default}",
        actions=((tr("Open the settings file"), open_file),),
    )


def _spoken(level: NoticeLevel) -> str:
    match level:
        case NoticeLevel.INFO:
            return tr("info: {text}")
        case NoticeLevel.WARNING:
            return tr("warning: {text}")
        case NoticeLevel.ERROR:
            return tr("error: {text}")


class _Sign(QWidget):
    def __init__(self, level: NoticeLevel) -> None:
        super().__init__()
        self._level = level
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(18)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        inks: dict[NoticeLevel, ColourRole] = {
            NoticeLevel.ERROR: "danger",
            NoticeLevel.WARNING: "warn",
            NoticeLevel.INFO: "accentInk",
        }
        name = "info" if self._level is NoticeLevel.INFO else "warning"
        colour = colour_of(current_theme(), inks[self._level])
        draw_icon(QPainter(self), name, QRectF(self.rect()), colour)


class _NoticeRow(Area):
    def __init__(self, notice: Notice, close: Callable[[str], None]) -> None:
        fills: dict[NoticeLevel, ColourRole] = {
            NoticeLevel.ERROR: "dangerBg",
            NoticeLevel.WARNING: "warnBg",
            NoticeLevel.INFO: "accentSoft",
        }
        inks: dict[NoticeLevel, ColourRole] = {
            NoticeLevel.ERROR: "danger",
            NoticeLevel.WARNING: "warn",
            NoticeLevel.INFO: "accentInk",
        }
        kinds: dict[NoticeLevel, ButtonKind] = {
            NoticeLevel.ERROR: "danger",
            NoticeLevel.WARNING: "warning",
            NoticeLevel.INFO: "plain",
        }
        super().__init__(fills[notice.level], edges=("bottom",))
        self.notice = notice
        text = one_line(notice.text, _LONGEST)
        self.setAccessibleName(_spoken(notice.level).format(text=text))
        self.words = Text(text, face="label", colour=inks[notice.level], wrap=True)
        self.acts: list[Button] = []
        self._acts = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._acts.setSpacing(8)
        for name, act in notice.actions:
            button = Button(name, kind=kinds[notice.level], size="small")
            button.clicked.connect(act)
            self._acts.addWidget(button)
            self.acts.append(button)
        self._body = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._body.setSpacing(6)
        self._body.addWidget(self.words, 1)
        self._body.addLayout(self._acts)
        self._body.setAlignment(self._acts, Qt.AlignmentFlag.AlignLeft)
        self.close_button = IconButton("close", tr("Close this notice"), side=28)
        key = notice.key
        self.close_button.clicked.connect(lambda: close(key))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 10, 6)
        row.setSpacing(10)
        row.addWidget(_Sign(notice.level))
        row.addLayout(self._body, 1)
        row.addWidget(self.close_button)

    def is_in_use(self) -> bool:
        focused = QApplication.focusWidget()
        return self.underMouse() or (focused is not None and self.isAncestorOf(focused))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Several buttons leave the words too little room in a narrow window: they go below."""
        super().resizeEvent(event)
        narrow = self.width() / current_theme().metrics.factor < _STACK_BELOW
        stacked = narrow and len(self.acts) > 1
        wanted = sum(button.sizeHint().width() + self._acts.spacing() for button in self.acts)
        column = stacked and wanted > self.width() - _BESIDE * current_theme().metrics.factor
        directions = QBoxLayout.Direction
        for layout, is_column in ((self._body, stacked), (self._acts, column)):
            layout.setDirection(directions.TopToBottom if is_column else directions.LeftToRight)


class NoticesBar(QWidget):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.repair: Callable[[], None] | None = None
        """Closes the window for a damaged database to be mended; None: that is not offered."""
        self.open_recording: Callable[[], None] | None = None
        """Leads to the settings of recording; None: there are none."""
        self.setAccessibleName(tr("Notices"))
        self._notices: dict[str, Notice] = {}
        self._untold: list[str] = []
        """The keys of those that a screen reader has not heard, as nobody could see them."""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self.rows: list[_NoticeRow] = []
        self._more = Text(face="caption", colour="ink3")
        self._more.setContentsMargins(16, 2, 16, 2)
        self._layout.addWidget(self._more)
        self._rebuild()

    def notices(self) -> tuple[Notice, ...]:
        """Gravest first, and the newest of them first."""
        newest = list(reversed(self._notices.values()))
        return tuple(sorted(newest, key=lambda notice: _GRAVITY[notice.level]))

    def raise_notice(self, notice: Notice) -> None:
        before = self._notices.pop(notice.key, None)
        self._notices[notice.key] = notice
        if before is None or before.text != notice.text:
            self._untold = [*(key for key in self._untold if key != notice.key), notice.key]
        while len(self._notices) > MAX_KEPT:
            self._drop(next(iter(self._notices)))
        self._rebuild()
        self._tell()
        if notice.lasts_ms is not None:
            QTimer.singleShot(notice.lasts_ms, self, partial(self._end, notice))

    def _tell(self) -> None:
        """Once each, as soon as it is to be seen: behind a lock nobody is to hear of it."""
        if not self.isVisible():
            return
        untold, self._untold = self._untold, []
        for notice in (self._notices[key] for key in untold):
            words = one_line(notice.text, _LONGEST)
            is_quiet = notice.level is NoticeLevel.INFO
            announce(self, words if is_quiet else _spoken(notice.level).format(text=words))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tell()

    def _end(self, notice: Notice) -> None:
        if self._notices.get(notice.key) is not notice:
            return
        row = next((row for row in self.rows if row.notice is notice), None)
        if row is not None and row.is_in_use() and notice.lasts_ms is not None:
            QTimer.singleShot(notice.lasts_ms, self, partial(self._end, notice))
        else:
            self.clear(notice.key)

    def clear(self, key: str) -> None:
        if key in self._notices:
            self._drop(key)
            self._rebuild()

    def _drop(self, key: str) -> None:
        del self._notices[key]
        self._untold = [each for each in self._untold if each != key]

    def _rebuild(self) -> None:
        for row in self.rows:
            self._layout.removeWidget(row)
            row.hide()
            row.deleteLater()
        notices = self.notices()
        self.rows = [_NoticeRow(notice, self.clear) for notice in notices[:MAX_SHOWN]]
        for place, row in enumerate(self.rows):
            self._layout.insertWidget(place, row)
        hidden = len(notices) - len(self.rows)
        self._more.setText(tr("and {number} more").format(number=hidden) if hidden else "")
        self._more.setVisible(bool(hidden))
        self.setVisible(bool(notices))
        self.changed.emit()
