"""The time span in which to look for lost messages of a pair, whose ids are unknown.

A lost message was sent after its author's previous message, if that is close, and before the
message that follows.  If it was resent, then before it was given up, or later while this device was
listening.  Stores are queried in ``service``.
"""

from collections.abc import Sequence
from typing import Final

from engine.core.ids import ConversationId, UnixMs
from engine.history_views import LostView
from engine.runtime.history.backfill import DAY_MS
from engine.runtime.timeline_pages import TimelinePages

ROWS_LOOKED_AT: Final = 100


async def time_of_lost(
    conversation_id: ConversationId, lost: Sequence[LostView], pages: TimelinePages
) -> tuple[UnixMs, UnixMs | None]:
    """The start and end for all of ``lost`` together; end None means now.

    Raises StorageError.
    """
    since: list[int] = []
    for each in lost:
        since.append(each.since_ms - DAY_MS)
        if each.before is None:
            continue
        since.append(each.before.lamport_timestamp - DAY_MS)
        page = await pages.before(conversation_id, each.before, limit=ROWS_LOOKED_AT)
        theirs = (row for row in reversed(page.messages) if row.sender_id == each.sender_id)
        earlier = next(theirs, None)
        if earlier is not None:
            since.append(earlier.position.lamport_timestamp)
    given_up = [each.given_up_ms for each in lost if each.given_up_ms is not None]
    until_ms = max(given_up) if len(given_up) == len(lost) else None
    return UnixMs(max(min(since), 0)), until_ms
