"""Makes and checks links: contact links and invitations to groups.

A contact link holds no secret: anyone who has it can ask its owner to talk, and can tell when
others do, nothing more.  Its signature shows that the owner of the identity made it, with keys,
name, addresses and expiry; it does not show that this is the person one has in mind.  The reader
enforces the last day, so that stale links do not go round.  Every refusal has a code.  The
network is not used, and a link of one's own is not recognised.  A strong invitation is signed, too,
by the inviter, and says which group they meant.
"""

from collections.abc import Sequence

from engine.codec.contact_link import read_contact_link, write_contact_link
from engine.codec.invite import read_invite, write_invite
from engine.codec.strong_invite import is_strong, read_strong_invite, write_strong_invite
from engine.core.contacts import ContactLink
from engine.core.errors import CryptoError, InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import Invite, StrongInvite
from engine.crypto.identity import Identity, verify
from engine.crypto.keys import require_encryption_key, require_public_key


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
    """Raises InviteError."""
    read = read_contact_link(text)
    _check_signed(read.link, read.signature, read.signed, LinkKind.CONTACT, now_ms=now_ms)
    return read.link


def _check_signed(
    link: ContactLink | StrongInvite,
    signature: bytes,
    signed: bytes,
    kind: LinkKind,
    *,
    now_ms: UnixMs | None,
) -> None:
    """Whether it is genuine and, unless ``now_ms`` is None, not expired.  Raises InviteError."""
    try:
        require_public_key(link.public_key)
        require_encryption_key(link.encryption_key)
    except CryptoError as error:
        raise InviteError(LinkFlaw.BAD_KEY, kind) from error
    try:
        verify(link.public_key, signature, signed)
    except CryptoError as error:
        raise InviteError(LinkFlaw.BAD_SIGNATURE, kind) from error
    if now_ms is not None and link.expires_ms <= now_ms:
        raise InviteError(LinkFlaw.EXPIRED, kind, expired_ms=link.expires_ms)


def encode_invite(invite: Invite) -> str:
    """Raises LocalProtocolError for an unusable invitation."""
    try:
        require_public_key(invite.admin_public_key)
    except CryptoError as error:
        raise LocalProtocolError(f"an invitation that nobody could use: {error}") from error
    return write_invite(invite)


def encode_strong_invite(identity: Identity, invite: StrongInvite) -> str:
    """``invite`` has the keys of ``identity``.  Raises LocalProtocolError for an unusable one."""
    return write_strong_invite(invite, sign=identity.sign)


def parse_any_invite(link: str, *, now_ms: UnixMs | None) -> Invite | StrongInvite:
    """``now_ms``: None reads a strong invitation that is expired, too.  Raises InviteError."""
    if not is_strong(link):
        return parse_invite(link)
    read = read_strong_invite(link)
    _check_signed(read.invite, read.signature, read.signed, LinkKind.INVITATION, now_ms=now_ms)
    return read.invite


def parse_invite(link: str) -> Invite:
    """The simple kind.  Raises InviteError."""
    invite = read_invite(link)
    try:
        require_public_key(invite.admin_public_key)
    except CryptoError as error:
        raise InviteError(LinkFlaw.BAD_KEY, LinkKind.INVITATION) from error
    return invite
