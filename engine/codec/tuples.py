"""Encodes several values as the bytes that are hashed or signed.

A tuple starts with its domain, so that a signature or hash made for one purpose never serves
another.  Every part carries its type and length, so that two different tuples never have the same
bytes.  The number in a domain is the version of the tuple's format: 2 in the contents of envelopes
(seals, signatures, tags of groups and epochs, join statements, message ids).  Identities, meeting
topics and links outlast an envelope's format: they have 1.  The form is private and never parsed,
only built and compared.
"""

from engine.core.errors import LocalProtocolError

_LENGTH_BYTES = 4
_INTEGER_BYTES = 8
_INTEGER_HEAD = b"i" + _INTEGER_BYTES.to_bytes(_LENGTH_BYTES, "big")


def tuple_bytes(domain: str, *parts: bytes | str | int) -> bytes:
    """The domain and every part as type (one byte), length (4 bytes, big-endian), value.

    Integers are unsigned and take 8 bytes, big-endian; text is UTF-8.  Raises LocalProtocolError
    for a negative or larger integer and for text that UTF-8 cannot hold.
    """
    pieces: list[bytes] = []
    for value in (domain, *parts):  # One loop: each received message makes several tuples.
        if isinstance(value, bytes):
            pieces += (b"b", len(value).to_bytes(_LENGTH_BYTES, "big"), value)
            continue
        try:
            if isinstance(value, str):
                raw = value.encode()
                pieces += (b"s", len(raw).to_bytes(_LENGTH_BYTES, "big"), raw)
            else:
                pieces += (_INTEGER_HEAD, value.to_bytes(_INTEGER_BYTES, "big"))
        except (UnicodeEncodeError, OverflowError) as error:
            raise LocalProtocolError(f"a {type(value).__name__} that no tuple can hold") from error
    return b"".join(pieces)
