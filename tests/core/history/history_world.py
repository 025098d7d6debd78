"""A world in which time passes by itself: machines ask, Stores of ``history_model`` answer.

Its time is virtual and nothing waits.  A query of its own, or the schedule of one conversation,
runs in it until nothing is due any more.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from engine.core.history.config import HistoryConfig
from engine.core.history.merging import StoresQuery
from engine.core.history.progress import Progress, StoreRef
from engine.core.history.queries import (
    Answered,
    Ask,
    Candidate,
    DeadlineReached,
    Fetched,
    HistoryEvent,
    HistoryInput,
    HistoryMessage,
    HistoryTransition,
    Query,
    QueryEnded,
    QueryInput,
    StoresChanged,
    Topics,
)
from engine.core.history.scheduler import HistoryScheduler
from engine.core.ids import ConversationId, UnixMs
from tests.core.history.history_model import NOW_MS, PUBSUB, TOPIC, ModelStore

CONVERSATION = ConversationId("conversation")
TOPICS = Topics(pubsub_topic=PUBSUB, content_topics=(TOPIC,))


@dataclass(slots=True)
class World:
    """Performs asks after each Store's delay.  ``before_answer`` may do anything to the Stores."""

    machine: StoresQuery | HistoryScheduler
    stores: Mapping[StoreRef, ModelStore]
    now_ms: UnixMs = NOW_MS
    before_answer: Callable[[int], None] = lambda _number: None
    events: list[HistoryEvent] = field(default_factory=list)
    transitions: list[HistoryTransition] = field(default_factory=list)
    asked: list[tuple[UnixMs, Ask]] = field(default_factory=list)
    answers: int = 0
    _due: list[tuple[int, int, Ask]] = field(default_factory=list)
    _abandoned: set[int] = field(default_factory=set)

    def take(self, transition: HistoryTransition) -> HistoryTransition:
        self.transitions.append(transition)
        self.events += transition.events
        for ask in transition.asks:
            self.asked.append((self.now_ms, ask))
            heappush(self._due, (self.now_ms + self.stores[ask.store].delay_ms(), ask.ask_id, ask))
        self._abandoned.update(transition.abandoned)
        return transition

    def tell(self, input_: HistoryInput) -> HistoryTransition:
        assert isinstance(self.machine, HistoryScheduler)
        return self.take(self.machine.handle(input_, now_ms=self.now_ms))

    def tell_query(self, input_: QueryInput) -> HistoryTransition:
        assert isinstance(self.machine, StoresQuery)
        return self.take(self.machine.handle(input_, now_ms=self.now_ms))

    def next_ms(self) -> UnixMs | None:
        """When anything is still to come."""
        while self._due and self._due[0][2].ask_id in self._abandoned:
            heappop(self._due)
        deadline_ms = self.machine.next_deadline()
        answer_ms = UnixMs(self._due[0][0]) if self._due else None
        return min((at_ms for at_ms in (deadline_ms, answer_ms) if at_ms is not None), default=None)

    def step(self) -> bool:
        """Whether anything was still to come."""
        if self.next_ms() is None:
            return False
        deadline_ms = self.machine.next_deadline()
        if self._due and (deadline_ms is None or self._due[0][0] <= deadline_ms):
            at_ms, _, ask = heappop(self._due)
            self.now_ms = UnixMs(max(self.now_ms, at_ms))
            self.answers += 1
            self.before_answer(self.answers)
            outcome = self.stores[ask.store].answer(ask.request)
            self.take(self.machine.handle(Answered(ask.ask_id, outcome), now_ms=self.now_ms))
        else:
            assert deadline_ms is not None
            self.now_ms = UnixMs(max(self.now_ms, deadline_ms))
            self.take(self.machine.handle(DeadlineReached(), now_ms=self.now_ms))
        return True

    def run(self, *, max_steps: int = 100_000) -> None:
        for _ in range(max_steps):
            if not self.step():
                return
        raise AssertionError("it does not end")

    @property
    def messages(self) -> list[HistoryMessage]:
        return fetched(self.events)

    def ended_queries(self) -> int:
        return sum(isinstance(event, QueryEnded) for event in self.events)

    def ended(self) -> QueryEnded:
        """The only query's end."""
        ends = [event for event in self.events if isinstance(event, QueryEnded)]
        assert len(ends) == 1
        return ends[0]


def fetched(events: Iterable[HistoryEvent]) -> list[HistoryMessage]:
    return [item for event in events if isinstance(event, Fetched) for item in event.messages]


def ask_stores(
    query: Query,
    stores: Mapping[StoreRef, ModelStore],
    *,
    config: HistoryConfig | None = None,
    known_versions: bool = False,
    seed: int = 0,
) -> World:
    """A world in which this query has begun."""
    candidates = [
        Candidate(store=ref, versions=store.versions if known_versions else ())
        for ref, store in stores.items()
    ]
    machine = StoresQuery(
        1,
        query,
        candidates,
        config=config or HistoryConfig(),
        random_unit=random.Random(seed).random,
        ask_ids=count(1),
    )
    world = World(machine, stores)
    world.take(machine.begin(world.now_ms))
    return world


def run_query(
    query: Query, stores: Mapping[StoreRef, ModelStore], *, config: HistoryConfig | None = None
) -> World:
    world = ask_stores(query, stores, config=config)
    world.run()
    return world


def world_of(
    stores: Mapping[StoreRef, ModelStore],
    *,
    progress: Sequence[Progress] = (),
    config: HistoryConfig | None = None,
) -> World:
    """A world in which the conversation's schedule has these Stores, and nothing is wanted yet."""
    schedule = HistoryScheduler(
        CONVERSATION,
        TOPICS,
        config=config or HistoryConfig(),
        random_unit=random.Random(0).random,
        progress=progress,
    )
    world = World(schedule, stores)
    world.tell(StoresChanged(tuple(Candidate(store=ref) for ref in stores)))
    return world
