"""Draws one row of the conversation list; as a rail, only the avatar with its badge.

Everything is measured from the theme's fonts.  The row shows who, when, the last words and what
needs care: unread, missing, not sent, draft.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from engine.events import ConversationView
from ui.avatar import draw_avatar, draw_presence
from ui.badge import badge_text, draw_badge, draw_mention_mark, draw_unread_dot
from ui.conversation_words import is_group
from ui.foreign_text import one_line
from ui.glyphs import GLYPH_SIZE, Glyph, draw_glyph
from ui.icons import draw_icon
from ui.list.model import CONVERSATION_ROLE, ConversationModel
from ui.list.preview import Preview, Tone, preview_of
from ui.mirrored import draw_text, mirror_item
from ui.people import avatar_id, is_blocked, is_online, is_request
from ui.theme import Radius, Theme, current_theme
from ui.times import list_time
from ui.tips import show_tip
from ui.translate import tr

_ROW, _AVATAR, _RAIL_AVATAR, _RAIL_ROW = 60, 42, 40, 54
_COMPACT_ROW, _COMPACT_AVATAR = 44, 30
_NAME_SHARE = 0.5
"""Of a line that has name and last words: what the name may take."""
_STACK_TIME_FROM_PERCENT = 150
_MOST_IN_RAIL = 99
_BLOCKED_OPACITY = 0.45
_Index = QModelIndex | QPersistentModelIndex


class ConversationDelegate(QStyledItemDelegate):
    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self.is_rail = False

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        theme = current_theme()
        metrics = theme.metrics
        if self.is_rail:
            return QSize(0, metrics.scaled(_RAIL_ROW))
        lines = theme.type.body.line_height
        if not _is_one_line(theme):
            lines += theme.type.label.line_height
        if metrics.text_percent >= _STACK_TIME_FROM_PERCENT:
            lines += theme.type.micro.line_height
        least = metrics.scaled(metrics.dense(_ROW, _COMPACT_ROW))
        return QSize(0, max(least, int(lines) + 2 * metrics.gap(metrics.dense(9, 6))))

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: _Index,
    ) -> bool:
        """The tips of rows are ours, as those of all else."""
        del option
        words = index.data(Qt.ItemDataRole.ToolTipRole)
        show_tip(event.globalPos(), str(words or ""), view.viewport())
        return True

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        conversation = index.data(CONVERSATION_ROLE)
        model = index.model()
        if not isinstance(conversation, ConversationView) or not isinstance(
            model, ConversationModel
        ):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        mirror_item(painter, option)
        box = QRectF(option.rect)
        self._background(painter, option, box, selected=selected)
        if self.is_rail:
            marked = model.is_marked_unread(conversation.conversation_id)
            self._paint_rail(painter, box, model, conversation, marked=marked)
        else:
            preview = preview_of(
                conversation,
                typing=model.typing(conversation.conversation_id),
                is_open=model.is_open(conversation.conversation_id),
            )
            row = _Row(painter, box, model, conversation, preview, selected=selected)
            marked = model.is_marked_unread(conversation.conversation_id)
            row.paint(self._now(), signs=_signs(model, conversation), marked_unread=marked)
        painter.restore()

    def _background(
        self, painter: QPainter, option: QStyleOptionViewItem, box: QRectF, *, selected: bool
    ) -> None:
        theme = current_theme()
        radius = theme.metrics.gap(Radius.ROW)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus)
        painter.setPen(Qt.PenStyle.NoPen)
        if selected:
            painter.setBrush(theme.selected)
            painter.drawRoundedRect(box, radius, radius)
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(theme.hover)
            painter.drawRoundedRect(box, radius, radius)
        ring: tuple[QColor, float] | None = None
        if focused and _keyboard_focus(option):
            ring = (theme.focus, theme.focus_width)
        elif selected and theme.is_high_contrast:
            ring = (theme.accent, 2)
        if ring is not None:
            colour, width = ring
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour, width))
            inset = width / 2
            painter.drawRoundedRect(box.adjusted(inset, inset, -inset, -inset), radius, radius)

    def _paint_rail(
        self,
        painter: QPainter,
        box: QRectF,
        model: ConversationModel,
        conversation: ConversationView,
        *,
        marked: bool,
    ) -> None:
        theme = current_theme()
        side = theme.metrics.scaled(_RAIL_AVATAR)
        avatar = QRectF(box.center().x() - side / 2, box.center().y() - side / 2, side, side)
        picture = model.picture(conversation)
        _avatar(painter, avatar, conversation, picture=picture, behind=theme.panel)
        if is_request(conversation) or model.asking(conversation.conversation_id):
            corner = QPointF(min(avatar.right() + 9, box.right()), avatar.bottom() - 5)
            draw_badge(painter, corner, tr("New"), muted=False)
        elif conversation.unread:
            corner = QPointF(min(avatar.right() + 7, box.right()), avatar.bottom() - 5)
            draw_badge(
                painter,
                corner,
                badge_text(conversation.unread, _MOST_IN_RAIL),
                muted=conversation.muted,
            )
            if conversation.mentions:
                corner.setY(avatar.top() + 5)
                draw_badge(painter, corner, "@", muted=False)
        elif marked:
            corner = QPointF(min(avatar.right() + 3, box.right()), avatar.bottom() - 5)
            draw_unread_dot(painter, corner, muted=conversation.muted)
        elif conversation.failed or conversation.missing:
            painter.setPen(QPen(theme.danger if conversation.failed else theme.warnDot, 2))
            painter.setBrush(theme.panel)
            painter.drawEllipse(avatar.bottomRight() - QPointF(2, 2), 4.5, 4.5)


def _signs(model: ConversationModel, conversation: ConversationView) -> list[str]:
    every = (
        ("verified", model.is_verified(conversation)),
        ("bell-off", conversation.muted),
        ("pin", model.is_pinned(conversation.conversation_id)),
    )
    return [name for name, shown in every if shown]


def _is_one_line(theme: Theme) -> bool:
    """Name, last words and time beside each other; large letters have no room for that."""
    metrics = theme.metrics
    return metrics.is_compact and metrics.text_percent < _STACK_TIME_FROM_PERCENT


def _keyboard_focus(option: QStyleOptionViewItem) -> bool:
    return bool(option.state & QStyle.StateFlag.State_KeyboardFocusChange)


def _avatar(
    painter: QPainter,
    box: QRectF,
    conversation: ConversationView,
    *,
    picture: bytes,
    behind: QColor,
) -> None:
    painter.save()
    if is_blocked(conversation):
        painter.setOpacity(_BLOCKED_OPACITY)
    draw_avatar(
        painter,
        box,
        stable_id=avatar_id(conversation),
        name=one_line(conversation.name),
        is_group=is_group(conversation),
        picture=picture,
    )
    painter.restore()
    if is_online(conversation):
        draw_presence(painter, box, present=True, behind=behind)


class _Row:
    """One pass over one row: the avatar, then two lines, each filled from its right end."""

    def __init__(  # noqa: PLR0913 - what is seen of it
        self,
        painter: QPainter,
        box: QRectF,
        model: ConversationModel,
        conversation: ConversationView,
        preview: Preview,
        *,
        selected: bool,
    ) -> None:
        self._painter = painter
        self._picture = model.picture(conversation)
        self._asking = model.asking(conversation.conversation_id)
        self._conversation = conversation
        self._preview = preview
        self._selected = selected
        self._theme: Theme = current_theme()
        self._quiet = self._theme.ink2 if selected else self._theme.ink3
        gap, scaled = self._theme.metrics.gap, self._theme.metrics.scaled
        side = scaled(self._theme.metrics.dense(_AVATAR, _COMPACT_AVATAR))
        self._avatar_box = QRectF(box.left() + gap(8), box.center().y() - side / 2, side, side)
        left = self._avatar_box.right() + gap(11)
        self._text_box = QRectF(left, box.top(), box.right() - gap(10) - left, box.height())
        self._stacked = self._theme.metrics.text_percent >= _STACK_TIME_FROM_PERCENT

    def paint(self, now: datetime, *, signs: Sequence[str], marked_unread: bool) -> None:
        behind = self._theme.selected if self._selected else self._theme.panel
        picture = self._picture
        shown = self._conversation
        _avatar(self._painter, self._avatar_box, shown, picture=picture, behind=behind)
        if _is_one_line(self._theme):
            self._paint_in_one_line(now, signs, marked_unread=marked_unread)
            return
        type_ = self._theme.type
        first = max(type_.body.line_height, self._theme.metrics.scaled(20))
        second = max(type_.label.line_height, self._theme.metrics.scaled(20))
        third = type_.micro.line_height if self._stacked else 0
        top = self._text_box.center().y() - (first + second + third) / 2
        line1 = QRectF(self._text_box.left(), top, self._text_box.width(), first)
        time_line = line1 if not self._stacked else line1.translated(0, first)
        if self._stacked:
            time_line.setHeight(third)
        line2 = QRectF(line1.left(), top + first + third, line1.width(), second)
        right = self._time(time_line, now)
        name = line1 if self._stacked else line1.adjusted(0, 0, right - line1.right(), 0)
        self._name(name, signs)
        right = self._marks(line2, marked_unread=marked_unread)
        self._words(line2.adjusted(0, 0, right - line2.right(), 0))

    def _paint_in_one_line(
        self, now: datetime, signs: Sequence[str], *, marked_unread: bool
    ) -> None:
        height = max(self._theme.type.body.line_height, self._theme.metrics.scaled(20))
        line = QRectF(self._text_box)
        line.setHeight(height)
        line.moveCenter(self._text_box.center())
        line.setRight(self._time(line, now))
        line.setRight(self._marks(line, marked_unread=marked_unread))
        name = QRectF(line)
        name.setWidth(line.width() * _NAME_SHARE)
        line.setLeft(self._name(name, signs) + 3)
        self._words(line)

    def _time(self, line: QRectF, now: datetime) -> float:
        """At the right end, or under the name; returns what is left of the line's right end."""
        text = list_time(self._conversation.last_said_ms, now)
        unread = bool(self._conversation.unread) and not self._conversation.muted
        face = self._theme.type.micro
        font = face.strong() if unread else face.font
        colour = self._theme.accentInk if unread else self._quiet
        width = QFontMetricsF(font).horizontalAdvance(text)
        self._painter.setFont(font)
        self._painter.setPen(colour)
        glyph_width = GLYPH_SIZE.width() * self._theme.metrics.factor
        left = line.left() if self._stacked else line.right() - width
        at_right = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        box = QRectF(left, line.top(), width + 2, line.height())
        draw_text(self._painter, box, at_right, text)
        glyph = self._preview.glyph
        if glyph is None:
            return left - 6
        x = left + width + 5 if self._stacked else left - 5 - glyph_width
        self._glyph(glyph, QPointF(x, line.center().y()))
        return x - 6

    def _glyph(self, glyph: Glyph, left_middle: QPointF) -> None:
        factor = self._theme.metrics.factor
        colour = {Glyph.FAILED: self._theme.danger, Glyph.HELD: self._theme.accentInk}.get(
            glyph, self._quiet
        )
        at = left_middle - QPointF(0, GLYPH_SIZE.height() * factor / 2)
        draw_glyph(self._painter, glyph, at, colour, scale=factor)

    def _name(self, line: QRectF, signs: Sequence[str]) -> float:
        """``signs``: the names of icons after it.  Returns where all that ends."""
        font = self._theme.type.body.strong()
        metrics = QFontMetricsF(font)
        icon = self._theme.metrics.scaled(14)
        channel = self._conversation.open_channel
        open_mark = ""
        if channel is not None:
            open_mark = tr("shared key") if channel.has_key else tr("open")
        mark_font = self._theme.type.micro.font
        mark_width = QFontMetricsF(mark_font).horizontalAdvance(open_mark)
        room = line.width() - len(signs) * (icon + 5) - (mark_width + 7 if open_mark else 0)
        shown = metrics.elidedText(
            one_line(self._conversation.name), Qt.TextElideMode.ElideRight, room
        )
        self._painter.setFont(font)
        blocked = is_blocked(self._conversation)
        self._painter.setPen(self._quiet if blocked else self._theme.ink)
        draw_text(self._painter, line, _LEFT_MIDDLE, shown)
        x = line.left() + metrics.horizontalAdvance(shown) + 5
        if open_mark:
            self._painter.setFont(mark_font)
            self._painter.setPen(self._theme.warn)
            mark_box = QRectF(x + 2, line.top(), mark_width + 2, line.height())
            draw_text(self._painter, mark_box, _LEFT_MIDDLE, open_mark)
            x += mark_width + 7
        for name in signs:
            box = QRectF(x, line.center().y() - icon / 2, icon, icon)
            draw_icon(self._painter, name, box, self._quiet)
            x += icon + 5
        return x

    def _marks(self, line: QRectF, *, marked_unread: bool) -> float:
        """Unread badge and missing count; returns what is left of the line's right end."""
        right = line.right()
        conversation = self._conversation
        if is_request(conversation):
            at = QPointF(right, line.center().y())
            right -= draw_badge(self._painter, at, tr("New"), muted=False) + 6
        elif conversation.unread:
            at = QPointF(right, line.center().y())
            text = badge_text(conversation.unread)
            right -= draw_badge(self._painter, at, text, muted=conversation.muted) + 6
        elif marked_unread:
            at = QPointF(right - 4, line.center().y())
            right -= draw_unread_dot(self._painter, at, muted=conversation.muted) + 10
        if self._asking:
            at = QPointF(right, line.center().y())
            words = tr("%n asking", "%n asking", self._asking)
            right -= draw_badge(self._painter, at, words, muted=False) + 6
        if conversation.mentions:
            right -= draw_mention_mark(self._painter, QPointF(right, line.center().y())) + 6
        if conversation.missing:
            right -= self._missing(QPointF(right, line.center().y())) + 6
        return right

    def _missing(self, right_middle: QPointF) -> float:
        theme = self._theme
        text = tr("{number} missing").format(number=badge_text(self._conversation.missing))
        font = theme.type.micro.strong()
        width = QFontMetricsF(font).horizontalAdvance(text)
        ring = theme.metrics.scaled(8)
        box = QRectF(right_middle.x() - width, right_middle.y() - 10, width + 2, 20)
        self._painter.setFont(font)
        self._painter.setPen(theme.warn)
        draw_text(self._painter, box, _LEFT_MIDDLE, text)
        pen = QPen(theme.warnDot, 1.5)
        pen.setDashPattern([1.4, 1.2])
        self._painter.setPen(pen)
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        centre = QPointF(box.left() - 4 - ring / 2, right_middle.y())
        self._painter.drawEllipse(centre, ring / 2 - 0.75, ring / 2 - 0.75)
        return width + 4 + ring

    def _words(self, line: QRectF) -> None:
        theme, preview = self._theme, self._preview
        tones = {
            Tone.PLAIN: (self._quiet, theme.type.label.font),
            Tone.SENDER: (theme.ink2, theme.type.label.medium()),
            Tone.DANGER: (theme.danger, theme.type.label.medium()),
            Tone.TYPING: (theme.accentInk, theme.type.label.medium()),
        }
        colour, font = tones[preview.prefix_tone]
        used = self._run(line, preview.prefix, font, colour)
        rest = line.adjusted(used, 0, 0, 0)
        self._run(rest, preview.text, theme.type.label.font, self._quiet)

    def _run(self, line: QRectF, text: str, font: QFont, colour: QColor) -> float:
        if not text or line.width() <= 0:
            return 0
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, line.width())
        self._painter.setFont(font)
        self._painter.setPen(colour)
        draw_text(self._painter, line, _LEFT_MIDDLE, shown)
        return metrics.horizontalAdvance(shown)


_LEFT_MIDDLE = (
    Qt.AlignmentFlag.AlignLeft
    | Qt.AlignmentFlag.AlignVCenter
    | Qt.TextFlag.TextSingleLine
    | Qt.TextFlag.TextDontClip
)
