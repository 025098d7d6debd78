"""Every message once, whatever pages, boundaries, equal times, late arrivals and crashes do."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import DropProgress, Progress, Purpose, SaveProgress, StoreRef
from engine.core.history.queries import (
    Candidate,
    Covered,
    Failed,
    FailureKind,
    Fetched,
    HistoryMessage,
    HistoryTransition,
    Outcome,
    Refusal,
    StoresChanged,
    StoreVersion,
    WindowWanted,
)
from engine.core.history.scheduler import HistoryScheduler
from engine.core.ids import UnixMs, WakuHash
from tests.core.history.history_model import (
    NOW_MS,
    NOW_NS,
    SECOND_NS,
    ModelStore,
    Request,
    hashes,
    stored,
)
from tests.core.history.history_world import CONVERSATION, TOPICS, World

CONFIG = HistoryConfig()


@dataclass(slots=True)
class Disk:
    """What is durable: messages by hash, progress by purpose."""

    messages: set[WakuHash]
    progress: dict[Purpose, Progress]

    def keep(self, transition: HistoryTransition, *, writes: bool = True) -> None:
        for event in transition.events:
            if isinstance(event, Fetched):
                self.messages |= hashes(event.messages)
        for write in transition.writes if writes else ():
            match write:
                case SaveProgress(progress=progress):
                    self.progress[progress.purpose] = progress
                case DropProgress(purpose=purpose):
                    self.progress.pop(purpose, None)


class Moody(ModelStore):
    """Honest, but refuses, breaks off and forgets its cursors now and then."""

    def __init__(self, messages: list[HistoryMessage], chance: random.Random) -> None:
        version = chance.choice([(StoreVersion.V3,), (StoreVersion.V2,), tuple(StoreVersion)])
        super().__init__(
            messages,
            versions=version,
            end_inclusive=chance.random() < 0.5,
            page_of=lambda limit: chance.randint(1, min(limit, 12)),
        )
        self._chance = chance
        self._bad = 0
        self.rtt_ms = chance.choice([1, 20, 3_000])

    def respond(self, request: Request) -> Outcome:
        if self._bad < 2 and self._chance.random() < 0.1:
            self._bad += 1
            moods: tuple[Outcome, ...] = (
                Refusal(429),
                Failed(FailureKind.UNREACHABLE),
                Failed(FailureKind.TOO_LARGE),
            )
            return self._chance.choice(moods)
        self._bad = 0
        return super().respond(request)


BeforeAnswer: TypeAlias = Callable[[int, UnixMs], None]
"""Given how many answers there were, and the time."""


class QueriedStore:
    """Somebody who is killed now and then, and comes back with what is durable."""

    def __init__(
        self, stores: dict[StoreRef, ModelStore], *, seed: int, before_answer: BeforeAnswer
    ) -> None:
        self.disk = Disk(set(), {})
        self.since_ms = UnixMs(NOW_MS - 400_000)
        """Everything before counts as asked for; durable."""
        self.is_covered = False
        self.handed_out: list[list[WakuHash]] = []
        """By query."""
        self.answers = 0
        self._before_answer = before_answer
        self._stores = stores
        self._seed = seed
        self._now_ms = NOW_MS

    def live(self, steps: int, how: str) -> None:
        self._seed += 1
        schedule = HistoryScheduler(
            CONVERSATION,
            TOPICS,
            config=CONFIG,
            random_unit=random.Random(self._seed).random,
            progress=tuple(self.disk.progress.values()),
        )
        world = World(schedule, self._stores, self._now_ms)
        world.before_answer = lambda _number: self._before(world.now_ms)
        queries: dict[int, list[WakuHash]] = {}
        candidates = tuple(Candidate(store=ref) for ref in self._stores)
        self.disk.keep(world.tell(StoresChanged(candidates)))
        self.disk.keep(world.tell(WindowWanted(purpose=Purpose.CONNECT, since_ms=self.since_ms)))
        self.is_covered = False
        for step in range(steps):
            if not world.step():
                break
            is_last = step == steps - 1
            if is_last and how == "before":
                break
            self._keep(world.transitions[-1], queries, writes=not (is_last and how == "between"))
        self.handed_out += queries.values()
        self._now_ms = world.now_ms

    def _before(self, now_ms: UnixMs) -> None:
        self.answers += 1
        self._before_answer(self.answers, now_ms)

    def _keep(
        self, transition: HistoryTransition, queries: dict[int, list[WakuHash]], *, writes: bool
    ) -> None:
        self.disk.keep(transition, writes=writes)
        for event in transition.events:
            if isinstance(event, Fetched):
                items = [item.message_hash for item in event.messages]
                queries.setdefault(event.query_id, []).extend(items)
            if isinstance(event, Covered) and writes:
                self.since_ms = max(self.since_ms, event.through_ms)
                self.is_covered = self.is_covered or event.purpose is Purpose.CONNECT


@settings(max_examples=150, deadline=None)
@given(
    seconds=st.lists(st.integers(0, 400) | st.sampled_from([7, 8, 200, 399]), max_size=120),
    late=st.lists(st.tuples(st.integers(1, 40), st.integers(-20, 20)), max_size=10),
    crashes=st.lists(
        st.tuples(st.integers(1, 15), st.sampled_from(["before", "between"])), max_size=4
    ),
    stores_n=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_every_message_comes_in_spite_of_everything(
    seconds: list[int],
    late: list[tuple[int, int]],
    crashes: list[tuple[int, str]],
    stores_n: int,
    seed: int,
) -> None:
    """Once within each query; what comes again after a crash is known by its hash."""
    chance = random.Random(seed)
    messages = [stored(n, NOW_NS - s * SECOND_NS) for n, s in enumerate(seconds)]
    # Each Store lacks some, no message is lacked by all.
    places = [chance.randrange(stores_n) for _ in messages]
    stores: dict[StoreRef, ModelStore] = {
        StoreRef(f"store {place}"): Moody(
            [
                m
                for m, p in zip(messages, places, strict=True)
                if p == place or chance.random() < 0.8
            ],
            chance,
        )
        for place in range(stores_n)
    }
    arrivals = sorted(late)

    def arrive(answers: int, now_ms: UnixMs) -> None:
        """Stores take in messages while they are paged, up to 20 s late or early."""
        while arrivals and arrivals[0][0] <= answers and not member.is_covered:
            offset = arrivals.pop(0)[1]
            new = stored(10_000 + len(messages), (now_ms + offset * 1_000) * 10**6)
            messages.append(new)
            for store in stores.values():
                store.insert(new)

    member = QueriedStore(stores, seed=seed, before_answer=arrive)
    for steps, how in [*crashes, (10_000, "never")]:
        member.live(steps, how)
    assert member.disk.messages == hashes(messages)
    assert all(len(items) == len(set(items)) for items in member.handed_out)
    assert member.disk.progress == {}
    assert member.is_covered
