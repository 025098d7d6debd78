"""Unused room goes back to the disk: all rows stay, also in a process that is killed on the way."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from engine.core.errors import StorageError, StorageFault
from engine.core.ports import PutGroup, SaveProfile
from engine.persistence.connection import connect
from engine.persistence.database import damaged_pages
from engine.persistence.database_files import DatabaseFiles
from engine.persistence.page_trees import keep_list_of_tables
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.reclaim import reclaim_unused
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.backup_examples import key_of
from tests.persistence.store_examples import PROFILE, group, row

TEXTS: Final = 3_000
KEPT: Final = 3
"""One in so many stays: more than SQLite keeps in memory, so that the temporary file is used."""
REPOSITORY: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 60
TRIES: Final = 5


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(scope="module")
def loose_profile(tmp_path_factory: pytest.TempPathFactory) -> ProfileDirectory:
    """Two thirds of it are unused pages."""
    directory = open_profile_directory(tmp_path_factory.mktemp("loose") / "ines")
    store = SqliteProfileStore.open(directory.database, key_of(directory))
    store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    store.apply([row(n, f"{n:064x}", text=f"{n} " * 1_000) for n in range(TEXTS)])
    store.close()
    connection = opened(directory)
    connection.execute("DELETE FROM message WHERE message_key % ?", (KEPT,))
    connection.close()
    keep_list_of_tables(directory.database, key_of(directory))
    return directory


@pytest.fixture
def loose(loose_profile: ProfileDirectory, tmp_path: Path) -> ProfileDirectory:
    shutil.copytree(loose_profile.path, tmp_path / "ines")
    return ProfileDirectory(tmp_path / "ines")


def opened(directory: ProfileDirectory) -> sqlite3.Connection:
    return connect(str(directory.database), key_of(directory))


def unused(directory: ProfileDirectory) -> int:
    connection = opened(directory)
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    connection.close()
    return int(pages)


def everything(directory: ProfileDirectory) -> list[str]:
    """Each row of each table, by its keys; and the file has no damage."""
    connection = opened(directory)
    assert damaged_pages(connection) == []
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    rows = [
        f"{name} {found}"
        for (name,) in tables
        for found in connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608
    ]
    connection.close()
    return sorted(rows)


def test_the_file_shrinks_by_what_is_told_and_an_open_store_goes_on(
    loose: ProfileDirectory,
) -> None:
    before, size = everything(loose), loose.database.stat().st_size
    kept = DatabaseFiles(loose.database).kept
    old_list = kept.read_bytes()
    store = SqliteProfileStore.open(loose.database, key_of(loose))
    profile, shares = store.profile(), list[float]()

    def progress(share: float) -> bool:
        shares.append(share)
        return True

    given_back = reclaim_unused(loose.database, key_of(loose), progress)
    assert given_back > size / 2
    assert loose.database.stat().st_size == size - given_back
    assert shares == sorted(shares)
    assert (len(shares) > 10, shares[-1]) == (True, 1.0)
    assert unused(loose) == 0
    assert everything(loose) == before
    assert kept.read_bytes() != old_list
    assert store.profile() == profile
    store.apply([row(TEXTS, f"{TEXTS:064x}", text="after")])
    store.close()
    assert len(everything(loose)) > len(before)
    assert reclaim_unused(loose.database, key_of(loose)) == 0


def test_it_stops_when_it_is_told_to_and_nothing_has_changed(loose: ProfileDirectory) -> None:
    before, size = everything(loose), loose.database.stat().st_size
    for at in (0.0, 0.4):

        def goes_on(share: float, at: float = at) -> bool:
            return share < at

        with pytest.raises(StorageError) as stopped:
            reclaim_unused(loose.database, key_of(loose), goes_on)
        assert stopped.value.fault is StorageFault.CLOSING
    assert (everything(loose), loose.database.stat().st_size) == (before, size)
    assert DatabaseFiles(loose.database).kept.exists()


def test_too_little_room_is_told_before_anything_is_written(
    loose: ProfileDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, asked = loose.database.stat().st_size, list[float]()

    def asks(share: float) -> bool:
        asked.append(share)
        return True

    monkeypatch.setattr(shutil, "disk_usage", lambda _place: Usage(10**9, 10**9 - 1_000, 1_000))
    with pytest.raises(StorageError) as full:
        reclaim_unused(loose.database, key_of(loose), asks)
    assert full.value.fault is StorageFault.NO_ROOM_TO_RECLAIM
    assert 0 < int(full.value.detail) <= 3 * size / 1_000_000 + 1
    assert asked == []


def test_what_lies_in_the_temporary_file_is_encrypted(loose: ProfileDirectory) -> None:
    seen = list[bytes]()

    def look(_share: float) -> bool:
        for opened_file in Path("/proc/self/fd").iterdir():
            if opened_file.is_symlink() and "etilqs" in str(opened_file.readlink()):
                seen.append(opened_file.read_bytes())
        return True

    reclaim_unused(loose.database, key_of(loose), look)
    largest = max(seen, key=len)
    assert len(largest) > 100_000
    assert b"SQLite format" not in largest
    assert b"2997 2997" not in b"".join(seen)


def run_until_killed(directory: ProfileDirectory, where: str) -> bool:
    """False: it was too fast for its killer."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.persistence.reclaiming_process", directory.path, where],
        cwd=REPOSITORY,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("where", ["0", "40", "84", "writing"])
def test_a_process_that_is_killed_meanwhile_loses_nothing(
    loose: ProfileDirectory, where: str
) -> None:
    before = everything(loose)
    assert any(run_until_killed(loose, where) for _ in range(TRIES))
    assert everything(loose) == before
    reclaim_unused(loose.database, key_of(loose))
    assert unused(loose) == 0
    assert everything(loose) == before
