"""The status strip at the foot: connection, requests, waiting messages, our clock, and traffic."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from engine.events import ConnectionLevel, ConnectionView, ConversationView
from ui.connection_words import (
    connection_line,
    connection_reason,
    connection_word,
    reason_words,
    shown_level,
    traffic,
)
from ui.controls import Area, Button, ElidedText, Text
from ui.theme import current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_HEIGHT, _COMPACT_HEIGHT = 26, 22
_SHORT_BELOW = 640
_TOTALS_MS = 50
"""Every message that one sends waits for a moment, of which nothing needs to be said."""


class Dot(QWidget):
    """Filled green: good; filled amber: not settled yet; hollow: no connection."""

    def __init__(self) -> None:
        super().__init__()
        self._level = ConnectionLevel.OFFLINE
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def show_level(self, level: ConnectionLevel) -> None:
        self._level = level
        self.update()

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(8) + 2
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = theme.metrics.scaled(8) / 2
        centre = QPointF(self.width() / 2, self.height() / 2)
        fills = {ConnectionLevel.GOOD: theme.ok, ConnectionLevel.MINIMAL: theme.warnDot}
        if self._level in fills:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fills[self._level])
            painter.drawEllipse(centre, radius, radius)
        else:
            painter.setPen(QPen(theme.ink3, 1.5))
            painter.drawEllipse(centre, radius - 0.75, radius - 0.75)


class _Divider(QFrame):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedWidth(1)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        theme_changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect().adjusted(0, 5, 0, -5), current_theme().line)


class StatusStrip(Area):
    network_requested = Signal()
    """The words about the connection were clicked; the menu and a key lead there, too."""

    def __init__(self) -> None:
        super().__init__("panel", edges=("top",))
        self.setAccessibleName(tr("Status"))
        self._connection: ConnectionView | None = None
        self._missing = self._to_send = self._not_sent = 0
        self._counted = (0, 0, 0)
        self._count_soon = QTimer(self, singleShot=True)
        self._count_soon.timeout.connect(self._take_counted)
        self._dot = Dot()
        self._link = Text(face="caption", colour="ink2")
        self._reason = ElidedText(face="caption", colour="ink3")
        self._reason.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._traffic = Text(face="caption", colour="ink2")
        set_tip(self._traffic, tr("Sent and received since the start"))
        self._row = QHBoxLayout(self)
        self._row.addWidget(self._dot)
        self._row.addWidget(self._link)
        self._before_reason = _Divider()
        self._row.addWidget(self._before_reason)
        self._row.addWidget(self._reason)
        for part in (self._dot, self._link, self._reason):
            part.setCursor(Qt.CursorShape.PointingHandCursor)
        self._dividers: list[tuple[_Divider, Text]] = []
        asking = ElidedText(face="caption", colour="warn", strong=True)
        waiting = ElidedText(face="caption", colour="ink2")
        not_sent = ElidedText(face="caption", colour="danger", strong=True)
        for text in (asking, waiting, not_sent):
            divider = _Divider()
            self._dividers.append((divider, text))
            self._row.addWidget(divider)
            self._row.addWidget(text)
        self.clock = Button(tr("Clock"), kind="warning", size="tiny")
        self.clock.hide()
        self._row.addWidget(self.clock)
        self.faults = Button(tr("Faults on purpose"), kind="danger", size="tiny")
        self.faults.hide()
        self._row.addWidget(self.faults)
        self._row.addStretch(1)
        self._row.addWidget(self._traffic)
        theme_changed.connect(self._dress)
        self._dress()

    def show_connection(self, connection: ConnectionView) -> None:
        self._connection = connection
        self._dot.show_level(shown_level(connection))
        for part in (self._link, self._dot):
            set_tip(part, reason_words(connection))
        received, sent = traffic(connection.bytes_in), traffic(connection.bytes_out)
        self._traffic.setText(f"↑ {sent}   ↓ {received}")
        self._traffic.setAccessibleName(
            tr("Sent {sent}, received {received}").format(sent=sent, received=received)
        )
        self._fit()

    def show_clock(self, words: str) -> None:
        """What is quietly said of our clock; pressing it leads to more.  "": nothing."""
        if words:
            self.clock.rename(words)
        self.clock.setVisible(bool(words))

    def show_totals(self, conversations: Sequence[ConversationView]) -> None:
        self._counted = (
            sum(view.missing for view in conversations),
            sum(view.waiting_to_send for view in conversations),
            sum(view.failed for view in conversations),
        )
        if not self._count_soon.isActive():
            self._count_soon.start(_TOTALS_MS)

    def _take_counted(self) -> None:
        if self._counted != (self._missing, self._to_send, self._not_sent):
            self._missing, self._to_send, self._not_sent = self._counted
            self._fit()

    def _show_totals(self, *, short: bool) -> None:
        asking = tr("Asking for %n messages", "Asking for %n message", self._missing)
        waiting = tr("%n waiting to send", "%n waiting to send", self._to_send)
        not_sent = tr("%n not sent", "%n not sent", self._not_sent)
        shorter = (
            tr("%n missing", "%n missing", self._missing),
            tr("%n waiting", "%n waiting", self._to_send),
            not_sent,
        )
        shown = shorter if short else (asking, waiting, not_sent)
        numbers = self._missing, self._to_send, self._not_sent
        for (divider, text), words, number in zip(self._dividers, shown, numbers, strict=True):
            text.setText(words)
            text.setVisible(bool(number))
            divider.setVisible(bool(number))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        about_connection = (self._dot, self._link, self._reason)
        if event.button() is Qt.MouseButton.LeftButton and (
            self.childAt(event.position().toPoint()) in about_connection
        ):
            self.network_requested.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() / current_theme().metrics.factor
        self._traffic.setVisible(room >= _SHORT_BELOW)
        self._show_totals(short=room < _SHORT_BELOW)
        if self._connection is not None:
            short = room < _SHORT_BELOW
            words = connection_word if short else connection_line
            self._link.setText(words(self._connection))
            said = f"{connection_line(self._connection)}. {reason_words(self._connection)}"
            self._link.setAccessibleName(said)
            reason = "" if short else connection_reason(self._connection)
            self._reason.setText(reason)
            for part in (self._before_reason, self._reason):
                part.setVisible(bool(reason))
            self._link.show()
            self._row.invalidate()
            has_room = not short or self._row.sizeHint().width() <= self.width()
            self._link.setVisible(has_room)  # The dot says it, too, and the counts say more.

    def _dress(self) -> None:
        theme = current_theme()
        dense = theme.metrics.dense
        line = int(theme.type.caption.line_height + dense(8, 4))
        least = theme.metrics.scaled(dense(_HEIGHT, _COMPACT_HEIGHT))
        self.setFixedHeight(max(least, line))
        self._row.setContentsMargins(theme.metrics.gap(15), 1, theme.metrics.gap(15), 0)
        self._row.setSpacing(theme.metrics.gap(10))
        self._fit()
