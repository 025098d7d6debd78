"""The timeline's sentences: times, days, system lines, the gap, and a message read aloud.

Words only, no pixels.  Names and texts come from other people: here they are put on one line and
freed of control characters before they meet words of ours.
"""

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX
from engine.core.ids import ParticipantId, UnixMs
from engine.events import ClockView, GapPlace, HeldView, MessageKind, MessageView, QuoteView
from engine.file_views import FileState
from engine.history_views import LostView
from ui.conversation_words import (
    NO_TEXT,
    forwarded_words,
    kind_words,
    quote_words,
    sender_words,
)
from ui.file_words import (
    done_share,
    file_problem_words,
    holders_words,
    is_fetched,
    is_picture,
    seen_with_its_holders,
    state_words,
    with_caption,
)
from ui.foreign_text import one_line
from ui.glyphs import delivery_words
from ui.history_words import earlier_words, short_address
from ui.marked_text import spoken_text
from ui.people import JOIN_PREFIX
from ui.regional import grouped
from ui.timeline.bubble_parts import reaction_words
from ui.timeline.rows import (
    DayRow,
    EarlierRow,
    GapRow,
    HeldRow,
    HeldTitleRow,
    LostRow,
    SystemRow,
    UnreadRow,
    Withheld,
    is_system,
    local_time,
)
from ui.times import (
    clock_time,
    date_words,
    day_words,
    duration_words,
    moment,
    moment_words,
    time_and_date,
)
from ui.translate import tr

_MAX_NAME = 64
_NAMES_SAID = 2
_LOST_LISTED = 8
_ID_SHOWN = 8
_ADDRESS_SHOWN = 100
_SECONDS_SAID = 120
"""From here on seconds are noise."""
_TWICE: Final = 2
_OtherRow: TypeAlias = (
    SystemRow | DayRow | UnreadRow | HeldTitleRow | HeldRow | GapRow | LostRow | EarlierRow
)


@lru_cache(maxsize=4096)
def time_words(at_ms: UnixMs) -> str:
    return clock_time(local_time(at_ms))


def copied_time(at_ms: UnixMs) -> str:
    """Date and time in full, for copies and tooltips: "20 November 2026, 14:08"."""
    return moment_words(local_time(at_ms))


def body_words(message: MessageView) -> str:
    if message.kind is MessageKind.UNSUPPORTED:
        if message.text == NO_TEXT:
            return tr("Content that is no text.")
        return tr("Sent with a newer version of Causerie. Update to see it.")
    if message.retracted:
        return kind_words(message)
    return message.text


def spoken_words(message: MessageView) -> str:
    """As it is read aloud: without marks, and code is said to be code."""
    is_said = message.kind in {MessageKind.TEXT, MessageKind.FILE} and not message.retracted
    return with_caption(message, spoken_text(message)) if is_said else body_words(message)


def link_words(target: str) -> str:
    """Where it leads; one of ours leads to a preview, and says nothing by its letters."""
    if target.startswith(CONTACT_PREFIX):
        return tr("A person's contact link. A click shows whose it is.")
    if target.startswith(CHANNEL_PREFIX):
        return tr("A link to a channel with a shared key. A click shows what it says.")
    if target.startswith(JOIN_PREFIX):
        return tr("An invitation to a group. A click shows what it says.")
    return target


def gap_title(gap: GapPlace) -> str:
    if not gap.missing:
        return tr("Earlier messages missing")
    return tr("%n messages missing", "%n message missing", gap.missing)


def gap_since(gap: GapPlace, today: date) -> str:
    return since_words(gap.since_ms, today)


def since_words(since_ms: UnixMs, today: date) -> str:
    """Empty if nobody knows since when."""
    if not since_ms:
        return ""
    day, when = local_time(since_ms).date(), time_words(since_ms)
    if day == today:
        return tr("since {time}").format(time=when)
    return tr("since {day}, {time}").format(day=day_words(day, today), time=when)


def gap_details(gap: GapPlace, now_ms: int, *, pair: bool = False) -> str:
    """What happens next: how often asked, the next try, what waits behind.

    ``pair``: of two, the other one sends by themselves until they hear that it arrived.
    """
    if pair:
        words = (
            tr("It comes again by itself")
            if gap.missing == 1
            else tr("They come again by themselves")
        )
    else:
        words = _asked(gap.requests)
        if next_try := _next_try(gap, now_ms):
            words = tr("{asked}, {next_try}").format(asked=words, next_try=next_try)
    if gap.waiting > 0:
        behind = tr("%n messages wait behind", "%n message waits behind", gap.waiting)
        words = f"{words} · {behind}"
    return words


def _asked(times: int) -> str:
    if not times:
        return tr("Not asked yet")
    if times == 1:
        return tr("Asked once")
    if times == _TWICE:
        return tr("Asked twice")
    return tr("Asked %n times", "Asked %n time", times)


def _next_try(gap: GapPlace, now_ms: int) -> str:
    if gap.next_request_ms is None:
        return ""
    seconds = -(-(gap.next_request_ms - now_ms) // 1000)
    if seconds <= 0:
        return tr("asking now")
    if seconds < _SECONDS_SAID:
        return tr("next try in {seconds} s").format(seconds=seconds)
    return tr("next try in {minutes} min").format(minutes=seconds // 60)


def gap_cause(gap: GapPlace, *, pair: bool = False) -> str:
    """Cause and age in full, for who opens the details."""
    refer = tr(
        "Messages that arrived refer to them, but this device never received them. "
        "Noticed on {moment}.",
        "Messages that arrived refer to it, but this device never received it. "
        "Noticed on {moment}.",
        gap.missing,
    ).format(moment=copied_time(gap.since_ms))
    if pair:
        again = tr(
            "Who wrote them sends them again and again until they arrive",
            "Who wrote it sends it again and again until it arrives",
            gap.missing,
        )
    else:
        again = tr(
            "The members of the group and your Stores are asked again and again until they arrive",
            "The members of the group and your Stores are asked again and again until it arrives",
            gap.missing,
        )
    if gap.waiting > 0:
        again += tr(
            "; what wait behind is shown below after a minute",
            "; what waits behind is shown below after a minute",
            gap.waiting,
        )
    return f"{refer} {again}."


def lost_title(lost: Sequence[LostView]) -> str:
    return tr("%n messages lost", "%n message lost", _number_of(lost))


def _number_of(lost: Sequence[LostView]) -> int:
    return sum(each.count for each in lost)


def lost_since(lost: Sequence[LostView], today: date) -> str:
    return since_words(min(each.since_ms for each in lost), today)


def lost_details(lost: Sequence[LostView], *, pair: bool = False) -> str:
    """Of whom, that nobody has it, and who did not answer; never more than that is known."""
    parts = [tr("From {names}").format(names=names)] if (names := _names_of(lost)) else []
    parts.append(_never_came(lost) if pair else _nobody_has(lost))
    asked_ms = max((each.asked_again_ms or 0 for each in lost), default=0)
    if asked_ms:
        parts.append(tr("asked again at {time}").format(time=time_words(UnixMs(asked_ms))))
    return " · ".join(parts)


def _names_of(lost: Sequence[LostView]) -> str:
    names = list(dict.fromkeys(one_line(each.sender_name, _MAX_NAME) for each in lost))
    known = [name for name in names if name]
    if known and len(known) < len(names):
        known.append(tr("somebody unknown"))
    if len(known) > _NAMES_SAID:
        others = tr("{name} and %n others", "{name} and %n other", len(known) - 1)
        return others.format(name=known[0])
    if len(known) == _NAMES_SAID:
        return tr("{name} and {other}").format(name=known[0], other=known[1])
    return "".join(known)


def _never_came(lost: Sequence[LostView]) -> str:
    """Of two: the other one sends by themselves, and nobody else has it."""
    return tr(
        "They never arrived, and nobody waits for them any more",
        "It never arrived, and nobody waits for it any more",
        _number_of(lost),
    )


def _nobody_has(lost: Sequence[LostView]) -> str:
    number = _number_of(lost)
    silent = _silent(lost)
    if not all(each.stores_ms is not None for each in lost):
        return tr("No member has them any more", "No member has it any more", number)
    if not silent:
        return tr(
            "No member and no Store has them any more",
            "No member and no Store has it any more",
            number,
        )
    who = tr("%n Stores", "%n Store", len(silent))
    if len(silent) == 1:
        who = short_address(silent[0])
    if all(each.lacked_by for each in lost):
        words = tr(
            "No member and no Store that answered has them; {stores} did not answer",
            "No member and no Store that answered has it; {stores} did not answer",
            number,
        )
    else:
        words = tr(
            "No member has them any more; {stores} did not answer",
            "No member has it any more; {stores} did not answer",
            number,
        )
    return words.format(stores=who)


def _silent(lost: Sequence[LostView]) -> list[str]:
    """Stores that gave no answer when they were asked last."""
    return list(dict.fromkeys(store for each in lost for store in each.silent_stores))


def lost_cause(row: LostRow, today: date) -> str:
    """All that is known of each, for who opens the details."""
    lines = [_lost_line(each, today) for each in row.lost[:_LOST_LISTED]]
    more = len(row.lost) - len(lines)
    if more > 0:
        lines.append(tr("and {number} more here").format(number=more))
    if row.untold:
        untold = tr(
            "%n other messages, lost longer ago, not listed",
            "%n other message, lost longer ago, not listed",
            row.untold,
        )
        lines.append(untold)
    silent = [one_line(store, _ADDRESS_SHOWN) for store in _silent(row.lost)[:_LOST_LISTED]]
    lines += [tr("{store} did not answer").format(store=store) for store in silent]
    number = _number_of(row.lost)
    if all(each.numbers for each in row.lost):
        known = tr(
            "Messages carry numbers, and these never came.",
            "Messages carry numbers, and this one never came.",
            number,
        )
    else:
        known = tr("Later messages refer to them.", "Later messages refer to it.", number)
    turns_up = tr(
        "What turns up takes its place here.",
        "If it ever turns up, it takes its place here.",
        number,
    )
    return "\n".join([*lines, f"{known} {turns_up}"])


def _lost_line(lost: LostView, today: date) -> str:
    who = one_line(lost.sender_name, _MAX_NAME)
    if not who:
        is_unknown = lost.sender_id is None
        who = tr("Of an unknown sender") if is_unknown else tr("Of somebody unknown here")
    parts = [who, _name_of(lost)]
    if lost.before is not None:
        before = _moment(UnixMs(lost.before.lamport_timestamp), today)
        parts.append(tr("said before {moment}").format(moment=before))
    if since := since_words(lost.since_ms, today):
        parts.append(tr("missing {since}").format(since=since))
    if lost.given_up_ms is not None:
        parts.append(tr("given up {moment}").format(moment=_moment(lost.given_up_ms, today)))
    return ", ".join(parts)


def _name_of(lost: LostView) -> str:
    """By what it can be told apart."""
    if lost.message_id is not None:
        return tr("id {id}").format(id=one_line(lost.message_id, _ID_SHOWN + 1))
    if lost.numbers is None:
        return tr("without an id")
    first, last = lost.numbers
    if first == last:
        return tr("number {first}").format(first=grouped(first))
    return tr("numbers {first} to {last}").format(first=grouped(first), last=grouped(last))


def held_title(held: HeldView) -> str:
    """For example "Held: Bob's clock is 3 h ahead"."""
    if not held.clocks:
        return tr("Held: their time has not come")
    return tr("Held: {clocks}").format(clocks=_clocks(held.clocks))


def _clocks(clocks: Sequence[ClockView]) -> str:
    furthest = duration_words(max(clock.ahead_ms for clock in clocks))
    names = [
        tr("you") if clock.is_self else one_line(clock.name, _MAX_NAME) or "?" for clock in clocks
    ]
    match names:
        case [_] if clocks[0].is_self:
            words = tr("your clock was {furthest} ahead")
        case [_]:
            words = tr("{name}'s clock is {furthest} ahead")
        case [_, _]:
            words = tr("the clocks of {name} and {other} are up to {furthest} ahead")
        case _:
            words = tr(
                "the clocks of {name} and %n others are up to {furthest} ahead",
                "the clocks of {name} and %n other are up to {furthest} ahead",
                len(names) - 1,
            )
    return words.format(name=names[0], other=names[-1], furthest=furthest)


def held_details(held: HeldView, shown: int, now_ms: UnixMs) -> str:
    """How many, and when they take their place."""
    words = tr("%n messages", "%n message", held.total)
    if shown < held.total:
        words = tr("{messages}, {shown} shown").format(messages=words, shown=shown)
    today = local_time(now_ms).date()
    due, is_today = _moment(held.next_due_ms, today), _is_on(held.next_due_ms, today)
    if held.total != 1:
        place = tr("They take their places from {moment} on, or when the clocks agree.")
    elif is_today:
        place = tr("It takes its place at {moment}, or when the clocks agree.")
    else:
        place = tr("It takes its place on {moment}, or when the clocks agree.")
    set_right = tr("If yours is wrong, set it right.")
    return f"{words}. {place.format(moment=due)} {set_right}"


def claimed_words(message: MessageView, now_ms: UnixMs) -> str:
    """The time that a held message says it is from."""
    claimed_ms = UnixMs(message.position.lamport_timestamp)
    return tr("says {moment}").format(moment=_moment(claimed_ms, local_time(now_ms).date()))


def _is_on(at_ms: UnixMs, day: date) -> bool:
    return local_time(at_ms).date() == day


def _moment(at_ms: UnixMs, today: date) -> str:
    return time_and_date(local_time(at_ms), today)


def late_words(number: int) -> str:
    return tr("%n earlier messages arrived", "%n earlier message arrived", number)


def spoken_message(
    message: MessageView,
    others: Sequence[ParticipantId],
    names: Callable[[ParticipantId], str],
    *,
    pair: bool = False,
    in_album: tuple[int, int] | None = None,
) -> str:
    """Sender, text, time, state: the order in which it is read aloud.

    ``in_album``: which of how many pictures that stand together it is.
    """
    parts = [] if message.retracted else [sender_words(message)]  # Which the words name.
    if message.quote is not None and not message.retracted:
        parts.append(_spoken_quote(message.quote))
    if message.forwarded and not message.retracted:
        parts.append(forwarded_words())
    parts.append(spoken_words(message))
    if in_album is not None:
        place, number = in_album
        parts.append(tr("{place} of {number} in an album").format(place=place, number=number))
    parts += _spoken_file(message, len(others), pair=pair)
    parts.append(time_words(message.sent_ms))
    if message.edited_ms is not None and not message.retracted:
        parts.append(tr("edited"))
    if message.mentions_me:
        parts.append(tr("mentions you"))
    parts += map(reaction_words, message.reactions)
    if message.delivery is not None:
        parts.append(delivery_words(message.delivery, others, names, pair=pair).rstrip("."))
    if message.waiting:
        parts.append(tr("waiting for earlier messages"))
    if message.late:
        parts.append(tr("arrived late"))
    return ", ".join(parts)


def _spoken_quote(quote: QuoteView) -> str:
    if quote.from_before:
        return tr("answers a message from before you came, you were not given its key")
    if quote.position is None:
        return tr("answers a message that is not here yet, Q asks for it")
    name, text = quote_words(quote)
    words = tr("answers you: {text}") if quote.is_own else tr("answers {name}: {text}")
    return words.format(name=name, text=text)


def _spoken_file(message: MessageView, others: int, *, pair: bool) -> list[str]:
    """How large it is; how far a larger one has come, why it does not come, and who has it."""
    file = seen_with_its_holders(message, others).file
    if file is None or message.retracted:
        return []
    if file.state is FileState.INLINE:  # It came as surely as a text; a picture is seen or not.
        return [] if is_picture(file) else [state_words(file)]
    parts = [state_words(file), holders_words(file, others, is_own=message.is_own, pair=pair)]
    if file.state is FileState.RUNNING or is_fetched(file):
        percent = int(100 * (done_share(file) or 0))
        parts.append(tr("{percent} % done").format(percent=percent))
    if file.problem is not None:
        held = bool(file.held_whole_by)
        words = file_problem_words(file.problem, is_own=message.is_own, is_held=held)
        parts.append(words.rstrip("."))
    return [words for words in parts if words]


def new_since_words(since_ms: UnixMs, today: date) -> str:
    """The line before what is new; the day's own line may be out of view."""
    return tr("New since {time}").format(time=time_and_date(local_time(since_ms), today))


def spoken_row(row: _OtherRow, *, now_ms: UnixMs, pair: bool = False) -> str:
    """Of whatever is no message in its place; that is ``spoken_message``."""
    today = local_time(now_ms).date()
    match row:
        case SystemRow(message=message):
            return f"{kind_words(message)}, {time_words(message.sent_ms)}"
        case DayRow(day=day):
            return day_words(day, today)
        case UnreadRow(since_ms=since_ms):
            return new_since_words(since_ms, today)
        case HeldTitleRow() | HeldRow():
            return _spoken_held(row, now_ms)
        case _:
            return _spoken_marker(row, now_ms, pair=pair)


def beginning_words(row: EarlierRow) -> str:
    """Above the beginning: why nothing earlier is there, or how fetching it goes."""
    parts = [earlier_words(row.history)]
    if row.withheld is not None:
        parts.insert(0, _withheld_words(row.withheld))
    return " ".join(words for words in parts if words)


def _withheld_words(withheld: Withheld) -> str:
    who = one_line(withheld.by, _MAX_NAME) or tr("whoever let you in")
    if withheld.since_ms is None:
        words = tr("What was written before you came cannot be read here: {who} chose that.")
        return words.format(who=who)
    words = tr(
        "You were let in with what was written from about {date} on. What was written before that "
        "cannot be read here: {who} chose that."
    )
    return words.format(date=date_words(moment(withheld.since_ms)), who=who)


def _spoken_marker(row: GapRow | LostRow | EarlierRow, now_ms: UnixMs, *, pair: bool) -> str:
    today = local_time(now_ms).date()
    if isinstance(row, EarlierRow):
        offered = tr("Fetch earlier messages") if row.can_have_more else ""
        return f"{beginning_words(row)} {offered}".strip()
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
        said = f"{sender_words(message)}, {spoken_words(message)}"
    claimed = claimed_words(message, now_ms)
    return tr("{said}, {claimed}, held").format(said=said, claimed=claimed)
