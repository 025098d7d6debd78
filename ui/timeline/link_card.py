"""The card below a message that carries an invitation or somebody's contact link.

What it shows comes from the link alone, which the engine has parsed and checked; a link that is not
whole gets no card and stays text.  Names are strangers' text, on one line and cut.  The button
opens the sheet that shows all of the link and asks first, as a click on the link does.
"""

from collections.abc import Callable

from msgspec import Struct
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from engine.core.contacts import CONTACT_PREFIX
from engine.core.links import OWN_SCHEME
from engine.events import MessageView
from engine.text_spans import SpanKind
from ui.avatar import draw_avatar
from ui.foreign_text import one_line
from ui.theme import Radius, Theme
from ui.timeline.buttons import RowButton, advance, button_words, strong
from ui.timeline.primitives import Primitives
from ui.translate import tr

_HEIGHT, _WIDTH, _AVATAR, _BUTTON = 54, 320, 34, 30
_MAX_NAME = 80


class SharedLink(Struct, frozen=True, kw_only=True):
    """What a link says of a group or of a person."""

    is_group: bool
    stable_id: str
    name: str
    by: str = ""
    """Who made an invitation."""


Describe = Callable[[str], SharedLink | None]
"""None: the link is of no use."""


class LinkCard(Struct, frozen=True, kw_only=True):
    rect: QRectF
    link: SharedLink
    name: str
    """As it fits."""
    words: str
    button: tuple[RowButton, QRectF]

    def moved(self, right: float) -> "LinkCard":
        button, rect = self.button
        return LinkCard(
            rect=self.rect.translated(right, 0),
            link=self.link,
            name=self.name,
            words=self.words,
            button=(button, rect.translated(right, 0)),
        )


def own_link(message: MessageView) -> str | None:
    """The first link of ours in a message."""
    if message.retracted:
        return None
    links = (span.target for span in message.spans if span.kind is SpanKind.LINK)
    return next((target for target in links if target.startswith(OWN_SCHEME)), None)


def card_words(link: SharedLink) -> str:
    if not link.is_group:
        return tr("Contact link")
    by = one_line(link.by, _MAX_NAME)
    return tr("Invitation from {name}").format(name=by) if by else tr("Invitation to a group")


def spoken_card(link: SharedLink) -> str:
    name = one_line(link.name, _MAX_NAME) or "?"
    if link.is_group:
        return tr("Invitation to {group}").format(group=name)
    return tr("Contact link of {name}").format(name=name)


def link_card(
    message: MessageView, top: float, room: float, theme: Theme, describe: Describe
) -> LinkCard | None:
    target = own_link(message)
    link = None if target is None else describe(target)
    if target is None or link is None:
        return None
    metrics = theme.metrics
    lines = theme.type.label.line_height + theme.type.caption.line_height
    height = max(float(metrics.scaled(_HEIGHT)), lines + 2 * metrics.gap(8))
    rect = QRectF(0, top + metrics.gap(6), min(room, float(metrics.scaled(_WIDTH))), height)
    is_contact = target.startswith(CONTACT_PREFIX)
    button = RowButton.ADD_PERSON if is_contact else RowButton.JOIN_GROUP
    wide = float(int(advance(strong(theme.type.small), button_words(button)) + 24))
    tall = float(metrics.scaled(_BUTTON))
    at = QRectF(rect.right() - metrics.gap(8) - wide, rect.center().y() - tall / 2, wide, tall)
    left = metrics.gap(8) + metrics.scaled(_AVATAR) + metrics.gap(10)
    space = at.left() - metrics.gap(8) - left
    font, small = strong(theme.type.label), theme.type.caption.font
    right = Qt.TextElideMode.ElideRight
    name = one_line(link.name, _MAX_NAME) or "?"
    return LinkCard(
        rect=rect,
        link=link,
        name=QFontMetricsF(font).elidedText(name, right, space),
        words=QFontMetricsF(small).elidedText(card_words(link), right, space),
        button=(button, at),
    )


def paint_link_card(painter: QPainter, draw: Primitives, card: LinkCard, theme: Theme) -> None:
    """Without its button, which is painted with the others of the row."""
    metrics, rect = theme.metrics, card.rect
    painter.setPen(QPen(theme.line, 1))
    painter.setBrush(theme.surface)
    radius = metrics.gap(Radius.ROW)
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
    side = metrics.scaled(_AVATAR)
    left = rect.left() + metrics.gap(8)
    avatar = QRectF(left, rect.center().y() - side / 2, side, side)
    link = card.link
    draw_avatar(painter, avatar, stable_id=link.stable_id, name=link.name, is_group=link.is_group)
    label, caption = theme.type.label, theme.type.caption
    x = avatar.right() + metrics.gap(10)
    y = rect.center().y() - (label.line_height + caption.line_height) / 2
    wide = card.button[1].left() - x
    flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    first = QRectF(x, y, wide, label.line_height)
    draw.text(first, card.name, strong(label), theme.ink, flags)
    second = QRectF(x, first.bottom(), wide, caption.line_height)
    draw.text(second, card.words, caption.font, theme.ink2, flags)
