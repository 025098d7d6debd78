"""What a user can ask for in the timeline, and the window does: the timeline changes nothing."""

from collections.abc import Callable

from msgspec import Struct

from engine.core.ids import MessageId, ParticipantId
from engine.events import MessageView
from ui.timeline.buttons import RowButton


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
    open_file: Callable[[MessageView], None]
    save_file: Callable[[MessageView], None]
    act_on_file: Callable[[MessageView, RowButton], None]
    """One of ``buttons.OF_FILES``."""
    resend: Callable[[MessageId], None]
    discard: Callable[[MessageId], None]
    delete: Callable[[MessageView], None]
    keep: Callable[[MessageId], None]
    """It shall not be deleted for everybody after all."""
    reply: Callable[[MessageView], None]
    edit: Callable[[MessageView], None]
    forward: Callable[[MessageView], None]
    react: Callable[[MessageView, str], None]
    """With this emoji, or no longer if we did already."""
    pick_reaction: Callable[[MessageView], None]
    """Any emoji, chosen in a picker at this place on the screen."""
    show_reactions: Callable[[MessageId], None]
    show_info: Callable[[MessageId], None]
    inspect: Callable[[MessageId], None]
    choose: Callable[[MessageId], None]
    """It was clicked, or the keys are about it now."""
    show_person: Callable[[ParticipantId], None]
    write_to: Callable[[ParticipantId], None]
    """To this member of the group, alone."""
    show_versions: Callable[[MessageId], None]
    fetch_quoted: Callable[[MessageId], None]
    """What this message quotes and is not here."""
