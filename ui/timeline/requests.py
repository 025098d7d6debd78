"""What a user can ask for in the timeline, and the window does: the timeline changes nothing."""

from collections.abc import Callable

from msgspec import Struct

from engine.core.ids import MessageId


class TimelineRequests(Struct, frozen=True, kw_only=True):
    """One callable for each request; ``TimelineView`` emits them as signals."""

    open_link: Callable[[str], None]
    fetch_missing: Callable[[], None]
    fetch_lost: Callable[[tuple[MessageId, ...]], None]
    """Of what was given up: these, all the same."""
    fetch_earlier: Callable[[], None]
    """What was said before the beginning that is here."""
    show_stores: Callable[[], None]
    show_holders: Callable[[MessageId], None]
    resend: Callable[[MessageId], None]
    discard: Callable[[MessageId], None]
    delete: Callable[[MessageId], None]
