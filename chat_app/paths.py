"""Where a profile lives on this machine.

A profile is a person on this device: messages and keys in the profile directory, settings in the
settings directory, both where the platform keeps such things.  ``--profile-dir`` puts everything
into one directory instead, which may lie on a stick.  Nothing here touches the disk: the engine
makes the directory, and makes it private.
"""

import re
from pathlib import Path
from typing import Final

import platformdirs
from msgspec import Struct

from engine.core.errors import ConfigError

APPLICATION: Final = "causerie"
DEFAULT_PROFILE: Final = "default"
_MOST_OF_A_NAME: Final = 18
"""Characters, so that with all that follows it is a name of a profile."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,40}")
# Windows takes these for devices, whatever follows the first dot.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


class ProfilePaths(Struct, frozen=True, kw_only=True):
    """``name`` is for people: window titles, logs, complaints."""

    name: str
    directory: Path
    settings_directory: Path

    @property
    def settings_file(self) -> Path:
        return self.settings_directory / "settings.toml"

    @property
    def log_directory(self) -> Path:
        return self.directory / "logs"

    @property
    def delivery_directory(self) -> Path:
        """Where deliveries are recorded, unless the command line says where."""
        return self.directory / "delivery"


def check_profile_name(name: str) -> str:
    """The name itself.  Raises ConfigError: it becomes a directory on any platform."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"--profile {name[:60]!r}: a profile's name is 1 to 40 of the characters"
            " A-Z a-z 0-9 . _ -"
        )
    if name.startswith((".", "-")) or name.endswith(".") or _DEVICES.fullmatch(name):
        raise ConfigError(
            f"--profile {name}: a profile's name cannot start with . or -, end with . or be a"
            " device's name"
        )
    return name


def profile_paths(name: str | None = None, directory: Path | None = None) -> ProfilePaths:
    """Paths of the profile ``name``, or of the one in ``directory``.  Raises ConfigError."""
    if directory is not None:
        if name is not None:
            raise ConfigError("--profile and --profile-dir: give one of them, not both")
        place = directory.expanduser().absolute()
        return ProfilePaths(
            name=place.name or str(place), directory=place, settings_directory=place
        )
    checked = check_profile_name(DEFAULT_PROFILE if name is None else name)
    return ProfilePaths(
        name=checked,
        directory=platformdirs.user_data_path(APPLICATION, appauthor=False) / "profiles" / checked,
        settings_directory=platformdirs.user_config_path(APPLICATION, appauthor=False)
        / "profiles"
        / checked,
    )


def paths_beside(paths: ProfilePaths, ending: str) -> ProfilePaths:
    """Of a profile that is not there yet, named after another one."""
    first = f"{paths.name[:_MOST_OF_A_NAME]}-{ending}"
    there, number = _beside(paths, first), 1
    while there.directory.exists() or there.settings_directory.exists():
        number += 1
        there = _beside(paths, f"{first}-{number}")
    return there


def _beside(paths: ProfilePaths, name: str) -> ProfilePaths:
    directory = paths.directory.with_name(name)
    own_place = paths.settings_directory == paths.directory
    settings = directory if own_place else paths.settings_directory.with_name(name)
    return ProfilePaths(name=name, directory=directory, settings_directory=settings)
