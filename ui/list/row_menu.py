"""What can be done with a conversation from its row: by the right button or the menu key."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from engine.core.ids import ConversationId
from engine.events import ConversationView
from ui.icons import icon
from ui.mute_entries import MuteEntries, MuteWish
from ui.theme import current_theme
from ui.translate import tr


class RowCommands(Struct, frozen=True):
    open: Callable[[ConversationId], None]
    pin: Callable[[ConversationId, bool], None]
    mute: Callable[[ConversationId, MuteWish], None]


class RowMenu(QMenu):
    def __init__(
        self,
        conversation: ConversationView,
        commands: RowCommands,
        parent: QWidget,
        *,
        is_pinned: bool,
        now: datetime,
    ) -> None:
        super().__init__(parent)
        this = conversation.conversation_id
        self._add(tr("Open"), "compose", lambda: commands.open(this))
        self.pin = self._add(
            tr("Unpin") if is_pinned else tr("Pin to the top"),
            "pin",
            lambda: commands.pin(this, not is_pinned),
        )
        self.mute = MuteEntries(self, lambda wish: commands.mute(this, wish))
        self.mute.show_muted(conversation, now)
        self.setAccessibleName(tr("What can be done with it"))

    def _add(self, text: str, icon_name: str, run: Callable[[], None]) -> QAction:
        theme = current_theme()
        action = self.addAction(icon(icon_name, theme.ink2, theme.metrics.scaled(16)), text)
        action.triggered.connect(lambda _checked=False: run())
        return action
