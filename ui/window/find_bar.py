"""Searches the open conversation (Ctrl+F): a line under its header, and arrows from hit to hit.

The newest message that was found comes first; each is shown at its place in the timeline, and
marked there until another is.  The next letter ends a search that is still under way.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout

from engine.answers import FoundView, SearchAnswer
from engine.api import ChatEngine
from engine.core.ids import ConversationId, Position
from engine.core.search import FoundPlace
from ui.controls import Area, IconButton, SearchLine, Text
from ui.foreign_text import one_line
from ui.speaking import announce
from ui.tasks import Tasks
from ui.translate import tr

if TYPE_CHECKING:
    from asyncio import Task

TYPING_MS = 150
"""After the last letter, before it is searched for."""
_LONGEST, _LONGEST_NAME = 2_000, 40


class FindLine(SearchLine):
    stepped = Signal(int)
    """So many hits further into the past."""
    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        match event.key():
            case Qt.Key.Key_Escape:
                self.left.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.stepped.emit(-1 if back else 1)
            case Qt.Key.Key_Up:
                self.stepped.emit(1)
            case Qt.Key.Key_Down:
                self.stepped.emit(-1)
            case _:
                super().keyPressEvent(event)


class FindBar(Area):
    chosen = Signal(Position)
    unchosen = Signal()
    """What was found and chosen is no longer what is asked for."""
    searched = Signal(str)
    """What the messages are searched for; "" once it is over."""
    closed = Signal()

    def __init__(
        self, engine: ChatEngine, tasks: Tasks, open_id: Callable[[], ConversationId | None]
    ) -> None:
        super().__init__("surface", edges=("bottom",))
        self._engine = engine
        self._tasks = tasks
        self._open_id = open_id
        self._task: Task[None] | None = None
        self._found: list[FoundView] = []
        self._has_more = False
        self._at = 0
        self.line = FindLine()
        self.line.setMaxLength(_LONGEST)
        self.line.setPlaceholderText(tr("Search this conversation"))
        self.line.setAccessibleName(tr("Search this conversation"))
        self.count = Text(face="label", colour="ink2")
        self.older = IconButton("up", tr("Earlier message that was found"), side=30)
        self.newer = IconButton("down", tr("Later message that was found"), side=30)
        self.close_button = IconButton("close", tr("Close the search"), side=30)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.setSpacing(6)
        row.addWidget(self.line, 1)
        for widget in (self.count, self.older, self.newer, self.close_button):
            row.addWidget(widget)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(self._search)
        self.line.textChanged.connect(self._typed)
        self.line.stepped.connect(self.step)
        self.line.left.connect(self.leave)
        self.older.clicked.connect(lambda: self.step(1))
        self.newer.clicked.connect(lambda: self.step(-1))
        self.close_button.clicked.connect(self.leave)
        self.hide()

    def begin(self) -> None:
        """Show it, ready to type."""
        if self._open_id() is None:
            return
        self.show()
        self.line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.line.selectAll()
        self._show_count()

    def leave(self) -> None:
        if self.isVisible():
            self.closed.emit()  # First: what goes away with the focus gives it to anybody.
            self.forget()

    def forget(self) -> None:
        """Another conversation is open, or none."""
        self.hide()
        self.line.clear()
        self._stop()

    def step(self, further: int) -> None:
        """To another hit; the first Enter searches at once."""
        if self._typing.isActive():
            self._typing.stop()
            self._search()
        elif self._found and self._has_more and self._at + further >= len(self._found):
            if self._task is None or self._task.done():
                self._search(before=self._found[-1].place)
        elif self._found:
            self._go(max(0, min(self._at + further, len(self._found) - 1)))

    def _typed(self) -> None:
        self._stop()
        self._typing.start(TYPING_MS)
        self._show_count()

    def _stop(self) -> None:
        self._typing.stop()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._found:
            self.unchosen.emit()
        self._found, self._has_more, self._at = [], False, 0
        self.searched.emit("")

    def _search(self, before: FoundPlace | None = None) -> None:
        conversation_id, text = self._open_id(), self.line.text()
        if conversation_id is None or not text.strip():
            return

        async def search() -> None:
            answer = await self._engine.search.find(
                text, conversation_id=conversation_id, before=before
            )
            self._task = None
            if conversation_id == self._open_id() and text == self.line.text():
                self._show(answer)

        self._task = self._tasks.spawn(search, purpose=tr("search"))

    def _show(self, answer: SearchAnswer) -> None:
        first = len(self._found)
        self._found += answer.found
        self._has_more = answer.has_more
        self.searched.emit(self.line.text())
        if answer.found:
            self._go(first)
        else:
            self._show_count()
            announce(self.line, self.count.text())

    def _go(self, at: int) -> None:
        self._at = at
        self._show_count()
        found = self._found[at]
        sender = tr("You") if found.is_own else one_line(found.sender_name, _LONGEST_NAME)
        announce(self.line, f"{self.count.text()}, {sender}, {found.excerpt.text}")
        self.chosen.emit(found.position)

    def _show_count(self) -> None:
        has_asked = bool(self.line.text().strip())
        is_known = has_asked and self._task is None and not self._typing.isActive()
        if self._found:
            many = (
                tr("{number} of {total} or more") if self._has_more else tr("{number} of {total}")
            )
            words = many.format(number=self._at + 1, total=len(self._found))
        else:
            words = tr("Nothing found") if is_known else ""
        self.count.setText(words)
        self.count.setAccessibleName(words)
        self.older.setEnabled(self._has_more or self._at + 1 < len(self._found))
        self.newer.setEnabled(self._at > 0)
