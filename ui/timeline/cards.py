"""How large the cards are: the gap marker, and the title of what is held aside.

A card has a title, details and buttons; words that do not fit take more lines, never fewer letters,
because names in them come from other people.  Measured like all boxes from font metrics.
"""

from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from engine.core.types import UnixMs
from ui.theme import Theme
from ui.timeline.geometry import Geometry
from ui.timeline.parts import ICON, PART_WORDS, Part, advance, strong
from ui.timeline.rows import GapRow, HeldTitleRow, local_time
from ui.timeline.words import (
    gap_cause,
    gap_details,
    gap_since,
    gap_title,
    held_details,
    held_title,
)

_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBox:
    """The gap marker, and the title of what is held aside."""

    height: float
    card: QRectF
    title: str
    since: str
    details: str
    title_at: QRectF
    details_at: QRectF
    cause: str
    cause_at: QRectF
    parts: tuple[tuple[Part, QRectF], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Measures cards for one geometry, theme and moment."""

    theme: Theme
    geometry: Geometry
    now_ms: UnixMs
    is_pair: bool = False

    def gap(self, row: GapRow, *, explained: bool) -> CardBox:
        g, theme, now_ms = self.geometry, self.theme, self.now_ms
        metrics, label, small = theme.metrics, theme.type.label, theme.type.small
        title, details = gap_title(row.gap), gap_details(row.gap, now_ms, pair=self.is_pair)
        since = gap_since(row.gap, local_time(now_ms).date())
        cause = gap_cause(row.gap, pair=self.is_pair) if explained else ""
        pad, edge, inner = metrics.gap(12), metrics.gap(6), metrics.gap(8)
        button, fetch, ghost = self._gap_buttons()
        title_width = advance(strong(label), title) + advance(label.font, f" {since}")
        details_width = advance(small.font, details)
        card = g.card(metrics.gap(8), max(metrics.scaled(42), button + 2 * edge))
        left, width = card.left() + pad, card.width() - 2 * pad
        room = width + pad - fetch - ghost - 2 * edge - 12
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
        y = float(int(card.center().y() - button / 2)) if beside else details_at.bottom() + edge
        fetch_x = card.right() - edge - fetch if beside else left
        ghost_x = fetch_x - edge - ghost if beside else left + fetch + edge
        if not beside:
            card.setBottom(y + button + inner)
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
            parts=(
                (Part.GAP_DETAILS, QRectF(ghost_x, y, ghost, button)),
                (Part.FETCH, QRectF(fetch_x, y, fetch, button)),
            ),
        )

    def held(self, row: HeldTitleRow) -> CardBox:
        """Title and details in as many lines as they need, the button beside or below."""
        g, metrics = self.geometry, self.theme.metrics
        title = held_title(row.held)
        details = held_details(row.held, row.shown, self.now_ms)
        pad, edge, inner = metrics.gap(12), metrics.gap(6), metrics.gap(8)
        card = g.card(metrics.gap(14), 0)
        left, width = card.left() + pad, card.width() - 2 * pad
        part = Part.HELD_ALL if row.can_unfold else Part.HELD_FEWER
        has_button = row.can_unfold or row.can_fold
        font, button = strong(self.theme.type.small), float(metrics.scaled(30))
        wide = float(int(advance(font, PART_WORDS[part]) + 24)) if has_button else 0.0
        room = width if g.narrow or not wide else width - wide - edge
        top = card.top() + inner
        title_at = QRectF(left, top, room, self._wrapped(title, room, strong=True))
        details_at = QRectF(left, title_at.bottom(), room, self._wrapped(details, room))
        bottom = details_at.bottom() + inner
        rect = QRectF(left, bottom - 2, wide, button)
        if not g.narrow:
            middle = (card.top() + bottom) / 2
            rect = QRectF(card.right() - edge - wide, int(middle - button / 2), wide, button)
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
            parts=((part, rect),) if has_button else (),
        )

    def _wrapped(self, words: str, width: float, *, strong: bool = False) -> float:
        face = self.theme.type.label if strong else self.theme.type.small
        font = face.strong() if strong else face.font
        taken = QFontMetricsF(font).boundingRect(QRectF(0, 0, width, 1000), _WRAPPED, words)
        return max(face.line_height, taken.height())

    def _gap_buttons(self) -> tuple[float, float, float]:
        """Height of both, width of "Fetch again", width of "Details"."""
        metrics, font = self.theme.metrics, strong(self.theme.type.small)
        icon = metrics.scaled(ICON) + 6
        fetch = advance(font, PART_WORDS[Part.FETCH]) + icon + 24
        ghost = advance(font, PART_WORDS[Part.GAP_DETAILS]) + 24
        return float(metrics.scaled(30)), float(int(fetch)), float(int(ghost))
