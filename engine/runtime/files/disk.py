"""The blobs of a profile on its disk: sealed chunks, and the files they are made from or become.

A few threads of its own read, hash, seal and write, so neither the loop nor the thread of the
database waits for a large file.  Peers are served from here.
"""

import asyncio
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from msgspec import Struct

from engine.core.blobs.manifest import CHUNK_BYTES, MAX_BLOB_BYTES, ChunkName, Manifest
from engine.core.errors import (
    CryptoError,
    InputError,
    InputFlaw,
    StorageError,
    StorageFault,
)
from engine.crypto.blobs import name_of, open_chunk, open_names, seal_chunk, seal_names
from engine.persistence.chunk_files import ChunkFiles
from engine.persistence.saved_file import write_whole

GIB: Final = 1024**3
_THREADS: Final = 4

_P = ParamSpec("_P")
_R = TypeVar("_R")


class FilesSettings(Struct, frozen=True, kw_only=True):
    """``chunks``, ``opened``: directories of the profile, for sealed chunks and for open copies."""

    chunks: Path
    opened: Path
    max_bytes: int = 10 * GIB
    """Of all files of the profile together."""
    pictures_below: Callable[[], int] = lambda: 2 * 1024 * 1024
    """Pictures of at most so many bytes are fetched by themselves."""


class BlobDisk:
    """``open`` first, ``close`` at the end.  Methods raise StorageError unless they say more."""

    def __init__(self, settings: FilesSettings) -> None:
        self._files = ChunkFiles(settings.chunks, max_bytes=settings.max_bytes)
        self._opened = settings.opened
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="files")

    async def open(self) -> set[ChunkName]:
        """The names of what is here.  Copies that a crash left open are removed."""
        return await self._run(self._open)

    def _open(self) -> set[ChunkName]:
        self._files.open()
        shutil.rmtree(self._opened, ignore_errors=True)
        return self._files.names()

    async def close(self) -> None:
        """Wait for what is being written; remove open copies, also those made meanwhile."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        shutil.rmtree(self._opened, ignore_errors=True)

    # --- chunks ---------------------------------------------------------------------------------

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return await self._run(self._files.held, names)

    async def read(self, name: ChunkName, /) -> bytes | None:
        return await self._run(self._files.read, name)

    async def keep(self, name: ChunkName, sealed: bytes) -> None:
        """Raises also RemoteProtocolError: these are not the bytes of this name.

        Nothing is written any more when it ends, also if it is cancelled.
        """
        writing = asyncio.ensure_future(self._run(self._files.keep, name, sealed))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.gather(writing, return_exceptions=True)
            raise

    async def names(self, manifest: Manifest) -> tuple[ChunkName, ...] | None:
        """Of all chunks but the list; None if that is not here.  Raises also CryptoError."""
        sealed = await self.read(manifest.root)
        return None if sealed is None else open_names(manifest, sealed)

    async def reached(self, manifest: Manifest) -> int:
        """How many bytes of a file are here; 0 also if that cannot be read.  Raises nothing."""
        with suppress(CryptoError, StorageError):
            if names := await self.names(manifest):
                return min(sum(await self.held(names)) * CHUNK_BYTES, manifest.size)
        return 0

    async def remove(self, manifests: Collection[Manifest], kept: Collection[Manifest]) -> int:
        """Remove the chunks of ``manifests`` that none of ``kept`` has, and their open copies.

        Return how many bytes of the files went: what the disk does not let go stays.
        """
        return await self._run(self._remove, manifests, kept)

    def _remove(self, manifests: Collection[Manifest], kept: Collection[Manifest]) -> int:
        # A list may name chunks of another file: only its author says what is in it.
        gone = self._files.remove(self._all_names(manifests) - self._all_names(kept))
        roots = {each.root for each in manifests}
        for root in roots - {each.root for each in kept}:
            shutil.rmtree(self._opened_at(root), ignore_errors=True)
        return min(len(gone - roots) * CHUNK_BYTES, sum(each.size for each in manifests))

    async def sweep(self, found: set[ChunkName], kept: Collection[Manifest]) -> None:
        """Remove what was ``found`` and belongs to no message: it was being sent or removed."""
        await self._run(self._sweep, found, kept)

    def _sweep(self, found: set[ChunkName], kept: Collection[Manifest]) -> None:
        self._files.remove(found - self._all_names(kept))

    def _all_names(self, manifests: Iterable[Manifest]) -> set[ChunkName]:
        names = set[ChunkName]()
        for manifest in manifests:
            names.add(manifest.root)
            sealed = self._files.read(manifest.root)
            if sealed is not None:
                with suppress(CryptoError):
                    names.update(open_names(manifest, sealed))
        return names

    # --- whole files ----------------------------------------------------------------------------

    async def seal(self, path: Path, key: bytes) -> Manifest:
        """Seal a copy of a file of the user's.

        Raises InputError if it is empty or too large, StorageError with ``FILE_NOT_READ``.
        """
        return await self._run(self._seal, path, key)

    def _seal(self, path: Path, key: bytes) -> Manifest:
        return self._seal_pieces(_pieces(path), key)

    async def seal_anew(self, manifest: Manifest, key: bytes) -> Manifest:
        """Seal a complete file once more, with another key.  Raises also CryptoError.

        It is nowhere in the clear meanwhile, and who gets it does not learn who else has it.
        """
        return await self._run(self._seal_anew, manifest, key)

    def _seal_anew(self, manifest: Manifest, key: bytes) -> Manifest:
        return self._seal_pieces(self._plain(manifest, self._names(manifest)), key)

    def _seal_pieces(self, pieces: Iterable[bytes], key: bytes) -> Manifest:
        names: list[ChunkName] = []
        size = 0
        try:
            for index, data in enumerate(pieces, 1):
                size += len(data)
                names.append(self._keep_sealed(seal_chunk(key, index, data)))
            root = self._keep_sealed(seal_names(key, names))
            self._files.sync()
        except BaseException:
            self._files.remove(names)
            raise
        return Manifest(key=key, root=root, size=size)

    def _keep_sealed(self, sealed: bytes) -> ChunkName:
        name = name_of(sealed)
        self._files.keep(name, sealed)
        return name

    async def verify(self, manifest: Manifest, names: Sequence[ChunkName]) -> bool:
        """Whether all chunks are here, durably.

        Raises also CryptoError if one is not what was announced.
        """
        return await self._run(self._verify, manifest, names)

    def _verify(self, manifest: Manifest, names: Sequence[ChunkName]) -> bool:
        try:
            for _ in self._plain(manifest, names):
                pass
        except StorageError:
            return False
        self._files.sync()
        return True

    async def data(self, manifest: Manifest) -> bytes:
        """All bytes of a complete file.  Raises also CryptoError."""
        return await self._run(self._data, manifest)

    def _data(self, manifest: Manifest) -> bytes:
        return b"".join(self._plain(manifest, self._names(manifest)))

    async def write_to(self, manifest: Manifest, path: Path, *, is_received: bool) -> None:
        """Write a complete file, as a whole or not at all.  Raises also CryptoError.

        ``is_received``: it says that it came from somebody else.  StorageError with
        ``FILE_NOT_WRITTEN`` has the system's reason.
        """
        await self._run(self._write_to, manifest, path, is_received)

    def _write_to(
        self, manifest: Manifest, path: Path, is_received: bool, mode: int = 0o666
    ) -> None:
        pieces = self._plain(manifest, self._names(manifest))
        write_whole(path, pieces, is_received=is_received, mode=mode)

    async def open_copy(self, manifest: Manifest, name: str, *, is_received: bool) -> Path:
        """A private copy under the file's own name.  Raises also CryptoError."""
        return await self._run(self._open_copy, manifest, name, is_received)

    def _open_copy(self, manifest: Manifest, name: str, is_received: bool) -> Path:
        place = self._private(manifest.root) / name
        if not place.exists():
            self._write_to(manifest, place, is_received, 0o600)
        return place

    async def open_data(
        self, place: tuple[str, str], data: bytes, name: str, *, is_received: bool
    ) -> Path:
        """Likewise, of bytes that belong to this ``place`` only."""
        return await self._run(self._open_data, place, data, name, is_received)

    def _open_data(self, place: tuple[str, str], data: bytes, name: str, is_received: bool) -> Path:
        path = self._private(_name_of_place(place)) / name
        if not path.exists():
            write_whole(path, (data,), is_received=is_received, mode=0o600)
        return path

    async def close_data(self, place: tuple[str, str]) -> None:
        """Remove what ``open_data`` wrote for it."""
        directory = self._opened_at(_name_of_place(place))
        await self._run(shutil.rmtree, directory, ignore_errors=True)

    def _private(self, root: ChunkName) -> Path:
        directory = self._opened_at(root)
        try:
            self._opened.mkdir(mode=0o700, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(reason, StorageFault.FILE_NOT_WRITTEN, reason) from error
        return directory

    def _opened_at(self, root: ChunkName) -> Path:
        return self._opened / root.hex()[:16]

    def _names(self, manifest: Manifest) -> tuple[ChunkName, ...]:
        sealed = self._files.read(manifest.root)
        if sealed is None:
            raise _damaged()
        return open_names(manifest, sealed)

    def _plain(self, manifest: Manifest, names: Sequence[ChunkName]) -> Iterator[bytes]:
        for index, name in enumerate(names, 1):
            sealed = self._files.read(name)
            if sealed is None:
                raise _damaged()
            yield open_chunk(manifest, index, sealed)

    async def _run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))


def _name_of_place(place: tuple[str, str]) -> ChunkName:
    """Not the name of any chunk."""
    return name_of("\n".join(place).encode())


def _damaged() -> StorageError:
    return StorageError("a part of the file is not here any more", StorageFault.DAMAGED)


def check_size(size: int) -> None:
    """Raises InputError unless a blob may be so large."""
    if not size:
        raise InputError(InputFlaw.FILE_EMPTY)
    if size > MAX_BLOB_BYTES:
        raise InputError(InputFlaw.FILE_TOO_LARGE, given=size, limit=MAX_BLOB_BYTES)


def size_of(path: Path) -> int:
    """Raises StorageError with ``FILE_NOT_READ``."""
    try:
        return path.stat().st_size
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(reason, StorageFault.FILE_NOT_READ, reason) from error


def _pieces(path: Path) -> Iterator[bytes]:
    """Raises InputError, and StorageError with ``FILE_NOT_READ``."""
    size = 0
    try:
        with path.open("rb") as file:
            while data := file.read(CHUNK_BYTES):
                size += len(data)
                check_size(size)
                yield data
        check_size(size)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(reason, StorageFault.FILE_NOT_READ, reason) from error
