"""Notices about members who told different people different things, and their sheet.

Told once for each author and conversation while the window is open: when it is found, or when the
conversation is opened.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from engine.events import ForksFound, ForkView, NoticeLevel
from ui.dialogs.fork import ForkSheet, fork_words
from ui.foreign_text import one_line
from ui.translate import tr
from ui.window.notices import Notice
from ui.window.one_sheet import OneSheet

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_MAX_NAME = 60


class ForkNotices(QObject):
    def __init__(
        self,
        engine: ChatEngine,
        window: "MainWindow",
        one_sheet: OneSheet,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = window.tasks
        self._notices = window.notices
        self._one = one_sheet
        self._model = window.model
        self._now = now
        self._window = window
        self._told: set[str] = set()
        window.bridge.forks_found.connect(self._found)

    def opened(self, conversation_id: ConversationId) -> None:
        """Tell of those that were found before this window was there."""

        async def work() -> None:
            self._tell(await self._engine.timeline.forks(conversation_id))

        self._tasks.spawn(work, purpose=tr("look for signs of two stories"), retry=False)

    def _found(self, event: ForksFound) -> None:
        self._tell(event.forks)

    def _tell(self, forks: Sequence[ForkView]) -> None:
        for fork in forks:
            key = f"fork/{fork.conversation_id}/{fork.sender_id}"
            if key in self._told:
                continue
            self._told.add(key)
            view = self._model.conversation(fork.conversation_id)
            name = one_line(view.name, _MAX_NAME) if view is not None else ""
            words = fork_words(fork)
            notice = Notice(
                key=key,
                level=NoticeLevel.WARNING,
                text=f"{name}: {words}" if name else words,
                actions=((tr("Show"), partial(self._show, fork)),),
            )
            self._notices.raise_notice(notice)

    def _show(self, fork: ForkView) -> None:
        async def flow() -> None:
            proof = await self._engine.timeline.fork_proof(fork)
            await self._one.ask(ForkSheet(fork, proof, self._now(), self._window))

        self._one.start(tr("show both messages"), flow)
