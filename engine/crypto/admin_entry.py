"""Makes and verifies entries of a group's admin log; ``engine.codec.admin_entry`` has their bytes.

An entry proves who wrote it, in which group, and what its author knew.  Whether it counts is
decided in ``engine.core.admin_log``.  It is kept and passed on as received.
"""

from collections.abc import Iterable

from msgspec import Struct

from engine.codec.admin_entry import (
    EntryFrame,
    decode_entry,
    encode_body,
    encode_entry,
    entry_id_of,
    signed_bytes,
)
from engine.core.admin_log.acts import Act, Entry, EntryId
from engine.core.ids import UnixMs
from engine.crypto.identity import Identity, participant_id_of, verify


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


def _entry(frame: EntryFrame, group_id: bytes) -> Entry:
    return Entry(
        entry_id=entry_id_of(group_id, frame.author_key, frame.body),
        author=participant_id_of(frame.author_key),
        lamport_timestamp=frame.lamport_timestamp,
        sent_ms=frame.sent_ms,
        heads=frame.heads,
        act=frame.act,
    )
