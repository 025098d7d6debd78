"""The trees of pages in a database, without SQLite (sqlite.org/fileformat, section 1.6).

Each table and index is a tree that begins at its root page; pages above the leaves name those below
them.  What a tree does not name is free, or goes on with a value that is longer than a page.  So a
damaged page can be said to belong to a table or an index.  The tree of page 1 is the list of
tables: without it nothing else is found, so a copy of its few pages is kept beside the database, as
they lie in it.
"""

import sqlite3
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.persistence.chunk_files import write_durably
from engine.persistence.cipher_pages import PageCipher
from engine.persistence.database_files import DatabaseFiles, find_cipher, read_kept
from engine.persistence.errors import translated
from engine.persistence.schema import SCHEMA_VERSION
from engine.persistence.wal_frames import LogPages, read_log

_MOST_KEPT: Final = 1_000
"""Pages: a list of tables that has more is none of ours."""
_ABOVE_LEAVES: Final = frozenset({2, 5})
_TREE_HEADER: Final = struct.Struct(">BHHHBI")
_DATABASE_HEADER_BYTES: Final = 100
_VERSION_AT: Final = 60
_NUMBER: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">H")


def children(page: bytes, number: int) -> list[int]:
    """The pages below a decrypted one; none if it is a leaf, or no page of a tree."""
    start = _DATABASE_HEADER_BYTES if number == 1 else 0
    try:
        kind, _, cells, _, _, last = _TREE_HEADER.unpack_from(page, start)
        if kind not in _ABOVE_LEAVES:
            return []
        first = start + _TREE_HEADER.size
        places = [_PLACE.unpack_from(page, first + 2 * cell)[0] for cell in range(cells)]
        return [*(_NUMBER.unpack_from(page, place)[0] for place in places), last]
    except struct.error:
        return []


def tree(root: int, plain_page: Callable[[int], bytes | None]) -> Iterator[int]:
    """The root, and all that it leads to; each once, whatever pages say.

    ``plain_page``: a decrypted page by its number, or None.
    """
    waiting, seen = [root], {root}
    while waiting:
        number = waiting.pop()
        yield number
        page = plain_page(number)
        below = [] if page is None else children(page, number)
        new = [child for child in dict.fromkeys(below) if child not in seen]
        seen.update(new)
        waiting += new


def page_owners(
    connection: sqlite3.Connection, path: Path, key: bytes, wanted: Collection[int]
) -> Mapping[int, str]:
    """Names by page, of those of ``wanted`` that a tree names: "message", or "NAME of message".

    The latter is an index, which can be made again.
    ``connection``: to the same database.  Raises StorageError, and OSError.
    """
    files = DatabaseFiles(path)
    cipher = find_cipher(files, key)
    if cipher is None or not wanted:
        return {}
    with translated("read the list of tables"):
        roots: list[tuple[str, int]] = connection.execute(
            "SELECT iif(name = tbl_name, name, name || ' of ' || tbl_name), rootpage "
            "FROM sqlite_master WHERE rootpage > 0"
        ).fetchall()
    pages, found = _NewestPages(files, cipher), dict[int, str]()
    for name, root in (("sqlite_master", 1), *roots):
        for number in tree(root, pages.plain):
            if number in wanted:
                found[number] = name
    return found


def keep_list_of_tables(path: Path, key: bytes) -> None:
    """Copy its pages, if all of the database is in the main file and they are as they should be.

    Never fails: it only helps later.  What a newer version keeps is its own.
    """
    files = DatabaseFiles(path)
    with suppress(OSError, StopIteration):
        if files.log.exists() and files.log.stat().st_size:
            return
        first = next(files.pages())[1]
        cipher = PageCipher.of_first_page(key, first)
        pages = _NewestPages(files, cipher)
        if _version(pages.plain(1)) > SCHEMA_VERSION:
            return
        found = {number: pages.sealed(number) for number in tree(1, pages.plain)}
        is_right = all(cipher.is_authentic(page, number) for number, page in found.items())
        if is_right and len(found) <= _MOST_KEPT and found != read_kept(files):
            fresh = files.kept.with_name(f"{files.kept.name}.new")
            fresh.unlink(missing_ok=True)
            write_durably(
                fresh, b"".join(_NUMBER.pack(number) + page for number, page in found.items())
            )
            fresh.replace(files.kept)


def _version(first_page: bytes | None) -> int:
    """``user_version`` as it stands in the header; 0 if that cannot be read."""
    return 0 if first_page is None else int(_NUMBER.unpack_from(first_page, _VERSION_AT)[0])


class _NewestPages:
    """As SQLite would read them."""

    def __init__(self, files: DatabaseFiles, cipher: PageCipher) -> None:
        self._files = files
        self._cipher = cipher
        log = read_log(files.log)
        self._in_log = {} if log is None else {f.page: f for f in log.frames[: log.readable]}
        self._log = LogPages(files.log, cipher.is_authentic)

    def sealed(self, number: int) -> bytes:
        if number in self._in_log:
            return self._log.page(self._in_log[number])
        return self._files.page(number)

    def plain(self, number: int) -> bytes | None:
        page = self.sealed(number)
        is_right = self._cipher.is_authentic(page, number)
        return self._cipher.opened(page, number) if is_right else None
