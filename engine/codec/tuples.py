"""The one way in which several values become the bytes that are hashed or signed.

A tuple starts with its domain, so that no signature or hash made for one purpose can ever serve
another, and every part carries its type and length, so that two different tuples never have the
same bytes.  The form is private to us and never parsed: it is only ever built and compared.
It refuses to know what is signed and by whom.
"""

from engine.core.errors import LocalProtocolError

_LENGTH_BYTES = 4
_INTEGER_BYTES = 8


def tuple_bytes(domain: str, *parts: bytes | str | int) -> bytes:
    """The domain and every part as type (one byte), length (4 bytes, big-endian), value.

    Integers are unsigned and take 8 bytes, big-endian; text is UTF-8.  Raises LocalProtocolError
    for a negative or larger integer and for text that UTF-8 cannot hold.
    """
    return b"".join(_part(value) for value in (domain, *parts))


def _part(value: bytes | str | int) -> bytes:
    kind, raw = _typed(value)
    return kind + len(raw).to_bytes(_LENGTH_BYTES, "big") + raw


def _typed(value: bytes | str | int) -> tuple[bytes, bytes]:
    if isinstance(value, bytes):
        return b"b", value
    try:
        if isinstance(value, str):
            return b"s", value.encode()
        return b"i", value.to_bytes(_INTEGER_BYTES, "big")
    except (UnicodeEncodeError, OverflowError) as error:
        raise LocalProtocolError(f"a {type(value).__name__} that no tuple can hold") from error
