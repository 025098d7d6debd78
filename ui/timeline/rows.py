"""Which rows a run of messages makes: days, runs, system lines, the unread line and the gap.

Pure Python: ordered ``MessageView``s go in, rows come out; no widget, no font, no clock of its own.
A *run* is what one sender wrote in one go; it breaks on a new sender, five minutes, a day, a gap or
the unread line.  The markers of what is missing and of what is lost stand where those messages
belong (``gaps``).  What is held aside because it claims a time too far ahead has no place yet: it
is a section of its own after the end.  Above the beginning one can ask for what was said earlier.

``sent_ms`` is the author's clock, so it may be anything: it decides about days and pauses, never
about order.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.core.ids import MessageId, Position, UnixMs
from engine.core.problems import FileFault
from engine.events import GapPlace, GapView, HeldView, MessageKind, MessageView
from engine.history_views import HistoryState, HistoryView, LostView
from ui.timeline.gaps import Stretch
from ui.timeline.together import MOST_TOGETHER, begins_album, goes_on
from ui.times import moment

_MINUTE_MS = 60 * 1000
RUN_PAUSE_MS = 5 * _MINUTE_MS
HELD_SHOWN = 3
"""So many held messages stand below the newest; the others are shown when asked for."""
_SYSTEM_KINDS = frozenset(
    {
        MessageKind.CREATED,
        MessageKind.JOINED,
        MessageKind.LEFT,
        MessageKind.RENAMED,
        MessageKind.DEED,
        MessageKind.ASKED,
        MessageKind.ACCEPTED,
        MessageKind.DECLINED,
        MessageKind.WITHDRAWN,
    }
)

_MESSAGE_KEY = "message "
_QUARTER_MS = 15 * _MINUTE_MS


class DayRow(Struct, frozen=True, kw_only=True):
    """A new local day begins with ``before``."""

    day: date
    before: MessageId


class UnreadRow(Struct, frozen=True, kw_only=True):
    since_ms: UnixMs


class GapRow(Struct, frozen=True, kw_only=True):
    """Each gap has its own, where it belongs."""

    gap: GapPlace
    place: str
    """What tells this marker from the others: the message below it."""


class LostRow(Struct, frozen=True, kw_only=True):
    """Given up; they are shown if they ever turn up."""

    lost: tuple[LostView, ...]
    place: str
    """What tells this marker from the others: the message below it."""
    untold: int = 0
    """So many more are lost, longer ago, of which nothing is told."""

    @property
    def names(self) -> tuple[MessageId, ...]:
        """The ids of what is lost; where nobody knows them, of the messages before which it is."""
        ids = (each.message_id or (each.before and each.before.message_id) for each in self.lost)
        return tuple(dict.fromkeys(each for each in ids if each))


class Withheld(Struct, frozen=True, kw_only=True):
    """What was said before we came, or before some time, cannot be read here."""

    by: str
    """The name of whoever let us in and chose that; "" if it is not known."""
    since_ms: UnixMs | None
    """What was said from then on can be read, about; None: only what came after us."""


class EarlierRow(Struct, frozen=True, kw_only=True):
    """Above the oldest message that is here: what was said before may be fetched, or not read."""

    history: HistoryView | None
    withheld: Withheld | None = None

    @property
    def can_have_more(self) -> bool:
        """Something that could be read may be missing here."""
        if self.withheld is None:
            return True
        since_ms, history = self.withheld.since_ms, self.history
        if since_ms is None:
            return False
        if history is None or history.state is not HistoryState.DONE:
            return True
        return history.since_ms is not None and history.since_ms > since_ms


class SystemRow(Struct, frozen=True, kw_only=True):
    """Somebody created, joined or left: a centred line without a bubble."""

    message: MessageView


class MessageRow(Struct, frozen=True, kw_only=True):
    message: MessageView
    first: bool
    """First of its run: carries name and avatar, or a full bead."""
    last: bool
    timed: bool = True
    """Its time is written out.  In one's own run it is where it changes."""
    album: tuple[MessageView, ...] = ()
    """All pictures of the album that is drawn here; this message's is the first."""
    album_of: MessageId | None = None
    """Its picture is drawn there, and the row itself has no height."""
    lacking_too: MessageView | None = None
    """The one right below it, whose file has the same problem, and says so for both."""


class HeldTitleRow(Struct, frozen=True, kw_only=True):
    """Begins the section of what is held aside, of which ``shown`` messages follow."""

    held: HeldView
    shown: int
    can_unfold: bool
    """There are more than stand here unasked."""
    can_fold: bool
    """All that there are stand here, because somebody asked."""


class HeldRow(Struct, frozen=True, kw_only=True):
    """A message without a place: it cannot be read up to, selected or deleted."""

    message: MessageView
    first: bool
    """Its sender is not the one above it."""


Row: TypeAlias = (
    DayRow
    | UnreadRow
    | GapRow
    | LostRow
    | EarlierRow
    | SystemRow
    | MessageRow
    | HeldTitleRow
    | HeldRow
)
RowKey = str
"""Equal for the same thing across rebuilds: what focus, anchor and accessibility hold on to."""


_KEYS_OF_MARKERS: dict[type[Row], str] = {
    UnreadRow: "unread",
    EarlierRow: "earlier",
    HeldTitleRow: "held",
}


def row_key(row: Row) -> RowKey:
    match row:
        case MessageRow() | SystemRow():
            return message_key(row.message.message_id)
        case DayRow():
            return f"day {row.before}"
        case LostRow():
            return f"lost {row.place}"
        case GapRow():
            return f"gap {row.place}"
        case HeldRow():
            return f"held {row.message.message_id}"
        case _:
            return _KEYS_OF_MARKERS[type(row)]


def message_key(message_id: MessageId) -> RowKey:
    return _MESSAGE_KEY + message_id


def message_id_of(key: RowKey) -> MessageId | None:
    """The message that a key stands for, if it stands for one."""
    return MessageId(key[len(_MESSAGE_KEY) :]) if key.startswith(_MESSAGE_KEY) else None


def message_of(row: Row) -> MessageView | None:
    """The message of a row that is part of the conversation's order."""
    return row.message if isinstance(row, MessageRow | SystemRow) else None


def message_in(row: Row) -> MessageView | None:
    """The message that a row shows, with a place or without."""
    return row.message if isinstance(row, HeldRow) else message_of(row)


def is_system(message: MessageView) -> bool:
    return message.kind in _SYSTEM_KINDS


def order(message: MessageView) -> tuple[bool, int, str]:
    """Rows are ordered by position; waiting rows stand last."""
    position = message.position
    return (message.waiting, position.lamport_timestamp, position.message_id)


def local_day(at_ms: UnixMs) -> date:
    """The day of ``at_ms`` where this device is, with a foreign clock kept inside the calendar."""
    return _day_of_quarter(at_ms // _QUARTER_MS)


@lru_cache(maxsize=4096)
def _day_of_quarter(quarter: int) -> date:
    """Every time zone's midnight is a quarter of an hour, so days are looked up by quarters."""
    return local_time(UnixMs(quarter * _QUARTER_MS)).date()


def local_time(at_ms: UnixMs) -> datetime:
    return moment(at_ms)


def derive_rows(  # noqa: PLR0913 - what rows depend on
    messages: Sequence[MessageView],
    *,
    gap: GapView | None,
    first_unread: Position | None,
    starts_at_beginning: bool,
    reaches_end: bool = True,
    day_of: Callable[[UnixMs], date] = local_day,
) -> list[Row]:
    """The rows of ``messages``, which are in ``order``.

    The first row gets its day only if the conversation starts there, or else its day would jump
    about while older pages come in.
    """
    rows: list[Row] = []
    markers = _markers(messages, gap, starts_at_beginning, reaches_end)
    previous: MessageView | None = None
    previous_day: date | None = None
    unread_pending = first_unread is not None
    for index, message in enumerate(messages):
        day = day_of(message.sent_ms)
        breaks = previous is None or not _continues(previous, message)
        if day != previous_day:
            breaks = True
            if previous_day is not None or starts_at_beginning:
                rows.append(DayRow(day=day, before=message.message_id))
        if index in markers:
            rows += markers[index]
            breaks = True
        if unread_pending and _is_unread(message, first_unread):
            rows.append(UnreadRow(since_ms=message.sent_ms))
            unread_pending, breaks = False, True
        if is_system(message):
            rows.append(SystemRow(message=message))
            previous = None
        else:
            if not breaks:
                _continue_run(rows)
            if previous is not None and message.file is not None:
                _leave_problem(rows, previous, message)
            timed = breaks or not message.is_own or not _same_minute(previous, message)
            rows.append(MessageRow(message=message, first=breaks, last=True, timed=timed))
            previous = message
        previous_day = day
    return _with_albums(rows) + markers.get(len(messages), [])


def _with_albums(rows: list[Row]) -> list[Row]:
    """Pictures that were sent together are drawn by the first of them."""
    at = 0
    while at < len(rows):
        together = _album_at(rows, at)
        if len(together) > 1:
            first, last = together[0], together[-1]
            album = tuple(row.message for row in together)
            rows[at] = replace(first, album=album, last=last.last)
            for place, row in enumerate(together[1:], at + 1):
                rows[place] = replace(row, album_of=first.message.message_id)
        at += max(1, len(together))
    return rows


def _album_at(rows: Sequence[Row], at: int) -> list[MessageRow]:
    first = rows[at]
    if not isinstance(first, MessageRow) or not begins_album(first.message):
        return []
    together = [first]
    for row in rows[at + 1 : at + MOST_TOGETHER]:
        if not isinstance(row, MessageRow) or row.first:
            break
        if not goes_on(together[-1].message, row.message):
            break
        together.append(row)
    return together


def _markers(
    messages: Sequence[MessageView], gap: GapView | None, beginning: bool, end: bool
) -> dict[int, list[Row]]:
    """What stands above which message: first what is lost for good, then what is missing."""
    if gap is None:
        return {}
    stretch = Stretch(messages=messages, reaches_beginning=beginning, reaches_end=end)
    markers: dict[int, list[Row]] = {}
    untold = max(0, gap.lost_total - sum(each.count for each in gap.lost))
    for index, lost in sorted(stretch.lost_indices(gap).items()):
        markers[index] = [LostRow(lost=lost, place=_below(messages, index), untold=untold)]
        untold = 0
    for index, missing in stretch.gap_indices(gap).items():
        row = GapRow(gap=missing, place=_below(messages, index))
        markers.setdefault(index, []).append(row)
    return markers


def _below(messages: Sequence[MessageView], index: int) -> str:
    return messages[index].message_id if index < len(messages) else "end"


_NOTHING_EARLIER = frozenset({MessageKind.CREATED, MessageKind.ASKED})


def earlier_row(
    messages: Sequence[MessageView],
    history: HistoryView | None,
    *,
    offered: bool,
    withheld: Withheld | None = None,
) -> list[Row]:
    """Above the beginning, unless that is where the conversation itself began."""
    if not (offered or withheld) or not messages or messages[0].kind in _NOTHING_EARLIER:
        return []
    return [EarlierRow(history=history, withheld=withheld)]


def held_rows(held: HeldView | None, *, unfolded: bool, placed: Collection[MessageId]) -> list[Row]:
    """The section after the end.  What has just taken its place is left out."""
    if held is None:
        return []
    messages = [m for m in held.messages if m.message_id not in placed]
    if not messages:
        return []
    shown = messages if unfolded else messages[:HELD_SHOWN]
    many = len(messages) > HELD_SHOWN
    title = HeldTitleRow(
        held=held,
        shown=len(shown),
        can_unfold=many and not unfolded,
        can_fold=many and unfolded,
    )
    rows: list[Row] = [title]
    above: MessageView | None = None
    for message in shown:
        first = above is None or above.sender_id != message.sender_id or is_system(above)
        rows.append(HeldRow(message=message, first=first))
        above = message
    return rows


def _continue_run(rows: list[Row]) -> None:
    above = rows[-1]
    if isinstance(above, MessageRow):
        rows[-1] = replace(above, last=False)


def _leave_problem(rows: list[Row], above: MessageView, message: MessageView) -> None:
    """That no service node keeps it is said by the last file of several with nothing between."""
    row = rows[-1]
    if isinstance(row, MessageRow) and _is_kept_nowhere(above) and _is_kept_nowhere(message):
        rows[-1] = replace(row, lacking_too=message)


def _is_kept_nowhere(message: MessageView) -> bool:
    problem = None if message.file is None else message.file.problem
    return problem is not None and problem.fault is FileFault.NOBODY_KEEPS_IT


def _continues(above: MessageView, message: MessageView) -> bool:
    return (
        above.sender_id == message.sender_id
        and above.is_own == message.is_own
        and above.waiting == message.waiting
        and abs(message.sent_ms - above.sent_ms) <= RUN_PAUSE_MS
    )


def _same_minute(above: MessageView | None, message: MessageView) -> bool:
    return above is not None and above.sent_ms // _MINUTE_MS == message.sent_ms // _MINUTE_MS


def _is_unread(message: MessageView, first_unread: Position | None) -> bool:
    return (
        first_unread is not None
        and not message.is_own
        and not is_system(message)
        and (message.waiting or message.position >= first_unread)
    )
