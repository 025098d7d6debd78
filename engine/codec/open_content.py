"""The content of a message in an open channel: UTF-8 text, or a message of 22/TOY-CHAT.

Nobody there speaks our own content format, and nobody has to keep to any.  So decoding refuses
nothing: what is neither of the two is shown as content that this program cannot show, as js-waku's
members deliver and name it all the same.  What is meant is judged by each message: a message of
22/TOY-CHAT begins with a byte that no line of text begins with.

The id is js-waku's: sha256 of the content, so the second of two equal contents is the first.
"""

from hashlib import sha256
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.core.content import MAX_TEXT_BYTES, Text, Unsupported
from engine.core.ids import MessageId, UnixMs
from engine.core.records import OpenFormat
from proto import toy_chat_pb2

MAX_NICK_CHARACTERS: Final = 64
_FIRST_OF_TOY_CHAT: Final = b"\x08"
"""The tag of its first field."""
_NO_TEXT: Final = frozenset(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
"""Control characters that binary content is full of, and that no text has."""


class OpenContent(Struct, frozen=True, kw_only=True):
    body: Text | Unsupported
    nick: str = ""
    """The author's name in 22/TOY-CHAT; "" in plain text, or if it has none."""
    format: OpenFormat = OpenFormat.TEXT


def message_id_of_content(content: bytes) -> MessageId:
    """js-waku's message id."""
    return MessageId(sha256(content).hexdigest())


def without_controls(text: str) -> str:
    """The text without the characters for which it would be taken for binary content."""
    return "".join(each for each in text if each not in _NO_TEXT)


def encode_text(text: str) -> bytes:
    return text.encode()


def encode_toy_chat(text: str, nick: str, sent_ms: UnixMs) -> bytes:
    message = toy_chat_pb2.Chat2Message(
        timestamp=sent_ms // 1_000, nick=nick, payload=text.encode()
    )
    return message.SerializeToString(deterministic=True)


def decode_open_content(content: bytes) -> OpenContent:
    """Decode anything: what cannot be shown is ``Unsupported``."""
    toy_chat = _toy_chat(content) if content.startswith(_FIRST_OF_TOY_CHAT) else None
    if toy_chat is not None:
        return toy_chat
    text = _text(content)
    return OpenContent(body=Unsupported(kind="binary") if text is None else Text(text=text))


def _toy_chat(content: bytes) -> OpenContent | None:
    try:
        wire = toy_chat_pb2.Chat2Message.FromString(content)
    except DecodeError:
        return None
    text = _text(wire.payload)
    if text is None or not wire.timestamp:
        return None
    nick = wire.nick[:MAX_NICK_CHARACTERS]
    return OpenContent(body=Text(text=text), nick=nick, format=OpenFormat.TOY_CHAT)


def _text(data: bytes) -> str | None:
    """None if it is empty, too long, no UTF-8, or full of control characters."""
    if not 0 < len(data) <= MAX_TEXT_BYTES:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT & set(text) or not text.strip() else text
