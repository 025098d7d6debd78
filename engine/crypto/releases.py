"""The signature on an announcement of a release: Ed25519, by the key that the program has.

The key is told to whoever builds the program, beside the address of the announcements; there is no
other way to it, and none to another key.
"""

from collections.abc import Callable

from engine.codec.release_manifest import (
    parse_release,
    put_together,
    release_line,
    signed_part,
    take_apart,
)
from engine.core.errors import CryptoError
from engine.core.releases import Release, ReleaseError, ReleaseFlaw
from engine.crypto.identity import verify


def believe(data: bytes, key: bytes, *, seen_serial: int) -> Release:
    """The release that is announced.

    ``seen_serial``: of the newest announcement that was believed; the same one may come again.
    Raises ReleaseError.
    """
    manifest = take_apart(data)
    try:
        verify(key, manifest.signature, manifest.signed)
    except CryptoError:
        raise ReleaseError(ReleaseFlaw.NOT_SIGNED) from None
    release = parse_release(manifest.content)
    if release.serial < seen_serial:
        raise ReleaseError(ReleaseFlaw.OLD, release.version)
    return release


def announce(release: Release, sign: Callable[[bytes], bytes]) -> bytes:
    """The signed announcement.  Raises ReleaseError if nobody would believe its content."""
    content = release_line(release)
    parse_release(content)
    return put_together(content, sign(signed_part(content)))
