"""The key of a profile's database: 32 random bytes, to which the key header beside it leads.

The header (``engine.core.key_header``) holds the key sealed for a place, which is the system
keyring or a private file, or for a passphrase, or for both.  Whoever has the place opens the
profile without being asked.  Earlier profiles have no header: there the key itself is in the place;
``key_changes`` carries them over.

A key is made only while there is no database: a changed keyring leads to an error with a remedy,
never to a new key.  The ways to a key are durable before the database is created.  No error text
contains a key.  ``database`` opens the database.
"""

import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from engine.core.errors import StorageError
from engine.core.ids import UnixMs
from engine.core.key_header import KEY_BYTES, NAME_BYTES, KeyHeader, Way, WayKind
from engine.crypto.key_header import (
    header_of,
    is_vouched_for,
    open_passphrase,
    open_place,
    place_way,
)
from engine.persistence.errors import (
    KeyUnavailableError,
    PassphraseNeededError,
    TooSoonError,
    WrongPassphraseError,
)
from engine.persistence.file_damage import require_what_was_there
from engine.persistence.key_header_file import (
    read_key_header,
    set_header_aside,
    write_key_header,
)
from engine.persistence.key_places import (
    KEYRING_SERVICE,
    KeyringFailedError,
    keep_in_keyring,
    read_keyring,
    read_secret_file,
    write_secret_file,
)
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.unlock_attempts import count_attempt, forget_attempts, read_attempts

KEY_FILE_VARIABLE: Final = "CAUSERIE_KEY_FILE"
"""If set to 1, a new profile's key goes to the key file, and the keyring is never used."""

_NS_PER_MS: Final = 1_000_000
_UNTOUCHED: Final = "the database was left untouched."


class KeyPlace(StrEnum):
    """What opened the profile; the value is the label shown to the user."""

    SYSTEM_KEYRING = "system keyring"
    KEY_FILE = "key file"
    PASSPHRASE = "passphrase"  # noqa: S105 - what the user reads


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseKey:
    key: bytes = field(repr=False)
    place: KeyPlace


_PLACES: Final = {
    WayKind.KEYRING: KeyPlace.SYSTEM_KEYRING,
    WayKind.KEY_FILE: KeyPlace.KEY_FILE,
    WayKind.PASSPHRASE: KeyPlace.PASSPHRASE,
}


def place_of(way: Way) -> KeyPlace:
    return _PLACES[way.kind]


def wall_clock_ms() -> UnixMs:
    """What is kept over a restart goes by it; setting it back gains nothing."""
    return UnixMs(time.time_ns() // _NS_PER_MS)


def obtain_database_key(
    directory: ProfileDirectory,
    *,
    force_key_file: bool = False,
    passphrase: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> DatabaseKey:
    """The key of this profile, made now if there is no database yet.

    ``passphrase``: tried if the place does not open the profile.  May block while the desktop asks
    the user to unlock the keyring, and for a passphrase: call it on a thread.

    Raises PassphraseNeededError, WrongPassphraseError, TooSoonError; KeyUnavailableError if an
    existing database's key cannot be read; StorageError if a new one cannot be stored, or the key
    header cannot be read.
    """
    force_key_file = force_key_file or wants_key_file(environment)
    header = read_key_header(directory)
    if header is not None:
        try:
            return _open(directory, header, passphrase, force_key_file=force_key_file)
        except KeyUnavailableError:
            if directory.has_database():
                raise
    elif directory.has_database() or directory.key_file.exists():
        return key_without_header(directory, force_key_file=force_key_file)
    require_what_was_there(directory)
    key = secrets.token_bytes(KEY_BYTES)
    way = new_place(directory, key, force_key_file=force_key_file)
    if header is not None:
        set_header_aside(directory)
    write_key_header(directory, header_of((way,), key))
    return DatabaseKey(key=key, place=place_of(way))


def wants_key_file(environment: Mapping[str, str] = os.environ) -> bool:
    return environment.get(KEY_FILE_VARIABLE, "0") not in ("", "0")


# --- by the header ------------------------------------------------------------------------------


def _open(
    directory: ProfileDirectory,
    header: KeyHeader,
    passphrase: str | None,
    *,
    force_key_file: bool,
) -> DatabaseKey:
    trouble: KeyUnavailableError | None = None
    if header.place is not None:
        try:
            key = key_by_place(directory, header.place, force_key_file=force_key_file)
            return DatabaseKey(key=_vouched(header, key), place=place_of(header.place))
        except KeyUnavailableError as error:
            trouble = error
        key_of_before = _key_of_before(directory, header, force_key_file=force_key_file)
        if key_of_before is not None:
            return key_of_before
    if header.passphrase is None:
        raise trouble or KeyUnavailableError("The key header has no way in.")
    if passphrase is None:
        raise PassphraseNeededError(str(trouble or "")) from trouble
    return DatabaseKey(
        key=key_by_passphrase(directory, header, passphrase), place=KeyPlace.PASSPHRASE
    )


def key_by_place(directory: ProfileDirectory, way: Way, *, force_key_file: bool) -> bytes:
    """Raises KeyUnavailableError."""
    if way.kind is WayKind.KEY_FILE:
        secret, where = read_secret_file(directory.place_secret), str(directory.place_secret)
        if secret is None:
            raise KeyUnavailableError(
                f"The key of this profile is lost: {where} is missing. Restore the missing file "
                f"from a backup; {_UNTOUCHED}"
            )
    else:
        secret = _secret_in_keyring(way.name.hex(), force_key_file=force_key_file)
        where = "in the keyring"
    key = open_place(way, secret)
    if key is None:
        raise KeyUnavailableError(
            f"The secret {where} does not open this profile: it is another one's, or of another "
            f"time. Restore the right one from a backup; {_UNTOUCHED}"
        )
    return key


def key_by_passphrase(directory: ProfileDirectory, header: KeyHeader, passphrase: str) -> bytes:
    """Takes what a passphrase costs.  Raises WrongPassphraseError, TooSoonError, StorageError."""
    if header.passphrase is None:
        raise KeyUnavailableError("This profile has no passphrase.")
    now_ms = wall_clock_ms()
    attempts = read_attempts(directory, now_ms)
    if wait_ms := attempts.wait_ms(now_ms):
        raise TooSoonError(wait_ms)
    count_attempt(directory, attempts, now_ms)
    key = open_passphrase(header.passphrase, passphrase)
    if key is None:
        raise WrongPassphraseError
    forget_attempts(directory)
    return _vouched(header, key)


def _vouched(header: KeyHeader, key: bytes) -> bytes:
    if not is_vouched_for(header, key):
        raise KeyUnavailableError(
            "The key header was changed by somebody who does not have the key. Put a copy of the "
            f"file back, or restore a backup; {_UNTOUCHED}"
        )
    return key


def _key_of_before(
    directory: ProfileDirectory, header: KeyHeader, *, force_key_file: bool
) -> DatabaseKey | None:
    """Where the key itself still lies, if the header's place proves not to keep what it took."""
    if not (directory.key_file.exists() or directory.keyring_account.exists()):
        return None
    try:
        found = key_without_header(directory, force_key_file=force_key_file)
    except KeyUnavailableError:
        return None
    return found if is_vouched_for(header, found.key) else None


# --- places -------------------------------------------------------------------------------------


def new_place(
    directory: ProfileDirectory,
    key: bytes,
    *,
    force_key_file: bool,
) -> Way:
    """A fresh secret, durable and read back, in the keyring or, if none works, in the file.

    No header may lead to the file just now.  Raises StorageError.
    """
    name, secret = secrets.token_bytes(NAME_BYTES), secrets.token_bytes(KEY_BYTES)
    if not force_key_file and _keep_in_keyring(name, secret):
        return place_way(WayKind.KEYRING, name, secret, key)
    write_secret_file(directory.place_secret, secret)
    return place_way(WayKind.KEY_FILE, name, secret, key)


def _keep_in_keyring(name: bytes, secret: bytes) -> bool:
    """The entry has a random name, not the profile's: directories are moved and names reused."""
    try:
        return keep_in_keyring(name.hex(), secret)
    except KeyringFailedError as error:
        if error.locked:
            raise StorageError(
                "The system keyring is locked. Unlock it and start again, or choose the key file "
                f"({KEY_FILE_VARIABLE}=1)."
            ) from error
        return False


def _secret_in_keyring(account: str, *, force_key_file: bool) -> bytes:
    if force_key_file:
        raise KeyUnavailableError(
            "The key of this profile is in the system keyring, and the settings forbid to ask it. "
            f"Allow it (unset {KEY_FILE_VARIABLE} and the setting of the key file) and start again."
        )
    try:
        secret = read_keyring(account)
    except KeyringFailedError as error:
        remedy = "Unlock it" if error.locked else "Start the keyring that was used before"
        raise KeyUnavailableError(
            f"The key of this profile is in the system keyring, which cannot be asked ({error}). "
            f"{remedy} and start again; {_UNTOUCHED}"
        ) from error
    if secret is None:
        raise KeyUnavailableError(
            "The key of this profile is not in the keyring (service "
            f'"{KEYRING_SERVICE}", account "{account}"). Was the keyring reset, or another user '
            f"logged in? Restore the keyring from a backup and start again; {_UNTOUCHED}"
        )
    return secret


# --- earlier profiles ---------------------------------------------------------------------------


def key_without_header(directory: ProfileDirectory, *, force_key_file: bool) -> DatabaseKey:
    """Of a profile whose key itself is in the place.  Raises KeyUnavailableError."""
    from_file = read_secret_file(directory.key_file)
    if from_file is not None:
        return DatabaseKey(key=from_file, place=KeyPlace.KEY_FILE)
    account = read_account(directory)
    if account is None:
        names = f"{directory.key_header.name}, {directory.key_file.name}"
        raise KeyUnavailableError(
            f"The key of this profile is lost: {directory.path} holds a database, but neither "
            f"{names} nor {directory.keyring_account.name}. "
            f"Restore the missing file from a backup; {_UNTOUCHED}"
        )
    key = _secret_in_keyring(account, force_key_file=force_key_file)
    return DatabaseKey(key=key, place=KeyPlace.SYSTEM_KEYRING)


def read_account(directory: ProfileDirectory) -> str | None:
    """Of the keyring's entry that has the key itself."""
    try:
        account = directory.keyring_account.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnavailableError(f"Cannot read {directory.keyring_account}.") from error
    return account or None
