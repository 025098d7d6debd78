"""The menu of a conversation's row, by the right button or the menu key."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from engine.core.ids import ConversationId
from engine.events import ConversationView
from ui.icons import icon
from ui.menu import Menu
from ui.mute_entries import MuteChoice, MuteEntries
from ui.theme import current_theme
from ui.translate import tr


class RowCommands(Struct, frozen=True):
    open: Callable[[ConversationId], None]
    pin: Callable[[ConversationId, bool], None]
    mute: Callable[[ConversationId, MuteChoice], None]
    archive: Callable[[ConversationId, bool], None]
    mark_unread: Callable[[ConversationId, bool], None]


class RowMarks(Struct, frozen=True, kw_only=True):
    """What the user did with it before."""

    pinned: bool
    archived: bool
    unread: bool


class RowMenu(Menu):
    def __init__(
        self,
        conversation: ConversationView,
        commands: RowCommands,
        parent: QWidget,
        *,
        marks: RowMarks,
        now: datetime,
    ) -> None:
        super().__init__(parent)
        this = conversation.conversation_id
        self._add(tr("Open"), "compose", lambda: commands.open(this))
        self.pin = self._add(
            tr("Unpin") if marks.pinned else tr("Pin to the top"),
            "pin",
            lambda: commands.pin(this, not marks.pinned),
        )
        self.pin.setVisible(not marks.archived)
        is_unread = marks.unread or bool(conversation.unread)
        self.unread = self._add(
            tr("Mark as read") if is_unread else tr("Mark as unread"),
            "check" if is_unread else "unread",
            lambda: commands.mark_unread(this, not is_unread),
        )
        self.archive = self._add(
            tr("Take out of the archive") if marks.archived else tr("Archive"),
            "archive",
            lambda: commands.archive(this, not marks.archived),
        )
        self.mute = MuteEntries(self, lambda choice: commands.mute(this, choice))
        self.mute.show_muted(conversation, now)
        self.setAccessibleName(tr("What can be done with it"))

    def _add(self, text: str, icon_name: str, run: Callable[[], None]) -> QAction:
        theme = current_theme()
        action = self.addAction(icon(icon_name, theme.ink2, theme.metrics.scaled(16)), text)
        action.triggered.connect(lambda _checked=False: run())
        return action
