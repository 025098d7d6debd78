"""A copy of a damaged database in which SQLCipher can read whatever is still there.

The log's pages are put into their places, also those behind the place where SQLite would stop.  A
page with one changed bit is mended.  What stays unreadable is made so that it is noticed: zeros,
which the end of a file that was cut off would read as, pass SQLCipher's check.  Pages that list the
tables are replaced by the copies that were kept; the files themselves are only read.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageFault
from engine.persistence.cipher_pages import PAGE_BYTES, PageCipher
from engine.persistence.connection import create_private
from engine.persistence.database_files import (
    UNREADABLE,
    DatabaseFiles,
    find_cipher,
    first_pages,
    read_kept,
    readable_log,
)
from engine.persistence.errors import DatabaseUnreadableError
from engine.persistence.page_trees import tree
from engine.persistence.wal_frames import Frame, LogPages

MAX_TRIED: Final = 100
"""Pages for which all single bits are tried: each takes up to a second."""
_ASKED_AFTER_PAGES: Final = 1_000
_MOST_MORE_PAGES: Final = 1 << 20
"""So many a file may have lost at its end: what it says of its size could be anything."""
_EMPTY: Final = bytes(PAGE_BYTES)


class CopiedPages(Struct, kw_only=True):
    """By number."""

    mended: list[int]
    """One bit had changed."""
    unreadable: list[int]
    blank: list[int]
    """Zeros: most were never written, and then nothing leads to them."""
    replaced: list[int]
    """By an earlier copy: they list the tables."""
    frames_missing: int = 0
    """Of the write-ahead log: they were committed, and are gone."""


def copy_readable(
    old: Path, copy: Path, key: bytes, go_on: Callable[[], None] = lambda: None
) -> CopiedPages:
    """Raises DatabaseUnreadableError if no page fits the key, and OSError.

    ``go_on`` is called now and then, and may raise to stop it.
    """
    files = DatabaseFiles(old)
    cipher = find_cipher(files, key)
    if cipher is None:
        raise DatabaseUnreadableError(
            f"Nothing can be read of {old}: no page of it can be decrypted with its key. Either "
            "the key is another one, or the beginning of the file is gone.",
            StorageFault.NOT_DECRYPTED,
        )
    return _Copy(files, copy, cipher, go_on).write()


class _Copy:
    def __init__(
        self, files: DatabaseFiles, target: Path, cipher: PageCipher, go_on: Callable[[], None]
    ) -> None:
        self._go_on = go_on
        self._files = files
        self._target = target
        self._cipher = cipher
        self._tried = 0
        self._list_of_tables: dict[int, bytes] = {}
        self._done = CopiedPages(mended=[], unreadable=[], blank=[], replaced=[])

    def write(self) -> CopiedPages:
        log, committed = readable_log(self._files, self._cipher)
        frames = [] if log is None else [*log.frames[:committed]]
        if len(frames) < committed:
            frames = _up_to_last_commit(frames)
        self._done.frames_missing = committed - len(frames)
        newer = self._newest(frames)
        first = self._first_page(newer.pop(1, None))
        self._list_of_tables = self._kept_list(first)
        in_file = -(-self._files.size() // PAGE_BYTES)
        said = min(self._cipher.size_in(first), in_file + _MOST_MORE_PAGES)
        pages = max(in_file, said, max(newer, default=0))
        create_private(self._target)
        with self._target.open("wb") as file:
            file.write(self._cipher.with_size(first, pages))
            for number, page in self._files.pages():
                if number > 1:
                    frame = newer.pop(number, None)
                    file.write(self._readable(page if frame is None else self._read(frame), number))
            for number in range(max(in_file, 1) + 1, pages + 1):
                file.write(
                    self._readable(self._read(newer[number]), number)
                    if number in newer
                    else self._given_up(number)
                )
            file.flush()
            os.fsync(file.fileno())
        return self._done

    def _newest(self, frames: list[Frame]) -> dict[int, Frame]:
        """The last frame of each page."""
        newest: dict[int, Frame] = {}
        most = -(-self._files.size() // PAGE_BYTES) + len(frames)
        for frame in frames:
            number = self._number_of(self._read(frame), frame.page)
            if number <= most:
                newest[number] = frame
        return newest

    def _read(self, frame: Frame) -> bytes:
        return LogPages(self._files.log, self._cipher.is_authentic).page(frame)

    def _number_of(self, page: bytes, said: int) -> int:
        """One bit of the number itself may have changed, too."""
        for number in (said, *(said ^ 1 << bit for bit in range(32))):
            if number and self._cipher.is_authentic(page, number):
                return number
        return said

    def _first_page(self, in_log: Frame | None) -> bytes:
        newest = [] if in_log is None else [self._read(in_log)]
        for place, page in enumerate((*newest, *first_pages(self._files))):
            salted = self._cipher.salt + page[len(self._cipher.salt) :]
            if self._cipher.is_authentic(salted, 1):
                if place:
                    self._done.replaced.append(1)
                elif salted != page:
                    self._done.mended.append(1)
                return salted
            if place == 0 and (mended := self._cipher.mended(salted, 1)) is not None:
                self._done.mended.append(1)
                return mended
        raise DatabaseUnreadableError(
            f"Nothing can be read of {self._files.path}: its first page, which leads to all others,"
            " is damaged, and there is no copy of it.",
            StorageFault.DAMAGED,
        )

    def _kept_list(self, first: bytes) -> dict[int, bytes]:
        """Copies of those pages that still belong to the list of tables."""
        kept = {
            number: page
            for number, page in read_kept(self._files).items()
            if self._cipher.is_authentic(page, number)
        }

        def plain(number: int) -> bytes | None:
            page = first if number == 1 else kept.get(number)
            return None if page is None else self._cipher.opened(page, number)

        return {number: kept[number] for number in tree(1, plain) if number in kept}

    def _readable(self, page: bytes, number: int) -> bytes:
        if number % _ASKED_AFTER_PAGES == 0:
            self._go_on()
        if self._cipher.is_authentic(page, number):
            return page
        if number in self._list_of_tables:
            self._done.replaced.append(number)
            return self._list_of_tables[number]
        if page == UNREADABLE:
            return self._given_up(number)
        if page == _EMPTY:
            self._done.blank.append(number)
            return UNREADABLE
        if self._tried < MAX_TRIED:
            self._tried += 1
            self._go_on()
            mended = self._cipher.mended(page, number)
            if mended is not None:
                self._done.mended.append(number)
                return mended
        return self._given_up(number)

    def _given_up(self, number: int) -> bytes:
        if number in self._list_of_tables:
            self._done.replaced.append(number)
            return self._list_of_tables[number]
        self._done.unreadable.append(number)
        return UNREADABLE


def _up_to_last_commit(frames: list[Frame]) -> list[Frame]:
    """Of a log that lost its end: half a transaction would contradict itself."""
    last = max((n for n, frame in enumerate(frames, 1) if frame.pages_after), default=0)
    return frames[:last]
