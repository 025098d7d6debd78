"""Decides which pictures were sent together and are shown as one album.

On the wire each is a message of its own, so each has its own state, reactions and answers.  What
stands together follows from the order of messages alone: pictures of one run, sent within a minute
of each other, of which nothing is said but by the first.  A picture that is reacted to or is still
coming stands by itself.
"""

from engine.core.ids import DeliveryState
from engine.events import MessageView
from engine.file_views import FileState
from ui.file_words import is_moving, is_picture

MOST_TOGETHER = 10
_WITHIN_MS = 60_000


def begins_album(message: MessageView) -> bool:
    """It may have a caption, and answer to something."""
    file = message.file
    if file is None or not is_picture(file) or is_moving(file):
        return False
    is_here = file.state in {FileState.INLINE, FileState.COMPLETE} and file.problem is None
    delivery = message.delivery
    failed = delivery is not None and delivery.state is DeliveryState.FAILED
    quiet = not (message.reactions or message.more_reactions or message.mentions_me)
    plain = not (message.retracted or message.waiting or message.held or message.forwarded)
    return is_here and quiet and plain and not failed and message.edited_ms is None


def goes_on(above: MessageView, message: MessageView) -> bool:
    """Whether a message of the same run stands in the album of the one above it."""
    near = abs(message.sent_ms - above.sent_ms) <= _WITHIN_MS
    return near and not message.text and message.quote is None and begins_album(message)
