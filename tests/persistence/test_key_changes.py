"""The ways to a database's key: carried over, changed, removed, damaged, and killed in between."""

import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring.errors
import pytest

from engine.core.errors import BackupError, StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.unlocking import Attempts
from engine.persistence import key as key_module
from engine.persistence.database import open_database
from engine.persistence.errors import (
    KeyUnavailableError,
    PassphraseNeededError,
    TooSoonError,
    WrongPassphraseError,
)
from engine.persistence.key import (
    KEY_FILE_VARIABLE,
    DatabaseKey,
    KeyPlace,
    obtain_database_key,
)
from engine.persistence.key_changes import (
    KeyWays,
    check_passphrase,
    key_ways,
    remove_passphrase,
    set_passphrase,
    tend_key_header,
)
from engine.persistence.key_places import KEYRING_SERVICE
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)
from tests.persistence.backup_examples import CHEAP
from tests.persistence.desktop_keyring import DesktopKeyring, desktop_keyring, file_keyring

WORDS = "correct horse battery"
OTHERS = "another passphrase"
FILE = {KEY_FILE_VARIABLE: "1"}


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)


@pytest.fixture
def desktop() -> Iterator[DesktopKeyring]:
    with desktop_keyring() as backend:
        yield backend


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [1_000_000]
    monkeypatch.setattr(key_module, "wall_clock_ms", lambda: UnixMs(now[0]))
    return now


def obtain(directory: ProfileDirectory, passphrase: str | None = None) -> DatabaseKey:
    return obtain_database_key(directory, passphrase=passphrase, environment={})


def begun(directory: ProfileDirectory) -> bytes:
    """A profile with a database, its key in the place of this desktop."""
    key = obtain(directory).key
    open_database(directory.database, key).close()
    return key


def of_before(directory: ProfileDirectory, desktop: DesktopKeyring | None) -> bytes:
    """As earlier versions left it: the key itself is in the keyring or in the key file."""
    key = secrets.token_bytes(32)
    if desktop is None:
        write_private_file(directory.key_file, key.hex() + "\n")
    else:
        write_private_file(directory.keyring_account, "an-old-account\n")
        keyring.set_password(KEYRING_SERVICE, "an-old-account", key.hex())
    open_database(directory.database, key).close()
    return key


def set_words(directory: ProfileDirectory, key: bytes, words: str, *, alone: bool) -> bool:
    return set_passphrase(directory, key, words, alone=alone, cost=CHEAP)


# --- earlier profiles ---------------------------------------------------------------------------


def test_a_profile_of_before_is_carried_over_and_its_key_leaves_the_keyring_later(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = of_before(directory, desktop)
    sealed = directory.database.read_bytes()
    first = obtain(directory)
    assert (first.key, first.place) == (key, KeyPlace.SYSTEM_KEYRING)
    assert not directory.key_header.exists(), "reading changes nothing"
    tend_key_header(directory, first)
    assert len(desktop.entries) == 2, "until the new way has opened it once"
    second = obtain(directory)
    assert second == first
    tend_key_header(directory, second)
    assert len(desktop.entries) == 1
    assert key.hex() not in desktop.entries.values()
    assert not directory.keyring_account.exists()
    assert obtain(directory) == first
    assert directory.database.read_bytes() == sealed


def test_a_key_file_of_before_is_carried_over(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = of_before(directory, None)
    for _ in range(2):
        tend_key_header(directory, obtain(directory))
    assert not directory.key_file.exists()
    assert key.hex() not in directory.place_secret.read_text()
    assert obtain(directory) == DatabaseKey(key=key, place=KeyPlace.KEY_FILE)
    assert desktop.calls == 0, "a key in a file does not wander into the keyring"


def test_a_keyring_that_forgets_what_it_took_costs_no_profile(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = of_before(directory, desktop)
    before = dict(desktop.entries)
    tend_key_header(directory, obtain(directory))
    desktop.entries = before
    again = obtain(directory)
    assert again.key == key
    tend_key_header(directory, again)
    assert obtain(directory).key == key


def test_a_keyring_that_fails_leaves_a_profile_of_before_as_it_is(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = of_before(directory, desktop)
    opened = obtain(directory)
    desktop.failure = RuntimeError("D-Bus went away")
    tend_key_header(directory, opened)
    assert not directory.key_header.exists()
    assert not directory.place_secret.exists(), "a key in the keyring never goes to a file"
    desktop.failure = None
    assert obtain(directory).key == key


# --- the passphrase -----------------------------------------------------------------------------


def test_beside_the_keyring_it_is_asked_for_only_if_that_fails(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = begun(directory)
    assert set_words(directory, key, WORDS, alone=False)
    assert key_ways(directory) == KeyWays(place=KeyPlace.SYSTEM_KEYRING, has_passphrase=True)
    assert obtain(directory).place is KeyPlace.SYSTEM_KEYRING
    desktop.failure = keyring.errors.KeyringLocked("dismissed")
    with pytest.raises(PassphraseNeededError, match="Unlock it"):
        obtain(directory)
    assert obtain(directory, WORDS) == DatabaseKey(key=key, place=KeyPlace.PASSPHRASE)
    assert check_passphrase(directory, WORDS) == key


def test_a_keyring_that_was_reset_gets_a_fresh_secret_once_the_passphrase_opened(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = begun(directory)
    set_words(directory, key, WORDS, alone=False)
    desktop.entries.clear()
    opened = obtain(directory, WORDS)
    assert opened.place is KeyPlace.PASSPHRASE
    tend_key_header(directory, opened)
    assert obtain(directory) == DatabaseKey(key=key, place=KeyPlace.SYSTEM_KEYRING)
    assert check_passphrase(directory, WORDS) == key


def test_alone_nothing_else_opens_the_profile(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = begun(directory)
    assert set_words(directory, key, WORDS, alone=True)
    assert desktop.entries == {}
    assert key_ways(directory) == KeyWays(place=None, has_passphrase=True)
    with pytest.raises(PassphraseNeededError):
        obtain(directory)
    assert obtain(directory, WORDS) == DatabaseKey(key=key, place=KeyPlace.PASSPHRASE)
    desktop.failure = RuntimeError("no keyring at all")
    assert obtain(directory, WORDS).key == key


@pytest.mark.parametrize("where", ["keyring", "file"])
def test_alone_on_a_profile_of_before_leaves_no_key_anywhere(
    directory: ProfileDirectory, desktop: DesktopKeyring, where: str
) -> None:
    key = of_before(directory, desktop if where == "keyring" else None)
    tend_key_header(directory, obtain(directory))
    assert set_words(directory, key, WORDS, alone=True)
    assert desktop.entries == {}
    names = {path.name for path in directory.path.iterdir()}
    assert not names & {"database.key", "database.secret", "keyring.account"}
    with pytest.raises(PassphraseNeededError):
        obtain(directory)
    assert obtain(directory, WORDS).key == key


def test_a_keyring_that_keeps_its_entry_is_said(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = begun(directory)
    kept = dict(desktop.entries)
    desktop.failure = RuntimeError("read-only")
    assert not set_words(directory, key, WORDS, alone=True)
    desktop.failure = None
    assert desktop.entries == kept
    with pytest.raises(PassphraseNeededError):
        obtain(directory)
    tend_key_header(directory, obtain(directory, WORDS))
    assert desktop.entries == {}, "the next start removes it"


def test_it_is_changed_and_removed(directory: ProfileDirectory, desktop: DesktopKeyring) -> None:
    key = begun(directory)
    set_words(directory, key, WORDS, alone=True)
    set_words(directory, key, OTHERS, alone=True)
    with pytest.raises(WrongPassphraseError):
        obtain(directory, WORDS)
    assert obtain(directory, OTHERS).key == key
    assert remove_passphrase(directory, key) is KeyPlace.SYSTEM_KEYRING
    assert len(desktop.entries) == 1
    assert obtain(directory) == DatabaseKey(key=key, place=KeyPlace.SYSTEM_KEYRING)
    assert key_ways(directory) == KeyWays(place=KeyPlace.SYSTEM_KEYRING, has_passphrase=False)


def test_removed_where_no_keyring_works_the_key_goes_to_a_file_and_that_is_told(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    key = begun(directory)
    set_words(directory, key, WORDS, alone=True)
    desktop.failure = keyring.errors.NoKeyringError("none")
    assert remove_passphrase(directory, key) is KeyPlace.KEY_FILE
    assert obtain(directory) == DatabaseKey(key=key, place=KeyPlace.KEY_FILE)


def test_how_it_was_typed_does_not_matter_and_a_short_one_is_refused(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    del desktop
    key = begun(directory)
    before = directory.key_header.read_bytes()
    with pytest.raises(BackupError):
        set_words(directory, key, "short", alone=True)
    assert directory.key_header.read_bytes() == before
    set_words(directory, key, "cafe\u0301 au lait", alone=True)
    assert obtain(directory, "caf\u00e9 au lait").key == key
    for wrong in ("", "short", "x" * 5_000, "caf\u00e9 au lai\ud800"):
        directory.unlock_attempts.unlink(missing_ok=True)
        with pytest.raises(WrongPassphraseError):
            obtain(directory, wrong)


# --- wrong passphrases --------------------------------------------------------------------------


def test_wrong_ones_are_slowed_over_a_restart_and_nobody_is_locked_out(
    directory: ProfileDirectory, desktop: DesktopKeyring, clock: list[int]
) -> None:
    del desktop
    key = begun(directory)
    set_words(directory, key, WORDS, alone=True)
    for _ in range(3):
        with pytest.raises(WrongPassphraseError):
            obtain(directory, "not this one")
    with pytest.raises(TooSoonError) as refused:
        obtain(directory, WORDS)
    assert (refused.value.wait_ms, refused.value.detail) == (2_000, "2")
    clock[0] -= 900_000
    with pytest.raises(TooSoonError):
        obtain(directory, WORDS)
    clock[0] += 2_000
    with pytest.raises(WrongPassphraseError):
        obtain(directory, "not this one")
    for _ in range(20):
        clock[0] += 60_000
        with pytest.raises(WrongPassphraseError):
            obtain(directory, "not this one")
    clock[0] += 60_000
    assert obtain(directory, WORDS).key == key
    assert not directory.unlock_attempts.exists()


@pytest.mark.parametrize(
    "content", [b"", b"x y", b"1", b"9999999999 1", b"5 " + b"9" * 80, b"\xff"]
)
def test_a_count_that_cannot_be_read_keeps_nobody_out(
    directory: ProfileDirectory, desktop: DesktopKeyring, content: bytes
) -> None:
    del desktop
    key = begun(directory)
    set_words(directory, key, WORDS, alone=True)
    directory.unlock_attempts.write_bytes(content)
    assert obtain(directory, WORDS).key == key


def test_a_try_is_counted_before_it_is_made(
    directory: ProfileDirectory,
    desktop: DesktopKeyring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del desktop
    key = begun(directory)
    set_words(directory, key, WORDS, alone=True)

    def ended(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(key_module, "open_passphrase", ended)
    with pytest.raises(KeyboardInterrupt):
        obtain(directory, "not this one")
    counted = directory.unlock_attempts.read_text().split()
    assert Attempts(failures=int(counted[0])) == Attempts(failures=1)


# --- damage -------------------------------------------------------------------------------------


def test_one_damaged_copy_costs_nothing_and_is_mended(
    directory: ProfileDirectory, desktop: DesktopKeyring
) -> None:
    del desktop
    key = begun(directory)
    whole = directory.key_header.read_bytes()
    for path in (directory.key_header, directory.key_header_copy):
        for damage in (b"", whole[:-1], whole[:40] + b"?" + whole[41:], None):
            path.unlink() if damage is None else path.write_bytes(damage)
            opened = obtain(directory)
            assert opened.key == key
            tend_key_header(directory, opened)
            assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "fault", "words"),
    [
        (lambda whole: whole[:60] + b"?" + whole[61:], StorageFault.KEYS_DAMAGED, "is damaged"),
        (lambda _whole: b"something else", StorageFault.KEYS_FOREIGN, "no file of Causerie"),
    ],
)
def test_two_damaged_copies_are_named_and_nothing_is_written(
    directory: ProfileDirectory,
    desktop: DesktopKeyring,
    damage: Callable[[bytes], bytes],
    fault: StorageFault,
    words: str,
) -> None:
    begun(directory)
    entries = dict(desktop.entries)
    bent = damage(directory.key_header.read_bytes())
    for path in (directory.key_header, directory.key_header_copy):
        path.write_bytes(bent)
    with pytest.raises(StorageError, match=words) as refused:
        obtain(directory)
    assert refused.value.fault is fault
    assert str(directory.key_header) in str(refused.value)
    assert "restore a backup" in str(refused.value)
    assert directory.key_header.read_bytes() == bent
    assert desktop.entries == entries


def test_a_header_of_another_profile_is_not_believed(
    directory: ProfileDirectory, desktop: DesktopKeyring, tmp_path: Path
) -> None:
    """One that has the same secret: somebody swapped what is sealed."""
    del desktop
    key = begun(directory)
    other = open_profile_directory(tmp_path / "other")
    begun(other)
    with pytest.raises(KeyUnavailableError, match="another profile's"):
        set_passphrase(other, key, WORDS, alone=True, cost=CHEAP)
    for path in (directory.key_header, directory.key_header_copy):
        path.write_bytes(other.key_header.read_bytes())
    tend_key_header(directory, DatabaseKey(key=key, place=KeyPlace.SYSTEM_KEYRING))
    assert directory.key_header.read_bytes() == other.key_header.read_bytes()


# --- kill -9 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["keyring", "file"])
@pytest.mark.parametrize("change", ["carry over", "set", "set alone", "remove"])
def test_wherever_a_change_is_killed_there_is_a_way_in(
    tmp_path: Path, change: str, where: str
) -> None:
    with file_keyring(tmp_path / "keyring") as desktop:
        directory = open_profile_directory(tmp_path / "profile")
        if change == "carry over":
            key = of_before(directory, desktop if where == "keyring" else None)
        else:
            key = obtain_database_key(directory, environment=FILE if where == "file" else {}).key
            open_database(directory.database, key).close()
        if change == "remove":
            set_words(directory, key, "a new passphrase", alone=True)
    program = [sys.executable, "-m", "tests.persistence.dying_key_changes"]
    subprocess.run([*program, str(tmp_path), change, key.hex(), where], check=True, timeout=120)
    tries = sorted((path for path in tmp_path.iterdir() if path.name.isdecimal()), key=_number)
    assert len(tries) > 10
    for place in tries:
        with file_keyring(place / "keyring") as desktop:
            _opens(ProfileDirectory(place / "profile"), key, desktop, change)


def _number(path: Path) -> int:
    return int(path.name)


def _opens(directory: ProfileDirectory, key: bytes, desktop: DesktopKeyring, change: str) -> None:
    opened = obtain(directory, "a new passphrase")
    assert opened.key == key
    for _ in range(2):
        tend_key_header(directory, opened)
        opened = obtain(directory, "a new passphrase")
        assert opened.key == key
    names = {path.name for path in directory.path.iterdir()}
    assert not names & {"database.key", "keyring.account"}
    assert directory.key_header.read_bytes() == directory.key_header_copy.read_bytes()
    desktop.get_password("", "")
    if key_ways(directory).place is None:
        assert change in ("set alone", "remove")
        assert "database.secret" not in names
        if change == "set alone":
            assert desktop.entries == {}, "nothing leads to the key any more"
