"""The header's bead strip: the last messages of a conversation, at a glance, and in words.

Filled means certain, hollow not certain or not here.  The words beside it say the same, and where
there is no room they shrink to a number; the tool tip always says all.
"""

from collections.abc import Sequence
from enum import Enum, auto

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from engine.core.ids import DeliveryState, MessageId
from engine.events import ConversationView, MessageKind, MessageView
from ui.conversation_words import kind_words, sender_words
from ui.foreign_text import one_line
from ui.mirrored import draw_text, mirror_widget
from ui.theme import current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

MAX_BEADS = 11
_MAX_MISSING_BEADS = 3
_BEAD, _GAP = 6, 3
_FEWER = 7
_LONGEST = 120
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


def strung(
    messages: Sequence[MessageView], missing: int
) -> tuple[tuple[Bead, MessageView | None], ...]:
    """Oldest first; missing ones, of which there is no message, before those that wait for them."""
    shown = [message for message in messages if message.kind is not MessageKind.UNSUPPORTED]
    holes: list[tuple[Bead, MessageView | None]] = [(Bead.MISSING, None)]
    holes *= min(missing, _MAX_MISSING_BEADS)
    placed = [(bead_of(message), message) for message in shown if not message.waiting]
    waiting = [(bead_of(message), message) for message in shown if message.waiting]
    return tuple([*placed, *holes, *waiting][-MAX_BEADS:])


def health_words(conversation: ConversationView, *, offline: bool = False) -> tuple[str, str]:
    """The part in the warning colour, and the rest.

    It says whom it speaks of: what others have is another matter, of which ticks and the delivery
    view speak.
    ``offline``: nobody is connected, so nobody can say whether anything is missing.
    """
    missing = words = ""
    if conversation.missing:
        missing = tr("You lack %n", "You lack %n", conversation.missing)
    if conversation.failed:
        words = tr("%n not sent", "%n not sent", conversation.failed)
    elif conversation.waiting_to_send:
        words = tr("%n waiting", "%n waiting", conversation.waiting_to_send)
    elif not missing:
        words = tr("Offline") if offline else tr("You lack nothing")
    return missing, f", {words}" if missing and words else words


class Recent:
    """The last messages of the open conversation, for the bead strip."""

    def __init__(self) -> None:
        self._messages: dict[MessageId, MessageView] = {}

    def clear(self) -> None:
        self._messages.clear()

    def put(self, message: MessageView) -> None:
        self._messages[message.message_id] = message
        if len(self._messages) > 2 * MAX_BEADS:
            self._messages = {view.message_id: view for view in self.last()}

    def remove(self, message_id: MessageId) -> None:
        self._messages.pop(message_id, None)

    def last(self) -> tuple[MessageView, ...]:
        ordered = sorted(self._messages.values(), key=lambda view: (view.waiting, view.position))
        return tuple(ordered[-MAX_BEADS:])


class BeadStrip(QAbstractButton):
    """A pill with beads and words; a bead leads to what it stands for.

    By the keys: Left and Right choose a bead, Enter opens it.
    """

    message_chosen = Signal(str)
    """A message id."""
    missing_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._strung: tuple[tuple[Bead, MessageView | None], ...] = ()
        self._chosen: int | None = None
        """Of the visible beads; None: the last."""
        self._warning = ""
        self._words = ""
        self._said = ""
        self._conversation: ConversationView | None = None
        self._offline = False
        self._short = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._changed)

    def show_health(self, conversation: ConversationView, messages: Sequence[MessageView]) -> None:
        self._conversation = conversation
        self._strung = strung(messages, conversation.missing)
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
        words = tr("The last messages: {said}. The ticks say what others have.")
        self._said = words.format(said=said)
        set_tip(self, self._said)
        self._changed()

    def has_any(self) -> bool:
        return bool(self._strung)

    # --- choosing a bead --------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is not None:
            self._choose(self._chosen_place() + step)
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self._open(self._chosen_place())
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(
            event.position().toPoint()
        ):
            self._open(self._place_at(event.position().x()))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._chosen = None
        self._say()

    def tip_at(self, point: QPoint) -> str:
        """Of the bead there, or else of all."""
        place = self._place_at(point.x(), beside=False)
        return self._said if place is None else self._words_of(place)

    def _visible(self) -> tuple[tuple[Bead, MessageView | None], ...]:
        return self._strung[-_FEWER:] if self._short else self._strung

    def _chosen_place(self) -> int:
        last = len(self._visible()) - 1
        return last if self._chosen is None else min(self._chosen, last)

    def _place_at(self, x: float, *, beside: bool = True) -> int | None:
        """``beside``: right of the beads the words stand for what needs care, or the newest."""
        step = self._side + _GAP
        place = int((x - current_theme().metrics.gap(11) + _GAP / 2) // step)
        visible = self._visible()
        if 0 <= place < len(visible):
            return place
        if not beside or not visible:
            return None
        cares = (Bead.MISSING, Bead.FAILED)
        found = [i for i, (bead, _message) in enumerate(visible) if bead in cares]
        return found[0] if found else len(visible) - 1

    def _choose(self, place: int) -> None:
        visible = self._visible()
        if not visible:
            return
        self._chosen = max(0, min(place, len(visible) - 1))
        words = self._words_of(self._chosen)
        self.setAccessibleName(words)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.NameChanged))
        self.update()

    def _words_of(self, place: int) -> str:
        bead, message = self._visible()[place]
        if message is None:
            return tr("Missing: where it belongs")
        states = {
            Bead.LATE: tr("arrived late"),
            Bead.ONLY_HERE: tr("only here so far"),
            Bead.FAILED: tr("not sent"),
        }
        said = one_line(f"{sender_words(message)}: {kind_words(message)}", _LONGEST)
        words = tr("Look into “{message}”").format(message=said)
        return words if bead not in states else f"{words}, {states[bead]}"

    def _open(self, place: int | None) -> None:
        visible = self._visible()
        if place is None or not 0 <= place < len(visible):
            return
        _bead, message = visible[place]
        if message is None:
            self.missing_chosen.emit()
        else:
            self.message_chosen.emit(message.message_id)

    def set_short(self, short: bool) -> None:
        """Fewer beads and only the number of what needs care."""
        if short != self._short:
            self._short = short
            self._changed()

    def sizeHint(self) -> QSize:
        return QSize(self.width_if(short=self._short), current_theme().metrics.scaled(32))

    def width_if(self, *, short: bool) -> int:
        """In pixels, so that others can see what is left before ``set_short``."""
        metrics = current_theme().metrics
        number = len(self._strung[-_FEWER:] if short else self._strung)
        width = number * self._side + max(0, number - 1) * _GAP + 2 * metrics.gap(11)
        words = self._words_width(short=short)
        width += words + metrics.gap(9) if words else 0
        return int(width + 0.5)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        width = theme.focus_width if self.hasFocus() else 1
        painter.setPen(QPen(theme.focus if self.hasFocus() else theme.line, width))
        painter.setBrush(theme.hover if self.underMouse() else theme.header)
        inset = (width - 1) / 2
        box = box.adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        x = float(theme.metrics.gap(11))
        for place, (bead, _message) in enumerate(self._visible()):
            centre = QPointF(x + self._side / 2, box.center().y())
            self._draw(painter, bead, centre)
            if self.hasFocus() and place == self._chosen_place():
                painter.setPen(QPen(theme.focus, 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(centre, self._side / 2 + 2, self._side / 2 + 2)
            x += self._side + _GAP
        self._draw_words(painter, x - _GAP + theme.metrics.gap(9), box)

    @property
    def _side(self) -> float:
        return float(current_theme().metrics.scaled(_BEAD))

    def _shown_words(self, *, short: bool) -> tuple[str, str]:
        if current_theme().metrics.text_percent >= _HIDE_WORDS_FROM_PERCENT:
            return "", ""
        if not short:
            return self._warning, self._words
        missing = self._conversation.missing if self._conversation is not None else 0
        return str(missing) if missing else "", ""

    def _words_width(self, *, short: bool) -> float:
        small = current_theme().type.small
        warning, words = self._shown_words(short=short)
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
        warning, words = self._shown_words(short=self._short)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for text, font, colour in (
            (warning, theme.type.small.strong(), theme.warn),
            (words, theme.type.small.font, theme.ink2),
        ):
            painter.setFont(font)
            painter.setPen(colour)
            width = QFontMetricsF(font).horizontalAdvance(text)
            draw_text(painter, QRectF(x, box.top(), width, box.height()), flags, text)
            x += width

    def _changed(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
