"""How large each row is and where its buttons are, before anything is painted.

Rows are measured from font metrics, never from constants; boxes are relative to the row's top and
absolute in x.  A box lists its buttons, so that pointer and keyboard use the geometry that was
painted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QTextLayout, QTextOption

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.events import MessageView
from ui.conversation_words import kind_words, sender_words
from ui.file_words import has_problem
from ui.glyphs import GLYPH_SIZE, Glyph, count_of, failure_words, glyph_of
from ui.marked_text import utf16_slice
from ui.theme import Theme, Typeface
from ui.timeline.album import Tile, album_tiles
from ui.timeline.bodies import Body, BodyLayouts
from ui.timeline.bubble_parts import Chip, PartsAbove, chips_of, parts_above
from ui.timeline.buttons import ICON, WITH_SIGN, RowButton, advance, button_words, strong
from ui.timeline.cards import CardBox, Cards
from ui.timeline.file_box import FileBox, file_box
from ui.timeline.file_pictures import ShownPictures
from ui.timeline.geometry import Geometry
from ui.timeline.link_card import Describe, LinkCard, link_card
from ui.timeline.row_words import claimed_words, new_since_words, time_words
from ui.timeline.rows import (
    DayRow,
    EarlierRow,
    GapRow,
    HeldRow,
    HeldTitleRow,
    LostRow,
    MessageRow,
    Row,
    RowKey,
    SystemRow,
    UnreadRow,
    is_system,
    local_time,
    row_key,
)
from ui.times import day_words
from ui.translate import tr

_RUN_GAP, _COMPACT_RUN_GAP = 7, 4
_IN_RUN_GAP, _COMPACT_IN_RUN_GAP = 2, 1
_META_GAP = 4
_TEXT_TO_META = 12
_OUTLINE = 1
_VERIFIED_SIDE = 14
_VERIFIED_GAP = 4
"""Of a bubble, around its padding."""


class Meta(Struct, frozen=True, kw_only=True):
    """Time, count and glyph on a bubble's last line."""

    rect: QRectF = QRectF()
    time: str = ""
    count: str = ""
    glyph: Glyph | None = None


class BubbleBox(Struct, frozen=True, kw_only=True):
    height: float
    bubble: QRectF
    name: str
    name_rect: QRectF
    verified_rect: QRectF
    """After the name, if the sender's key was compared; else empty."""
    above: PartsAbove
    file: FileBox | None
    album: tuple[Tile, ...] = ()
    """Pictures that are drawn together, instead of ``file``."""
    body: Body
    body_at: QPointF
    link: LinkCard | None = None
    chips: tuple[Chip, ...]
    meta: Meta
    reason: str
    reason_rect: QRectF
    buttons: tuple[tuple[RowButton, QRectF], ...]
    leaving: bool = False
    """It is about to be deleted for everybody."""


class LineBox(Struct, frozen=True, kw_only=True):
    """Day pill, unread line and system line: one text in the middle.

    Only a system line may be broken into several.
    """

    height: float
    words: str
    rect: QRectF


class _Name(NamedTuple):
    """Of the sender, above a bubble's text; at its content's left."""

    words: str
    rect: QRectF
    verified: QRectF
    """The mark after it; empty without one."""
    width: float
    """Of both."""


class _Content(NamedTuple):
    """What is in a bubble, at its content's left, so that the bubble's own place may follow."""

    begin: float
    """Where the name stands, or the rest without one."""
    name: _Name
    above: PartsAbove
    album: tuple[Tile, ...]
    file: FileBox | None
    body: Body
    body_top: float
    has_text: bool
    link: LinkCard | None
    chips: tuple[Chip, ...]
    bottom: float


class _LastLine(NamedTuple):
    """Of a bubble, where time, count and glyph are."""

    time: str
    meta_width: float
    width: float
    is_own: bool
    """Nothing else is in it."""


_NAMELESS = _Name("", QRectF(), QRectF(), 0.0)

Box: TypeAlias = BubbleBox | LineBox | CardBox
_Below: TypeAlias = tuple[str, QRectF, tuple[tuple[RowButton, QRectF], ...]]
"""What stands below a bubble: words, their place, and buttons."""


@dataclass(slots=True, kw_only=True)
class Measure:
    """Measures rows for one geometry and theme."""

    theme: Theme
    geometry: Geometry
    bodies: BodyLayouts
    pictures: ShownPictures
    unfolded: Callable[[MessageId], bool]
    explained: Callable[[RowKey], bool]
    """Whether a marker's details are open."""
    is_pair: Callable[[], bool]
    is_verified: Callable[[ParticipantId], bool]
    is_leaving: Callable[[MessageId], bool]
    """Whether a message is about to be deleted for everybody."""
    is_asked: Callable[[MessageId], bool]
    """Whether what a message quotes was asked for, as it is not here."""
    now_ms: Callable[[], UnixMs]
    describe: Describe
    """What a link of ours in a message says."""
    others: Callable[[], int]
    """How many members there are besides ourselves."""

    def box(self, row: Row) -> Box:
        match row:
            case MessageRow():
                return self._bubble(row) if row.album_of is None else self._nothing(row)
            case HeldRow(message=message) if not is_system(message):
                return self._bubble(MessageRow(message=message, first=row.first, last=True))
            case GapRow() | LostRow() | EarlierRow() | HeldTitleRow():
                return self._card(row)
            case DayRow(day=day):
                return self._pill(day_words(day, local_time(self.now_ms()).date()))
            case UnreadRow(since_ms=since_ms):
                words = new_since_words(since_ms, local_time(self.now_ms()).date())
                return self._line(words, strong(self.theme.type.caption), above=5, below=4)
            case SystemRow(message=message) | HeldRow(message=message):
                # The time stays on the line of the last word.
                return self._system(f"{kind_words(message)}\u00a0·\u00a0{self._time(message)}")

    def _card(self, row: GapRow | LostRow | EarlierRow | HeldTitleRow) -> CardBox:
        cards = Cards(
            theme=self.theme,
            geometry=self.geometry,
            now_ms=self.now_ms(),
            is_pair=self.is_pair(),
        )
        match row:
            case HeldTitleRow():
                return cards.held(row)
            case EarlierRow():
                return cards.earlier(row)
            case LostRow():
                return cards.lost(row, explained=self.explained(row_key(row)))
            case GapRow():
                return cards.gap(row, explained=self.explained(row_key(row)))

    # one text -----------------------------------------------------------------------------------

    def _pill(self, words: str) -> LineBox:
        theme = self.theme
        height = max(theme.metrics.scaled(26), theme.type.caption.line_height + 8)
        width = advance(strong(theme.type.caption), words) + 2 * theme.metrics.gap(12)
        above, below = theme.metrics.gap(8), theme.metrics.gap(4)
        rect = QRectF(int(self.geometry.centre - width / 2), above, int(width) + 1, int(height))
        return LineBox(height=above + int(height) + below, words=words, rect=rect)

    def _line(self, words: str, font: QFont, *, above: float, below: float) -> LineBox:
        line = self.theme.type.caption.line_height
        room = self.geometry.right - self.geometry.left
        shown = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideMiddle, room)
        width = advance(font, shown)
        rect = QRectF(self.geometry.centre - width / 2, above, width, line)
        return LineBox(height=above + line + below, words=shown, rect=rect)

    def _system(self, words: str) -> LineBox:
        """All of it, beside the thread, whose bead would cover what is below."""
        face, g = self.theme.type.caption, self.geometry
        lines = _broken(words, face.font, g.right - g.bubble_left)
        width = max(advance(face.font, line) for line in lines)
        height = face.line_height * len(lines)
        rect = QRectF(max(g.bubble_left, g.centre - width / 2), 7, width, height)
        return LineBox(height=height + 12, words="\n".join(lines), rect=rect)

    # bubbles ------------------------------------------------------------------------------------

    def _nothing(self, row: MessageRow) -> BubbleBox:
        """A picture that is drawn in another row."""
        g = self.geometry
        room = g.max_bubble - 2 * g.pad_x
        body = self.bodies.body(row.message, width=room, unfolded=False, theme=self.theme)
        at = QPointF(g.bubble_left, 0)
        return BubbleBox(
            height=0,
            bubble=QRectF(at, at),
            name="",
            name_rect=QRectF(),
            verified_rect=QRectF(),
            above=parts_above(row.message, at, room, self.theme, self.pictures.quoted),
            file=None,
            body=body,
            body_at=at,
            chips=(),
            meta=Meta(),
            reason="",
            reason_rect=QRectF(),
            buttons=(),
        )

    def _bubble(self, row: MessageRow) -> BubbleBox:
        g, line = self.geometry, self.theme.type.micro.line_height
        room = g.max_bubble - 2 * g.pad_x
        top = self._gap_above(row)
        content = self._content(row, top + _OUTLINE + g.pad_y, room)
        last = self._last_line(row, content, room)
        width = float(int(self._inner_width(content, last) + 2 * g.pad_x) + 1)
        left = g.right - width if row.message.is_own else g.bubble_left
        bottom = content.bottom + (line if last.is_own else 0)
        bubble = QRectF(left, top, width, int(bottom - top + g.pad_y + _OUTLINE + 0.5))
        meta_rect = QRectF(
            bubble.right() - g.pad_x + 2 - last.meta_width,
            bubble.bottom() - _OUTLINE - g.pad_y - line + self._to_last_line(content, last),
            last.meta_width,
            line,
        )
        return self._placed(row.message, content, bubble, meta_rect, last.time)

    def _content(self, row: MessageRow, begin: float, room: float) -> _Content:
        """One below the other, from ``begin`` on."""
        theme, message = self.theme, row.message
        unfolded = self.unfolded(message.message_id)
        body = self.bodies.body(message, width=room, unfolded=unfolded, theme=theme)
        name = self._name(row, room)
        origin = QPointF(0, begin + name.rect.height())
        asked = self.is_asked(message.message_id)
        above = parts_above(message, origin, room, theme, self.pictures.quoted, asked=asked)
        below_parts = origin.y() + above.height
        album = album_tiles(row.album, below_parts, room, theme) if row.album else ()
        file = None if album else self._file(row, below_parts, room)
        has_text = message.file is None or bool(message.text)
        body_top = below_parts
        if file is not None:
            body_top = file.bottom + theme.metrics.gap(4)
        elif album:
            body_top = album[-1].rect.bottom() + (theme.metrics.gap(4) if has_text else 0)
        link, body_end = self._link(message, body_top + (body.height if has_text else 0.0), room)
        chips = self._chips(message, body_end, room)
        return _Content(
            begin=begin,
            name=name,
            above=above,
            album=album,
            file=file,
            body=body,
            body_top=body_top,
            has_text=has_text,
            link=link,
            chips=chips,
            bottom=max([body_end, *(chip.rect.bottom() for chip in chips)]),
        )

    def _last_line(self, row: MessageRow, content: _Content, room: float) -> _LastLine:
        """Time and delivery stand beside what is last, or below it where there is no room.

        Of pictures that are drawn together each has its own.
        """
        if content.album:
            return _LastLine(time="", meta_width=0.0, width=0.0, is_own=False)
        body, chips = content.body, content.chips
        time = self._told_time(row)
        meta_width = self._meta_width(row.message, time)
        text_end = body.last_line_width if content.has_text else _end_of_file(content.file, room)
        beside = (_end_of(chips) if chips else text_end) + _TEXT_TO_META + meta_width
        text_blocks = body.right_to_left is not self.geometry.mirrored or body.ends_in_code
        blocked = (text_blocks or content.link is not None) and not chips
        is_own = beside > room or body.folded or blocked
        width = meta_width if is_own else beside
        return _LastLine(time=time, meta_width=meta_width, width=width, is_own=is_own)

    def _inner_width(self, content: _Content, last: _LastLine) -> float:
        """Of the widest part."""
        body, file, link = content.body, content.file, content.link
        file_width = 0.0 if file is None else file.width
        parts = (*content.chips, *content.album, *((link,) if link else ()))
        widths: list[float] = [part.rect.right() for part in parts]
        if body.folded:
            more = advance(strong(self.theme.type.small), tr("Show all"))
            widths.append(more + 24 + last.meta_width)
        standing = (body.width, content.name.width, content.above.width, file_width, last.width)
        return max([*standing, *widths])

    def _to_last_line(self, content: _Content, last: _LastLine) -> int:
        """How far the small time moves down to stand well with what is beside it."""
        if last.is_own or content.chips or not content.has_text:
            return 2
        return self._to_baseline()

    def _placed(
        self, message: MessageView, content: _Content, bubble: QRectF, meta_rect: QRectF, time: str
    ) -> BubbleBox:
        """In its bubble."""
        g, name, album = self.geometry, content.name, content.album
        left, line = bubble.left() + g.pad_x, meta_rect.height()
        unfold: tuple[tuple[RowButton, QRectF], ...] = ()
        if content.body.folded:
            more = QRectF(left, meta_rect.top() - 1, meta_rect.left() - bubble.left(), line + 2)
            unfold = ((RowButton.UNFOLD, more),)
        file = None if content.file is None else content.file.moved(left)
        link = None if content.link is None else content.link.moved(left)
        leaving, (reason, reason_rect, buttons) = self._state(message, bubble, album=bool(album))
        return BubbleBox(
            height=max([bubble.bottom(), reason_rect.bottom(), *(r.bottom() for _, r in buttons)]),
            bubble=bubble,
            name=name.words,
            name_rect=name.rect.translated(left, content.begin),
            verified_rect=name.verified.translated(left, content.begin),
            above=content.above.placed(left, bubble.width() - 2 * g.pad_x),
            file=file,
            album=tuple(self._tile(tile, left) for tile in album),
            body=content.body,
            body_at=QPointF(left, content.body_top),
            link=link,
            chips=tuple(chip.moved(left) for chip in content.chips),
            meta=Meta() if album else self._meta(message, meta_rect, time),
            reason=reason,
            reason_rect=reason_rect,
            leaving=leaving,
            buttons=(
                *unfold,
                *(() if file is None else file.buttons),
                *(() if link is None else (link.button,)),
                *buttons,
            ),
        )

    def _gap_above(self, row: MessageRow) -> int:
        metrics = self.theme.metrics
        if row.first:
            return metrics.gap(metrics.dense(_RUN_GAP, _COMPACT_RUN_GAP))
        return metrics.gap(metrics.dense(_IN_RUN_GAP, _COMPACT_IN_RUN_GAP))

    def _tile(self, tile: Tile, left: float) -> Tile:
        return replace(
            tile.moved(left),
            leaving=self.is_leaving(tile.message.message_id),
        )

    def _to_baseline(self) -> int:
        """How far the small time moves to stand on the baseline of the text beside it."""
        micro, body = self.theme.type.micro, self.theme.type.body
        return round(_above_edge(micro) - _above_edge(body))

    def _file(self, row: MessageRow, top: float, room: float) -> FileBox | None:
        """From the bubble's content on."""
        message, below = row.message, row.lacking_too
        if message.file is None:
            return None
        said_below = below is not None and has_problem(below, self.others())
        broken = self.pictures.rows.is_broken(message)
        return file_box(
            message,
            message.file,
            top,
            room,
            self.theme,
            broken=broken,
            others=self.others(),
            pair=self.is_pair(),
            said_below=said_below,
        )

    def _link(
        self, message: MessageView, below: float, room: float
    ) -> tuple[LinkCard | None, float]:
        """The card of an invitation or a person, and where it ends."""
        link = link_card(message, below, room, self.theme, self.describe)
        return link, below if link is None else link.rect.bottom()

    def _chips(self, message: MessageView, below: float, room: float) -> tuple[Chip, ...]:
        at = QPointF(0, below + self.theme.metrics.gap(6))
        return chips_of(message, at, room, self.theme)

    def _name(self, row: MessageRow, room: float) -> _Name:
        if row.message.is_own or not row.first or self.is_pair():
            return _NAMELESS
        theme = self.theme
        side, gap, height = 0, 0, theme.type.label.line_height
        if self.is_verified(row.message.sender_id):
            side, gap = theme.metrics.scaled(_VERIFIED_SIDE), theme.metrics.scaled(_VERIFIED_GAP)
        font = strong(theme.type.label)
        words = QFontMetricsF(font).elidedText(
            sender_words(row.message), Qt.TextElideMode.ElideRight, room - side - gap
        )
        width = advance(font, words)
        mark = QRectF(width + gap, (height - side) / 2, side, side)
        return _Name(words, QRectF(0, 0, width, height), mark, width + gap + side)

    def _meta(self, message: MessageView, rect: QRectF, time: str) -> Meta:
        delivery = message.delivery
        return Meta(
            rect=rect,
            time=time,
            count="" if delivery is None else count_of(delivery),
            glyph=None if delivery is None else glyph_of(delivery),
        )

    def _told_time(self, row: MessageRow) -> str:
        message = row.message
        told = row.timed or message.held or message.edited_ms is not None
        return self._time(message) if told else ""

    def _time(self, message: MessageView) -> str:
        if message.held:
            return claimed_words(message, self.now_ms())
        when = time_words(message.sent_ms)
        if message.edited_ms is not None and not message.retracted:
            return tr("edited {time}").format(time=when)
        return when

    def _meta_width(self, message: MessageView, time: str) -> float:
        micro = self.theme.type.micro
        width = advance(micro.font, time)
        if message.delivery is not None:
            width += _META_GAP + GLYPH_SIZE.width() * self.theme.metrics.factor
            count = count_of(message.delivery)
            width += _META_GAP + advance(strong(micro), count) if count else 0
        return width

    def _state(self, message: MessageView, bubble: QRectF, *, album: bool) -> tuple[bool, _Below]:
        """Whether it is about to be deleted, and what is said of that or of its failure.

        ``album``: its pictures say so one by one.
        """
        if not album and self.is_leaving(message.message_id):
            return True, self._leaving(bubble)
        return False, self._failure(message, bubble)

    def _failure(self, message: MessageView, bubble: QRectF) -> _Below:
        delivery = message.delivery
        if delivery is None or glyph_of(delivery) is not Glyph.FAILED:
            return "", QRectF(), ()
        words = tr("{why} It is safe on this device.").format(why=failure_words(delivery))
        if self.is_pair():
            words = tr("Not delivered: {why}").format(why=words)
        return self._told_below(words, bubble, (RowButton.RESEND, RowButton.DISCARD))

    def _leaving(self, bubble: QRectF) -> _Below:
        """Beside the bubble, where it moves nothing; below it if there is no room."""
        g, theme, words = self.geometry, self.theme, tr("Being deleted for everybody…")
        said = float(int(advance(theme.type.small.font, words)) + 2)
        width = self._button_width(RowButton.KEEP)
        gap = theme.metrics.gap(8)
        left = bubble.left() - gap - width - gap - said
        if left < g.bubble_left:
            return self._told_below(words, bubble, (RowButton.KEEP,))
        height = float(theme.metrics.scaled(26))
        top = float(int(bubble.center().y() - height / 2))
        button = QRectF(bubble.left() - gap - width, top, width, height)
        return words, QRectF(left, top, said, height), ((RowButton.KEEP, button),)

    def _button_width(self, button: RowButton) -> float:
        sign = self.theme.metrics.scaled(ICON) + 6 if button in WITH_SIGN else 0
        words = advance(strong(self.theme.type.caption), button_words(button))
        return float(int(words + sign + 20))

    def _told_below(self, words: str, bubble: QRectF, wanted: tuple[RowButton, ...]) -> _Below:
        """Words below an own bubble, and buttons from its right edge on."""
        g, theme = self.geometry, self.theme
        height = float(theme.metrics.scaled(26))
        top = bubble.bottom() + theme.metrics.gap(4)
        buttons: list[tuple[RowButton, QRectF]] = []
        end = g.right
        for button in wanted:
            width = self._button_width(button)
            buttons.insert(0, (button, QRectF(end - width, top, width, height)))
            end -= width + 6
        room = end - g.bubble_left
        flags = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignRight
        metrics = QFontMetricsF(theme.type.small.font)
        left = g.bubble_left
        if advance(theme.type.small.font, words) <= room:
            reason = QRectF(end - room, top, room, height)
        else:  # It does not fit beside the buttons: below them, in as many lines as it needs.
            taken = metrics.boundingRect(QRectF(0, 0, g.right - left, 400), flags, words)
            reason = QRectF(left, top + height + 2, g.right - left, taken.height() + 2)
        return words, reason, tuple(buttons)


def _above_edge(face: Typeface) -> float:
    """From the lower edge of a line up to its baseline."""
    metrics = QFontMetricsF(face.font)
    return (face.line_height - metrics.height()) / 2 + metrics.descent()


def _end_of_file(file: FileBox | None, room: float) -> float:
    """Where the last line of what stands below it ends."""
    return file.buttons[-1][1].right() if file is not None and file.buttons else room


def _end_of(chips: Sequence[Chip]) -> float:
    """Where the last row of chips ends."""
    return chips[-1].rect.right()


def _broken(words: str, font: QFont, room: float) -> list[str]:
    """The lines that it takes; words that are longer than one are broken, too."""
    if advance(font, words) <= room:
        return [words]
    layout, lines = QTextLayout(words, font), []
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    while (line := layout.createLine()).isValid():
        line.setLineWidth(room)
        end = line.textStart() + line.textLength()
        lines.append(utf16_slice(words, line.textStart(), end).strip())
    layout.endLayout()
    return lines
