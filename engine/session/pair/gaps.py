"""How waiting messages and the gaps before them appear in a one-to-one timeline.

``engine.session.pair.order`` decides what waits and for how long.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.core.content import ContactAnswer, ContactRequest, Content
from engine.core.ids import MessageId, Position
from engine.core.records import WaitingContent
from engine.events import GapPlace, GapView
from engine.history_views import LostView

MAX_MISSING_TOLD = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class Waits:
    sequence: int
    message_id: MessageId
    content: Content = field(compare=False)
    kept: WaitingContent = field(compare=False)


def is_statement(content: Content) -> bool:
    return isinstance(content.body, ContactRequest | ContactAnswer)


def places_of(waiting: Sequence[Waits], *, delivered: int) -> list[GapPlace]:
    """One place per gap in an author's sequence numbers, before the next message that is shown."""
    places: list[GapPlace] = []
    expected, lacking = delivered + 1, 0
    for one in waiting:
        lacking += max(one.sequence - expected, 0)
        expected = max(expected, one.sequence + 1)
        if one.kept.shown and (lacking or not places):
            place = GapPlace(
                missing=min(lacking, MAX_MISSING_TOLD),
                waiting=0,
                since_ms=one.kept.received_ms,
                before=Position(one.content.lamport_timestamp, one.message_id),
            )
            places.append(place)
            lacking = 0
        if places and not is_statement(one.content):
            places[-1] = replace(places[-1], waiting=places[-1].waiting + 1)
    return places


def lost_before(gap: GapView | None, message_ids: Sequence[MessageId]) -> tuple[LostView, ...]:
    """The messages given up before one of ``message_ids``, or all of them if it is empty."""
    if gap is None or not message_ids:
        return () if gap is None else gap.lost
    return tuple(
        lost
        for lost in gap.lost
        if lost.before is not None and lost.before.message_id in message_ids
    )
