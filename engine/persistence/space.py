"""Where the space of a profile goes: on the disk, by conversation and by kind.

The database cannot say how many pages a conversation fills, so its live bytes are shared out by
what its rows hold, indexes included; the sum is what the file has.  Chunks of files are counted
where they lie, each once.  Reading goes through a connection of its own, table by table, and can be
stopped; nothing is changed.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.errors import CryptoError, StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId
from engine.core.records import TransferState
from engine.core.stored import StoredTransfer
from engine.crypto.blobs import open_names
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.chunk_files import name_of
from engine.persistence.database import open_readonly
from engine.persistence.errors import translated
from engine.persistence.file_tables import read_transfers
from engine.persistence.profile_directory import ProfileDirectory

_ROWS_AT_ONCE: Final = 20_000
_ROW_BYTES: Final = 8
"""Of a row's head and key."""
_NUMBER_BYTES: Final = 3
"""Of an integer, about."""
_INDEX_BYTES: Final = 28
"""Of a row in an index: conversation, id, place."""
_TEXTS: Final = frozenset(
    {"message", "version", "reaction", "reaction_count", "ordinal_block", "delivery"}
)
_FILES: Final = frozenset({"file"})
_BIG: Final = frozenset({"message", "log_raw"})
"""Read in ranges of their keys, so that one hears how far it is."""


class Kind(StrEnum):
    TEXTS = "texts"
    FILES = "files"
    """Pictures and other files, also those that lie beside the database."""
    EVIDENCE = "evidence"
    """Signed bytes, the log's index, who holds what, and what is still on its way."""


class HeldFiles(Struct, kw_only=True):
    """Complete files that lie beside the database."""

    count: int = 0
    size: int = 0


class ConversationSpace(Struct, kw_only=True):
    conversation_id: ConversationId
    size: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    fetchable: HeldFiles = field(default_factory=HeldFiles)
    """Of others, and another member says that they have them."""
    message_ids: list[MessageId] = field(default_factory=list)
    """Of the fetchable ones."""
    unheld: HeldFiles = field(default_factory=HeldFiles)
    """Of others, and nobody else says so."""
    own: HeldFiles = field(default_factory=HeldFiles)
    own_only_here: HeldFiles = field(default_factory=HeldFiles)
    """Of the own ones: nobody else says that they have them."""

    @property
    def total(self) -> int:
        return sum(self.size.values())


class ProfileSpace(Struct, frozen=True, kw_only=True):
    conversations: tuple[ConversationSpace, ...]
    """The largest first."""
    search: int
    lists: int
    """Of the database: contacts, addresses, counters, what belongs to no conversation."""
    unused: int
    """Pages of the database that new messages will fill."""
    kept_for_others: int
    records: int
    logs: int
    live: int
    """Pages of the database that are in use; it is in what stands above."""
    other: int
    """Not merged yet into the database, or of no message."""

    @property
    def total(self) -> int:
        named = (self.search, self.lists, self.unused, self.kept_for_others)
        rest = (self.records, self.logs, self.other)
        return sum(each.total for each in self.conversations) + sum(named) + sum(rest)


def measure_space(
    directory: ProfileDirectory, key: bytes, progress: Progress = unheard
) -> ProfileSpace:
    """Raises StorageError; CLOSING if ``progress`` stopped it."""
    reading = open_readonly(directory.database, key)
    try:
        with translated("measure the database"):
            reading.execute("BEGIN")  # All of one moment.
            weights = _weights(reading, progress)
            pages, free, page_bytes = (
                int(reading.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
            ids: dict[int, str] = dict(
                reading.execute("SELECT conversation_key, conversation_id FROM conversation")
            )
            transfers = read_transfers(reading)
            held = _held(reading)
    finally:
        reading.close()
    live = (pages - free) * page_bytes
    spaces, search, lists = _dealt(live, weights, ids)
    loose = _share_chunks(directory, transfers, held, spaces)
    on_disk = _on_disk(directory)
    database = on_disk.pop("database")
    return ProfileSpace(
        conversations=tuple(sorted(spaces.values(), key=lambda each: -each.total)),
        search=search,
        lists=lists,
        unused=free * page_bytes,
        live=live,
        kept_for_others=on_disk["kept"],
        records=on_disk["records"],
        logs=on_disk["logs"],
        other=on_disk["other"] + loose + max(database - pages * page_bytes, 0),
    )


_SEARCH: Final = -1
_LISTS: Final = -2
_Weights = Mapping[tuple[int, Kind | None], int]
"""By conversation and kind; the search and what is of nobody have numbers of their own."""


def _dealt(
    live: int, weights: _Weights, ids: Mapping[int, str]
) -> tuple[dict[str, ConversationSpace], int, int]:
    """The bytes of the database in proportion: of each conversation, the search, and the rest."""
    scale = live / max(sum(weights.values()), 1)
    spaces = {
        name: ConversationSpace(conversation_id=ConversationId(name)) for name in ids.values()
    }
    search = lists = 0.0
    for (conversation, kind), weight in weights.items():
        if kind is not None and conversation in ids:
            spaces[ids[conversation]].size[kind] += round(weight * scale)
        elif conversation == _SEARCH:
            search += weight * scale
        else:
            lists += weight * scale
    return spaces, round(search), round(lists)


# --- the database ---------------------------------------------------------------------------------


class _Table(Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    """That hold texts or bytes."""
    row_bytes: int
    """Of a row beside these."""
    is_shared_out: bool
    """It has a conversation in each row."""


def _tables(reading: sqlite3.Connection) -> Iterator[_Table]:
    found = reading.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (name,) in found:
        columns = reading.execute(f'PRAGMA table_info("{name}")').fetchall()
        indexes = len(reading.execute(f'PRAGMA index_list("{name}")').fetchall())
        sized = tuple(row[1] for row in columns if row[2].upper() not in {"INTEGER", "REAL"})
        numbers = len(columns) - len(sized)
        yield _Table(
            name,
            sized,
            _ROW_BYTES + numbers * _NUMBER_BYTES + indexes * _INDEX_BYTES,
            any(row[1] == "conversation_key" for row in columns),
        )


def _weights(reading: sqlite3.Connection, progress: Progress) -> _Weights:
    weights: dict[tuple[int, Kind | None], int] = defaultdict(int)
    tables = list(_tables(reading))
    for number, table in enumerate(tables):
        kind = _kind_of(table)
        for part, conversation, weight in _sizes(reading, table):
            if not progress(min((number + part) / len(tables), 0.999)):
                raise StorageError("It was stopped.", StorageFault.CLOSING)
            weights[conversation, kind] += weight
    return weights


def _kind_of(table: _Table) -> Kind | None:
    if not table.is_shared_out:
        return None
    if table.name in _FILES:
        return Kind.FILES
    return Kind.TEXTS if table.name in _TEXTS else Kind.EVIDENCE


def _sizes(reading: sqlite3.Connection, table: _Table) -> Iterator[tuple[float, int, int]]:
    """How much of the table is done, the conversation, and what its rows weigh."""
    if table.is_shared_out:
        whose = "conversation_key"
    else:
        whose = str(_SEARCH if table.name.startswith("search_") else _LISTS)
    lengths = " + ".join(f'coalesce(octet_length("{name}"), 0)' for name in table.columns) or "0"
    ask = (
        f"SELECT {whose}, count(*) * {table.row_bytes} + sum({lengths})"  # noqa: S608 - from the schema
        f' FROM "{table.name}"'
    )
    if table.name not in _BIG:
        for conversation, weight in reading.execute(f"{ask} GROUP BY 1").fetchall():
            yield 1.0, conversation, weight or 0
        return
    (last,) = reading.execute(f'SELECT max(rowid) FROM "{table.name}"').fetchone()  # noqa: S608 - as above
    last = last or 0
    for first in range(0, last, _ROWS_AT_ONCE):
        to = first + _ROWS_AT_ONCE
        asked = reading.execute(f"{ask} WHERE rowid > ? AND rowid <= ? GROUP BY 1", (first, to))
        for conversation, weight in asked.fetchall():
            yield min(to / last, 1.0), conversation, weight or 0


def _held(reading: sqlite3.Connection) -> frozenset[tuple[str, bytes]]:
    """Conversations and roots of files of which another member says that they have all."""
    return frozenset(
        reading.execute(
            "SELECT DISTINCT c.conversation_id, t.root FROM file_holder AS h"
            " JOIN transfer AS t ON t.file_key = h.file_key"
            " JOIN file AS f ON f.file_key = t.file_key"
            " JOIN conversation AS c ON c.conversation_key = f.conversation_key"
            " WHERE h.held"
        ).fetchall()
    )


# --- chunks of files ------------------------------------------------------------------------------


def _share_chunks(
    directory: ProfileDirectory,
    transfers: list[StoredTransfer],
    held: frozenset[tuple[str, bytes]],
    spaces: Mapping[str, ConversationSpace],
) -> int:
    """Each chunk to the first conversation that names it; how many bytes nobody does."""
    chunks = _chunks(directory)
    for each in transfers:
        space = spaces[each.conversation_id]
        manifest = each.transfer.manifest
        size = sum(chunks.pop(name, 0) for name in _names(directory, manifest))
        space.size[Kind.FILES] += size
        if not size or each.transfer.state is not TransferState.COMPLETE:
            continue
        is_held = (str(each.conversation_id), bytes(manifest.root)) in held
        if each.is_own:
            kinds = [space.own] if is_held else [space.own, space.own_only_here]
        elif is_held:
            kinds = [space.fetchable]
            space.message_ids.append(each.message_id)
        else:
            kinds = [space.unheld]
        for kind in kinds:
            kind.count += 1
            kind.size += size
    return sum(chunks.values())


def _chunks(directory: ProfileDirectory) -> dict[ChunkName, int]:
    found: dict[ChunkName, int] = {}
    with suppress(FileNotFoundError), os.scandir(directory.files) as entries:
        for entry in entries:
            name = name_of(Path(entry.path))
            if name is not None:
                with suppress(FileNotFoundError):  # It was removed meanwhile.
                    found[name] = entry.stat().st_size
    return found


def _names(directory: ProfileDirectory, manifest: Manifest) -> tuple[ChunkName, ...]:
    try:
        sealed = (directory.files / manifest.root.hex()).read_bytes()
        return (manifest.root, *open_names(manifest, sealed))
    except (OSError, CryptoError):
        return (manifest.root,)


# --- the rest of the disk -------------------------------------------------------------------------


def _on_disk(directory: ProfileDirectory) -> dict[str, int]:
    """By part of the profile; all but the chunks of files."""
    found = {"database": 0, "kept": 0, "records": 0, "logs": 0, "other": 0}
    places = {
        directory.database.name: "database",
        directory.kept_files.name: "kept",
        "delivery": "records",
        "logs": "logs",
    }
    with os.scandir(directory.path) as entries:
        for entry in entries:
            is_archive = entry.name.startswith(directory.archive.name)
            part = "kept" if is_archive else places.get(entry.name, "other")
            if entry.name != directory.files.name:
                found[part] += _bytes_in(Path(entry.path))
    return found


def _bytes_in(path: Path) -> int:
    """Links count as nothing: what they lead to is elsewhere."""
    if path.is_symlink():
        return 0
    size = 0
    with suppress(OSError):
        if path.is_dir():
            size = sum(_bytes_in(each) for each in path.iterdir())
        else:
            size = path.stat().st_size
    return size
