"""Reads answers as nwaku does: a field that it requires must be there, even at its default.

proto3 leaves a scalar out if it is 0, false or empty.  nwaku tells absent from default and gives up
on the whole answer, so its user sees no reason of a refusal.  What each answer must have is written
down here from its decoders.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

_NOTHING: Final[Mapping[int, "Required"]] = MappingProxyType({})
_VARINT, _LENGTH_DELIMITED = 0, 2


class Required(Struct, frozen=True):
    """``inside``: what the messages in its fields must have, where those fields are there."""

    fields: Sequence[int]
    inside: Mapping[int, "Required"] = _NOTHING


FILTER_RESPONSE: Final = Required((1, 10))
PUSH_RESPONSE: Final = Required((1, 10))
LEGACY_PUSH_RESPONSE: Final = Required((1,), {3: Required((1,))})
STORE_RESPONSE: Final = Required((1, 10, 11), {20: Required((1,))})
_PAGING: Final = Required((), {2: Required((1, 2, 3, 4))})
HISTORY_RESPONSE: Final = Required((1,), {3: Required((4,), {3: _PAGING})})


def missing_fields(data: bytes, required: Required, path: str = "") -> list[str]:
    """Such as "3.1": field 1 of the message in field 3.  Empty if a strict reader can read it."""
    found = _fields(data)
    missing = [f"{path}{number}" for number in required.fields if number not in found]
    for number, what in required.inside.items():
        for value in found.get(number, []):
            assert isinstance(value, bytes)
            missing += missing_fields(value, what, f"{path}{number}.")
    return missing


def _fields(data: bytes) -> dict[int, list[int | bytes]]:
    found: dict[int, list[int | bytes]] = {}
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        value, offset = _varint(data, offset)
        assert key & 7 in (_VARINT, _LENGTH_DELIMITED)
        if key & 7 == _LENGTH_DELIMITED:
            found.setdefault(key >> 3, []).append(data[offset : offset + value])
            offset += value
        else:
            found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset
