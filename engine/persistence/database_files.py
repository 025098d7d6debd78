"""The files of one database, and the cipher that their pages fit.

The main file, the write-ahead log and its index are SQLite's.  Beside them lie copies of the pages
that list the tables (``page_trees``): nothing can be read without the first.

A page that the disk cannot read, a bad sector, is one whose bytes fit no key: it is treated like
any other damaged page.
"""

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.persistence.cipher_pages import PAGE_BYTES, PageCipher, cipher_of
from engine.persistence.wal_frames import (
    LogPages,
    WriteAheadLog,
    committed_frames,
    read_index,
    read_log,
)

UNREADABLE: Final = b"\xff" * PAGE_BYTES
"""In the place of a page that cannot be read; it fits no key."""
_BAD_SECTOR: Final = frozenset({errno.EIO, getattr(errno, "ENODATA", errno.EIO)})
_PAGES_ASKED: Final = 64
"""So many of the first pages are tried, where the first is damaged."""
_KEPT: Final = struct.Struct(f">I{PAGE_BYTES}s")
_MOST_KEPT_BYTES: Final = 1_000 * _KEPT.size


class DatabaseFiles(Struct, frozen=True):
    """The files of one database, by the path of its main file."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    @property
    def index(self) -> Path:
        return self.path.with_name(f"{self.path.name}-shm")

    @property
    def kept(self) -> Path:
        """Copies of the pages that list the tables, as they lie in the file."""
        return self.path.with_name(f"{self.path.name}.tables")

    def page(self, number: int) -> bytes:
        """Raises OSError."""
        with self.path.open("rb", buffering=0) as file:
            return _page_at(file.fileno(), number)

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Number and content; the last may be cut off.  Raises OSError."""
        with self.path.open("rb", buffering=0) as file:
            number = 1
            while page := _page_at(file.fileno(), number):
                yield number, page
                number += 1

    def has_bad_sector(self) -> bool:
        """Whether the disk cannot read some page of the main file.  Raises OSError."""
        return any(page == UNREADABLE for _, page in self.pages())

    def size(self) -> int:
        """Bytes of the main file; 0 if there is none.  Raises OSError."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0


def _page_at(descriptor: int, number: int) -> bytes:
    """Raises OSError, but not if the disk cannot read it."""
    try:
        os.lseek(descriptor, (number - 1) * PAGE_BYTES, os.SEEK_SET)
        return os.read(descriptor, PAGE_BYTES)
    except OSError as error:
        if error.errno not in _BAD_SECTOR:
            raise
        return UNREADABLE


def find_cipher(files: DatabaseFiles, key: bytes) -> PageCipher | None:
    """By whichever page fits the key; None: none does, so the key is another one or all is lost.

    Raises OSError.
    """
    firsts, kept = [*first_pages(files)], read_kept(files).get(1)
    for page in firsts:
        cipher = cipher_of(key, page)
        # The copy beside a database that somebody put there says nothing of that one.
        if cipher is not None and (page != kept or _any_fits(files, cipher)):
            return cipher
    for page in firsts[:1]:
        cipher = PageCipher.of_first_page(key, page)
        for number, other in files.pages():
            if number > _PAGES_ASKED:
                break
            if cipher.is_authentic(other, number):
                return cipher
    return None


def _any_fits(files: DatabaseFiles, cipher: PageCipher) -> bool:
    if any(cipher.is_authentic(page, number) for number, page in files.pages()):
        return True
    log = read_log(files.log)
    pages = LogPages(files.log, cipher.is_authentic)
    return log is not None and any(pages.is_authentic(frame) for frame in log.frames)


def first_pages(files: DatabaseFiles) -> Iterator[bytes]:
    """Whatever may be a first page: the file's, the log's, the newest first, and the one kept."""
    if files.size() >= PAGE_BYTES:
        yield files.page(1)
    log = read_log(files.log)
    if log is not None:
        pages = LogPages(files.log, lambda _page, _number: True)
        yield from (pages.page(frame) for frame in reversed(log.frames) if frame.page == 1)
    if (kept := read_kept(files).get(1)) is not None:
        yield kept


def read_kept(files: DatabaseFiles) -> dict[int, bytes]:
    """By number; whether they are authentic is still to be asked.  Raises OSError."""
    try:
        with files.kept.open("rb") as file:
            data = file.read(_MOST_KEPT_BYTES)
    except FileNotFoundError:
        return {}
    return dict(_KEPT.iter_unpack(data[: len(data) // _KEPT.size * _KEPT.size]))


def readable_log(files: DatabaseFiles, cipher: PageCipher) -> tuple[WriteAheadLog | None, int]:
    """The log, and how many of its frames were committed.  Raises OSError."""
    log = read_log(files.log)
    if log is None:
        return None, 0
    pages = LogPages(files.log, cipher.is_authentic)
    return log, committed_frames(log, read_index(files.index), pages)
