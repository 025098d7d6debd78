"""Sealed chunks of files in a directory of the profile, each a private file named by its hash.

A chunk is written beside its place, forced to the disk and renamed, so that one that is there is
whole; what a crash left half written goes at the next start.  The name is checked when a chunk
comes and again when it is read, and one that does not fit any more is removed: it can be fetched
again.  The number of bytes is bounded.
"""

import hashlib
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from errno import EDQUOT, ENOSPC, EROFS
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

from engine.core.blobs.manifest import NAME_BYTES, ChunkName
from engine.core.errors import RemoteProtocolError, StorageError, StorageFault
from engine.persistence.profile_directory import sync_directory

_UNFINISHED: Final = ".new"
_FULL: Final = frozenset((ENOSPC, EDQUOT))


class ChunkFiles:
    """``open`` first.  Methods may be called from several threads at once."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._bytes = 0
        self._writes = count()
        self._turn = Lock()
        """Held while ``_bytes`` and what is there change."""

    def open(self) -> None:
        """Make the directory if there is none, and count what is in it.  Raises StorageError."""
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            self._bytes = 0
            for entry in self._path.iterdir():
                if entry.name.endswith(_UNFINISHED):
                    entry.unlink()
                else:
                    self._bytes += entry.stat().st_size
        except OSError as error:
            raise storage_error("open the files of messages", error) from error

    @property
    def used_bytes(self) -> int:
        return self._bytes

    def names(self) -> set[ChunkName]:
        """Raises StorageError."""
        try:
            return {name for entry in self._path.iterdir() if (name := name_of(entry)) is not None}
        except OSError as error:
            raise storage_error("list the files of messages", error) from error

    def held(self, names: Iterable[ChunkName]) -> tuple[bool, ...]:
        return tuple(self._place(name).exists() for name in names)

    def keep(self, name: ChunkName, sealed: bytes) -> None:
        """Write a chunk: durable, but for its name, until ``sync``.

        Raises RemoteProtocolError ``blob_chunk_forged`` if the name is another chunk's, and
        StorageError.
        """
        if hashlib.sha256(sealed).digest() != name:
            raise RemoteProtocolError("blob_chunk_forged")
        place = self._place(name)
        if place.exists():
            return
        self._reserve(len(sealed))
        fresh = place.with_name(f"{place.name}.{next(self._writes)}{_UNFINISHED}")
        try:
            write_durably(fresh, sealed)
            with self._turn:
                was_there = place.exists()
                fresh.replace(place)
                if was_there:  # Another thread was faster.
                    self._bytes -= len(sealed)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            with self._turn:
                self._bytes -= len(sealed)
            raise storage_error("keep a part of a file", error) from error

    def _reserve(self, size: int) -> None:
        with self._turn:
            if self._bytes + size > self._max_bytes:
                raise StorageError("no room for more files", StorageFault.FILES_FULL)
            self._bytes += size

    def sync(self) -> None:
        """Make it durable that what was kept is there.  Raises StorageError."""
        try:
            sync_directory(self._path)
        except OSError as error:
            raise storage_error("keep a file", error) from error

    def read(self, name: ChunkName) -> bytes | None:
        """None if it is not here; also if it cannot be read, or was damaged, and then it goes."""
        try:
            sealed = self._place(name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(sealed).digest() != name:
            self.remove((name,))
            return None
        return sealed

    def remove(self, names: Collection[ChunkName]) -> set[ChunkName]:
        """Return those that went; what is not here, or cannot be removed, is passed over."""
        gone = set[ChunkName]()
        for name in names:
            place = self._place(name)
            with self._turn, suppress(OSError):
                size = place.stat().st_size
                place.unlink()
                self._bytes -= size
                gone.add(name)
        return gone

    def _place(self, name: ChunkName) -> Path:
        return self._path / name.hex()


def write_durably(path: Path, data: bytes) -> None:
    """Into a new private file.  Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def storage_error(what: str, error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    if error.errno in _FULL:
        fault = StorageFault.DISK_FULL
    else:
        fault = StorageFault.READ_ONLY if error.errno == EROFS else StorageFault.DISK_ERROR
    return StorageError(f"cannot {what}: {reason}", fault, reason)


def name_of(entry: Path) -> ChunkName | None:
    """The chunk that a file is called after; None for another file."""
    try:
        name = bytes.fromhex(entry.name)
    except ValueError:
        return None
    return ChunkName(name) if len(name) == NAME_BYTES else None


_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Windows would change line ends."""
