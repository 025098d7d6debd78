"""``causerie backup`` and ``causerie restore``: for profiles that have no window."""

import contextlib
import io
from pathlib import Path

import pytest

from chat_app import restoring
from chat_app.__main__ import main
from chat_app.settings_file import default_text
from engine.persistence import backup
from engine.persistence.backup import identity_in
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.backup_examples import CHEAP, SETTINGS, WORDS, key_of, make_profile
from tests.persistence.store_examples import PROFILE


@pytest.fixture(autouse=True)
def _cheap_and_without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    monkeypatch.setattr(backup, "Cost", lambda: CHEAP)


@pytest.fixture
def words(tmp_path: Path) -> str:
    file = tmp_path / "words"
    file.write_text(f"{WORDS}\n", encoding="utf-8")
    return str(file)


@pytest.fixture
def file(tmp_path: Path, words: str) -> Path:
    make_profile(tmp_path / "ines")
    made = tmp_path / "file"
    given = ("--profile-dir", str(tmp_path / "ines"), "backup", str(made))
    assert main([*given, "--passphrase-file", words]) == 0
    return made


def restored(place: Path, file: Path, words: str) -> int:
    return main(["--profile-dir", str(place), "restore", str(file), "--passphrase-file", words])


def test_a_profile_goes_through_a_file_to_another_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path, words: str
) -> None:
    assert "is whole" in capsys.readouterr().out
    assert restored(tmp_path / "there", file, words) == 0
    assert "Use one device only" in capsys.readouterr().out
    there = ProfileDirectory(tmp_path / "there")
    assert identity_in(there.database, key_of(there)) == PROFILE.signing_key
    assert (tmp_path / "there" / "settings.toml").read_text(encoding="utf-8") == SETTINGS


def test_parts_of_files_that_are_damaged_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path, words: str
) -> None:
    assert "left out" not in capsys.readouterr().out
    min((tmp_path / "ines" / "blobs").iterdir()).write_bytes(b"x")
    given = ("--profile-dir", str(tmp_path / "ines"), "backup", f"{file}-2")
    assert main([*given, "--passphrase-file", words]) == 0
    assert "left out, damaged here or unreadable: 1." in capsys.readouterr().out


def test_the_passphrase_comes_from_standard_input_where_nobody_types(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{WORDS}\r\n"))
    assert main(["--profile-dir", str(tmp_path / "there"), "restore", str(file)]) == 0


def test_settings_of_a_first_start_give_way_and_chosen_ones_stay(
    tmp_path: Path, file: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("first", default_text()), ("chosen", "[storage]\nkeep_days = 3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "settings.toml").write_text(text, encoding="utf-8")
        capsys.readouterr()
        assert restored(tmp_path / name, file, words) == 0
        is_kept = "settings.from-backup.toml" in capsys.readouterr().out
        assert is_kept is (name == "chosen")


@pytest.mark.parametrize("is_open", [True, False])
def test_a_profile_that_another_process_makes_meanwhile_stays(
    tmp_path: Path, file: Path, words: str, monkeypatch: pytest.MonkeyPatch, *, is_open: bool
) -> None:
    """It comes after the look whether there is one, and is open, or was closed again."""
    with contextlib.ExitStack() as held:

        def opened(path: Path) -> ProfileDirectory:
            directory = make_profile(path)
            if is_open:
                held.enter_context(ProfileLock(directory))
            return directory

        monkeypatch.setattr(restoring, "open_profile_directory", opened)
        assert restored(tmp_path / "there", file, words) == 2
    there = ProfileDirectory(tmp_path / "there")
    assert identity_in(there.database, key_of(there)) == PROFILE.signing_key


def test_what_is_wrong_is_one_line_and_changes_nothing(
    tmp_path: Path, file: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.write_text("another one\n", encoding="utf-8")
    there = str(tmp_path / "there")
    ines = str(tmp_path / "ines")
    for given, said in (
        (["--profile-dir", ines, "backup", str(file)], "is there already"),
        (["--profile-dir", there, "backup", str(tmp_path / "b")], "There is no profile"),
        (["--profile-dir", ines, "restore", str(file)], "There is a profile in"),
        (["--profile-dir", there, "restore", words], "is no backup of Causerie"),
        (["--profile-dir", there, "restore", str(tmp_path / "absent")], "Cannot read"),
    ):
        capsys.readouterr()
        assert main([*given, "--passphrase-file", words]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert said in lines[0]
    assert restored(tmp_path / "there", file, str(other)) == 2
    assert "not the backup's passphrase" in capsys.readouterr().err
    assert restored(tmp_path / "there", file, str(tmp_path / "absent")) == 2
    assert not (tmp_path / "there").exists()
    assert WORDS not in capsys.readouterr().err
