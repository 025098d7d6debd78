"""Makes and verifies entries of a group's admin log; ``engine.codec.admin_entry`` has their bytes.

An entry proves who wrote it, in which group, and what its author knew.  Whether it counts is
decided in ``engine.core.admin_log``.  It is kept and passed on as received.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from engine.codec.admin_entry import (
    EntryFrame,
    decode_entry,
    encode_body,
    encode_entry,
    entry_id_of,
    signed_bytes,
)
from engine.core.admin_log.acts import Act, Create, Entry, EntryId
from engine.core.ids import UnixMs
from engine.crypto.identity import Identity, participant_id_of, verify

_LINK_CREATE: Final = encode_body(
    Create(name="link"), lamport_timestamp=1, sent_ms=UnixMs(0), heads=()
)


class SignedEntry(Struct, frozen=True, kw_only=True):
    """``data`` is what is kept and sent."""

    entry: Entry
    data: bytes


def sign_entry(  # noqa: PLR0913 - keyword-only: an entry has as many parts
    identity: Identity,
    act: Act,
    *,
    group_id: bytes,
    lamport_timestamp: int,
    sent_ms: UnixMs,
    heads: Iterable[EntryId],
) -> SignedEntry:
    """Raises LocalProtocolError for an act that others would not understand."""
    body = encode_body(act, lamport_timestamp=lamport_timestamp, sent_ms=sent_ms, heads=heads)
    author_key = identity.public_key
    signature = identity.sign(signed_bytes(group_id, author_key, body))
    data = encode_entry(author_key=author_key, body=body, signature=signature)
    return SignedEntry(entry=_entry(decode_entry(data), group_id), data=data)


def verify_entry(data: bytes, *, group_id: bytes) -> Entry:
    """Raises RemoteProtocolError as ``decode_entry``, CryptoError as ``verify``."""
    frame = decode_entry(data)
    signed = signed_bytes(group_id, frame.author_key, frame.body)
    verify(frame.author_key, frame.signature, signed)
    return _entry(frame, group_id)


def read_entry(data: bytes, *, group_id: bytes) -> Entry:
    """As ``verify_entry``, for one that was verified before it was kept."""
    return _entry(decode_entry(data), group_id)


# --- the beginning of a log that a link has -------------------------------------------------------
#
# A group that anyone with the link is in gets its log when the link ends.  Everybody who has the
# link can compute the id of the log's first entry beforehand, so there is one such log for each
# group: nobody can begin two, neither a creator who lies nor one whose profile was restored.


def link_create_id(admin_public_key: bytes, *, group_id: bytes) -> EntryId:
    return entry_id_of(group_id, admin_public_key, _LINK_CREATE)


def sign_link_create(identity: Identity, *, group_id: bytes) -> bytes:
    """The signature under it."""
    return identity.sign(signed_bytes(group_id, identity.public_key, _LINK_CREATE))


def link_create(admin_public_key: bytes, signature: bytes, *, group_id: bytes) -> SignedEntry:
    """Raises CryptoError if the creator did not sign it."""
    data = encode_entry(author_key=admin_public_key, body=_LINK_CREATE, signature=signature)
    return SignedEntry(entry=verify_entry(data, group_id=group_id), data=data)


def _entry(frame: EntryFrame, group_id: bytes) -> Entry:
    return Entry(
        entry_id=entry_id_of(group_id, frame.author_key, frame.body),
        author=participant_id_of(frame.author_key),
        lamport_timestamp=frame.lamport_timestamp,
        sent_ms=frame.sent_ms,
        heads=frame.heads,
        act=frame.act,
    )
