"""What people say about messages in the scripted engine: answers, reactions, edits, deletions.

A part of ``ScriptedEngine`` in a file of its own.  Every command is recorded, and changes the row
as the real engine would.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from engine.answers import Arrival, HolderView, MessageInfo, ReactorView, VersionView
from engine.api import MAX_EMOJI_EACH, Mention
from engine.core.ids import ConversationId, DeliveryState, MessageId, ParticipantId, UnixMs
from engine.core.markup import find_spans
from engine.events import (
    DeliveryView,
    EngineEvent,
    MessageChanged,
    MessageView,
    QuoteView,
    ReactionView,
)
from engine.text_spans import SpanKind, TextSpan

EDITED_MS = UnixMs(1_795_000_300_000)


def quote_of(row: MessageView) -> QuoteView:
    return QuoteView(
        message_id=row.message_id,
        position=row.position,
        sender_id=row.sender_id,
        sender_name=row.sender_name,
        is_own=row.is_own,
        text=row.text,
        retracted=row.retracted,
        file=row.file,
    )


def spans_in(text: str, mentions: Sequence[Mention] = ()) -> tuple[TextSpan, ...]:
    """Markup and mentions, as they are found when a message is stored."""
    places = [(mention.start, mention.length) for mention in mentions]
    found = [
        TextSpan(
            kind=SpanKind.MENTION,
            start=mention.start,
            length=mention.length,
            target=mention.participant_id,
        )
        for mention in mentions
    ]
    found += [
        TextSpan(kind=SpanKind(s.kind), start=s.start, length=s.length, target=s.target)
        for s in find_spans(text, places)
    ]
    return tuple(sorted(found, key=lambda span: (span.start, -span.length)))


class ScriptedAnnotations:
    rows: dict[ConversationId, dict[MessageId, MessageView]]
    holder_views: tuple[HolderView, ...]

    def _enter(self, method: str, argument: object) -> None:
        raise NotImplementedError

    def tell(self, event: EngineEvent) -> None:
        raise NotImplementedError

    def alter(self, row: MessageView) -> None:
        """A new state of a row, told to the window."""
        self.rows[row.conversation_id][row.message_id] = row
        self.tell(MessageChanged(message=row))

    async def react(
        self, conversation_id: ConversationId, message_id: MessageId, emoji: str, *, active: bool
    ) -> Sequence[str]:
        self._enter("react", (message_id, emoji, active))
        row = self.rows[conversation_id][message_id]
        counts = {reaction.emoji: reaction for reaction in row.reactions}
        known = counts.get(emoji, ReactionView(emoji=emoji, count=0))
        count = known.count + (1 if active else -1)
        counts[emoji] = replace(known, count=count, mine=active, pending=active)
        mine = [reaction.emoji for reaction in counts.values() if reaction.mine]
        gone = mine[:-MAX_EMOJI_EACH]
        left = tuple(r for r in counts.values() if r.count > 0 and r.emoji not in gone)
        self.alter(replace(row, reactions=left))
        return gone

    async def edit(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        text: str,
        *,
        mentions: Sequence[Mention] = (),
    ) -> None:
        self._enter("edit", (message_id, text, tuple(mentions)))
        row = self.rows[conversation_id][message_id]
        self.alter(replace(row, text=text, spans=spans_in(text, mentions), edited_ms=EDITED_MS))

    async def retract(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        self._enter("retract", message_id)
        row = self.rows[conversation_id][message_id]
        self.alter(replace(row, text="", spans=(), retracted=True, reactions=()))

    async def versions(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[VersionView]:
        self._enter("versions", message_id)
        row = self.rows[conversation_id][message_id]
        first = VersionView(
            message_id=message_id,
            text="the first words",
            spans=(),
            sent_ms=row.sent_ms,
            received_ms=row.sent_ms,
            is_shown=False,
            delivery=None,
        )
        newest = replace(first, text=row.text, sent_ms=row.edited_ms or EDITED_MS, is_shown=True)
        return first, newest

    async def reactors(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[ReactorView]:
        self._enter("reactors", message_id)
        row = self.rows[conversation_id][message_id]
        return [
            ReactorView(
                participant_id=ParticipantId((name or "you").ljust(32, "0")),
                name=name,
                emoji=reaction.emoji,
                sent_ms=row.sent_ms,
                is_own=not name,
                delivery=None if name else DeliveryView(state=DeliveryState.SAVED),
            )
            for reaction in row.reactions
            for name in (*reaction.names, *([""] if reaction.mine else []))
        ]

    async def info(self, conversation_id: ConversationId, message_id: MessageId) -> MessageInfo:
        self._enter("info", message_id)
        row = self.rows[conversation_id][message_id]
        return MessageInfo(
            message=row,
            received_ms=row.sent_ms,
            placed_ms=None,
            arrival=Arrival.WRITTEN_HERE if row.is_own else Arrival.STORE,
            repaired_by="",
            holders=self.holder_views,
            size=1_234,
        )

    async def fetch_quoted(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        self._enter("fetch_quoted", message_id)
