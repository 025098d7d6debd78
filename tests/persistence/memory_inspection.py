"""What the memory store says of one message, from the tables of the simulator's model."""

from collections.abc import Mapping, Sequence

from engine.core.ids import ConversationId, MessageId, Position
from engine.core.inspection import LoggedRaw, WaitingMessage
from engine.core.sds.vocabulary import IncomingEntry, LogEntry, MissingEntry, OutgoingEntry
from engine.sim.channel_store import ChannelStore
from tests.persistence.memory_conversation import MemoryConversation


class MemoryInspection:
    def __init__(self, conversations: Mapping[ConversationId, MemoryConversation]) -> None:
        self._conversations = conversations

    def log_entry(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> LogEntry | None:
        return self._tables(conversation_id).log.get(message_id)

    def incoming(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> IncomingEntry | None:
        return self._tables(conversation_id).incoming.get(message_id)

    def waiting(self, conversation_id: ConversationId, /, *, limit: int) -> list[WaitingMessage]:
        entries = list(self._tables(conversation_id).incoming.values())[:limit]
        return [
            WaitingMessage(
                each.message.message_id, each.message.sender_id, each.message.causal_history
            )
            for each in entries
        ]

    def outgoing(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> OutgoingEntry | None:
        return self._tables(conversation_id).outgoing.get(message_id)

    def missing(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, MissingEntry]:
        missing = self._tables(conversation_id).missing
        return {each: missing[each] for each in message_ids if each in missing}

    def following(
        self, conversation_id: ConversationId, after: Position, /, *, limit: int
    ) -> list[LoggedRaw]:
        tables = self._tables(conversation_id)
        later = sorted(
            (entry for entry in tables.log.values() if entry.position > after),
            key=lambda entry: entry.position,
        )
        return [
            LoggedRaw(each.position, each.sender_id, tables.raw[each.position.message_id])
            for each in later[:limit]
        ]

    def _tables(self, conversation_id: ConversationId) -> ChannelStore:
        conversation = self._conversations.get(conversation_id)
        return ChannelStore() if conversation is None else conversation.channel.tables
