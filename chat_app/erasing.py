"""Erases a profile: for the window, which has closed for it, and for the command line.

What a killed process began, the next start of the window finishes, and so does the command.  The
start with the session goes, too, if it is of this profile.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence

from chat_app.autostart import autostart_here, start_command
from chat_app.paths import ProfilePaths, profile_paths
from engine.core.errors import ConfigError, StorageError, StorageFault
from engine.persistence.erase import Erased, ErasePlace, erase
from engine.persistence.profile_directory import is_being_erased


def erase_profile(paths: ProfilePaths, command: Sequence[str]) -> Erased:
    """``command`` starts it with the session; empty: none does.

    Raises StorageError, as if it is open, and ConfigError.
    """
    is_own = paths.directory != paths.settings_directory
    erased = erase(
        ErasePlace(directory=paths.directory, settings=paths.settings_directory, is_own=is_own)
    )
    if command:
        autostart_here(command).switch(on=False)
    return erased


def erase_command(asked: Namespace) -> int:
    """``causerie erase``: asks for the profile's name, or reads it from standard input."""
    paths = profile_paths(asked.profile, asked.profile_dir)
    if not paths.directory.is_dir():
        raise StorageError(f"There is no profile in {paths.directory}.", StorageFault.OTHER)
    if not is_being_erased(paths.directory):
        _require_name(paths)
    erased = erase_profile(paths, start_command(asked.profile, asked.profile_dir))
    sys.stdout.write(
        f"The profile {paths.name} is erased from this device. Others keep what you wrote to them,"
        " and backups and exports stay where they are.\n"
    )
    for path in erased.stayed:
        sys.stdout.write(f"Stays, as it is not Causerie's or could not be removed: {path}\n")
    if erased.keyring_entry:
        sys.stdout.write(
            "The keyring did not give up its entry, which opens nothing any more:"
            f' service "Causerie", account "{erased.keyring_entry}"\n'
        )
    return 0


def _require_name(paths: ProfilePaths) -> None:
    if sys.stdin.isatty():
        sys.stdout.write(
            f"This erases the profile in {paths.directory}: identity, messages, files, settings. It"
            " cannot be undone. Backups stay where they are.\n"
            f"Type its name ({paths.name}) to go on: "
        )
        sys.stdout.flush()
    if sys.stdin.readline(256).rstrip("\r\n") != paths.name:
        raise ConfigError(f"that is not the profile's name ({paths.name}); nothing was erased")
