"""Makes and checks links: contact links and invitations to groups.

A contact link holds no secret: anyone who has it can ask its owner to talk, and can tell when
others do, nothing more.  Its signature shows that the owner of the identity made it, with keys,
name, addresses and expiry; it does not show that this is the person one has in mind.  The reader
enforces the last day, so that stale links do not go round.  Every refusal is a sentence for the
user.  The network is not used, and a link of one's own is not recognised.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from engine.codec.contact_link import read_contact_link, write_contact_link
from engine.codec.invite import read_invite, write_invite
from engine.core.contacts import ContactLink
from engine.core.errors import CryptoError, InviteError, LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import Invite
from engine.crypto.identity import Identity, verify
from engine.crypto.keys import require_encryption_key, require_public_key

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_contact_link(
    identity: Identity, *, name: str, expires_ms: UnixMs, node_addresses: Sequence[str]
) -> str:
    """Raises LocalProtocolError for an unusable link."""
    link = ContactLink(
        public_key=identity.public_key,
        encryption_key=identity.encryption_public_key,
        name=name,
        expires_ms=expires_ms,
        node_addresses=tuple(node_addresses),
    )
    return write_contact_link(link, sign=identity.sign)


def parse_contact_link(text: str, *, now_ms: UnixMs) -> ContactLink:
    """Raises InviteError, whose text tells the user what is wrong and what to do."""
    read = read_contact_link(text)
    link = read.link
    try:
        require_public_key(link.public_key)
        require_encryption_key(link.encryption_key)
    except CryptoError as error:
        raise InviteError(
            "This contact link names a key that cannot be genuine. Do not trust it."
        ) from error
    try:
        verify(link.public_key, read.signature, read.signed)
    except CryptoError as error:
        raise InviteError(
            "This contact link is not signed by the person it names. Do not trust it."
        ) from error
    if link.expires_ms <= now_ms:
        expired = _date_words(link.expires_ms)
        raise InviteError(f"This contact link expired on {expired}. Ask for a new one.")
    return link


def encode_invite(invite: Invite) -> str:
    """Raises LocalProtocolError for an unusable invitation."""
    try:
        require_public_key(invite.admin_public_key)
    except CryptoError as error:
        raise LocalProtocolError(f"an invitation that nobody could use: {error}") from error
    return write_invite(invite)


def parse_invite(link: str) -> Invite:
    """Raises InviteError, whose text tells the user what is wrong and what to do."""
    invite = read_invite(link)
    try:
        require_public_key(invite.admin_public_key)
    except CryptoError as error:
        raise InviteError(
            "This invitation names an admin key that cannot be genuine. Do not trust it."
        ) from error
    return invite


def _date_words(unix_ms: int) -> str:
    """The day by UTC: ``9 September 2001``."""
    day = _EPOCH + timedelta(milliseconds=unix_ms)
    return f"{day.day} {day:%B} {day.year}"
