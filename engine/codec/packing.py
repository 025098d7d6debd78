"""Packs what repeats itself: raw LZMA2 with one window, which both sides know.

Raw, since the header of an .xz file would let its author choose how much memory we need.  There is
no one form: another compressor may find other repetitions, so nothing is signed packed.
"""

import lzma
from typing import Final

from engine.core.errors import RemoteProtocolError

WINDOW_BYTES: Final = 256 * 1024
"""Some six of the largest entries of an admin log: how far back repetitions are found."""
_FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": WINDOW_BYTES}]


def pack(data: bytes) -> bytes:
    """Some 0.2 s of processor time for each MiB that has no repetitions: not on the loop."""
    return lzma.compress(data, lzma.FORMAT_RAW, filters=_FILTERS)


def unpack(packed: bytes, most: int) -> bytes:
    """Whatever ``packed`` is, it takes little more memory than ``most`` bytes.

    Raises RemoteProtocolError ``packing_malformed``, or ``packing_oversized`` if there are more.
    """
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    try:
        data = decompressor.decompress(packed, max_length=most + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise RemoteProtocolError("packing_malformed") from error
    if len(data) > most:
        raise RemoteProtocolError("packing_oversized")
    if not decompressor.eof or decompressor.unused_data:
        raise RemoteProtocolError("packing_malformed", "its end")
    return data
