"""The key of a profile's database: 32 random bytes, in the system keyring or in a key file.

The keyring is the operating system's (keyring library).  Without one, as on a machine without a
desktop, the key is in a 0600 file next to the database.  That protects a copied or stolen database
only if the key file was not copied with it, so the user is shown where the key is.

A key is made only while there is no database: a changed keyring leads to an error with a remedy,
never to a new key.  The key is durable before the database is created.  No error text contains a
key.  ``database`` opens the database.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import keyring
from keyring.errors import KeyringLocked

from engine.core.errors import StorageError
from engine.persistence.errors import KeyUnavailableError
from engine.persistence.profile_directory import ProfileDirectory, write_private_file

KEY_BYTES: Final = 32
KEYRING_SERVICE: Final = "Causerie"
KEY_FILE_VARIABLE: Final = "CAUSERIE_KEY_FILE"
"""If set to 1, a new profile's key goes to the key file, and the keyring is never used."""

_ACCOUNT_BYTES: Final = 16


class KeyPlace(StrEnum):
    """Where the key is stored; the value is the label shown to the user."""

    SYSTEM_KEYRING = "system keyring"
    KEY_FILE = "key file"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseKey:
    key: bytes = field(repr=False)
    place: KeyPlace


class _KeyringFailedError(Exception):
    """The keyring cannot be used; ``locked`` if the user may still unlock it."""

    def __init__(self, reason: str, *, locked: bool) -> None:
        super().__init__(reason)
        self.locked = locked


def obtain_database_key(
    directory: ProfileDirectory,
    *,
    force_key_file: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> DatabaseKey:
    """The key of this profile, made now if there is no database yet.

    May block while the desktop asks the user to unlock the keyring: call it on a thread.  Raises
    KeyUnavailableError if an existing database's key cannot be read, StorageError if a new one
    cannot be stored.
    """
    force_key_file = force_key_file or environment.get(KEY_FILE_VARIABLE, "0") not in ("", "0")
    from_file = _read_key_file(directory)
    if from_file is not None:
        return DatabaseKey(key=from_file, place=KeyPlace.KEY_FILE)
    if directory.has_database():
        return _key_of_existing_database(directory, force_key_file=force_key_file)
    if not force_key_file:
        in_keyring = _make_key_in_keyring(directory)
        if in_keyring is not None:
            return DatabaseKey(key=in_keyring, place=KeyPlace.SYSTEM_KEYRING)
    return DatabaseKey(key=_make_key_file(directory), place=KeyPlace.KEY_FILE)


def _key_of_existing_database(directory: ProfileDirectory, *, force_key_file: bool) -> DatabaseKey:
    account = _read_account(directory)
    if account is None:
        raise KeyUnavailableError(
            f"The key of this profile is lost: {directory.path} holds a database, but neither "
            f"{directory.key_file.name} nor {directory.keyring_account.name}. "
            "Restore the missing file from a backup; the database was left untouched."
        )
    if force_key_file:
        raise KeyUnavailableError(
            "The key of this profile is in the system keyring, and the settings forbid to ask it. "
            f"Allow it (unset {KEY_FILE_VARIABLE} and the setting of the key file) and start again."
        )
    try:
        key = _read_keyring(account)
    except _KeyringFailedError as error:
        remedy = "Unlock it" if error.locked else "Start the keyring that was used before"
        raise KeyUnavailableError(
            f"The key of this profile is in the system keyring, which cannot be asked ({error}). "
            f"{remedy} and start again; the database was left untouched."
        ) from error
    if key is None:
        raise KeyUnavailableError(
            "The key of this profile is not in the keyring (service "
            f'"{KEYRING_SERVICE}", account "{account}"). Was the keyring reset, or another user '
            "logged in? Restore the keyring from a backup and start again; the database was left "
            "untouched."
        )
    return DatabaseKey(key=key, place=KeyPlace.SYSTEM_KEYRING)


# --- the system keyring -------------------------------------------------------------------------


def _make_key_in_keyring(directory: ProfileDirectory) -> bytes | None:
    """Return None if there is no usable keyring.

    The account's name is written first, the key second, and only a key that can be read back
    counts: some keyrings accept everything and keep nothing.
    """
    try:
        account = _read_account(directory) or _make_account(directory)
        present = _read_keyring(account)
        if present is not None:
            return present
        key = secrets.token_bytes(KEY_BYTES)
        _write_keyring(account, key)
        return key if _read_keyring(account) == key else None
    except _KeyringFailedError as error:
        if error.locked:
            raise StorageError(
                "The system keyring is locked. Unlock it and start again, or choose the key file "
                f"({KEY_FILE_VARIABLE}=1)."
            ) from error
        return None


def _read_keyring(account: str) -> bytes | None:
    try:
        secret = keyring.get_password(KEYRING_SERVICE, account)
    except Exception as error:  # backends let through whatever their desktop raises
        raise _keyring_failed(error) from error
    if secret is None:
        return None
    key = _parse_key(secret)
    if key is None:
        raise _KeyringFailedError("its entry is not a key of ours", locked=False)
    return key


def _write_keyring(account: str, key: bytes) -> None:
    try:
        keyring.set_password(KEYRING_SERVICE, account, key.hex())
    except Exception as error:  # noqa: BLE001 - as above; the cause is cut off: it may quote the key
        raise _keyring_failed(error) from None


def _keyring_failed(error: Exception) -> _KeyringFailedError:
    locked = isinstance(error, KeyringLocked)
    return _KeyringFailedError("it is locked" if locked else type(error).__name__, locked=locked)


def _read_account(directory: ProfileDirectory) -> str | None:
    try:
        account = directory.keyring_account.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnavailableError(f"Cannot read {directory.keyring_account}.") from error
    return account or None


def _make_account(directory: ProfileDirectory) -> str:
    """A random name, not the profile's or its path: directories are moved and names reused."""
    account = secrets.token_hex(_ACCOUNT_BYTES)
    try:
        write_private_file(directory.keyring_account, account + "\n")
    except OSError as error:
        raise StorageError(
            f"Cannot write {directory.keyring_account}: {error.strerror}."
        ) from error
    return account


# --- the key file -------------------------------------------------------------------------------


def _make_key_file(directory: ProfileDirectory) -> bytes:
    """Also removes the keyring's account if it could not be used: it would point to nothing."""
    key = secrets.token_bytes(KEY_BYTES)
    try:
        directory.keyring_account.unlink(missing_ok=True)
        write_private_file(directory.key_file, key.hex() + "\n")
    except OSError as error:
        raise StorageError(f"Cannot write {directory.key_file}: {error.strerror}.") from error
    return key


def _read_key_file(directory: ProfileDirectory) -> bytes | None:
    path = directory.key_file
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise KeyUnavailableError(f"Cannot read {path}: {error.strerror}.") from error
    key = _parse_key(text)
    if key is None:
        raise KeyUnavailableError(
            f"The key file {path} is damaged: it must hold {2 * KEY_BYTES} hexadecimal digits. "
            "Restore it from a backup; the database was left untouched."
        )
    return key


def _parse_key(text: str) -> bytes | None:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None
