"""What the scripted engine knows of its messages: what a test says, or what rows tell."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from engine.answers import Arrival, HolderView
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import (
    ConversationId,
    HolderSource,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.events import MessageView
from engine.inspection_views import (
    AgainView,
    CopyView,
    Figures,
    FilterView,
    LinkView,
    MessageInspection,
    Occasion,
    PartView,
    SdsView,
    SentBy,
    Whereabouts,
)

SENT_MS = UnixMs(1_795_000_000_000)


def link(
    name: str,
    message_id: str,
    *,
    whereabouts: Whereabouts = Whereabouts.LOGGED,
    sender: str = "maya",
) -> LinkView:
    position = Position(1, MessageId(message_id)) if whereabouts is Whereabouts.LOGGED else None
    return LinkView(
        message_id=MessageId(message_id),
        whereabouts=whereabouts,
        sender_id=ParticipantId(sender),
        sender_name=name,
        position=position,
        is_shown=position is not None,
    )


def copy(number: int, occasion: Occasion, *, peers: int = 6, after_ms: int = 0) -> CopyView:
    return CopyView(
        number=number,
        at_ms=UnixMs(SENT_MS + after_ms),
        occasion=occasion,
        sent_by=SentBy.RELAY,
        peers=peers,
        size=164,
        waku_hash="ab" * 32,
    )


def holder(
    name: str, source: HolderSource | None, *, after_ms: int = 0, chance: float | None = None
) -> HolderView:
    return HolderView(
        participant_id=ParticipantId(name.lower()),
        name=name,
        certain=source not in {None, HolderSource.BLOOM},
        source=source,
        since_ms=None if source is None else UnixMs(SENT_MS + after_ms),
        false_probability=chance,
    )


def inspection(message: MessageView) -> MessageInspection:
    """Of an own message that some have and that is still sent again."""
    return MessageInspection(
        conversation_id=message.conversation_id,
        message_id=message.message_id,
        whereabouts=Whereabouts.LOGGED,
        is_open=False,
        looked_ms=UnixMs(SENT_MS + 60_000),
        message=message,
        sender_id=message.sender_id,
        sender_name=message.sender_name,
        is_own=message.is_own,
        saved_ms=UnixMs(SENT_MS - 80),
        arrival=Arrival.WRITTEN_HERE if message.is_own else Arrival.LIVE,
        copies=(
            copy(1, Occasion.FIRST),
            copy(2, Occasion.UNACKNOWLEDGED, peers=5, after_ms=15_000),
        ),
        again=AgainView(
            state="unacknowledged", attempts=2, next_ms=UnixMs(SENT_MS + 45_000), accepted=True
        ),
        holders=(
            holder("Luc", HolderSource.CAUSAL, after_ms=20_000),
            holder("Jonas", HolderSource.BLOOM, after_ms=50_000, chance=0.001),
            holder("Tomas", None),
        ),
        names=(link("Priya", "priya-1"), link("Luc", "gone", whereabouts=Whereabouts.MISSING)),
        named_by=(link("Luc", "e41a", sender="luc"),),
        sds=SdsView(
            sender_id=message.sender_id,
            message_id=message.message_id,
            channel_id="0",
            lamport_timestamp=4171,
            causal_history=(MessageId("priya-1"), MessageId("gone")),
            bloom_filter=FilterView(
                size=1_200, bits=9_600, fill=0.28, about_ids=312, false_probability=3e-6
            ),
            repair_request=(),
            content_size=71,
            signed_ms=UnixMs(SENT_MS - 60),
            group_key=7,
        ),
        parts=(PartView(name="causal_history", size=60), PartView(name="content", size=71)),
    )


class ScriptedInspection:
    def __init__(self, rows: Mapping[ConversationId, Mapping[MessageId, MessageView]]) -> None:
        self._rows = rows
        self.asked: list[MessageId] = []
        self.change: Callable[[MessageInspection], MessageInspection] = lambda found: found
        self.unshown: dict[MessageId, MessageInspection] = {}
        """Of messages that have no row."""
        self.figures_of: Callable[[], Awaitable[Figures]] = _none

    async def message(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> MessageInspection:
        self.asked.append(message_id)
        row = self._rows.get(conversation_id, {}).get(message_id)
        if row is not None:
            return self.change(replace(inspection(row), conversation_id=conversation_id))
        if message_id in self.unshown:
            return self.unshown[message_id]
        raise CommandError(CommandRefusal.NO_MESSAGE)

    async def figures(self) -> Figures:
        return await self.figures_of()


async def _none() -> Figures:
    raise NotImplementedError
