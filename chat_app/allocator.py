"""Memory of pictures goes back to the system, where the C library is glibc.

Once a block of some megabytes was freed, glibc keeps blocks up to that size in its heap, for good
if anything small lies above them, and each thread that allocates gets a heap of its own.  A window
that made six photos small for sending kept some 70 MiB that way.  With a fixed bound each large
block is mapped by itself and unmapped when it is freed, and threads share two heaps.
"""

import ctypes
import sys
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
LARGE_BYTES: Final = 256 * 1024
ARENAS: Final = 2


def return_large_blocks() -> bool:
    """Whether it could be arranged; to be called before there are threads."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    arranged = [
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES),
        library.mallopt(_M_ARENA_MAX, ARENAS),
    ]
    return all(arranged)
