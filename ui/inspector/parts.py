"""What the inspector is drawn with: steps of a life, who holds it at a glance, the causal graph.

Nodes are buttons, fields are labels and a step is one widget that has a name, so that keys and
screen readers find each of them; only beads, segments and edges are nothing but paint.
"""

import math
from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QGridLayout,
    QWidget,
)

from engine.answers import HolderView
from engine.inspection_views import LinkView, MessageInspection, Whereabouts
from ui.controls import Text, pressed_by_enter
from ui.foreign_text import one_line
from ui.inspector.life import Mark, Step, short_id
from ui.mirrored import draw_text, mirror_widget
from ui.speaking import told_as
from ui.theme import Theme, current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_BEAD = 8
_MOST_SEGMENTS = 24
"""More holders than these are told in words only."""
SHOWN_LINKS = 5
"""On each side of the graph; the fields name all of them."""
_STEP = 22
"""The least height of a step."""
_BELOW_WORDS = 4
_GAP = 8
"""Between bead, words and time."""
_HIGHEST = 100_000
_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_NODE_ROW = 42
_NODE = 12
_NAME = 24


def _colour_of(mark: Mark, theme: Theme) -> QColor:
    match mark:
        case Mark.SURE | Mark.MAYBE:
            return theme.accent
        case Mark.MISSING:
            return theme.warnDot
        case Mark.LATE:
            return theme.late
        case Mark.FAILED:
            return theme.danger
        case Mark.AHEAD:
            return theme.line2


@told_as(QAccessible.Role.StaticText)
class StepRow(QWidget):
    """A bead, words, and a time beside them, or below if there is no room.

    One widget that paints all of it: rows are added while one looks, and all that stands below is
    laid out anew each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[Step, str, tuple[bool, bool], bool] | None = None
        self._words = self._time = ""
        self._stacked = False
        self._places: dict[int, tuple[QRectF, QRectF]] = {}
        theme_changed.connect(self._lay_out)

    def show_step(self, step: Step, time: str, *, ends: tuple[bool, bool], stacked: bool) -> None:
        """``ends``: whether it is the first, and the last."""
        told = step, time, ends, stacked
        if told == self._shown:
            return
        self._shown = told
        self._words, self._time, self._stacked = step.words, time, stacked
        plain = step.words.replace("\u200b", "")
        self.setAccessibleName(f"{plain}, {time}" if time else plain)
        self._lay_out()

    def _lay_out(self) -> None:
        self._places.clear()
        self.updateGeometry()
        self.update()

    def _place(self, width: int) -> tuple[QRectF, QRectF]:
        """Where words and time are in this width, from left to right."""
        known = self._places.get(width)
        if known is not None:
            return known
        label, code = current_theme().type.label, current_theme().type.code
        left = _bead_width() + _GAP
        beside = QFontMetrics(code.font).horizontalAdvance(self._time)
        room = width - left
        is_below = self._stacked or room - beside - _GAP < beside
        if self._time and not is_below:
            room -= beside + _GAP
        box = QRect(left, 0, max(room, 1), _HIGHEST)
        needed = QFontMetrics(label.font).boundingRect(box, int(_WRAPPED), self._words)
        words = QRectF(left, 0, box.width(), max(needed.height(), int(label.line_height)))
        top = words.bottom() if is_below else 0.0
        time = QRectF(left, top, width - left, code.line_height if self._time else 0.0)
        self._places[width] = words, time
        return words, time

    @property
    def is_cut(self) -> bool:
        """Whether a word is longer than its line, so that its end is not seen."""
        words, _time = self._place(self.width())
        box, metrics = words.toRect(), QFontMetrics(current_theme().type.label.font)
        return metrics.boundingRect(box, int(_WRAPPED), self._words).width() > box.width()

    # --- Qt ---------------------------------------------------------------------------------------

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        words, time = self._place(width)
        needed = max(words.bottom() if time.top() else words.bottom() + _BELOW_WORDS, time.bottom())
        return max(current_theme().metrics.scaled(_STEP), math.ceil(needed))

    def sizeHint(self) -> QSize:
        return QSize(0, current_theme().metrics.scaled(_STEP))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._shown is None:
            return
        step, _time, ends, _stacked = self._shown
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        words, time = self._place(self.width())
        painter.setFont(theme.type.label.font)
        painter.setPen(theme.ink)
        draw_text(painter, words, _WRAPPED, self._words)
        painter.setFont(theme.type.code.font)
        painter.setPen(theme.ink2)
        side = Qt.AlignmentFlag.AlignLeft if time.top() else Qt.AlignmentFlag.AlignRight
        draw_text(painter, time, side | Qt.AlignmentFlag.AlignVCenter, self._time)
        self._paint_bead(painter, step.mark, ends)

    def _paint_bead(self, painter: QPainter, mark: Mark, ends: tuple[bool, bool]) -> None:
        """And its piece of the thread."""
        theme, (is_first, is_last) = current_theme(), ends
        centre = QPointF(_bead_width() / 2, theme.type.label.line_height / 2)
        painter.setPen(QPen(theme.thread, 2))
        top = centre.y() if is_first else 0.0
        bottom = centre.y() if is_last else float(self.height())
        painter.drawLine(QPointF(centre.x(), top), QPointF(centre.x(), bottom))
        radius = theme.metrics.scaled(_BEAD) / 2
        colour = _colour_of(mark, theme)
        is_filled = mark in {Mark.SURE, Mark.LATE}
        painter.setBrush(colour if is_filled else theme.panel)
        style = Qt.PenStyle.DotLine if mark is Mark.AHEAD else Qt.PenStyle.SolidLine
        painter.setPen(Qt.PenStyle.NoPen if is_filled else QPen(colour, 1.5, style))
        inset = 0 if is_filled else 0.75
        painter.drawEllipse(centre, radius - inset, radius - inset)


def _bead_width() -> int:
    return current_theme().metrics.scaled(_BEAD) + 4


class HeldBar(QWidget):
    """One segment for each other member: filled, hollow or empty."""

    def __init__(self) -> None:
        super().__init__()
        self._holders: tuple[HolderView, ...] = ()
        theme_changed.connect(self.update)

    def show_holders(self, holders: Sequence[HolderView]) -> None:
        before = self._holders
        self._holders = tuple(
            sorted(holders, key=lambda each: (not each.certain, each.source is None))
        )
        if self._holders == before:
            return
        number = len(holders)
        self.setVisible(1 < number <= _MOST_SEGMENTS)
        metrics = current_theme().metrics
        self.setFixedSize(max(1, metrics.scaled(21) * min(number, 6)), metrics.scaled(12))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        number, gap = len(self._holders), 3
        width = (self.width() - gap * (number - 1)) / max(number, 1)
        height = min(7.0, self.height() - 2.0)
        top = (self.height() - height) / 2
        for place, holder in enumerate(self._holders):
            box = QRectF(place * (width + gap), top, width, height)
            if holder.certain:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.accent)
            else:
                colour = theme.accent if holder.source else theme.line2
                painter.setPen(QPen(colour, 1.4 if holder.source else 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                box.adjust(0.7, 0.7, -0.7, -0.7)
            radius = min(box.height(), box.width()) / 2
            painter.drawRoundedRect(box, radius, radius)


def whereabouts_words(whereabouts: Whereabouts) -> str:
    match whereabouts:
        case Whereabouts.LOGGED:
            return tr("here")
        case Whereabouts.WAITING:
            return tr("waiting")
        case Whereabouts.MISSING:
            return tr("missing")
        case Whereabouts.LOST:
            return tr("given up")
        case Whereabouts.UNKNOWN:
            return tr("not here")


class LinkNode(QAbstractButton):
    """A message in the graph; pressed, it is looked into."""

    def __init__(self, link: LinkView, parent: QWidget) -> None:
        super().__init__(parent)
        self.link = link
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        name = one_line(link.sender_name, _NAME) or tr("Somebody")
        self._words = f"{name} {short_id(link.message_id)}"
        where = whereabouts_words(link.whereabouts)
        said = tr("{message}: {where}. Look into it").format(message=self._words, where=where)
        self.setAccessibleName(said)
        set_tip(self, said)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def bead(self) -> QPointF:
        """Its middle, in this widget."""
        return QPointF(self.width() / 2, current_theme().metrics.scaled(_NODE) / 2 + 3)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.underMouse() or self.hasFocus():
            painter.setPen(QPen(theme.focus, 2) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.setBrush(Qt.BrushStyle.NoBrush if self.hasFocus() else theme.hover)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        radius = theme.metrics.scaled(_NODE) / 2
        self._paint_bead(painter, radius)
        caption = theme.type.caption.font
        painter.setFont(caption)
        painter.setPen(theme.ink2)
        top = self.bead().y() + radius
        box = QRectF(2, top, self.width() - 4, theme.type.caption.line_height)
        words = painter.fontMetrics().elidedText(
            self._words, Qt.TextElideMode.ElideMiddle, int(box.width())
        )
        _clear_behind(painter, box, words)
        painter.setPen(theme.ink2)
        draw_text(painter, box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, words)

    def _paint_bead(self, painter: QPainter, radius: float) -> None:
        theme = current_theme()
        if self.link.whereabouts is Whereabouts.LOGGED:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.sender_colour(self.link.sender_id or ""))
            painter.drawEllipse(self.bead(), radius, radius)
            return
        is_lost = self.link.whereabouts is Whereabouts.LOST
        style = Qt.PenStyle.SolidLine if is_lost else Qt.PenStyle.DashLine
        painter.setPen(QPen(theme.danger if is_lost else theme.warnDot, 1.6, style))
        painter.setBrush(theme.panel)
        painter.drawEllipse(self.bead(), radius - 1, radius - 1)


class CausalGraph(QWidget):
    """What the message names on the left, what names it on the right, itself between them."""

    chosen = Signal(LinkView)
    focused = Signal(QWidget)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[LinkNode] = []
        self._left: list[LinkNode] = []
        self._right: list[LinkNode] = []
        self._own_words = ""
        self._sender = ""
        theme_changed.connect(self._place)

    def show_links(self, found: MessageInspection) -> None:
        before = {node.link: node for node in self.nodes}
        left, right = found.names[-SHOWN_LINKS:], found.named_by[:SHOWN_LINKS]
        self._left, self._right = (
            [before.pop(link) if link in before else self._node(link) for link in links]
            for links in (left, right)
        )
        self.nodes = [*self._left, *self._right]
        for node in before.values():
            node.hide()
            node.deleteLater()
        self._own_words = tr("this, {id}").format(id=short_id(found.message_id))
        self._sender = found.sender_id or ""
        rows = max(1, len(self._left), len(self._right))
        self.setFixedHeight(current_theme().metrics.scaled(_NODE_ROW) * rows)
        self._place()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _node(self, link: LinkView) -> LinkNode:
        node = LinkNode(link, self)
        node.clicked.connect(lambda _checked=False: self.chosen.emit(link))
        node.show()
        return node

    def _place(self) -> None:
        row = current_theme().metrics.scaled(_NODE_ROW)
        width = max(1, int(self.width() * 0.36))
        mirrored = self.isRightToLeft()
        for side, nodes in ((0, self._left), (1, self._right)):
            at_right = bool(side) is not mirrored
            x = self.width() - width if at_right else 0
            above = (self.height() - row * len(nodes)) // 2
            for place, node in enumerate(nodes):
                node.setGeometry(x, above + place * row, width, row)

    def _centre(self) -> QPointF:
        theme = current_theme()
        return QPointF(self.width() / 2, self.height() / 2 - theme.type.caption.line_height / 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = self._centre()
        for nodes, colour in ((self._left, theme.line2), (self._right, theme.accent)):
            for node in nodes:
                is_here = node.link.whereabouts is Whereabouts.LOGGED
                style = Qt.PenStyle.SolidLine if is_here else Qt.PenStyle.DashLine
                painter.setPen(QPen(colour if is_here else theme.warnDot, 1.4, style))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawPath(_edge(QPointF(node.pos()) + node.bead(), centre))
        radius = theme.metrics.scaled(_NODE) / 2
        painter.setPen(QPen(theme.accent, 1.5))
        painter.setBrush(theme.panel)
        painter.drawEllipse(centre, radius + 3, radius + 3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.sender_colour(self._sender))
        painter.drawEllipse(centre, radius - 1, radius - 1)
        painter.setFont(theme.type.caption.strong())
        top = centre.y() + radius + 5
        box = QRectF(self.width() * 0.3, top, self.width() * 0.4, theme.type.caption.line_height)
        _clear_behind(painter, box, self._own_words)
        painter.setPen(theme.ink)
        draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, self._own_words)


def _clear_behind(painter: QPainter, box: QRectF, words: str) -> None:
    """Edges pass behind the words that stand in the middle of ``box``, not through them."""
    width = min(painter.fontMetrics().horizontalAdvance(words) + 4.0, box.width())
    behind = QRectF(box.center().x() - width / 2, box.top(), width, box.height())
    painter.fillRect(behind, current_theme().panel)


def _edge(start: QPointF, end: QPointF) -> QPainterPath:
    path = QPainterPath(start)
    middle = (start.x() + end.x()) / 2
    path.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
    return path


class FieldTable(QWidget):
    """Names on the left, values on the right, to be selected and copied."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)
        self._shown: tuple[tuple[str, str], ...] = ()
        self._values: list[Text] = []

    def sizeHint(self) -> QSize:
        """Not the height for Qt's own choice of a width, for which all words would be laid out."""
        return self.minimumSizeHint()

    def show_fields(self, fields: tuple[tuple[str, str], ...]) -> None:
        before, self._shown = self._shown, fields
        if [name for name, _ in before] == [name for name, _ in fields]:
            for row, (name, value) in enumerate(fields):
                if before[row] != fields[row]:
                    self._show_value(self._values[row], name, value)
            return
        self._values.clear()
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, value) in enumerate(fields):
            label = Text(name, face="code", colour="ink2")
            shown = Text(face="code", wrap=True)
            self._show_value(shown, name, value)
            self._values.append(shown)
            shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(shown, row, 1)

    def _show_value(self, shown: Text, name: str, value: str) -> None:
        shown.setText(value)
        plain = value.replace("\u200b", "")
        shown.setAccessibleName(f"{name}: {plain}")
