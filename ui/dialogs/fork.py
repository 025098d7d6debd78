"""Two messages of one author that contradict each other, and the proof to show to others."""

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from engine.answers import ForkProof
from engine.events import ForkView, MessageView
from ui.controls import Card, Text
from ui.conversation_words import kind_words
from ui.dialogs.sheet import Sheet
from ui.foreign_text import breaking, one_line
from ui.theme import current_theme
from ui.times import spoken_time
from ui.translate import tr

_LONGEST = 600
_MAX_NAME = 40
_STACK_BELOW = 400


def fork_words(fork: ForkView) -> str:
    if fork.is_self:
        return tr("This profile was used in two places at once.")
    return tr("{name} told different people different things.").format(
        name=one_line(fork.sender_name, _MAX_NAME) or "?"
    )


def _meaning(fork: ForkView) -> str:
    if fork.is_self:
        return tr(
            "Two devices, or a copy of this profile, counted their messages alike and said"
            " different things. Both messages are kept. Use a profile in one place only."
        )
    return tr(
        "Both messages are signed, and only one of them fits into the order in which they say that"
        " they spoke. Not everybody was sent the same; both are kept here."
    )


class ForkSheet(Sheet):
    def __init__(
        self, fork: ForkView, proof: ForkProof, now: datetime, parent: QWidget | None = None
    ) -> None:
        super().__init__(fork_words(fork), _meaning(fork), parent=parent)
        self._proof = proof.text
        narrow = self.width() / current_theme().metrics.factor < _STACK_BELOW
        directions = QBoxLayout.Direction
        both = QBoxLayout(directions.TopToBottom if narrow else directions.LeftToRight)
        both.setSpacing(10)
        self.stories = tuple(_Story(message, now) for message in proof.messages)
        for story in self.stories:
            both.addWidget(story, 1)
        self.body.addLayout(both)
        self.copy = self.add_button(tr("Copy the proof"), left=True)
        self.close_button = self.add_button(tr("Close"), kind="primary")
        self.close_button.setDefault(True)
        self.copy.clicked.connect(self._copy)
        self.close_button.clicked.connect(self.reject)
        self.close_button.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._proof)
        self.copy.rename(tr("Copied"))


class _Story(Card):
    def __init__(self, message: MessageView | None, now: datetime) -> None:
        super().__init__("surface2", "line")
        rows = QVBoxLayout(self)
        rows.setContentsMargins(12, 10, 12, 10)
        rows.setSpacing(4)
        texts = _texts(message, now)
        self.setAccessibleName(". ".join(text.text() for text in texts))
        for text in texts:
            rows.addWidget(text)
        rows.addStretch(1)


def _texts(message: MessageView | None, now: datetime) -> Sequence[Text]:
    if message is None:
        return (Text(tr("Not shown here: it waits, or was deleted."), colour="ink2", wrap=True),)
    said = Text(breaking(one_line(kind_words(message), _LONGEST)), face="body", wrap=True)
    flags = Qt.TextInteractionFlag
    said.setTextInteractionFlags(flags.TextSelectableByMouse | flags.TextSelectableByKeyboard)
    place = tr("Place in the order: {number}").format(number=message.position.lamport_timestamp)
    return (
        said,
        Text(
            tr("Signed {time}").format(time=spoken_time(message.sent_ms, now)),
            face="caption",
            colour="ink2",
        ),
        Text(place, face="caption", colour="ink3", wrap=True),
    )
