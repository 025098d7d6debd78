"""A pasted link, read while one types: by the engine, and without any network.

Invitations and contact links are pasted the same way: among words, broken into lines, or the one
where the other belongs.  What a link says is shown by a card before anybody agrees to anything;
what is wrong with it stands below the field.  Which kind it is, and what follows, is the dialog's.
"""

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextOption
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.core.errors import InviteError
from ui.controls import Card
from ui.dialogs.pasted_picture import holds_picture
from ui.dialogs.sheet import field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.lines_field import LinesField
from ui.people import misplaced_link_words

_LINES = 3
MAX_LINK_CHARACTERS = 16 * 1024
_SCHEME = "causerie:"
_LINK = re.compile(rf"{_SCHEME}(?:contact|join|channel)/[\w-]+", re.ASCII)

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class LinkWords(Struct, frozen=True, kw_only=True):
    """What the field is called and hints, what is said of too much, and what a link starts with."""

    label: str
    placeholder: str
    too_long: str
    prefix: str


class ShowsPreview(Protocol[P_contra]):
    """A card that can show what a link says."""

    def show_preview(self, preview: P_contra, /) -> None: ...


class LinkField(LinesField):
    """Several lines high, but a link has only one: Enter means done."""

    entered = Signal()
    picture_given = Signal(QMimeData)
    """Pasted or dropped here; the code reader takes it, and the text stays as it is."""

    def __init__(self, placeholder: str) -> None:
        super().__init__(_LINES)
        self.takes_pictures = False
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.setPlaceholderText(placeholder)

    def links(self) -> tuple[str, ...]:
        """What may be the link: all of it, broken into lines or not, or what is among words."""
        whole = "".join(self.toPlainText().split())
        among = _LINK.search(self.toPlainText())
        if among is None or among[0] == whole:
            return (whole,) if whole else ()
        return (among[0], whole) if whole.startswith(_SCHEME) else (whole, among[0])

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return self._takes(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if self._takes(source):
            self.picture_given.emit(source)
        else:
            super().insertFromMimeData(source)

    def _takes(self, source: QMimeData) -> bool:
        return self.takes_pictures and holds_picture(source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.entered.emit()
        else:
            super().keyPressEvent(event)


class PastedLink(QWidget, Generic[P]):
    """The field with its live answer."""

    judged = Signal()

    def __init__(
        self,
        words: LinkWords,
        preview: Callable[[str], P],
        card: Card,
        shows: ShowsPreview[P],
    ) -> None:
        """``card`` and ``shows`` are one object: the widget, and what it can do."""
        super().__init__()
        self._words = words
        self._preview = preview
        self._shows = shows
        self._link = ""
        self.found: P | None = None
        self.field = LinkField(words.placeholder)
        self.problem = problem_line()
        self.card = card
        card.hide()
        self._rows = layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(field_label(words.label, self.field))
        layout.addWidget(self.field)
        layout.addWidget(self.problem)
        layout.addWidget(card)
        self.field.textChanged.connect(self._judge)

    def put_above_card(self, widget: QWidget) -> None:
        """Another way to a link."""
        self._rows.insertWidget(self._rows.indexOf(self.card), widget)

    def link(self) -> str:
        """The one that could be read; "" if none could."""
        return self._link

    def say(self, problem: str) -> None:
        say_problem(self.problem, problem)

    def would_do(self, link: str) -> bool:
        """Whether it could be agreed to, if it were pasted."""
        try:
            self._preview(link)
        except InviteError:
            return False
        return True

    def _judge(self) -> None:
        self.found, self._link, problem = self._read()
        self.say(problem)
        self.card.setVisible(self.found is not None)
        if self.found is not None:
            self._shows.show_preview(self.found)
        self.judged.emit()

    def _read(self) -> tuple[P | None, str, str]:
        """The first link that holds; otherwise what is wrong with the last."""
        if self.field.document().characterCount() > MAX_LINK_CHARACTERS:
            return None, "", self._words.too_long
        problem = ""
        for link in self.field.links():
            problem = misplaced_link_words(link, wanted=self._words.prefix)
            if problem:
                continue
            try:
                return self._preview(link), link, ""
            except InviteError as error:
                problem = error_words(error)
        return None, "", problem
