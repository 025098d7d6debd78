"""The life of a message as steps with a time and words, from what is known of it.

A step is there because something on this device says so.  What nobody noted has a step of its own
that says "not recorded", so that a short line is not taken for a short life.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import Enum, auto

from msgspec import Struct

from engine.answers import Arrival, HolderView
from engine.core.ids import UnixMs
from engine.inspection_views import (
    CopyView,
    LinkView,
    MessageInspection,
    Occasion,
    Seal,
    SentBy,
    Whereabouts,
)
from ui.foreign_text import breaking, one_line
from ui.regional import clock_with_seconds
from ui.times import moment, moment_words, off_words, short_date
from ui.translate import tr

_NAME = 40
_SOON_MS = 1_000
_ID_SHOWN = 6
_NAME_RUN = 16
"""More of a name without a space does not fit beside a time."""


class Mark(Enum):
    """How a step's bead is drawn: filled is certain, hollow is not."""

    SURE = auto()
    MAYBE = auto()
    MISSING = auto()
    LATE = auto()
    FAILED = auto()
    AHEAD = auto()
    """It has not happened yet."""


class Step(Struct, frozen=True, kw_only=True):
    mark: Mark
    words: str
    at_ms: UnixMs | None = None
    """None: nobody noted when."""


def precise_time(at_ms: int, today: datetime) -> str:
    """With seconds and thousandths, and the day unless it is today."""
    return _time_and_day(at_ms, today, f".{at_ms % 1000:03}")


def time_to_the_second(at_ms: int, today: datetime) -> str:
    """With seconds, and the day unless it is today."""
    return _time_and_day(at_ms, today, "")


def _time_and_day(at_ms: int, today: datetime, thousandths: str) -> str:
    at = moment(at_ms).astimezone(today.tzinfo)
    time = f"{clock_with_seconds(at)}{thousandths}"
    if at.date() == today.date():
        return time
    return tr("{date}, {time}").format(date=short_date(at.date(), today.date()), time=time)


def life_of(found: MessageInspection) -> tuple[Step, ...]:
    """In the order of their times; those without one last."""
    steps = [
        *_beginning(found),
        *_copies(found),
        *_sealed(found),
        *_holders(found),
        *_search(found),
        *_end(found),
    ]
    return tuple(sorted(steps, key=lambda step: (step.at_ms is None, step.at_ms or 0)))


def _beginning(found: MessageInspection) -> Iterator[Step]:
    sds = found.sds
    if found.is_own:
        if found.saved_ms is not None:
            yield Step(mark=Mark.SURE, words=tr("Saved on this device"), at_ms=found.saved_ms)
        if sds is not None and sds.signed_ms is not None:
            yield Step(mark=Mark.SURE, words=_signed(sds.group_key), at_ms=sds.signed_ms)
        return
    if sds is not None and sds.signed_ms is not None:
        words = tr("Signed, by its author's clock")
        yield Step(mark=Mark.SURE, words=words, at_ms=sds.signed_ms)
    elif found.message is not None:
        words = tr("Written, by its author's clock")
        yield Step(mark=Mark.MAYBE, words=words, at_ms=found.message.sent_ms)
    if found.saved_ms is None:
        return
    is_late = found.message is not None and found.message.late
    mark = Mark.LATE if is_late else Mark.SURE
    if found.came_ms is None:
        yield Step(mark=mark, words=_came(found, is_late=is_late), at_ms=found.saved_ms)
        return
    yield Step(mark=Mark.SURE, words=_came_to_wait(found), at_ms=found.came_ms)
    if found.whereabouts is Whereabouts.WAITING:
        words = tr("Shown below what is missing")
        yield Step(mark=Mark.MAYBE, words=words, at_ms=found.saved_ms)
    else:
        words = _had_waited(found, found.saved_ms - found.came_ms)
        yield Step(mark=mark, words=words, at_ms=found.saved_ms)


def _signed(group_key: int | None) -> str:
    if group_key is None:
        return tr("Signed")
    return tr("Signed for group key {number}").format(number=group_key)


def _came(found: MessageInspection, *, is_late: bool) -> str:
    words = _arrival_words(found)
    signed_ms = None if found.sds is None else found.sds.signed_ms
    way_ms = (found.saved_ms or 0) - signed_ms if signed_ms is not None else 0
    other = _came_with(found)
    if other is not None and way_ms >= _SOON_MS:
        placed = tr(
            "{came}. In its place {time} after it was signed,"
            " together with {name} {id}, on which it depends"
        )
        name, id_ = _named(other.sender_name), short_id(other.message_id)
        return placed.format(came=words, time=off_words(way_ms), name=name, id=id_)
    if not is_late:
        return words
    if way_ms < _SOON_MS:
        return tr("{came}, late").format(came=words)
    late = tr("{came}, late: {time} after it was signed")
    return late.format(came=words, time=off_words(way_ms))


def _came_to_wait(found: MessageInspection) -> str:
    words = _arrival_words(found)
    signed_ms = None if found.sds is None else found.sds.signed_ms
    if signed_ms is None or found.came_ms is None or found.came_ms - signed_ms < _SOON_MS:
        return words
    time = off_words(found.came_ms - signed_ms)
    return tr("{came}, {time} after it was signed").format(came=words, time=time)


def _had_waited(found: MessageInspection, waited_ms: int) -> str:
    time = off_words(waited_ms)
    other = _waited_for(found)
    if other is not None:
        name, id_ = _named(other.sender_name), short_id(other.message_id)
        words = tr("In its place, after it had waited {time} for {name} {id}")
        return words.format(time=time, name=name, id=id_)
    if found.mvds is not None:
        words = tr("In its place, after it had waited {time} for an earlier message of its author")
        return words.format(time=time)
    return tr("In its place, after it had waited {time}").format(time=time)


def _waited_for(found: MessageInspection) -> LinkView | None:
    """Of what it depends on: the last that got its place while it waited."""
    while_it_waited = [
        (each.position, each)
        for each in found.names
        if each.position is not None and each.saved_ms is not None
        if (found.came_ms or 0) < each.saved_ms <= (found.saved_ms or 0)
    ]
    return max(while_it_waited, default=(None, None), key=lambda one: one[0])[1]


def _came_with(found: MessageInspection) -> LinkView | None:
    """Of what it depends on: the last that got its place in the same moment, so not before it.

    Of a message of an earlier version only that moment is recorded, and not when it came.  A
    Store's answer brings many at once, which says nothing of any of them.
    """
    if found.is_own or found.arrival not in {Arrival.LIVE, Arrival.REPAIR}:
        return None
    at_once = [
        (each.position, each)
        for each in found.names
        if each.position is not None and each.saved_ms is not None
        if each.saved_ms == found.saved_ms
    ]
    return max(at_once, default=(None, None), key=lambda one: one[0])[1]


def _arrival_words(found: MessageInspection) -> str:
    match found.arrival:
        case Arrival.LIVE | Arrival.WRITTEN_HERE:
            return tr("Came directly")
        case Arrival.STORE:
            return tr("Came from a Store")
        case Arrival.REPAIR if found.repaired_by:
            name = _named(found.repaired_by)
            return tr("Repaired: {name} sent it again").format(name=name)
        case Arrival.REPAIR:
            return tr("Repaired: a member sent it again")
        case Arrival.UNKNOWN:
            return tr("Came here; by which way is not recorded")


def _copies(found: MessageInspection) -> Iterator[Step]:
    if found.is_own and found.copies_since_ms is not None:
        words = tr("Copies sent before this time are not recorded")
        yield Step(mark=Mark.MAYBE, words=words, at_ms=found.copies_since_ms)
    for copy in found.copies:
        mark = Mark.SURE if copy.occasion is Occasion.FIRST and copy.peers else Mark.MAYBE
        yield Step(mark=mark, words=copy_words(copy), at_ms=copy.at_ms)
        if copy.taken_ms is not None and copy.taken_ms > copy.at_ms:
            words = tr("A peer has read that copy")
            yield Step(mark=Mark.SURE, words=words, at_ms=copy.taken_ms)
    if found.copies_omitted:
        words = tr(
            "%n more copies, not recorded", "%n more copy, not recorded", found.copies_omitted
        )
        yield Step(mark=Mark.MAYBE, words=words)


def _sealed(found: MessageInspection) -> Iterator[Step]:
    """Of what two people say to each other: right after it was sent, or came."""
    if found.mvds is None or found.mvds.seal is None:
        return
    is_noted = found.mvds.seal is not Seal.NOT_NOTED
    came_ms = found.copies[0].at_ms if found.copies else found.came_ms or found.saved_ms
    yield Step(
        mark=Mark.SURE if is_noted else Mark.MAYBE,
        words=_seal_words(found.mvds.seal, found.mvds.olm_since_ms),
        at_ms=came_ms if is_noted else None,
    )


def _seal_words(seal: Seal, since_ms: UnixMs | None) -> str:
    match seal:
        case Seal.OLM if since_ms:
            words = tr("Sealed by Olm with a key of its own; you both speak it since {time}")
            return words.format(time=moment_words(moment(since_ms)))
        case Seal.OLM:
            return tr("Sealed by Olm with a key of its own; nothing came back by Olm yet")
        case Seal.SIGNED:
            return tr("Signed, and sealed by HPKE: not forward secret")
        case Seal.BOTH:
            return tr("First signed and sealed by HPKE, not forward secret; later copies by Olm")
        case Seal.NOT_NOTED:
            return tr("How it was sealed is not recorded")


def copy_words(copy: CopyView) -> str:
    """Why it went out, to how many, and by which way."""
    words = _occasion_words(copy.occasion)
    if not copy.peers:
        return tr("{sent}: nobody was there").format(sent=words)
    peers = tr("to %n peers", "to %n peer", copy.peers)
    way = _way_words(copy.sent_by)
    return tr("{sent} {peers} {way}").format(sent=words, peers=peers, way=way)


def _occasion_words(occasion: Occasion) -> str:
    match occasion:
        case Occasion.FIRST:
            return tr("Sent")
        case Occasion.UNACKNOWLEDGED:
            return tr("No acknowledgement yet, sent again")
        case Occasion.ASKED_HERE:
            return tr("Sent again, as you asked")
        case Occasion.REPAIR:
            return tr("Sent again for a member who lacked it")
        case Occasion.NOT_NOTED:
            return tr("Sent; why is not recorded")


def _way_words(sent_by: SentBy | None) -> str:
    match sent_by:
        case SentBy.RELAY:
            return tr("by relay")
        case SentBy.LIGHTPUSH:
            return tr("by light push")
        case None:
            return tr("by relay and light push")


def _holders(found: MessageInspection) -> Iterator[Step]:
    certain = [each for each in found.holders if each.certain]
    timed = sorted((each for each in certain if each.since_ms), key=_since)
    maybe = sorted(
        (each for each in found.holders if not each.certain and each.since_ms), key=_since
    )
    if timed:
        words = tr("First holder: {name}").format(name=_named(timed[0].name))
        yield Step(mark=Mark.SURE, words=words, at_ms=timed[0].since_ms)
    if maybe:
        words = tr("Maybe held by {name}").format(name=_named(maybe[0].name))
        yield Step(mark=Mark.MAYBE, words=words, at_ms=maybe[0].since_ms)
    if found.is_own and found.holders and len(certain) == len(found.holders):
        last = timed[-1].since_ms if len(timed) == len(certain) else None
        if len(certain) > 1 or last is None:
            words = tr("Held by all") if last else tr("Held by all; when is not recorded")
            if found.mvds is not None:
                words = tr("The other has it; since when is not recorded")
            yield Step(mark=Mark.SURE, words=words, at_ms=last)


def is_here(found: MessageInspection) -> bool:
    """Of one that is not, the sender is only what those say who name it."""
    return found.whereabouts in {Whereabouts.LOGGED, Whereabouts.WAITING}


def short_id(message_id: str) -> str:
    """Enough of it to tell it from its neighbours; strangers may choose any."""
    return one_line(message_id, _ID_SHOWN)


def _named(name: str) -> str:
    return breaking(one_line(name, _NAME), _NAME_RUN)


def _since(holder: HolderView) -> int:
    return holder.since_ms or 0


def _search(found: MessageInspection) -> Iterator[Step]:
    wanted = found.wanted
    if wanted is None:
        return
    words = tr("Known to be missing")
    yield Step(mark=Mark.MISSING, words=words, at_ms=wanted.since_ms)
    if found.sender_name:
        words = tr("Said to be from {name} by whoever names it; nothing proves that")
        yield Step(mark=Mark.MAYBE, words=words.format(name=_named(found.sender_name)))
    if wanted.stores_asked_ms is not None:
        words = tr("Stores asked: without it {lack}, without an answer {silent}")
        words = words.format(lack=wanted.stores_lacked, silent=wanted.stores_silent)
        yield Step(mark=Mark.MISSING, words=words, at_ms=wanted.stores_asked_ms)
    if wanted.requests:
        words = tr("Members asked %n times", "Members asked %n time", wanted.requests)
        yield Step(mark=Mark.MISSING, words=words)
    if found.whereabouts is Whereabouts.LOST:
        yield Step(mark=Mark.FAILED, words=tr("Given up; it still takes its place if it comes"))
    elif wanted.next_request_ms is not None:
        words = tr("Members are asked again")
        yield Step(mark=Mark.AHEAD, words=words, at_ms=wanted.next_request_ms)


def _end(found: MessageInspection) -> Iterator[Step]:
    if found.again is None:
        if found.whereabouts is Whereabouts.WAITING:
            yield Step(mark=Mark.MISSING, words=waiting_words(found))
        return
    if found.again.next_ms is None:
        yield Step(mark=Mark.FAILED, words=tr("Given up: it is sent no more unless you ask"))
    elif found.again.attempts:
        words = tr("Sent again, unless somebody acknowledges it")
        yield Step(mark=Mark.AHEAD, words=words, at_ms=found.again.next_ms)
    else:
        yield Step(mark=Mark.MAYBE, words=tr("Waits until somebody can be reached"))


def waiting_words(found: MessageInspection) -> str:
    """Why a message that is here has no place yet."""
    if found.waits_for:
        return tr(
            "Waits for %n earlier messages", "Waits for %n earlier message", len(found.waits_for)
        )
    lamport = None if found.sds is None else found.sds.lamport_timestamp
    if lamport is not None and lamport > found.looked_ms:
        return tr("Waits until the time that it bears")
    return tr("Waits for an earlier message of its author")
