"""What is pressed in the bar about a person, as commands: accept, decline, withdraw, unblock."""

from collections.abc import Callable, Coroutine
from typing import TypeAlias

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from ui.people import Answer
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.contact_bar import ContactBar

_Command: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Answering:
    """Blocking asks first and a request is sent again, so both are led from elsewhere."""

    def __init__(self, engine: ChatEngine, tasks: Tasks, bar: ContactBar) -> None:
        self._engine = engine
        self._tasks = tasks
        self._bar = bar

    def answer(self, open_id: ConversationId, answer: Answer) -> None:
        people = self._engine.people
        commands: dict[Answer, tuple[str, _Command]] = {
            Answer.ACCEPT: (tr("accept the request"), lambda: people.accept(open_id)),
            Answer.ASK_AGAIN: (tr("ask again"), lambda: people.accept(open_id)),
            Answer.DECLINE: (tr("decline the request"), lambda: people.decline(open_id)),
            Answer.WITHDRAW: (tr("withdraw the request"), lambda: people.withdraw(open_id)),
            Answer.UNBLOCK: (
                tr("unblock the person"),
                lambda: people.set_blocked(open_id, blocked=False),
            ),
        }
        purpose, command = commands[answer]

        async def work() -> None:
            self._bar.wait_for_engine(waiting=True)
            try:
                await command()
            finally:
                self._bar.wait_for_engine(waiting=False)

        self._tasks.spawn(work, purpose=purpose)
