"""Shared by the codecs of Waku's request-response protocols: bounds on peers' input.

A request id is echoed and a status text shown, so both are kept short.  Where an answer may be
long, its fields are counted before anything is built from them: two bytes of an empty part take
sixty when parsed, and an answer of 8 MiB a quarter of a gigabyte.
"""

from collections.abc import Collection
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.core.errors import RemoteProtocolError

MAX_REQUEST_ID_CHARACTERS: Final = 128
MAX_TOPIC_BYTES: Final = 256
NO_REQUEST_ID: Final = "N/A"
"""Sent by go-waku, nwaku and us in place of the id of a request that was not read: nwaku requires
an answer to have one."""
_MAX_DESCRIPTION_CHARACTERS = 256
_LENGTH_DELIMITED = 2

M = TypeVar("M", bound=Message)


def parsed(kind: type[M], data: bytes, *, max_bytes: int, what: str) -> M:
    """Raises RemoteProtocolError ``{what}_oversized`` or ``{what}_malformed``."""
    if len(data) > max_bytes:
        raise RemoteProtocolError(f"{what}_oversized", f"{len(data)} bytes")
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"{what}_malformed") from error


def refuse_many_fields(data: bytes, *, most: int, what: str, inside: Collection[int] = ()) -> None:
    """Count the fields of a message, and of those in its fields ``inside``, up to ``most``.

    Raises RemoteProtocolError ``{what}_too_many_fields``, or ``{what}_malformed``.
    """
    left = most
    spans = [(0, len(data), True)]
    while spans:
        offset, end, is_outer = spans.pop()
        while offset < end:
            left -= 1
            if left < 0:
                raise RemoteProtocolError(f"{what}_too_many_fields")
            try:
                key, offset = _varint(data, offset, end)
                start, offset = _field(data, offset, end, key & 7)
            except IndexError as error:
                raise RemoteProtocolError(f"{what}_malformed") from error
            if is_outer and key & 7 == _LENGTH_DELIMITED and key >> 3 in inside:
                spans.append((start, offset, False))


def _field(data: bytes, offset: int, end: int, wire_type: int) -> tuple[int, int]:
    """Where its content begins and ends.  Raises IndexError."""
    start = offset
    match wire_type:
        case 0:
            _, stop = _varint(data, offset, end)
        case 1:
            stop = offset + 8
        case 2:
            length, start = _varint(data, offset, end)
            stop = start + length
        case 5:
            stop = offset + 4
        case _:  # groups: none of these protocols has any
            raise IndexError
    if stop > end:
        raise IndexError
    return start, stop


def _varint(data: bytes, offset: int, end: int) -> tuple[int, int]:
    """Raises IndexError."""
    value = 0
    for shift in range(0, 70, 7):
        if offset >= end:
            raise IndexError
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the varint's continuation bit
            return value, offset
    raise IndexError


def checked_request_id(text: str) -> str:
    """Raises RemoteProtocolError ``request_id_oversized``."""
    if len(text) > MAX_REQUEST_ID_CHARACTERS:
        raise RemoteProtocolError("request_id_oversized")
    return text


def checked_topic(text: str) -> str:
    """Raises RemoteProtocolError ``topic_oversized``."""
    if len(text.encode()) > MAX_TOPIC_BYTES:
        raise RemoteProtocolError("topic_oversized")
    return text


def shown_description(text: str) -> str:
    """A peer's text, shortened and on one line, for a log or an error message."""
    shown = text[:_MAX_DESCRIPTION_CHARACTERS]
    return "".join(c if c.isprintable() else " " for c in shown)
