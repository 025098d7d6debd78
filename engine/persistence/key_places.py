"""Places for a secret of 32 bytes: an entry in the system keyring, or a private file.

The keyring is the operating system's (keyring library).  A file beside the database protects it
only if it was not copied together with that.  No error text contains a secret.  What the secret is
for says ``engine.persistence.key``.  The library and what it needs take 3 MiB, so a profile whose
key is elsewhere does not import it.
"""

# ruff: noqa: PLC0415 - see above

from pathlib import Path
from typing import Final

from engine.core.errors import StorageError
from engine.core.key_header import KEY_BYTES
from engine.persistence.errors import KeyUnavailableError
from engine.persistence.profile_directory import write_private_file

KEYRING_SERVICE: Final = "Causerie"


class KeyringFailedError(Exception):
    """The keyring cannot be used; ``locked`` if the user may still unlock it."""

    def __init__(self, reason: str, *, locked: bool) -> None:
        super().__init__(reason)
        self.locked = locked


# --- the system keyring -------------------------------------------------------------------------


def read_keyring(account: str) -> bytes | None:
    """None if it has no such entry.  Raises KeyringFailedError."""
    import keyring

    try:
        text = keyring.get_password(KEYRING_SERVICE, account)
    except Exception as error:  # backends let through whatever their desktop raises
        raise _failed(error) from error
    if text is None:
        return None
    secret = parse_secret(text)
    if secret is None:
        raise KeyringFailedError("its entry is not a key of ours", locked=False)
    return secret


def keep_in_keyring(account: str, secret: bytes) -> bool:
    """Whether it can be read back: some keyrings accept everything and keep nothing.

    Raises KeyringFailedError.
    """
    import keyring

    try:
        keyring.set_password(KEYRING_SERVICE, account, secret.hex())
    except Exception as error:  # noqa: BLE001 - as above; the cause is cut off: it may quote the key
        raise _failed(error) from None
    return read_keyring(account) == secret


def forget_in_keyring(account: str) -> bool:
    """Whether it is gone."""
    import keyring

    try:
        if keyring.get_password(KEYRING_SERVICE, account) is not None:
            keyring.delete_password(KEYRING_SERVICE, account)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def _failed(error: Exception) -> KeyringFailedError:
    from keyring.errors import KeyringLocked

    locked = isinstance(error, KeyringLocked)
    return KeyringFailedError("it is locked" if locked else type(error).__name__, locked=locked)


# --- a file -------------------------------------------------------------------------------------


def read_secret_file(path: Path) -> bytes | None:
    """None if it is not there.  Makes it private.  Raises KeyUnavailableError."""
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
    secret = parse_secret(text)
    if secret is None:
        raise KeyUnavailableError(
            f"The key file {path} is damaged: it must hold {2 * KEY_BYTES} hexadecimal digits. "
            "Restore it from a backup; the database was left untouched."
        )
    return secret


def write_secret_file(path: Path, secret: bytes) -> None:
    """Raises StorageError."""
    try:
        write_private_file(path, secret.hex() + "\n")
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}.") from error


def parse_secret(text: str) -> bytes | None:
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        return None
    return secret if len(secret) == KEY_BYTES else None
