"""Commands about one message of the open conversation that need no sheet, and deleting with undo.

A message that is to be deleted for everybody waits ten seconds before the others are asked: who
changes their mind has said nothing.  Leaving the program does not wait.
"""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine.api import ChatEngine
from engine.core.emoji import without_selectors
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import ConversationId, MessageId
from engine.events import MessageView
from ui.tasks import Tasks
from ui.translate import tr

UNDO_MS = 10_000


class MessageCommands(QObject):
    reactions_went = Signal(tuple)
    """Emoji of ours that count no more, as a newer one came."""

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        open_id: Callable[[], ConversationId | None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._open_id = open_id

    def react(self, message: MessageView, emoji: str) -> None:
        self._react(message, emoji, active=True)

    def toggle_reaction(self, message: MessageView, emoji: str) -> None:
        """React, or take the reaction back if it was ours."""
        key = without_selectors(emoji)
        mine = any(each.mine and without_selectors(each.emoji) == key for each in message.reactions)
        self._react(message, emoji, active=not mine)

    def _react(self, message: MessageView, emoji: str, *, active: bool) -> None:
        async def work() -> None:
            gone = await self._engine.timeline.react(
                message.conversation_id, message.message_id, emoji, active=active
            )
            if gone:
                self.reactions_went.emit(tuple(gone))

        purpose = tr("send the reaction") if active else tr("take the reaction back")
        self._tasks.spawn(work, purpose=purpose)

    def fetch_quoted(self, message_id: MessageId) -> None:
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                try:
                    await self._engine.timeline.fetch_quoted(open_id, message_id)
                except CommandError as error:
                    if error.refusal is not CommandRefusal.NOT_FOR_US:  # The quote says it itself.
                        raise

            self._tasks.spawn(work, purpose=tr("ask for the quoted message"))


class Deletions(QObject):
    """Messages that are about to be deleted for everybody."""

    changed = Signal()
    """``waiting`` or ``leaving``."""

    def __init__(self, engine: ChatEngine, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._waiting: dict[MessageId, tuple[MessageView, QTimer]] = {}
        self._under_way: set[MessageId] = set()

    @property
    def waiting(self) -> tuple[MessageId, ...]:
        """Those that can still be kept, the newest last."""
        return tuple(self._waiting)

    @property
    def leaving(self) -> frozenset[MessageId]:
        """Those, and what is being deleted just now."""
        return frozenset(self._waiting) | self._under_way

    def begin(self, message: MessageView) -> None:
        message_id = message.message_id
        if message_id in self.leaving:
            return
        timer = QTimer(self, singleShot=True, interval=UNDO_MS)
        timer.timeout.connect(partial(self._carry_out, message_id))
        self._waiting[message_id] = (message, timer)
        timer.start()
        self.changed.emit()

    def undo(self, message_id: MessageId) -> None:
        """Nothing if it was carried out meanwhile."""
        if message_id in self._waiting:
            _message, timer = self._waiting.pop(message_id)
            timer.stop()
            self.changed.emit()

    def undo_last(self) -> None:
        if self._waiting:
            self.undo(self.waiting[-1])

    def finish(self) -> None:
        """Carry out at once what waits: the program ends."""
        for message_id in self.waiting:
            self._carry_out(message_id)

    def _carry_out(self, message_id: MessageId) -> None:
        message, timer = self._waiting.pop(message_id)
        timer.stop()
        self._under_way.add(message_id)
        self.changed.emit()

        async def work() -> None:
            try:
                await self._engine.timeline.retract(message.conversation_id, message_id)
            finally:
                self._under_way.discard(message_id)
                self.changed.emit()

        self._tasks.spawn(work, purpose=tr("delete the message for everybody"))
