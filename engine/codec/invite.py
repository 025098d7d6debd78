"""The text of invitation links: ``causerie:join/`` and what is needed to join a group.

The form is ``proto/invite.proto`` in the text of ``engine.codec.link_text``; non-canonical bytes
are refused.  Addresses are checked only for length and characters; ``engine.crypto.links`` checks
the admin's key.
"""

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.codec.link_text import LinkForm, check_addresses, fill_addresses
from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX
from engine.core.content import clean_name
from engine.core.errors import InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.invite import (
    EPOCH_KEY_BYTES,
    GROUP_ID_BYTES,
    INVITE_PREFIX,
    Invite,
)
from proto import invite_pb2

VERSION = 2
INVITE_FORM = LinkForm(
    kind=LinkKind.INVITATION,
    prefix=INVITE_PREFIX,
    domain="causerie/1/invite",
    other_prefixes=(CONTACT_PREFIX, CHANNEL_PREFIX),
)


def write_invite(invite: Invite) -> str:
    """A link of at most MAX_LINK_CHARACTERS; addresses that do not fit are left out.

    Raises LocalProtocolError for an unusable invitation.
    """
    try:
        wire = invite_pb2.Invite(
            version=VERSION,
            group_id=invite.group_id,
            group_name=clean_name(invite.group_name),
            epoch_key=invite.epoch_key,
            admin_public_key=invite.admin_public_key,
            inviter_name=clean_name(invite.inviter_name),
        )
        _check(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"an invitation that nobody could use: {error}") from error
    fill_addresses(
        wire.service_nodes,
        wire.node_addresses,
        nodes=invite.service_nodes,
        addresses=invite.node_addresses,
        link=lambda: _link(wire),
    )
    return _link(wire)


def read_invite(link: str) -> Invite:
    """Checks shape and bounds only.  Raises InviteError."""
    encoded = INVITE_FORM.read(link)
    wire = _decode(encoded)
    _check(wire)
    if one_form(wire) != encoded:
        raise InviteError(LinkFlaw.NOT_CANONICAL, LinkKind.INVITATION)
    try:
        group_name, inviter_name = clean_name(wire.group_name), clean_name(wire.inviter_name)
    except ValueError as error:
        raise InviteError(LinkFlaw.BAD_NAME, LinkKind.INVITATION) from error
    return Invite(
        group_id=wire.group_id,
        group_name=group_name,
        epoch_key=wire.epoch_key,
        admin_public_key=wire.admin_public_key,
        inviter_name=inviter_name,
        node_addresses=tuple(wire.node_addresses),
        service_nodes=tuple(wire.service_nodes),
    )


def _decode(encoded: bytes) -> invite_pb2.Invite:
    try:
        return invite_pb2.Invite.FromString(encoded)
    except DecodeError as error:
        raise InviteError(LinkFlaw.UNREADABLE, LinkKind.INVITATION) from error


def _check(wire: invite_pb2.Invite) -> None:
    if wire.version > VERSION:
        raise InviteError(LinkFlaw.NEWER, LinkKind.INVITATION)
    lengths = (len(wire.group_id), len(wire.epoch_key))
    complete = lengths == (GROUP_ID_BYTES, EPOCH_KEY_BYTES)
    if wire.version < VERSION or not complete:
        raise InviteError(LinkFlaw.INCOMPLETE, LinkKind.INVITATION)
    check_addresses(LinkKind.INVITATION, wire.service_nodes, wire.node_addresses)


def _link(wire: invite_pb2.Invite) -> str:
    return INVITE_FORM.write(wire.SerializeToString(deterministic=True))
