"""Invitation links: ``causerie:join/`` and base64url of four bytes of checksum and the invite.

The form is ``proto/invite.proto``.  The checksum tells a link that was cut off or changed on its
way from one that was never ours, and from one of a newer version; it protects against accidents
only, since whoever can change a link can make another.  Parsing is strict about content and lenient
about what mail programs do to it: spaces, line breaks, angle brackets.  Every refusal is a sentence
for the user.  Nothing here touches the network, and addresses are only checked for length and
characters.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from google.protobuf.message import DecodeError

from engine.codec.tuples import tuple_bytes
from engine.core.content import clean_name
from engine.core.errors import CryptoError, InviteError, LocalProtocolError
from engine.core.invite import (
    EPOCH_ID_BYTES,
    EPOCH_KEY_BYTES,
    GROUP_ID_BYTES,
    INVITE_PREFIX,
    MAX_LINK_CHARACTERS,
    MAX_NODE_ADDRESS_CHARACTERS,
    MAX_NODE_ADDRESSES,
    Invite,
)
from engine.crypto.keys import require_public_key
from proto import invite_pb2

VERSION = 1
MAX_PASTED_CHARACTERS = 16 * 1024
_CHECKSUM_BYTES = 4
_CHECKSUM_DOMAIN = "causerie/1/invite"
_ADDRESS = re.compile(r"/[A-Za-z0-9./:_%+=-]+", re.ASCII)
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_AROUND = "<>()[]\"'`.,;:!?="
_INVISIBLE = str.maketrans(dict.fromkeys("\u200b\u00ad\u2060\ufeff"))
_ASK = "Ask for a new one."


def encode_invite(invite: Invite) -> str:
    """A link of at most MAX_LINK_CHARACTERS; addresses that do not fit any more are left out.

    Raises LocalProtocolError for an invitation that nobody could use.
    """
    try:
        wire = invite_pb2.Invite(
            version=VERSION,
            group_id=invite.group_id,
            group_name=clean_name(invite.group_name),
            epoch_id=invite.epoch_id,
            epoch_key=invite.epoch_key,
            admin_public_key=invite.admin_public_key,
            inviter_name=clean_name(invite.inviter_name),
        )
        _check(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"an invitation that nobody could use: {error}") from error
    link = _link(wire)
    for address in invite.node_addresses:
        if len(wire.node_addresses) == MAX_NODE_ADDRESSES:
            break
        if not _is_address(address) or address in wire.node_addresses:
            continue
        wire.node_addresses.append(address)
        longer = _link(wire)
        if len(longer) > MAX_LINK_CHARACTERS:
            wire.node_addresses.pop()
            continue
        link = longer
    return link


def parse_invite(link: str) -> Invite:
    """Raises InviteError, whose text tells the user what is wrong and what to do."""
    wire = _unpack(_payload_of(link))
    _check(wire)
    try:
        group_name, inviter_name = clean_name(wire.group_name), clean_name(wire.inviter_name)
    except ValueError as error:
        raise InviteError(f"This invitation has an unusable name in it. {_ASK}") from error
    return Invite(
        group_id=wire.group_id,
        group_name=group_name,
        epoch_id=wire.epoch_id,
        epoch_key=wire.epoch_key,
        admin_public_key=wire.admin_public_key,
        inviter_name=inviter_name,
        node_addresses=tuple(wire.node_addresses),
    )


def _payload_of(link: str) -> str:
    """The base64url text after the prefix, without what a mail program added."""
    if len(link) > MAX_PASTED_CHARACTERS:
        raise InviteError("This is far too long to be an invitation link.")
    compact = "".join(link.translate(_INVISIBLE).split()).strip(_AROUND)
    if not compact:
        raise InviteError(f"Paste an invitation link: it starts with {INVITE_PREFIX}")
    if not compact.lower().startswith(INVITE_PREFIX):
        if compact.lower() in INVITE_PREFIX:
            raise InviteError("This link is cut off. Copy the whole link.")
        raise InviteError(f"This is not a Causerie invitation: those start with {INVITE_PREFIX}")
    if len(compact) > MAX_LINK_CHARACTERS:
        raise InviteError(
            f"This link is too long: an invitation has at most {MAX_LINK_CHARACTERS} characters."
        )
    return compact[len(INVITE_PREFIX) :]


def _unpack(payload: str) -> invite_pb2.Invite:
    changed = InviteError("This link was cut off or changed on its way. Copy the whole link.")
    if not _BASE64URL.fullmatch(payload):
        raise changed
    try:
        packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    except ValueError as error:
        raise changed from error
    checksum, encoded = packed[:_CHECKSUM_BYTES], packed[_CHECKSUM_BYTES:]
    if not encoded or checksum != _checksum(encoded):
        raise changed
    try:
        return invite_pb2.Invite.FromString(encoded)
    except DecodeError as error:
        raise InviteError(f"This invitation cannot be read. {_ASK}") from error


def _check(wire: invite_pb2.Invite) -> None:
    if wire.version > VERSION:
        raise InviteError("This invitation was made by a newer version of Causerie. Update first.")
    lengths = (len(wire.group_id), len(wire.epoch_id), len(wire.epoch_key))
    complete = lengths == (GROUP_ID_BYTES, EPOCH_ID_BYTES, EPOCH_KEY_BYTES)
    if wire.version < VERSION or not complete:
        raise InviteError(f"Something is missing in this invitation. {_ASK}")
    try:
        require_public_key(wire.admin_public_key)
    except CryptoError as error:
        raise InviteError(
            "This invitation names an admin key that cannot be genuine. Do not trust it."
        ) from error
    addresses = wire.node_addresses
    if len(addresses) > MAX_NODE_ADDRESSES or not all(_is_address(a) for a in addresses):
        raise InviteError(f"This invitation has an unusable address in it. {_ASK}")


def _is_address(text: str) -> bool:
    return len(text) <= MAX_NODE_ADDRESS_CHARACTERS and _ADDRESS.fullmatch(text) is not None


def _link(wire: invite_pb2.Invite) -> str:
    encoded = wire.SerializeToString(deterministic=True)
    packed = urlsafe_b64encode(_checksum(encoded) + encoded).decode().rstrip("=")
    return f"{INVITE_PREFIX}{packed}"


def _checksum(encoded: bytes) -> bytes:
    return sha256(tuple_bytes(_CHECKSUM_DOMAIN, encoded)).digest()[:_CHECKSUM_BYTES]
