"""What stands in the middle of a group that nobody else is in: how others come into it."""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.controls import Button, Text
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_COLUMN = 320
_MARGIN = 12


class AloneHint(QWidget):
    invite_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._wanted = False
        self._room = QRect()
        centre = Qt.AlignmentFlag.AlignHCenter
        self._title = Text(tr("Only you are here so far"), face="heading", strong=True)
        self._words = Text(
            tr("Send somebody an invitation, or let them scan its code."), colour="ink2", wrap=True
        )
        self._words.setAlignment(centre)
        self.invite = Button(
            tr("Invite people"), kind="primary", size="big", icon_name="person-add"
        )
        self.invite.clicked.connect(self.invite_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._title, 0, centre)
        column.addSpacing(2)
        column.addWidget(self._words, 0, centre)
        column.addSpacing(14)
        column.addWidget(self.invite, 0, centre)
        theme_changed.connect(self._place)
        self.hide()

    def show_in(self, room: QRect, *, wanted: bool) -> None:
        """``room``: of the timeline, in the parent's pixels."""
        self._room, self._wanted = room, wanted
        self.setVisible(wanted)
        self._place()

    def _place(self) -> None:
        if not self._wanted:
            return
        width = min(current_theme().metrics.scaled(_COLUMN), self._room.width() - 2 * _MARGIN)
        self._words.set_column(max(1, width))
        self.adjustSize()
        place = self.rect()
        place.moveCenter(self._room.center())
        self.move(place.topLeft())
        self.raise_()
