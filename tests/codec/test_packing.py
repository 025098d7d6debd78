"""Packing: what repeats itself takes nearly no room, and a bomb takes no memory."""

import lzma
import tracemalloc
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.packing import WINDOW_BYTES, pack, unpack
from engine.core.errors import RemoteProtocolError

MIB = 1024 * 1024
ZEROS = pack(bytes(100 * MIB))


def refused(reason: str) -> "pytest.RaisesExc[RemoteProtocolError]":
    return pytest.raises(RemoteProtocolError, match=f"^packing_{reason}")


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_what_was_packed_comes_back(data: bytes, times: int) -> None:
    assert unpack(pack(data * times), len(data) * times) == data * times


def test_what_is_said_again_within_the_window_takes_nearly_no_room() -> None:
    said = Random(1).randbytes(WINDOW_BYTES - 100)
    assert len(pack(said * 20)) < 1.1 * len(said)


def test_what_has_no_repetitions_hardly_grows() -> None:
    data = Random(1).randbytes(MIB)
    assert len(pack(data)) < len(data) + len(data) // 10_000 + 100


def test_a_bomb_takes_no_more_memory_than_is_allowed() -> None:
    assert len(ZEROS) < 20_000
    unpack(pack(b"x"), 1)
    tracemalloc.start()
    try:
        with refused("oversized"):
            unpack(ZEROS, MIB)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_bounds_are_exact() -> None:
    packed = pack(b"x" * 1000)
    assert unpack(packed, 1000) == b"x" * 1000
    with refused("oversized"):
        unpack(packed, 999)


def test_another_end_is_refused() -> None:
    packed = pack(b"some text, some text" * 100)
    for wrong in (b"", packed[:-1], packed[: len(packed) // 2], packed + b"\0", packed * 2):
        with refused("malformed"):
            unpack(wrong, MIB)


def test_what_is_further_back_than_the_window_is_refused() -> None:
    """So its author does not choose how much memory we need."""
    said = Random(1).randbytes(WINDOW_BYTES + 9)
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 4 * MIB}]
    packed = lzma.compress(said * 2, lzma.FORMAT_RAW, filters=filters)
    assert len(packed) < 1.1 * len(said)
    with refused("malformed"):
        unpack(packed, MIB)


@given(st.binary(max_size=300))
def test_whatever_comes_is_refused_or_bounded(data: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert len(unpack(data, 1000)) <= 1000
