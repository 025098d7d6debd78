"""Reads the bytes of a message that SDS carries: its fields, and what they weigh.

The bytes were checked when they came; if they cannot be read any more, nothing is said of them.
"""

from math import log1p

from msgspec import Struct

from engine.codec.content import decode_content
from engine.codec.envelope import EPOCH_ID_BYTES, decode_signed_part
from engine.codec.sds import decode_message, part_sizes
from engine.core.content import Content
from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId, UnixMs
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord, OpenChannelRecord
from engine.core.sds.bloom import HASHES, bits_of, fill_of
from engine.core.sds.vocabulary import Message
from engine.crypto.sealed import epoch_commitment
from engine.inspection_views import FilterView, PartView, SdsView


class ReadBytes(Struct, frozen=True, kw_only=True):
    message: Message
    content: Content | None
    """None in an open channel, which has no such content."""
    signed_ms: UnixMs | None
    epoch_id: bytes
    parts: tuple[PartView, ...]


def read_bytes(raw: bytes, about: GroupRecord | OpenChannelRecord) -> ReadBytes | None:
    """None if they are not what the log of such a conversation has."""
    try:
        return _read(raw, is_open=isinstance(about, OpenChannelRecord))
    except RemoteProtocolError:
        return None


def causal_history(raw: bytes, *, is_open: bool) -> tuple[MessageId, ...]:
    """The ids in it; none if the bytes cannot be read."""
    try:
        message = decode_message(raw if is_open else decode_signed_part(raw).sds_message)
    except RemoteProtocolError:
        return ()
    return tuple(entry.message_id for entry in message.causal_history)


def _read(raw: bytes, *, is_open: bool) -> ReadBytes:
    """Raises RemoteProtocolError."""
    if is_open:
        message = decode_message(raw)
        return ReadBytes(
            message=message,
            content=None,
            signed_ms=None,
            epoch_id=b"",
            parts=_parts(message, len(raw), {}),
        )
    signed = decode_signed_part(raw)
    message = decode_message(signed.sds_message)
    return ReadBytes(
        message=message,
        content=decode_content(message.content or b""),
        signed_ms=signed.signed_ms,
        epoch_id=signed.epoch_id,
        parts=_parts(
            message,
            len(raw),
            {
                "holdings": len(signed.claims),
                "signature": len(signed.signature),
                "sender_public_key": len(signed.sender_public_key),
            },
        ),
    )


def _parts(message: Message, whole: int, around: dict[str, int]) -> tuple[PartView, ...]:
    """All that is longer than nothing; "other" is what tells the parts from each other."""
    sizes = part_sizes(message) | around
    sizes["other"] = whole - sum(sizes.values())
    return tuple(PartView(name=name, size=size) for name, size in sizes.items() if size)


def sds_view(
    found: ReadBytes, about: GroupRecord | OpenChannelRecord, retrieval_hint: bytes | None
) -> SdsView:
    message, content = found.message, found.content
    author = content.author if content else None
    return SdsView(
        sender_id=message.sender_id,
        message_id=message.message_id,
        channel_id=message.channel_id,
        lamport_timestamp=message.lamport_timestamp,
        causal_history=tuple(entry.message_id for entry in message.causal_history),
        bloom_filter=filter_view(message.bloom_filter) if message.bloom_filter else None,
        repair_request=tuple(entry.message_id for entry in message.repair_request),
        content_size=len(message.content or b""),
        instance_id=author.instance_id.hex() if author else "",
        sequence=author.sequence if author else None,
        previous_id=content.previous_id if content else None,
        replaces=content.replaces if content else None,
        signed_ms=found.signed_ms,
        group_key=_group_key(found.epoch_id, about),
        retrieval_hint=(retrieval_hint or b"").hex(),
    )


def filter_view(data: bytes) -> FilterView:
    bits, fill = bits_of(len(data)), min(fill_of(data), 1.0)
    # Each id sets HASHES bits at random: fill = 1 - (1 - 1/m)^(k n).  A full one tells no number.
    about_ids = 0 if fill >= 1 else round(log1p(-fill) / (HASHES * log1p(-1 / bits)))
    return FilterView(
        size=len(data), bits=bits, fill=fill, about_ids=about_ids, false_probability=fill**HASHES
    )


def _group_key(epoch_id: bytes, about: GroupRecord | OpenChannelRecord) -> int | None:
    if isinstance(about, OpenChannelRecord):
        return None
    group_id = group_id_of(about.conversation_id)
    for number, key in enumerate(about.epoch_keys, start=1):
        if epoch_commitment(group_id, key)[:EPOCH_ID_BYTES] == epoch_id:
            return number
    return None
