"""Which colour and which letters stand for a person or a group.

The colour follows the stable id by FNV-1a (32 bit), never the name, so that renaming keeps it.
"""

from PySide6.QtCore import QTextBoundaryFinder

from ui.theme.colours import AVATAR_FILLS

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
_MASK = 0xFFFFFFFF


def fnv_1a_32(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def avatar_index(stable_id: str) -> int:
    return fnv_1a_32(stable_id.encode("utf-8", "surrogatepass")) % len(AVATAR_FILLS)


def first_grapheme(text: str) -> str:
    if not text:
        return ""
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, text)
    utf16 = text.encode("utf-16-le", "surrogatepass")
    end = finder.toNextBoundary()
    return utf16[: end * 2].decode("utf-16-le", "replace") if end > 0 else text[:1]


def initials(name: str, *, is_group: bool = False) -> str:
    """First grapheme of the name; for groups, of each of its first two words."""
    words = name.split()[: 2 if is_group else 1]
    return "".join(first_grapheme(word) for word in words).upper() or "?"
