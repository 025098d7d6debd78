"""The key header's bytes: one form each, every flipped bit found, nothing believed unchecked."""

import hashlib
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.codec.key_header import MAX_HEADER_BYTES, decode_key_header, encode_key_header
from engine.core.backup import MAX_ITERATIONS, MAX_LANES, Cost
from engine.core.errors import LocalProtocolError, StorageError, StorageFault
from engine.core.key_header import KeyHeader, Way, WayKind

COSTS = st.builds(
    Cost,
    memory_kib=st.integers(8 * MAX_LANES, 65_536),
    iterations=st.integers(1, MAX_ITERATIONS),
    lanes=st.integers(1, MAX_LANES),
)
PLACES = st.builds(
    Way,
    kind=st.sampled_from([WayKind.KEYRING, WayKind.KEY_FILE]),
    name=st.binary(min_size=16, max_size=16),
    salt=st.binary(min_size=16, max_size=16),
    sealed=st.binary(min_size=48, max_size=48),
)
PASSPHRASES = st.builds(
    Way,
    kind=st.just(WayKind.PASSPHRASE),
    cost=COSTS,
    salt=st.binary(min_size=16, max_size=16),
    sealed=st.binary(min_size=48, max_size=48),
)
HEADERS = st.builds(
    KeyHeader,
    ways=st.one_of(st.tuples(PLACES), st.tuples(PASSPHRASES), st.tuples(PLACES, PASSPHRASES)),
    mac=st.binary(min_size=32, max_size=32),
)
PLACE = Way(kind=WayKind.KEYRING, name=b"n" * 16, salt=b"s" * 16, sealed=b"k" * 48)
PASSPHRASE = Way(kind=WayKind.PASSPHRASE, cost=Cost(), salt=b"t" * 16, sealed=b"l" * 48)
BOTH = encode_key_header(KeyHeader(ways=(PLACE, PASSPHRASE), mac=b"m" * 32))
FAULTS = {StorageFault.KEYS_DAMAGED, StorageFault.KEYS_FOREIGN, StorageFault.KEYS_TOO_NEW}


def decoded(data: bytes) -> KeyHeader | StorageFault:
    try:
        return decode_key_header(data)
    except StorageError as error:
        return error.fault


def checked(covered: bytes) -> bytes:
    return covered + hashlib.sha256(covered).digest()


@given(HEADERS)
def test_what_is_written_is_read(header: KeyHeader) -> None:
    data = encode_key_header(header)
    assert decode_key_header(data) == header
    assert len(data) <= MAX_HEADER_BYTES


@given(st.binary(max_size=400))
@example(b"")
@example(BOTH)
@example(checked(b"causerie-dbkeys\n\0\1\0"))
def test_any_bytes_are_a_header_in_its_one_form_or_refused(data: bytes) -> None:
    """Also with a right checksum, which anybody can make."""
    for read in (data, checked(data), checked(b"causerie-dbkeys\n\0\1" + data)):
        found = decoded(read)
        if isinstance(found, KeyHeader):
            assert encode_key_header(found) == read
        else:
            assert found in FAULTS


def test_every_flipped_bit_is_found() -> None:
    for place in range(len(BOTH) * 8):
        bent = bytearray(BOTH)
        bent[place // 8] ^= 1 << place % 8
        with pytest.raises(StorageError) as found:
            decode_key_header(bytes(bent))
        in_magic = place < 16 * 8
        expected = StorageFault.KEYS_FOREIGN if in_magic else StorageFault.KEYS_DAMAGED
        assert found.value.fault is expected


@pytest.mark.parametrize("length", [0, 1, 18, 19, 83, len(BOTH) - 1, len(BOTH) + 1])
def test_one_that_is_cut_off_or_too_long_is_refused(length: int) -> None:
    with pytest.raises(StorageError):
        decode_key_header((BOTH + b"\0")[:length])


def test_a_newer_version_is_called_so_whatever_it_holds() -> None:
    newer = checked(BOTH[:16] + b"\0\2" + b"who knows")
    with pytest.raises(StorageError) as refused:
        decode_key_header(newer)
    assert refused.value.fault is StorageFault.KEYS_TOO_NEW


@pytest.mark.parametrize(
    ("memory_kib", "iterations", "lanes"),
    [(1 << 21, 3, 4), (65_536, 65, 1), (65_536, 1, 17), (8, 1, 4), (65_536, 0, 1), (0, 0, 0),
     (1 << 20, 5, 1)],
)  # fmt: skip
def test_a_cost_beyond_its_bounds_is_never_paid(
    memory_kib: int, iterations: int, lanes: int
) -> None:
    covered = bytearray(BOTH[:-32])
    at = 19 + 90 + 17
    struct.pack_into(">IIB", covered, at, memory_kib, iterations, lanes)
    with pytest.raises(StorageError) as refused:
        decode_key_header(checked(bytes(covered)))
    assert refused.value.fault is StorageFault.KEYS_DAMAGED


@pytest.mark.parametrize(
    "ways", [(), (PASSPHRASE, PLACE), (PLACE, PLACE), (PLACE, PASSPHRASE, PASSPHRASE)]
)
def test_ways_that_nobody_would_read_are_not_written(ways: tuple[Way, ...]) -> None:
    with pytest.raises(LocalProtocolError):
        encode_key_header(KeyHeader(ways=ways, mac=b"m" * 32))
