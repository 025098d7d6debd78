"""The text of contact links: ``causerie:contact/`` and a self-signed identity.

The form is ``proto/contact.proto`` in the text of ``engine.codec.link_text``; non-canonical bytes
are refused.  ``engine.crypto.links`` checks keys, signature and expiry.
"""

from collections.abc import Callable

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.codec.canonical import one_form
from engine.codec.link_text import LinkForm, is_address
from engine.codec.tuples import tuple_bytes
from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX, ContactLink
from engine.core.content import clean_name
from engine.core.errors import InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.ids import SIGNATURE_BYTES, UnixMs
from engine.core.invite import INVITE_PREFIX, MAX_LINK_CHARACTERS, MAX_NODE_ADDRESSES
from proto import contact_pb2

VERSION = 1
_DOMAIN = "causerie/1/contact-link"
CONTACT_FORM = LinkForm(
    kind=LinkKind.CONTACT,
    prefix=CONTACT_PREFIX,
    domain="causerie/1/contact",
    other_prefixes=(INVITE_PREFIX, CHANNEL_PREFIX),
)
_LATEST_MS = 253_402_300_799_999
"""The last moment of the year 9999, the limit of calendars."""


class ReadContactLink(Struct, frozen=True, kw_only=True):
    """The content of a link.  Keys, signature and expiry are not checked yet."""

    link: ContactLink
    signature: bytes
    signed: bytes
    """The signed bytes."""


def write_contact_link(link: ContactLink, *, sign: Callable[[bytes], bytes]) -> str:
    """A link of at most MAX_LINK_CHARACTERS; addresses that do not fit are left out.

    Raises LocalProtocolError for an unusable link.
    """
    try:
        wire = contact_pb2.ContactLink(
            version=VERSION,
            public_key=link.public_key,
            encryption_key=link.encryption_key,
            name=clean_name(link.name),
            expires_ms=link.expires_ms,
            signature=bytes(SIGNATURE_BYTES),
        )
        _check_shape(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"a contact link that nobody could use: {error}") from error
    for address in dict.fromkeys(link.node_addresses):
        if len(wire.node_addresses) == MAX_NODE_ADDRESSES:
            break
        if not is_address(address):
            continue
        wire.node_addresses.append(address)
        if len(_link(wire)) > MAX_LINK_CHARACTERS:
            wire.node_addresses.pop()
    wire.signature = sign(_signed_bytes(wire))
    return _link(wire)


def read_contact_link(text: str) -> ReadContactLink:
    """Checks shape and bounds only.  Raises InviteError."""
    encoded = CONTACT_FORM.read(text)
    try:
        wire = contact_pb2.ContactLink.FromString(encoded)
    except DecodeError as error:
        raise InviteError(LinkFlaw.UNREADABLE, LinkKind.CONTACT) from error
    _check_shape(wire)
    if one_form(wire) != encoded:
        raise InviteError(LinkFlaw.NOT_CANONICAL, LinkKind.CONTACT)
    try:
        name = clean_name(wire.name)
    except ValueError as error:
        raise InviteError(LinkFlaw.BAD_NAME, LinkKind.CONTACT) from error
    link = ContactLink(
        public_key=wire.public_key,
        encryption_key=wire.encryption_key,
        name=name,
        expires_ms=UnixMs(wire.expires_ms),
        node_addresses=tuple(wire.node_addresses),
    )
    return ReadContactLink(link=link, signature=wire.signature, signed=_signed_bytes(wire))


def _check_shape(wire: contact_pb2.ContactLink) -> None:
    if wire.version > VERSION:
        raise InviteError(LinkFlaw.NEWER, LinkKind.CONTACT)
    complete = wire.version == VERSION and len(wire.signature) == SIGNATURE_BYTES
    if not complete or not 1 <= wire.expires_ms <= _LATEST_MS:
        raise InviteError(LinkFlaw.INCOMPLETE, LinkKind.CONTACT)
    addresses = wire.node_addresses
    if len(addresses) > MAX_NODE_ADDRESSES or not all(is_address(a) for a in addresses):
        raise InviteError(LinkFlaw.BAD_ADDRESS, LinkKind.CONTACT)


def _signed_bytes(wire: contact_pb2.ContactLink) -> bytes:
    """The whole link but the signature; the name exactly as written."""
    return tuple_bytes(
        _DOMAIN,
        wire.version,
        wire.public_key,
        wire.encryption_key,
        wire.name,
        wire.expires_ms,
        len(wire.node_addresses),
        *wire.node_addresses,
    )


def _link(wire: contact_pb2.ContactLink) -> str:
    return CONTACT_FORM.write(wire.SerializeToString(deterministic=True))
