"""Packed ids: the same ids, in the same order, in 16 bytes."""

from base64 import urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import MessageId
from engine.core.packed_ids import PACKED_BYTES, pack_id, unpack_id, unpack_ids

IDS = st.binary(min_size=16, max_size=16).map(
    lambda data: MessageId(urlsafe_b64encode(data).decode().rstrip("="))
)
BYTES = st.binary(min_size=PACKED_BYTES, max_size=PACKED_BYTES)


@given(IDS)
def test_an_id_comes_back(message_id: MessageId) -> None:
    packed = pack_id(message_id)
    assert packed is not None
    assert len(packed) == PACKED_BYTES
    assert unpack_id(packed) == message_id


@given(BYTES)
def test_all_bytes_are_an_id(packed: bytes) -> None:
    assert pack_id(unpack_id(packed)) == packed


@given(st.lists(BYTES, max_size=5))
def test_many_are_unpacked_as_one(packed: list[bytes]) -> None:
    assert unpack_ids(packed) == [*map(unpack_id, packed)]


@given(IDS, IDS)
def test_packed_ids_sort_as_their_texts(one: MessageId, other: MessageId) -> None:
    assert (one < other) == ((pack_id(one) or b"") < (pack_id(other) or b""))


@given(BYTES, BYTES)
def test_texts_sort_as_their_packed_ids(one: bytes, other: bytes) -> None:
    assert (one < other) == (unpack_id(one) < unpack_id(other))


@given(st.text(max_size=30) | st.text("-_AZaz09", min_size=22, max_size=22))
def test_any_other_text_is_not_packed_or_comes_back(text: str) -> None:
    packed = pack_id(MessageId(text))
    assert packed is None or unpack_id(packed) == text
