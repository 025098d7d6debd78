"""Days of a conversation: where one begins in it, and which have messages.

Lamport timestamps are about the time in milliseconds, so a moment has a place among the messages.
"""

from collections.abc import Awaitable
from datetime import date, datetime, time, timedelta
from typing import Protocol

from engine.answers import TimelinePage
from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from ui.timeline.rows import local_day


class OnePage(Protocol):
    """A method of ``engine.api.Timeline``."""

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> Awaitable[TimelinePage]: ...


def beginning_of(day: date) -> Position:
    """Before all that was said on this local day."""
    midnight = datetime.combine(day, time.min).astimezone()
    return Position(
        lamport_timestamp=max(0, int(midnight.timestamp() * 1000)), message_id=MessageId("")
    )


async def days_with_messages(
    pages: OnePage, conversation_id: ConversationId, first: date, last: date
) -> frozenset[date]:
    """Of the days from ``first`` to ``last``.

    One row is read for each day that has any, and one more, however many messages there are.
    """
    found, day = set[date](), first
    while day <= last:
        page = await pages.page_after(conversation_id, beginning_of(day), limit=1)
        if not page.messages or page.messages[0].waiting:
            break
        day = max(day, local_day(UnixMs(page.messages[0].position.lamport_timestamp)))
        found.add(day)
        day += timedelta(days=1)
    return frozenset(each for each in found if each <= last)
