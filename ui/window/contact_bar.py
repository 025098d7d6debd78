"""The bar above the composer while two people have not agreed to talk: why, and what to do.

It can be reached by Tab and is read as a whole.  It never takes the focus to one of its buttons by
itself: nobody should accept a stranger with the Enter that opened the conversation.
"""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine.events import ConversationView
from ui.controls import Area, Button, ButtonKind, Text
from ui.dialogs.group import selectable
from ui.people import Answer, Standing, answer_words, standing_of
from ui.theme import current_theme, theme_changed
from ui.translate import tr
from ui.window.standing_bar import fit_height, paint_focus, stack

_KINDS: dict[Answer, ButtonKind] = {
    Answer.ACCEPT: "primary",
    Answer.ASK_AGAIN: "primary",
    Answer.SEND_AGAIN: "primary",
    Answer.BLOCK: "danger",
}


class ContactBar(Area):
    answered = Signal(Answer)
    fitted = Signal()
    """It became a column of buttons, or is none any more."""

    def __init__(self) -> None:
        super().__init__("header", edges=("top",))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._standing: Standing | None = None
        self._waiting = False
        self.is_column = False
        """It needs the room of the composer, too."""
        self.title = Text(face="body", strong=True, wrap=True)
        self.words = Text(face="label", colour="ink2", wrap=True)
        self.fingerprint = selectable("")
        self.buttons: dict[Answer, Button] = {}
        self._foot = QWidget()
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._foot)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        for answer in (
            Answer.BLOCK,
            Answer.DECLINE,
            Answer.ACCEPT,
            Answer.UNBLOCK,
            Answer.ASK_AGAIN,
            Answer.WITHDRAW,
            Answer.SEND_AGAIN,
        ):
            button = Button(answer_words(answer), kind=_KINDS.get(answer, "plain"), size="big")
            button.clicked.connect(partial(self._answer, answer))
            self._row.addWidget(button)
            self.buttons[answer] = button
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self.title)
        texts.addWidget(self.words)
        self._proof = QWidget()
        proof = QHBoxLayout(self._proof)
        proof.setContentsMargins(0, 0, 0, 0)
        proof.setSpacing(8)
        proof.addWidget(Text(tr("Their fingerprint"), face="caption", colour="ink3"))
        proof.addWidget(self.fingerprint, 1)
        texts.addWidget(self._proof)
        self._whole = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._whole.addLayout(texts, 1)
        self._whole.addWidget(self._foot, 0, Qt.AlignmentFlag.AlignVCenter)
        theme_changed.connect(self._dress)
        self.hide()
        self._dress()

    def show_standing(
        self, conversation: ConversationView | None, groups: Sequence[ConversationView] = ()
    ) -> None:
        """``groups``: in which both are."""
        standing = None if conversation is None else standing_of(conversation, groups)
        if standing == self._standing:
            return
        self._standing = standing
        self.setVisible(standing is not None)
        if standing is None:
            self._become_column(column=False)
            return
        self.title.setText(standing.title)
        self.words.setText(standing.words)
        self.fingerprint.setText(standing.fingerprint)
        fingerprint = tr("Their fingerprint: {fingerprint}")
        fingerprint = fingerprint.format(fingerprint=standing.fingerprint)
        self.fingerprint.setAccessibleName(fingerprint)
        self._proof.setVisible(bool(standing.fingerprint))
        said = f"{standing.title}. {standing.words}"
        if standing.fingerprint:
            said = f"{said} {fingerprint}"
        self.setAccessibleName(said)
        for answer, button in self.buttons.items():
            button.setVisible(answer in standing.answers)
        self._foot.setVisible(bool(standing.answers))
        self._fit()

    def wait_for_engine(self, *, waiting: bool) -> None:
        """No second answer while one is on its way; the keys stay where they are."""
        self._waiting = waiting

    def _answer(self, answer: Answer) -> None:
        if not self._waiting:
            self.answered.emit(answer)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        """The parts know their heights only once they have been laid out at the new width."""
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return handled

    def _fit(self) -> None:
        """Beside each other, below each other, or at worst a column of buttons under few words."""
        if self._standing is None:
            return
        shown = [self.buttons[answer] for answer in self._standing.answers]
        column = stack(self, self._whole, self._row, shown)
        self.words.setVisible(not column)
        fit_height(self, self._whole)
        self._become_column(column=column)

    def _become_column(self, *, column: bool) -> None:
        if column is not self.is_column:
            self.is_column = column
            self.fitted.emit()

    def _dress(self) -> None:
        gap = current_theme().metrics.gap
        self._whole.setContentsMargins(gap(20), gap(12), gap(14), gap(12))
        self._whole.setSpacing(gap(12))
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        paint_focus(self)
