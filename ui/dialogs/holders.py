"""Who holds a message, and how we know."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QFont, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from engine.answers import HolderView
from engine.core.ids import HolderSource, ParticipantId, UnixMs
from ui.avatar import AvatarImages
from ui.controls import PILL_INSET, ColourRole, colour_of, draw_pill
from ui.conversation_words import chance_words
from ui.dialogs.sheet import ScrolledPart, Sheet
from ui.foreign_text import one_line
from ui.mirrored import draw_text, mirror_widget, mirrored_point
from ui.speaking import told_as
from ui.theme import current_theme, theme_changed
from ui.times import moment, short_date, spoken_time
from ui.tips import set_tip
from ui.translate import tr

_AVATAR = 28
_GAP = 10
_AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_IMAGES = AvatarImages()


def _sign_words(source: str) -> str:
    match source:
        case HolderSource.CAUSAL:
            return tr("named it later")
        case HolderSource.HOLDINGS:
            return tr("told us so")
        case HolderSource.REPAIR:
            return tr("sent it again for somebody")
        case HolderSource.BLOOM:
            return tr("its filter says so, which can err")
        case _:
            return one_line(source, 60)


def source_words(holder: HolderView, *, is_open: bool = False) -> str:
    if holder.source is None:
        return tr("no sign yet")
    if not holder.certain and holder.false_probability is not None:
        return tr("{chance} it is wrong").format(chance=chance_words(holder.false_probability))
    if is_open:
        return tr("says so, unproved")
    return _sign_words(holder.source)


def held_words(holders: Sequence[HolderView], *, is_open: bool = False) -> str:
    """``is_open``: in an open channel, where nobody is proved."""
    if is_open:
        return tr(
            "Maybe held under %n names; nobody here is proved.",
            "Maybe held under %n name; nobody here is proved.",
            sum(1 for holder in holders if holder.source is not None),
        )
    if not holders:
        return tr("Nobody else is in this group yet.")
    certain = sum(1 for holder in holders if holder.source is not None and holder.certain)
    maybe = sum(1 for holder in holders if holder.source is not None and not holder.certain)
    if len(holders) == 1:  # "Of 1 others" is no English.
        words = tr("Held by {number} of {all}, maybe {maybe} more.")
        words = words if maybe else tr("Held by {number} of {all}.")
    elif maybe:
        words = tr("Held by {number} of {all} others, maybe {maybe} more.")
    else:
        words = tr("Held by {number} of {all} others.")
    return words.format(number=certain, all=len(holders), maybe=maybe)


class Holders(Sheet):
    def __init__(
        self,
        holders: Sequence[HolderView],
        now: datetime,
        parent: QWidget | None = None,
        *,
        is_open: bool = False,
    ) -> None:
        words = held_words(holders, is_open=is_open)
        super().__init__(tr("Who holds it"), words, parent=parent)
        content = QWidget()
        rows = QVBoxLayout(content)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(8)
        for holder in holders:
            row = HolderRow()
            row.show_holder(holder, now, is_open=is_open)
            rows.addWidget(row)
        rows.addStretch(1)
        self.body.addWidget(ScrolledPart(content, tr("Who holds it")))
        self.add_close()


@told_as(QAccessible.Role.StaticText)
class HolderRow(QWidget):
    """Of one height, whatever is known: those below stay where they are when more is known.

    One widget that paints all of it, since a group has many and they change while one looks.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None
        self._who = ParticipantId("")
        self._name = self._words = self._mark = ""
        self._since = self._since_in_full = ""
        self._ink: ColourRole = "ink3"
        self._fill: ColourRole = "surface2"
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        set_tip(self, "")
        theme_changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        faces = current_theme().type
        self.setFixedHeight(int(faces.label.line_height) + int(faces.caption.line_height))
        self._place()

    def show_holder(
        self,
        holder: HolderView,
        now: datetime,
        *,
        is_open: bool = False,
        sign: str = "",
        lacking_ms: UnixMs | None = None,
    ) -> None:
        """``sign``: how we know, if more is known than the kind of sign.

        ``lacking_ms``: since when somebody without a sign could have given one.
        """
        told = holder, is_open, sign, lacking_ms, now.date()
        if told == self._shown:
            return
        self._shown = told
        is_lacking = holder.source is None and lacking_ms is not None and not is_open
        at_ms = lacking_ms if is_lacking else holder.since_ms
        self._who, self._since, since = holder.participant_id, "", ""
        if at_ms is not None:
            form = tr("since {time}") if is_lacking else "{time}"
            self._since = form.format(time=_time_or_day(at_ms, now))
            since = form.format(time=spoken_time(at_ms, now))
        self._since_in_full = since
        self._name = one_line(holder.name, 60)
        self._mark, self._ink, self._fill = _mark(holder)
        words = sign or source_words(holder, is_open=is_open)
        self._words = words if sign or holder.source is not None else ""
        self.setAccessibleName(f"{self._name}: {self._mark}, {words} {since}".rstrip())
        self._place()

    # --- where the parts are, from left to right --------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """The mark stands before the time, or at the end if there is none; lines have the rest."""
        faces, right = current_theme().type, float(self.width())
        if self._since:
            right -= QFontMetricsF(faces.caption.font).horizontalAdvance(self._since) + _GAP
        width = QFontMetricsF(faces.micro.strong()).horizontalAdvance(self._mark) + 2 * PILL_INSET
        height = faces.micro.line_height + 2
        self.mark_box = QRectF(right - width, (self.height() - height) / 2, width, height)
        left = current_theme().metrics.scaled(_AVATAR) + _GAP
        name, words = faces.label.line_height, faces.caption.line_height if self._words else 0.0
        top, room = (self.height() - name - words) / 2, max(0.0, self.mark_box.left() - _GAP - left)
        self._lines = (
            _Line(self._name, faces.label.strong(), "ink", QRectF(left, top, room, name)),
            _Line(self._words, faces.caption.font, "ink2", QRectF(left, top + name, room, words)),
        )
        self.update()

    def tip_at(self, point: QPoint) -> str:
        """All of what is cut off there."""
        at = mirrored_point(QPointF(point), self)
        if at.x() > self.mark_box.right() and self._since != self._since_in_full:
            return self._since_in_full
        cut = (line for line in self._lines if line.shown != line.words)
        return next((line.words for line in cut if line.box.contains(at)), "")

    def sizeHint(self) -> QSize:
        name = self._lines[0]
        words = QFontMetricsF(name.font).horizontalAdvance(name.words)
        width = name.box.left() + words + _GAP + self.width() - self.mark_box.left()
        return QSize(int(width) + 1, self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        side = theme.metrics.scaled(_AVATAR)
        face = QRectF(0, (self.height() - side) // 2, side, side)
        _IMAGES.paint(painter, face, stable_id=self._who, name=self._name, is_group=False)
        for line in self._lines:
            painter.setFont(line.font)
            painter.setPen(colour_of(theme, line.colour))
            draw_text(painter, line.box, _AT_LEFT, line.shown)
        painter.setFont(theme.type.caption.font)
        painter.setPen(theme.ink3)
        draw_text(painter, QRectF(self.rect()), _AT_RIGHT, self._since)
        draw_pill(painter, self.mark_box, self._fill)
        painter.setFont(theme.type.micro.strong())
        painter.setPen(colour_of(theme, self._ink))
        draw_text(painter, self.mark_box, Qt.AlignmentFlag.AlignCenter, self._mark)


class _Line:
    """As much of its words as there is room for."""

    def __init__(self, words: str, font: QFont, colour: ColourRole, box: QRectF) -> None:
        self.words, self.font, self.colour, self.box = words, font, colour, box
        metrics = QFontMetricsF(font)
        self.shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, box.width())


def _time_or_day(at_ms: int, now: datetime) -> str:
    """Of what was days ago the day is enough: a name has to stand beside it."""
    day = moment(at_ms).astimezone(now.tzinfo).date()
    if now.date() - day <= timedelta(days=1):
        return spoken_time(at_ms, now)
    return short_date(day, now.date())


def _mark(holder: HolderView) -> tuple[str, ColourRole, ColourRole]:
    if holder.source is None:
        return tr("no sign"), "ink3", "surface2"
    if holder.certain:
        return tr("holds it"), "accentInk", "accentSoft"
    return tr("maybe"), "ink2", "surface2"
