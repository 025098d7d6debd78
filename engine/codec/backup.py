"""Bytes of a backup file: its header, and the entries in its content.

Layout (docs/backup.md), integers big-endian: header (below), sealed chunks, END_MARK.  The content
of the chunks is a sequence of entries: kind (1), name (32), size (8), and so many bytes.  The
header's last bytes are a checksum: damage to it looks different from a wrong passphrase.  Sealing
is in ``engine.crypto.backup``.
"""

import hashlib
import struct
from collections.abc import Iterator
from typing import Final

from engine.core.backup import (
    COMMITMENT_BYTES,
    FILE_SALT_BYTES,
    KEY_BYTES,
    MAX_APP_VERSION_BYTES,
    PSEUDONYM_BYTES,
    SALT_BYTES,
    BackupHeader,
    Cost,
    Entry,
    EntryKind,
)
from engine.core.blobs.manifest import MAX_SEALED_BYTES, NAME_BYTES
from engine.core.errors import BackupError, BackupFlaw, LocalProtocolError
from engine.core.ids import UnixMs

VERSION: Final = 1
END_MARK: Final = b"causerie-backed\n"
MAX_SMALL_BYTES: Final = 4 * 1024 * 1024
"""Of the settings, and of what the window remembers."""
MAX_DATABASE_BYTES: Final = 1 << 42
MAX_CREATED_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that every calendar can name."""

_MAGIC: Final = b"causerie-backup\n"
_START: Final = struct.Struct(f">{len(_MAGIC)}sH")
_FIELDS: Final = struct.Struct(
    f">IIB{SALT_BYTES}s{FILE_SALT_BYTES}sIQ{PSEUDONYM_BYTES}sB{MAX_APP_VERSION_BYTES}s"
)
_CHECK_BYTES: Final = 16
_SIGNED_BYTES: Final = _START.size + _FIELDS.size
HEADER_BYTES: Final = _SIGNED_BYTES + COMMITMENT_BYTES + _CHECK_BYTES
_ENTRY: Final = struct.Struct(f">B{NAME_BYTES}sQ")
ENTRY_BYTES: Final = _ENTRY.size

_SIZES: Final = {
    EntryKind.END: (0, 1 << 32),
    EntryKind.DATABASE_KEY: (KEY_BYTES, KEY_BYTES),
    EntryKind.DATABASE: (1, MAX_DATABASE_BYTES),
    EntryKind.SETTINGS: (0, MAX_SMALL_BYTES),
    EntryKind.WINDOW: (0, MAX_SMALL_BYTES),
    EntryKind.CHUNK: (1, MAX_SEALED_BYTES),
}
"""The least and the most of each."""


# --- header ---------------------------------------------------------------------------------------


def header_fields(header: BackupHeader) -> bytes:
    """What the file's key depends on.  Raises LocalProtocolError for a value out of bounds."""
    try:
        app_version = header.app_version.encode("ascii")
        if (
            not header.cost.is_allowed
            or len(app_version) > MAX_APP_VERSION_BYTES
            or not header.app_version.isprintable()
            or header.created_ms > MAX_CREATED_MS
        ):
            raise LocalProtocolError("a header that nobody would read")
        fields = _FIELDS.pack(
            header.cost.memory_kib,
            header.cost.iterations,
            header.cost.lanes,
            header.salt,
            header.file_salt,
            header.schema_version,
            header.created_ms,
            header.pseudonym,
            len(app_version),
            app_version,
        )
    except (UnicodeEncodeError, struct.error) as error:
        raise LocalProtocolError("a header that cannot be written") from error
    return _START.pack(_MAGIC, VERSION) + fields


def encode_backup_header(header: BackupHeader, commitment: bytes) -> bytes:
    """HEADER_BYTES; ``commitment``: to the file's key, COMMITMENT_BYTES."""
    covered = header_fields(header) + commitment
    return covered + _check_of(covered)


def decode_backup_header(data: bytes) -> tuple[BackupHeader, bytes]:
    """The header and the commitment in the first HEADER_BYTES of a file.  Raises BackupError."""
    if not _MAGIC.startswith(data[: len(_MAGIC)]) or not data:
        raise BackupError(BackupFlaw.FOREIGN, "This file is no backup of Causerie.")
    if len(data) < _START.size:
        raise cut_off()
    _, version = _START.unpack_from(data)
    if version > VERSION:
        raise BackupError(BackupFlaw.TOO_NEW, f"The backup's format {version} is a newer one.")
    if len(data) < HEADER_BYTES:
        raise cut_off()
    covered, check = data[: HEADER_BYTES - _CHECK_BYTES], data[HEADER_BYTES - _CHECK_BYTES :]
    if version != VERSION or check != _check_of(covered):
        raise damaged("its header")
    return _fields_of(covered), covered[_SIGNED_BYTES:]


def _fields_of(covered: bytes) -> BackupHeader:
    memory_kib, iterations, lanes, salt, file_salt, schema, created_ms, pseudonym, length, text = (
        _FIELDS.unpack_from(covered, _START.size)
    )
    cost = Cost(memory_kib=memory_kib, iterations=iterations, lanes=lanes)
    if not cost.is_allowed:
        raise BackupError(BackupFlaw.TOO_COSTLY, "The backup's passphrase costs too much work.")
    if length > MAX_APP_VERSION_BYTES or text[length:].strip(b"\0") or not text.isascii():
        raise damaged("its header")
    # Nobody vouches for these two yet, and both are shown before the passphrase is asked for.
    app_version = text[:length].decode("ascii")
    if created_ms > MAX_CREATED_MS or not app_version.isprintable():
        raise damaged("its header")
    return BackupHeader(
        cost=cost,
        salt=salt,
        file_salt=file_salt,
        schema_version=schema,
        app_version=app_version,
        created_ms=UnixMs(created_ms),
        pseudonym=pseudonym,
    )


def _check_of(covered: bytes) -> bytes:
    return hashlib.sha256(covered).digest()[:_CHECK_BYTES]


# --- entries --------------------------------------------------------------------------------------


def encode_backup_entry(entry: Entry) -> bytes:
    """ENTRY_BYTES, which stand before the entry's content."""
    least, most = _SIZES[entry.kind]
    if not least <= entry.size <= most:
        raise LocalProtocolError(f"an entry {entry.kind.name} of {entry.size} bytes")
    return _ENTRY.pack(entry.kind, entry.name, entry.size)


def decode_backup_entry(data: bytes) -> Entry:
    """Of ENTRY_BYTES.  Raises BackupError."""
    if len(data) != ENTRY_BYTES:
        raise damaged("its content ends too early")
    number, name, size = _ENTRY.unpack(data)
    try:
        kind = EntryKind(number)
    except ValueError:
        raise damaged("an entry of no known kind") from None
    least, most = _SIZES[kind]
    if not least <= size <= most:
        raise damaged("an entry's size")
    if kind is EntryKind.CHUNK:
        return Entry(kind=kind, size=size, name=name)
    if any(name):
        raise damaged("an entry's name")
    return Entry(kind=kind, size=size)


class EntryReader:
    """Cuts a content that comes in pieces of any size into its entries.  Raises BackupError."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def next(self) -> Entry:
        """The next entry; its ``content`` is to be read before the one after it."""
        entry = decode_backup_entry(b"".join(self._take(ENTRY_BYTES)))
        if entry.kind is EntryKind.END and (self._rest or next(self._pieces, b"")):
            raise damaged("something follows its last entry")
        return entry

    def content(self, entry: Entry) -> Iterator[bytes]:
        return self._take(entry.size)

    def whole(self, entry: Entry) -> bytes:
        """Of an entry that is small by its kind."""
        return b"".join(self._take(entry.size))

    def _take(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._rest or next(self._pieces, b"")
            if not piece:
                raise damaged("its content ends too early")
            self._rest = piece[size:]
            yield piece[:size]
            size -= min(size, len(piece))


def damaged(where: str) -> BackupError:
    return BackupError(BackupFlaw.DAMAGED, f"The backup is damaged: {where}.")


def cut_off() -> BackupError:
    return BackupError(BackupFlaw.CUT_OFF, "The end of the backup is missing.")
