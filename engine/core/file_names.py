"""Cleans what strangers call their files, so that a name can be shown and saved under.

A name becomes one line without paths, control or bidirectional characters.  Every system takes it:
no character that Windows forbids, no device of its, nothing that hides or vanishes at the ends.
A media type is only a hint for a window; who opens a file looks at its bytes.
"""

import re
from typing import Final

from engine.core.content import visible_line

MAX_FILE_NAME_CHARACTERS: Final = 128
MAX_FILE_NAME_BYTES: Final = 240
"""In UTF-8; file systems take 255, and a copy gets a number."""
MAX_MEDIA_TYPE_BYTES: Final = 64
ANY_FILE: Final = "application/octet-stream"
NAMELESS: Final = "file"
"""The name of a file without a usable one."""

_FORBIDDEN: Final = str.maketrans(dict.fromkeys('<>:"|?*', "_"))
_DEVICE: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\.|$)", re.IGNORECASE
)
_ENDS: Final = " .\u200c\u200d"
_LONGEST_SUFFIX: Final = 16
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")


def clean_file_name(name: str) -> str:
    """The last part of ``name``, safe and at most MAX_FILE_NAME_CHARACTERS; "" if none is left."""
    parts = [part.strip(_ENDS) for part in re.split(r"[/\\]", visible_line(name))]
    last = next((part for part in reversed(parts) if part), "").translate(_FORBIDDEN)
    if _DEVICE.match(last):
        last = "_" + last
    return _shortened(last)


def _shortened(name: str) -> str:
    """``name`` within both bounds; its suffix stays."""
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix) > _LONGEST_SUFFIX:
        stem, dot, suffix = name, "", ""
    end = dot + suffix
    stem = stem[: MAX_FILE_NAME_CHARACTERS - len(end)]
    while len((stem + end).encode()) > MAX_FILE_NAME_BYTES:
        stem = stem[:-1]
    return (stem + end).rstrip(_ENDS)


def clean_media_type(media_type: str) -> str:
    """``type/subtype`` in lower case; ANY_FILE for anything else."""
    if len(media_type) > MAX_MEDIA_TYPE_BYTES or not _MEDIA_TYPE.fullmatch(media_type):
        return ANY_FILE
    return media_type.lower()
