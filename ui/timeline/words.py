"""What the timeline says: times, days, system lines, the gap, and a message read aloud.

Words only, no pixels.  Names and texts come from other people: here they are put on one line and
freed of control characters before they meet words of ours.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import lru_cache

from engine.core.contacts import CONTACT_PREFIX
from engine.core.duration import duration_words
from engine.core.ids import ParticipantId, UnixMs
from engine.events import ClockView, GapPlace, HeldView, MessageKind, MessageView
from engine.history_views import LostView
from ui.glyphs import delivery_words
from ui.history_words import earlier_words, short_address
from ui.people import JOIN_PREFIX
from ui.timeline.rows import (
    DayRow,
    EarlierRow,
    GapRow,
    HeldRow,
    HeldTitleRow,
    LostRow,
    MessageRow,
    Row,
    SystemRow,
    UnreadRow,
    is_system,
    local_time,
)
from ui.words import count, kind_words, one_line

_MAX_NAME = 64
_WEEK_DAYS = 7
_NAMES_SAID = 2
_LOST_LISTED = 8
_ID_SHOWN = 8
_ADDRESS_SHOWN = 100
_SECONDS_SAID = 120
"""From here on seconds are noise."""
UNSUPPORTED_TEXT = "Sent with a newer version of Causerie. Update to see it."


def sender_words(message: MessageView) -> str:
    return "You" if message.is_own else one_line(message.sender_name, _MAX_NAME) or "?"


@lru_cache(maxsize=4096)
def time_words(at_ms: UnixMs) -> str:
    return f"{local_time(at_ms):%H:%M}"


def moment_words(at_ms: UnixMs) -> str:
    """Date and time in full, for copies and tooltips: "20 November 2026, 14:08"."""
    at = local_time(at_ms)
    return f"{at.day} {at:%B} {at.year}, {at:%H:%M}"


def day_words(day: date, today: date) -> str:
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if timedelta(0) < today - day < timedelta(days=_WEEK_DAYS):
        return f"{day:%A}"
    return f"{day.day} {day:%B}" if day.year == today.year else f"{day.day} {day:%B} {day.year}"


def body_words(message: MessageView) -> str:
    return UNSUPPORTED_TEXT if message.kind is MessageKind.UNSUPPORTED else message.text


def link_words(target: str) -> str:
    """Where it leads; one of ours leads to a preview, and says nothing by its letters."""
    if target.startswith(CONTACT_PREFIX):
        return "A person's contact link. A click shows whose it is."
    if target.startswith(JOIN_PREFIX):
        return "An invitation to a group. A click shows what it says."
    return target


def gap_title(gap: GapPlace) -> str:
    if not gap.missing:
        return "Earlier messages missing"
    return f"{count(gap.missing, 'message')} missing"


def gap_since(gap: GapPlace, today: date) -> str:
    return since_words(gap.since_ms, today)


def since_words(since_ms: UnixMs, today: date) -> str:
    """Empty if nobody knows since when."""
    if not since_ms:
        return ""
    at = local_time(since_ms)
    when = time_words(since_ms)
    return f"since {when}" if at.date() == today else f"since {day_words(at.date(), today)}, {when}"


def gap_details(gap: GapPlace, now_ms: int, *, pair: bool = False) -> str:
    """What happens next: how often asked, the next try, what waits behind.

    ``pair``: of two, the other one sends by themselves until they hear that it arrived.
    """
    times = {0: "Not asked yet", 1: "Asked once", 2: "Asked twice"}
    asked = times.get(gap.requests, f"Asked {gap.requests} times")
    next_try = _next_try(gap, now_ms)
    words = f"{asked}, {next_try}" if next_try else asked
    if pair:
        one = gap.missing == 1
        words = "It comes again by itself" if one else "They come again by themselves"
    if gap.waiting > 0:
        words += f" · {count(gap.waiting, 'message')} {_waits(gap.waiting)} behind"
    return words


def gap_cause(gap: GapPlace, *, pair: bool = False) -> str:
    """Cause and age in full, for who opens the details."""
    them = "it" if gap.missing == 1 else "them"
    who = "The members of the group and your Stores are asked"
    if pair:
        who = f"Who wrote {them} sends {them}"
    words = (
        f"Messages that arrived refer to {them}, but this device never received {them}. "
        f"Noticed on {moment_words(gap.since_ms)}. {who} again "
        f"and again until {them if gap.missing == 1 else 'they'} "
        f"{'arrives' if gap.missing == 1 else 'arrive'}"
    )
    if gap.waiting > 0:
        words += f"; what {_waits(gap.waiting)} behind is shown below after a minute"
    return f"{words}."


def lost_title(lost: Sequence[LostView]) -> str:
    return f"{count(sum(each.count for each in lost), 'message')} lost"


def lost_since(lost: Sequence[LostView], today: date) -> str:
    return since_words(min(each.since_ms for each in lost), today)


def lost_details(lost: Sequence[LostView], *, pair: bool = False) -> str:
    """Of whom, that nobody has it, and who did not answer; never more than that is known."""
    names = list(dict.fromkeys(one_line(each.sender_name, _MAX_NAME) for each in lost))
    known = [name for name in names if name]
    if known and len(known) < len(names):
        known.append("somebody unknown")
    shown = " and ".join(known[:_NAMES_SAID])
    if len(known) > _NAMES_SAID:
        shown = f"{known[0]} and {len(known) - 1} others"
    parts = [f"From {shown}"] if shown else []
    parts.append(_nobody_has(lost, pair=pair))
    asked_ms = max((each.asked_again_ms or 0 for each in lost), default=0)
    if asked_ms:
        parts.append(f"asked again at {time_words(UnixMs(asked_ms))}")
    return " · ".join(parts)


def _nobody_has(lost: Sequence[LostView], *, pair: bool) -> str:
    one = sum(each.count for each in lost) == 1
    them = "it" if one else "them"
    if pair:  # The other one sends by themselves, and nobody else has it.
        return f"{'It' if one else 'They'} never arrived, and nobody waits for {them} any more"
    nobody = "No member"
    silent = _silent(lost)
    if not all(each.stores_ms is not None for each in lost):
        return f"{nobody} has {them} any more"
    if not silent:
        return f"{nobody} and no Store has {them} any more"
    who = short_address(silent[0]) if len(silent) == 1 else f"{len(silent)} Stores"
    if all(each.lacked_by for each in lost):
        return f"{nobody} and no Store that answered has {them}; {who} did not answer"
    return f"{nobody} has {them} any more; {who} did not answer"


def _silent(lost: Sequence[LostView]) -> list[str]:
    """Stores that gave no answer when they were asked last."""
    return list(dict.fromkeys(store for each in lost for store in each.silent_stores))


def lost_cause(row: LostRow, today: date) -> str:
    """All that is known of each, for who opens the details."""
    lines = [_lost_line(each, today) for each in row.lost[:_LOST_LISTED]]
    more = len(row.lost) - len(lines)
    if more > 0:
        lines.append(f"and {more} more here")
    if row.untold:
        lines.append(f"{count(row.untold, 'other message')}, lost longer ago, not listed")
    silent = [one_line(store, _ADDRESS_SHOWN) for store in _silent(row.lost)[:_LOST_LISTED]]
    lines += [f"{store} did not answer" for store in silent]
    one = sum(each.count for each in row.lost) == 1
    if all(each.numbers for each in row.lost):
        lines.append(f"Messages carry numbers, and {'this one' if one else 'these'} never came.")
    else:
        lines.append(f"Later messages refer to {'it' if one else 'them'}.")
    turns_up = "If it ever turns up, it takes" if one else "What turns up takes"
    return "\n".join(lines) + f" {turns_up} its place here."


def _lost_line(lost: LostView, today: date) -> str:
    who = one_line(lost.sender_name, _MAX_NAME)
    if not who:
        who = "Of an unknown sender" if lost.sender_id is None else "Of somebody unknown here"
    words = f"{who}, {_name_of(lost)}"
    if lost.before is not None:
        words += f", said before {_moment(UnixMs(lost.before.lamport_timestamp), today)}"
    since = since_words(lost.since_ms, today)
    words = f"{words}, missing {since}" if since else words
    if lost.given_up_ms is not None:
        words += f", given up {_moment(lost.given_up_ms, today)}"
    return words


def _name_of(lost: LostView) -> str:
    """By what it can be told apart."""
    if lost.message_id is not None:
        return f"id {one_line(lost.message_id, _ID_SHOWN + 1)}"
    if lost.numbers is None:
        return "without an id"
    first, last = lost.numbers
    return f"number {first:,}" if first == last else f"numbers {first:,} to {last:,}"


def _waits(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _next_try(gap: GapPlace, now_ms: int) -> str:
    if gap.next_request_ms is None:
        return ""
    seconds = -(-(gap.next_request_ms - now_ms) // 1000)
    if seconds <= 0:
        return "asking now"
    if seconds < _SECONDS_SAID:
        return f"next try in {seconds} s"
    return f"next try in {seconds // 60} min"


def held_title(held: HeldView) -> str:
    """For example "Held: Bob's clock is 3 h ahead"."""
    return f"Held: {_clocks(held.clocks)}" if held.clocks else "Held: their time has not come"


def _clocks(clocks: Sequence[ClockView]) -> str:
    furthest = duration_words(max(clock.ahead_ms for clock in clocks))
    names = ["you" if clock.is_self else one_line(clock.name, _MAX_NAME) or "?" for clock in clocks]
    match names:
        case [_] if clocks[0].is_self:
            return f"your clock was {furthest} ahead"
        case [one]:
            return f"{one}'s clock is {furthest} ahead"
        case [one, other]:
            return f"the clocks of {one} and {other} are up to {furthest} ahead"
        case _:
            return (
                f"the clocks of {names[0]} and {len(names) - 1} others are up to {furthest} ahead"
            )


def held_details(held: HeldView, shown: int, now_ms: UnixMs) -> str:
    """How many, and when they take their place."""
    words = count(held.total, "message")
    if shown < held.total:
        words += f", {shown} shown"
    today = local_time(now_ms).date()
    due, is_today = _moment(held.next_due_ms, today), _is_on(held.next_due_ms, today)
    if held.total == 1:
        words += f". It takes its place {'at' if is_today else 'on'} {due}"
    else:
        words += f". They take their places from {due} on"
    return f"{words}, or when the clocks agree. If yours is wrong, set it right."


def claimed_words(message: MessageView, now_ms: UnixMs) -> str:
    """The time that a held message says it is from."""
    claimed_ms = UnixMs(message.position.lamport_timestamp)
    return f"says {_moment(claimed_ms, local_time(now_ms).date())}"


def _is_on(at_ms: UnixMs, day: date) -> bool:
    return local_time(at_ms).date() == day


def _moment(at_ms: UnixMs, today: date) -> str:
    if _is_on(at_ms, today):
        return time_words(at_ms)
    at = local_time(at_ms)
    year = "" if at.year == today.year else f" {at.year}"
    return f"{at.day} {at:%B}{year}, {time_words(at_ms)}"


def late_words(number: int) -> str:
    return f"{count(number, 'earlier message')} arrived"


def spoken_message(
    message: MessageView,
    others: Sequence[ParticipantId],
    names: Callable[[ParticipantId], str],
    *,
    pair: bool = False,
) -> str:
    """Sender, text, time, state: the order in which it is read aloud."""
    parts = [sender_words(message), body_words(message), time_words(message.sent_ms)]
    if message.delivery is not None:
        parts.append(delivery_words(message.delivery, others, names, pair=pair).rstrip("."))
    if message.waiting:
        parts.append("waiting for earlier messages")
    if message.late:
        parts.append("arrived late")
    return ", ".join(parts)


def spoken_row(
    row: Row,
    *,
    others: Sequence[ParticipantId],
    names: Callable[[ParticipantId], str],
    now_ms: UnixMs,
    pair: bool = False,
) -> str:
    today = local_time(now_ms).date()
    match row:
        case MessageRow(message=message):
            return spoken_message(message, others, names, pair=pair)
        case SystemRow(message=message):
            return f"{kind_words(message)}, {time_words(message.sent_ms)}"
        case DayRow(day=day):
            return day_words(day, today)
        case UnreadRow(since_ms=since_ms):
            return f"New since {time_words(since_ms)}"
        case HeldTitleRow() | HeldRow():
            return _spoken_held(row, now_ms)
        case _:
            return _spoken_marker(row, now_ms, pair=pair)


def _spoken_marker(row: GapRow | LostRow | EarlierRow, now_ms: UnixMs, *, pair: bool) -> str:
    today = local_time(now_ms).date()
    if isinstance(row, EarlierRow):
        parts = (earlier_words(row.history), "Fetch earlier messages")
        return " ".join(words for words in parts if words)
    if isinstance(row, GapRow):
        title, since = gap_title(row.gap), gap_since(row.gap, today)
        details = gap_details(row.gap, now_ms, pair=pair)
    else:
        title, since = lost_title(row.lost), lost_since(row.lost, today)
        details = lost_details(row.lost, pair=pair)
    return f"{title} {since}".rstrip() + f". {details}".rstrip(". ")


def _spoken_held(row: HeldTitleRow | HeldRow, now_ms: UnixMs) -> str:
    if isinstance(row, HeldTitleRow):
        return f"{held_title(row.held)}. {held_details(row.held, row.shown, now_ms)}".rstrip(". ")
    message = row.message
    said = kind_words(message)
    if not is_system(message):
        said = f"{sender_words(message)}, {body_words(message)}"
    return f"{said}, {claimed_words(message, now_ms)}, held"
