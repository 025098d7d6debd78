"""The parts of a bubble besides its text: "Forwarded", the quote above, the reactions below.

Only sizes and words are decided here; ``paint_parts`` draws them.  All of it is foreign: a quote
takes at most two lines, and what people react with at most a few rows of chips.
"""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from engine.core.ids import ParticipantId
from engine.events import MessageView, ReactionView
from ui.conversation_words import forwarded_words, quote_words
from ui.file_words import is_picture
from ui.foreign_text import one_line
from ui.regional import grouped
from ui.theme import Theme
from ui.timeline.buttons import advance, strong
from ui.timeline.file_pictures import FilePictures, small
from ui.translate import tr

QUOTE_BAR = 3
MORE_CHIP = "…"
"""Stands for all reactions that have no chip of their own."""
_MAX_NAME = 64
_LEAST_QUOTE = 120.0
_CHIP_HEIGHT = 24
_CHIP_GAP = 6


class QuoteBox(Struct, frozen=True, kw_only=True):
    """``sender_id`` is None if the quoted message is not on this device."""

    rect: QRectF
    sender_id: ParticipantId | None
    name: str
    lines: tuple[str, ...]
    italic: bool
    picture: MessageView | None
    """Whose picture stands at its end."""
    inset: float
    """Around the picture."""
    picture_side: float

    @property
    def picture_rect(self) -> QRectF:
        """Two lines high."""
        side = self.picture_side
        left = self.rect.right() - self.inset - side
        return QRectF(left, self.rect.center().y() - side / 2, side, side)


class Chip(Struct, frozen=True, kw_only=True):
    """One emoji and how many people reacted with it."""

    rect: QRectF
    emoji: str
    count: str
    mine: bool
    pending: bool

    def moved(self, right: float) -> Self:
        return replace(self, rect=self.rect.translated(right, 0))


class PartsAbove(Struct, frozen=True, kw_only=True):
    """What stands above the text, and how much room it takes there."""

    forwarded: QRectF | None
    quote: QuoteBox | None
    width: float
    height: float

    def placed(self, left: float, width: float) -> Self:
        """From ``left`` on; a quote is as wide as the bubble's content."""
        forwarded, quote = self.forwarded, self.quote
        if quote is not None:
            rect = QRectF(left, quote.rect.top(), width, quote.rect.height())
            quote = replace(quote, rect=rect)
        if forwarded is not None:
            forwarded = forwarded.translated(left, 0)
        return replace(self, forwarded=forwarded, quote=quote)


def parts_above(  # noqa: PLR0913 - what it says, and where
    message: MessageView,
    at: QPointF,
    room: float,
    theme: Theme,
    quoted: FilePictures,
    *,
    asked: bool = False,
) -> PartsAbove:
    """``quoted``: the pictures in quotes, so far; ``asked``: what is quoted was asked for."""
    forwarded, height, width = None, 0.0, 0.0
    if message.forwarded and not message.retracted:
        line = float(theme.type.caption.line_height)
        width = advance(theme.type.caption.font, forwarded_words())
        forwarded = QRectF(at.x(), at.y(), width, line)
        height = line
    picture = quoted_picture(message)
    if picture is not None and quoted.is_broken(picture):
        picture = None
    quote = _quote_box(
        message, QPointF(at.x(), at.y() + height + 2), room, theme, picture, asked=asked
    )
    if quote is not None:
        width = max(width, quote.rect.width())
        height = quote.rect.bottom() - at.y() + theme.metrics.gap(4)
    return PartsAbove(forwarded=forwarded, quote=quote, width=width, height=height)


def quoted_picture(message: MessageView) -> MessageView | None:
    """What stands for the message whose picture is quoted, if it is one."""
    quote = message.quote
    if quote is None or quote.position is None or quote.file is None:
        return None
    if quote.hidden or quote.retracted or not is_picture(quote.file):
        return None
    return small(replace(message, position=quote.position, file=quote.file))


def _quote_box(  # noqa: PLR0913 - likewise
    message: MessageView,
    at: QPointF,
    room: float,
    theme: Theme,
    picture: MessageView | None,
    *,
    asked: bool,
) -> QuoteBox | None:
    """As wide as it needs, at most ``room``."""
    quote = message.quote
    if quote is None or message.retracted:
        return None
    name, text = quote_words(quote, asked=asked)
    metrics = theme.metrics
    pad = metrics.gap(8)
    line_height = theme.type.small.line_height
    aside = 0.0 if picture is None else 2 * line_height + pad
    inside = room - QUOTE_BAR - 2 * pad - aside
    name_font, font = strong(theme.type.small), theme.type.small.font
    shown = QFontMetricsF(name_font).elidedText(name, Qt.TextElideMode.ElideRight, inside)
    lines = _wrapped(text, inside, QFontMetricsF(font))
    widest = max([advance(name_font, shown), *(advance(font, line) for line in lines)])
    width = min(room, max(_LEAST_QUOTE, widest + QUOTE_BAR + 2 * pad + aside))
    height = metrics.gap(4) * 2 + line_height * (1 + len(lines))
    side = 0.0 if picture is None else 2.0 * line_height
    return QuoteBox(
        rect=QRectF(at.x(), at.y(), float(int(width) + 1), float(int(height) + 1)),
        sender_id=quote.sender_id if quote.position is not None else None,
        name=shown,
        lines=lines,
        italic=quote.retracted or quote.hidden or quote.position is None,
        picture=picture,
        picture_side=side,
        inset=metrics.gap(4),
    )


def _wrapped(text: str, room: float, metrics: QFontMetricsF) -> tuple[str, ...]:
    """At most two lines, broken between words where that is possible."""
    if metrics.horizontalAdvance(text) <= room:
        return (text,) if text else ()
    first = text
    while first and metrics.horizontalAdvance(first) > room:
        cut = first.rstrip().rfind(" ")
        if cut <= 0:
            return (metrics.elidedText(text, Qt.TextElideMode.ElideRight, room),)
        first = first[:cut]
    rest = text[len(first) :].strip()
    return first, metrics.elidedText(rest, Qt.TextElideMode.ElideRight, room)


def chips_of(message: MessageView, at: QPointF, room: float, theme: Theme) -> tuple[Chip, ...]:
    """In rows from ``at`` downwards, none wider than ``room``."""
    if message.retracted:
        return ()
    height = float(theme.metrics.scaled(_CHIP_HEIGHT))
    chips: list[Chip] = []
    x, y = at.x(), at.y()
    for emoji, count, reaction in _chip_words(message):
        width = _chip_width(emoji, count, theme)
        if x > at.x() and x + width > at.x() + room:
            x, y = at.x(), y + height + 4
        chips.append(
            Chip(
                rect=QRectF(x, y, width, height),
                emoji=emoji,
                count=count,
                mine=reaction is not None and reaction.mine,
                pending=reaction is not None and reaction.pending,
            )
        )
        x += width + _CHIP_GAP
    return tuple(chips)


def _chip_words(message: MessageView) -> list[tuple[str, str, ReactionView | None]]:
    words: list[tuple[str, str, ReactionView | None]] = [
        (reaction.emoji, grouped(reaction.count), reaction) for reaction in message.reactions
    ]
    if message.more_reactions:
        words.append((MORE_CHIP, f"+{grouped(message.more_reactions)}", None))
    return words


def _chip_width(emoji: str, count: str, theme: Theme) -> float:
    face = theme.type.small
    shown = 0.0 if emoji == MORE_CHIP else advance(face.font, emoji) + 5
    return float(int(shown + advance(strong(face), count) + 2 * theme.metrics.gap(8)) + 1)


def reaction_words(reaction: ReactionView) -> str:
    """Who reacted, for tooltips and screen readers: "👍 from you, Maya and 2 others"."""
    names = [tr("you")] if reaction.mine else []
    names += [one_line(name, _MAX_NAME) or "?" for name in reaction.names]
    unnamed = reaction.count - len(names)
    if unnamed > 0:
        names.append(tr("%n others", "%n other", unnamed))
    if not names:
        return reaction.emoji
    who = names[0] if len(names) == 1 else _listed(names)
    words = tr("{emoji} from {names}").format(emoji=reaction.emoji, names=who)
    return tr("{words}, not sent yet").format(words=words) if reaction.pending else words


def _listed(names: list[str]) -> str:
    return tr("{names} and {last}").format(names=", ".join(names[:-1]), last=names[-1])
