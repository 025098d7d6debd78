"""A profile from before the first schema, on the path of a real start: kept, never read or lost."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.compose import open_store
from engine.core.errors import StorageError
from engine.core.ports import SaveValue
from engine.persistence.database import open_database, open_readonly
from engine.persistence.earlier_profile import earlier_profile, keep_aside
from engine.persistence.errors import DatabaseFromBeforeError, DatabaseTooNewError
from engine.persistence.key import obtain_database_key
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.schema import APPLICATION_ID, SCHEMA_VERSION
from tests.patience import PATIENCE_S
from tests.persistence.old_profile import make_old_database, texts

REPOSITORY = Path(__file__).parents[2]
DAY = "2026-11-24"
ON_A_DAY = re.compile(r"causerie\.db\.before-\d{4}-\d\d-\d\d")
WRITTEN = ["first", "last"]

# A start that dies before or after one of its steps.
DYING = """
import os, signal, sys
from pathlib import Path
from chat_app import compose
from engine.persistence import database, earlier_profile
from engine.persistence.profile_directory import open_profile_directory
place, module, name, when = sys.argv[1:]
module = {"database": database, "earlier_profile": earlier_profile}[module]
real = getattr(module, name)
def dies(*given, **named):
    if when == "after":
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, dies)
compose.open_store(open_profile_directory(Path(place)), force_key_file=True)
"""
STEPS = [
    ("earlier_profile", "bring_into_one_file", "before"),
    ("earlier_profile", "bring_into_one_file", "after"),
    ("earlier_profile", "sync_directory", "before"),
    ("earlier_profile", "sync_directory", "after"),
    ("database", "migrate", "before"),
    ("database", "migrate", "after"),
]


@pytest.fixture(params=[False, True], ids=["closed", "killed"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> ProfileDirectory:
    return old_profile(tmp_path / "ines", killed=request.param)


def old_profile(place: Path, *, killed: bool = False) -> ProfileDirectory:
    directory = open_profile_directory(place)
    make_old_database(directory.database, key_of(directory), killed=killed)
    return directory


def key_of(directory: ProfileDirectory) -> bytes:
    return obtain_database_key(directory, force_key_file=True).key


def start(directory: ProfileDirectory, *, value: str = "") -> str | None:
    """What was saved at the start before."""
    store = open_store(directory, force_key_file=True).store
    saved = store.value("saved")
    store.apply([SaveValue(key="saved", value=value)])
    assert store.groups() == []
    store.close()
    return saved


def databases(directory: ProfileDirectory) -> list[str]:
    """Without the copy of the list of tables, which every start keeps."""
    found = {path.name for path in directory.path.glob("causerie.db*")}
    return sorted(found - {"causerie.db.tables"})


def doctor(directory: ProfileDirectory) -> Sequence[str]:
    return ("--profile-dir", str(directory.path), "doctor", "--json")


def test_it_is_kept_under_the_days_name_and_a_new_one_begins(old: ProfileDirectory) -> None:
    ways = old.key_header.read_bytes(), old.place_secret.read_bytes()
    assert start(old, value="new") is None
    (kept,) = (path for path in old.path.iterdir() if ON_A_DAY.fullmatch(path.name))
    assert earlier_profile(old) == kept
    assert databases(old) == ["causerie.db", kept.name]
    assert texts(kept, key_of(old)) == WRITTEN
    assert (old.key_header.read_bytes(), old.place_secret.read_bytes()) == ways
    before = kept.read_bytes()
    assert start(old) == "new", "the second start finds what the first one saved"
    assert databases(old) == ["causerie.db", kept.name]
    assert kept.read_bytes() == before


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize(("module", "name", "when"), STEPS)
def test_wherever_a_start_dies_the_next_one_finds_one_whole_profile(
    tmp_path: Path, module: str, name: str, when: str, killed: bool
) -> None:
    """Also where a later profile left what tells of a database that is gone."""
    directory = old_profile(tmp_path, killed=killed)
    directory.archive.write_bytes(b"kept for others")
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(tmp_path), module, name, when],
        cwd=REPOSITORY,
        check=False,
        timeout=PATIENCE_S,
    )
    assert died.returncode == -signal.SIGKILL
    assert start(directory, value="new") is None
    kept = earlier_profile(directory)
    assert kept is not None
    assert databases(directory) == ["causerie.db", kept.name]
    assert texts(kept, key_of(directory)) == WRITTEN
    assert start(directory) == "new"
    directory.database.unlink()
    with pytest.raises(StorageError, match="is gone"):
        start(directory)


def test_none_that_was_kept_before_is_overwritten(tmp_path: Path) -> None:
    """Somebody puts an old one back, as often as they like."""
    directory = old_profile(tmp_path)
    key = key_of(directory)
    kept: list[Path] = []
    for _ in range(12):
        keep_aside(directory, key, day="2026-11-22")
        kept.append(earlier_profile(directory) or Path())
        make_old_database(directory.database, key)
    assert [path.name for path in kept[:3]] == [
        f"causerie.db.before-2026-11-22{number}" for number in ("", "-2", "-3")
    ]
    assert len(set(kept)) == len(kept)
    assert all(texts(path, key) == WRITTEN for path in kept)
    orphan = directory.path / "causerie.db.before-2026-12-01-wal"
    orphan.write_bytes(b"of something else")
    keep_aside(directory, key, day="2026-12-01")
    assert earlier_profile(directory) == directory.path / "causerie.db.before-2026-12-01-2"
    assert orphan.read_bytes() == b"of something else"


def test_while_somebody_reads_it_it_stays_where_it_is(tmp_path: Path) -> None:
    directory = old_profile(tmp_path)
    make_old_database(directory.database, key_of(directory), application_id=APPLICATION_ID)
    with pytest.MonkeyPatch.context() as then:
        then.setattr("engine.persistence.schema.SCHEMA_VERSION", 9)
        reader = open_readonly(directory.database, key_of(directory))
    reader.execute("SELECT * FROM message").fetchall()
    with pytest.raises(StorageError, match=r"Another process reads .*causerie\.db\. Close it"):
        keep_aside(directory, key_of(directory), day=DAY)
    assert earlier_profile(directory) is None
    reader.close()
    keep_aside(directory, key_of(directory), day=DAY)
    assert earlier_profile(directory) is not None


def test_a_disk_that_refuses_is_named_and_the_profile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = old_profile(tmp_path)

    def refuses(path: Path, target: Path) -> Path:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path, target)

    with monkeypatch.context() as then:
        then.setattr(Path, "rename", refuses)
        with pytest.raises(StorageError, match=rf"{ON_A_DAY.pattern}: Read-only file"):
            start(directory)
    assert databases(directory) == ["causerie.db"]
    assert texts(directory.database, key_of(directory)) == WRITTEN


def test_another_key_or_a_newer_version_is_no_reason_to_put_a_profile_aside(
    tmp_path: Path,
) -> None:
    directory = open_profile_directory(tmp_path)
    make_old_database(
        directory.database,
        key_of(directory),
        version=SCHEMA_VERSION + 1,
        application_id=APPLICATION_ID,
    )
    with pytest.raises(DatabaseTooNewError):
        start(directory)
    make_old_database(directory.database, bytes(32))
    with pytest.raises(StorageError, match="cannot be decrypted"):
        start(directory)
    assert databases(directory) == ["causerie.db"]


def test_the_doctor_says_so_before_and_where_it_is_after(
    old: ProfileDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(doctor(old)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "test version whose format is not used any more" in said.err
    assert earlier_profile(old) is None
    start(old)
    assert main(doctor(old)) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["database"]["earlier_profile"] == str(earlier_profile(old))
    assert page["attention"] == []
    empty = open_profile_directory(old.path.parent / "empty")
    start(empty)
    assert main(doctor(empty)) == 0
    assert "earlier_profile" not in json.loads(capsys.readouterr().out)["database"]


def test_a_store_that_is_opened_without_the_start_refuses_it(tmp_path: Path) -> None:
    directory = old_profile(tmp_path)
    with ProfileLock(directory), pytest.raises(DatabaseFromBeforeError):
        open_database(directory.database, key_of(directory))
    assert texts(directory.database, key_of(directory)) == WRITTEN
