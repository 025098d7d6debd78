"""Restores a backup: in a window of its own, and on the command line.

At a first start it takes the place of the profile that nobody has named yet.  Beside one that
cannot be opened it makes a profile with a name of its own.
"""

import asyncio
import shutil
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path

from chat_app.backing_up import WINDOW_FILE, on_a_thread, read_passphrase, said_on_terminal
from chat_app.interrupts import Interrupts, closed_or_interrupted
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.settings_file import default_text
from chat_app.settings_reading import load_what_is_right
from engine.core.errors import ConfigError
from engine.persistence.backup_file import read_backup_header
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.restore import (
    Restored,
    RestorePlace,
    require_known_schema,
    restore_backup,
)
from ui.backup_port import BackupLooks, Follow, GoesOn, RestoreDone


def restore_into(
    paths: ProfilePaths, file: Path, passphrase: str, progress: Progress = unheard
) -> Restored:
    """Raises BackupError and StorageError; no profile is there then."""
    was_there = paths.directory.exists()
    directory = open_profile_directory(paths.directory)
    with ProfileLock(directory):
        try:
            return restore_backup(file, passphrase, _place(paths, directory), progress)
        except BaseException:
            # Another process may have made a profile here before this one had the lock.
            if not (was_there or directory.has_database()):
                shutil.rmtree(paths.directory, ignore_errors=True)
            raise


def _place(paths: ProfilePaths, directory: ProfileDirectory) -> RestorePlace:
    return RestorePlace(
        directory=directory,
        settings=paths.settings_file,
        default_settings=default_text().encode(),
        window=paths.directory / WINDOW_FILE,
        force_key_file=_wants_key_file(paths.settings_file),
        wants_key_file=_may_want_key_file,
    )


def _wants_key_file(settings: Path) -> bool:
    return settings.exists() and load_what_is_right(settings).settings.storage.key == "file"


def _may_want_key_file(settings: Path) -> bool:
    try:
        return _wants_key_file(settings)
    except ConfigError:
        return True


class WindowRestore:
    """A ``ui.backup_port.RestorePort``."""

    def __init__(self, paths: ProfilePaths) -> None:
        self._paths = paths

    def look_at(self, path: Path) -> BackupLooks:
        header = read_backup_header(path)
        require_known_schema(header)
        return BackupLooks(created_ms=header.created_ms, size=path.stat().st_size)

    async def restore(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> RestoreDone:
        work = partial(restore_into, self._paths, path, passphrase)
        done = await on_a_thread(work, follow, goes_on)
        return RestoreDone(
            settings_beside=str(done.settings_beside or ""), key_storage=done.key_place.value
        )


def restore_in_window(paths: ProfilePaths) -> bool:
    """Whether there is a profile now."""
    from chat_app.qt_loop import run_on_qt  # noqa: PLC0415 - the command line needs no Qt
    from ui.app import build_restoring  # noqa: PLC0415 - as above
    from ui.tasks import Tasks  # noqa: PLC0415 - as above

    answers: list[bool] = []

    async def run() -> int:
        tasks = Tasks()
        window = build_restoring(WindowRestore(paths), tasks)
        closed = asyncio.Event()

        def finish(opens: bool) -> None:
            answers.append(opens)
            closed.set()

        window.finished.connect(finish)
        with Interrupts() as interrupts:
            window.show()
            await closed_or_interrupted(closed, interrupts)
            window.close()
        await tasks.settle()
        window.deleteLater()
        return 0

    run_on_qt(run)
    return any(answers)


def restore(asked: Namespace) -> int:
    """``causerie restore FILE``."""
    paths = profile_paths(asked.profile, asked.profile_dir)
    file: Path = asked.file.expanduser().absolute()
    require_known_schema(read_backup_header(file))
    passphrase = read_passphrase(asked.passphrase_file, twice=False)
    done = restore_into(paths, file, passphrase, said_on_terminal())
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(done.created_ms / 1000))
    sys.stdout.write(
        f"Restored in {paths.directory}, as it was on {made}. Messages to groups since then come"
        " back from others. Use one device only: of two with the same backup each may lack what one"
        " person wrote to you.\n"
    )
    sys.stdout.write(
        f"Its key is in the {done.key_place.value} of this device, whatever protected it before;"
        " a passphrase is set in the window's settings.\n"
    )
    if done.settings_beside is not None:
        sys.stdout.write(f"The settings here stay; the backup's are in {done.settings_beside}.\n")
    return 0
