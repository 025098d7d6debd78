"""The model that the timeline's parts share: what is loaded, laid out, selected and focused.

It combines the loaded messages with their measured boxes and the layout of the viewport, and
answers what lies under a point.  It paints nothing and listens to nothing: ``canvas`` draws it,
``interaction`` selects and focuses in it, ``navigation`` and ``updates`` change what is loaded.
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import takewhile

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.events import ConversationView, MessageView
from engine.text_spans import SpanKind
from ui.people import face_of
from ui.theme import Theme, current_theme
from ui.timeline.bodies import BodyLayouts
from ui.timeline.boxes import Box, BubbleBox, Measure
from ui.timeline.buttons import RowButton
from ui.timeline.cards import CardBox
from ui.timeline.code_block import CodeBlock
from ui.timeline.file_pictures import FilePictures, ShownPictures
from ui.timeline.found_words import FoundWords
from ui.timeline.geometry import Geometry, geometry_for
from ui.timeline.layout import PlacedRow, ViewportLayout
from ui.timeline.link_card import Describe
from ui.timeline.loaded import LoadedMessages
from ui.timeline.rows import (
    HeldRow,
    MessageRow,
    Row,
    RowKey,
    message_in,
    message_key,
    message_of,
    row_key,
)
from ui.timeline.selection import Caret, Selection

_MAX_BOXES = 2000
_MAX_UNFOLDED = 256


class Hit(Struct, frozen=True):
    """What lies under a point."""

    key: RowKey
    message: MessageView | None = None
    button: RowButton | None = None
    link: str | None = None
    code: int | None = None
    """Over the button that copies a block of code: where the block begins."""
    chip: str = ""
    """The emoji of a reaction; ``MORE_CHIP`` for the one that stands for the others."""
    over_quote: bool = False
    over_file: bool = False
    over_text: bool = False
    over_meta: bool = False
    over_sender: bool = False
    """Over the sender's picture or name."""


class KeptSender(Struct, frozen=True):
    """The sender of a run whose beginning has left the view at the top."""

    first: RowKey
    """The row where picture and name stand as long as that is in view."""
    message: MessageView
    y: float
    """Of the picture, and of the strip with the name."""
    strip: QRectF
    """Around the name, in the viewport: as wide as it needs, or as bubbles whose words it covers.

    Empty without a name, where the name can be seen in its own place, and over a run's last
    message, whose text it would hide.
    """
    over_words: bool
    """The strip hides whole lines, and not only a part of a picture."""
    box: BubbleBox
    """Of the run's first message, which has the name, unless nobody needs one."""


class Scene:
    """State of one viewport; ``place`` after every change.

    ``faces_of`` gives the known pictures of a group's members.
    """

    def __init__(
        self,
        now_ms: Callable[[], UnixMs],
        faces_of: Callable[[ConversationView], dict[ParticipantId, bytes]],
        describe: Describe,
    ) -> None:
        self.now_ms = now_ms
        self.describe = describe
        """What a link of ours in a message says."""
        self._faces_of = faces_of
        self.loaded = LoadedMessages()
        self.bodies = BodyLayouts()
        self.shown_pictures = ShownPictures(FilePictures(), FilePictures())
        self.height = 0.0
        self.selection = Selection()
        self.found = FoundWords()
        self.hover: Hit | None = None
        self.focus_key: RowKey | None = None
        self.late_seen: set[RowKey] = set()
        """Messages that arrived late and have been looked at: they lose their ring."""
        self.can_write = True
        """Whether anything can be sent in this conversation now."""
        self.is_pair = False
        """A one-to-one conversation: nobody needs a name above what they say."""
        self.others: tuple[ParticipantId, ...] = ()
        """Members but oneself: who may hold a message."""
        self.faces: dict[ParticipantId, bytes] = {}
        self.verified: frozenset[ParticipantId] = frozenset()
        """Those whose keys the user compared."""
        self.outranked: frozenset[ParticipantId] = frozenset()
        """Members of a governed group whose messages we may delete for everybody."""
        self.leaving: frozenset[MessageId] = frozenset()
        """Messages that are about to be deleted for everybody."""
        self._explained: set[RowKey] = set()
        self._asked: set[MessageId] = set()
        """Messages whose quote of what is not here was followed."""
        self._unfolded: OrderedDict[MessageId, None] = OrderedDict()
        self._boxes: OrderedDict[RowKey, tuple[MessageRow, BubbleBox]] = OrderedDict()
        self._measure = self._measured_for(geometry_for(0, narrow=False, theme=current_theme()))
        self.layout = ViewportLayout(self._height_of)

    def _measured_for(self, geometry: Geometry) -> Measure:
        return Measure(
            theme=current_theme(),
            geometry=geometry,
            bodies=self.bodies,
            pictures=self.shown_pictures,
            unfolded=self._unfolded.__contains__,
            explained=lambda key: key in self._explained,
            is_pair=lambda: self.is_pair,
            is_verified=lambda sender_id: sender_id in self.verified,
            is_leaving=lambda message_id: message_id in self.leaving,
            is_asked=self._asked.__contains__,
            now_ms=self.now_ms,
            describe=self.describe,
            others=lambda: len(self.others),
        )

    @property
    def pictures(self) -> FilePictures:
        """Those of its rows."""
        return self.shown_pictures.rows

    @property
    def geometry(self) -> Geometry:
        return self._measure.geometry

    @property
    def theme(self) -> Theme:
        return self._measure.theme

    @property
    def placed(self) -> list[PlacedRow]:
        return self.layout.placed

    def clear(self) -> None:
        """Forget the conversation; what is known of its people stays until the next is shown."""
        self.loaded = LoadedMessages()
        for pictures in self.shown_pictures:
            pictures.clear()
        self.layout.reset()
        self.selection.clear()
        self.hover = self.focus_key = None
        self.late_seen.clear()
        self._boxes.clear()
        self._unfolded.clear()
        self._explained.clear()
        self._asked.clear()

    def ask_for_quoted(self, message_id: MessageId) -> None:
        """What this message quotes was asked for, and the quote says so."""
        self._asked.add(message_id)
        self._boxes.pop(message_key(message_id), None)

    def explain(self, key: RowKey) -> None:
        """Open the details of a marker, or close them."""
        self._explained ^= {key}

    def show_people(self, conversation: ConversationView) -> bool:
        """Take over names and pictures; True if a loaded message changed its sender's name."""
        contact = conversation.contact
        if self.is_pair is not (contact is not None):
            self._boxes.clear()
        self.is_pair = contact is not None
        if contact is None:
            self.faces = self._faces_of(conversation)
        else:
            self.faces = {contact.participant_id: face_of(contact)}
        self.others = tuple(
            m.participant_id for m in conversation.members if not m.is_self and not m.has_left
        )
        self.bodies.own_id = next((m.participant_id for m in conversation.members if m.is_self), "")
        return self.loaded.rename({m.participant_id: m.name for m in conversation.members})

    def row(self, key: RowKey | None) -> Row | None:
        """The loaded row with this key."""
        index = None if key is None else self.loaded.row_index(key)
        return None if index is None else self.loaded.rows[index]

    def message(self, key: RowKey | None) -> MessageView | None:
        """The one in the loaded row with this key, as it is now."""
        row = self.row(key)
        return None if row is None else message_in(row)

    def fit(self, width: float, height: float, *, narrow: bool, mirrored: bool = False) -> None:
        """A new viewport or theme: boxes are measured again when they come into view."""
        theme = current_theme()
        if theme is not self._measure.theme:
            self.bodies.forget_all()
        geometry = geometry_for(width, narrow=narrow, theme=theme, mirrored=mirrored)
        if geometry != self._measure.geometry or theme is not self._measure.theme:
            self._boxes.clear()
            self._measure = self._measured_for(geometry)
        self.height = height

    def place(self) -> list[PlacedRow]:
        return self.layout.place(self.loaded, self.height)

    def forget_boxes(self) -> None:
        """Measure all bubbles again when they come into view."""
        self._boxes.clear()

    def unfold(self, message_id: MessageId) -> None:
        """The whole of it from now on; its beginning stays where it is."""
        key = message_key(message_id)
        self._unfolded[message_id] = None
        while len(self._unfolded) > _MAX_UNFOLDED:
            self._unfolded.popitem(last=False)
        self._boxes.pop(key, None)
        place = next((one.y for one in self.placed if row_key(one.row) == key), None)
        if place is not None:
            self.layout.anchor_at(message_id, place)

    def box(self, row: Row) -> Box:
        """Only bubbles are kept; the others are cheap and their words follow the clock."""
        if not isinstance(row, MessageRow):
            return self._measure.box(row)
        key = row_key(row)
        cached = self._boxes.get(key)
        if cached is not None and cached[0] == row:
            return cached[1]
        box = self._measure.box(row)
        if isinstance(box, BubbleBox):
            self._boxes[key] = (row, box)
            if len(self._boxes) > _MAX_BOXES:
                self._boxes.popitem(last=False)
        return box

    def _height_of(self, row: Row) -> float:
        return self.box(row).height

    # ordinals -------------------------------------------------------------------------------------

    def message_index(self, placed: PlacedRow) -> int:
        """Index in the loaded messages of the first message at or below this row."""
        rows = self.loaded.rows
        for row in rows[placed.index :]:
            message = message_of(row)
            if message is not None:
                return self.loaded.index_of(message)
        return len(self.loaded)

    def shown_ordinals(self) -> tuple[float, float]:
        """Ordinals of the upper and lower edge of the viewport, with fractions of rows."""
        if not self.placed:
            return 0.0, 0.0
        first, last = self.placed[0], self.placed[-1]
        top = self.message_index(first) + min(1.0, max(0.0, -first.y / max(first.height, 1)))
        end = float(self.message_index(last))
        if message_of(last.row) is not None:
            end += min(1.0, (self.height - last.y) / max(last.height, 1))
        return self.loaded.older_count + top, self.loaded.older_count + end

    def kept_sender(self) -> KeptSender | None:
        """They stay at the top of the view, and leave with the end of their run."""
        covered = self.layout.covered
        top = covered + self.theme.metrics.gap(8)
        at_top = next((p for p in self.placed if p.bottom > top), None)
        if at_top is None or not isinstance(at_top.row, MessageRow) or at_top.row.message.is_own:
            return None
        rows, first = self.loaded.rows, at_top.index
        while first > 0 and _goes_on(rows[first]):
            first -= 1
        run = [p for p in self.placed if first <= p.index <= at_top.index]
        below = (p for p in self.placed if p.index > at_top.index)
        run += takewhile(lambda p: _goes_on(p.row), below)
        begin = self._bubble_of(run[0])
        if run[0].index == first and begin.top() >= top:
            return None
        y = min(top, self._bubble_of(run[-1]).bottom() - self.geometry.avatar)
        if run[0].index == first:
            y = max(y, begin.top())  # of a bubble lower than the avatar
        box = self.box(rows[first])
        if not isinstance(box, BubbleBox):
            return None
        has_name_in_view = run[0].index == first and run[0].y + box.name_rect.top() >= covered
        has_strip = not has_name_in_view and at_top.index != run[-1].index
        strip, over_words = _strip_with_name(box, y) if has_strip else QRectF(), False
        for each in run:  # Else half a line would be read as a whole one.
            under = self.box(each.row)
            if isinstance(under, BubbleBox) and _covers_words(strip, under, each.y):
                strip.setRight(max(strip.right(), under.bubble.right()))
                over_words = True
        return KeptSender(row_key(rows[first]), at_top.row.message, y, strip, over_words, box)

    def _bubble_of(self, placed: PlacedRow) -> QRectF:
        """In the viewport."""
        box = self.box(placed.row)
        inner = box.bubble if isinstance(box, BubbleBox) else QRectF(0, 0, 0, placed.height)
        return inner.translated(0, placed.y)

    # what is where --------------------------------------------------------------------------------

    def rect(self, key: RowKey) -> QRectF | None:
        """What one sees of a row, in the viewport; None if it is out of view."""
        place = self.place_of(key)
        return None if place is None else self.geometry.seen(place)

    def place_of(self, key: RowKey) -> QRectF | None:
        """Likewise, before the window is mirrored."""
        placed = next((p for p in self.placed if row_key(p.row) == key), None)
        if placed is None:
            return None
        tile = self._tile_of(placed.row)
        if tile is not None:
            return tile
        box = self.box(placed.row)
        if isinstance(box, BubbleBox):
            inner = box.bubble
        else:
            inner = box.card if isinstance(box, CardBox) else box.rect
        return inner.translated(0, placed.y)

    def seen_of(self, message_id: MessageId) -> QRectF | None:
        """``rect`` with all that belongs to the message above and below, as far as it is in view.

        Of a picture in an album that picture only.
        """
        key = message_key(message_id)
        rect, placed = self.rect(key), next((p for p in self.placed if row_key(p.row) == key), None)
        if rect is None or placed is None:
            return None
        if not self.is_in_album(message_id):
            rect.setTop(min(rect.top(), placed.y))
            rect.setBottom(max(rect.bottom(), placed.bottom))
        in_view = rect.intersected(QRectF(rect.left(), 0, rect.width(), self.height))
        return in_view if in_view.isValid() else None

    def _kept_sender_at(self, point: QPointF) -> Hit | None:
        kept, g = self.kept_sender(), self.geometry
        if kept is None or kept.message.sender_id not in self.others:
            return None
        picture = QRectF(g.left, kept.y, g.avatar, g.avatar)
        if not picture.contains(point) and not kept.strip.contains(point):
            return None
        return Hit(kept.first, kept.message, over_sender=True)

    def is_in_album(self, message_id: MessageId) -> bool:
        row = self.row(message_key(message_id))
        return isinstance(row, MessageRow) and bool(row.album or row.album_of)

    def _tile_of(self, row: Row) -> QRectF | None:
        """Of a row whose picture stands in an album: its place in the viewport."""
        if not isinstance(row, MessageRow) or not (row.album or row.album_of):
            return None
        first = message_key(row.album_of or row.message.message_id)
        drawn = next((p for p in self.placed if row_key(p.row) == first), None)
        box = None if drawn is None else self.box(drawn.row)
        if drawn is None or not isinstance(box, BubbleBox):
            return None
        wanted = row.message.message_id
        tile = next((tile for tile in box.album if tile.message.message_id == wanted), None)
        return None if tile is None else tile.rect.translated(0, drawn.y)

    def hit(self, point: QPointF) -> Hit | None:
        """``point``: in the viewport, as all of them."""
        point = self.geometry.meant(point)
        kept = self._kept_sender_at(point)
        if kept is not None:
            return kept
        placed = self.layout.at(point.y())
        if placed is None:
            return None
        box, inside = self.box(placed.row), point - QPointF(0, placed.y)
        key, message = row_key(placed.row), message_in(placed.row)
        if isinstance(box, BubbleBox | CardBox):
            for button, rect in box.buttons:
                if rect.contains(inside):
                    return Hit(key, message, button=button)
        if not isinstance(box, BubbleBox) or message is None:
            return Hit(key, message)
        beside = self._hit_beside(placed.row, key, message, box, inside)
        if beside is not None:
            return beside
        is_held = isinstance(placed.row, HeldRow)
        in_body = _in_body(box, inside, mirrored=self.geometry.mirrored)
        return _hit_in_bubble(key, message, box, (inside, in_body), selectable=not is_held)

    def _hit_beside(
        self, row: Row, key: RowKey, message: MessageView, box: BubbleBox, inside: QPointF
    ) -> Hit | None:
        """The sender, by picture or name; or the bead, which means the same as the ticks."""
        g = self.geometry
        is_known = message.sender_id in self.others
        shows_sender = isinstance(row, MessageRow) and row.first and is_known
        avatar = QRectF(g.left, box.bubble.top(), g.avatar, g.avatar)
        if shows_sender and (avatar.contains(inside) or box.name_rect.contains(inside)):
            return Hit(key, message, over_sender=True)
        bead = QRectF(g.thread_x - g.bead - 3, box.bubble.top(), 2 * g.bead + 6, g.avatar)
        if message.is_own and bead.contains(inside):
            return Hit(key, message, over_meta=True)
        return None

    def code_at(self, point: QPointF, *, over_bar: bool = False) -> CodeBlock | None:
        """The block of code under a point, or whose bar is there."""
        point = self.geometry.meant(point)
        placed = self.layout.at(point.y())
        box = None if placed is None else self.box(placed.row)
        if placed is None or not isinstance(box, BubbleBox):
            return None
        inside = _in_body(box, point - QPointF(0, placed.y), mirrored=self.geometry.mirrored)
        code = box.body.code_at(inside)
        return None if code is None or (over_bar and not code.is_over_bar(inside)) else code

    def caret(self, point: QPointF) -> Caret | None:
        """The place in the text nearest to a point, for selecting."""
        point = self.geometry.meant(point)
        found: tuple[PlacedRow, BubbleBox, MessageView] | None = None
        for placed in self.placed:
            box, message = self.box(placed.row), message_of(placed.row)
            if isinstance(box, BubbleBox) and message is not None:
                if found is not None and placed.y > point.y():
                    break
                found = (placed, box, message)
        if found is None:
            return None
        placed, box, message = found
        inside = _in_body(box, point - QPointF(0, placed.y), mirrored=self.geometry.mirrored)
        return Caret(message.message_id, box.body.index_at(inside))

    def word_at(self, caret: Caret) -> tuple[int, int]:
        """Begin and end of the word around a caret, in UTF-16 units."""
        for placed in self.placed:
            box, message = self.box(placed.row), message_of(placed.row)
            if message is not None and message.message_id == caret.message_id:
                if not isinstance(box, BubbleBox):
                    break
                return box.body.word_at(caret.index)
        return caret.index, caret.index


def _strip_with_name(box: BubbleBox, y: float) -> QRectF:
    if not box.name:
        return QRectF()
    bubble, name = box.bubble, box.name_rect.united(box.verified_rect)
    beside, above = name.left() - bubble.left(), name.top() - bubble.top()
    return QRectF(bubble.left(), y, name.width() + 2 * beside, name.height() + 2 * above)


def _covers_words(strip: QRectF, box: BubbleBox, y: float) -> bool:
    """Whether something else than a picture is under it in a row at ``y``."""
    bubble = box.bubble.translated(0, y)
    top, bottom = max(strip.top(), bubble.top()), min(strip.bottom(), bubble.bottom())
    pictures = [tile.rect.translated(0, y) for tile in box.album]
    if box.file is not None and box.file.is_picture:
        pictures.append(box.file.rect.translated(0, y))
    if top >= bottom or not pictures:
        return top < bottom
    is_topmost = not box.name and not box.above.height
    begin = bubble.top() if is_topmost else min(picture.top() for picture in pictures)
    return top < begin or bottom > max(picture.bottom() for picture in pictures)


def _goes_on(row: Row) -> bool:
    """Within a run, but not its first."""
    return isinstance(row, MessageRow) and not row.first


def _in_body(box: BubbleBox, inside: QPointF, *, mirrored: bool) -> QPointF:
    """A place in a row, from the corner of the message's text, which is never mirrored."""
    at = inside - box.body_at
    return QPointF(box.body.width - at.x(), at.y()) if mirrored else at


def _hit_in_bubble(
    key: RowKey,
    message: MessageView,
    box: BubbleBox,
    place: tuple[QPointF, QPointF],
    *,
    selectable: bool,
) -> Hit:
    """``place``: in the row, and in the message's text."""
    inside, in_body = place
    for tile in box.album:
        if tile.rect.contains(inside):
            of_tile = message_key(tile.message.message_id)
            over_meta = tile.pill.contains(inside)
            return Hit(of_tile, tile.message, over_file=True, over_meta=over_meta)
    chip = next((chip for chip in box.chips if chip.rect.contains(inside)), None)
    if chip is not None:
        return Hit(key, message, chip=chip.emoji)
    quote = box.above.quote
    if quote is not None and quote.rect.contains(inside):
        return Hit(key, message, over_quote=True)
    if box.file is not None and box.file.rect.contains(inside):
        return Hit(key, message, over_file=True)
    code = box.body.code_at(in_body)
    if code is not None and code.copy_rect.contains(in_body):
        return Hit(key, message, code=code.shape.start)
    text = QRectF(box.body_at.x(), box.body_at.y(), box.body.width, box.body.height)
    over_text = text.contains(inside)
    return Hit(
        key,
        message,
        link=_link_at(message, box, in_body) if over_text else None,
        over_text=over_text and selectable,
        over_meta=box.meta.rect.adjusted(-6, -4, 8, 6).contains(inside),
    )


def _link_at(message: MessageView, box: BubbleBox, in_body: QPointF) -> str | None:
    if not message.spans:
        return None
    index = box.body.character_at(in_body)
    if index is None:
        return None
    for span in message.spans:
        if span.kind is SpanKind.LINK and span.start <= index < span.start + span.length:
            return span.target
    return None
