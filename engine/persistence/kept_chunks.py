"""Sealed chunks of others, which a node keeps for a while: bounded by size, age and source.

A directory for each source, a file for each chunk, named by its hash; its time is when it expires.
There is nothing else, so a crash can damage nothing else.  If there is no room, the oldest chunk of
the source that has most goes first: who puts more than others loses what is their own.  Sources are
pseudonyms that a node gives anew at every start, so what is there then counts as another's.
"""

import asyncio
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import PutStatus
from engine.core.errors import StorageError
from engine.persistence.chunk_files import name_of, storage_error, write_durably

DAY_S: Final = 24 * 3_600
LEAST_BYTES: Final = 16 * 1024
"""What a chunk counts at least: it takes blocks of the disk, a name and memory, too."""
EXPIRED_EVERY_S: Final = 60.0
_UNFINISHED: Final = ".new"


class _Kept(Struct):
    source: str
    size: int
    """As it counts."""
    expires_s: int


class KeptChunks:
    """``open`` first.  All methods but that one are called on the loop, which never waits."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        max_days: int,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_days = max_days
        self._now_s = now_s
        self._kept: dict[ChunkName, _Kept] = {}
        self._of_source: dict[str, dict[ChunkName, None]] = defaultdict(dict)
        """Oldest first."""
        self._bytes_of: dict[str, int] = defaultdict(int)
        self._writing: set[ChunkName] = set()

    @property
    def used_bytes(self) -> int:
        return sum(self._bytes_of.values())

    @property
    def chunks(self) -> int:
        return len(self._kept)

    async def remove_expired_for_ever(self, every_s: float = EXPIRED_EVERY_S) -> None:
        """Look again and again, also while nobody puts anything.  Ends only if it is cancelled."""
        while True:
            for name in self._expired():
                if not self._is_kept(name):  # It may have been taken anew.
                    self._drop(name)
                await asyncio.sleep(0)
            await asyncio.sleep(every_s)

    def _expired(self) -> list[ChunkName]:
        now_s = self._now_s()
        return [name for name, kept in self._kept.items() if kept.expires_s <= now_s]

    def open(self) -> None:
        """Make the directory, or read what is in it.  Raises StorageError."""
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            found = [
                entry
                for directory in self._path.iterdir()
                if directory.is_dir()
                for entry in directory.iterdir()
            ]
            times = {entry: entry.stat() for entry in found}
        except OSError as error:
            raise storage_error("open what is kept for others", error) from error
        for entry in sorted(found, key=lambda each: times[each].st_ctime_ns):
            name = name_of(entry)
            if name is None or name in self._kept:
                with suppress(OSError):
                    entry.unlink()
            else:
                stat = times[entry]
                size = _counted(stat.st_size)
                self._note(name, _Kept(entry.parent.name, size, int(stat.st_mtime)))
        for expired in self._expired():
            self._drop(expired)
        self._make_room(0)

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return tuple(map(self._is_kept, names))

    def _is_kept(self, name: ChunkName) -> bool:
        kept = self._kept.get(name)
        return kept is not None and kept.expires_s > self._now_s()

    async def read(self, name: ChunkName, /) -> bytes | None:
        kept = self._kept.get(name)
        if kept is None or not self._is_kept(name):
            return None
        try:
            sealed = await asyncio.to_thread(self._place(name, kept.source).read_bytes)
        except OSError:
            sealed = b""
        if hashlib.sha256(sealed).digest() != name:
            self._drop(name)
            return None
        return sealed

    def given(self, peer_id: str, name: ChunkName, /) -> None:
        """A node does not look at who gets what."""

    async def take(self, sealed: bytes, /, *, source: str, keep_days: int) -> PutStatus:
        name = ChunkName(hashlib.sha256(sealed).digest())
        days = max(1, min(keep_days or self._max_days, self._max_days))
        kept = _Kept(source, _counted(len(sealed)), int(self._now_s()) + days * DAY_S)
        if name in self._writing:
            return PutStatus.BUSY
        if self._is_kept(name):
            return PutStatus.TAKEN
        self._drop(name)  # It expired.
        if not self._make_room(kept.size):
            return PutStatus.FULL
        self._writing.add(name)
        try:
            await asyncio.to_thread(self._write, name, kept, sealed)
        except StorageError:
            return PutStatus.FAILED
        finally:
            self._writing.discard(name)
        self._note(name, kept)
        return PutStatus.TAKEN

    def _write(self, name: ChunkName, kept: _Kept, sealed: bytes) -> None:
        place = self._place(name, kept.source)
        fresh = place.with_name(place.name + _UNFINISHED)
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            fresh.unlink(missing_ok=True)
            write_durably(fresh, sealed)
            os.utime(fresh, (kept.expires_s, kept.expires_s))
            fresh.replace(place)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise storage_error("keep a chunk for others", error) from error

    def _make_room(self, wanted: int) -> bool:
        """Remove what is too much.  False: more is wanted than there may be."""
        if wanted > self._max_bytes:
            return False
        while self._kept and self.used_bytes + wanted > self._max_bytes:
            largest = max(self._bytes_of, key=lambda source: self._bytes_of[source])
            self._drop(next(iter(self._of_source[largest])))
        return True

    def _note(self, name: ChunkName, kept: _Kept) -> None:
        self._kept[name] = kept
        self._of_source[kept.source][name] = None
        self._bytes_of[kept.source] += kept.size

    def _drop(self, name: ChunkName) -> None:
        kept = self._kept.pop(name, None)
        if kept is None:
            return
        del self._of_source[kept.source][name]
        self._bytes_of[kept.source] -= kept.size
        place = self._place(name, kept.source)
        with suppress(OSError):
            place.unlink()
        if not self._of_source[kept.source]:
            del self._of_source[kept.source], self._bytes_of[kept.source]
            with suppress(OSError):
                place.parent.rmdir()

    def _place(self, name: ChunkName, source: str) -> Path:
        return self._path / source / name.hex()


def _counted(size: int) -> int:
    return max(size, LEAST_BYTES)
