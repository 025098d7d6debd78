"""How large the cards are: the markers of what is missing or lost, what is held, what is earlier.

A card has a title, details and buttons; words that do not fit take more lines, never fewer letters,
because names in them come from other people.  Measured like all boxes from font metrics.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from engine.core.ids import UnixMs
from engine.history_views import HistoryState, HistoryView
from ui.history_words import earlier_words, is_requested
from ui.theme import Theme
from ui.timeline.buttons import ICON, WITH_SIGN, RowButton, advance, button_words, strong
from ui.timeline.geometry import Geometry
from ui.timeline.row_words import (
    beginning_words,
    gap_cause,
    gap_details,
    gap_since,
    gap_title,
    held_details,
    held_title,
    lost_cause,
    lost_details,
    lost_since,
    lost_title,
)
from ui.timeline.rows import EarlierRow, GapRow, HeldTitleRow, LostRow, local_time

_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft


class CardBox(Struct, frozen=True, kw_only=True):
    """A card, or the words and buttons above the beginning."""

    height: float
    card: QRectF
    title: str
    since: str
    details: str
    title_at: QRectF
    details_at: QRectF
    cause: str
    cause_at: QRectF
    buttons: tuple[tuple[RowButton, QRectF], ...]


def _in_a_row(widths: Sequence[float], start: QPointF, height: float, gap: int) -> list[QRectF]:
    lefts = accumulate(widths, lambda left, width: left + width + gap, initial=start.x())
    return [QRectF(x, start.y(), wide, height) for x, wide in zip(lefts, widths, strict=False)]


class Cards(Struct, frozen=True, kw_only=True):
    """Measures cards for one geometry, theme and moment."""

    theme: Theme
    geometry: Geometry
    now_ms: UnixMs
    is_pair: bool = False

    def gap(self, row: GapRow, *, explained: bool) -> CardBox:
        today = local_time(self.now_ms).date()
        return self._marker(
            title=gap_title(row.gap),
            since=gap_since(row.gap, today),
            details=gap_details(row.gap, self.now_ms, pair=self.is_pair),
            cause=gap_cause(row.gap, pair=self.is_pair) if explained else "",
            buttons=(RowButton.GAP_DETAILS, RowButton.FETCH),
        )

    def lost(self, row: LostRow, *, explained: bool) -> CardBox:
        """Nobody has it; but who was away may be back, and then asking again helps."""
        today = local_time(self.now_ms).date()
        return self._marker(
            title=lost_title(row.lost),
            since=lost_since(row.lost, today),
            details=lost_details(row.lost, pair=self.is_pair),
            cause=lost_cause(row, today) if explained else "",
            buttons=(RowButton.GAP_DETAILS, RowButton.TRY_AGAIN),
        )

    def _marker(
        self, *, title: str, since: str, details: str, cause: str, buttons: tuple[RowButton, ...]
    ) -> CardBox:
        """Words left and buttons right where there is room, or else below each other."""
        g, metrics = self.geometry, self.theme.metrics
        label, small = self.theme.type.label, self.theme.type.small
        pad, edge, inner = metrics.gap(12), metrics.gap(6), metrics.gap(8)
        tall = float(metrics.scaled(30))
        widths = [self._button_width(button) for button in buttons]
        title_width = advance(strong(label), title)
        title_width += advance(label.font, f" {since}") if since else 0
        details_width = advance(small.font, details)
        card = g.card(metrics.gap(8), max(metrics.scaled(42), tall + 2 * edge))
        left, width = card.left() + pad, card.width() - 2 * pad
        room = width + pad - sum(widths) - len(widths) * edge - 12
        beside = max(title_width, details_width) <= room and not g.narrow
        if title_width + 12 + details_width <= room and not g.narrow:
            y = card.center().y() - label.line_height / 2
            title_at = QRectF(left, y, title_width, label.line_height)
            start = left + title_width + 12
            details_at = QRectF(start, y, room - title_width - 12, label.line_height)
        else:
            title_at = QRectF(left, card.top() + inner, title_width, label.line_height)
            taken = small.line_height if beside else self._wrapped(details, width)
            details_at = QRectF(left, title_at.bottom(), room if beside else width, taken)
            card.setBottom(max(card.bottom(), details_at.bottom() + inner))
        if beside:
            start = card.right() - sum(widths) - len(widths) * edge
            middle = QPointF(start, int(card.center().y() - tall / 2))
            places = _in_a_row(widths, middle, tall, edge)
        else:  # What one wants most comes first.
            below = QPointF(left, details_at.bottom() + edge)
            places = _in_a_row(widths[::-1], below, tall, edge)[::-1]
            card.setBottom(below.y() + tall + inner)
        cause_at = QRectF()
        if cause:
            cause_at = QRectF(left, card.bottom() - 2, width, self._wrapped(cause, width))
            card.setBottom(cause_at.bottom() + inner)
        card.setHeight(float(ceil(card.height())))
        return CardBox(
            height=card.bottom() + edge,
            card=card,
            title=title,
            since=since,
            details=details,
            cause=cause,
            title_at=title_at,
            details_at=details_at,
            cause_at=cause_at,
            buttons=tuple(zip(buttons, places, strict=True)),
        )

    def earlier(self, row: EarlierRow) -> CardBox:
        """In the middle: what goes on, and the button while nothing does."""
        g, metrics, small = self.geometry, self.theme.metrics, self.theme.type.small
        words = beginning_words(row)
        top, edge = float(metrics.gap(8)), metrics.gap(6)
        width = g.right - g.bubble_left
        taken = self._wrapped(words, width) if words else 0.0
        details_at = QRectF(g.bubble_left, top, width, taken)
        bottom = details_at.bottom()
        buttons = self._earlier_buttons(row.history) if row.can_have_more else ()
        placed: list[tuple[RowButton, QRectF]] = []
        widths = [self._button_width(button) for button in buttons]
        x = details_at.center().x() - (sum(widths) + edge * max(0, len(widths) - 1)) / 2
        y = float(int(bottom + (edge if words else 0)))
        for button, wide in zip(buttons, widths, strict=True):
            placed.append((button, QRectF(float(int(x)), y, wide, float(metrics.scaled(30)))))
            x += wide + edge
        bottom = max([bottom, *(rect.bottom() for _, rect in placed)])
        left = min([details_at.center().x(), *(rect.left() for _, rect in placed)])
        right = max([details_at.center().x(), *(rect.right() for _, rect in placed)])
        if words:
            wanted = min(width, advance(small.font, words) + 8) / 2
            left = min(left, details_at.center().x() - wanted)
            right = max(right, details_at.center().x() + wanted)
        return CardBox(
            height=float(ceil(bottom)) + metrics.gap(8),
            card=QRectF(left, top, right - left, bottom - top),
            title="",
            since="",
            details=words,
            cause="",
            title_at=QRectF(),
            details_at=details_at,
            cause_at=QRectF(),
            buttons=tuple(placed),
        )

    def _earlier_buttons(self, history: HistoryView | None) -> tuple[RowButton, ...]:
        if history is not None and not history.is_over and is_requested(history):
            stuck = history.state is HistoryState.WAITING and history.problem is not None
            return (RowButton.STORES,) if stuck else ()
        if earlier_words(history) and history is not None:
            if history.state is HistoryState.FAILED:
                return (RowButton.STORES, RowButton.EARLIER)
            if history.state is HistoryState.DONE and history.since_ms is None:
                return ()
        return (RowButton.EARLIER,)

    def held(self, row: HeldTitleRow) -> CardBox:
        """Title and details in as many lines as they need, the button beside or below."""
        g, metrics = self.geometry, self.theme.metrics
        title = held_title(row.held)
        details = held_details(row.held, row.shown, self.now_ms)
        pad, edge, inner = metrics.gap(12), metrics.gap(6), metrics.gap(8)
        card = g.card(metrics.gap(14), 0)
        left, width = card.left() + pad, card.width() - 2 * pad
        button = RowButton.HELD_ALL if row.can_unfold else RowButton.HELD_FEWER
        has_button = row.can_unfold or row.can_fold
        font, tall = strong(self.theme.type.small), float(metrics.scaled(30))
        wide = float(int(advance(font, button_words(button)) + 24)) if has_button else 0.0
        room = width if g.narrow or not wide else width - wide - edge
        top = card.top() + inner
        title_at = QRectF(left, top, room, self._wrapped(title, room, strong=True))
        details_at = QRectF(left, title_at.bottom(), room, self._wrapped(details, room))
        bottom = details_at.bottom() + inner
        rect = QRectF(left, bottom - 2, wide, tall)
        if not g.narrow:
            middle = (card.top() + bottom) / 2
            rect = QRectF(card.right() - edge - wide, int(middle - tall / 2), wide, tall)
        elif wide:
            bottom = rect.bottom() + inner
        card.setBottom(float(ceil(bottom)))
        return CardBox(
            height=card.bottom() + edge,
            card=card,
            title=title,
            since="",
            details=details,
            cause="",
            title_at=title_at,
            details_at=details_at,
            cause_at=QRectF(),
            buttons=((button, rect),) if has_button else (),
        )

    def _wrapped(self, words: str, width: float, *, strong: bool = False) -> float:
        face = self.theme.type.label if strong else self.theme.type.small
        font = face.strong() if strong else face.font
        taken = QFontMetricsF(font).boundingRect(QRectF(0, 0, width, 1000), _WRAPPED, words)
        return max(face.line_height, taken.height())

    def _button_width(self, button: RowButton) -> float:
        """How wide it is; those that fetch carry a sign before their words."""
        wide = advance(strong(self.theme.type.small), button_words(button)) + 24
        if button in WITH_SIGN:
            wide += self.theme.metrics.scaled(ICON) + 6
        return float(int(wide))
