"""Notices about members beyond their daily quota: show what was set aside, or mute them.

Told when it begins, or when the conversation is opened; gone once nothing is set aside, or once
one of the two was chosen.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from engine.events import (
    ConversationChanged,
    ConversationView,
    FloodsChanged,
    FloodView,
    NoticeLevel,
)
from ui.conversation_words import flood_words
from ui.translate import tr
from ui.window.notices import Notice

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


class FloodNotices(QObject):
    def __init__(self, engine: ChatEngine, window: "MainWindow") -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = window.tasks
        self._notices = window.notices
        self._model = window.model
        self._floods: dict[ConversationId, Sequence[FloodView]] = {}
        self._told: dict[ConversationId, set[str]] = {}
        window.bridge.floods_changed.connect(self._changed)
        window.bridge.conversation_changed.connect(self._conversation_changed)

    def opened(self, conversation_id: ConversationId) -> None:
        """Tell of those that began before this window was there."""

        async def work() -> None:
            self._tell(conversation_id, await self._engine.timeline.floods(conversation_id))

        self._tasks.spawn(work, purpose=tr("look who sends unusually much"), retry=False)

    def _changed(self, event: FloodsChanged) -> None:
        self._tell(event.conversation_id, event.floods)

    def _conversation_changed(self, event: ConversationChanged) -> None:
        """Somebody may have been muted or not, elsewhere in the window."""
        floods = self._floods.get(event.conversation.conversation_id)
        if floods:
            self._show(event.conversation.conversation_id, floods, event.conversation)

    def _tell(self, conversation_id: ConversationId, floods: Sequence[FloodView]) -> None:
        self._floods[conversation_id] = floods
        self._show(conversation_id, floods, self._model.conversation(conversation_id))

    def _show(
        self,
        conversation_id: ConversationId,
        floods: Sequence[FloodView],
        view: ConversationView | None,
    ) -> None:
        members = () if view is None else view.members
        muted = {member.participant_id for member in members if member.is_muted}
        told = self._told.setdefault(conversation_id, set())
        current = {_key(flood): flood for flood in floods if flood.participant_id not in muted}
        for key in told - current.keys():
            self._notices.clear(key)
        for key, flood in current.items():
            if key not in told:
                words = flood_words(flood, "" if view is None else view.name)
                self._notices.raise_notice(self._notice(key, flood, words))
        self._told[conversation_id] = set(current)

    def _notice(self, key: str, flood: FloodView, words: str) -> Notice:
        group, who = flood.conversation_id, flood.participant_id

        async def mute() -> None:
            await self._engine.groups.set_member_muted(group, who, muted=True)

        async def show() -> None:
            await self._engine.groups.show_flood(group, who)

        actions = [(tr("Show"), partial(self._choose, key, show, tr("show the messages")))]
        if who:  # Where nobody is proved to be anybody, nobody can be muted.
            muting = partial(self._choose, key, mute, tr("mute the member"))
            actions.insert(0, (tr("Mute"), muting))
        return Notice(key=key, level=NoticeLevel.WARNING, text=words, actions=tuple(actions))

    def _choose(self, key: str, work: Callable[[], Awaitable[None]], purpose: str) -> None:
        async def chosen() -> None:
            await work()
            self._notices.clear(key)

        self._tasks.spawn(chosen, purpose=purpose)


def _key(flood: FloodView) -> str:
    return f"flood/{flood.conversation_id}/{flood.participant_id}"
