"""Shares requests for missing dependencies among their namers, by turns.

Anyone can name messages that no one has, and every member would request them again and again.  So
each namer has its own queue.  A request counts against the namers until one of theirs is found.
After too many fruitless requests, a namer's next turn comes later and later.  A dependency with
several namers is in each one's queue, so no one can discredit what others name.  What is requested
again, and when, is decided in ``missing``.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig

Namer: TypeAlias = ParticipantId | None
"""None: unknown since a restart."""
_FOUND_MAKES_UP_FOR: Final = 16
"""Fruitless requests that one find offsets: if three of four messages are lost on the way, one in
sixteen is answered."""
_DOUBLED_EVERY: Final = 4
_SLACK: Final = 64
_MAX_NAMERS: Final = 4_096


class RequestTurns:
    """The queue of each namer, and the time of its turn."""

    def __init__(self, config: SdsConfig, request_at: Callable[[MessageId], UnixMs | None]) -> None:
        """``request_at``: when to request a dependency; None if it is no longer wanted."""
        self._config = config
        self._request_at = request_at
        self._namers: dict[Namer, _Namer] = {}
        self._turns: list[tuple[UnixMs, int, Namer]] = []
        self._serial = 0
        """Among due namers the one whose last turn is longest ago goes first."""

    def schedule(self, message_id: MessageId, namers: Iterable[Namer], at_ms: UnixMs) -> None:
        """Request it at this time, on behalf of each namer."""
        for who in namers:
            namer = self._namers.get(who)
            if namer is None:
                self._forget_idle()
                namer = self._namers[who] = _Namer()
            heappush(namer.queue, (at_ms, message_id))
            if len(namer.queue) > 2 * namer.compacted + _SLACK:
                namer.queue = [item for item in set(namer.queue) if self._is_current(item)]
                namer.compacted = len(namer.queue)
                heapify(namer.queue)
            self._set_turn(who, namer)

    def next_ms(self) -> UnixMs | None:
        """The time of the next turn."""
        turns = self._turns
        while turns:
            at_ms, serial, who = turns[0]
            namer = self._namers.get(who)
            if namer is not None and namer.serial == serial:
                if self._turn_ms(namer) == namer.due_ms:
                    return at_ms
                namer.due_ms = None
                self._set_turn(who, namer)
            if turns and turns[0][1] == serial:
                heappop(turns)
        return None

    def take(self, limit: int, now_ms: UnixMs) -> list[MessageId]:
        """Take one dependency per namer whose turn it is, round after round, up to ``limit``."""
        taken: list[MessageId] = []
        asked: dict[Namer, _Namer] = {}
        while len(taken) < limit and (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            who = heappop(self._turns)[2]
            namer = asked[who] = self._namers[who]
            message_id = heappop(namer.queue)[1]
            namer.asked_in_vain += 1
            namer.due_ms = None
            self._set_turn(who, namer, not_before=now_ms)
            if message_id not in taken:
                taken.append(message_id)
        for who, namer in asked.items():
            wait_ms = self._wait_ms(namer)
            if wait_ms:
                namer.not_before_ms = UnixMs(now_ms + wait_ms)
                self._set_turn(who, namer)
        return taken

    def found(self, namers: Iterable[Namer]) -> None:
        """Something that these namers named has arrived."""
        for who in namers:
            namer = self._namers.get(who)
            if namer is None:
                continue
            namer.asked_in_vain = max(namer.asked_in_vain - _FOUND_MAKES_UP_FOR, 0)
            if namer.not_before_ms and not self._wait_ms(namer):
                namer.not_before_ms = UnixMs(0)
                self._set_turn(who, namer)
            if not namer.queue and not namer.asked_in_vain:
                del self._namers[who]

    def asked_in_vain(self, who: Namer) -> int:
        namer = self._namers.get(who)
        return 0 if namer is None else namer.asked_in_vain

    def begin_anew(self, latest_ms: UnixMs | None = None) -> None:
        """Let every namer have a turn; after a clock was set back, by ``latest_ms``."""
        for who, namer in self._namers.items():
            if latest_ms is None:
                namer.asked_in_vain, namer.not_before_ms = 0, UnixMs(0)
            namer.not_before_ms = min(namer.not_before_ms, latest_ms or namer.not_before_ms)
            self._set_turn(who, namer)

    def _forget_idle(self) -> None:
        """Forget namers with an empty queue: unverified senders can be any number."""
        if len(self._namers) >= _MAX_NAMERS:
            for who in [who for who, namer in self._namers.items() if not namer.queue]:
                del self._namers[who]

    def _wait_ms(self, namer: "_Namer") -> int:
        """The least wait between two turns."""
        config = self._config
        beyond = namer.asked_in_vain - config.requests_in_vain
        if beyond <= 0:
            return 0
        doubled = min(beyond // _DOUBLED_EVERY, 20)
        return min(config.repair_t_max_ms << doubled, config.namer_backoff_max_ms)

    def _turn_ms(self, namer: "_Namer") -> UnixMs | None:
        queue = namer.queue
        while queue and not self._is_current(queue[0]):
            heappop(queue)
        return max(queue[0][0], namer.not_before_ms) if queue else None

    def _set_turn(self, who: Namer, namer: "_Namer", not_before: UnixMs | None = None) -> None:
        at_ms = self._turn_ms(namer)
        if at_ms is None or at_ms == namer.due_ms:
            return
        namer.due_ms = at_ms
        self._serial += 1
        namer.serial = self._serial
        namer.turn_ms = at_ms if not_before is None else max(at_ms, not_before)
        heappush(self._turns, (namer.turn_ms, self._serial, who))
        if len(self._turns) > 2 * len(self._namers) + _SLACK:
            self._turns[:] = [
                (each.turn_ms, each.serial, key)
                for key, each in self._namers.items()
                if each.due_ms is not None
            ]
            heapify(self._turns)

    def _is_current(self, item: tuple[UnixMs, MessageId]) -> bool:
        return self._request_at(item[1]) == item[0]


class _Namer:
    __slots__ = (
        "asked_in_vain",
        "compacted",
        "due_ms",
        "not_before_ms",
        "queue",
        "serial",
        "turn_ms",
    )

    def __init__(self) -> None:
        self.queue: list[tuple[UnixMs, MessageId]] = []
        self.compacted = 0
        """The queue's length when it was last freed of unwanted entries."""
        self.asked_in_vain = 0
        self.not_before_ms = UnixMs(0)
        self.due_ms: UnixMs | None = None
        """The time in its entry in the order of turns; None if it has none."""
        self.turn_ms = UnixMs(0)
        self.serial = 0
        """``turn_ms`` and ``serial`` identify that entry; its other entries are outdated."""
