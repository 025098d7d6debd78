"""What a Store can make of being asked by time, with somebody who names messages that never were.

The channel and the schedule of its Store queries are whole; time is virtual.  The Stores answer in
a twentieth of a second, whenever they are asked, and never come to an end.  What they get us to ask
for within an hour is bounded, and so are the bytes.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import Purpose
from engine.core.history.queries import (
    Covered,
    Fetched,
    HistoryMessage,
    Outcome,
    Page,
    StoreVersion,
    WindowWanted,
)
from engine.core.ids import UnixMs, WakuHash
from engine.core.sds.inputs import DeadlineReached, StoreChanged, WindowAnswered
from engine.core.sds.vocabulary import AskStore, StoreWindow
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryIndex
from tests.core.history.history_model import (
    ONE,
    PUBSUB,
    SECOND_NS,
    THREE,
    TOPIC,
    TWO,
    ModelStore,
    Request,
    stored,
    times_of,
)
from tests.core.history.history_world import World, world_of
from tests.security.stage import HOUR_MS, figure
from tests.session.open_stage import NOW, OpenStage, said

MIB = 2**20
LARGEST = 8 * MIB
"""Of an answer: engine/codec/waku_store.py."""
CONFIG = HistoryConfig()
PERIODS = HOUR_MS // CONFIG.dependency_period_ms
STORES = (ONE, TWO, THREE)


class Inventive(ModelStore):
    """On every page there is something that never was, and a cursor that was never given."""

    def __init__(self, *, size: int = 100) -> None:
        super().__init__(versions=(StoreVersion.V3,))
        self.rtt_ms = 50
        self.pages = self.bytes = 0
        self._size = size

    def respond(self, request: Request) -> Outcome:
        self.pages += 1
        self.bytes += self._size
        cursor = self.cursor()
        self.given.add(cursor)
        refused = self.refused()
        messages = () if refused else (self.invention(request),)
        return Page(messages=messages, cursor=cursor, refused=refused, size=self._size)

    def cursor(self) -> WakuHash | HistoryIndex:
        return WakuHash(hashlib.sha256(b"%d" % self.pages).digest())

    def invention(self, request: Request) -> HistoryMessage:
        since_ns, until_ns = times_of(request)
        return stored(self.pages, min((since_ns or 0) + 1 + self.pages, until_ns or 0))

    def refused(self) -> tuple[str, ...]:
        return ()


class OfOtherTimes(Inventive):
    """An old one, which need not read times: it has ever later messages outside the window."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = (StoreVersion.V2,)

    def cursor(self) -> HistoryIndex:
        at_ns = self.pages * SECOND_NS
        digest = hashlib.sha256(b"%d" % self.pages).digest()
        return HistoryIndex(
            digest=digest, receiver_time_ns=at_ns, sender_time_ns=at_ns, pubsub_topic=PUBSUB
        )

    def invention(self, request: Request) -> HistoryMessage:
        del request
        return stored(self.pages, NOW * 10**6 + self.pages * SECOND_NS)


class OfJunk(Inventive):
    """As much as an answer may have, and none of it can be read."""

    def __init__(self) -> None:
        super().__init__(size=LARGEST)

    def refused(self) -> tuple[str, ...]:
        return ("meta_oversized",) * 100


@dataclass
class Room:
    """Ours, in a channel with strangers, and these Stores."""

    world: World
    stage: OpenStage = field(default_factory=OpenStage)
    questions: int = 0
    seconds: int = 0

    def __post_init__(self) -> None:
        self.world.now_ms = NOW
        self.stage.handle(StoreChanged(reachable=True))

    def let_pass(self, minutes: int, each_second: Callable[[int], None]) -> None:
        for _ in range(minutes * 60):
            self.stage.now_ms = UnixMs(NOW + self.seconds * 1_000)
            each_second(self.seconds)
            self.seconds += 1
            for send in self.stage.handle(DeadlineReached()).sends:
                if isinstance(send, AskStore) and send.windows:
                    self._ask(send.windows)
            self._stores_answer()

    def _ask(self, windows: Sequence[StoreWindow]) -> None:
        self.questions += 1
        self.world.now_ms = self.stage.now_ms
        for each in windows:
            since_ms, until_ms = each.since_ms, each.until_ms
            self.world.tell(
                WindowWanted(purpose=Purpose.DEPENDENCY, since_ms=since_ms, until_ms=until_ms)
            )

    def _stores_answer(self) -> None:
        while (at_ms := self.world.next_ms()) is not None and at_ms < self.stage.now_ms + 1_000:
            seen = len(self.world.events)
            self.world.step()
            for event in self.world.events[seen:]:
                if isinstance(event, Fetched):
                    for one in event.messages:
                        self.stage.fetch(one.message.payload)
                elif isinstance(event, Covered):
                    window = StoreWindow(since_ms=event.since_ms, until_ms=event.until_ms)
                    self.stage.handle(WindowAnswered(window=window))


def naming_what_never_was(room: Room) -> Callable[[int], None]:
    """Twice a minute, at eight places of the day; one comes, so that asking seems to be of use."""

    def each_second(second: int) -> None:
        if second % 30:
            return
        for place in range(8):
            lamport = NOW - (place + 1) * 2 * HOUR_MS + second
            room.stage.hear(said(f"after {second} {place}", f"{second} {place}", lamport=lamport))
        room.stage.hear(said(f"{second - 60} 0", lamport=NOW - 2 * HOUR_MS + second - 61))

    return each_second


@pytest.mark.parametrize("hostile", [Inventive, OfOtherTimes, OfJunk])
def test_stores_that_never_end_cost_so_much_an_hour(hostile: type[Inventive]) -> None:
    stores = {each: hostile() for each in STORES}
    room = Room(world_of(stores))
    room.let_pass(60, naming_what_never_was(room))
    asked = sum(each.pages for each in stores.values())
    came = sum(each.bytes for each in stores.values())
    figure(
        f"{hostile.__name__}: {room.questions} questions by time within an hour, {asked} pages"
        f" and {came / MIB:.0f} MiB; before 215 400 pages, as fast as they come"
    )
    at_once = CONFIG.window_stores
    assert room.questions > 60, "the stranger is heard"
    assert 0 < asked <= PERIODS * (CONFIG.dependency_asks + at_once)
    assert came <= PERIODS * (CONFIG.dependency_bytes + at_once * LARGEST)


def test_beside_stores_that_never_end_an_honest_ones_message_is_found() -> None:
    payload = said("it is here", lamport=NOW - HOUR_MS)
    at_ns = (NOW - HOUR_MS) * 10**6
    message = WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=at_ns)
    kept = HistoryMessage(WakuHash(hashlib.sha256(payload).digest()), message, PUBSUB)
    room = Room(world_of({ONE: Inventive(), TWO: Inventive(), THREE: ModelStore([kept])}))
    strangers = naming_what_never_was(room)

    def each_second(second: int) -> None:
        if not second:
            room.stage.hear(said("names it", "it is here", lamport=NOW - HOUR_MS + 1))
        strangers(second)

    room.let_pass(20, each_second)
    assert "it is here" in room.stage.texts()
    assert "names it" in room.stage.texts()


def test_what_the_user_asks_for_does_not_wait_for_it() -> None:
    stores = {ONE: Inventive()}
    room = Room(world_of(stores))
    room.let_pass(2, naming_what_never_was(room))
    assert stores[ONE].pages >= CONFIG.dependency_asks - 1, "all of the period's is used up"
    room.world.tell(
        WindowWanted(purpose=Purpose.USER, since_ms=UnixMs(NOW - HOUR_MS), until_ms=NOW)
    )
    room.let_pass(1, lambda _second: None)
    assert stores[ONE].pages > 2 * CONFIG.dependency_asks
