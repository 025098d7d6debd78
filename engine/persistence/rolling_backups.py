"""Makes a backup in the folder of those that are made by themselves, and deletes old ones.

A backup gets a name that nothing has in the folder, and counts once it was read again whole
(``backup``).  Only then are older ones deleted, and of these only files that this profile made and
that nobody has touched: each is remembered with what is random in its header.  A folder that is
not there is not made anew, since it may be on a stick; nor is one used whose disk is missing.
"""

import errno
import json
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.core.backup import FILE_SALT_BYTES, Cost
from engine.core.errors import BackupError, BackupFlaw, StorageError
from engine.core.ids import UnixMs
from engine.core.rolling_backups import MAX_REMEMBERED, Kept, RollingBackup, to_let_go
from engine.crypto.backup import BackupSecret
from engine.persistence.backup import BackupMade, BackupSource, require_outside, write_backup
from engine.persistence.backup_file import not_written, read_backup_header
from engine.persistence.carry_over import Progress

ENDING: Final = ".causerie-backup"
STATE_KEY: Final = "backup.rolling"
"""Of the value in the profile's database that holds a RollingState."""


class RollingState(Struct, frozen=True, kw_only=True):
    """What the profile remembers of its backups; a restored profile begins with none of it."""

    secret: BackupSecret | None = None
    """Made of the passphrase, which is kept nowhere; None: none was given yet."""
    made: tuple[RollingBackup, ...] = ()
    """In the order of making."""
    unsure: RollingBackup | None = None
    """Begun, and not known to be finished: the process may have been killed."""
    disk: tuple[str, str] = ("", "")
    """The folder of the last one, and what its disk was mounted at."""
    last_good_ms: int = 0
    """When the last backup was made, by itself or by the user; 0: none is known."""
    since_ms: int = 0
    """When this device began to count."""


class _Written(Struct, kw_only=True):
    """A state as text: bytes as hexadecimal digits."""

    cost: Cost | None = None
    salt: str = ""
    secret: str = ""
    made: tuple[RollingBackup, ...] = ()
    unsure: RollingBackup | None = None
    disk: tuple[str, str] = ("", "")
    last_good_ms: int = 0
    since_ms: int = 0


def state_text(state: RollingState) -> str:
    secret = state.secret
    written = _Written(
        cost=None if secret is None else secret.cost,
        salt="" if secret is None else secret.salt.hex(),
        secret="" if secret is None else secret.secret.hex(),
        made=state.made,
        unsure=state.unsure,
        disk=state.disk,
        last_good_ms=state.last_good_ms,
        since_ms=state.since_ms,
    )
    return json.dumps(msgspec.to_builtins(written))


def parse_state(text: str | None) -> RollingState:
    """An empty one if it is none, or not of this version: then the passphrase is asked for anew."""
    try:
        written = msgspec.json.decode(text or "{}", type=_Written)
        secret = None
        if written.cost is not None and written.cost.is_allowed:
            secret = BackupSecret(
                cost=written.cost,
                salt=bytes.fromhex(written.salt),
                secret=bytes.fromhex(written.secret),
            )
    except (msgspec.DecodeError, ValueError):
        return RollingState()
    return RollingState(
        secret=secret,
        made=written.made[-MAX_REMEMBERED:],
        unsure=written.unsure,
        disk=written.disk,
        last_good_ms=written.last_good_ms,
        since_ms=written.since_ms,
    )


def require_folder(source: BackupSource, folder: Path, state: RollingState) -> None:
    """Raises BackupError if it is not there, or lies inside the profile."""
    of, mounted_at = state.disk
    is_gone = not os.path.isdir(folder)  # noqa: PTH112 - one that may not be looked at is none
    if of == str(folder) and mounted_at and not os.path.ismount(mounted_at):
        is_gone = True  # What is there now is an empty place for a disk.
    if is_gone:
        raise BackupError(BackupFlaw.FOLDER_GONE, f"{folder} is not there.", str(folder))
    require_outside(source, folder / ENDING)


def in_folder(made: Sequence[RollingBackup], folder: Path) -> list[RollingBackup]:
    return [backup for backup in made if Path(backup.path).parent == folder]


class Day(Struct, frozen=True, kw_only=True):
    """When a backup is made."""

    now_ms: UnixMs
    day: str
    week: str


class RollingWork(Struct, frozen=True, kw_only=True):
    source: BackupSource
    folder: Path
    name: str
    """What the files are called, before the day."""
    secret: BackupSecret
    kept: Kept


def make_rolling(
    work: RollingWork,
    state: RollingState,
    today: Day,
    *,
    save: Callable[[RollingState], None],
    progress: Progress,
) -> BackupMade:
    """``save`` makes a state durable; it is called before, after, and once old ones are gone.

    Raises BackupError and StorageError; then what was there is still there.
    """
    require_folder(work.source, work.folder, state)
    salt = secrets.token_bytes(FILE_SALT_BYTES)
    target = _free_name(work, today)
    begun = RollingBackup(path=str(target), mark=salt.hex(), day=today.day, week=today.week)
    state = replace(with_unsure(state), unsure=begun)
    save(state)
    made = write_backup(
        work.source,
        target,
        work.secret,
        created_ms=today.now_ms,
        progress=_while_free(target, progress),
        file_salt=salt,
    )
    state = replace(
        state,
        made=(*state.made, begun)[-MAX_REMEMBERED:],
        unsure=None,
        disk=(str(work.folder), mount_of(work.folder)),
        last_good_ms=today.now_ms,
    )
    save(state)
    # What the user removed or replaced must not take the place of one that is still there.
    here = in_folder(state.made, work.folder)
    ours = [backup for backup in here if backup is begun or _is_ours(backup)]
    gone = [backup for backup in here if backup not in ours]
    gone += _delete(to_let_go(ours, work.kept))
    if gone:
        save(replace(state, made=tuple(each for each in state.made if each not in gone)))
    return made


def with_unsure(state: RollingState) -> RollingState:
    """What was begun counts if it got its name: it was checked before that."""
    if state.unsure is None:
        return state
    is_made = _is_ours(state.unsure)
    made = (*state.made, state.unsure) if is_made else state.made
    return replace(state, unsure=None, made=made)


def _free_name(work: RollingWork, today: Day) -> Path:
    number, start = 1, f"causerie-{work.name}-{today.day}"
    path = work.folder / f"{start}{ENDING}"
    while os.path.lexists(path):
        number += 1
        path = work.folder / f"{start}-{number}{ENDING}"
    return path


def _while_free(target: Path, progress: Progress) -> Progress:
    """Another device may share the folder and take the name meanwhile: its file is not replaced."""

    def goes_on(share: float) -> bool:
        if share < 1.0 and os.path.lexists(target):
            raise not_written(FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))
        return progress(share)

    return goes_on


def mount_of(folder: Path) -> str:
    """The disk that the folder is on; "" if it is that of the system."""
    place = folder.absolute()
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return "" if place == place.parent else str(place)


def _is_ours(backup: RollingBackup) -> bool:
    """The very file that was made; a link is not, whatever it leads to.

    Nor is one that cannot be looked at: a disk that answers with errors ends nothing here.
    """
    path = Path(backup.path)
    try:
        if path.is_symlink() or not path.is_file():
            return False
        return read_backup_header(path).file_salt.hex() == backup.mark
    except (BackupError, StorageError, OSError):
        return False


def _delete(going: Sequence[RollingBackup]) -> list[RollingBackup]:
    """Those that need no longer be remembered: deleted, or not ours any more."""
    gone: list[RollingBackup] = []
    for backup in going:
        try:
            if _is_ours(backup):
                Path(backup.path).unlink()
        except OSError:  # Another time, perhaps.
            continue
        gone.append(backup)
    return gone
