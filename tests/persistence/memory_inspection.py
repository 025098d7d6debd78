"""What the memory store says of one message, from the tables of the simulator's model."""

from collections.abc import Mapping, Sequence

from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.core.inspection import LoggedRaw, PlacedMessage, WaitingMessage
from engine.core.sds.vocabulary import (
    HolderEntry,
    IncomingEntry,
    LogEntry,
    MissingEntry,
    OutgoingEntry,
)
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
                each.message.message_id,
                each.message.sender_id,
                each.message.causal_history,
                each.message.lamport_timestamp,
                each.received_ms,
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

    def placed(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[PlacedMessage]:
        conversation = self._conversations.get(conversation_id)
        earlier = sorted(
            (
                entry
                for entry in self._tables(conversation_id).log.values()
                if before is None or entry.position < before
            ),
            key=lambda entry: entry.position,
        )
        return [
            conversation.placed(entry) for entry in earlier[-limit:] if conversation is not None
        ]

    def came_ms(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, UnixMs]:
        conversation = self._conversations.get(conversation_id)
        came = {} if conversation is None else conversation.came
        return {each: came[each] for each in message_ids if each in came}

    def raws(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, bytes]:
        raw = self._tables(conversation_id).raw
        return {each: raw[each] for each in message_ids if each in raw}

    def holders_of(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, list[HolderEntry]]:
        tables = self._tables(conversation_id)
        found = {each: tables.holders(each) for each in message_ids}
        return {each: holders for each, holders in found.items() if holders}

    def missing_between(
        self,
        conversation_id: ConversationId,
        first: Position | None,
        before: Position | None,
        /,
        *,
        limit: int,
    ) -> list[MissingEntry]:
        def is_between(place: Position | None) -> bool:
            if place is None:
                return before is None
            return (first is None or place >= first) and (before is None or place < before)

        missing = self._tables(conversation_id).missing.values()
        return [each for each in missing if is_between(each.before)][:limit]

    def _tables(self, conversation_id: ConversationId) -> ChannelStore:
        conversation = self._conversations.get(conversation_id)
        return ChannelStore() if conversation is None else conversation.channel.tables
