"""Says what is known of a message.  Implements ``engine.api.Inspection``.

A look reads a few rows by their keys, on the storage thread; nothing is kept up for it, and nothing
is read while nobody looks.
"""

from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import ConversationId, MessageId
from engine.core.records import ContactRecord
from engine.inspection_views import MessageInspection
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.inspection.reading import read_mvds, read_sds
from engine.runtime.inspection.views import Looking, channel_inspection, pair_inspection
from engine.runtime.runner_context import RunnerContext


class Inspection:
    """``engine.api.Inspection``."""

    def __init__(self, context: RunnerContext, conversations: Conversations) -> None:
        self._context = context
        self._conversations = conversations

    async def message(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> MessageInspection:
        runner, context = self._conversations.runner(conversation_id), self._context
        about = runner.record
        if isinstance(about, ContactRecord):
            facts = await context.storage.run(read_mvds, context.store, about, message_id)
            if facts is not None:
                return pair_inspection(self._looking(runner, message_id), about, facts)
        else:
            found = await context.storage.run(read_sds, context.store, about, message_id)
            if found is not None:
                return channel_inspection(self._looking(runner, message_id), about, found)
        raise CommandError(CommandRefusal.NO_MESSAGE)

    def _looking(self, runner: ConversationRunner, message_id: MessageId) -> Looking:
        context = self._context
        return Looking(
            message_id=message_id,
            own_id=context.own_id,
            members=runner.members,
            claimed=runner.claimed_by(message_id),
            copies=context.copies,
            shown=context.files.shown,
            looked_ms=context.clock.steady_ms(),
        )
