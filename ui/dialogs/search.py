"""The search over everything (Ctrl+K): conversations, people, commands, and all messages.

One types; the arrows choose and Enter opens.  Names and commands are there at once, messages as
soon as the engine has found them, the newest first.  Filters for messages stand below the line.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum

from msgspec import Struct
from PySide6.QtCore import QDate, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFontMetricsF, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QBoxLayout,
    QDateEdit,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from engine.answers import FoundView
from engine.core.ids import ParticipantId, UnixMs
from engine.core.search_text import Excerpt
from engine.events import ConversationView, SearchIndexed
from ui.avatar import draw_avatar
from ui.choice import Choice
from ui.controls import Button, SearchLine, Text
from ui.conversation_words import is_group
from ui.dialogs.sheet import Sheet
from ui.foreign_text import one_line
from ui.icons import draw_icon
from ui.mirrored import draw_text, mirror_item
from ui.people import avatar_id, picture_of
from ui.speaking import announce, tell_row
from ui.theme import Radius, current_theme
from ui.times import spoken_time
from ui.translate import tr

_ROW, _AVATAR, _ROWS_SHOWN = 46, 30, 9
_WIDTH = 560
_LEAST_CHOICE = 110
_LONGEST = 2_000
_ENTRY = Qt.ItemDataRole.UserRole
_MARK_ALPHA = 70


class Command(Struct, frozen=True):
    words: str
    keys: str
    run: Callable[[], None]


class Filters(Struct, frozen=True, kw_only=True):
    """What a message must have beside the words."""

    sender_id: ParticipantId | None = None
    since_ms: UnixMs | None = None
    until_ms: UnixMs | None = None
    has_file: bool = False
    has_link: bool = False


class Acquaintance(Struct, frozen=True, kw_only=True):
    """A member of our groups with whom we do not talk alone."""

    participant_id: ParticipantId
    name: str
    group: ConversationView
    """The one through which the panel about them is opened."""
    more_groups: int
    """In how many others they are, too."""

    @property
    def where(self) -> str:
        name = one_line(self.group.name, 40)
        if not self.more_groups:
            return tr("in {group}").format(group=name)
        words = tr("in {group} and %n more", "in {group} and %n more", self.more_groups)
        return words.format(group=name)


Entry = ConversationView | Acquaintance | Command | FoundView
_Index = QModelIndex | QPersistentModelIndex


class _When(IntEnum):
    ANY = 0
    TODAY = 1
    WEEK = 2
    MONTH = 3
    YEAR = 4
    BETWEEN = 5


_DAYS = {_When.TODAY: 0, _When.WEEK: 6, _When.MONTH: 29, _When.YEAR: 364}


class ResultLine(SearchLine):
    """Arrows, pages and Enter go to the list below; the letters stay here."""

    passed_on = Signal(int)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Up | Qt.Key.Key_Down | Qt.Key.Key_PageUp | Qt.Key.Key_PageDown:
                self.passed_on.emit(event.key())
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.passed_on.emit(Qt.Key.Key_Return)
            case _:
                super().keyPressEvent(event)


class _Found(QListWidget):
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        tell_row(self)


class SearchSheet(Sheet):
    asked = Signal(str, object)
    """Words and ``Filters`` of messages; no words and no filters: nothing to search for."""
    more_asked = Signal()
    indexing_chosen = Signal(bool)

    def __init__(
        self,
        people: Sequence[tuple[ParticipantId, str]],
        now: Callable[[], datetime],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("Search"), parent=parent)
        self.chosen: Entry | None = None
        self._now = now
        self._people = people
        self.line = ResultLine()
        self.line.setMaxLength(_LONGEST)
        self.line.setPlaceholderText(tr("People, groups, messages, commands"))
        self.line.setAccessibleName(tr("Search people, groups, messages and commands"))
        self.list = _Found()
        self.list.setAccessibleName(tr("What was found"))
        self.list.setItemDelegate(_Delegate(now, self.list))
        self.list.setFrameShape(QListWidget.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setUniformItemSizes(False)
        self.status = Text(face="small", colour="ink3", wrap=True)
        self.pause = Button(tr("Pause"), kind="ghost")
        self._lay_out()
        self.line.textChanged.connect(self._ask)
        self.line.passed_on.connect(self._key)
        self.list.itemActivated.connect(self._open)
        self.list.itemClicked.connect(self._open)
        self.list.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.line.setFocus()

    def _make_filters(self) -> QBoxLayout:
        self.person = Choice()
        self.person.setAccessibleName(tr("Written by"))
        self.person.addItem(tr("Anybody"))
        for _, name in self._people:
            self.person.addItem(one_line(name, 40))
        # Else it is as wide as the longest name, and the sheet is not.
        self.person.setMinimumWidth(current_theme().metrics.scaled(_LEAST_CHOICE))
        self.when = Choice()
        self.when.setAccessibleName(tr("When"))
        for words in (
            tr("Any time"), tr("Today"), tr("Last 7 days"), tr("Last 30 days"), tr("Last year"),
            tr("Between …"),
        ):  # fmt: skip
            self.when.addItem(words)
        self.with_file = Button(tr("With a file"), icon_name="file")
        self.with_link = Button(tr("With a link"), icon_name="network")
        filters = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        filters.setSpacing(6)
        for pair in ((self.person, self.when), (self.with_file, self.with_link)):
            half = QHBoxLayout()
            half.setSpacing(6)
            for widget in pair:
                half.addWidget(widget)
            half.addStretch(1)
            filters.addLayout(half)
        for button in (self.with_file, self.with_link):
            button.setCheckable(True)
            button.toggled.connect(self._ask)
        self.person.currentIndexChanged.connect(self._ask)
        self.when.currentIndexChanged.connect(self._choose_when)
        return filters

    def _make_between(self) -> None:
        day = self._now().date()
        today = QDate(day.year, day.month, day.day)
        self.since, self.until = QDateEdit(today), QDateEdit(today)
        self.since.setAccessibleName(tr("From this day"))
        self.until.setAccessibleName(tr("Up to this day"))
        self._between = QWidget()
        between = QHBoxLayout(self._between)
        between.setContentsMargins(0, 0, 0, 0)
        for edit in (self.since, self.until):
            edit.setCalendarPopup(True)
            edit.setDisplayFormat("yyyy-MM-dd")
            edit.dateChanged.connect(self._ask)
            between.addWidget(edit)
        between.addStretch(1)
        self._between.hide()

    def _lay_out(self) -> None:
        filters = self._make_filters()
        self._make_between()
        self.body.addWidget(self.line)
        self.body.addLayout(filters)
        self.body.addWidget(self._between)
        self.body.addWidget(self.list)
        foot = QHBoxLayout()
        foot.addWidget(self.status, 1)
        foot.addWidget(self.pause)
        self.body.addLayout(foot)
        self.pause.hide()
        self.pause.setCheckable(True)
        self.pause.toggled.connect(lambda paused: self.indexing_chosen.emit(not paused))
        metrics = current_theme().metrics
        self.list.setFixedHeight(metrics.scaled(_ROW) * _ROWS_SHOWN)
        self.setFixedWidth(max(self.width(), self._room(metrics.scaled(_WIDTH))))
        if self.width() < metrics.scaled(_WIDTH):
            filters.setDirection(QBoxLayout.Direction.TopToBottom)
        self.add_close()

    def _room(self, wanted: int) -> int:
        parent = self.parentWidget()
        return wanted if parent is None else min(wanted, parent.window().width() - 24)

    # --- what is asked ----------------------------------------------------------------------------

    def filters(self) -> Filters:
        since, until = self._times()
        at = self.person.currentIndex()
        return Filters(
            sender_id=self._people[at - 1][0] if at > 0 else None,
            since_ms=since,
            until_ms=until,
            has_file=self.with_file.isChecked(),
            has_link=self.with_link.isChecked(),
        )

    def _times(self) -> tuple[UnixMs | None, UnixMs | None]:
        chosen = _When(self.when.currentIndex())
        midnight = self._now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        if chosen is _When.ANY:
            return None, None
        if chosen is _When.BETWEEN:
            first, last = sorted(
                datetime(day.year(), day.month(), day.day()).astimezone()
                for day in (self.since.date(), self.until.date())
            )
            return _ms(first), _ms(last + timedelta(days=1))
        return _ms(midnight - timedelta(days=_DAYS[chosen])), None

    def _choose_when(self) -> None:
        self._between.setVisible(_When(self.when.currentIndex()) is _When.BETWEEN)
        self._ask()

    def _ask(self) -> None:
        self.asked.emit(self.line.text(), self.filters())

    # --- what is found ----------------------------------------------------------------------------

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Instead of all before; the first one is chosen."""
        self.list.clear()
        self.add_entries(entries)
        self.list.setCurrentRow(0)

    def add_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            item = QListWidgetItem()
            item.setData(_ENTRY, entry)
            words = entry_words(entry, self._now())
            item.setText(words)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, words)
            self.list.addItem(item)
        if self.list.currentRow() < 0:
            self.list.setCurrentRow(0)

    def entries(self) -> list[Entry]:
        return [self.list.item(row).data(_ENTRY) for row in range(self.list.count())]

    def say(self, words: str) -> None:
        self.status.setText(words)
        self.status.setAccessibleName(words)

    def tell(self, words: str) -> None:
        """Say it to a screen reader too, with what Enter would open: the keys stay in the field."""
        self.say(words)
        announce(self.line, ". ".join(part for part in (words, self._chosen_words()) if part))

    def _chosen_words(self) -> str:
        row = self.list.currentRow()
        if row < 0:
            return ""
        words = self.list.item(row).text()
        return tr("{words}, {number} of {count}").format(
            words=words, number=row + 1, count=self.list.count()
        )

    def show_indexed(self, indexed: SearchIndexed) -> None:
        """Of an old profile not all messages can be found at first."""
        self.pause.setVisible(indexed.left > 0)
        self.pause.blockSignals(True)
        self.pause.setChecked(indexed.is_paused)
        self.pause.blockSignals(False)
        self.pause.rename(tr("Go on") if indexed.is_paused else tr("Pause"))

    def _key(self, key: int) -> None:
        step = {
            Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1,
            Qt.Key.Key_PageUp: -_ROWS_SHOWN, Qt.Key.Key_PageDown: _ROWS_SHOWN,
        }.get(Qt.Key(key), 0)  # fmt: skip
        row = self.list.currentRow()
        if step:
            self.list.setCurrentRow(max(0, min(row + step, self.list.count() - 1)))
            announce(self.line, self._chosen_words())
            if row + step >= self.list.count() - 1:
                self.more_asked.emit()
        elif row >= 0:
            self._open(self.list.item(row))

    def _scrolled(self, value: int) -> None:
        if value >= self.list.verticalScrollBar().maximum() > 0:
            self.more_asked.emit()

    def _open(self, item: QListWidgetItem) -> None:
        self.chosen = item.data(_ENTRY)
        self.accept()


def _ms(moment: datetime) -> UnixMs:
    return UnixMs(int(moment.timestamp() * 1000))


def _sender(found: FoundView) -> str:
    return tr("You") if found.is_own else one_line(found.sender_name, 40)


def entry_words(entry: Entry, now: datetime) -> str:
    """What a screen reader says of it."""
    match entry:
        case Command(words=words, keys=keys):
            command = tr("Command: {name}").format(name=words)
            return f"{command}, {keys}" if keys else command
        case FoundView():
            words = tr("Message in {conversation} from {sender}, {time}: {text}")
            return words.format(
                conversation=one_line(entry.conversation_name, 60),
                sender=_sender(entry),
                time=spoken_time(entry.sent_ms, now),
                text=entry.excerpt.text,
            )
        case Acquaintance(name=name, where=where):
            return tr("Person: {name}, {where}").format(name=one_line(name, 60), where=where)
        case ConversationView():
            kind = tr("Group: {name}") if is_group(entry) else tr("Person: {name}")
            return kind.format(name=one_line(entry.name, 60))


class _Delegate(QStyledItemDelegate):
    def __init__(self, now: Callable[[], datetime], parent: QWidget) -> None:
        super().__init__(parent)
        self._now = now

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        del option, index
        return QSize(100, current_theme().metrics.scaled(_ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        theme = current_theme()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_item(painter, option)
        box = QRectF(option.rect).adjusted(1, 1, -1, -1)
        _background(painter, box, option)
        gap, side = theme.metrics.gap(8), theme.metrics.scaled(_AVATAR)
        picture = QRectF(box.left() + gap, box.center().y() - side / 2, side, side)
        words = box.adjusted(picture.right() - box.left() + gap, 0, -gap, 0)
        entry: Entry = index.data(_ENTRY)
        match entry:
            case ConversationView():
                _paint_conversation(painter, picture, words, entry)
            case Acquaintance():
                _paint_acquaintance(painter, picture, words, entry)
            case Command():
                _paint_icon(painter, picture, "next")
                _line(painter, words, entry.words, entry.keys)
            case FoundView():
                _paint_icon(painter, picture, "file" if entry.file_name else "search")
                _paint_message(painter, words, entry, spoken_time(entry.sent_ms, self._now()))
        painter.restore()


def _paint_conversation(
    painter: QPainter, picture: QRectF, words: QRectF, conversation: ConversationView
) -> None:
    draw_avatar(
        painter,
        picture,
        stable_id=avatar_id(conversation),
        name=conversation.name,
        is_group=is_group(conversation),
        picture=picture_of(conversation),
    )
    _line(painter, words, one_line(conversation.name, 80))


def _paint_acquaintance(
    painter: QPainter, picture: QRectF, words: QRectF, somebody: Acquaintance
) -> None:
    draw_avatar(
        painter,
        picture,
        stable_id=somebody.participant_id,
        name=somebody.name,
        is_group=False,
        picture=b"",
    )
    _line(painter, words, one_line(somebody.name, 80), somebody.where)


def _paint_icon(painter: QPainter, place: QRectF, name: str) -> None:
    edge = place.width() / 5
    draw_icon(painter, name, place.adjusted(edge, edge, -edge, -edge), current_theme().ink3)


def _paint_message(painter: QPainter, words: QRectF, found: FoundView, time: str) -> None:
    half = words.height() / 2
    above = QRectF(words.x(), words.y() + 3, words.width(), half - 3)
    below = QRectF(words.x(), words.y() + half, words.width(), half - 3)
    where = one_line(found.conversation_name, 60)
    title = tr("{sender} in {conversation}").format(sender=_sender(found), conversation=where)
    if where == _sender(found):  # one to one
        title = where
    _line(painter, above, title, time, small=True)
    _excerpt(painter, below, found.excerpt)


def _background(painter: QPainter, box: QRectF, option: QStyleOptionViewItem) -> None:
    theme = current_theme()
    radius = theme.metrics.gap(Radius.ROW)
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    if is_chosen or option.state & QStyle.StateFlag.State_MouseOver:
        painter.setBrush(theme.selected if is_chosen else theme.hover)
        strong = is_chosen and theme.is_high_contrast
        painter.setPen(QPen(theme.accent, 2) if strong else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(box, radius, radius)


def _line(painter: QPainter, box: QRectF, text: str, end: str = "", *, small: bool = False) -> None:
    theme = current_theme()
    font = theme.type.small.font if small else theme.type.body.font
    middle = Qt.AlignmentFlag.AlignVCenter
    if end:
        painter.setFont(theme.type.small.font)
        painter.setPen(theme.ink3)
        draw_text(painter, box, middle | Qt.AlignmentFlag.AlignRight, end)
        used = QFontMetricsF(theme.type.small.font).horizontalAdvance(end) + 8
        box = box.adjusted(0, 0, -used, 0)
    painter.setFont(font)
    painter.setPen(theme.ink2 if small else theme.ink)
    shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
    draw_text(painter, box, middle | Qt.AlignmentFlag.AlignLeft, shown)


def _excerpt(painter: QPainter, box: QRectF, excerpt: Excerpt) -> None:
    """In one line, with a field behind what was found."""
    theme = current_theme()
    font = theme.type.body.font
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    painter.save()
    painter.setClipRect(box)
    field = QColor(theme.accent)
    field.setAlpha(_MARK_ALPHA)
    for begin, end in excerpt.marks:
        left = box.left() + metrics.horizontalAdvance(excerpt.text[:begin])
        width = metrics.horizontalAdvance(excerpt.text[begin:end])
        mark = QRectF(
            left - 1, box.center().y() - metrics.height() / 2, width + 2, metrics.height()
        )
        painter.setPen(QPen(theme.ink, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
        painter.setBrush(field)
        painter.drawRoundedRect(mark, 3, 3)
    painter.setPen(theme.ink)
    middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
    shown = metrics.elidedText(excerpt.text, Qt.TextElideMode.ElideRight, box.width())
    draw_text(painter, box, middle | Qt.TextFlag.TextSingleLine, shown)
    painter.restore()
