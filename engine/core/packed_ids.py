"""Message ids as 16 bytes, where a table holds a million of them.

An id of a sealed group is 128 bits as 22 characters of base64url.  The log's order compares these
characters, and base64url does not sort as the bytes that it encodes.  So the characters are
renamed before decoding, such that packed ids sort as their texts do.  Ids of any other shape
(between two people, in open channels) stay texts.
"""

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Sequence
from typing import Final

from engine.core.ids import MessageId

PACKED_BYTES: Final = 16
_TEXT_CHARS: Final = 22
_FILL: Final = b"\0\0"
_WORDS_CHARS: Final = 24
_LAST_CHARS: Final = b"AQgw"
"""The last character holds two bits; these four sort alike in both alphabets."""
_BY_VALUE: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BY_ORDER: Final = "".join(sorted(_BY_VALUE[:62] + "-_"))
_PACKED_NAMES: Final = bytes.maketrans(_BY_ORDER.encode() + b"+/", _BY_VALUE.encode() + b"??")
"""The characters of base64 that are not among base64url's become none of either."""
_TEXT_NAMES: Final = str.maketrans(_BY_VALUE, _BY_ORDER)


def pack_id(message_id: MessageId) -> bytes | None:
    """16 bytes that sort as the id's text; None if it is not 22 characters of base64url."""
    if len(message_id) != _TEXT_CHARS:
        return None
    try:
        text = message_id.encode()
        if text[-1] not in _LAST_CHARS:
            return None
        return a2b_base64(text[:-1].translate(_PACKED_NAMES) + text[-1:] + b"==", strict_mode=True)
    except ValueError:
        return None


def unpack_id(packed: bytes) -> MessageId:
    """The id that was packed."""
    text = b64encode(packed).decode()
    return MessageId(text[: _TEXT_CHARS - 1].translate(_TEXT_NAMES) + text[_TEXT_CHARS - 1])


def unpack_ids(packed: Sequence[bytes]) -> list[MessageId]:
    """As ``unpack_id``, for many at once."""
    # Eighteen bytes are whole words of base64, so that all can be encoded as one.
    plain = b64encode(b"".join([item + _FILL for item in packed])).decode()
    named = plain.translate(_TEXT_NAMES)
    last = _TEXT_CHARS - 1
    return [
        MessageId(named[start : start + last] + plain[start + last])
        for start in range(0, len(plain), _WORDS_CHARS)
    ]
