"""The sheet about a group that one asked to be let into: how it stands, and how to end it."""

from datetime import datetime

from PySide6.QtWidgets import QWidget

from engine.governance_views import JoinView
from ui.dialogs.sheet import Sheet
from ui.governing_words import join_words
from ui.translate import tr


class WaitingToBeLetIn(Sheet):
    """Accepted: forget it.  ``wants_another``: with another invitation instead."""

    def __init__(self, join: JoinView, now: datetime, parent: QWidget | None = None) -> None:
        said = join_words(join, now)
        super().__init__(said.title, said.words, parent=parent)
        self.wants_another = False
        self.forget = self.add_button(
            tr("Stop asking") if said.goes_on else tr("Remove from the list"),
            left=True,
            kind="danger" if said.goes_on else "plain",
        )
        self.forget.clicked.connect(self.accept)
        close = self.add_button(tr("Close"))
        close.clicked.connect(self.reject)
        self.another = self.add_button(tr("Use another invitation…"), kind="primary")
        self.another.setVisible(not said.goes_on)
        self.another.clicked.connect(self._use_another)
        close.setDefault(True)
        close.setFocus()

    def _use_another(self) -> None:
        self.wants_another = True
        self.reject()
