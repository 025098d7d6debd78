"""What the scripted engine knows of its messages: what a test says, or what rows tell."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

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
from engine.delivery_views import MOST_IN_PAGE, DeliveryMessage, DeliveryPage
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
from engine.live_views import LiveSample, PairDelivery

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


def page_of(conversation_id: ConversationId, messages: Sequence[DeliveryMessage]) -> DeliveryPage:
    """All that there is, in one page."""
    places = [each.position for each in messages if each.position is not None]
    return DeliveryPage(
        conversation_id=conversation_id,
        looked_ms=UnixMs(SENT_MS + 600_000),
        messages=tuple(messages),
        first=places[0] if places else None,
        has_older=False,
        has_newer=False,
        is_open=False,
        is_pair=False,
        clock=places[-1].lamport_timestamp if places else 0,
    )


def part_of(whole: DeliveryPage, before: Position | None, limit: int) -> DeliveryPage:
    """As the engine cuts it: ``limit`` counts messages that have a place."""

    def place(each: DeliveryMessage) -> Position:
        return each.position or each.before or Position(2**64, MessageId(""))

    messages = [each for each in whole.messages if before is None or place(each) < before]
    placed = [each.position for each in messages if each.position is not None]
    first = placed[-limit] if len(placed) > limit else None
    kept = [each for each in messages if first is None or place(each) >= first]
    places = [each.position for each in kept if each.position is not None]
    return replace(
        whole,
        messages=tuple(kept),
        first=places[0] if places else None,
        has_older=first is not None,
        has_newer=before is not None,
    )


class ScriptedWatch:
    def __init__(self, conversation_id: ConversationId, inspected: "ScriptedInspection") -> None:
        self.conversation_id = conversation_id
        self.is_open = True
        self._inspected = inspected

    async def sample(self) -> LiveSample:
        said = self._inspected.samples.get(self.conversation_id, [])
        if not said:
            return LiveSample(
                conversation_id=self.conversation_id, at_ms=SENT_MS, since_ms=SENT_MS, placed=0
            )
        return said.pop(0) if len(said) > 1 else said[0]

    def close(self) -> None:
        self.is_open = False


class ScriptedInspection:
    def __init__(self, rows: Mapping[ConversationId, Mapping[MessageId, MessageView]]) -> None:
        self._rows = rows
        self.asked: list[MessageId] = []
        self.change: Callable[[MessageInspection], MessageInspection] = lambda found: found
        self.unshown: dict[MessageId, MessageInspection] = {}
        """Of messages that have no row."""
        self.pages: dict[ConversationId, DeliveryPage] = {}
        self.pages_read: list[tuple[ConversationId, Position | None]] = []
        self.samples: dict[ConversationId, list[LiveSample]] = {}
        """What a watch says, one after the other; the last one again and again."""
        self.records: dict[ConversationId, PairDelivery] = {}
        self.watches: list[ScriptedWatch] = []
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

    async def delivery(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = MOST_IN_PAGE,
    ) -> DeliveryPage:
        """The messages of ``pages``, as many before a place as are asked for."""
        self.pages_read.append((conversation_id, before))
        if conversation_id not in self._rows:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        whole = self.pages.get(conversation_id, page_of(conversation_id, ()))
        return part_of(whole, before, limit)

    def watch(self, conversation_id: ConversationId) -> "ScriptedWatch":
        if conversation_id not in self._rows:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        watch = ScriptedWatch(conversation_id, self)
        self.watches.append(watch)
        return watch

    async def pair(self, conversation_id: ConversationId) -> PairDelivery:
        return self.records.get(
            conversation_id,
            PairDelivery(
                conversation_id=conversation_id,
                at_ms=SENT_MS,
                epoch=SENT_MS // 1_000,
                epoch_ms=1_000,
                records=(),
                is_all=True,
            ),
        )

    async def figures(self) -> Figures:
        return await self.figures_of()


async def _none() -> Figures:
    raise NotImplementedError
