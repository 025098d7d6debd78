"""Contact links: ``causerie:contact/`` and who somebody is, signed by themselves.

The form is ``proto/contact.proto`` in the text of ``engine.codec.link_text``.  There is no secret
in it: whoever has it can ask its owner to talk, and can tell when somebody does, nothing more.  The
last day is kept by who reads the link, so that stale ones do not go round.  The signature shows
that the owner of the identity made it, keys, name, addresses and expiry together; it does not show
that this is the person one has in mind; bytes that we should write otherwise are refused.  Every
refusal is a sentence for the user.  Nothing here
touches the network, and whether it is one's own link is not known here.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.codec.link_text import LinkForm, is_address
from engine.codec.tuples import tuple_bytes
from engine.core.contacts import CONTACT_PREFIX, ContactLink
from engine.core.content import clean_name
from engine.core.errors import CryptoError, InviteError, LocalProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import INVITE_PREFIX, MAX_LINK_CHARACTERS, MAX_NODE_ADDRESSES
from engine.crypto.identity import SIGNATURE_BYTES, Identity, verify
from engine.crypto.keys import require_encryption_key, require_public_key
from proto import contact_pb2

VERSION = 1
_DOMAIN = "causerie/1/contact-link"
_ASK = "Ask for a new one."
_FORM = LinkForm(
    prefix=CONTACT_PREFIX,
    domain="causerie/1/contact",
    noun="contact link",
    article="a",
    of_the_other_kind=(
        INVITE_PREFIX,
        "This is an invitation to a group, not a contact link. Join the group with it.",
    ),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 253_402_300_799_999
"""The last moment of the year 9999: no calendar goes further."""


def encode_contact_link(
    identity: Identity, *, name: str, expires_ms: UnixMs, node_addresses: Sequence[str]
) -> str:
    """A link of at most MAX_LINK_CHARACTERS; addresses that do not fit any more are left out.

    Raises LocalProtocolError for a link that nobody could use.
    """
    try:
        wire = contact_pb2.ContactLink(
            version=VERSION,
            public_key=identity.public_key,
            encryption_key=identity.encryption_public_key,
            name=clean_name(name),
            expires_ms=expires_ms,
            signature=bytes(SIGNATURE_BYTES),
        )
        _check_shape(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"a contact link that nobody could use: {error}") from error
    for address in dict.fromkeys(node_addresses):
        if len(wire.node_addresses) == MAX_NODE_ADDRESSES:
            break
        if not is_address(address):
            continue
        wire.node_addresses.append(address)
        if len(_link(wire)) > MAX_LINK_CHARACTERS:
            wire.node_addresses.pop()
    wire.signature = identity.sign(_signed_bytes(wire))
    return _link(wire)


def parse_contact_link(text: str, *, now_ms: UnixMs) -> ContactLink:
    """Raises InviteError, whose text tells the user what is wrong and what to do."""
    encoded = _FORM.read(text)
    try:
        wire = contact_pb2.ContactLink.FromString(encoded)
    except DecodeError as error:
        raise InviteError(f"This contact link cannot be read. {_ASK}") from error
    _check_shape(wire)
    if one_form(wire) != encoded:
        words = "This contact link has something in it that does not belong there."
        raise InviteError(f"{words} {_ASK}")
    _check_signature(wire)
    if wire.expires_ms <= now_ms:
        expired = _date_words(wire.expires_ms)
        raise InviteError(f"This contact link expired on {expired}. {_ASK}")
    try:
        name = clean_name(wire.name)
    except ValueError as error:
        raise InviteError(f"This contact link has an unusable name in it. {_ASK}") from error
    return ContactLink(
        public_key=wire.public_key,
        encryption_key=wire.encryption_key,
        name=name,
        expires_ms=UnixMs(wire.expires_ms),
        node_addresses=tuple(wire.node_addresses),
    )


def _check_shape(wire: contact_pb2.ContactLink) -> None:
    if wire.version > VERSION:
        raise InviteError(
            "This contact link was made by a newer version of Causerie. Update first."
        )
    complete = wire.version == VERSION and len(wire.signature) == SIGNATURE_BYTES
    if not complete or not 1 <= wire.expires_ms <= _LATEST_MS:
        raise InviteError(f"Something is missing in this contact link. {_ASK}")
    try:
        require_public_key(wire.public_key)
        require_encryption_key(wire.encryption_key)
    except CryptoError as error:
        raise InviteError(
            "This contact link names a key that cannot be genuine. Do not trust it."
        ) from error
    addresses = wire.node_addresses
    if len(addresses) > MAX_NODE_ADDRESSES or not all(is_address(a) for a in addresses):
        raise InviteError(f"This contact link has an unusable address in it. {_ASK}")


def _check_signature(wire: contact_pb2.ContactLink) -> None:
    try:
        verify(wire.public_key, wire.signature, _signed_bytes(wire))
    except CryptoError as error:
        raise InviteError(
            "This contact link is not signed by the person it names. Do not trust it."
        ) from error


def _signed_bytes(wire: contact_pb2.ContactLink) -> bytes:
    """Everything in the link; the name exactly as written."""
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
    return _FORM.write(wire.SerializeToString(deterministic=True))


def _date_words(unix_ms: int) -> str:
    """The day by UTC: ``9 September 2001``."""
    day = _EPOCH + timedelta(milliseconds=unix_ms)
    return f"{day.day} {day:%B} {day.year}"
