"""Makes a backup of a profile: for the window that has it open, and for the command line.

Both read the profile through a connection of their own, so it may be open and in use.
"""

import asyncio
import getpass
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from platformdirs import user_documents_path

from chat_app.passphrase_options import passphrase_source
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.profile_key import key_on_command_line
from chat_app.version import version
from engine.core.backup import MAX_PASSPHRASE_CHARACTERS
from engine.core.errors import BackupError, BackupFlaw, ConfigError, StorageError
from engine.core.ids import UnixMs
from engine.persistence.backup import BackupMade, BackupSource, new_secret, write_backup
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.rolling_backups import ENDING
from ui.backup_port import BackupDone, Follow, GoesOn

R = TypeVar("R")

WINDOW_FILE: Final = "window.json"
_NS_PER_MS: Final = 1_000_000
_MEGABYTE: Final = 1_000_000


def make_backup(
    paths: ProfilePaths,
    target: Path,
    passphrase: str,
    progress: Progress = unheard,
    *,
    key: DatabaseKey | None = None,
) -> BackupMade:
    """``key``: of the database, if it was had already.

    Raises BackupError and StorageError; what was at ``target`` is still there then.
    """
    source = source_of(paths, key)
    now_ms = UnixMs(time.time_ns() // _NS_PER_MS)
    secret = new_secret(passphrase)
    return write_backup(source, target, secret, created_ms=now_ms, progress=progress)


def source_of(paths: ProfilePaths, key: DatabaseKey | None = None) -> BackupSource:
    """May ask the keyring, unless the key was had already.  Raises StorageError."""
    directory = ProfileDirectory(paths.directory)
    if not directory.has_database():
        raise StorageError(f"There is no profile in {paths.directory}.")
    return BackupSource(
        directory=directory,
        key=(key or obtain_database_key(directory)).key,
        settings=paths.settings_file,
        window=paths.directory / WINDOW_FILE,
        app_version=version(),
    )


async def on_a_thread(work: Callable[[Progress], R], follow: Follow, goes_on: GoesOn) -> R:
    """Return what ``work`` returns; cancelling this stops it soon."""
    loop, is_wanted = asyncio.get_running_loop(), True

    def progress(share: float) -> bool:
        loop.call_soon_threadsafe(follow, share)
        return is_wanted and goes_on()

    try:
        return await asyncio.to_thread(work, progress)
    finally:
        is_wanted = False


class WindowBackups:
    """A ``ui.backup_port.BackupPort``."""

    def __init__(
        self,
        paths: ProfilePaths,
        told: Callable[[], Awaitable[None]] | None = None,
        *,
        key: DatabaseKey | None = None,
    ) -> None:
        """``told`` is called when a backup was made; ``key``: of the database, if it was had."""
        self._paths = paths
        self._told = told
        self._key = key

    def suggestion(self) -> Path:
        name = f"causerie-{self._paths.name}-{time.strftime('%Y-%m-%d')}{ENDING}"
        documents = user_documents_path()
        return (documents if documents.is_dir() else Path.home()) / name

    async def make(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> BackupDone:
        work = partial(make_backup, self._paths, path, passphrase, key=self._key)
        made = await on_a_thread(work, follow, goes_on)
        if self._told is not None:
            await self._told()
        return BackupDone(path=made.path, size=made.size, left_out=made.left_out)


# --- the command line -----------------------------------------------------------------------------


def back_up(asked: Namespace) -> int:
    """``causerie backup FILE``."""
    paths = profile_paths(asked.profile, asked.profile_dir)
    target: Path = asked.file.expanduser().absolute()
    if target.exists():
        raise BackupError(
            BackupFlaw.FILE_THERE, f"{target} is there already; give another name.", str(target)
        )
    directory = ProfileDirectory(paths.directory)
    source = passphrase_source(asked)
    key = key_on_command_line(directory, source) if directory.has_database() else None
    passphrase = read_passphrase(asked.passphrase_file, twice=True)
    made = make_backup(paths, target, passphrase, said_on_terminal(), key=key)
    sys.stdout.write(
        f"{made.path}: {made.size / _MEGABYTE:.1f} MB, {made.files} parts of files. It was read"
        " again and is whole.\n"
    )
    if made.left_out:
        sys.stdout.write(f"Parts of files left out, damaged here or unreadable: {made.left_out}.\n")
    return 0


def read_passphrase(file: Path | None, *, twice: bool) -> str:
    """From the first line of a file or of standard input, or asked for on a terminal.

    Raises ConfigError.
    """
    if file is not None:
        try:
            with file.open(encoding="utf-8") as opened:
                line = opened.readline(MAX_PASSPHRASE_CHARACTERS + 2)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--passphrase-file: {file} cannot be read") from error
        return line.rstrip("\r\n")
    if not sys.stdin.isatty():
        return sys.stdin.readline(MAX_PASSPHRASE_CHARACTERS + 2).rstrip("\r\n")
    passphrase = getpass.getpass("Passphrase of the backup: ")
    if twice and passphrase != getpass.getpass("The same again: "):
        raise ConfigError("the two passphrases are not the same")
    return passphrase


def said_on_terminal() -> Callable[[float], bool]:
    """Progress that writes each tenth to standard error, if somebody looks."""
    if not sys.stderr.isatty():
        return unheard
    told = 0

    def progress(share: float) -> bool:
        nonlocal told
        if int(share * 10) > told:
            told = int(share * 10)
            sys.stderr.write(f"{told * 10} %\n")
        return True

    return progress
