"""The card of the causal graph: a legend, the time, Pause, the table, and what can be saved."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QWidget

from engine.core.ids import MessageId, ParticipantId
from engine.delivery_views import DeliveryMark, DeliveryMessage
from engine.events import ConversationView
from ui.controls import Button, Text
from ui.delivery.buttons import export_menu
from ui.delivery.card import DeliveryCard
from ui.delivery.export import png_of, svg_of
from ui.delivery.graph import CausalGraphView
from ui.delivery.graph_rows import headings, messages_csv, row_of
from ui.delivery.loaded import MOST_LOADED, LoadedMessages
from ui.delivery.painting import draw_mark
from ui.delivery.table import FigureTable, MadeRows
from ui.delivery.wrapping import WrappingRow
from ui.regional import grouped
from ui.segments import Segments
from ui.speaking import announce
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_LEGEND_FROM: Final = 1_080
_BEAD: Final = 22
_AROUND: Final = 100
"""Edges and gaps of the card and the page."""
_BESIDE_CARD: Final = 32
"""Pixels of the page at both sides of the card."""


class LegendBead(QWidget):
    def __init__(self, mark: DeliveryMark, *, is_partly_held: bool = False) -> None:
        super().__init__()
        self._message = DeliveryMessage(
            message_id=MessageId(""),
            mark=mark,
            sender_id=None,
            sender_name="",
            is_own=is_partly_held,
            lamport_timestamp=None,
            position=None,
            held_by=int(is_partly_held),
            of=2,
        )
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(_BEAD)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPointF(self.width() / 2, self.height() / 2)
        draw_mark(painter, self._message, centre, theme.metrics.scaled(5), theme)


class Legend(QWidget):
    def __init__(self) -> None:
        super().__init__()
        lines = WrappingRow(leading=True)
        self.setLayout(lines)
        for bead, words in (
            (LegendBead(DeliveryMark.HERE), tr("message")),
            (LegendBead(DeliveryMark.HERE, is_partly_held=True), tr("not held by all yet")),
            (LegendBead(DeliveryMark.LATE), tr("arrived late")),
            (LegendBead(DeliveryMark.WAITING), tr("held aside")),
            (LegendBead(DeliveryMark.MISSING), tr("missing")),
            (LegendBead(DeliveryMark.LOST), tr("lost")),
            (LegendBead(DeliveryMark.ONLY_HERE), tr("only here")),
            (LegendBead(DeliveryMark.FAILED), tr("not sent")),
        ):
            entry = QWidget()
            row = QHBoxLayout(entry)
            row.setContentsMargins(0, 0, 7, 0)
            row.setSpacing(3)
            row.addWidget(bead)
            row.addWidget(Text(words, face="small", colour="ink2"))
            lines.addWidget(entry)
        self._lines = lines

    def fit(self, width: int) -> None:
        """As high as its lines are at this width."""
        self.setFixedHeight(self._lines.heightForWidth(width))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit(self.width())


class GraphCard(DeliveryCard):
    message_chosen = Signal(str)
    older_wanted = Signal()
    range_chosen = Signal()
    paused = Signal(bool)
    export_ready = Signal(str, bytes)
    """``kind`` ("png", "svg" or "csv") and what the file shall hold."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(tr("Causal order"))
        self.graph = CausalGraphView(now)
        self._now = now
        self.table = FigureTable(tr("Causal order as a table"))
        self.table.hide()
        self.note = Text("", face="caption", colour="ink2", wrap=True)
        self.note.hide()
        self._conversation: ConversationView | None = None
        self._loaded = LoadedMessages()
        self._begin = 0
        self.ranges = Segments(tr("Time range"), (tr("5 min"), tr("20 min"), tr("All")))
        self.ranges.choose(1)
        self.ranges.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.ranges.chosen.connect(lambda _number: self.range_chosen.emit())
        self.pause = Button(tr("Pause"), kind="ghost", size="small")
        self.pause.setCheckable(True)
        self.pause.toggled.connect(self._pause)
        self.as_table = Button(tr("Show as table"), kind="ghost", size="small")
        self.as_table.setCheckable(True)
        self.as_table.toggled.connect(self._show_table)
        self.export = Button(tr("Export…"), kind="ghost", size="small")
        self.export.setMenu(export_menu(self, self._export))
        for chosen in (self.graph.chosen, self.table.message_chosen):
            chosen.connect(self.message_chosen)
        self.graph.older_wanted.connect(self.older_wanted)
        self.legend = Legend()
        self._second = QHBoxLayout()
        self._second.setContentsMargins(0, 0, 0, 0)
        self.head.addWidget(self.legend)
        buttons = WrappingRow()
        for widget in (self.ranges, self.pause, self.as_table, self.export):
            buttons.addWidget(widget)
        self._buttons = buttons
        self.head.addLayout(buttons, 1)
        self.body.addLayout(self._second)
        self.body.addWidget(self.note)
        self.body.addWidget(self.graph)
        self.body.addWidget(self.table)

    def _export(self, kind: str) -> None:
        self.export_ready.emit(kind, self.as_file(kind))

    def _pause(self, is_paused: bool) -> None:
        self.pause.rename(tr("Go on") if is_paused else tr("Pause"))
        announce(self.pause, tr("Paused") if is_paused else tr("It goes on"))
        self.paused.emit(is_paused)

    def _show_table(self, wanted: bool) -> None:
        self.as_table.rename(tr("Show as graph") if wanted else tr("Show as table"))
        self.table.setVisible(wanted)
        self.graph.setVisible(not wanted)
        self._fill_table()

    def _fill_table(self) -> None:
        if self.as_table.isChecked():
            shown, now = self._loaded.messages[self._begin :], self._now()
            rows = MadeRows(shown, lambda message: row_of(message, now))
            self.table.show_rows(headings(), rows, [each.message_id for each in shown])

    def set_room(self, width: int) -> None:
        """The legend has lines of its own where the buttons leave it no room.

        And so have the buttons, where the title leaves them none.
        """
        factor = current_theme().metrics.factor
        room = width - self.title.sizeHint().width() - _AROUND
        directions = QBoxLayout.Direction
        one_line = room >= self._buttons.line_width
        self.head.setDirection(directions.LeftToRight if one_line else directions.TopToBottom)
        self.head.setSpacing(12 if one_line else 0)
        beside = width >= _LEGEND_FROM * factor
        wanted = self.head if beside else self._second
        if wanted.indexOf(self.legend) < 0:
            (self._second if beside else self.head).removeWidget(self.legend)
            if beside:
                self.head.insertWidget(1, self.legend)
            else:
                self._second.addWidget(self.legend)
        inside = self.body.contentsMargins()
        self.legend.fit(width - _BESIDE_CARD - inside.left() - inside.right())

    def show_loaded(
        self,
        loaded: LoadedMessages,
        changed: int,
        conversation: ConversationView | None,
        *,
        begin: int,
    ) -> None:
        self._loaded, self._conversation, self._begin = loaded, conversation, begin
        self.graph.show_loaded(loaded, changed, conversation, begin=begin)
        words = _note(loaded, begin)
        self.note.setText(words)
        self.note.setVisible(bool(words))
        self._fill_table()

    def take_focus(self) -> None:
        shown = self.table if self.as_table.isChecked() else self.graph
        shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def as_file(self, kind: str) -> bytes:
        """What is shown, as "png", "svg" or "csv"; the table has all of the chosen time."""
        conversation = self._conversation
        if kind == "csv":
            members = () if conversation is None else conversation.members
            names: dict[ParticipantId, str] = {each.participant_id: each.name for each in members}
            return messages_csv(self._loaded.messages[self._begin :], names)
        size = QSizeF(self.graph.size())
        if kind == "png":
            return png_of(size, self._paint_graph)
        title = "" if conversation is None else conversation.name
        return svg_of(size, title, self._paint_graph)

    def _paint_graph(self, painter: QPainter, box: QRectF) -> None:
        painter.translate(box.topLeft())
        self.graph.paint_on(painter)


def _note(loaded: LoadedMessages, begin: int) -> str:
    if begin >= len(loaded.messages):
        return tr("No messages in this time.") if loaded.page is not None else ""
    page = loaded.page
    if page is not None and page.is_pair:
        return tr("Between two people nothing names anything, so there are no edges.")
    if loaded.is_full:
        return tr("The newest {number} messages are shown.").format(number=grouped(MOST_LOADED))
    return ""
