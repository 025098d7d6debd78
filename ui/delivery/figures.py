"""The charts of the delivery view as values: which there are, their words, and their numbers.

Each is made of a window of what was sampled; painting, the table and every export read the same.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from engine.live_views import OwnMessage, TrafficKind
from ui.delivery.series import Bucket, Values, Window, held_after, percentile
from ui.file_words import size_words
from ui.regional import decimal, grouped
from ui.times import duration_words
from ui.translate import tr

_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60_000
_DECIMAL_BELOW: Final = 10
_KILO: Final = 1_000


class Look(Enum):
    """How a row of numbers is drawn; no two in a chart look alike but for their colour."""

    LINE = auto()
    DASHED = auto()
    """With its area filled."""
    SOLID = auto()
    """Bars; those of one chart stand on each other."""
    HATCHED = auto()
    HOLLOW = auto()
    DOTTED = auto()


class Ink(Enum):
    ACCENT = "accent"
    WARN = "warnDot"
    LATE = "late"
    QUIET = "line2"


class Row(Struct, frozen=True, kw_only=True):
    name: str
    values: Values
    look: Look
    ink: Ink = Ink.ACCENT


class Chart(Struct, frozen=True, kw_only=True):
    key: str
    """For names of files, and of columns in CSV; English."""
    title: str
    now: str
    """The figure of the whole stretch, or the newest one."""
    note: str
    """What the numbers are, in a sentence."""
    rows: tuple[Row, ...]
    starts_ms: tuple[int, ...]
    column_ms: int
    words: Callable[[float], str]
    """A value as people read it."""
    top: float | None = None
    """The end of its axis; None: what the values need."""

    @property
    def is_stacked(self) -> bool:
        return all(row.look in _BARS for row in self.rows)

    @property
    def has_any(self) -> bool:
        return any(value is not None for row in self.rows for value in row.values)


_BARS = {Look.SOLID, Look.HATCHED, Look.HOLLOW, Look.DOTTED}


def charts_of(window: Window, *, is_pair: bool, is_open: bool) -> tuple[Chart, ...]:
    """Those that say something of such a conversation, the most telling first."""
    charts = [_rate(window), _copies(window), _up(window), _down(window), _buffers(window, is_pair)]
    if is_pair:
        return tuple(charts)
    charts += [_repairs(window), _skew(window), _fill(window)]
    return tuple(charts if is_open else [_time(window), *charts])


# --- one by one -----------------------------------------------------------------------------------


def _time(window: Window) -> Chart:
    own = window.own_here()
    took = held_after(own)
    half = percentile(took, 50)
    return _chart(
        window,
        key="held_by_all_ms",
        title=tr("Time until everyone holds it"),
        now="" if half is None else span_words(half),
        note=tr(
            "Of your messages, by when they were written. {held} of {all} are held by everyone."
        ).format(held=grouped(len(took)), all=grouped(len(own))),
        rows=(
            _row(tr("half"), window.of_own(_percentile_of(50)), Look.LINE),
            _row(tr("slowest 5 %"), window.of_own(_percentile_of(95)), Look.DASHED),
        ),
        words=span_words,
    )


def _rate(window: Window) -> Chart:
    values = _per_minute(window, window.placed())
    return _chart(
        window,
        key="messages_per_minute",
        title=tr("Messages per minute"),
        now=_newest(values, number_words),
        note=tr("That got their place here, yours among them."),
        rows=(_row(tr("messages"), values, Look.SOLID),),
        words=number_words,
    )


def _copies(window: Window) -> Chart:
    own = [each.copies for each in window.own_here() if each.copies]
    mean = sum(own) / len(own) if own else None
    return _chart(
        window,
        key="copies_per_message",
        title=tr("Copies per message"),
        now="" if mean is None else number_words(mean),
        note=tr("How often each of your messages was handed to the network, on average."),
        rows=(_row(tr("copies"), window.of_own(_mean_copies), Look.SOLID),),
        words=number_words,
    )


def _up(window: Window) -> Chart:
    return _traffic(window, "bytes_up", tr("Sent per second"), lambda bucket: bucket.sent, _SENT)


def _down(window: Window) -> Chart:
    return _traffic(
        window, "bytes_down", tr("Received per second"), lambda bucket: bucket.received, _RECEIVED
    )


def _traffic(
    window: Window,
    key: str,
    title: str,
    sizes: Callable[[Bucket], dict[TrafficKind, int]],
    kinds: Sequence[tuple[frozenset[TrafficKind], Look, Ink, Callable[[], str]]],
) -> Chart:
    rows = tuple(
        _row(
            words(),
            _per_second(window, window.summed(_sum_of(sizes, members))),
            look,
            ink,
        )
        for members, look, ink, words in kinds
    )
    return _chart(
        window,
        key=key,
        title=title,
        now=_newest(_added(rows), rate_words),
        note=tr("Bytes of this conversation's copies, as far as they could be opened."),
        rows=rows,
        words=rate_words,
    )


def _buffers(window: Window, is_pair: bool) -> Chart:
    outgoing = window.highest(lambda b: b.buffers.outgoing if b.buffers else None)
    name = tr("to be acknowledged") if is_pair else tr("not held by all")
    rows = [_row(name, outgoing, Look.SOLID)]
    if not is_pair:
        waiting = window.highest(lambda b: b.buffers.incoming if b.buffers else None)
        missing = window.highest(lambda b: b.buffers.missing if b.buffers else None)
        rows.append(_row(tr("here, waiting"), waiting, Look.HATCHED, Ink.LATE))
        rows.append(_row(tr("missing"), missing, Look.HOLLOW, Ink.WARN))
    return _chart(
        window,
        key="buffers",
        title=tr("Waiting"),
        now=_newest(_added(rows), number_words),
        note=tr("Messages in the buffers of SDS.")
        if not is_pair
        else tr("Records of MVDS: what is still to be offered, requested or sent."),
        rows=tuple(rows),
        words=number_words,
    )


def _repairs(window: Window) -> Chart:
    asked = _per_minute(window, window.summed(lambda bucket: bucket.asked))
    sent = _per_minute(window, window.summed(lambda bucket: bucket.repairs_sent))
    came = _per_minute(window, window.summed(lambda bucket: bucket.repairs_received))
    rows = (
        _row(tr("asked for"), asked, Look.HOLLOW, Ink.WARN),
        _row(tr("came"), came, Look.SOLID, Ink.WARN),
        _row(tr("sent to others"), sent, Look.HATCHED),
    )
    return _chart(
        window,
        key="repairs_per_minute",
        title=tr("Repairs per minute"),
        now=_newest(_added(rows), number_words),
        note=tr("Messages asked for among members, and copies sent because of that."),
        rows=rows,
        words=number_words,
    )


def _skew(window: Window) -> Chart:
    low = window.lowest(lambda bucket: bucket.skew[0] if bucket.skew else None)
    high = window.highest(lambda bucket: bucket.skew[1] if bucket.skew else None)
    return _chart(
        window,
        key="lamport_skew_ms",
        title=tr("Lamport skew"),
        now=_newest(high, skew_words),
        note=tr(
            "Lamport timestamps of what arrived live, minus this device's clock. Above zero, "
            "somebody's clock is ahead; below, messages were on their way that long."
        ),
        rows=(
            _row(tr("lowest"), low, Look.DASHED, Ink.QUIET),
            _row(tr("highest"), high, Look.LINE),
        ),
        words=skew_words,
    )


def _fill(window: Window) -> Chart:
    fills = window.highest(lambda b: b.buffers.filter_fill if b.buffers else None)
    last = next((b.buffers for b in reversed(window.buckets) if b.buffers is not None), None)
    wrong = last.filter_false_probability if last else None
    return _chart(
        window,
        key="filter_fill",
        title=tr("Filter fill"),
        now=_newest(fills, percent_words),
        note=tr("Bits set in our Bloom filter.")
        if not wrong
        else tr("Bits set in our Bloom filter; wrong once in {number}.").format(
            number=grouped(round(1 / wrong))
        ),
        rows=(_row(tr("set bits"), fills, Look.LINE),),
        words=percent_words,
        top=1.0,
    )


_SENT: Final = (
    (frozenset({TrafficKind.CONTENT}), Look.SOLID, Ink.ACCENT, lambda: tr("messages")),
    (frozenset({TrafficKind.AGAIN}), Look.HATCHED, Ink.ACCENT, lambda: tr("again")),
    (frozenset({TrafficKind.REPAIR}), Look.DOTTED, Ink.WARN, lambda: tr("repairs")),
    (
        frozenset({TrafficKind.SYNC, TrafficKind.EPHEMERAL}),
        Look.HOLLOW,
        Ink.QUIET,
        lambda: tr("state"),
    ),
)
_RECEIVED: Final = (
    (frozenset({TrafficKind.CONTENT}), Look.SOLID, Ink.ACCENT, lambda: tr("messages")),
    (frozenset({TrafficKind.AGAIN}), Look.HATCHED, Ink.ACCENT, lambda: tr("again")),
    (
        frozenset({TrafficKind.REPAIR, TrafficKind.HISTORY}),
        Look.DOTTED,
        Ink.WARN,
        lambda: tr("repairs, history"),
    ),
    (
        frozenset({TrafficKind.SYNC, TrafficKind.EPHEMERAL, TrafficKind.REFUSED}),
        Look.HOLLOW,
        Ink.QUIET,
        lambda: tr("state, refused"),
    ),
)


# --- words ----------------------------------------------------------------------------------------


def number_words(value: float) -> str:
    return (
        grouped(round(value)) if value >= _DECIMAL_BELOW or value == int(value) else decimal(value)
    )


def span_words(length_ms: float) -> str:
    """`"40 ms"`, `"1.4 s"`, `"12 min"`."""
    if length_ms < _SECOND_MS:
        return tr("{number} ms").format(number=round(length_ms))
    if length_ms < _MINUTE_MS:
        return tr("{number} s").format(number=number_words(length_ms / _SECOND_MS))
    return duration_words(int(length_ms))


def skew_words(skew_ms: float) -> str:
    sign = "\u2212" if skew_ms < 0 else "+" if skew_ms else ""
    return f"{sign}{span_words(abs(skew_ms))}"


def percent_words(share: float) -> str:
    return tr("{number} %").format(number=decimal(100 * share, 0))


def rate_words(per_second: float) -> str:
    if per_second < _KILO:
        return tr("{number} B/s").format(number=grouped(round(per_second)))
    return tr("{size}/s").format(size=size_words(round(per_second)))


# --- numbers --------------------------------------------------------------------------------------


def _chart(  # noqa: PLR0913 - keyword-only: the parts of one
    window: Window,
    *,
    key: str,
    title: str,
    now: str,
    note: str,
    rows: Sequence[Row],
    words: Callable[[float], str],
    top: float | None = None,
) -> Chart:
    return Chart(
        key=key,
        title=title,
        now=now,
        note=note,
        rows=tuple(rows),
        starts_ms=window.starts_ms(),
        column_ms=window.column_ms,
        words=words,
        top=top,
    )


def _row(name: str, values: Values, look: Look, ink: Ink = Ink.ACCENT) -> Row:
    return Row(name=name, values=values, look=look, ink=ink)


def _percentile_of(percent: int) -> Callable[[Sequence[OwnMessage]], float | None]:
    return lambda messages: percentile(held_after(messages), percent)


def _mean_copies(messages: Sequence[OwnMessage]) -> float | None:
    """Of those whose copies were noted: nothing is known of what went out before a restart."""
    noted = [each.copies for each in messages if each.copies]
    return sum(noted) / len(noted) if noted else None


def _sum_of(
    sizes: Callable[[Bucket], dict[TrafficKind, int]], kinds: Iterable[TrafficKind]
) -> Callable[[Bucket], int]:
    return lambda bucket: sum(sizes(bucket).get(kind, 0) for kind in kinds)


def _per_minute(window: Window, values: Values) -> Values:
    return tuple(
        None if value is None else value * _MINUTE_MS / window.column_ms for value in values
    )


def _per_second(window: Window, values: Values) -> Values:
    return tuple(
        None if value is None else value * _SECOND_MS / window.column_ms for value in values
    )


def _added(rows: Sequence[Row]) -> Values:
    return tuple(
        sum(value for value in column if value is not None)
        if any(value is not None for value in column)
        else None
        for column in zip(*(row.values for row in rows), strict=True)
    )


def _newest(values: Values, words: Callable[[float], str]) -> str:
    """Of the last column that is over, for the newest one has hardly begun."""
    known = [value for value in values if value is not None]
    return "" if not known else words(known[-2] if len(known) > 1 else known[-1])
