"""Erases a profile from this device: first what opens its database, then all that is its own.

A mark in the directory is durable before anything goes and goes last but one: whoever finds it
finishes (``profile_directory``).  Links are removed and never followed.  Of a directory that holds
nothing but the profile everything goes; of one that the user chose, only what has a name of ours.
What stays elsewhere (copies of others, backups, exports) is not looked for.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.core.key_header import WayKind
from engine.persistence.key import read_account
from engine.persistence.key_header_file import read_key_header
from engine.persistence.key_places import forget_in_keyring
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, sync_directory

_OURS: Final = re.compile(
    r"(causerie|archive)\.db([-.](wal|shm|journal|backup|unfinished|before|damaged|salvaged|tables).*)?"
    r"|window\.(json(\.new)?|socket)|settings(\.(from-backup|set-aside-[0-9-]+))?\.toml(\.\d*\.?new)?"
    r"|database\.(key|keys|keys\.copy|secret)\.new|keyring\.account\.new|database\.keys\.before-\d+(\.new)?"
    r"|node\.(key|port)(\.new)?|causerie\.beginning\.new|\.writable-\d+"
)
"""Besides the names that ``ProfileDirectory`` has."""
_CHUNKS: Final = re.compile(r"[0-9a-f]{64}((\.\d+)?\.new)?")
_INSIDE: Final = {
    "logs": re.compile(r"causerie\.log(\.\d+)?"),
    "delivery": re.compile(r".+\.(delivery\.db(-(wal|shm|journal))?|snapshot-wanted)"),
    "blobs": _CHUNKS,
    "kept": _CHUNKS,
}
"""Names that the user's own directories may have as well: what is ours in them."""
_OPENS: Final = re.compile(r".*(key|secret|unlock).*")
_DATABASE: Final = re.compile(r"causerie\.db.*")


class ErasePlace(Struct, frozen=True, kw_only=True):
    directory: Path
    settings: Path
    """The directory of the settings; it may be the same."""
    is_own: bool
    """Nobody else has anything in these directories."""


class Erased(Struct, frozen=True, kw_only=True):
    """``stayed``: what is not ours, or what could not be removed."""

    stayed: tuple[str, ...] = ()
    keyring_entry: str = ""
    """That the keyring would not give up; without the database it opens nothing."""


def erase(place: ErasePlace) -> Erased:
    """Again and again until nothing is left: also after a process that was killed at it.

    Raises ProfileInUseError if it is open, and StorageError if the database or what opens it could
    not be removed.
    """
    directory = ProfileDirectory(place.directory)
    with ProfileLock(directory):
        try:
            _mark(directory)
            entry = _forget_keyring(directory)
            stayed: list[str] = []
            for what in (_OPENS, _DATABASE):
                found = _in(directory.path, all_of_it=place.is_own)
                _remove([path for path in found if what.fullmatch(path.name)], must=True)
            rest = _rest(directory, place)
            stayed += _remove(rest, must=False)
            emptied = {path.parent for path in rest} | {directory.path / name for name in _INSIDE}
            for path in sorted(emptied - {directory.path}, reverse=True):
                if not path.is_symlink():
                    _remove_empty(path)
            if place.settings != place.directory and place.settings.is_dir():
                stayed += _remove(_in(place.settings, all_of_it=place.is_own), must=False)
                _remove_empty(place.settings)
            directory.erasing.unlink()
            sync_directory(place.directory)
        except OSError as error:
            raise _not_erased(place.directory, error) from error
    directory.lock_file.unlink(missing_ok=True)
    _remove_empty(place.directory)
    stayed += [str(path) for path in _left(place)]
    return Erased(stayed=tuple(dict.fromkeys(stayed)), keyring_entry=entry)


def _mark(directory: ProfileDirectory) -> None:
    mark = directory.erasing
    if mark.is_symlink():  # Whoever made it wants something else written.
        mark.unlink()
    descriptor = os.open(mark, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(directory.path)


def _forget_keyring(directory: ProfileDirectory) -> str:
    """The entry's name if it is still there."""
    left = [name for name in _keyring_entries(directory) if not forget_in_keyring(name)]
    return left[0] if left else ""


def _keyring_entries(directory: ProfileDirectory) -> Iterator[str]:
    """Of the key header, and of a profile from before there was one."""
    with suppress(StorageError):
        header = read_key_header(directory)
        place = None if header is None else header.place
        if place is not None and place.kind is WayKind.KEYRING:
            yield place.name.hex()
    with suppress(StorageError):
        account = read_account(directory)
        if account:
            yield account


def _rest(directory: ProfileDirectory, place: ErasePlace) -> list[Path]:
    kept = {directory.erasing.name, directory.lock_file.name}
    found = _in(directory.path, all_of_it=place.is_own)
    return [path for path in found if path.name not in kept]


def _in(directory: Path, *, all_of_it: bool) -> list[Path]:
    found: list[Path] = []
    for path in sorted(directory.iterdir()):
        inside = None if all_of_it or path.is_symlink() else _INSIDE.get(path.name)
        if inside is not None and path.is_dir():
            files = (Path(at, name) for at, _, names in os.walk(path) for name in names)
            found += [each for each in sorted(files) if inside.fullmatch(each.name)]
        elif all_of_it or path.name in _NAMED or _OURS.fullmatch(path.name):
            found.append(path)
    return found


_NAMED: Final = frozenset(
    getattr(ProfileDirectory(Path("x")), name).name
    for name, part in vars(ProfileDirectory).items()
    if isinstance(part, property)
)


def _remove(paths: Sequence[Path], *, must: bool) -> list[str]:
    """Those that could not be removed; with ``must`` that raises OSError."""
    left: list[str] = []
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)  # Removes links in it, and follows none.
            else:
                path.unlink(missing_ok=True)
        except OSError:
            if must:
                raise
            left.append(str(path))
    return left


def _remove_empty(directory: Path) -> None:
    """A link to it, too, if the profile was moved and linked."""
    try:
        place = directory.resolve()
        place.rmdir()
        if directory.is_symlink():
            directory.unlink()
    except OSError:
        return


def _left(place: ErasePlace) -> Iterator[Path]:
    for directory in dict.fromkeys((place.directory, place.settings)):
        if directory.is_dir():
            yield from sorted(directory.iterdir())


def _not_erased(directory: Path, error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    return StorageError(
        f"Not all of {directory} could be erased: {reason}. Start again to go on with it.",
        StorageFault.NOT_ERASED,
        f"{directory}: {reason}",
    )
