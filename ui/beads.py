"""The header's bead strip: the last messages of a conversation, at a glance, and in words.

Filled means certain, hollow not certain or not here.  The words beside it say the same, and where
there is no room they shrink to a number; the tool tip always says all.
"""

from collections.abc import Sequence
from enum import Enum, auto

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.core.ids import DeliveryState
from engine.events import ConversationView, MessageKind, MessageView
from ui.controls import set_tip
from ui.theme import current_theme, theme_changed
from ui.translate import tr

MAX_BEADS = 11
_MAX_MISSING_BEADS = 3
_BEAD, _GAP = 6, 3
_HIDE_WORDS_FROM_PERCENT = 150


class Bead(Enum):
    HERE = auto()
    LATE = auto()
    ONLY_HERE = auto()
    FAILED = auto()
    MISSING = auto()


def bead_of(message: MessageView) -> Bead:
    if message.delivery is not None:
        if message.delivery.state is DeliveryState.FAILED:
            return Bead.FAILED
        if message.delivery.state is DeliveryState.SAVED:
            return Bead.ONLY_HERE
    return Bead.LATE if message.late else Bead.HERE


def beads_of(messages: Sequence[MessageView], missing: int) -> tuple[Bead, ...]:
    """Oldest first; missing ones stand before those that wait for them."""
    shown = [message for message in messages if message.kind is not MessageKind.UNSUPPORTED]
    holes = [Bead.MISSING] * min(missing, _MAX_MISSING_BEADS)
    placed = [bead_of(message) for message in shown if not message.waiting]
    waiting = [bead_of(message) for message in shown if message.waiting]
    return tuple([*placed, *holes, *waiting][-MAX_BEADS:])


def health_words(conversation: ConversationView, *, offline: bool = False) -> tuple[str, str]:
    """The part in the warning colour, and the rest.

    ``offline``: nobody is connected, so nobody can say whether anything is missing.
    """
    missing = words = ""
    if conversation.missing:
        missing = tr("%n missing", "%n missing", conversation.missing)
    if conversation.failed:
        words = tr("%n not sent", "%n not sent", conversation.failed)
    elif conversation.waiting_to_send:
        words = tr("%n waiting", "%n waiting", conversation.waiting_to_send)
    elif not missing:
        words = tr("Offline") if offline else tr("Nothing missing")
    return missing, f", {words}" if missing and words else words


class BeadStrip(QWidget):
    """A pill with beads and words; it only shows."""

    def __init__(self) -> None:
        super().__init__()
        self._beads: tuple[Bead, ...] = ()
        self._warning = ""
        self._words = ""
        self._conversation: ConversationView | None = None
        self._offline = False
        self._short = False
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._changed)

    def show_health(self, conversation: ConversationView, messages: Sequence[MessageView]) -> None:
        self._conversation = conversation
        self._beads = beads_of(messages, conversation.missing)
        self._say()

    def set_offline(self, offline: bool) -> None:
        """Nobody is connected."""
        if offline != self._offline:
            self._offline = offline
            self._say()

    def _say(self) -> None:
        if self._conversation is None:
            return
        self._warning, self._words = health_words(self._conversation, offline=self._offline)
        said = f"{self._warning}{self._words}"
        self.setAccessibleName(tr("Messages: {said}").format(said=said))
        set_tip(self, tr("The last messages: {said}").format(said=said))
        self._changed()

    def has_any(self) -> bool:
        return bool(self._beads)

    def set_short(self, short: bool) -> None:
        """Fewer beads and only the number of what needs care."""
        if short != self._short:
            self._short = short
            self._changed()

    def sizeHint(self) -> QSize:
        theme = current_theme()
        width = self._beads_width() + 2 * theme.metrics.gap(11)
        words = self._words_width()
        width += words + theme.metrics.gap(9) if words else 0
        return QSize(int(width + 0.5), theme.metrics.scaled(32))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.header)
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        x = float(theme.metrics.gap(11))
        for bead in self._visible_beads():
            self._draw(painter, bead, QPointF(x + self._side / 2, box.center().y()))
            x += self._side + _GAP
        self._draw_words(painter, x - _GAP + theme.metrics.gap(9), box)

    @property
    def _side(self) -> float:
        return float(current_theme().metrics.scaled(_BEAD))

    def _visible_beads(self) -> tuple[Bead, ...]:
        return self._beads[-7:] if self._short else self._beads

    def _beads_width(self) -> float:
        number = len(self._visible_beads())
        return number * self._side + max(0, number - 1) * _GAP

    def _shown_words(self) -> tuple[str, str]:
        if current_theme().metrics.text_percent >= _HIDE_WORDS_FROM_PERCENT:
            return "", ""
        if not self._short:
            return self._warning, self._words
        return self._warning.partition(" ")[0], ""

    def _words_width(self) -> float:
        small = current_theme().type.small
        warning, words = self._shown_words()
        return QFontMetricsF(small.strong()).horizontalAdvance(warning) + QFontMetricsF(
            small.font
        ).horizontalAdvance(words)

    def _draw(self, painter: QPainter, bead: Bead, centre: QPointF) -> None:
        theme = current_theme()
        radius = self._side / 2
        filled = {Bead.HERE: theme.accent, Bead.LATE: theme.late, Bead.FAILED: theme.danger}
        if bead in filled:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(filled[bead])
            painter.drawEllipse(centre, radius, radius)
            return
        painter.setPen(QPen(theme.warnDot if bead is Bead.MISSING else theme.accent, 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(centre, radius - 0.75, radius - 0.75)

    def _draw_words(self, painter: QPainter, x: float, box: QRectF) -> None:
        theme = current_theme()
        warning, words = self._shown_words()
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for text, font, colour in (
            (warning, theme.type.small.strong(), theme.warn),
            (words, theme.type.small.font, theme.ink2),
        ):
            painter.setFont(font)
            painter.setPen(colour)
            painter.drawText(QRectF(x, box.top(), box.width(), box.height()), flags, text)
            x += QFontMetricsF(font).horizontalAdvance(text)

    def _changed(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
