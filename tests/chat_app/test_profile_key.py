"""A profile with a passphrase on the command line: from a terminal, a file, a descriptor."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from chat_app.__main__ import main
from engine.persistence.key_changes import set_passphrase
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.backup_examples import CHEAP, WORDS, key_of, make_profile


@pytest.fixture
def ines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileDirectory:
    """Nothing but WORDS opens it."""
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    made = make_profile(tmp_path / "ines")
    set_passphrase(made, key_of(made), WORDS, alone=True, cost=CHEAP)
    return made


def words_in(file: Path, words: str = WORDS) -> str:
    file.write_text(f"{words}\n", encoding="utf-8")
    return str(file)


def given(profile: ProfileDirectory, *rest: str) -> list[str]:
    return ["--profile-dir", str(profile.path), *rest]


def test_without_a_terminal_it_says_what_to_do(
    ines: ProfileDirectory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for command in (["doctor"], ["backup", str(tmp_path / "file")]):
        assert main(given(ines, *command)) == 2
        said = capsys.readouterr().err
        assert "asks for its passphrase" in said
        assert "--profile-passphrase-file" in said
        assert said.count("\n") == 1


def test_a_file_or_a_descriptor_has_it(
    ines: ProfileDirectory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = words_in(tmp_path / "words")
    assert main(given(ines, "doctor", "--profile-passphrase-file", words)) in (0, 1)
    said = capsys.readouterr().out
    assert "key                      passphrase" in said
    descriptor = os.open(words, os.O_RDONLY)
    options = ("--profile-passphrase-fd", str(descriptor))
    assert main([*options, *given(ines, "doctor")]) in (0, 1)
    assert WORDS not in said + capsys.readouterr().out


def test_a_backup_takes_two_passphrases(
    ines: ProfileDirectory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = words_in(tmp_path / "own")
    of_backup = words_in(tmp_path / "of-backup", "one for the backup")
    asked = given(ines, "backup", str(tmp_path / "file"), "--passphrase-file", of_backup)
    assert main([*asked, "--profile-passphrase-file", own]) == 0
    assert "is whole" in capsys.readouterr().out
    restoring = ["--profile-dir", str(tmp_path / "new"), "restore", str(tmp_path / "file")]
    assert main([*restoring, "--passphrase-file", of_backup]) == 0
    assert "Its key is in the key file of this device" in capsys.readouterr().out


def test_a_wrong_one_a_missing_file_and_a_closed_descriptor_are_one_line_each(
    ines: ProfileDirectory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = words_in(tmp_path / "wrong", "not this one")
    for option, said in (
        (("--profile-passphrase-file", wrong), "This is not the passphrase."),
        (("--profile-passphrase-file", str(tmp_path / "none")), "cannot be read"),
        (("--profile-passphrase-fd", "999"), "cannot be read"),
        (("--profile-passphrase-fd", "-1"), "allowed is the number"),
        (("--profile-passphrase-fd", "9" * 30), "allowed is the number"),
    ):
        assert main(given(ines, "doctor", *option)) == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1


def test_a_terminal_is_asked_and_shows_nothing_of_it(ines: ProfileDirectory) -> None:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "chat_app", *given(ines, "doctor")]
    process = subprocess.Popen(
        program, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    said = b""
    for typed in ("not this one", WORDS):
        while not said.endswith(b"Passphrase of the profile: "):
            said += os.read(ours, 4_096)
        os.write(ours, f"{typed}\n".encode())
        said += b"."
    while b"conversations" not in said:
        said += os.read(ours, 4_096)
    assert process.wait(timeout=60) in (0, 1)
    os.close(ours)
    assert b"This is not the passphrase." in said
    assert WORDS.encode() not in said
