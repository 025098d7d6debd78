"""Whenever a repair is killed, the damaged database is there as it was, or the repaired one."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ids import UnixMs
from engine.persistence.file_damage import examine_files, require_what_was_there
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.salvage import finish_salvage, salvage
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.conftest import KEY
from tests.persistence.damage import content, copy_files, fill, flip, say

REPOSITORY = Path(__file__).parents[2]
NOW = UnixMs(1)
DAY = "2026-11-26"
FIRST_PAGE = b"a copy of some first page"


class Broken:
    """A database with its log and one bit changed."""

    def __init__(self, place: Path) -> None:
        self.directory = open_profile_directory(place / "profile")
        live = place / "live.db"
        store = SqliteProfileStore.open(live, KEY)
        fill(store, 100)
        store.close()
        store = SqliteProfileStore.open(live, KEY)
        say(store, 100, 150)
        copy_files(live, self.directory.database)
        store.close()
        self.content = content(live)
        self.directory.database.with_name("causerie.db.tables").write_bytes(FIRST_PAGE)
        flip(self.log, 8 * 40_000)
        self.files = self.now()

    @property
    def log(self) -> Path:
        return self.directory.database.with_name("causerie.db-wal")

    def now(self, name: str = "causerie.db") -> dict[str, bytes]:
        return {
            end: path.read_bytes()
            for end in ("", "-wal", ".tables")
            if (path := self.directory.path / f"{name}{end}").exists()
        }

    def is_repaired(self) -> None:
        """And what was damaged is there, byte for byte."""
        assert content(self.directory.database) == self.content
        assert examine_files(self.directory.database, KEY).is_whole
        assert self.now(f"causerie.db.damaged-{DAY}") == self.files


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    return Broken(tmp_path)


def killed(directory: ProfileDirectory, when: str, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.persistence.salvage_process", str(directory.path), when,
         str(number)],
        cwd=REPOSITORY, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [1, 2, 30])
def test_killed_while_it_reads_it_can_begin_again(broken: Broken, number: int) -> None:
    killed(broken.directory, "progress", number)
    finish_salvage(broken.directory)
    assert broken.now() == broken.files
    salvage(broken.directory, KEY, day=DAY, now_ms=NOW)
    broken.is_repaired()
    assert not [*broken.directory.path.glob("*.unfinished*")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_killed_while_it_changes_places_the_next_start_ends_it(
    broken: Broken, when: str, number: int
) -> None:
    """The first renaming decides."""
    killed(broken.directory, when, number)
    finish_salvage(broken.directory)
    require_what_was_there(broken.directory)
    if (when, number) == ("before", 1):
        assert broken.now() == broken.files
    else:
        broken.is_repaired()
    finish_salvage(broken.directory)


def test_what_was_put_back_after_an_interruption_is_kept(broken: Broken) -> None:
    """It might be all that somebody has; it takes no place and loses none."""
    killed(broken.directory, "before", 5)
    assert not broken.directory.database.exists()
    broken.directory.database.write_bytes(b"put back by hand")
    broken.log.write_bytes(b"and its log")
    finish_salvage(broken.directory)
    broken.is_repaired()
    assert broken.now(f"causerie.db.damaged-{DAY}-2") == {
        "": b"put back by hand", "-wal": b"and its log",
    }  # fmt: skip


def test_a_start_throws_away_what_a_killed_repair_had_copied(broken: Broken) -> None:
    killed(broken.directory, "progress", 2)
    assert [*broken.directory.path.glob("*.unfinished*")]
    finish_salvage(broken.directory)
    assert not [*broken.directory.path.glob("*.unfinished*")]
    assert broken.now() == broken.files


def test_what_could_not_be_put_in_its_place_leaves_no_report(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_path: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Path, "rename", fails)
        with pytest.raises(StorageError, match="No space left"):
            salvage(broken.directory, KEY, day=DAY, now_ms=NOW)
    assert broken.now() == broken.files
    assert not [*broken.directory.path.glob("*damaged*"), *broken.directory.path.glob("*unfini*")]


def test_the_report_names_what_is_gone_and_nothing_that_anybody_wrote(broken: Broken) -> None:
    made = salvage(broken.directory, KEY, day=DAY, now_ms=NOW)
    text = made.report.read_text("ascii")
    assert text.startswith("pages mended: ")
    assert "pages that could not be read: none" in text
    assert "message: 225" in text
    assert "Friends" not in text
    assert "half a thought" not in text


def test_the_log_that_was_put_aside_is_not_taken_for_the_new_database_s(broken: Broken) -> None:
    salvage(broken.directory, KEY, day=DAY, now_ms=NOW)
    assert not broken.log.exists()
    store = SqliteProfileStore.open(broken.directory.database, KEY)
    say(store, 150, 200)
    store.close()
    assert len(content(broken.directory.database)["log_entry"]) == 200
