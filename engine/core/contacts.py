"""Contacts: the state of a one-to-one relation, and what a contact link contains.

A pair begins with a request: anyone with a person's contact link can ask, and the other accepts,
declines or blocks.  Nothing else is exchanged before both agree.  This module has types and bounds
only, no bytes, use of keys, or network.
"""

from enum import StrEnum

from msgspec import Struct

from engine.core.ids import UnixMs

CONTACT_PREFIX = "causerie:contact/"
CONTACT_LINK_DAYS = 90
MAX_PICTURE_BYTES = 24 * 1024
"""As sent and stored: PNG or JPEG, scaled down by the sender."""


class ContactState(StrEnum):
    ASKED = "asked"
    """We asked; they have not answered."""
    ASKING = "asking"
    """They ask; we have not answered."""
    ACCEPTED = "accepted"
    DECLINED = "declined"
    """They declined, or we did."""
    BLOCKED = "blocked"
    """We blocked them: nothing of theirs is taken in or answered."""


class ContactLink(Struct, frozen=True, kw_only=True):
    """The content of ``causerie:contact/…``, signed by the person it is about."""

    public_key: bytes
    encryption_key: bytes
    name: str
    expires_ms: UnixMs
    node_addresses: tuple[str, ...]
