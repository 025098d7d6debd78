"""The header and the entries of a backup: one form each, bounded, and every damage refused."""

import itertools
from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.backup import (
    ENTRY_BYTES,
    HEADER_BYTES,
    MAX_CREATED_MS,
    MAX_SMALL_BYTES,
    EntryReader,
    decode_backup_entry,
    decode_backup_header,
    encode_backup_entry,
    encode_backup_header,
)
from engine.core.backup import (
    MAX_ITERATIONS,
    MAX_LANES,
    MAX_MEMORY_KIB,
    BackupHeader,
    Cost,
    Entry,
    EntryKind,
    Strength,
    strength_of,
)
from engine.core.errors import BackupError, BackupFlaw, LocalProtocolError
from engine.core.ids import UnixMs

HEADER = BackupHeader(
    cost=Cost(),
    salt=bytes(range(16)),
    file_salt=bytes(range(32)),
    schema_version=9,
    app_version="1.0.0",
    created_ms=UnixMs(1_764_000_000_000),
    pseudonym=b"pseudony",
)
COMMITMENT = b"c" * 32
CREATED_AT = 16 + 2 + 9 + 16 + 32 + 4
VERSION_AT = CREATED_AT + 8 + 8 + 1
COSTS = st.builds(
    Cost,
    memory_kib=st.integers(0, 2 * MAX_MEMORY_KIB),
    iterations=st.integers(0, 2 * MAX_ITERATIONS),
    lanes=st.integers(0, 2 * MAX_LANES),
)


def flaw_of(data: bytes) -> BackupFlaw:
    with pytest.raises(BackupError) as refused:
        decode_backup_header(data)
    return refused.value.flaw


@given(
    cost=COSTS.filter(lambda cost: cost.is_allowed),
    salts=st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32)),
    schema=st.integers(0, 2**32 - 1),
    app_version=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=32),
    created_ms=st.integers(0, MAX_CREATED_MS),
)
def test_a_header_is_read_as_it_was_written(
    cost: Cost, salts: tuple[bytes, bytes], schema: int, app_version: str, created_ms: int
) -> None:
    header = BackupHeader(
        cost=cost,
        salt=salts[0],
        file_salt=salts[1],
        schema_version=schema,
        app_version=app_version,
        created_ms=UnixMs(created_ms),
        pseudonym=b"12345678",
    )
    data = encode_backup_header(header, COMMITMENT)
    assert len(data) == HEADER_BYTES
    assert decode_backup_header(data) == (header, COMMITMENT)


def test_each_bit_that_flips_in_a_header_is_found() -> None:
    data = encode_backup_header(HEADER, COMMITMENT)
    for place in range(8 * HEADER_BYTES):
        bent = bytearray(data)
        bent[place // 8] ^= 1 << place % 8
        assert flaw_of(bytes(bent)) in (BackupFlaw.FOREIGN, BackupFlaw.TOO_NEW, BackupFlaw.DAMAGED)


def test_a_header_that_is_cut_off_is_called_so_and_a_foreign_file_foreign() -> None:
    data = encode_backup_header(HEADER, COMMITMENT)
    for length in range(1, HEADER_BYTES):
        assert flaw_of(data[:length]) is BackupFlaw.CUT_OFF
    for foreign in (b"", b"\0" * HEADER_BYTES, b"SQLite format 3\0" + data, b"Causerie-backup\n"):
        assert flaw_of(foreign) is BackupFlaw.FOREIGN


@pytest.mark.parametrize(
    ("place", "value"),
    [(CREATED_AT, b"\xff" * 8), (CREATED_AT, (MAX_CREATED_MS + 1).to_bytes(8, "big")),
     (VERSION_AT, b"\x1b[2J"), (VERSION_AT, b"1\n2")],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused_though_its_checksum_is_right(
    place: int, value: bytes
) -> None:
    covered = bytearray(encode_backup_header(HEADER, COMMITMENT)[:-16])
    covered[place : place + len(value)] = value
    assert flaw_of(bytes(covered) + sha256(covered).digest()[:16]) is BackupFlaw.DAMAGED


def test_a_header_that_cannot_be_shown_is_not_written() -> None:
    for changed in ({"created_ms": UnixMs(MAX_CREATED_MS + 1)}, {"app_version": "1\x1b"}):
        header = BackupHeader(
            **{**{f: getattr(HEADER, f) for f in HEADER.__struct_fields__}, **changed}
        )
        with pytest.raises(LocalProtocolError):
            encode_backup_header(header, COMMITMENT)


def test_a_newer_format_is_called_newer_whatever_follows() -> None:
    data = encode_backup_header(HEADER, COMMITMENT)
    assert flaw_of(data[:16] + b"\0\2" + b"anything") is BackupFlaw.TOO_NEW


@given(cost=COSTS)
def test_a_cost_beyond_what_is_allowed_is_never_paid(cost: Cost) -> None:
    header = BackupHeader(
        **{**{f: getattr(HEADER, f) for f in HEADER.__struct_fields__}, "cost": cost}
    )
    if cost.is_allowed:
        assert decode_backup_header(encode_backup_header(header, COMMITMENT))[0].cost == cost
    else:
        with pytest.raises(LocalProtocolError):
            encode_backup_header(header, COMMITMENT)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (EntryKind.DATABASE_KEY, 31),
        (EntryKind.DATABASE, 0),
        (EntryKind.SETTINGS, MAX_SMALL_BYTES + 1),
        (EntryKind.CHUNK, 1 << 20),
    ],
)
def test_an_entry_of_another_size_than_its_kind_has_is_refused(kind: EntryKind, size: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_backup_entry(Entry(kind=kind, size=size))
    with pytest.raises(BackupError) as refused:
        decode_backup_entry(bytes([kind]) + bytes(32) + size.to_bytes(8, "big"))
    assert refused.value.flaw is BackupFlaw.DAMAGED


def content_of(entries: Sequence[tuple[EntryKind, bytes]]) -> bytes:
    parts = [encode_backup_entry(Entry(kind=kind, size=len(data))) + data for kind, data in entries]
    return b"".join(parts) + encode_backup_entry(Entry(kind=EntryKind.END, size=len(entries)))


ENTRIES = st.lists(
    st.tuples(st.sampled_from([EntryKind.SETTINGS, EntryKind.WINDOW]), st.binary(max_size=100)),
    max_size=4,
)


@given(entries=ENTRIES, cuts=st.lists(st.integers(0, 600), max_size=6))
def test_entries_come_out_wherever_the_content_is_cut(
    entries: Sequence[tuple[EntryKind, bytes]], cuts: Sequence[int]
) -> None:
    content = content_of(entries)
    places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    pieces = [content[a:b] for a, b in itertools.pairwise(places)]
    reader = EntryReader(iter(pieces))
    for kind, data in entries:
        entry = reader.next()
        assert (entry.kind, reader.whole(entry)) == (kind, data)
    assert reader.next() == Entry(kind=EntryKind.END, size=len(entries))


def read_all(reader: EntryReader) -> None:
    while (entry := reader.next()).kind is not EntryKind.END:
        reader.whole(entry)


@given(entries=ENTRIES, length=st.integers(0, 600))
def test_a_content_that_ends_too_early_or_goes_on_is_refused(
    entries: Sequence[tuple[EntryKind, bytes]], length: int
) -> None:
    content = content_of(entries)
    for wrong in (content[: min(length, len(content) - 1)], content + b"x"):
        reader = EntryReader(iter([wrong] if wrong else []))
        with pytest.raises(BackupError):
            read_all(reader)


def test_an_entry_has_exactly_its_bytes() -> None:
    data = encode_backup_entry(Entry(kind=EntryKind.END, size=0))
    assert len(data) == ENTRY_BYTES
    for wrong in (data[:-1], data + b"\0", b"\x09" + data[1:], data[:1] + b"n" + data[2:]):
        with pytest.raises(BackupError):
            decode_backup_entry(wrong)


@pytest.mark.parametrize(
    ("passphrase", "strength"),
    [
        ("", Strength.TOO_SHORT),
        ("short", Strength.TOO_SHORT),
        ("aaaaaaaaaaaaaaaa", Strength.WEAK),
        ("12345678901234567890", Strength.WEAK),
        ("password", Strength.WEAK),
        ("tall boats sing", Strength.WEAK),
        ("tall boats sing under", Strength.FAIR),
        ("tall boats sing under quiet moons", Strength.STRONG),
        ("kX9!vQ2#pL7$wZ", Strength.STRONG),
    ],
)
def test_how_strong_a_passphrase_is_called(passphrase: str, strength: Strength) -> None:
    assert strength_of(passphrase) is strength
