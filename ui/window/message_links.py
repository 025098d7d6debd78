"""Links to a message, from a report about delivery logs: opens it, with the inspector beside it.

A link says an id and not which conversation, so each is asked, the most recent first; a look costs
a few rows.  Where the message itself is comes before where somebody only names it, since anybody
can name any id.
"""

from typing import TYPE_CHECKING

from engine.api import ChatEngine
from engine.core.errors import CommandError
from engine.core.ids import MessageId
from engine.core.message_link import MESSAGE_PREFIX, linked_message
from engine.inspection_views import MessageInspection, Whereabouts
from ui.translate import tr

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_HERE = frozenset({Whereabouts.LOGGED, Whereabouts.WAITING})


class MessageLinks:
    def __init__(self, engine: ChatEngine, window: "MainWindow") -> None:
        self._engine = engine
        self._window = window

    def show(self, link: str) -> bool:
        """False if it is another kind of link."""
        if not link.startswith(MESSAGE_PREFIX):
            return False
        one_sheet = self._window.flows.one_sheet

        async def flow() -> None:
            message_id = linked_message(link)
            found = None if message_id is None else await self._find(message_id)
            await one_sheet.uncovered()
            if found is not None:
                self._open(found)
                return
            # Seldom wanted, so not at the start.
            from ui.dialogs.message_link import LeadsNowhere  # noqa: PLC0415

            is_readable = message_id is not None
            await one_sheet.ask(LeadsNowhere(link, is_readable=is_readable, parent=self._window))

        one_sheet.start(tr("open the message"), flow)
        return True

    async def _find(self, message_id: MessageId) -> MessageInspection | None:
        named: MessageInspection | None = None
        for view in tuple(self._window.model.conversations()):
            try:
                found = await self._engine.inspection.message(view.conversation_id, message_id)
            except CommandError:  # It knows nothing of it, or was removed meanwhile.
                continue
            if found.message is not None or found.whereabouts in _HERE:
                return found
            if named is None and found.whereabouts is not Whereabouts.UNKNOWN:
                named = found
        return named

    def _open(self, found: MessageInspection) -> None:
        window, conversation_id = self._window, found.conversation_id
        if found.message is None:
            window.open_conversation(conversation_id)
        else:
            window.open_at(conversation_id, found.message.position)
        if window.pane.is_open(conversation_id):  # It may have been removed meanwhile.
            window.inspector.show_message(found.message_id)
