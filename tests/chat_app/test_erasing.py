"""A profile is erased: nothing of it is left, nothing else is touched, and a kill costs nothing."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chat_app import starting
from chat_app.__main__ import main
from chat_app.autostart import autostart_here, start_command
from chat_app.backing_up import source_of
from chat_app.erasing import erase_profile
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.restoring import restore_into
from chat_app.settings_file import write_default
from chat_app.starting import open_window
from chat_app.window import EraseAskedError, WindowOptions
from engine.core.backup import SALT_BYTES
from engine.core.errors import StorageError
from engine.core.ids import UnixMs
from engine.crypto.backup import derive_secret
from engine.persistence.backup import identity_in, write_backup
from engine.persistence.erase import ErasePlace, erase
from engine.persistence.errors import ProfileInUseError
from engine.persistence.key import obtain_database_key
from engine.persistence.key_places import KEYRING_SERVICE
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import (
    ProfileDirectory,
    is_being_erased,
    open_profile_directory,
)
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.patience import PATIENCE_S
from tests.persistence.backup_examples import CHEAP, WORDS, key_of, make_profile
from tests.persistence.desktop_keyring import desktop_keyring
from tests.persistence.store_examples import PROFILE
from ui.failed_start import LeftBehind

ERASING = "causerie.erasing"
LEFTOVERS = (
    "logs/causerie.log",
    "delivery/ab-0001.delivery.db",
    "restoring/sealed.db",
    "opened/x/picture.png",
)


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, place in (("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(name, str(tmp_path / place))


def filled(path: Path) -> ProfileDirectory:
    """With everything that may stand beside a database."""
    directory = make_profile(path)
    for name in (*LEFTOVERS, "archive.db", "causerie.db.before-2026-11-22", "causerie.db-wal"):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"text")
    return directory


@pytest.fixture
def named() -> ProfilePaths:
    paths = profile_paths("ines")
    filled(paths.directory)
    write_default(paths.settings_file)
    (paths.settings_directory / "settings.set-aside-20261126-000000.toml").write_text("x")
    return paths


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))


def everything(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*") if not each.is_dir())


def test_nothing_of_a_named_profile_is_left_and_its_neighbour_is_untouched(
    named: ProfilePaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = profile_paths("maya")
    filled(other.directory)
    write_default(other.settings_file)
    entries = [autostart_here(start_command(name, None)) for name in ("ines", "maya")]
    for entry in entries:
        entry.switch(on=True)
    before = [name for name in everything(tmp_path) if "maya" in name]
    typed(monkeypatch, "maya")
    assert main(["--profile", "ines", "erase"]) == 2
    assert "nothing was erased" in capsys.readouterr().err
    assert named.settings_file.exists()
    typed(monkeypatch, "ines")
    assert main(["--profile", "ines", "erase"]) == 0
    assert "Others keep" in capsys.readouterr().out
    assert not named.directory.exists()
    assert not named.settings_directory.exists()
    assert [entry.is_on() for entry in entries] == [False, True]
    assert [name for name in everything(tmp_path) if "maya" in name] == before
    assert main(["--profile", "ines", "erase"]) == 2
    assert "There is no profile" in capsys.readouterr().err


def test_the_keyring_gives_up_its_entry_and_is_named_if_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CAUSERIE_KEY_FILE")
    for name, works in (("one", True), ("two", False)):
        with desktop_keyring() as keyring:
            paths = profile_paths(name)
            directory = open_profile_directory(paths.directory)
            SqliteProfileStore.open(directory.database, obtain_database_key(directory).key).close()
            (entry,) = keyring.entries
            keyring.failure = None if works else RuntimeError("locked")
            erased = erase_profile(paths, ())
            assert (not keyring.entries) is works
            assert erased.keyring_entry == ("" if works else entry[1])
            assert entry[0] == KEYRING_SERVICE
            assert not paths.directory.exists()


def test_it_is_refused_while_the_profile_is_open(named: ProfilePaths) -> None:
    before = everything(named.directory)
    with ProfileLock(ProfileDirectory(named.directory)), pytest.raises(ProfileInUseError):
        erase_profile(named, ())
    assert [name for name in everything(named.directory) if name != "profile.lock"] == before
    assert not is_being_erased(named.directory)


def test_in_a_folder_of_the_users_only_what_is_ours_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "stick"
    filled(place)
    for name in ("thesis.txt", "monkey", "causerie.db.odt", "settings.tomlet", "archive.dbx"):
        (place / name).write_text("mine")
    (place / "photos").mkdir()
    (place / "photos" / "causerie.db").write_text("mine, too")
    typed(monkeypatch, "stick")
    assert main(["--profile-dir", str(place), "erase"]) == 0
    assert everything(place) == [
        *("archive.dbx", "causerie.db.odt", "monkey", "photos/causerie.db"),
        *("settings.tomlet", "thesis.txt"),
    ]
    assert f"Stays, as it is not Causerie's or could not be removed: {place}/thesis.txt" in (
        capsys.readouterr().out
    )


def test_no_link_is_followed_out_of_the_profile(named: ProfilePaths, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for name in ("folder", "deep"):
        (outside / name).mkdir(parents=True)
        (outside / name / "mine").write_text("mine")
    (outside / "file").write_text("mine")
    shutil.rmtree(named.directory / "logs")
    (named.directory / "logs").symlink_to(outside / "folder")
    (named.directory / "blobs" / "deep").symlink_to(outside / "deep")
    (named.directory / "archive.db").unlink()
    (named.directory / "archive.db").symlink_to(outside / "file")
    (named.directory / ERASING).symlink_to(outside / "new")
    named.settings_file.unlink()
    named.settings_file.symlink_to(outside / "file")
    erase_profile(named, ())
    assert not named.directory.exists()
    assert everything(outside) == ["deep/mine", "file", "folder/mine"]
    assert (outside / "file").read_text() == "mine"


def test_a_profile_that_was_moved_and_linked_goes_with_its_link(
    named: ProfilePaths, tmp_path: Path
) -> None:
    moved = named.directory.rename(tmp_path / "moved")
    named.directory.symlink_to(moved)
    erase_profile(named, ())
    assert not os.path.lexists(named.directory)
    assert not moved.exists()


def killed_at(nth: int, directory: Path, settings: Path) -> bool:
    """Whether it was still at it then."""
    given = ("tests.chat_app.erasing_process", str(directory), str(settings), str(nth))
    done = subprocess.run(
        [sys.executable, "-m", *given], check=False, capture_output=True, timeout=PATIENCE_S * 3
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


def test_killed_at_any_step_the_profile_is_whole_or_the_next_start_finishes(
    tmp_path: Path,
) -> None:
    original = tmp_path / "original"
    filled(original)
    steps = 0
    for nth in (0, 1, 2, 4, 7, 11, 16, 22, 200):
        place, settings = tmp_path / f"at{nth}", tmp_path / f"settings{nth}"
        shutil.copytree(original, place)
        settings.mkdir()
        (settings / "settings.toml").write_text("x")
        was_killed = killed_at(nth, place, settings)
        directory = ProfileDirectory(place)
        if place.exists() and not is_being_erased(place) and directory.has_database():
            assert identity_in(directory.database, key_of(directory)) == PROFILE.signing_key
        elif place.exists():
            erase(ErasePlace(directory=place, settings=settings, is_own=True))
            assert not place.exists()
            assert not settings.exists()
        if not was_killed:
            assert not place.exists()
            break
        steps += 1
    assert steps >= 5


def test_what_cannot_be_removed_is_said_and_finished_later(
    named: ProfilePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path.name == "causerie.db":
            raise PermissionError(13, "Permission denied")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StorageError) as raised:
        erase_profile(named, ())
    assert "Permission denied" in raised.value.detail
    assert is_being_erased(named.directory)
    monkeypatch.undo()
    erase(ErasePlace(directory=named.directory, settings=named.settings_directory, is_own=True))
    assert not named.directory.exists()


def test_the_window_closes_for_it_and_the_program_ends(
    named: ProfilePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_given: object) -> int:
        raise EraseAskedError

    monkeypatch.setattr(starting, "require_display", lambda: None)
    monkeypatch.setattr(starting, "open_or_hand_over", opened)
    assert open_window(named, WindowOptions()) == 0
    assert not named.directory.exists()


def test_in_a_folder_of_the_users_no_folder_of_a_common_name_goes_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "work"
    filled(place)
    theirs = ["blobs/photo.raw", "delivery/invoice.pdf", "kept/letter.txt", "logs/captain.txt"]
    for name in theirs:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    (place / "kept" / "ab").mkdir()
    (place / "kept" / "ab" / ("0" * 64)).write_text("sealed")
    (place / "node.key").write_text("0" * 64)
    typed(monkeypatch, "work")
    assert main(["--profile-dir", str(place), "erase"]) == 0
    assert everything(place) == theirs


def test_a_file_of_the_users_is_not_taken_for_the_mark(tmp_path: Path) -> None:
    place = tmp_path / "work"
    filled(place)
    (place / "erasing").write_text("how to erase a blackboard")
    assert not is_being_erased(place)


def half_erased(paths: ProfilePaths) -> None:
    """The process was killed once the database was gone."""
    (paths.directory / ERASING).touch()
    for path in paths.directory.glob("*.db*"):
        path.unlink()
    for path in paths.directory.glob("database.*"):
        path.unlink()


def test_nothing_is_restored_where_the_next_start_would_erase_it(
    named: ProfilePaths, tmp_path: Path
) -> None:
    file = tmp_path / "mine.causerie-backup"
    secret = derive_secret(WORDS, salt=bytes(SALT_BYTES), cost=CHEAP)
    write_backup(source_of(named), file, secret, created_ms=UnixMs(1))
    half_erased(named)
    with pytest.raises(StorageError, match="being erased"):
        restore_into(named, file, WORDS)
    erase_profile(named, ())
    restore_into(named, file, WORDS)
    assert not is_being_erased(named.directory)


@pytest.mark.parametrize("command", [("doctor",), ("backup", "x"), ("node",)])
def test_every_command_says_that_a_half_erased_profile_is_being_erased(
    named: ProfilePaths, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    (named.directory / ERASING).touch()
    (named.directory / "database.secret").unlink()
    assert main(["--profile", "ines", *command]) == 2
    assert "is being erased; causerie erase finishes it" in capsys.readouterr().err


def test_the_window_tells_what_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "work"
    filled(place)
    (place / "thesis.txt").write_text("mine")
    told: list[LeftBehind] = []

    def opened(*_given: object) -> int:
        raise EraseAskedError

    monkeypatch.setattr(starting, "require_display", lambda: None)
    monkeypatch.setattr(starting, "can_be_seen", lambda: True)
    monkeypatch.setattr(starting, "open_or_hand_over", opened)
    monkeypatch.setattr(starting, "tell_left", lambda left, _paths: told.append(left))
    assert open_window(profile_paths(None, place), WindowOptions()) == 0
    assert told == [LeftBehind(paths=(str(place / "thesis.txt"),))]
