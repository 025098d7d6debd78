"""A stage for timeline tests: messages, an in-memory page source and a real view on a real loop."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

import qasync
from PySide6.QtCore import QCoreApplication, QEvent, SignalInstance
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from engine.answers import TimelinePage
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.markup import find_spans
from engine.core.problems import FailureReason
from engine.events import (
    ConversationView,
    DeliveryView,
    GapPlace,
    GapView,
    MemberView,
    MessageKind,
    MessageView,
)
from engine.text_spans import SpanKind, TextSpan
from tests.patience import PATIENCE_S
from ui.timeline.rows import message_of
from ui.timeline.view import TimelineView

CONVERSATION = ConversationId("tide-gauge")
PEOPLE = ("Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas")
IDS = {name: ParticipantId(f"{index:032x}") for index, name in enumerate(PEOPLE)}
OTHERS = tuple(IDS[name] for name in PEOPLE[1:])
MINUTE_MS = 60_000


def at(hour: int, minute: int, day: int = 20) -> UnixMs:
    """A local time in November 2026."""
    return UnixMs(int(datetime(2026, 11, day, hour, minute).astimezone().timestamp() * 1000))


NOW = at(14, 9)


def name_of(participant: ParticipantId) -> str:
    return next(name for name, known in IDS.items() if known == participant)


def message(  # noqa: PLR0913 - every field matters to some test
    lamport_timestamp: int,
    who: str = "Maya",
    text: str = "hello",
    *,
    sent_ms: UnixMs = NOW,
    delivery: DeliveryView | None = None,
    kind: MessageKind = MessageKind.TEXT,
    spans: tuple[TextSpan, ...] | None = None,
    waiting: bool = False,
    late: bool = False,
    name: str | None = None,
) -> MessageView:
    return MessageView(
        conversation_id=CONVERSATION,
        position=Position(
            lamport_timestamp=lamport_timestamp, message_id=MessageId(f"m{lamport_timestamp:07d}")
        ),
        sender_id=IDS[who],
        sender_name=who if name is None else name,
        is_own=who == "Ines",
        kind=kind,
        text=text,
        spans=spans_of(text) if spans is None else spans,
        sent_ms=sent_ms,
        delivery=delivery,
        waiting=waiting,
        late=late,
    )


def spans_of(text: str) -> tuple[TextSpan, ...]:
    """As they are found when a message is stored."""
    return tuple(
        TextSpan(kind=SpanKind(s.kind), start=s.start, length=s.length, target=s.target)
        for s in find_spans(text)
    )


def delivery(
    state: DeliveryState,
    held: int = 0,
    maybe: int = 0,
    *,
    of: int = 5,
    failure: FailureReason | None = None,
) -> DeliveryView:
    return DeliveryView(
        state=state,
        held_by=OTHERS[:held],
        maybe_held_by=OTHERS[held : held + maybe],
        of=of,
        attempts=5 if failure else 1,
        failure=failure,
    )


def gap_place(missing: int = 3, waiting: int = 0, before: Position | None = None) -> GapPlace:
    return GapPlace(
        missing=missing,
        waiting=waiting,
        since_ms=at(14, 2),
        requests=2,
        next_request_ms=UnixMs(NOW + 12_000),
        before=before,
    )


def gap(missing: int = 3, waiting: int = 0, before: Position | None = None) -> GapView:
    return gap_of(gap_place(missing, waiting, before))


def gap_of(*places: GapPlace) -> GapView:
    return GapView(
        conversation_id=CONVERSATION,
        missing=sum(place.missing for place in places),
        waiting=sum(place.waiting for place in places),
        places=places,
    )


def conversation(*, unread: int = 0, first_unread: Position | None = None) -> ConversationView:
    members = tuple(
        MemberView(
            participant_id=IDS[name],
            name=name,
            is_self=name == "Ines",
            is_admin=name == "Ines",
            has_left=False,
            fingerprint="",
        )
        for name in PEOPLE
    )
    return ConversationView(
        conversation_id=CONVERSATION,
        name="Tide Gauge",
        members=members,
        unread=unread,
        first_unread=first_unread,
        muted=False,
        last_message=None,
        missing=0,
        waiting_to_send=0,
        failed=0,
        created_ms=at(9, 0),
        draft="",
    )


def chatter(count: int, *, words: int = 12) -> list[MessageView]:
    """``count`` messages of several people, one a minute, of uneven length."""
    return [
        message(
            (index + 1) * 10,
            PEOPLE[index * 7 % len(PEOPLE)],
            f"number {index} " + "tide " * (index * 5 % words),
            sent_ms=UnixMs(at(0, 0, 1) + index * MINUTE_MS),
            delivery=delivery(DeliveryState.HELD, 5) if index * 7 % len(PEOPLE) == 0 else None,
        )
        for index in range(count)
    ]


class MemoryPages:
    """Keyset pages from a list.  ``hold`` keeps answers back until ``release``."""

    def __init__(self, messages: Sequence[MessageView]) -> None:
        self.messages = list(messages)
        self.asked: list[str] = []
        self.broken = False
        self._gate: asyncio.Event | None = None

    def hold(self) -> None:
        self._gate = asyncio.Event()

    def release(self) -> None:
        if self._gate is not None:
            self._gate.set()
            self._gate = None

    async def _page(self, what: str, begin: int, end: int) -> TimelinePage:
        self.asked.append(what)
        if self.broken:
            raise StorageError("full", StorageFault.DISK_FULL)
        begin, end = max(begin, 0), min(end, len(self.messages))
        page = TimelinePage(
            messages=tuple(self.messages[begin:end]),
            has_older=begin > 0,
            has_newer=end < len(self.messages),
            older_count=begin,
            total=len(self.messages),
        )
        if self._gate is not None:
            await self._gate.wait()
        else:
            await asyncio.sleep(0)
        return page

    def _index(self, position: Position) -> int:
        return bisect_left(self.messages, position, key=lambda m: m.position)

    def latest_page(
        self, conversation_id: ConversationId, /, *, limit: int = 100
    ) -> Awaitable[TimelinePage]:
        return self._page("latest", len(self.messages) - limit, len(self.messages))

    def page_before(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int = 100
    ) -> Awaitable[TimelinePage]:
        index = self._index(position)
        return self._page("before", index - limit, index)

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int = 100
    ) -> Awaitable[TimelinePage]:
        index = self._index(position)
        if index < len(self.messages) and self.messages[index].position == position:
            index += 1
        return self._page("after", index, index + limit)

    def page_around(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int = 100
    ) -> Awaitable[TimelinePage]:
        index = self._index(position)
        return self._page("around", index - limit // 2, index + limit // 2)


def run(scenario: Callable[[], Coroutine[object, object, None]]) -> None:
    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(scenario())


@contextmanager
def shown_view(
    source: MemoryPages,
    *,
    width: int = 968,
    height: int = 640,
    faces_of: Callable[[ConversationView], dict[ParticipantId, bytes]] = lambda _: {},
) -> Iterator[TimelineView]:
    """A visible, active timeline; destroyed at the end as Qt destroys it."""
    view = TimelineView(lambda: source, names=name_of, faces_of=faces_of, now_ms=lambda: NOW)
    view.resize(width, height)
    view.show()
    view.activateWindow()
    try:
        yield view
    finally:
        view.close()
        view.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@asynccontextmanager
async def opened_view(
    source: MemoryPages, *, width: int = 968, height: int = 640
) -> AsyncIterator[TimelineView]:
    """A shown timeline in which the conversation is open and its first page has come."""
    with shown_view(source, width=width, height=height) as view:
        view.open(conversation())
        await settled(view)
        yield view


async def emitted(signal: SignalInstance) -> tuple[object, ...]:
    """The arguments of the next emission."""
    future: asyncio.Future[tuple[object, ...]] = asyncio.get_running_loop().create_future()

    def take(*arguments: object) -> None:
        if not future.done():
            future.set_result(arguments)

    connection = signal.connect(take)
    try:
        return await asyncio.wait_for(future, timeout=PATIENCE_S)
    finally:
        signal.disconnect(connection)


async def settled(view: TimelineView) -> None:
    """Until no page is under way any more."""
    while view.navigation.loading:
        await emitted(view.pageShown)


def application() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app


async def active(widget: QWidget) -> None:
    """Until the window system says that the window is active."""
    while not widget.isActiveWindow():
        await emitted(application().focusWindowChanged)


def places(view: TimelineView) -> dict[MessageId, float]:
    """Where each visible message stands."""
    return {
        shown.message_id: placed.y
        for placed in view.scene.placed
        if (shown := message_of(placed.row)) is not None
    }


def colours(view: TimelineView) -> set[int]:
    """The colours of all pixels, as Qt's RGB values."""
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return set(memoryview(image.constBits()).cast("I"))
