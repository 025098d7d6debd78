"""Repairs a damaged profile: in a window, and as ``causerie salvage`` without one.

What can be read takes the damaged database's place (``engine.persistence.salvage``).  No other
program has the profile open meanwhile.
"""

import asyncio
import sys
import time
from argparse import Namespace
from typing import Final

from msgspec import Struct

from chat_app.backing_up import said_on_terminal
from chat_app.passphrase_options import passphrase_source
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.profile_key import key_on_command_line
from engine.core.errors import ConfigError, StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.persistence.carry_over import Progress
from engine.persistence.database import damaged_pages, open_readonly
from engine.persistence.file_damage import examine_files, require_what_was_there
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.salvage import Salvaged, finish_salvage, report_lines, salvage

_NS_PER_MS: Final = 1_000_000
_DAMAGE: Final = frozenset({StorageFault.DAMAGED, StorageFault.NOT_DECRYPTED})


class SalvagedProfile(Struct, frozen=True, kw_only=True):
    paths: ProfilePaths
    salvaged: Salvaged


def salvage_profile(
    paths: ProfilePaths, progress: Progress, *, day: str, key: DatabaseKey | None = None
) -> SalvagedProfile:
    """``key``: of the profile, if it was had already.

    Raises StorageError; the profile is as it was then.
    """
    directory = open_profile_directory(paths.directory)
    with ProfileLock(directory):
        finish_salvage(directory)
        _require_database(directory)
        key = key or obtain_database_key(directory)
        return SalvagedProfile(paths=paths, salvaged=_salvage(directory, key, progress, day))


def _require_database(directory: ProfileDirectory) -> None:
    """Or a key would be made.  Raises StorageError."""
    require_what_was_there(directory)
    if not directory.has_database():
        raise StorageError(f"There is no database in {directory.path}.")


def _salvage(
    directory: ProfileDirectory, key: DatabaseKey, progress: Progress, day: str
) -> Salvaged:
    now_ms = UnixMs(time.time_ns() // _NS_PER_MS)
    return salvage(directory, key.key, progress, day=day, now_ms=now_ms)


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def salvage_in_window(paths: ProfilePaths, key: DatabaseKey | None = None) -> SalvagedProfile:
    """With a window that shows how far it is, and stops it when it is closed."""
    from chat_app.carrying_over import CarryingOver  # noqa: PLC0415 - the command needs no Qt
    from chat_app.interrupts import Interrupts  # noqa: PLC0415 - as above
    from chat_app.qt_loop import run_on_qt  # noqa: PLC0415 - as above
    from ui.settings import UiSettings  # noqa: PLC0415 - as above

    made: list[SalvagedProfile] = []

    async def run() -> int:
        with Interrupts() as interrupts:
            shown = CarryingOver(UiSettings(), interrupts, is_salvage=True)
            try:
                made.append(
                    await asyncio.to_thread(
                        salvage_profile, paths, shown.progress, day=_today(), key=key
                    )
                )
            finally:
                shown.end()
        return 0

    run_on_qt(run)
    return made[0]


def salvage_command(asked: Namespace) -> int:
    """``causerie salvage``: exit status 0 if nothing is gone, 1 if something is."""
    paths = profile_paths(asked.profile, asked.profile_dir)
    if not paths.directory.is_dir():
        raise ConfigError(f"there is no profile in {paths.directory}")
    directory = open_profile_directory(paths.directory)
    with ProfileLock(directory):
        finish_salvage(directory)
        _require_database(directory)
        key = key_on_command_line(directory, passphrase_source(asked))
        if _is_whole(directory, key):
            sys.stdout.write("No damage was found; nothing was changed.\n")
            return 0
        made = _salvage(directory, key, said_on_terminal(), _today())
    sys.stdout.write("\n".join(report_lines(made.found)) + "\n")
    sys.stdout.write(f"The damaged database is kept as {made.damaged}, this report beside it.\n")
    return 0 if made.found.is_all else 1


def _is_whole(directory: ProfileDirectory, key: DatabaseKey) -> bool:
    """Raises StorageError for what is no damage."""
    try:
        if not examine_files(directory.database, key.key).is_whole:
            return False
        connection = open_readonly(directory.database, key.key)
        try:
            return not damaged_pages(connection)
        finally:
            connection.close()
    except StorageError as error:
        if error.fault in _DAMAGE:
            return False
        raise
