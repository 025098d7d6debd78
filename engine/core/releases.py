"""What a release says of itself when it is announced, and why an announcement is not believed.

The values only: bytes are read in ``engine.codec.release_manifest``, the signature is judged in
``engine.crypto.releases``.  A release is named by three numbers, as Semantic Versioning has them.
"""

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.core.errors import ChatError

MAX_MANIFEST_BYTES: Final = 64 * 1024
"""Of an announcement as it is fetched."""
MAX_NEWS: Final = 12
MAX_NEWS_CHARACTERS: Final = 300
_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")


class ReleaseFlaw(StrEnum):
    """Why nothing is known of newer releases."""

    UNREACHABLE = "unreachable"
    """``detail``: the reason."""
    STATUS = "status"
    """The server has no announcement; ``detail``: what it answered."""
    ELSEWHERE = "elsewhere"
    """It leads to another address, which is not followed."""
    TOO_LARGE = "too_large"
    BROKEN = "broken"
    """It is not in the form of an announcement; ``detail``: what is wrong."""
    TOO_NEW = "too_new"
    """Its form is that of a later version; ``detail``: which."""
    NOT_SIGNED = "not_signed"
    """Not by the key that this program has."""
    OLD = "old"
    """A later one was seen already, so somebody put this one back."""


class ReleaseError(ChatError):
    """An announcement that could not be had, or is not believed; nothing was changed."""

    def __init__(self, flaw: ReleaseFlaw, detail: str = "") -> None:
        super().__init__(f"no news of releases: {flaw.value}" + (f" ({detail})" if detail else ""))
        self.flaw = flaw
        self.detail = detail


class Release(Struct, frozen=True, kw_only=True):
    """The newest one, as its makers announced it."""

    serial: int
    """Grows with each announcement, so that an old one is known."""
    version: str
    day: str
    """YYYY-MM-DD."""
    news: tuple[str, ...]
    """What changed, a sentence each; at most MAX_NEWS."""


def version_numbers(version: str) -> tuple[int, int, int]:
    """Raises ValueError for anything but three numbers."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError("a version is three numbers")
    return int(found[1]), int(found[2]), int(found[3])


def is_newer(announced: str, ours: str) -> bool:
    """Of a version of ours that is not three numbers, such as a developer's, nothing is newer."""
    try:
        return version_numbers(announced) > version_numbers(ours)
    except ValueError:
        return False
