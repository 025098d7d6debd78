"""Announcements of releases: read as they were written, and refused if anything is otherwise."""

import json
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.release_manifest import put_together, release_line, signed_part
from engine.core.releases import (
    MAX_MANIFEST_BYTES,
    MAX_NEWS,
    MAX_NEWS_CHARACTERS,
    Release,
    ReleaseError,
    ReleaseFlaw,
    is_newer,
)
from engine.crypto.releases import announce, believe

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = SECRET.public_key().public_bytes_raw()
RELEASE = Release(serial=7, version="0.3.0", day="2026-12-20", news=("Faster.", "Très vite."))
ANNOUNCED = announce(RELEASE, SECRET.sign)


def refused(data: bytes, *, seen_serial: int = 0, key: bytes = KEY) -> ReleaseFlaw:
    with pytest.raises(ReleaseError) as error:
        believe(data, key, seen_serial=seen_serial)
    return error.value.flaw


def signed(content: bytes) -> bytes:
    """By the right key, whatever it says."""
    return put_together(content, SECRET.sign(signed_part(content)))


def otherwise(**fields: object) -> bytes:
    said = json.loads(release_line(RELEASE))
    return signed(json.dumps({**said, **fields}).encode())


def test_what_is_announced_is_read() -> None:
    assert believe(ANNOUNCED, KEY, seen_serial=0) == RELEASE
    assert ANNOUNCED.isascii()


def test_the_same_announcement_may_come_again_and_an_older_one_may_not() -> None:
    assert believe(ANNOUNCED, KEY, seen_serial=7) == RELEASE
    assert refused(ANNOUNCED, seen_serial=8) is ReleaseFlaw.OLD


def test_another_key_is_nobody() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    assert refused(ANNOUNCED, key=other) is ReleaseFlaw.NOT_SIGNED
    assert refused(ANNOUNCED, key=bytes(32)) is ReleaseFlaw.NOT_SIGNED


def test_one_of_a_later_form_is_told_from_a_broken_one() -> None:
    assert refused(b"causerie-releases 2\nwhatever") is ReleaseFlaw.TOO_NEW
    assert refused(b"causerie-releases 999999\n") is ReleaseFlaw.TOO_NEW
    for first in (
        b"causerie-releases 0",
        b"causerie-releases 01",
        b"causerie-releases x",
        b"<html>",
    ):
        assert refused(first + b"\nwhatever") is ReleaseFlaw.BROKEN


def test_a_mebibyte_is_not_looked_at() -> None:
    assert refused(ANNOUNCED + bytes(1024 * 1024)) is ReleaseFlaw.TOO_LARGE
    assert refused(b"x" * (MAX_MANIFEST_BYTES + 1)) is ReleaseFlaw.TOO_LARGE


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.upper(),
        lambda data: data.partition(b"\n")[0],
        lambda _data: b"",
    ],
)
def test_other_lines_are_broken(change: Callable[[bytes], bytes]) -> None:
    assert refused(change(ANNOUNCED)) is ReleaseFlaw.BROKEN


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 20_000,
        release_line(RELEASE).replace(b'"serial":7', b'"serial":7,"serial":8'),
        release_line(RELEASE).replace(b'"serial":7', b'"serial":NaN'),
        release_line(RELEASE)[:-1] + b',"also":1}',
    ],
)
def test_what_is_signed_and_in_another_form_is_refused_too(content: bytes) -> None:
    assert refused(signed(content)) is ReleaseFlaw.BROKEN


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("serial", value) for value in (0, -1, True, 1.0, "7", None, 2**53)),
        *(
            ("version", value)
            for value in ("1", "1.2", "1.2.3.4", "01.2.3", "v1.2.3", "1.2.3\n", 1)
        ),
        *(("day", value) for value in ("2026-13-01", "20261220", "2026-W51-7", "", 20261220, None)),
        ("news", "one"),
        ("news", [""]),
        ("news", [1]),
        ("news", ["x" * (MAX_NEWS_CHARACTERS + 1)]),
        ("news", ["x"] * (MAX_NEWS + 1)),
        ("news", ["two\nlines"]),
        ("news", ["to the \u202e right"]),
    ],
)
def test_no_field_is_otherwise(field: str, value: object) -> None:
    assert refused(otherwise(**{field: value})) is ReleaseFlaw.BROKEN


def test_nobody_announces_what_nobody_would_believe() -> None:
    with pytest.raises(ReleaseError):
        announce(replace(RELEASE, version="0.3"), SECRET.sign)


@given(st.data())
def test_no_changed_byte_is_believed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(ANNOUNCED) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != ANNOUNCED[place]))
    changed = ANNOUNCED[:place] + bytes([byte]) + ANNOUNCED[place + 1 :]
    refused(changed)


@given(st.binary(max_size=200))
def test_nothing_but_a_refusal_comes_of_noise(noise: bytes) -> None:
    refused(noise)
    refused(b"causerie-releases 1\n" + noise)
    refused(signed(noise))


@pytest.mark.parametrize(
    ("announced", "ours", "newer"),
    [
        ("0.2.1", "0.2.0", True),
        ("0.10.0", "0.9.9", True),
        ("0.2.0", "0.2.0", False),
        ("0.1.9", "0.2.0", False),
        ("0.3.0", "0.3.0.dev1", False),
    ],
)
def test_which_is_newer(announced: str, ours: str, *, newer: bool) -> None:
    assert is_newer(announced, ours) is newer
