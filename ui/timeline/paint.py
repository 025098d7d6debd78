"""How rows look: flat fills, one-pixel outlines, the thread and its beads, with QPainter only.

Everything drawn here was measured in ``boxes``; nothing is decided here but colour and stroke.
Filled beads are certain, hollow ones are not certain or not here: petrol held, amber missing,
violet late, red needs you.  In high contrast the tints of the theme are black, so outlines carry.
"""

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPen

from engine.events import MessageView
from ui.glyphs import Glyph, draw_glyph, glyph_of
from ui.icons import draw_icon
from ui.mirrored import upright
from ui.theme import Theme
from ui.timeline.album import TILE_RADIUS, AlbumPainter
from ui.timeline.boxes import Box, BubbleBox, LineBox
from ui.timeline.buttons import RowButton, advance, strong
from ui.timeline.cards import CardBox
from ui.timeline.file_box import FilePainter
from ui.timeline.file_pictures import ShownPictures
from ui.timeline.geometry import Geometry
from ui.timeline.link_card import paint_link_card
from ui.timeline.paint_body import BodyPainter, BodyState
from ui.timeline.paint_cards import MAX_GAP_BEADS, CardPainter
from ui.timeline.paint_parts import PartsPainter
from ui.timeline.primitives import FADED, HALO, Primitives
from ui.timeline.rows import (
    DayRow,
    HeldRow,
    MessageRow,
    Row,
    SystemRow,
    UnreadRow,
)
from ui.timeline.scene import KeptSender
from ui.timeline.shapes import Faces, avatar_of, rounded

MENTION_BAR = 3
_FADE = 10
"""How high what goes out of sight below a name fades."""


class RowState(Struct, frozen=True, kw_only=True):
    """What selection, hover and jumps add to a row, as in ``QStyle.State``."""

    selected: tuple[int, int] | None = None
    """UTF-16 range of the text."""
    found: tuple[tuple[int, int], ...] = ()
    """Likewise, what is searched for."""
    hovered: RowButton | None = None
    hovered_code: int | None = None
    """Where the block of code begins whose button is under the mouse."""
    chip: str = ""
    """The emoji of the reaction under the mouse."""
    quote: bool = False
    """The quote is under the mouse."""
    band: float = 0.0
    """Strength of the band behind a message that was jumped to, 0 to 1."""
    ringed: bool = True
    """Whether a message that arrived late still says so."""
    has_picture: bool = True
    """False: the sender's is kept in view elsewhere."""
    has_name: bool = True
    """Likewise."""


class RowPainter:
    """Paints rows of one theme and geometry; y is the row's top in the viewport."""

    def __init__(
        self,
        painter: QPainter,
        theme: Theme,
        geometry: Geometry,
        faces: Faces,
        pictures: ShownPictures,
    ) -> None:
        self._p = painter
        self._theme = theme
        self._g = geometry
        self._faces = faces
        self._draw = Primitives(painter, theme, geometry)
        self._cards = CardPainter(self._draw)
        self._body = BodyPainter(painter, theme)
        self._parts = PartsPainter(self._draw, pictures.quoted)
        self._files = FilePainter(self._draw, pictures.rows)
        self._albums = AlbumPainter(self._draw, pictures.rows)

    def background(self, height: float, thread_from: float) -> None:
        p, g = self._p, self._g
        # Beyond the edges too: at fractional scales they fall between two pixels.
        p.fillRect(QRectF(-1, -1, g.width + 3, height + 3), self._theme.canvas)
        p.fillRect(QRectF(g.thread_x - 1, thread_from, 2, height - thread_from), self._theme.thread)

    def row(self, row: Row, box: Box, y: float, state: RowState) -> None:
        y = float(round(y))  # Hairlines stay sharp while scrolling by fractions.
        self._p.translate(0, y)
        mentioned = isinstance(row, MessageRow) and row.message.mentions_me
        if mentioned or state.band > 0:
            self._band(box.height, 1.0 if mentioned else state.band, barred=mentioned)
        match row, box:
            case MessageRow(album_of=str()), BubbleBox():
                pass  # Its picture is drawn with the others of its album.
            case MessageRow(), BubbleBox():
                self._message(row, box, state)
            case _, CardBox():
                self._cards.paint(row, box, state.hovered)
            case HeldRow(), BubbleBox():
                self._draw.dash_thread(box.height)
                self._message(
                    MessageRow(message=row.message, first=row.first, last=True), box, state
                )
            case DayRow(), LineBox():
                self.pill(box.rect, box.words)
            case UnreadRow(), LineBox():
                self._unread(box)
            case SystemRow() | HeldRow(), LineBox():
                self._draw.text(
                    box.rect, box.words, self._theme.type.caption.font, self._theme.ink3
                )
                self._draw.bead(
                    box.rect.center().y(), radius=3 * self._draw.scale, fill=self._theme.thread
                )
            case _:
                raise AssertionError((row, box))
        self._p.translate(0, -y)

    def _band(self, height: float, strength: float, *, barred: bool) -> None:
        """Behind a message that was jumped to; ``barred``: one that mentions us."""
        p, g, theme = self._p, self._g, self._theme
        band = QColor(theme.band)
        band.setAlphaF(strength)
        above = g.pad_y / 2
        rect = QRectF(0, above, g.width, height + 1)
        p.fillRect(rect, band)
        p.fillRect(QRectF(g.thread_x - 1, above, 2, rect.height()), theme.thread)
        if barred:
            p.fillRect(QRectF(0, above, MENTION_BAR, rect.height()), theme.accent)

    def pill(self, rect: QRectF, words: str) -> None:
        p, theme = self._p, self._theme
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface)
        p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), rect.height() / 2, rect.height() / 2)
        self._draw.text(rect, words, strong(theme.type.caption), theme.ink2)

    # messages -----------------------------------------------------------------------------------

    def _message(self, row: MessageRow, box: BubbleBox, state: RowState) -> None:
        theme, message = self._theme, row.message
        failed = box.meta.glyph is Glyph.FAILED
        if failed:
            fill, line, ink, meta = theme.dangerBg, theme.dangerLine, theme.ink, theme.danger
        elif message.is_own:
            fill, line, ink, meta = theme.own, theme.ownLine, theme.ownInk, theme.ownMeta
        else:
            fill, line, ink, meta = theme.surface, theme.line, theme.ink, theme.ink3
        if message.held:
            fill, ink, meta = theme.canvas, theme.ink2, theme.ink3
        self._bead_of(row, box, state)
        self._p.setOpacity(FADED if box.leaving else 1.0)
        if message.waiting or message.held:
            self._dashed_bubble(row, box.bubble, fill)
        else:
            self._bubble(row, box.bubble, fill, line)
        if box.name and state.has_name:
            self._name(message, box, meta)
        own = message.is_own and not failed
        self._parts.above(box.above, own=own, ink=meta, hovered=state.quote)
        self._paint_body(message, box, state, ink=ink)
        if box.link is not None:
            paint_link_card(self._p, self._draw, box.link, theme)
        self._parts.chips(box.chips, state.chip)
        self._meta(box, meta)
        self._p.setOpacity(1.0)
        for button, rect in box.buttons:
            self._draw.button(button, rect, hovered=state.hovered is button)
        if box.reason:
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            wrapped = flags | Qt.TextFlag.TextWordWrap
            said = theme.ink2 if box.leaving else theme.danger
            self._draw.text(box.reason_rect, box.reason, theme.type.small.font, said, wrapped)

    def _paint_body(
        self, message: MessageView, box: BubbleBox, state: RowState, *, ink: QColor
    ) -> None:
        p, theme = self._p, self._theme
        if box.file is not None:
            self._files.paint(message, box.file)
        self._albums.paint(box.album)
        if message.file is not None and not message.text:
            return
        p.setPen(ink)
        if box.body.stacked:  # Piled up marks would be drawn over other people's messages.
            p.setClipRect(box.bubble)
        bar = theme.ownMeta if message.is_own else theme.line2
        shown = BodyState(
            selected=state.selected, found=state.found, hovered_code=state.hovered_code
        )
        with upright(p, QRectF(box.body_at, QSizeF(box.body.width, box.body.height))):
            self._body.paint(box.body, box.body_at, shown, ink=ink, quote_bar=bar)
        if box.body.stacked:
            p.setClipping(False)

    def _bubble(self, row: MessageRow, rect: QRectF, fill: QColor, line: QColor) -> None:
        """Two fills, one pixel apart: an eighth of what stroking a path costs."""
        p, corners = self._p, self._corners(row)
        p.translate(rect.topLeft())
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(line)
        p.drawPath(rounded(rect.width(), rect.height(), *corners))
        p.setBrush(fill)
        p.translate(1, 1)
        inner = (max(corner - 1, 1.0) for corner in corners)
        p.drawPath(rounded(rect.width() - 2, rect.height() - 2, *inner))
        p.translate(-rect.left() - 1, -rect.top() - 1)

    def _dashed_bubble(self, row: MessageRow, rect: QRectF, fill: QColor) -> None:
        """It waits for earlier messages, or for its time: here, but without its place."""
        p, inner = self._p, rect.adjusted(0.5, 0.5, -0.5, -0.5)
        pen = QPen(self._theme.warnLine, 1)
        pen.setDashPattern([4, 3])
        p.setPen(pen)
        p.setBrush(fill)
        p.translate(inner.topLeft())
        p.drawPath(rounded(inner.width(), inner.height(), *self._corners(row)))
        p.translate(-inner.topLeft())

    def _corners(self, row: MessageRow) -> tuple[float, float, float, float]:
        g = self._g
        if row.message.is_own:
            top = g.radius if row.first else g.grouped
            return g.radius, top, g.tight if row.last else g.grouped, g.radius
        left = g.tight if row.first else g.grouped
        return left, g.radius, g.radius, g.radius if row.last else g.grouped

    def _meta(self, box: BubbleBox, colour: QColor) -> None:
        meta, micro = box.meta, self._theme.type.micro
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        rect = QRectF(meta.rect)
        self._draw.text(rect, meta.time, micro.font, colour, flags)
        if meta.count:
            rect.setLeft(rect.left() + advance(micro.font, meta.time) + 4)
            self._draw.text(rect, meta.count, strong(micro), colour, flags)
        if meta.glyph is not None:
            at = QPointF(
                meta.rect.right() - 16 * self._draw.scale,
                meta.rect.center().y() - 6 * self._draw.scale,
            )
            draw_glyph(self._p, meta.glyph, at, colour, scale=self._draw.scale)

    def _bead_of(self, row: MessageRow, box: BubbleBox, state: RowState) -> None:
        theme, g, message = self._theme, self._g, row.message
        ringed = state.ringed
        if not message.is_own and row.first:
            if state.has_picture:
                self.avatar(message, box.bubble.top(), ringed=message.late and ringed)
            return
        y = box.bubble.top() + min(box.bubble.height() / 2, 17 * self._draw.scale)
        glyph = None if message.delivery is None else glyph_of(message.delivery)
        if message.late and ringed:
            self._draw.bead(y, radius=g.bead, fill=theme.late)
            self._ring(y, g.bead + 2.75)
        elif message.waiting or message.held:
            self._draw.bead(y, radius=g.bead, ring=theme.warnDot)
        elif glyph is Glyph.FAILED:
            self._draw.bead(y, radius=g.bead, ring=theme.danger)
        elif glyph is Glyph.SAVED:
            self._draw.bead(y, radius=g.bead, ring=theme.accent)
        elif row.first:
            self._draw.bead(y, radius=g.bead, fill=theme.accent)
        else:
            self._draw.bead(y, radius=3 * self._draw.scale, fill=theme.thread)

    def avatar(self, message: MessageView, y: float, *, ringed: bool = False) -> None:
        g, p = self._g, self._p
        rect = QRectF(g.left, y, g.avatar, g.avatar)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(self._theme.canvas)
        p.drawEllipse(rect.adjusted(-HALO, -HALO, HALO, HALO))
        scale = p.device().devicePixelRatioF()
        picture = avatar_of(message, self._faces, self._theme, g.avatar, scale)
        with upright(p, rect):
            p.drawPixmap(rect.topLeft(), picture)
        if ringed:
            self._ring(rect.center().y(), g.avatar / 2 + 2.25)

    def name(self, kept: KeptSender, covered: float) -> None:
        """Above the run whose beginning is out of view; nothing without a name.

        The words of the run go out of sight below it, as they do at the edge of the view: a label
        on top of them would look like a bubble of its own.  On a picture it is one.  ``covered``:
        how much of the view something else lies on.
        """
        if kept.strip.isEmpty():
            return
        p, theme = self._p, self._theme
        strip = QRectF(kept.strip.toRect())
        if kept.over_words:
            self._fade_out(strip, covered)
        else:
            p.setPen(QPen(theme.line, 1))
            p.setBrush(theme.surface)
            radius = min(self._g.radius, strip.height() / 2)
            p.drawRoundedRect(strip.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        beside = strip.topLeft() - kept.box.bubble.topLeft()
        p.translate(beside)
        self._name(kept.message, kept.box, theme.ink3)
        p.translate(-beside)

    def _fade_out(self, strip: QRectF, covered: float) -> None:
        """What is above the lower edge of a strip, and by and by what is below."""
        p, canvas, line = self._p, self._theme.canvas, self._theme.line
        left, right = strip.left() - HALO, self._g.right + HALO
        p.fillRect(QRectF(left, covered, right - left, strip.bottom() - covered), canvas)
        if self._theme.is_high_contrast:
            p.fillRect(QRectF(left, strip.bottom(), right - left, 1), line)
            return
        below = QRectF(left, strip.bottom(), right - left, _FADE * self._draw.scale)
        fading = QLinearGradient(below.topLeft(), below.bottomLeft())
        gone = QColor(canvas)
        gone.setAlpha(0)
        fading.setColorAt(0, canvas)
        fading.setColorAt(1, gone)
        p.fillRect(below, fading)

    def _name(self, message: MessageView, box: BubbleBox, mark: QColor) -> None:
        colour, font = self._theme.sender_colour(message.sender_id), strong(self._theme.type.label)
        at = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        self._draw.text(box.name_rect, box.name, font, colour, at)
        if not box.verified_rect.isEmpty():
            draw_icon(self._p, "verified", box.verified_rect, mark)

    def _ring(self, y: float, radius: float) -> None:
        self._p.setPen(QPen(self._theme.late, 1.5))
        self._p.setBrush(Qt.BrushStyle.NoBrush)
        self._p.drawEllipse(QPointF(self._g.thread_x, y), radius, radius)

    # lines --------------------------------------------------------------------------------------

    def _unread(self, box: LineBox) -> None:
        p, theme, g = self._p, self._theme, self._g
        y = int(box.rect.center().y()) + 0.5
        line = QColor(theme.accent)
        line.setAlphaF(1.0 if theme.is_high_contrast else 0.55)
        p.setPen(QPen(line, 2 if theme.is_high_contrast else 1))
        start = g.thread_x + MAX_GAP_BEADS * 4
        p.drawLine(QPointF(start, y), QPointF(box.rect.left() - 10, y))
        p.drawLine(QPointF(box.rect.right() + 10, y), QPointF(g.right, y))
        self._draw.text(box.rect, box.words, strong(theme.type.caption), theme.accentInk)

    def focus(self, row: Row | None, rect: QRectF) -> None:
        """The ring around a row; painted after all rows, since neighbours are closer than it."""
        even = min(self._g.radius, rect.height() / 2)
        corners = (even, even, even, even)
        if isinstance(row, MessageRow):
            is_tile = row.album or row.album_of
            corners = (TILE_RADIUS,) * 4 if is_tile else self._corners(row)
        p, width = self._p, self._theme.focus_width
        p.setPen(QPen(self._theme.focus, width))
        p.setBrush(Qt.BrushStyle.NoBrush)
        grow = 2 + width / 2
        around = rect.adjusted(-grow, -grow, grow, grow)
        p.translate(around.topLeft())
        p.drawPath(rounded(around.width(), around.height(), *(c + grow for c in corners)))
        p.translate(-around.topLeft())
