"""``install.sh`` of the tarball: known to one user's desktop, and forgotten with the profile kept.

It is run for real, in a folder laid out as the tarball is, with a program that only knows its
version; the desktop's own tools are used where they are there.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.linux_packages import APPLICATION_ID, LINUX, lay_out_for_desktops

ENTRY = f"applications/{APPLICATION_ID}.desktop"


class User:
    """A home of its own, and an unpacked tarball somewhere."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder
        self.data = home / ".local" / "share"
        home.mkdir()

    def unpack(self) -> None:
        program = self.folder / "program" / "causerie"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\necho "causerie 1 $*"\n', encoding="utf-8")
        program.chmod(0o755)
        lay_out_for_desktops(self.folder / "share")
        shutil.copy(LINUX / "install.sh", self.folder)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            ["sh", self.folder / "install.sh", *words],  # noqa: S607 -- as people start it
            cwd=self.home,
            env=environment,
            check=False,
            text=True,
            capture_output=True,
        )

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.home))
            for path in self.home.rglob("*")
            if path.is_file() or path.is_symlink()
        }


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path / "home of Zoé", tmp_path / "Programs here" / "causerie-1")
    made.unpack()
    return made


def test_installed_the_entry_starts_this_folder_and_takes_the_links(user: User) -> None:
    done = user.run()
    assert done.returncode == 0, done.stderr
    entry = (user.data / ENTRY).read_text(encoding="utf-8")
    assert f'\nExec="{user.folder}/program/causerie" %u\n' in entry
    assert "\nMimeType=x-scheme-handler/causerie;\n" in entry
    command = user.home / ".local" / "bin" / "causerie"
    said = subprocess.run([command, "--version"], check=True, text=True, stdout=subprocess.PIPE)
    assert said.stdout == "causerie 1 --version\n"
    assert (user.data / f"icons/hicolor/scalable/apps/{APPLICATION_ID}.svg").exists()
    assert (user.data / "man/man1/causerie.1.gz").exists()


def test_removed_nothing_stays_but_what_was_there_before(user: User) -> None:
    profile = user.data / "causerie" / "profiles" / "default" / "causerie.db"
    other = user.data / "applications" / "other.desktop"
    for path in (profile, other):
        path.parent.mkdir(parents=True)
        path.write_text("kept", encoding="utf-8")
    before = user.files()
    assert user.run().returncode == 0
    assert user.run().returncode == 0  # again, as after an upgrade
    done = user.run("--uninstall")
    assert done.returncode == 0, done.stderr
    assert "Profiles are still in" in done.stdout
    caches = {"mimeinfo.cache", "icon-theme.cache", "mimeapps.list"}
    assert {name for name in user.files() - before if Path(name).name not in caches} == set()
    assert before <= user.files()
    assert user.run("--uninstall").returncode == 0  # nothing is there, and that is well


def test_a_program_of_the_same_name_is_somebody_elses(user: User) -> None:
    command = user.home / ".local" / "bin" / "causerie"
    command.parent.mkdir(parents=True)
    command.write_text("theirs", encoding="utf-8")
    done = user.run()
    assert done.returncode == 1
    assert "was not made by install.sh" in done.stderr
    assert user.run("--uninstall").returncode == 0
    assert command.read_text(encoding="utf-8") == "theirs"


@pytest.mark.parametrize("name", ['a"b', "a$b", "a%b", "a`b", "a\\b", "a\nb"])
def test_a_folder_that_no_entry_can_name_is_refused_in_words(tmp_path: Path, name: str) -> None:
    user = User(tmp_path / "home", tmp_path / name / "causerie-1")
    user.unpack()
    done = user.run()
    assert done.returncode == 1
    assert "a character that menu entries cannot hold" in done.stderr
    assert user.files() == set()


def test_half_an_archive_and_unknown_words_are_refused(user: User) -> None:
    assert "allowed is --uninstall" in user.run("--remove").stderr
    (user.folder / "program" / "causerie").unlink()
    done = user.run()
    assert done.returncode == 1
    assert "unpack the whole archive" in done.stderr


def test_no_write_rights_are_said_and_change_nothing(user: User) -> None:
    """A file where a folder is wanted: the same for root, whom modes do not stop."""
    (user.home / ".local").write_text("", encoding="utf-8")
    done = user.run()
    assert done.returncode == 1
    assert "cannot write to" in done.stderr
