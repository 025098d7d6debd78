"""What the delivery view says of a message, for tool tips, screen readers, tables and files."""

from collections.abc import Mapping
from datetime import datetime

from engine.core.ids import ParticipantId
from engine.delivery_views import DeliveryMark, DeliveryMessage
from ui.foreign_text import one_line
from ui.times import moment, off_words, spoken_time
from ui.translate import tr

_NAME = 40


def mark_words(message: DeliveryMessage) -> str:
    state, waited_ms = _state_words(message), waited_for_ms(message)
    if waited_ms is None:
        return state
    return tr("{state}, after it had waited {time}").format(state=state, time=off_words(waited_ms))


def waited_for_ms(message: DeliveryMessage) -> int | None:
    """How long it was here before it got its place; None: it has none, or did not have to wait."""
    if message.came_ms is None or message.received_ms is None or message.position is None:
        return None
    return message.received_ms - message.came_ms


def _state_words(message: DeliveryMessage) -> str:
    if message.mark is DeliveryMark.LATE and message.late_by_ms is not None:
        return tr("late by {time}").format(time=off_words(message.late_by_ms))
    return {
        DeliveryMark.MISSING: tr("missing"),
        DeliveryMark.LOST: tr("lost"),
        DeliveryMark.WAITING: tr("held aside"),
        DeliveryMark.FAILED: tr("not sent"),
        DeliveryMark.ONLY_HERE: tr("only here"),
        DeliveryMark.LATE: tr("arrived late"),
        DeliveryMark.HERE: tr("here"),
    }[message.mark]


def who_words(message: DeliveryMessage) -> str:
    if message.is_own:
        return tr("You")
    return one_line(message.sender_name, _NAME) or tr("Sender not known")


def held_by_words(message: DeliveryMessage) -> str:
    maybe = len(message.holders) - message.held_by
    if not message.of:
        return tr("%n maybe hold it", "%n maybe holds it", maybe) if maybe else ""
    words = tr("Held by {held} of {of}").format(held=message.held_by, of=message.of)
    return tr("{held}, maybe {maybe}").format(held=words, maybe=maybe) if maybe else words


def came_at_ms(message: DeliveryMessage) -> int | None:
    """When it came, of ours when it was saved, of a missing one since when it is missing."""
    return message.received_ms if message.came_ms is None else message.came_ms


def time_words(message: DeliveryMessage, now: datetime) -> str:
    at_ms = came_at_ms(message)
    at_ms = message.sent_ms if at_ms is None else at_ms
    return "" if at_ms is None else spoken_time(at_ms, now)


def lines_about(message: DeliveryMessage, now: datetime) -> tuple[str, ...]:
    """Whose and when; how it stands; who holds it."""
    time = time_words(message, now)
    who = who_words(message)
    first = tr("{name}, {time}").format(name=who, time=time) if time else who
    return tuple(filter(None, (first, mark_words(message), held_by_words(message))))


def said(message: DeliveryMessage, now: datetime) -> str:
    """The same in one line."""
    return ". ".join(lines_about(message, now))


def names_of_holders(
    message: DeliveryMessage, names: Mapping[ParticipantId, str], *, certain: bool
) -> str:
    return ", ".join(
        one_line(names.get(each.participant_id, each.participant_id), _NAME)
        for each in message.holders
        if each.certain is certain
    )


def utc(at_ms: int | None) -> str:
    return "" if at_ms is None else moment(at_ms).isoformat(timespec="milliseconds")
