"""Where the database's key lies, and that it is never made anew for a database that exists."""

import logging
import stat
from collections.abc import Callable, Iterator

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.backends.null
import keyring.errors
import pytest

from engine.core.errors import StorageError
from engine.persistence.database import open_database
from engine.persistence.errors import KeyUnavailableError
from engine.persistence.key import (
    KEY_FILE_VARIABLE,
    DatabaseKey,
    KeyPlace,
    obtain_database_key,
)
from engine.persistence.key_places import KEYRING_SERVICE
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.desktop_keyring import DesktopKeyring, desktop_keyring


@pytest.fixture
def desktop() -> Iterator[DesktopKeyring]:
    with desktop_keyring() as backend:
        yield backend


def obtain(directory: ProfileDirectory, **environment: str) -> DatabaseKey:
    return obtain_database_key(directory, environment=environment)


def with_database(directory: ProfileDirectory, key: DatabaseKey) -> None:
    open_database(directory.database, key.key).close()


def test_a_new_profile_has_its_key_in_the_keyring(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    made = obtain(directory)
    assert (made.place, made.place.value) == (KeyPlace.SYSTEM_KEYRING, "system keyring")
    assert len(desktop.entries) == 1
    assert list(desktop.entries.values()) != [made.key.hex()], "it is wrapped"
    assert not directory.place_secret.exists()
    with_database(directory, made)
    assert obtain(directory) == made


def test_two_profiles_share_nothing(directory: ProfileDirectory, desktop: DesktopKeyring) -> None:
    other = ProfileDirectory(directory.path / "nested")
    other.path.mkdir()
    assert obtain(directory).key != obtain(other).key
    assert len(desktop.entries) == 2


def test_a_key_made_before_a_crash_is_used_afterwards(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    made = obtain(directory)
    assert obtain(directory) == made
    assert len(desktop.entries) == 1


@pytest.mark.parametrize("backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring])
@pytest.mark.usefixtures("desktop")
def test_without_a_keyring_the_key_lies_in_a_private_file(
    directory: ProfileDirectory, backend: Callable[[], keyring.backend.KeyringBackend]
) -> None:
    keyring.set_keyring(backend())
    made = obtain(directory)
    assert (made.place, made.place.value) == (KeyPlace.KEY_FILE, "key file")
    assert len(directory.place_secret.read_text()) == 65
    assert made.key.hex() not in directory.place_secret.read_text(), "it is wrapped"
    for path in (directory.place_secret, directory.key_header, directory.key_header_copy):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with_database(directory, made)
    assert obtain(directory) == made


@pytest.mark.parametrize(
    "failure",
    [
        keyring.errors.InitError("no daemon"),
        keyring.errors.PasswordSetError("refused"),
        RuntimeError("D-Bus went away"),
        ValueError("odd backend"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_keyring_that_fails_is_as_none_for_a_new_profile(
    directory: ProfileDirectory, desktop: DesktopKeyring, failure: Exception
) -> None:
    desktop.failure = failure
    assert obtain(directory).place is KeyPlace.KEY_FILE
    assert not directory.keyring_account.exists(), "nothing may point to where the key is not"


def test_a_locked_keyring_is_no_reason_for_a_weaker_place(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    desktop.failure = keyring.errors.KeyringLocked("dismissed")
    with pytest.raises(StorageError, match="locked"):
        obtain(directory)
    assert not directory.place_secret.exists()
    desktop.failure = None
    assert obtain(directory).place is KeyPlace.SYSTEM_KEYRING


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_key_file_can_be_forced(
    directory: ProfileDirectory, desktop: DesktopKeyring, value: str
) -> None:
    made = obtain(directory, **{KEY_FILE_VARIABLE: value})
    assert made.place is KeyPlace.KEY_FILE
    assert desktop.calls == 0
    assert obtain(directory) == made, "once in a file, it is found there without being forced"


def test_a_setting_forces_the_key_file_too(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    made = obtain_database_key(directory, force_key_file=True, environment={})
    assert made.place is KeyPlace.KEY_FILE
    assert desktop.calls == 0


# --- never a new key for an old database --------------------------------------------------------


def test_a_keyring_that_forgot_is_an_error_with_a_remedy(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    with_database(directory, obtain(directory))
    ((_, account),) = desktop.entries
    desktop.entries.clear()
    before = directory.database.read_bytes()
    with pytest.raises(KeyUnavailableError, match="is not in the keyring") as caught:
        obtain(directory)
    assert KEYRING_SERVICE in str(caught.value)
    assert account in str(caught.value)
    assert desktop.entries == {}
    assert not directory.place_secret.exists()
    assert directory.database.read_bytes() == before


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (keyring.errors.KeyringLocked("dismissed"), "Unlock it"),
        (keyring.errors.NoKeyringError("none"), "Start the keyring"),
        (RuntimeError("D-Bus"), "Start the keyring"),
    ],
)
def test_a_keyring_that_cannot_be_asked_is_an_error_with_a_remedy(
    directory: ProfileDirectory, desktop: DesktopKeyring, failure: Exception, words: str
) -> None:
    made = obtain(directory)
    with_database(directory, made)
    desktop.failure = failure
    with pytest.raises(KeyUnavailableError, match=words):
        obtain(directory)
    assert not directory.place_secret.exists()
    desktop.failure = None
    assert obtain(directory) == made


def test_forcing_the_key_file_does_not_cut_off_a_key_in_the_keyring(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    made = obtain(directory)
    with_database(directory, made)
    before = dict(desktop.entries)
    with pytest.raises(KeyUnavailableError, match="in the system keyring"):
        obtain(directory, **{KEY_FILE_VARIABLE: "1"})
    assert desktop.entries == before
    assert obtain(directory) == made


@pytest.mark.usefixtures("desktop")
def test_a_database_without_any_trace_of_a_key_is_left_alone(directory: ProfileDirectory) -> None:
    made = obtain(directory, **{KEY_FILE_VARIABLE: "1"})
    with_database(directory, made)
    directory.place_secret.unlink()
    with pytest.raises(KeyUnavailableError, match="is lost"):
        obtain(directory)
    for path in (directory.key_header, directory.key_header_copy):
        path.unlink()
    with pytest.raises(KeyUnavailableError, match="is lost"):
        obtain(directory)
    assert not directory.place_secret.exists()
    assert not directory.key_header.exists()


@pytest.mark.parametrize("content", [b"", b"zz" * 32, b"ab" * 31, b"ab" * 33, b"\xff\xfe"])
@pytest.mark.usefixtures("desktop")
def test_a_damaged_secret_is_named_and_kept(directory: ProfileDirectory, content: bytes) -> None:
    with_database(directory, obtain(directory, **{KEY_FILE_VARIABLE: "1"}))
    directory.place_secret.write_bytes(content)
    with pytest.raises(KeyUnavailableError, match=r"database\.secret is damaged"):
        obtain(directory)
    assert directory.place_secret.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"zz" * 32, b"ab" * 31, b"ab" * 33, b"\xff\xfe"])
@pytest.mark.usefixtures("desktop")
def test_a_damaged_key_file_is_named_and_kept(directory: ProfileDirectory, content: bytes) -> None:
    directory.key_file.write_bytes(content)
    with pytest.raises(KeyUnavailableError, match=r"database\.key is damaged"):
        obtain(directory)
    assert directory.key_file.read_bytes() == content


def test_an_entry_that_is_no_key_of_ours_is_not_overwritten(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    with_database(directory, obtain(directory))
    for entry in desktop.entries:
        desktop.entries[entry] = "somebody else's"
    with pytest.raises(KeyUnavailableError, match="not a key"):
        obtain(directory)
    assert list(desktop.entries.values()) == ["somebody else's"]


def test_a_key_is_never_shown(
    directory: ProfileDirectory, desktop: DesktopKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = obtain(directory)
    assert made.key.hex() not in repr(made)
    assert repr(made.key) not in repr(made)
    assert made.key.hex() not in caplog.text
    assert len(desktop.entries) == 1


def test_a_key_file_that_others_could_read_is_made_private(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    desktop.failure = keyring.errors.NoKeyringError("none")
    made = obtain(directory)
    directory.place_secret.chmod(0o644)
    assert obtain(directory) == made
    assert stat.S_IMODE(directory.place_secret.stat().st_mode) == 0o600


def test_the_header_of_a_database_that_was_moved_away_is_kept(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    """Its keyring may be another one just now: what leads to its key is not written over."""
    made = obtain(directory)
    with_database(directory, made)
    moved = directory.database.rename(directory.path / "moved.db")
    taken, desktop.entries = desktop.entries, {}
    assert obtain(directory).key != made.key
    aside = directory.path / "database.keys.before-1"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    moved.rename(directory.database)
    desktop.entries |= taken
    for header in (directory.key_header, directory.key_header_copy):
        header.write_bytes(aside.read_bytes())
    assert obtain(directory) == made
