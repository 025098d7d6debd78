"""Makes a profile of what can be read of a damaged one, beside it.

The new profile has the key and the settings of the damaged one, which stays as it is and is opened
by no other program meanwhile.  Files beyond the database (chunks, archive, records) are not copied:
members and Stores have them.
"""

import asyncio
import shutil
import time
from pathlib import Path

from msgspec import Struct

from chat_app.carrying_over import CarryingOver
from chat_app.interrupts import Interrupts
from chat_app.paths import ProfilePaths, paths_beside
from chat_app.qt_loop import run_on_qt
from engine.core.errors import StorageError, StorageFault
from engine.persistence.carry_over import Progress
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.key_changes import give_ways_of
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.recovery import Recovered, recover
from ui.settings import UiSettings


class RecoveredProfile(Struct, frozen=True, kw_only=True):
    paths: ProfilePaths
    found: Recovered


def recovered_paths(paths: ProfilePaths, day: str) -> ProfilePaths:
    """Of a name that nothing has, not even settings; ``day``: such as 2026-11-24."""
    return paths_beside(paths, f"recovered-{day}")


def recover_profile(
    paths: ProfilePaths, progress: Progress, *, day: str, key: DatabaseKey | None = None
) -> RecoveredProfile:
    """``key``: of the damaged profile, if it was had already.

    Raises StorageError; nothing is left of the new profile then.
    """
    old, there = ProfileDirectory(paths.directory), recovered_paths(paths, day)
    new = open_profile_directory(there.directory)
    try:
        with ProfileLock(old), ProfileLock(new):
            key = key or obtain_database_key(old)
            give_ways_of(old, new, key)
            _copy_settings(paths, there)
            found = recover(old.database, new.database, key.key, progress)
    except BaseException:
        for made in (there.directory, there.settings_directory):
            shutil.rmtree(made, ignore_errors=True)
        raise
    return RecoveredProfile(paths=there, found=found)


def _copy_settings(paths: ProfilePaths, there: ProfilePaths) -> None:
    try:
        if paths.settings_file.exists():
            _copy(paths.settings_file, there.settings_file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot write {there.directory}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{there.directory}: {reason}") from error


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o600)


def recover_in_window(paths: ProfilePaths, key: DatabaseKey | None = None) -> RecoveredProfile:
    """With a window that shows how far it is, and stops it when it is closed."""
    made: list[RecoveredProfile] = []

    async def run() -> int:
        with Interrupts() as interrupts:
            shown = CarryingOver(UiSettings(), interrupts, is_recovery=True)
            try:
                made.append(
                    await asyncio.to_thread(
                        recover_profile,
                        paths,
                        shown.progress,
                        day=time.strftime("%Y-%m-%d"),
                        key=key,
                    )
                )
            finally:
                shown.end()
        return 0

    run_on_qt(run)
    return made[0]
