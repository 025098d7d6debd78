"""Keeps what was sampled of a conversation, in a ring of five seconds each, twenty minutes long.

Pure: it knows samples and times, no widgets.  A bucket that nobody watched says so (None), except
for messages that were written down before the view was opened, whose times the rows tell.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from engine.live_views import BufferView, LiveSample, OwnMessage, Traffic, TrafficKind

BUCKET_MS: Final = 5_000
BUCKETS: Final = 240
MOST_EARLIER: Final = 200
"""As many rows as the engine reads for ``LiveSample.earlier``."""

Values: TypeAlias = tuple[float | None, ...]
Sizes: TypeAlias = dict[TrafficKind, int]


@dataclass(slots=True)
class Bucket:
    """What happened in one span of time, and what waited at its end."""

    number: int
    placed: int = 0
    sent: Sizes = field(default_factory=dict)
    received: Sizes = field(default_factory=dict)
    asked: int = 0
    repairs_sent: int = 0
    repairs_received: int = 0
    buffers: BufferView | None = None
    skew: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Window:
    """A stretch of a history, made into columns."""

    buckets: Sequence[Bucket]
    own: Sequence[OwnMessage]
    earlier: Sequence[int]
    since_ms: int | None
    first: int
    """The number of the first bucket."""
    each: int
    """Buckets in a column."""
    columns: int

    @property
    def column_ms(self) -> int:
        return self.each * BUCKET_MS

    @property
    def from_ms(self) -> int:
        return self.first * BUCKET_MS

    @property
    def until_ms(self) -> int:
        return (self.first + self.each * self.columns) * BUCKET_MS

    def starts_ms(self) -> tuple[int, ...]:
        return tuple(self.from_ms + place * self.column_ms for place in range(self.columns))

    def summed(self, of: Callable[[Bucket], int]) -> Values:
        """Sums of what happened; None before the watch began."""
        return tuple(
            sum(map(of, buckets)) if watched else None for watched, buckets in self._by_column
        )

    def highest(self, of: Callable[[Bucket], float | None]) -> Values:
        """Of what was seen; None where nothing was."""
        return tuple(
            max((value for each in buckets if (value := of(each)) is not None), default=None)
            for _, buckets in self._by_column
        )

    def lowest(self, of: Callable[[Bucket], float | None]) -> Values:
        return tuple(
            min((value for each in buckets if (value := of(each)) is not None), default=None)
            for _, buckets in self._by_column
        )

    def placed(self) -> Values:
        """Messages, also from before the watch, as far back as the rows that were read go."""
        earlier = [0] * self.columns
        for at_ms in self.earlier:
            place = self._place(at_ms)
            if place is not None:
                earlier[place] += 1
        is_all = len(self.earlier) < MOST_EARLIER
        oldest = self.first if is_all else min(self.earlier) // BUCKET_MS
        return tuple(
            (value or 0) + earlier[place]
            if value is not None or self.first + (place + 1) * self.each > oldest
            else None
            for place, value in enumerate(self.summed(lambda bucket: bucket.placed))
        )

    def of_own(self, of: Callable[[Sequence[OwnMessage]], float | None]) -> Values:
        """Of our messages by the time at which they were saved; None where there are none."""
        found: list[list[OwnMessage]] = [[] for _ in range(self.columns)]
        for each in self.own:
            place = self._place(each.saved_ms)
            if place is not None:
                found[place].append(each)
        return tuple(of(messages) if messages else None for messages in found)

    def own_here(self) -> tuple[OwnMessage, ...]:
        """Our messages of this stretch."""
        return tuple(each for each in self.own if self._place(each.saved_ms) is not None)

    def _place(self, at_ms: int) -> int | None:
        place = (at_ms // BUCKET_MS - self.first) // self.each
        return place if 0 <= place < self.columns else None

    @cached_property
    def _by_column(self) -> Sequence[tuple[bool, list[Bucket]]]:
        """Whether it was watched at its end, and its buckets; quiet ones may be left out."""
        found: list[list[Bucket]] = [[] for _ in range(self.columns)]
        for bucket in self.buckets:
            place = (bucket.number - self.first) // self.each
            if 0 <= place < self.columns:
                found[place].append(bucket)
        ends_ms = (start_ms + self.column_ms for start_ms in self.starts_ms())
        since_ms = self.since_ms
        return [
            (since_ms is not None and end_ms > since_ms, buckets)
            for end_ms, buckets in zip(ends_ms, found, strict=True)
        ]


class LiveHistory:
    """One conversation's, from when its view was opened."""

    def __init__(self) -> None:
        self._buckets: deque[Bucket] = deque(maxlen=BUCKETS)
        self._last: LiveSample | None = None
        self._since_ms = 0
        self._earlier: tuple[int, ...] = ()

    @property
    def last(self) -> LiveSample | None:
        return self._last

    def add(self, sample: LiveSample) -> None:
        """Samples come in order; one of a time gone by counts for the newest bucket."""
        before = self._last
        if before is None:
            self._since_ms, self._earlier = sample.since_ms, sample.earlier
        bucket = self._bucket(sample.at_ms // BUCKET_MS)
        bucket.placed += sample.placed - (before.placed if before else 0)
        _grow(bucket.sent, sample.sent, before.sent if before else {})
        _grow(bucket.received, sample.received, before.received if before else {})
        bucket.asked += sample.repairs_asked - (before.repairs_asked if before else 0)
        bucket.repairs_sent += _repairs(sample.sent) - _repairs(before.sent if before else {})
        bucket.repairs_received += _repairs(sample.received) - _repairs(
            before.received if before else {}
        )
        bucket.buffers = sample.buffers or bucket.buffers
        if sample.skew is not None:
            low, high = bucket.skew or (sample.skew.lowest_ms, sample.skew.highest_ms)
            bucket.skew = min(low, sample.skew.lowest_ms), max(high, sample.skew.highest_ms)
        self._last = sample

    def window(self, span_ms: int, columns: int) -> Window:
        """The last ``span_ms``, in ``columns`` of equal length, each of whole buckets."""
        last = self._last
        each = max(span_ms // BUCKET_MS // columns, 1)
        end = (last.at_ms // BUCKET_MS if last else 0) // each * each + each
        return Window(
            buckets=tuple(self._buckets),
            own=last.own if last else (),
            earlier=self._earlier,
            since_ms=self._since_ms if last else None,
            first=end - each * columns,
            each=each,
            columns=columns,
        )

    def _bucket(self, number: int) -> Bucket:
        if not self._buckets or self._buckets[-1].number < number:
            self._buckets.append(Bucket(number))
        return self._buckets[-1]


def percentile(values: Iterable[int], percent: int) -> int | None:
    """The smallest that ``percent`` of them do not exceed; None of none."""
    ascending = sorted(values)
    if not ascending:
        return None
    return ascending[max(-(-len(ascending) * percent // 100) - 1, 0)]


def held_after(messages: Iterable[OwnMessage]) -> list[int]:
    return [each.held_after_ms for each in messages if each.held_after_ms is not None]


def _repairs(sums: dict[TrafficKind, Traffic]) -> int:
    repairs = sums.get(TrafficKind.REPAIR)
    return repairs.copies if repairs else 0


def _grow(
    sizes: Sizes, now: dict[TrafficKind, Traffic], before: dict[TrafficKind, Traffic]
) -> None:
    for kind, traffic in now.items():
        known = before.get(kind)
        more = traffic.size - (known.size if known else 0)
        if more:
            sizes[kind] = sizes.get(kind, 0) + more
