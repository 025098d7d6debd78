"""Above the conversations: the groups that one asked to be let into, and how each stands.

They are no conversations yet, so they have rows of their own, which open a sheet.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from engine.core.ids import ConversationId
from engine.governance_views import JoinView
from ui.avatar import Avatar
from ui.controls import ElidedText
from ui.foreign_text import one_line
from ui.governing_words import join_words
from ui.side.panel import PressableRow
from ui.tips import set_tip
from ui.translate import tr

_AVATAR, _RAIL_AVATAR = 42, 40
_MOST_SHOWN = 3
"""Rows that take room from the conversations; more are scrolled to."""


class WaitingRow(PressableRow):
    def __init__(self, *, is_rail: bool) -> None:
        super().__init__()
        self._avatar = Avatar(_RAIL_AVATAR if is_rail else _AVATAR, is_group=True)
        self.name = ElidedText(face="body", strong=True)
        self.line = ElidedText(face="label", colour="accentInk")
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.name)
        words.addWidget(self.line)
        self.row.addWidget(self._avatar)
        if is_rail:
            self.row.setContentsMargins(6, 6, 6, 6)
            self.name.hide()
            self.line.hide()
        else:
            self.row.setContentsMargins(8, 9, 8, 9)
            self.row.setSpacing(11)
            self.row.addLayout(words, 1)

    def show_join(self, join: JoinView, now: datetime) -> None:
        name, said = one_line(join.group_name, 120), join_words(join, now)
        self._avatar.show_identity(join.conversation_id, name)
        self.name.setText(name)
        self.line.setText(said.line)
        self.line.recolour("accentInk" if said.goes_on else "danger")
        whole = tr("{name}: {words}").format(name=name, words=said.line)
        self.setAccessibleName(whole)
        if not self.name.isVisibleTo(self):
            set_tip(self, whole)


class WaitingRows(QScrollArea):
    chosen = Signal(str)
    """The id that the conversation would have."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._joins: Sequence[JoinView] = ()
        self._is_rail = False
        self.rows: dict[ConversationId, WaitingRow] = {}
        self.setAccessibleName(tr("Waiting to be let in"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(8, 0, 8, 4)
        self._column.setSpacing(0)
        self.setWidget(content)
        self.viewport().setAutoFillBackground(False)
        content.setAutoFillBackground(False)
        self.hide()

    def set_rail(self, is_rail: bool) -> None:
        if is_rail is not self._is_rail:
            self._is_rail = is_rail
            self._column.setContentsMargins(*((8, 0, 8, 4) if not is_rail else (4, 0, 4, 4)))
            self._forget(set())
            self.show_joins(self._joins)

    @property
    def is_wanted(self) -> bool:
        return bool(self._joins)

    def show_joins(self, joins: Sequence[JoinView]) -> None:
        """The newest first.  A row stays as long as its group waits, with the focus it has."""
        self._joins = joins
        self._forget({join.conversation_id for join in joins})
        for place, join in enumerate(joins):
            row = self.rows.get(join.conversation_id)
            if row is None:
                row = self.rows[join.conversation_id] = WaitingRow(is_rail=self._is_rail)
                row.clicked.connect(partial(self._choose, join.conversation_id))
                row.focused.connect(self.ensureWidgetVisible)
            if self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            row.show_join(join, self._now())
        self.setVisible(bool(joins))
        self._fit()

    def _choose(self, conversation_id: ConversationId, _checked: bool = False) -> None:
        self.chosen.emit(conversation_id)

    def _forget(self, wanted: set[ConversationId]) -> None:
        for each in [each for each in self.rows if each not in wanted]:
            row = self.rows.pop(each)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()

    def _fit(self) -> None:
        heights = [row.sizeHint().height() for row in self.rows.values()]
        edges = self._column.contentsMargins()
        self.setFixedHeight(sum(heights[:_MOST_SHOWN]) + edges.top() + edges.bottom())
