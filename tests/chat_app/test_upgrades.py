"""What an upgrade may meet, on a profile of a released version: said in words, the profile whole.

No room, no right to write, a newer version's profile, two programs at once, a start that is killed
while it upgrades.  Each begins with a kept profile and the path of a real start.
"""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.compose import open_store
from engine.core.errors import StorageError, StorageFault
from engine.persistence import database, schema
from engine.persistence.connection import connect
from engine.persistence.errors import DatabaseTooNewError, DiskFullError
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.schema import SCHEMA_VERSION, Migration
from tests.chat_app.test_kept_profiles import GOVERNED, kept_profile
from tests.persistence.test_schema import all_rows

REPOSITORY = Path(__file__).parents[2]
GROUPS = [GOVERNED, "Tide Gauge"]
"""Those of the newest profile."""
from_both = pytest.mark.parametrize(
    ("profile", "groups"),
    [("oldest", ["Tide Gauge"]), ("newest", GROUPS)],
    ids=["oldest", "newest"],
    indirect=["profile"],
)
"""One that has the most steps to go, and one that has the most to lose."""

# The next version's start, killed before or after its step is durable.
NEXT_VERSION = """
import os, signal, sys
from pathlib import Path
from chat_app.compose import open_store
from engine.persistence import schema
from engine.persistence.profile_directory import open_profile_directory
place, when = sys.argv[1:]
def grow(connection):
    connection.execute("CREATE TABLE mood (words TEXT NOT NULL) STRICT")
    connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
schema.MIGRATIONS = (*schema.MIGRATIONS, schema.Migration(grow))
schema.SCHEMA_VERSION += 1
open_store(open_profile_directory(Path(place)), force_key_file=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

# Starts of this version, each on a copy of its own and killed at a statement further on, until one
# is through.  What only reads changes nothing.
KILLED_ANYWHERE = """
import os, shutil, signal, sys
from pathlib import Path
import sqlite_utils  # once, before it forks
from chat_app.compose import open_store
from engine.persistence import database
from engine.persistence.connection import connect
from engine.persistence.profile_directory import open_profile_directory
place, killed = map(Path, sys.argv[1:])
def start(place, last):
    seen = []
    def look(statement):
        if not statement.lower().startswith("select"):
            seen.append(statement)
        if len(seen) == last:
            print(statement.split()[0], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    def connected(address, key):
        connection = connect(address, key)
        connection.set_trace_callback(look)
        return connection
    database.connect = connected
    open_store(open_profile_directory(place), force_key_file=True).store.close()
for last in range(1, 1_000):
    copy = killed / f"{last:03}"
    shutil.copytree(place, copy)
    child = os.fork()
    if not child:
        start(copy, last)
        os._exit(0)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        break
"""
HOLDER = """
import sys
from pathlib import Path
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
with ProfileLock(open_profile_directory(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def profile(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ProfileDirectory:
    """The newest, unless a test is ``from_both``."""
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    return open_profile_directory(
        kept_profile(tmp_path, oldest=getattr(request, "param", "newest") == "oldest")
    )


def start(profile: ProfileDirectory) -> list[str]:
    """As a window starts; the names of the groups."""
    store = open_store(profile, force_key_file=True).store
    names = sorted(group.name for group in store.groups())
    store.close()
    return names


def version_of(profile: ProfileDirectory) -> int:
    connection = connected(profile)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(version)


def connected(profile: ProfileDirectory) -> sqlite3.Connection:
    return connect(str(profile.database), obtain_database_key(profile, force_key_file=True).key)


def rows_of(profile: ProfileDirectory) -> dict[str, list[tuple[object, ...]]]:
    connection = connected(profile)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = all_rows(connection)
    connection.close()
    return rows


@contextmanager
def version_before(profile: ProfileDirectory) -> Iterator[int]:
    """A start is one of the version that wrote this profile; the number of its schema."""
    connection = connected(profile)
    applied = {name for (name,) in connection.execute("SELECT name FROM _sqlite_migrations")}
    connection.close()
    version = version_of(profile)
    with pytest.MonkeyPatch.context() as then:
        known = tuple(step for step in schema.MIGRATIONS if step.name in applied)
        then.setattr(schema, "MIGRATIONS", known)
        then.setattr(schema, "SCHEMA_VERSION", version)
        yield version


def grow(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.execute("CREATE TABLE mood (words TEXT NOT NULL) STRICT")
    connection.executemany("INSERT INTO mood VALUES (?)", [("x" * 4_000,)] * 50)


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A start is one of a version with a step more."""
    with monkeypatch.context() as then:
        then.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, Migration(grow)))
        then.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        yield


def said_by_doctor(profile: ProfileDirectory, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(("--profile-dir", str(profile.path), "doctor")) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err


def test_a_profile_of_a_newer_version_is_left_as_it_is_and_that_is_said(
    profile: ProfileDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody installed an older version over a newer one."""
    start(profile)
    connection = connected(profile)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = profile.database.read_bytes()
    with pytest.raises(DatabaseTooNewError) as error:
        start(profile)
    assert error.value.fault is StorageFault.TOO_NEW
    assert "newer version" in said_by_doctor(profile, capsys)
    assert profile.database.read_bytes() == before


def test_two_programs_at_once_the_second_is_told_who_has_it(
    profile: ProfileDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions may be installed; the lock is the system's, so it is the same for both."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    start(profile)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(profile.path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    before = profile.database.read_bytes()
    assert main(("--profile-dir", str(profile.path))) == 2
    assert f"is in use by process {holder.pid}." in capsys.readouterr().err
    assert profile.database.read_bytes() == before
    holder.communicate()
    assert start(profile) == GROUPS


@from_both
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.usefixtures("next_version")
def test_an_upgrade_that_is_killed_leaves_one_version_whole(
    profile: ProfileDirectory, groups: list[str], when: str
) -> None:
    start_of = [sys.executable, "-c", NEXT_VERSION, str(profile.path), when]
    died = subprocess.run(start_of, cwd=REPOSITORY, check=False)
    assert died.returncode == -signal.SIGKILL
    assert version_of(profile) == SCHEMA_VERSION + int(when == "after")
    connection = connected(profile)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert start(profile) == groups
    assert version_of(profile) == SCHEMA_VERSION + 1


@pytest.mark.parametrize("profile", ["oldest"], indirect=True)
def test_an_upgrade_that_is_killed_at_any_statement_is_done_by_the_next_start(
    profile: ProfileDirectory, tmp_path: Path
) -> None:
    """Until a step of it is durable, the version before has its profile as well."""
    killed = tmp_path / "killed"
    start_of = [sys.executable, "-c", KILLED_ANYWHERE, str(profile.path), str(killed)]
    done = subprocess.run(start_of, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    *places, through = map(ProfileDirectory, sorted(killed.iterdir()))
    last_words = done.stdout.splitlines()
    assert len(last_words) == len(places)
    assert {"PRAGMA", "BEGIN", "CREATE", "ALTER", "INSERT", "COMMIT"} <= {*last_words}
    old, whole, left = rows_of(profile), rows_of(through), set[int]()
    for place in places:
        version = version_of(place)
        left.add(version)
        with version_before(profile) as oldest:
            if version == oldest:
                opened_by_it(place).close()
                assert rows_of(place) == old, place
            else:
                with pytest.raises(DatabaseTooNewError):
                    opened_by_it(place)
        assert start(place) == ["Tide Gauge"], place
        assert rows_of(place) == whole, place
    assert left == {*range(version_of(profile), SCHEMA_VERSION)}


def opened_by_it(profile: ProfileDirectory) -> sqlite3.Connection:
    key = obtain_database_key(profile, force_key_file=True).key
    return database.open_database(profile.database, key)


@from_both
@pytest.mark.usefixtures("next_version")
def test_an_upgrade_without_room_is_said_and_can_be_done_later(
    profile: ProfileDirectory, groups: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_little_room(address: str, key: bytes) -> sqlite3.Connection:
        connection = connect(address, key)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        return connection

    before = version_of(profile)
    with monkeypatch.context() as then:
        then.setattr(database, "connect", with_little_room)
        with pytest.raises(DiskFullError, match="disk is full"):
            start(profile)
    assert version_of(profile) <= SCHEMA_VERSION
    assert version_of(profile) >= before
    assert start(profile) == groups


def refusing(real: Callable[..., int]) -> Callable[..., int]:
    """As a read-only disk does, for whoever wants to write."""

    def opened(path: str, flags: int, *more: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *more)

    return opened


def test_without_the_right_to_write_it_is_said_and_nothing_is_tried(
    profile: ProfileDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    before = profile.database.read_bytes()
    with monkeypatch.context() as then:
        then.setattr(os, "open", refusing(os.open))
        with pytest.raises(StorageError, match="cannot be used: Read-only file system"):
            open_profile_directory(profile.path)
        assert main(("--profile-dir", str(profile.path))) == 2
    told = capsys.readouterr().err
    assert str(profile.path) in told
    assert "Read-only file system" in told
    assert profile.database.read_bytes() == before
