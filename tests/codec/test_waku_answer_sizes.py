"""Long answers of a Store: their parts are counted before anything is built from them."""

from collections.abc import Callable

import pytest

from engine.codec.waku_history import decode_history_response
from engine.codec.waku_store import decode_store_response, encode_store_response
from engine.core.errors import RemoteProtocolError
from engine.core.ids import WakuHash
from engine.core.waku_store import StoreEntry, StoreQueryResponse


def field_of(number: int, content: bytes) -> bytes:
    length = len(content)
    head = bytearray([number << 3 | 2])
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + content


@pytest.mark.parametrize(
    ("decode", "answer"),
    [
        (decode_store_response, b"\xa2\x01\x00" * 1_001),
        (decode_store_response, b"\x50\x01" * 1_001),
        (decode_history_response, b"\x0a\x00" * 1_001),
        (decode_history_response, field_of(3, b"\x12\x00" * 1_000)),
        (decode_history_response, field_of(2, b"\x1a\x00" * 1_000)),
        (decode_history_response, field_of(3, b"\x12\x00" * 500) * 2),
    ],
    ids=["entries", "numbers", "outside", "messages", "a query's topics", "in two parts"],
)
def test_an_answer_of_very_many_parts_is_refused_before_it_is_built(
    decode: Callable[[bytes], object], answer: bytes
) -> None:
    """Two bytes of an empty part take sixty once they are parsed, and an answer may have 8 MiB."""
    with pytest.raises(RemoteProtocolError, match="_too_many_fields"):
        decode(answer)


def test_counting_fields_reads_what_the_parser_reads() -> None:
    """A full page with fields of a later version beside it is no answer of very many parts."""
    entries = tuple(
        StoreEntry(message_hash=WakuHash(bytes([n]) * 32), data=b"x" * 300) for n in range(100)
    )
    encoded = encode_store_response(StoreQueryResponse(request_id="1", messages=entries))
    later = b"\x99\x06" + bytes(8) + b"\x9d\x06" + bytes(4) + b"\x98\x06\xff\x01"
    assert decode_store_response(encoded + later).messages == entries
