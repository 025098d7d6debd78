"""Reads and writes the sealed content of a backup file, in chunks and with flat memory.

A file is written under a passing name, private, forced to the disk, and gets its own name only when
it was read again and found whole.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import BinaryIO, Final, Self

from engine.codec.backup import (
    END_MARK,
    HEADER_BYTES,
    EntryReader,
    cut_off,
    damaged,
    decode_backup_header,
    encode_backup_entry,
)
from engine.core.backup import BackupHeader, Entry, EntryKind
from engine.core.errors import StorageError, StorageFault
from engine.crypto.backup import (
    CHUNK_BYTES,
    SEALED_CHUNK_BYTES,
    TAG_BYTES,
    BackupSecret,
    StreamOpener,
    StreamSealer,
)
from engine.persistence.profile_directory import sync_directory

_PASSING: Final = ".part"
_FULL: Final = frozenset((ENOSPC, EDQUOT))


class BackupWriter:
    """A context: without ``give_name`` nothing is left at its end.  Raises StorageError.

    ``owner``: of one profile on one device, which makes one backup at a time.  What another one of
    it left in the same place when it was killed is removed; parts of other owners stay.
    """

    def __init__(
        self, target: Path, header: BackupHeader, secret: BackupSecret, *, owner: bytes
    ) -> None:
        self._target = target
        start = f".causerie-{owner.hex()}-"
        self.passing = target.with_name(f"{start}{secrets.token_hex(8)}{_PASSING}")
        self._sealer = StreamSealer(header, secret)
        self._held = bytearray()
        self._entries = 0
        try:
            _forget_passing(target.parent, start)
            self._file = _create(self.passing)
            self._write(self._sealer.header)
        except OSError as error:
            raise not_written(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        with suppress(OSError):
            self.passing.unlink(missing_ok=True)

    def begin(self, entry: Entry) -> None:
        """Its content is to be added next, all of it."""
        self.add(encode_backup_entry(entry))
        self._entries += 1

    def add(self, data: bytes) -> None:
        self._held += data
        # One chunk is kept back: the last one is sealed as the last.
        while len(self._held) > CHUNK_BYTES:
            chunk = bytes(self._held[:CHUNK_BYTES])
            del self._held[:CHUNK_BYTES]
            self._write(self._sealer.seal(chunk, is_last=False))

    def finish(self) -> None:
        """All of it is on the disk, under the passing name."""
        self.begin(Entry(kind=EntryKind.END, size=self._entries))
        self._write(self._sealer.seal(bytes(self._held), is_last=True))
        self._write(END_MARK)
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            _read_from_disk(self._file)
        except OSError as error:
            raise not_written(error) from error

    def give_name(self) -> None:
        """Rename the finished file, replacing one that has the name."""
        try:
            self._file.close()
            self.passing.replace(self._target)
            sync_directory(self._target.parent)
        except OSError as error:
            raise not_written(error) from error

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise not_written(error) from error


class BackupReader:
    """A context over one file.  Raises BackupError, and StorageError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb")
            try:
                self._size = os.fstat(self._file.fileno()).st_size
                self._header = self._file.read(HEADER_BYTES)
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            raise not_read(error) from error
        self.read_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        return self._size

    def header(self) -> BackupHeader:
        """Not authenticated yet: it is so once the content opens."""
        return decode_backup_header(self._header)[0]

    def entries(self, secret: BackupSecret) -> EntryReader:
        """The content, to be read to its END; only then the file is known to be whole."""
        opener = StreamOpener(self._header, secret)
        end = self._size - len(END_MARK)
        try:
            self._file.seek(max(end, 0))
            mark = self._file.read(len(END_MARK))
            self._file.seek(HEADER_BYTES)
        except OSError as error:
            raise not_read(error) from error
        if mark != END_MARK:
            raise cut_off()
        return EntryReader(self._opened(opener, end - HEADER_BYTES))

    def _opened(self, opener: StreamOpener, sealed_bytes: int) -> Iterator[bytes]:
        left = sealed_bytes
        while left > 0:
            wanted = min(left, SEALED_CHUNK_BYTES)
            try:
                sealed = self._file.read(wanted)
            except OSError as error:
                raise not_read(error) from error
            if len(sealed) != wanted or len(sealed) < TAG_BYTES:
                raise damaged("a part of it is missing")
            left -= wanted
            self.read_bytes += wanted
            yield opener.open(sealed, is_last=not left)


def read_backup_header(path: Path) -> BackupHeader:
    """Without the passphrase.  Raises BackupError, and StorageError if it cannot be read."""
    with BackupReader(path) as reader:
        return reader.header()


def not_written(error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    fault = StorageFault.DISK_FULL if error.errno in _FULL else StorageFault.FILE_NOT_WRITTEN
    return StorageError(f"Cannot write: {reason}.", fault, reason)


def not_read(error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    return StorageError(f"Cannot read: {reason}.", StorageFault.FILE_NOT_READ, reason)


def _forget_passing(directory: Path, start: str) -> None:
    for left in directory.glob(f"{start}*{_PASSING}"):
        with suppress(OSError):
            left.unlink()


def _create(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _read_from_disk(file: BinaryIO) -> None:
    """Let the system forget what it has in memory, so that the check reads the disk."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
