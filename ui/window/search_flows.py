"""What Ctrl+K opens: gathers names and commands, asks the engine for messages, and goes there.

Letters are answered at once from what the window knows.  Messages are asked for once one stops
typing for a moment; the next letter ends a search that is still under way.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from engine.answers import FoundView, SearchAnswer
from engine.api import ChatEngine
from engine.core.ids import ParticipantId, Position
from engine.core.search import FoundPlace
from engine.events import ConversationView, SearchIndexed
from ui.conversation_words import is_group
from ui.dialogs.search import Acquaintance, Command, Entry, Filters, SearchSheet
from ui.fuzzy import fit
from ui.regional import in_order
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.one_sheet import OneSheet

if TYPE_CHECKING:
    from asyncio import Task

TYPING_MS = 120
_MOST_NAMES, _MOST_COMMANDS = 5, 4
_MOST_MESSAGES = 1_000


class SearchFlows(QObject):
    conversation_chosen = Signal(str)
    message_chosen = Signal(str, Position)
    person_chosen = Signal(str, str)
    """Somebody of a group: the group's id and theirs."""

    def __init__(  # noqa: PLR0913, PLR0917 - what is searched
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        one_sheet: OneSheet,
        conversations: Callable[[], Sequence[ConversationView]],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._one = one_sheet
        self._conversations = conversations
        self._now = now
        self.sheet: SearchSheet | None = None
        self._is_behind = False
        """The open sheet says that not all messages can be found."""

    def open(self, text: str = "") -> None:
        if self._engine.identity() is None:
            return

        async def flow() -> None:
            sheet = SearchSheet(self._people(), self._now, self._window)
            searching = _Searching(self._engine, self._tasks, sheet, self._names)
            self.sheet, self._is_behind = sheet, False
            sheet.line.setText(text)
            searching.ask(text, sheet.filters())
            self.show_indexed(self._engine.search.indexed())
            try:
                agreed = await self._one.ask(sheet)
            finally:
                self.sheet = None
            if agreed and sheet.chosen is not None:
                self._go(sheet.chosen)

        self._one.start(tr("search"), flow)

    def show_indexed(self, indexed: SearchIndexed) -> None:
        if self.sheet is None:
            return
        self.sheet.show_indexed(indexed)
        if self._is_behind and not indexed.left:
            self.sheet.say(tr("All messages can be found."))
        self._is_behind = indexed.left > 0
        if indexed.left:
            share = 100 * (indexed.total - indexed.left) // max(indexed.total, 1)
            words = tr("Older messages are still being indexed: {share} % can be found.")
            self.sheet.say(words.format(share=share))

    def _go(self, entry: Entry) -> None:
        match entry:
            case ConversationView():
                self.conversation_chosen.emit(entry.conversation_id)
            case Acquaintance():
                self.person_chosen.emit(entry.group.conversation_id, entry.participant_id)
            case FoundView():
                self.message_chosen.emit(entry.conversation_id, entry.position)
            case Command():
                # The sheet that it may open comes after this one is gone.
                QTimer.singleShot(0, self, entry.run)

    # --- what the window knows --------------------------------------------------------------------

    def _people(self) -> list[tuple[ParticipantId, str]]:
        """Everybody who may have written, by name; ourselves first."""
        own = self._engine.identity()
        named: dict[ParticipantId, str] = {}
        for view in self._conversations():
            for member in view.members:
                named[member.participant_id] = member.name
        if own is not None:
            named.pop(own.participant_id, None)
        people = in_order(named.items(), key=lambda one: one[1])
        return people if own is None else [(own.participant_id, tr("You")), *people]

    def _names(self, letters: str) -> list[Entry]:
        fits = [(fit(letters, view.name), view) for view in self._conversations()]
        names: list[tuple[int, Entry]] = [(how, view) for how, view in fits if how is not None]
        if letters.strip():
            names += (
                (how, one)
                for one in self._acquaintances()
                if (how := fit(letters, one.name)) is not None
            )
        commands: list[tuple[int, Entry]] = [
            (how, one)
            for one in self._commands()
            if (how := fit(letters, one.words, scattered=False)) is not None
        ]
        if not letters.strip():
            commands = []
        names.sort(key=lambda one: one[0])
        commands.sort(key=lambda one: one[0])
        chosen = names[:_MOST_NAMES] + commands[:_MOST_COMMANDS]
        return [entry for _, entry in chosen]

    def _acquaintances(self) -> list[Acquaintance]:
        """Members of our groups; who is a contact is found by the conversation with them."""
        conversations = self._conversations()
        known = {view.contact.participant_id for view in conversations if view.contact is not None}
        groups: dict[ParticipantId, list[ConversationView]] = {}
        names: dict[ParticipantId, str] = {}
        for view in conversations:
            if not is_group(view) or view.open_channel is not None:
                continue
            for member in view.members:
                if not (member.is_self or member.has_left or member.participant_id in known):
                    groups.setdefault(member.participant_id, []).append(view)
                    names[member.participant_id] = member.name
        return [
            Acquaintance(participant_id=who, name=names[who], group=of[0], more_groups=len(of) - 1)
            for who, of in groups.items()
        ]

    def _commands(self) -> list[Command]:
        commands: list[Command] = []
        for action in self._window.actions():
            words = action.text().replace("&", "").strip()
            if words and action.isEnabled() and action.isVisible():
                commands.append(Command(words, _keys(action), action.trigger))
        return commands


def _keys(action: QAction) -> str:
    keys = action.shortcuts()
    return keys[0].toString(QKeySequence.SequenceFormat.NativeText) if keys else ""


class _Searching:
    """The messages of one sheet."""

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        sheet: SearchSheet,
        names: Callable[[str], list[Entry]],
    ) -> None:
        self._engine = engine
        self._tasks = tasks
        self._sheet = sheet
        self._names = names
        self._text, self._filters = "", Filters()
        self._messages: list[FoundView] = []
        self._has_more = False
        self._task: Task[None] | None = None
        self._typing = QTimer(sheet)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(self._search)
        sheet.asked.connect(self.ask)
        sheet.finished.connect(lambda _code: self.stop())
        sheet.more_asked.connect(self._more)
        sheet.indexing_chosen.connect(lambda active: engine.search.set_indexing(active=active))

    def ask(self, text: str, filters: Filters) -> None:
        self.stop()
        self._text, self._filters = text, filters
        self._messages, self._has_more = [], False
        only_messages = filters != Filters()
        self._sheet.show_entries([] if only_messages else self._names(text))
        if text.strip() or only_messages:
            self._typing.start(TYPING_MS)
        else:
            self._sheet.say("")

    def stop(self) -> None:
        self._typing.stop()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _more(self) -> None:
        is_asked = self._task is not None and not self._task.done()
        if self._has_more and not is_asked and 0 < len(self._messages) < _MOST_MESSAGES:
            self._search(before=self._messages[-1].place)

    def _search(self, before: FoundPlace | None = None) -> None:
        text, filters = self._text, self._filters

        async def search() -> None:
            answer = await self._engine.search.find(
                text,
                sender_id=filters.sender_id,
                since_ms=filters.since_ms,
                until_ms=filters.until_ms,
                has_file=filters.has_file,
                has_link=filters.has_link,
                before=before,
            )
            self._task = None
            if (text, filters) == (self._text, self._filters):
                self._show(answer)

        self._task = self._tasks.spawn(search, purpose=tr("search"))

    def _show(self, answer: SearchAnswer) -> None:
        self._messages += answer.found
        self._has_more = answer.has_more
        self._sheet.add_entries(answer.found)
        indexed = self._engine.search.indexed()
        if answer.is_shortened:
            self._sheet.tell(tr("That is very much: only its first words were searched for."))
        elif indexed.left:
            share = 100 * (indexed.total - indexed.left) // max(indexed.total, 1)
            words = tr("Older messages are still being indexed: {share} % can be found.")
            self._sheet.tell(words.format(share=share))
        elif not self._messages:
            self._sheet.tell(tr("No message was found."))
        else:
            many = len(self._messages)
            self._sheet.tell(
                tr("The newest %n messages", "The newest message", many)
                if answer.has_more
                else tr("%n messages", "%n message", many)
            )
