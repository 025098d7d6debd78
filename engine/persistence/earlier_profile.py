"""Keeps aside an earlier profile, written by a test version before the first schema.

Nothing in it is read or deleted: its database is renamed beside the new one, with the date in its
name, and opens with the same key as before.  It is first brought into one file, so that the rename
is atomic.  From before the rename until the new database is there a mark tells that none is missed:
else a start that follows a crash would take it for lost.  The caller holds the profile's lock.
"""

import re
from pathlib import Path
from typing import Final

from engine.core.errors import StorageError
from engine.persistence.connection import SIDE_FILES, bring_into_one_file
from engine.persistence.profile_directory import (
    ProfileDirectory,
    sync_directory,
    write_private_file,
)

_KEPT: Final = re.compile(r"\.before-(\d{4}-\d{2}-\d{2})(?:-(\d+))?")


def keep_aside(directory: ProfileDirectory, key: bytes, *, day: str) -> None:
    """``day``: year, month and day, such as 2026-11-22.

    Raises StorageError if another process reads it or it cannot be renamed; nothing is lost then.
    """
    database = directory.database
    bring_into_one_file(database, key)
    target = _free_name(database, day)
    try:
        write_private_file(directory.beginning_anew, "")
        database.rename(target)
        sync_directory(directory.path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot keep {database} as {target.name}: {reason}.") from error


def forget_beginning_anew(directory: ProfileDirectory) -> None:
    """Once there is a database: it is missed if it goes.  Raises StorageError."""
    try:
        if directory.has_database():
            directory.beginning_anew.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot remove {directory.beginning_anew}: {reason}.") from error


def earlier_profile(directory: ProfileDirectory) -> Path | None:
    """The database that was kept aside last, or None."""
    kept = {
        (found[1], int(found[2] or 1)): path
        for path in directory.path.glob(f"{directory.database.name}.before-*")
        if (found := _KEPT.fullmatch(path.name.removeprefix(directory.database.name)))
    }
    return kept[max(kept)] if kept else None


def _free_name(database: Path, day: str) -> Path:
    """A name used neither by a file nor by the side files of an earlier database."""
    number, name = 1, f"{database.name}.before-{day}"
    while any(database.with_name(f"{name}{end}").exists() for end in ("", *SIDE_FILES)):
        number += 1
        name = f"{database.name}.before-{day}-{number}"
    return database.with_name(name)
