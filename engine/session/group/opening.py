"""Opens envelopes of a group, and makes all checks that come before membership.

These are seal, signature and sender (``engine.crypto.sealed``), the canonical SDS form, content and
message id.  They need nothing of a conversation but its keys.  So ``open_page`` can run in another
process (``engine.runtime.history.opening_process``), whose requests and answers are defined here.
What that process decodes on the way, the session need not decode again.
"""

import dataclasses
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from engine.codec.content import decode_content
from engine.codec.message_id import message_id_of
from engine.codec.sds import decode_message, encode_message
from engine.core.content import Content, Text
from engine.core.errors import RemoteProtocolError
from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord, SpanRecord
from engine.core.sds.vocabulary import HistoryEntry, Message
from engine.crypto.sealed import Opened, SealedGroup
from engine.session.rows import spans_in

_HASH_BYTES = 16


class PageToOpen(Struct, frozen=True, kw_only=True):
    """Payloads of Waku messages, and the keys of their group."""

    payloads: tuple[bytes, ...]
    group_id: bytes = b""
    epoch_keys: tuple[bytes, ...] = ()


class TextRead(NamedTuple):
    """The content of a message that is a text, and the text's markup and mentions."""

    content: Content
    spans: tuple[SpanRecord, ...]


class OpenedEnvelope(Struct, frozen=True, kw_only=True, gc=False):
    """An envelope that passed all checks that come before membership."""

    envelope_hash: bytes
    """Over header and ciphertext, because a member can seal other content under a known header."""
    opened: Opened
    """Without ``sds_bytes``, since ``message`` says the same."""
    message: Message
    text: TextRead | None
    """None for all but texts, which are nearly everything."""


OpenedPage = tuple[OpenedEnvelope | None, ...]
"""In the order of the payloads.  None: it failed a check."""


class _Text(Struct, frozen=True, array_like=True):
    """A ``TextRead`` as it travels: a content's body may be of many types."""

    author: AuthorSequence
    previous_id: MessageId | None
    nonce: bytes
    sent_ms: UnixMs
    body: Text
    replaces: MessageId | None
    spans: tuple[SpanRecord, ...]

    def read(self) -> TextRead:
        content = Content(
            author=self.author,
            previous_id=self.previous_id,
            nonce=self.nonce,
            sent_ms=self.sent_ms,
            body=self.body,
            replaces=self.replaces,
        )
        return TextRead(content, self.spans)


class _Answered(Struct, frozen=True, array_like=True):
    """An opened envelope.  ``history``: places of its causal history in the answer's entries."""

    envelope_hash: bytes
    opened: Opened
    message: Message
    history: tuple[Annotated[int, Meta(ge=0)], ...]
    text: _Text | None


class _Answer(Struct, frozen=True, array_like=True):
    """A page.  Neighbours name nearly the same history, so each entry is in it once."""

    entries: tuple[HistoryEntry, ...]
    envelopes: tuple[_Answered | None, ...]


_to_bytes = msgspec.msgpack.Encoder().encode
_to_page = msgspec.msgpack.Decoder(PageToOpen).decode
_to_answer = msgspec.msgpack.Decoder(_Answer).decode


def encode_page(page: PageToOpen) -> bytes:
    return _to_bytes(page)


def decode_opened(data: bytes) -> OpenedPage:
    """Raises msgspec.DecodeError."""
    try:
        answer = _to_answer(data)
        return tuple(_with_history(one, answer.entries) for one in answer.envelopes)
    except (IndexError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError("no answer of open_page") from error


def _with_history(one: _Answered | None, entries: Sequence[HistoryEntry]) -> OpenedEnvelope | None:
    if one is None:
        return None
    history = tuple(map(entries.__getitem__, one.history))
    return OpenedEnvelope(
        envelope_hash=one.envelope_hash,
        opened=one.opened,
        message=replace(one.message, causal_history=history),
        text=None if one.text is None else one.text.read(),
    )


def open_page(data: bytes) -> bytes:
    """From an encoded ``PageToOpen`` to what ``decode_opened`` takes."""
    page = _to_page(data)
    places: dict[HistoryEntry, int] = {}
    envelopes: list[_Answered | None] = []
    if page.payloads:
        sealed = SealedGroup(group_id=page.group_id, epoch_keys=page.epoch_keys)
        envelopes += [_open(sealed, payload, places) for payload in page.payloads]
    return _to_bytes(_Answer(tuple(places), tuple(envelopes)))


def carrier_of(group: GroupRecord, payload: bytes) -> ParticipantId | None:
    """Who sent this copy: the sender of the message, or whoever repairs it.  None: nobody proved.

    Opens the whole envelope, so it is for the few who want to know before the session does.
    """
    try:
        group_id = group_id_of(group.conversation_id)
        opened = SealedGroup(group_id=group_id, epoch_keys=group.epoch_keys).open(payload)
    except RemoteProtocolError:
        return None
    return opened.repaired_by or opened.sender_id


def _open(sealed: SealedGroup, payload: bytes, places: dict[HistoryEntry, int]) -> _Answered | None:
    """``places``: the entries of the answer so far, and where they are."""
    try:
        opened = sealed.open(payload)
        message = checked_message(opened)
        content = checked_content(sealed.group_id, message)
    except RemoteProtocolError:
        return None
    return _Answered(
        envelope_hash=envelope_hash_of(payload),
        opened=dataclasses.replace(opened, sds_bytes=b""),
        message=replace(message, causal_history=()),
        history=tuple(places.setdefault(each, len(places)) for each in message.causal_history),
        text=None if content is None else _text_in(content),
    )


def _text_in(content: Content) -> _Text | None:
    body = content.body
    if not isinstance(body, Text):
        return None
    return _Text(
        author=content.author,
        previous_id=content.previous_id,
        nonce=content.nonce,
        sent_ms=content.sent_ms,
        body=body,
        replaces=content.replaces,
        spans=spans_in(body),
    )


def envelope_hash_of(payload: bytes) -> bytes:
    """Over the whole envelope, which has one form only."""
    return sha256(payload).digest()[:_HASH_BYTES]


def checked_message(opened: Opened) -> Message:
    """Raises RemoteProtocolError, also for a message in another than its canonical form."""
    message = decode_message(opened.sds_bytes)
    if encode_message(message) != opened.sds_bytes:
        raise RemoteProtocolError("not_canonical", "SDS message")
    return message


def checked_content(group_id: bytes, message: Message) -> Content | None:
    """The content, whose message id is recomputed; None for sync and ephemeral messages.

    Raises RemoteProtocolError.
    """
    if message.is_sync or message.is_ephemeral:
        return None
    content = message.content or b""
    decoded = decode_content(content)
    expected = message_id_of(
        group_id,
        message.sender_id,
        message.channel_id,
        message.lamport_timestamp or 0,
        [entry.message_id for entry in message.causal_history],
        content,
        decoded,
    )
    if message.message_id != expected:
        raise RemoteProtocolError("id_mismatch")
    return decoded
