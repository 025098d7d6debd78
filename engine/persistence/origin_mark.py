"""Says of a file on the disk that it came from somebody else, as browsers do of a download.

Windows then asks before it runs such a file and opens a document protected (the alternate stream
``Zone.Identifier``, [MS-FSCC] 5.6.1); macOS lets Gatekeeper look at it (``com.apple.quarantine``).
Elsewhere nobody asks for such a mark.  A disk that has no room for it, as FAT, leaves it out.
"""

import ctypes
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

WriteStream: TypeAlias = Callable[[str, bytes], None]
"""Path with the stream's name, and what is in it.  Raises OSError."""
SetAttribute: TypeAlias = Callable[[str, str, bytes], None]
"""Path, name of the attribute, value.  Raises OSError."""

ZONE_STREAM: Final = ":Zone.Identifier"
ZONE: Final = b"[ZoneTransfer]\r\nZoneId=3\r\n"
"""The zone of the internet."""
QUARANTINE: Final = "com.apple.quarantine"
_DOWNLOADED: Final = "0083"
"""Flags: a download that nobody has agreed to open yet."""


def write_stream(path: str, data: bytes) -> None:
    """On NTFS, a path with a colon names a stream of the file."""
    Path(path).write_bytes(data)


def set_attribute(path: str, name: str, value: bytes) -> None:
    """``setxattr`` of macOS, which has two more arguments than that of Linux."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setxattr(path.encode(), name.encode(), value, len(value), 0, 0):
        raise OSError(ctypes.get_errno(), "the mark could not be set")


def mark_as_received(
    path: Path,
    *,
    system: str = sys.platform,
    write: WriteStream = write_stream,
    set_attribute: SetAttribute = set_attribute,
) -> None:
    """``system``: as ``sys.platform`` names it.  Never fails: the file is worth more."""
    with suppress(OSError):
        if system == "win32":
            write(f"{path}{ZONE_STREAM}", ZONE)
        elif system == "darwin":
            value = f"{_DOWNLOADED};{int(time.time()):08x};Causerie;"
            set_attribute(str(path), QUARANTINE, value.encode())
