"""Announcements of releases: bytes, and what they say.

Three lines, each ended by a line feed::

    causerie-releases 1
    the signature, 128 hexadecimal digits
    {"serial": 7, "version": "0.3.0", "day": "2026-12-20", "news": ["A sentence."]}

The signature covers the first line and the third; it is judged before the third is parsed.  A first
line with a higher number is that of a later version, whatever follows.
"""

import json
import re
from datetime import date
from typing import Final

from msgspec import Struct

from engine.core.releases import (
    MAX_MANIFEST_BYTES,
    MAX_NEWS,
    MAX_NEWS_CHARACTERS,
    Release,
    ReleaseError,
    ReleaseFlaw,
    version_numbers,
)

FORMAT: Final = 1
_NAME: Final = b"causerie-releases "
_NUMBER: Final = re.compile(rb"[1-9][0-9]{0,5}")
_SIGNATURE: Final = re.compile(rb"[0-9a-f]{128}")
_MAX_SERIAL: Final = 2**53 - 1
_FIELDS: Final = frozenset({"serial", "version", "day", "news"})


class SignedManifest(Struct, frozen=True):
    """Taken apart, and not believed yet."""

    signed: bytes
    """What the signature covers."""
    signature: bytes
    content: bytes


def take_apart(data: bytes) -> SignedManifest:
    """Raises ReleaseError."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise ReleaseError(ReleaseFlaw.TOO_LARGE)
    first, _, rest = data.partition(b"\n")
    number = first.removeprefix(_NAME)
    if not first.startswith(_NAME) or not _NUMBER.fullmatch(number):
        raise _broken("first line")
    if int(number) != FORMAT:
        raise ReleaseError(ReleaseFlaw.TOO_NEW, str(int(number)))
    signature, _, rest = rest.partition(b"\n")
    if not _SIGNATURE.fullmatch(signature):
        raise _broken("signature")
    content, end, more = rest.partition(b"\n")
    if not end or more:
        raise _broken("lines")
    return SignedManifest(signed_part(content), bytes.fromhex(signature.decode("ascii")), content)


def parse_release(content: bytes) -> Release:
    """The third line, once its signature was judged.  Raises ReleaseError."""
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never)
    except (ValueError, RecursionError):
        raise _broken("JSON") from None
    if not isinstance(found, dict) or found.keys() != _FIELDS:
        raise _broken("fields")
    return Release(
        serial=_serial(found["serial"]),
        version=_version(found["version"]),
        day=_day(found["day"]),
        news=_news(found["news"]),
    )


def release_line(release: Release) -> bytes:
    """The third line, without its line feed."""
    said = {
        "serial": release.serial,
        "version": release.version,
        "day": release.day,
        "news": list(release.news),
    }
    return json.dumps(said, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def signed_part(content: bytes) -> bytes:
    return b"%s%d\n%s\n" % (_NAME, FORMAT, content)


def put_together(content: bytes, signature: bytes) -> bytes:
    first, _, third = signed_part(content).partition(b"\n")
    return b"%s\n%s\n%s" % (first, signature.hex().encode("ascii"), third)


def _broken(what: str) -> ReleaseError:
    return ReleaseError(ReleaseFlaw.BROKEN, what)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _never(constant: str) -> object:
    raise ValueError(constant)


def _serial(value: object) -> int:
    if type(value) is not int or not 0 < value <= _MAX_SERIAL:
        raise _broken("serial")
    return value


def _version(value: object) -> str:
    try:
        version_numbers(value if isinstance(value, str) else "")
    except ValueError:
        raise _broken("version") from None
    return str(value)


def _day(value: object) -> str:
    try:
        day = date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise _broken("day") from None
    if day.isoformat() != value:
        raise _broken("day")
    return day.isoformat()


def _news(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_NEWS:
        raise _broken("news")
    for line in value:
        if not isinstance(line, str) or not 0 < len(line) <= MAX_NEWS_CHARACTERS:
            raise _broken("news")
        if not line.isprintable():
            raise _broken("news")
    return tuple(value)
