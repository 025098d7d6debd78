"""Signed and hashed tuples: two different ones never have the same bytes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.tuples import tuple_bytes
from engine.core.errors import LocalProtocolError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
parts = st.lists(st.binary(max_size=6) | texts | st.integers(0, 2**64 - 1), max_size=4)


VALUE: dict[bytes, Callable[[bytes], str | int]] = {
    b"s": bytes.decode,
    b"i": lambda raw: int.from_bytes(raw, "big"),
}


def read_back(encoded: bytes) -> list[bytes | str | int]:
    """An independent reader: that it exists proves that the form is unambiguous."""
    values: list[bytes | str | int] = []
    while encoded:
        kind, length = encoded[:1], int.from_bytes(encoded[1:5], "big")
        raw, encoded = encoded[5 : 5 + length], encoded[5 + length :]
        assert len(raw) == length
        values.append(raw if kind == b"b" else VALUE[kind](raw))
    return values


@given(texts, parts)
def test_every_tuple_can_be_read_back(domain: str, values: list[bytes | str | int]) -> None:
    assert read_back(tuple_bytes(domain, *values)) == [domain, *values]


@given(texts, parts, texts, parts)
def test_different_tuples_have_different_bytes(
    domain: str,
    values: list[bytes | str | int],
    other_domain: str,
    others: list[bytes | str | int],
) -> None:
    same = (domain, values) == (other_domain, others)
    assert (tuple_bytes(domain, *values) == tuple_bytes(other_domain, *others)) == same


def test_borders_and_types_count() -> None:
    variants = [
        tuple_bytes("d", "ab", "c"),
        tuple_bytes("d", "a", "bc"),
        tuple_bytes("d", "abc"),
        tuple_bytes("d", "abc", ""),
        tuple_bytes("da", "bc"),
        tuple_bytes("d", b"abc"),
        tuple_bytes("d", 0x616263),
        tuple_bytes("d"),
        tuple_bytes("d", b""),
        tuple_bytes("d", ""),
        tuple_bytes("d", 0),
    ]
    assert len(set(variants)) == len(variants)


@pytest.mark.parametrize("value", [-1, 2**64, "\ud800"])
def test_what_no_tuple_can_hold_is_our_own_mistake(value: str | int) -> None:
    with pytest.raises(LocalProtocolError):
        tuple_bytes("d", value)
