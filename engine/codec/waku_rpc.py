"""What the codecs of Waku's request/response protocols share: bounds on what peers say.

A request id is echoed and a status text shown, so both are kept short.  Refuses to know any one
protocol.
"""

from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.core.errors import RemoteProtocolError

MAX_REQUEST_ID_CHARACTERS: Final = 128
MAX_TOPIC_BYTES: Final = 256
_MAX_DESCRIPTION_CHARACTERS = 256

M = TypeVar("M", bound=Message)


def parsed(kind: type[M], data: bytes, *, max_bytes: int, what: str) -> M:
    """Raises RemoteProtocolError ``{what}_oversized`` or ``{what}_malformed``."""
    if len(data) > max_bytes:
        raise RemoteProtocolError(f"{what}_oversized", f"{len(data)} bytes")
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"{what}_malformed") from error


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
    """A peer's words, short and on one line: fit for a log or an error's text."""
    shown = text[:_MAX_DESCRIPTION_CHARACTERS]
    return "".join(c if c.isprintable() else " " for c in shown)
