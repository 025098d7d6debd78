"""A part of the database that the disk cannot read: named, offered for repair, and salvaged.

The reads fail where they are made: in SQLite's own table of system calls, and in ``os.read``.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlcipher3

from chat_app.__main__ import main
from chat_app.compose import open_store
from engine.core.errors import StorageError, StorageFault
from engine.persistence.connection import connect
from engine.persistence.profile_directory import (
    ProfileDirectory,
)
from tests.chat_app.filled_profile import filled_profile
from tests.persistence.conftest import KEY
from tests.persistence.damage import PAGE_BYTES, content
from tests.persistence.store_examples import GROUP

_METHODS = 16  # of sqlite3_vfs, from xOpen to xNextSystemCall
_PREAD = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)


class _Vfs(ctypes.Structure):
    """sqlite.org/c3ref/vfs.html."""

    _fields_ = (
        ("numbers", ctypes.c_int * 3),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("methods", ctypes.c_void_p * _METHODS),
    )


def _set_pread(function: object) -> None:
    [library] = Path(sqlcipher3.__file__).parent.glob("_sqlite3*.so")
    find = ctypes.CDLL(str(library)).sqlite3_vfs_find
    find.restype = ctypes.POINTER(_Vfs)
    vfs = find(None)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    set_system_call = prototype(vfs.contents.methods[_METHODS - 3])
    address = ctypes.cast(function, ctypes.c_void_p) if function else None  # type: ignore[arg-type]
    assert set_system_call(ctypes.cast(vfs, ctypes.c_void_p), b"pread", address) == 0


@contextmanager
def bad_sector(path: Path, pages: set[int], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """While it lasts, no read of these pages of this very file succeeds, however it is named."""
    inode, real_read = path.stat().st_ino, os.read

    def is_bad(descriptor: int, at: int, size: int) -> bool:
        if os.fstat(descriptor).st_ino != inode:
            return False
        first, last = at // PAGE_BYTES + 1, (at + size - 1) // PAGE_BYTES + 1
        return any(first <= page <= last for page in pages)

    def pread(descriptor: int, target: int, size: int, at: int) -> int:
        if is_bad(descriptor, at, size):
            ctypes.set_errno(errno.EIO)
            return -1
        data = os.pread(descriptor, size, at)
        ctypes.memmove(target, data, len(data))
        return len(data)

    def read(descriptor: int, size: int, /) -> bytes:
        with_place = os.fstat(descriptor).st_ino == inode
        if with_place and is_bad(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR), size):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_read(descriptor, size)

    failing = _PREAD(pread)
    _set_pread(failing)
    try:
        with patch.context() as then:
            then.setattr(os, "read", read)
            yield
    finally:
        _set_pread(None)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileDirectory:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    return filled_profile(tmp_path / "ines")


def root_of(directory: ProfileDirectory, table: str) -> int:
    connection = connect(str(directory.database), KEY)
    ask = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    page: int = connection.execute(ask, (table,)).fetchone()[0]
    connection.close()
    return page


def failure_of_a_start(directory: ProfileDirectory) -> StorageFault | None:
    """None: nothing that the page holds is read at a start."""
    try:
        store = open_store(directory, force_key_file=True).store
        store.profile()
        store.value("network.port")
        store.latest_page(GROUP, limit=50)
        store.close()
    except StorageError as error:
        return error.fault
    return None


@pytest.mark.parametrize("table", ["value", "message", ""])
def test_a_start_over_a_bad_sector_names_it_and_a_salvage_reads_the_rest(
    directory: ProfileDirectory,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``""``: the first page, which leads to all others."""
    page = root_of(directory, table) if table else 1
    before, inode = content(directory.database), directory.database.stat().st_ino
    with bad_sector(directory.database, {page}, monkeypatch):
        assert failure_of_a_start(directory) is StorageFault.DAMAGED, "a repair is offered"
        main(["--profile-dir", str(directory.path), "doctor"])
        assert "causerie salvage" in capsys.readouterr().out
        main(["--profile-dir", str(directory.path), "salvage"])
        assert failure_of_a_start(directory) is None
    after = content(directory.database)
    # What is left of lost messages goes, too, so that they are asked for again.
    compared = {"profile", "contact", "member", "value"} if table == "message" else {*before}
    assert all(after[name] == before[name] for name in compared - {table})
    kept = [path.stat().st_ino for path in directory.path.glob("causerie.db.damaged-*")]
    assert inode in kept, "the old one is as it was"
