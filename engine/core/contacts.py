"""People whom one talks to one to one: how far two have come, and what a contact link says.

A pair begins with a request: whoever has somebody's contact link asks, the other accepts,
declines or blocks.  Nothing else is exchanged before both want it.  Types and bounds only; nothing
here knows bytes, keys' use, or the network.
"""

from dataclasses import dataclass
from enum import StrEnum

from engine.core.ids import UnixMs

CONTACT_PREFIX = "causerie:contact/"
CONTACT_LINK_DAYS = 90
MAX_PICTURE_BYTES = 24 * 1024
"""As it travels and is kept: PNG or JPEG, scaled down by whoever sends it."""


class ContactState(StrEnum):
    ASKED = "asked"
    """We asked; they have not answered."""
    ASKING = "asking"
    """They ask; we have not answered."""
    ACCEPTED = "accepted"
    DECLINED = "declined"
    """They declined, or we did."""
    BLOCKED = "blocked"
    """By us: nothing of theirs is taken in or answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactLink:
    """What ``causerie:contact/…`` says, signed by whom it is about."""

    public_key: bytes
    encryption_key: bytes
    name: str
    expires_ms: UnixMs
    node_addresses: tuple[str, ...]
