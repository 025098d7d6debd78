"""Delivery glyphs, the count beside them and the words for both: list and timeline share them.

Five shapes on a 16 by 12 grid, y down, built as filled outlines so that the hollow tick needs no
known background.  Filled means certain, hollow not certain; shape and words carry the meaning,
colour only repeats it.  Which glyph it is follows from who holds the message, not from the state's
name alone: one member who certainly holds it is not yet everybody.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPainterPathStroker

from engine.core.ids import DeliveryState, ParticipantId
from engine.core.problems import FailureReason
from engine.events import DeliveryView
from ui.mirrored import upright
from ui.translate import tr

GLYPH_SIZE = QSizeF(16, 12)
_NAMES_SPOKEN = 5


class Glyph(StrEnum):
    SAVED = "saved"
    SENT = "sent"
    MAYBE = "maybe"
    HELD = "held"
    FAILED = "failed"


def glyph_of(delivery: DeliveryView) -> Glyph:
    if delivery.state is DeliveryState.FAILED:
        return Glyph.FAILED
    if delivery.of > 0 and len(delivery.held_by) >= delivery.of:
        return Glyph.HELD
    if delivery.held_by or delivery.maybe_held_by:
        return Glyph.MAYBE
    if delivery.state is DeliveryState.SAVED:
        return Glyph.SAVED
    return Glyph.SENT


def count_of(delivery: DeliveryView) -> str:
    """Certain holders of all others, "3/5"; "~2/5" if only Bloom filters speak; "" for a pair."""
    if delivery.of <= 1 or delivery.state is DeliveryState.FAILED:
        return ""
    if delivery.held_by:
        return f"{len(delivery.held_by)}/{delivery.of}"
    if delivery.maybe_held_by:
        return f"~{len(delivery.maybe_held_by)}/{delivery.of}"
    return ""


def delivery_words(
    delivery: DeliveryView,
    others: Sequence[ParticipantId],
    names: Callable[[ParticipantId], str],
    *,
    pair: bool = False,
) -> str:
    """Tooltip and screen-reader text; ``others`` are all other current members.

    ``pair``: there are only two, so it was delivered or it was not, and nothing is counted.
    """
    if pair:
        return pair_delivery_words(delivery)
    match glyph_of(delivery):
        case Glyph.FAILED:
            return tr("Not sent: {why}").format(why=failure_words(delivery))
        case Glyph.SAVED:
            return tr("Saved on this device, waiting for the network.")
        case Glyph.SENT:
            return tr("Sent. Nobody is known to hold it yet.")
        case Glyph.HELD:
            words = tr("Held by {number} of {all}.")
            return words.format(number=len(delivery.held_by), all=delivery.of)
        case Glyph.MAYBE:
            return _partly_held(delivery, others, names)


def pair_delivery_words(delivery: DeliveryView) -> str:
    match glyph_of(delivery):
        case Glyph.FAILED:
            return tr("Not delivered: {why}").format(why=failure_words(delivery))
        case Glyph.SAVED:
            return tr("Saved on this device, waiting for the network.")
        case Glyph.SENT | Glyph.MAYBE:
            return tr("Sent. Their device has not said yet that it has it.")
        case Glyph.HELD:
            return tr("Delivered.")


def failure_words(delivery: DeliveryView) -> str:
    """Why a message was given up: "5 tries, nobody took it."."""
    reason = tr("nobody took it")
    if delivery.failure is FailureReason.NOT_REACHED:
        reason = tr("they could not be reached for 30 days")
    if delivery.attempts > 0:
        words = tr("%n tries, {reason}.", "%n try, {reason}.", delivery.attempts)
        return words.format(reason=reason)
    return f"{reason[:1].upper()}{reason[1:]}."


def _partly_held(
    delivery: DeliveryView,
    others: Sequence[ParticipantId],
    names: Callable[[ParticipantId], str],
) -> str:
    certain, maybe = len(delivery.held_by), len(delivery.maybe_held_by)
    if not delivery.of:  # an open channel
        return tr(
            "Maybe held under %n names; nobody here is proved.",
            "Maybe held under %n name; nobody here is proved.",
            maybe,
        )
    if certain and maybe:
        words = tr("Held by {number} of {all}, maybe {maybe} more.")
    elif certain:
        words = tr("Held by {number} of {all}.")
    else:
        words = tr("Maybe held by {maybe} of {all}.")
    words = words.format(number=certain, all=delivery.of, maybe=maybe)
    holders = {*delivery.held_by, *delivery.maybe_held_by}
    missing = [" ".join(names(other).split()) for other in others if other not in holders]
    if not missing:
        return words
    spoken = ", ".join(missing[:_NAMES_SPOKEN])
    not_yet = tr("Not yet: {names}.")
    if len(missing) > _NAMES_SPOKEN:
        not_yet = tr("Not yet: {names} and {number} more.")
    return f"{words} {not_yet.format(names=spoken, number=len(missing) - _NAMES_SPOKEN)}"


def draw_glyph(
    painter: QPainter, glyph: Glyph, at: QPointF, colour: QColor, *, scale: float = 1.0
) -> None:
    """Draw with the grid's top left corner ``at``; ``scale`` 1 is 16 by 12 logical pixels."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(at)
    painter.scale(scale, scale)
    with upright(painter, QRectF(QPointF(0, 0), QSizeF(GLYPH_SIZE))):
        painter.fillPath(glyph_path(glyph), colour)
    painter.restore()


@cache
def glyph_path(glyph: Glyph) -> QPainterPath:
    match glyph:
        case Glyph.SAVED:
            hands = _stroke(_line((8, 3.4), (8, 6), (9.8, 7.2)), 1.3)
            return _circle().united(hands)
        case Glyph.SENT:
            return _stroke(_line((3.5, 6.5), (6.5, 9.5), (12, 2.5)), 1.5)
        case Glyph.MAYBE:
            second = _line((7, 7), (9.1, 9.2), (13.8, 3.2))
            outside = _stroke(second, 3.3)
            first = _stroke(_line((1.2, 6.5), (4, 9.3), (7.6, 4.4)), 1.5)
            return first.subtracted(outside).united(outside.subtracted(_stroke(second, 1.3)))
        case Glyph.HELD:
            first = _stroke(_line((1.4, 6.5), (4.4, 9.5), (9.6, 2.8)), 1.9)
            return first.united(_stroke(_line((7.7, 8.6), (8.6, 9.5), (13.8, 2.8)), 1.9))
        case Glyph.FAILED:
            stem = _stroke(_line((8, 3.6), (8, 6.4)), 1.5)
            return _circle().united(stem).united(_stroke(_line((8, 8.3), (8, 8.4)), 1.5))


def _line(*points: tuple[float, float]) -> QPainterPath:
    path = QPainterPath(QPointF(*points[0]))
    for point in points[1:]:
        path.lineTo(QPointF(*point))
    return path


def _circle() -> QPainterPath:
    path = QPainterPath()
    path.addEllipse(QPointF(8, 6), 4.75, 4.75)
    return _stroke(path, 1.3)


def _stroke(path: QPainterPath, width: float) -> QPainterPath:
    stroker = QPainterPathStroker()
    stroker.setWidth(width)
    stroker.setCapStyle(Qt.PenCapStyle.RoundCap)
    stroker.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    return stroker.createStroke(path).simplified()
