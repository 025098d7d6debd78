"""The page shown while no conversation is open: how to begin one."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.controls import Area, Button, KeyCap, Text
from ui.glyphs import Glyph, draw_glyph
from ui.mirrored import mirror_widget
from ui.theme import Theme, current_theme, theme_changed
from ui.translate import tr

_PICTURE = QSize(320, 190)
_COLUMN = 400
_GHOSTS = ((34.0, 176.0, (96.0, 60.0)), (95.0, 132.0, (74.0, 44.0)))
"""Centre of the bead, width of the bubble, widths of its two lines."""


class ThreadPicture(QWidget):
    """A thread with two hollow beads and one filled: nothing here yet, and how it will look."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("A thread with three messages"))
        theme_changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return _PICTURE

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        pen = QPen(theme.thread, 2)
        pen.setDashPattern([1, 3.5])
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(60, 6), QPointF(60, 184))
        for y, width, lines in _GHOSTS:
            self._ghost(painter, theme, y, width, lines)
        self._own(painter, theme)

    def _ghost(
        self, painter: QPainter, theme: Theme, y: float, width: float, lines: tuple[float, float]
    ) -> None:
        painter.setPen(QPen(theme.line2, 2))
        painter.setBrush(theme.canvas)
        painter.drawEllipse(QPointF(60, y), 9, 9)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(QRectF(86.5, y - 20 + 0.5, width, 40), 14, 14)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.line)
        painter.drawRoundedRect(QRectF(102, y - 7, lines[0], 6), 3, 3)
        painter.drawRoundedRect(QRectF(102, y + 4, lines[1], 5), 2.5, 2.5)

    def _own(self, painter: QPainter, theme: Theme) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.accent)
        painter.drawEllipse(QPointF(60, 156), 9, 9)
        painter.setPen(QPen(theme.ownLine, 1))
        painter.setBrush(theme.own)
        painter.drawRoundedRect(QRectF(128.5, 136.5, 163, 39), 14, 14)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.ownLine)
        painter.drawRoundedRect(QRectF(144, 153, 88, 6), 3, 3)
        draw_glyph(painter, Glyph.HELD, QPointF(256, 148.5), theme.accent, scale=1.25)


class EmptyPage(Area):
    new_group_requested = Signal()
    join_requested = Signal()
    add_person_requested = Signal()

    def __init__(self) -> None:
        super().__init__("canvas")
        self._title = Text(face="title", strong=True)
        self._words = Text(face="body", colour="ink2", wrap=True)
        for text in (self._title, self._words):
            text.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self.add_person = Button(
            tr("Add a person"), kind="primary", size="big", icon_name="person-add"
        )
        self.new_group = Button(tr("New group"), size="big", icon_name="plus")
        self.join = Button(tr("Join with an invitation"), size="big", icon_name="join")
        self.add_person.clicked.connect(self.add_person_requested)
        self.new_group.clicked.connect(self.new_group_requested)
        self.join.clicked.connect(self.join_requested)
        self._lay_out()
        self.show_whether_any(any_conversation=False)

    def _lay_out(self) -> None:
        centre = Qt.AlignmentFlag.AlignHCenter
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        buttons.addStretch(1)
        buttons.addWidget(self.add_person)
        buttons.addWidget(self.new_group)
        buttons.addStretch(1)
        hints = QHBoxLayout()
        hints.setSpacing(5)
        hints.addStretch(1)
        for key, words in (
            (tr("Ctrl P"), tr("Person")),
            (tr("Ctrl N"), tr("Group")),
            (tr("Ctrl J"), tr("Join")),
            ("F1", tr("How it works")),
        ):
            hints.addWidget(KeyCap(key))
            hints.addWidget(Text(words, face="small", colour="ink3"))
            hints.addSpacing(8)
        hints.addStretch(1)
        theme_changed.connect(self._dress)
        self._dress()
        page = QVBoxLayout(self)
        page.setContentsMargins(12, 12, 12, 42)
        page.addStretch(1)
        page.addWidget(ThreadPicture(), 0, centre)
        page.addSpacing(16)
        page.addWidget(self._title, 0, centre)
        page.addSpacing(2)
        page.addWidget(self._words, 0, centre)
        page.addSpacing(18)
        page.addLayout(buttons)
        page.addSpacing(10)
        page.addWidget(self.join, 0, centre)
        page.addSpacing(22)
        page.addLayout(hints)
        page.addStretch(1)

    def show_whether_any(self, *, any_conversation: bool) -> None:
        if any_conversation:
            self._title.setText(tr("Choose a conversation"))
            self._words.setText(tr("Pick one on the left, or start another."))
        else:
            self._title.setText(tr("No conversation yet"))
            self._words.setText(
                tr(
                    "Add a person, start a group, or join one with an invitation."
                    " Everyone in it sees the same messages in the same order."
                )
            )

    def _dress(self) -> None:
        self._words.set_column(current_theme().metrics.scaled(_COLUMN))
