"""The text of strong invitations: ``causerie:join/`` and whom to ask, without a key of the group.

The form is ``StrongInvite`` of ``proto/invite.proto`` in the text of ``engine.codec.link_text``;
non-canonical bytes are refused.  The inviter signs all of it, so that whoever compared their key
knows that they meant this group.  ``engine.crypto.links`` checks keys, signature and expiry.
"""

from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.codec.admin_entry import ENTRY_ID_BYTES, entry_id_bytes, entry_id_from
from engine.codec.canonical import one_form
from engine.codec.invite import INVITE_FORM
from engine.codec.link_text import check_addresses, fill_addresses
from engine.codec.tuples import tuple_bytes
from engine.core.content import clean_name
from engine.core.errors import InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.ids import SIGNATURE_BYTES, UnixMs
from engine.core.invite import GROUP_ID_BYTES, TOKEN_BYTES, StrongInvite
from proto import invite_pb2

VERSION: Final = 3
_DOMAIN: Final = "causerie/1/strong-invite"
_LATEST_MS: Final = 253_402_300_799_999
"""The last moment of the year 9999, the limit of calendars."""


class ReadStrongInvite(Struct, frozen=True, kw_only=True):
    """The content of a link.  Keys, signature and expiry are not checked yet."""

    invite: StrongInvite
    signature: bytes
    signed: bytes
    """The signed bytes."""


def is_strong(link: str) -> bool:
    """Whether it is of this kind, as far as its version says.  Raises InviteError."""
    try:
        return invite_pb2.Invite.FromString(INVITE_FORM.read(link)).version == VERSION
    except DecodeError:
        return False


def write_strong_invite(invite: StrongInvite, *, sign: Callable[[bytes], bytes]) -> str:
    """A link of at most MAX_LINK_CHARACTERS; addresses that do not fit are left out.

    Raises LocalProtocolError for an unusable invitation.
    """
    try:
        wire = invite_pb2.StrongInvite(
            version=VERSION,
            group_id=invite.group_id,
            group_name=clean_name(invite.group_name),
            inviter_name=clean_name(invite.inviter_name),
            first_entry=entry_id_bytes(invite.first_entry),
            public_key=invite.public_key,
            encryption_key=invite.encryption_key,
            invitation=entry_id_bytes(invite.invitation_id),
            token=invite.token,
            expires_ms=invite.expires_ms,
            signature=bytes(SIGNATURE_BYTES),
        )
        _check_shape(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"an invitation that nobody could use: {error}") from error
    fill_addresses(
        wire.service_nodes,
        wire.node_addresses,
        nodes=invite.service_nodes,
        addresses=invite.node_addresses,
        link=lambda: _link(wire),
    )
    wire.signature = sign(_signed_bytes(wire))
    return _link(wire)


def read_strong_invite(link: str) -> ReadStrongInvite:
    """Checks shape and bounds only.  Raises InviteError."""
    encoded = INVITE_FORM.read(link)
    try:
        wire = invite_pb2.StrongInvite.FromString(encoded)
    except DecodeError as error:
        raise _error(LinkFlaw.UNREADABLE) from error
    _check_shape(wire)
    if one_form(wire) != encoded:
        raise _error(LinkFlaw.NOT_CANONICAL)
    try:
        group_name, inviter_name = clean_name(wire.group_name), clean_name(wire.inviter_name)
    except ValueError as error:
        raise _error(LinkFlaw.BAD_NAME) from error
    invite = StrongInvite(
        group_id=wire.group_id,
        first_entry=entry_id_from(wire.first_entry),
        group_name=group_name,
        inviter_name=inviter_name,
        public_key=wire.public_key,
        encryption_key=wire.encryption_key,
        invitation_id=entry_id_from(wire.invitation),
        token=wire.token,
        expires_ms=UnixMs(wire.expires_ms),
        node_addresses=tuple(wire.node_addresses),
        service_nodes=tuple(wire.service_nodes),
    )
    return ReadStrongInvite(invite=invite, signature=wire.signature, signed=_signed_bytes(wire))


def _check_shape(wire: invite_pb2.StrongInvite) -> None:
    if wire.version > VERSION:
        raise _error(LinkFlaw.NEWER)
    lengths = tuple(
        map(len, (wire.group_id, wire.first_entry, wire.invitation, wire.token, wire.signature))
    )
    wanted = GROUP_ID_BYTES, ENTRY_ID_BYTES, ENTRY_ID_BYTES, TOKEN_BYTES, SIGNATURE_BYTES
    if wire.version != VERSION or lengths != wanted or not 1 <= wire.expires_ms <= _LATEST_MS:
        raise _error(LinkFlaw.INCOMPLETE)
    check_addresses(LinkKind.INVITATION, wire.service_nodes, wire.node_addresses)


def _error(flaw: LinkFlaw) -> InviteError:
    return InviteError(flaw, LinkKind.INVITATION)


def _signed_bytes(wire: invite_pb2.StrongInvite) -> bytes:
    """The whole link but the signature; the names exactly as written."""
    return tuple_bytes(
        _DOMAIN,
        wire.version,
        wire.group_id,
        wire.first_entry,
        wire.group_name,
        wire.inviter_name,
        wire.public_key,
        wire.encryption_key,
        wire.invitation,
        wire.token,
        wire.expires_ms,
        len(wire.service_nodes),
        *wire.service_nodes,
        len(wire.node_addresses),
        *wire.node_addresses,
    )


def _link(wire: invite_pb2.StrongInvite) -> str:
    return INVITE_FORM.write(wire.SerializeToString(deterministic=True))
