"""Looks for missing messages by time, at Stores that do not find them by their retrieval hints.

Part of the Periodic Incoming Buffer Sweep.  A hint is optional, and may name a copy that no Store
has.  A causal history is in the log's order, though, and a Lamport timestamp is about the time of
sending.  So the neighbours that we have on both sides of a missing message tell about when it was
sent.  Stores are asked for that time with a margin, which grows with every round, as copies are
sent later, too, and clocks differ.  After the last round a message counts as asked for.

Anybody can name messages that do not exist.  So windows are merged, few are asked for at once, and
ever fewer while nothing is found.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.missing import MissingTable
from engine.core.sds.vocabulary import Message, MissingEntry, StoreWindow

_MAX_WINDOWS: Final = 8
"""Windows per question."""
_MAX_ASKED: Final = 1_000
_PATIENT_ROUNDS: Final = 3
"""Questions in vain before they become fewer."""
_SLACK: Final = 64


class Between(NamedTuple):
    """Lamport timestamps of the nearest neighbours that are here; None: there is none before."""

    after: int | None
    before: int


@dataclass(slots=True)
class _Search:
    at_ms: UnixMs
    """When to ask next."""
    rounds: int = 0
    """The margin grows with it.  A window without an answer is asked for again."""
    decided: bool = False
    window: StoreWindow | None = None
    """The one that was asked for and is not answered yet."""

    def ask(self, window: StoreWindow, next_ms: int) -> None:
        self.window, self.at_ms = window, UnixMs(next_ms)


class TimeSearch:
    """The searches of one channel, by missing message."""

    def __init__(self, missing: MissingTable, config: SdsConfig) -> None:
        self._missing = missing
        self._config = config
        self._between: dict[MessageId, Between] = {}
        self._searches: dict[MessageId, _Search] = {}
        self._next_ms: UnixMs | None = None
        """No search is due earlier."""
        self._asked_ms: UnixMs | None = None
        self._in_vain = 0
        """Questions since the last one that something was found with."""

    # --- where it must lie ---

    def learn(
        self,
        message: Message,
        wanted: Iterable[MessageId],
        lamport_of: Callable[[MessageId], int | None],
    ) -> None:
        """``message`` names these; its neighbours in the causal history bound their time."""
        new = {message_id for message_id in wanted if message_id not in self._between}
        if not new:
            return
        if len(self._between) > 2 * len(self._missing) + _SLACK:
            self._forget_found()
        ids = [entry.message_id for entry in message.causal_history]
        lamports = [lamport_of(message_id) for message_id in ids]
        last = message.lamport_timestamp or 0
        after: int | None = None
        afters: list[int | None] = []
        for lamport in lamports:
            afters.append(after)
            after = after if lamport is None else lamport
        before = last
        for message_id, lamport, after in reversed([*zip(ids, lamports, afters, strict=True)]):
            if message_id in new:
                in_order = after is None or after <= before  # Else its place tells nothing.
                self._between[message_id] = Between(after if in_order else None, before)
            elif lamport is not None:
                before = min(lamport, last)

    def learn_place(self, message_id: MessageId, lamport: int) -> None:
        """It was here, but gave way."""
        self._between[message_id] = Between(lamport, lamport)

    # --- searches ---

    def begin(self, message_id: MessageId, now_ms: UnixMs, *, decided: bool) -> bool:
        """Its hint is of no use, or there is none.  Returns whether it is still searched for.

        ``decided``: no Store has it by its hint, and no other one is worth waiting for.
        """
        place, search = self._between.get(message_id), self._searches.get(message_id)
        if place is None or self._missing.find(message_id) is None:
            return False
        if search is None:
            self._searches[message_id] = search = _Search(at_ms=now_ms)
            self._next_ms = now_ms if self._next_ms is None else min(self._next_ms, now_ms)
        if place.before < now_ms - self._config.lost_after_ms:
            # No more copies of old messages are sent, so one wide window says it all.
            search.rounds = max(search.rounds, self._last_round)
        search.decided |= decided
        return self._is_open(search)

    def begin_anew(self, now_ms: UnixMs) -> None:
        """Begin again with the first round, once hints turn out to be of no use.

        A search under way goes on; otherwise frequent requests would never be answered.
        """
        asked = {key: each for key, each in self._searches.items() if each.window is not None}
        for search in asked.values():
            search.at_ms = now_ms
        self._searches = asked
        self._next_ms = now_ms if asked else None
        self._asked_ms, self._in_vain = None, 0

    def next_deadline(self) -> UnixMs | None:
        if self._next_ms is None or self._asked_ms is None:
            return self._next_ms
        pause_ms = self._wait_ms(max(self._in_vain - 1 - _PATIENT_ROUNDS, 0))
        return max(self._next_ms, UnixMs(self._asked_ms + pause_ms))

    def take_due(self, now_ms: UnixMs) -> tuple[StoreWindow, ...]:
        """The windows to ask Stores for now: of the least asked first, as many as have room."""
        at_ms = self.next_deadline()
        if at_ms is None or not self._is_due(at_ms, now_ms):
            return ()
        self._forget_found()
        due = sorted(
            (search.rounds, self._between[message_id].before, message_id)
            for message_id, search in self._searches.items()
            if self._is_open(search) and self._is_due(search.at_ms, now_ms)
        )
        windows: list[StoreWindow] = []
        for rounds, _, message_id in due[:_MAX_ASKED]:
            window = self._window(self._between[message_id], rounds, now_ms)
            more = _merged((*windows, window))
            if len(more) <= _MAX_WINDOWS:
                windows = more
                self._searches[message_id].ask(window, now_ms + self._wait_ms(rounds))
        times = [search.at_ms for search in self._searches.values() if self._is_open(search)]
        self._next_ms = min(times, default=None)
        if windows:
            self._asked_ms = now_ms
            self._in_vain += 1
        return tuple(windows)

    def answered(self, window: StoreWindow) -> tuple[list[MessageId], list[MessageId]]:
        """Stores gave all that they have of this time.

        Returns what was asked for with it and is missing still, and of those the ones that no Store
        has by their hints and whose last round this was.
        """
        self._forget_found()
        lacking: list[MessageId] = []
        over: list[MessageId] = []
        for message_id, search in self._searches.items():
            if search.window is not None and _contains(window, search.window):
                search.window = None
                search.rounds += 1
                lacking.append(message_id)
                if search.decided and not self._is_open(search):
                    over.append(message_id)
        return lacking, over

    def widest(self, entries: Iterable[MissingEntry], now_ms: UnixMs) -> tuple[StoreWindow, ...]:
        """For lost messages, which nothing is known of but what waited for them."""
        places = [each.before.lamport_timestamp for each in entries if each.before is not None]
        windows = [self._window(Between(None, at), self._last_round, now_ms) for at in places]
        return tuple(_merged(windows)[-_MAX_WINDOWS:])

    # --- details ---

    def _window(self, place: Between, rounds: int, now_ms: UnixMs) -> StoreWindow:
        config = self._config
        first_ms, longest_ms = config.time_search_margin_ms
        margin_ms = min(first_ms << 2 * rounds, longest_ms)
        before = min(place.before, now_ms + config.max_ahead_ms)
        until_ms = before + margin_ms
        if place.after is None:
            since_ms = before - config.time_search_back_factor * margin_ms
        else:
            since_ms = min(place.after, before) - margin_ms
        since_ms = max(since_ms, until_ms - config.time_search_longest_ms, 0)
        return StoreWindow(since_ms=UnixMs(since_ms), until_ms=UnixMs(until_ms))

    @property
    def _last_round(self) -> int:
        return self._config.time_search_rounds - 1

    def _is_open(self, search: _Search) -> bool:
        return search.rounds <= self._last_round

    def _is_due(self, at_ms: UnixMs, now_ms: UnixMs) -> bool:
        """A time too far ahead is from a clock that was set back since."""
        return not now_ms < at_ms <= now_ms + self._config.time_search_wait_ms[1]

    def _wait_ms(self, times: int) -> int:
        first_ms, longest_ms = self._config.time_search_wait_ms
        return min(first_ms << min(times, 20), longest_ms)

    def _forget_found(self) -> None:
        """Drop what is no longer missing; if it was just asked for, asking was of use."""
        for message_id in [each for each in self._between if self._missing.find(each) is None]:
            del self._between[message_id]
            search = self._searches.pop(message_id, None)
            if search is not None and search.window is not None:
                self._in_vain = 0


def _contains(window: StoreWindow, other: StoreWindow) -> bool:
    return window.since_ms <= other.since_ms and other.until_ms <= window.until_ms


def _merged(windows: Iterable[StoreWindow]) -> list[StoreWindow]:
    """The same times, in order and without overlaps."""
    merged: list[StoreWindow] = []
    for window in sorted(windows, key=lambda each: each.since_ms):
        if merged and window.since_ms <= merged[-1].until_ms:
            until_ms = max(merged[-1].until_ms, window.until_ms)
            merged[-1] = StoreWindow(since_ms=merged[-1].since_ms, until_ms=until_ms)
        else:
            merged.append(window)
    return merged
