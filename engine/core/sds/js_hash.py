"""murmur3_x86_32 of a text as js-waku computes it, including non-ASCII characters.

js-waku hashes an array with one number per character: its first UTF-16 unit.  Four of them make a
word by shifting and or-ing, so values above 255 overlap their neighbours.  In the last, shorter
word only what exceeds 32 bits is cut off, and the length counts characters.  For ASCII this is
murmur3 of the bytes, which ``mmh3`` computes a hundred times faster.
"""

from collections.abc import Sequence

import mmh3

_WORD = 0xFFFF_FFFF
_SIGN = 0x8000_0000


def js_hash(text: str) -> int:
    """The hash as a signed number of 32 bits."""
    return mmh3.hash(text) if text.isascii() else _murmur3([_first_unit(char) for char in text])


def _first_unit(char: str) -> int:
    """The first UTF-16 unit of a character."""
    code = ord(char)
    return code if code <= 0xFFFF else 0xD800 + (code - 0x1_0000 >> 10)  # noqa: PLR2004 - UTF-16


def _murmur3(units: Sequence[int]) -> int:
    whole = len(units) & ~3
    state = 0
    for start in range(0, whole, 4):
        state ^= _mixed(_word(units[start : start + 4]))
        state = (_rotated(state, 13) * 5 + 0xE654_6B64) & _WORD
    state ^= _mixed(_word(units[whole:]))
    state ^= len(units)
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        state ^= state >> shift
        state = state * factor & _WORD
    state ^= state >> 16
    return state - 2 * _SIGN if state & _SIGN else state


def _word(units: Sequence[int]) -> int:
    word = 0
    for unit in reversed(units):
        word = word << 8 & _WORD | unit
    return word


def _mixed(word: int) -> int:
    return _rotated(word * 0xCC9E_2D51 & _WORD, 15) * 0x1B87_3593 & _WORD


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
