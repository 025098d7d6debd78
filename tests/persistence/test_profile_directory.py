"""The profile's directory and its lock: private, writable, one process at a time."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.persistence.errors import ProfileInUseError
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)

REPOSITORY = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
lock = ProfileLock(open_profile_directory(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_is_made_private_with_its_parents(tmp_path: Path) -> None:
    opened = open_profile_directory(tmp_path / "profiles" / "alice")
    assert mode(opened.path) == 0o700
    assert list(opened.path.iterdir()) == [], "the trial file is gone"


def test_a_directory_that_others_could_enter_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir(mode=0o755)
    assert mode(open_profile_directory(tmp_path / "alice").path) == 0o700


def test_every_file_made_afterwards_is_private(directory: ProfileDirectory) -> None:
    log = directory.path / "causerie.log"
    log.write_text("")
    assert mode(log) == 0o600


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "alice").write_text("")
    with pytest.raises(StorageError, match="alice cannot be used: File exists"):
        open_profile_directory(tmp_path / "alice")
    with pytest.raises(StorageError, match="alice/nested cannot be used: Not a directory"):
        open_profile_directory(tmp_path / "alice" / "nested")


def test_a_directory_where_nobody_may_write_is_named() -> None:
    # Root may write anywhere but in the kernel's own file system.
    with pytest.raises(StorageError, match="/proc/self cannot be used"):
        open_profile_directory(Path("/proc/self"))


def test_a_private_file_is_replaced_as_a_whole(directory: ProfileDirectory) -> None:
    path = directory.path / "note"
    path.with_name("note.new").write_text("left by a crash")
    for text in ("one", "two"):
        write_private_file(path, text)
        assert path.read_text() == text
        assert mode(path) == 0o600
    assert list(directory.path.iterdir()) == [path]


def test_an_empty_database_is_none(directory: ProfileDirectory) -> None:
    assert not directory.has_database()
    directory.database.touch()
    assert not directory.has_database()
    directory.database.write_bytes(b"x")
    assert directory.has_database()


# --- the lock -----------------------------------------------------------------------------------


def test_a_second_start_learns_who_has_the_profile(directory: ProfileDirectory) -> None:
    with ProfileLock(directory):
        assert mode(directory.lock_file) == 0o600
        with pytest.raises(ProfileInUseError, match='"alice" is in use by process') as caught:
            ProfileLock(directory)
        assert (caught.value.profile_name, caught.value.pid) == ("alice", os.getpid())
    ProfileLock(directory).release()


def test_releasing_twice_is_harmless(directory: ProfileDirectory) -> None:
    lock = ProfileLock(directory)
    lock.release()
    second = ProfileLock(directory)
    lock.release()
    with pytest.raises(ProfileInUseError):
        ProfileLock(directory)
    second.release()


def test_two_profiles_can_be_open_at_once(tmp_path: Path) -> None:
    with (
        ProfileLock(open_profile_directory(tmp_path / "alice")),
        ProfileLock(open_profile_directory(tmp_path / "bob")),
    ):
        pass


def test_a_lock_file_without_a_name_still_locks(directory: ProfileDirectory) -> None:
    with ProfileLock(directory):
        directory.lock_file.write_text("")
        with pytest.raises(ProfileInUseError, match="another process"):
            ProfileLock(directory)


def test_a_lock_file_that_cannot_be_opened_is_named(directory: ProfileDirectory) -> None:
    directory.lock_file.mkdir()
    with pytest.raises(StorageError, match=r"profile\.lock"):
        ProfileLock(directory)


def test_the_lock_dies_with_a_killed_holder(directory: ProfileDirectory) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory.path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ProfileInUseError) as caught:
            ProfileLock(directory)
        assert caught.value.pid == holder.pid
        holder.kill()
    assert holder.returncode == -signal.SIGKILL
    ProfileLock(directory).release()
