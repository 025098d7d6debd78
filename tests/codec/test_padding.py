"""Padmé: every length comes back, costs what was promised, and one padded form of it is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.padding import (
    LEAST_PADDED_BYTES,
    MAX_PADDED_BYTES,
    MAX_PLAINTEXT_BYTES,
    pad,
    unpad,
)
from engine.core.errors import LocalProtocolError, RemoteProtocolError

SOME = bytes(range(1, 256)) * (MAX_PLAINTEXT_BYTES // 255 + 1)


def reason_of(padded: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        unpad(padded)
    return refusal.value.reason


def text_in(padded: bytes) -> bytes | None:
    """None if it is refused."""
    try:
        return unpad(padded)
    except RemoteProtocolError:
        return None


@pytest.mark.slow
def test_every_length_comes_back_and_costs_at_most_12_percent() -> None:
    worst = 0.0
    sizes = set()
    for size in range(MAX_PLAINTEXT_BYTES + 1):
        plaintext = SOME[:size]
        padded = pad(plaintext)
        assert unpad(padded) == plaintext
        sizes.add(len(padded))
        if size > LEAST_PADDED_BYTES:
            worst = max(worst, len(padded) / size - 1)
    assert worst <= 0.12
    assert (min(sizes), max(sizes)) == (LEAST_PADDED_BYTES, MAX_PADDED_BYTES)
    assert len(sizes) < 200


@pytest.mark.parametrize(
    ("size", "padded"),
    [(0, 256), (252, 256), (253, 272), (268, 272), (508, 512), (509, 544), (1020, 1024),
     (1021, 1088), (9_996, 10_240), (65_532, 65_536), (65_533, 67_584),
     (MAX_PLAINTEXT_BYTES, 151_552)],
)  # fmt: skip
def test_sizes_are_those_of_the_paper(size: int, padded: int) -> None:
    assert len(pad(bytes(size))) == padded


def test_more_than_the_largest_is_neither_made_nor_taken() -> None:
    with pytest.raises(LocalProtocolError, match="too large"):
        pad(bytes(MAX_PLAINTEXT_BYTES + 1))
    next_size = MAX_PADDED_BYTES + 4_096
    assert reason_of((next_size - 4).to_bytes(4, "big") + bytes(next_size - 4)) == "bad_padding"


@given(st.integers(0, 3_000), st.data())
def test_any_other_byte_in_the_padding_is_refused(size: int, data: st.DataObject) -> None:
    padded = bytearray(pad(SOME[:size]))
    if len(padded) == 4 + size:
        return
    position = data.draw(st.integers(4 + size, len(padded) - 1))
    padded[position] = data.draw(st.integers(1, 255))
    assert reason_of(bytes(padded)) == "bad_padding"


def test_each_single_byte_of_the_padding_is_looked_at() -> None:
    for size in (0, 100, 253, 1_500):
        padded = pad(SOME[:size])
        for position in range(4 + size, len(padded)):
            changed = bytearray(padded)
            changed[position] ^= 1
            assert reason_of(bytes(changed)) == "bad_padding"


@given(st.integers(0, 3_000), st.integers(-300, 300).filter(bool))
def test_any_other_amount_of_zeros_is_refused(size: int, more: int) -> None:
    padded = pad(SOME[:size])
    other = padded + bytes(more) if more > 0 else padded[:more]
    assert reason_of(other) == "bad_padding"


@given(st.integers(0, 3_000), st.integers(0, 2**32 - 1))
def test_another_length_means_another_text_or_none(size: int, length: int) -> None:
    """There is one padded form of a text: who moves the border makes another text."""
    padded = pad(SOME[:size])
    moved = length.to_bytes(4, "big") + padded[4:]
    text = text_in(moved)
    if text is not None:
        assert len(text) == length
        assert pad(text) == moved


@given(st.binary(max_size=600))
def test_garbage_is_refused_or_is_the_one_form_of_something(garbage: bytes) -> None:
    text = text_in(garbage)
    assert text is None or pad(text) == garbage
