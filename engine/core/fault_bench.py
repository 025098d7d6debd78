"""What the fault bench does to copies of one conversation, or peer, in one direction: decisions.

A tester makes the network bad on purpose: copies are lost, delayed, doubled, overtaken, squeezed
through a narrow line, or held for as long as a pause lasts.  ``FaultLink`` is told of each copy and
of the time, and says which go on now and which later; the same seed gives the same decisions.
It invents nothing: what comes out went in, at most twice, and everything else is counted.  What
waits has a bound in bytes and in copies, which all links of a profile share.
"""

from collections import deque
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from msgspec import Struct

from engine.core.errors import ConfigError
from engine.core.faults import MAX_DELAY_MS, FaultPlan, FaultSpec
from engine.core.ids import ConversationId, ParticipantId

MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
MAX_WAITING_COPIES: Final = 1_500
"""Fewer than a conversation takes in at once (``INBOX_SIZE``): what was held comes all together."""
MIN_BYTES_PER_S: Final = 100
MAX_BYTES_PER_S: Final = 1_000_000_000

T = TypeVar("T")


class Fate(StrEnum):
    """What was done to a copy; none: it goes on as if there were no bench."""

    LOST = "lost"
    DELAYED = "delayed"
    DOUBLED = "doubled"
    HELD = "held"
    """Until the pause is over."""
    OVERFLOWED = "overflowed"
    """Lost, because too much waits already, or the line is too narrow for it."""


class FaultRule(Struct, frozen=True, kw_only=True):
    """What is done to each copy.  ``bytes_per_s`` 0: the line is as wide as it is."""

    spec: FaultSpec = FaultSpec()
    bytes_per_s: int = 0
    paused: bool = False

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if self.bytes_per_s and not MIN_BYTES_PER_S <= self.bytes_per_s <= MAX_BYTES_PER_S:
            raise ConfigError(
                f"faults: bytes_per_s={self.bytes_per_s} is out of range; allowed is 0 or"
                f" {MIN_BYTES_PER_S} to {MAX_BYTES_PER_S}"
            )

    @property
    def cuts_off(self) -> bool:
        """Nothing comes through."""
        return self.paused or self.spec.loss >= 1.0


class FaultTarget(Struct, frozen=True, kw_only=True):
    """Whose copies a fault is about.  Nothing is named: those of all conversations."""

    conversation_id: ConversationId | None = None
    participant_id: ParticipantId | None = None
    """Only what this member of the group sends, or brings again."""
    peer_id: str | None = None
    """What goes to this peer and comes from it, of any conversation; then it is named alone."""


EVERYTHING: Final = FaultTarget()


class Phase(Struct, frozen=True, kw_only=True):
    """``for_ms`` None: until it is stopped."""

    rule: FaultRule
    for_ms: int | None = None


class Preset(StrEnum):
    """Bad networks that people know.  They end by themselves."""

    TRAIN = "train"
    """Good and slow by turns, and nothing at all in tunnels; three minutes."""
    HOTEL = "hotel"
    """A slow line that loses a tenth; five minutes."""
    PARTITION = "partition"
    """Nothing goes out or comes in; 30 seconds."""


def _tunnel(seed: int) -> Phase:
    return Phase(rule=FaultRule(spec=FaultSpec(loss=1.0, seed=seed)), for_ms=10_000)


def _ride(seed: int) -> Phase:
    spec = FaultSpec(loss=0.05, delay_ms=(80, 600), reorder=0.1, seed=seed)
    return Phase(rule=FaultRule(spec=spec), for_ms=20_000)


def phases_of(preset: Preset, *, seed: int) -> tuple[Phase, ...]:
    match preset:
        case Preset.TRAIN:
            return tuple(
                phase for turn in range(6) for phase in (_ride(seed + turn), _tunnel(seed + turn))
            )
        case Preset.HOTEL:
            spec = FaultSpec(loss=0.1, delay_ms=(300, 1_500), dup=0.02, seed=seed)
            return (Phase(rule=FaultRule(spec=spec, bytes_per_s=20_000), for_ms=300_000),)
        case Preset.PARTITION:
            spec = FaultSpec(loss=1.0, seed=seed)
            return (Phase(rule=FaultRule(spec=spec), for_ms=30_000),)


class Course:
    """The phases of one wish of the user, from ``began_ms`` on."""

    def __init__(self, phases: tuple[Phase, ...], *, began_ms: int) -> None:
        self._phases = phases
        self._began_ms = began_ms

    def rule(self, now_ms: int) -> FaultRule | None:
        """None: it is over."""
        phase = self._at(now_ms)[0]
        return None if phase is None else phase.rule

    def next_change_ms(self, now_ms: int) -> int | None:
        return self._at(now_ms)[1]

    @property
    def ends_ms(self) -> int | None:
        """None: only by hand."""
        total = 0
        for phase in self._phases:
            if phase.for_ms is None:
                return None
            total += phase.for_ms
        return self._began_ms + total

    def _at(self, now_ms: int) -> tuple[Phase | None, int | None]:
        until_ms = self._began_ms
        for phase in self._phases:
            if phase.for_ms is None:
                return phase, None
            until_ms += phase.for_ms
            if now_ms < until_ms:
                return phase, until_ms
        return None, None


class WaitingRoom:
    """How much may wait in all links of a profile together."""

    def __init__(
        self, max_bytes: int = MAX_WAITING_BYTES, max_copies: int = MAX_WAITING_COPIES
    ) -> None:
        self._max_bytes = max_bytes
        self._max_copies = max_copies
        self.waiting_bytes = 0
        self.copies = 0

    def enter(self, size: int) -> bool:
        """Whether there is room."""
        if self.copies >= self._max_copies or self.waiting_bytes + size > self._max_bytes:
            return False
        self.copies += 1
        self.waiting_bytes += size
        return True

    def leave(self, size: int) -> None:
        self.copies -= 1
        self.waiting_bytes -= size


class Offered(Struct, frozen=True):
    """``now``: how many copies go on at once; ``delay_ms``: how long the longest of them waits."""

    now: int
    fates: tuple[Fate, ...] = ()
    delay_ms: int = 0


class FaultLink(Generic[T]):
    """One conversation or peer, out or in.  ``stream``: its chance is independent of others'."""

    def __init__(self, rule: FaultRule, stream: str, room: WaitingRoom) -> None:
        self._stream = stream
        self._room = room
        self._rule = rule
        self._plan = FaultPlan(rule.spec, stream)
        self._waiting: list[tuple[int, int, int, T]] = []
        """A heap of due time, number, size and copy."""
        self._held: deque[tuple[int, T]] = deque()
        self._number = 0
        self._line_free_ms = 0

    def offer(self, item: T, size: int, *, now_ms: int, max_copies: int = 2) -> Offered:
        """Decide about one copy.  ``max_copies`` 1: it is never doubled."""
        if self._rule.paused:
            if not self._room.enter(size):
                return Offered(0, (Fate.OVERFLOWED,))
            self._held.append((size, item))
            return Offered(0, (Fate.HELD,))
        delays = self._plan.delays_ms()[:max_copies]
        if not delays:
            return Offered(0, (Fate.LOST,))
        fates = [Fate.DOUBLED] if len(delays) > 1 else []
        now, longest_ms = 0, 0
        for delay_ms in delays:
            wait_ms = self._line_wait_ms(size, now_ms, delay_ms)
            if wait_ms is None:
                fates.append(Fate.OVERFLOWED)
            elif wait_ms <= 0:
                now += 1
            elif self._room.enter(size):
                self._number += 1
                heappush(self._waiting, (now_ms + wait_ms, self._number, size, item))
                fates.append(Fate.DELAYED)
                longest_ms = max(longest_ms, wait_ms)
            else:
                fates.append(Fate.OVERFLOWED)
        return Offered(now, tuple(dict.fromkeys(fates)), longest_ms)

    def _line_wait_ms(self, size: int, now_ms: int, delay_ms: int) -> int | None:
        """None: the line would be busy with it for too long."""
        if not self._rule.bytes_per_s:
            return delay_ms
        free_ms = max(self._line_free_ms, now_ms) + size * 1_000 // self._rule.bytes_per_s
        if free_ms - now_ms > MAX_DELAY_MS:
            return None
        self._line_free_ms = free_ms
        return free_ms - now_ms + delay_ms

    def due(self, now_ms: int) -> list[T]:
        """Copies whose time has come, in that order.  None while nothing comes through."""
        found: list[T] = []
        while not self._rule.cuts_off and self._waiting and self._waiting[0][0] <= now_ms:
            _, _, size, item = heappop(self._waiting)
            self._room.leave(size)
            found.append(item)
        return found

    def next_due_ms(self) -> int | None:
        return self._waiting[0][0] if self._waiting and not self._rule.cuts_off else None

    def change(self, rule: FaultRule, now_ms: int) -> None:
        """Go by another rule from now on; what a pause held is due at once."""
        if rule == self._rule:
            return
        self._rule, self._plan = rule, FaultPlan(rule.spec, self._stream)
        self._line_free_ms = 0
        if not rule.paused:
            for size, item in self._held:
                self._number += 1
                heappush(self._waiting, (now_ms, self._number, size, item))
            self._held.clear()

    def drain(self) -> list[T]:
        """Everything that waits, since the faults are over: first what was due first."""
        found = []
        while self._waiting:
            _, _, size, item = heappop(self._waiting)
            self._room.leave(size)
            found.append(item)
        for size, item in self._held:
            self._room.leave(size)
            found.append(item)
        self._held.clear()
        return found
