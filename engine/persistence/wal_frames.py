"""The frames of a write-ahead log, and how many of them SQLite will read (sqlite.org/walformat).

SQLite takes the first frame whose checksum is wrong for the end of the log, as a power cut leaves
it.  A changed bit looks the same, and what was committed behind it would vanish without a word.
Two things tell the difference: the index beside the log (``-shm``) says up to where it was
committed, if the process was killed; and a second commit behind the end cannot be there after a
power cut, because each commit is synced before the next one is written.  Nothing here writes.
"""

import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from msgspec import Struct

from engine.persistence.cipher_pages import PAGE_BYTES

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = 0x377F0682
"""The lowest bit says in which order of bytes the checksums are made."""
_VERSION: Final = 3_007_000
_FRAME_BYTES: Final = _FRAME.size + PAGE_BYTES
_INDEX: Final = struct.Struct("=3I2BH8I")
_INDEX_SUMMED: Final = 40
_BACKFILLED: Final = struct.Struct("=I")
_MASK: Final = 0xFFFF_FFFF

IsAuthentic: TypeAlias = Callable[[bytes, int], bool]
"""Whether a page is one of this file, with this number."""
_Sums: TypeAlias = tuple[int, int]


class Frame(Struct, frozen=True):
    page: int
    pages_after: int
    """How many pages the database has with it, if it ends a commit; else 0."""
    at: int
    """Where in the log its page begins."""


class WalIndex(Struct, frozen=True):
    """What ``-shm`` says of the log; it is only there, and right, if the process was killed."""

    committed: int
    """Frames."""
    salts: tuple[int, int]
    backfilled: int
    """Frames that are in the database already."""


class WriteAheadLog(Struct, frozen=True):
    """``frames`` are all since the log last began anew, whatever their checksums."""

    frames: Sequence[Frame]
    readable: int
    """So many of them SQLite reads: up to the last commit before the first that is not right."""
    has_right_header: bool
    salts: tuple[int, int]


def read_log(path: Path) -> WriteAheadLog | None:
    """None: there is none, or nothing in it.  Raises OSError."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return None
            return _read(file, header)
    except FileNotFoundError:
        return None


def read_index(path: Path) -> WalIndex | None:
    """None: there is none, or it was not finished.  Raises OSError."""
    try:
        with path.open("rb") as file:
            data = file.read(2 * _INDEX.size + _BACKFILLED.size)
    except FileNotFoundError:
        return None
    one, other = data[: _INDEX.size], data[_INDEX.size : 2 * _INDEX.size]
    if len(data) < 2 * _INDEX.size + _BACKFILLED.size or one != other:
        return None
    _, _, _, is_whole, _, _, committed, _, _, _, _, _, *stored = _INDEX.unpack(one)
    sums = _sums((0, 0), one[:_INDEX_SUMMED], sys.byteorder == "big")
    if not is_whole or [*sums] != stored:
        return None
    salts: tuple[int, int] = struct.unpack(">2I", one[32:40])
    return WalIndex(committed, salts, _BACKFILLED.unpack_from(data, 2 * _INDEX.size)[0])


def committed_frames(log: WriteAheadLog, index: WalIndex | None, pages: "LogPages") -> int:
    """So many frames at the beginning were committed, as far as anything tells.

    More than ``log.readable``: the log is damaged.  More than it has frames: its end is gone.
    """
    if index is not None and (index.salts == log.salts or not log.has_right_header):
        return max(index.committed, log.readable)
    beyond = [
        number
        for number, frame in enumerate(log.frames[log.readable :], log.readable + 1)
        if frame.pages_after and pages.is_authentic(frame)
    ]
    least = 2 if log.has_right_header else 1
    return beyond[-1] if len(beyond) >= least else log.readable


class LogPages:
    """Reads the pages of frames."""

    def __init__(self, path: Path, is_authentic: IsAuthentic) -> None:
        self._path = path
        self._is_authentic = is_authentic

    def page(self, frame: Frame) -> bytes:
        with self._path.open("rb") as file:
            file.seek(frame.at)
            return file.read(PAGE_BYTES)

    def is_authentic(self, frame: Frame) -> bool:
        return self._is_authentic(self.page(frame), frame.page)


def _read(file: BinaryIO, header: bytes) -> WriteAheadLog:
    magic, version, page_bytes, _, salt_1, salt_2, *stored = _HEADER.unpack(header)
    is_big = bool(magic & 1)
    sums = _sums((0, 0), header[:24], is_big)
    is_right = (magic | 1, version, page_bytes, *sums) == (
        _MAGIC | 1, _VERSION, PAGE_BYTES, *stored,
    )  # fmt: skip
    frames: list[tuple[Frame, tuple[int, int]]] = []
    readable, goes_on = 0, is_right
    for number, (head, page, at) in enumerate(_frames(file), 1):
        of_page, pages_after, *salts, sum_1, sum_2 = _FRAME.unpack(head)
        frames.append((Frame(of_page, pages_after, at), (salts[0], salts[1])))
        goes_on = goes_on and of_page > 0 and salts == [salt_1, salt_2]
        if goes_on:
            sums = _sums(_sums(sums, head[:8], is_big), page, is_big)
            goes_on = sums == (sum_1, sum_2)
        if goes_on and pages_after:
            readable = number
    salts_now = (salt_1, salt_2)
    if not is_right and frames and not any(salts == salts_now for _, salts in frames):
        salts_now = frames[0][1]  # The header's own were changed.
    # Behind the newest frame there may be some of a time before, which are in the database.
    last = max((n for n, (_, salts) in enumerate(frames, 1) if salts == salts_now), default=0)
    return WriteAheadLog([frame for frame, _ in frames[:last]], readable, is_right, salts_now)


def _frames(file: BinaryIO) -> Iterator[tuple[bytes, bytes, int]]:
    at = _HEADER.size
    while len(whole := file.read(_FRAME_BYTES)) == _FRAME_BYTES:
        yield whole[: _FRAME.size], whole[_FRAME.size :], at + _FRAME.size
        at += _FRAME_BYTES


def _sums(before: _Sums, data: bytes, is_big: bool) -> _Sums:
    """SQLite's checksum, continued."""
    words = array("I", data)
    if is_big != (sys.byteorder == "big"):
        words.byteswap()
    one, two = before
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two
