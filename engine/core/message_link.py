"""The text of links to one message: ``causerie:message/`` and its id.

The report about delivery logs writes them, and the window looks the message up among those that it
has.  They hold an id and nothing else.  There is no checksum: opening one only looks, and what was
changed on its way is not found.  A foreign id that would need quoting gets no link.
"""

import re
from typing import Final

from engine.core.content import MAX_MESSAGE_ID_BYTES
from engine.core.ids import MessageId

MESSAGE_PREFIX: Final = "causerie:message/"
_ID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_MESSAGE_ID_BYTES}}}", re.ASCII)


def message_link(message_id: str | None) -> str:
    """Empty if there is no id, or none that a link can hold."""
    fits = message_id is not None and _ID.fullmatch(message_id) is not None
    return f"{MESSAGE_PREFIX}{message_id}" if fits else ""


def linked_message(link: str) -> MessageId | None:
    """None if it is no such link, or leads nowhere."""
    behind = link.removeprefix(MESSAGE_PREFIX)
    is_one = behind != link and _ID.fullmatch(behind) is not None
    return MessageId(behind) if is_one else None
