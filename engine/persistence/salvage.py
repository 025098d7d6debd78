"""Puts what can be read of a damaged database in its place, and keeps the damaged one beside it.

The new database is made whole under a name of its own (``recovery``).  Renaming it to
``causerie.db.salvaged-DAY`` decides: whatever interrupts the steps after that, the next start
finishes them, and before that nothing has changed.  The damaged database and its log are renamed,
never written to, and a report of what is gone lies with them.  The caller holds the profile's lock.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.connection import SIDE_FILES
from engine.persistence.database_files import DatabaseFiles
from engine.persistence.profile_directory import (
    ProfileDirectory,
    sync_directory,
    write_private_file,
)
from engine.persistence.recovery import (
    LostMessages,
    Recovered,
    forget,
    forget_unfinished_repair,
    recover,
)

_DECIDED: Final = re.compile(r"\.salvaged-(\d{4}-\d{2}-\d{2}(?:-\d+)?)")
_KEPT: Final = re.compile(r"\.damaged-\d{4}-\d{2}-\d{2}(?:-\d+)?")
_MOST_NAMED: Final = 50
"""Numbers of pages in a report."""
_LATEST_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""


class Salvaged(Struct, frozen=True, kw_only=True):
    found: Recovered
    damaged: Path
    """Where the damaged database is kept."""
    report: Path


def salvage(
    directory: ProfileDirectory,
    key: bytes,
    progress: Progress = unheard,
    *,
    day: str,
    now_ms: UnixMs,
) -> Salvaged:
    """``day``: such as 2026-11-24.  Raises StorageError; nothing has changed then."""
    database = directory.database
    unfinished = database.with_name(f"{database.name}.unfinished")
    forget_unfinished_repair(database)
    damaged = _free_name(database, day)
    found = recover(database, unfinished, key, progress, now_ms=now_ms)
    report = damaged.with_name(f"{damaged.name}.txt")
    try:
        write_private_file(report, "\n".join(report_lines(found)) + "\n")
        unfinished.rename(_decided(database, damaged))
        sync_directory(directory.path)
        finish_salvage(directory)
    except OSError as error:
        if unfinished.exists():
            _forget_undecided(unfinished, report)
        reason = error.strerror or type(error).__name__
        text = f"Cannot put what was read in its place: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{directory.path}: {reason}") from error
    return Salvaged(found=found, damaged=damaged, report=report)


def _forget_undecided(unfinished: Path, report: Path) -> None:
    """A report of what did not happen would only mislead."""
    with suppress(OSError):
        forget(unfinished)
        report.unlink(missing_ok=True)
        report.with_name(f"{report.name}.new").unlink(missing_ok=True)


def finish_salvage(directory: ProfileDirectory) -> None:
    """Go on where a salvage was interrupted after it was decided; forget one that was not.

    Raises StorageError.
    """
    database = directory.database
    with suppress(OSError):
        forget_unfinished_repair(database)
    for made in sorted(directory.path.glob(f"{database.name}.salvaged-*")):
        found = _DECIDED.fullmatch(made.name.removeprefix(database.name))
        if found is None:
            continue
        try:
            _put_in_place(database, made, found[1])
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(
                f"Cannot put {made} in its place: {reason}.",
                StorageFault.UNUSABLE,
                f"{directory.path}: {reason}",
            ) from error


def kept_damaged(directory: ProfileDirectory) -> list[Path]:
    """Databases that were repaired, as they had been."""
    database = directory.database
    return [
        path
        for path in sorted(directory.path.glob(f"{database.name}.damaged-*"))
        if _KEPT.fullmatch(path.name.removeprefix(database.name))
    ]


def _put_in_place(database: Path, made: Path, day: str) -> None:
    """Each step may have been done already, and only the last one brings a database.

    What somebody put back after an interruption is kept, too, under the next free name.
    """
    files = DatabaseFiles(database)
    kept = DatabaseFiles(database.with_name(f"{database.name}.damaged-{day}"))
    if any(old.exists() and aside.exists() for old, aside in _pairs(files, kept)):
        kept = DatabaseFiles(_free_name(database, day))
    for old, aside in _pairs(files, kept):
        if old.exists():
            old.rename(aside)
    files.index.unlink(missing_ok=True)
    sync_directory(database.parent)
    made.rename(database)
    sync_directory(database.parent)


def _pairs(files: DatabaseFiles, kept: DatabaseFiles) -> tuple[tuple[Path, Path], ...]:
    return (files.path, kept.path), (files.log, kept.log), (files.kept, kept.kept)


def _decided(database: Path, damaged: Path) -> Path:
    day = damaged.name.removeprefix(f"{database.name}.damaged-")
    return database.with_name(f"{database.name}.salvaged-{day}")


def _free_name(database: Path, day: str) -> Path:
    """A name used neither by a file nor by what lies beside an earlier one."""
    number, name = 1, f"{database.name}.damaged-{day}"
    while any(
        database.with_name(f"{name}{end}").exists() for end in ("", *SIDE_FILES, ".tables", ".txt")
    ):
        number += 1
        name = f"{database.name}.damaged-{day}-{number}"
    return database.with_name(name)


# --- the report -----------------------------------------------------------------------------------


def report_lines(found: Recovered) -> Iterator[str]:
    """What is gone, without anything that anybody wrote: conversations are numbered."""
    pages = found.pages
    yield f"pages mended: {_numbers(pages.mended)}"
    yield f"pages that could not be read: {_numbers(pages.unreadable)}"
    yield f"pages of the list of tables replaced by copies: {_numbers(pages.replaced)}"
    if pages.frames_missing:
        yield f"pages missing at the end of the write-ahead log: {pages.frames_missing}"
    yield f"places that could not be read: {found.unreadable}"
    yield from (f"  {table}: {count}" for table, count in sorted(found.places.items()))
    yield f"messages lost, as far as indexes name them: {sum(one.messages for one in found.lost)}"
    yield from (f"  {_said(number, one)}" for number, one in enumerate(found.lost, 1))
    yield f"messages asked for again: {found.asked_for}"
    if found.keyless:
        yield f"groups whose key is gone: {found.keyless}"
    yield "rows that came over:"
    yield from (f"  {table}: {count}" for table, count in sorted(found.rows.items()))


def _said(number: int, lost: LostMessages) -> str:
    kind = "group" if lost.is_group else "person"
    first, last = (_utc(at_ms) for at_ms in (lost.first_ms, lost.last_ms))
    return f"{kind} {number}: {lost.messages}, from {first} to {last}"


def _utc(at_ms: int) -> str:
    if not 0 <= at_ms <= _LATEST_MS:
        return str(at_ms)
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="minutes")


def _numbers(pages: list[int]) -> str:
    if not pages:
        return "none"
    more = len(pages) - _MOST_NAMED
    named = ", ".join(str(page) for page in pages[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named
