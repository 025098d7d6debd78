"""Backup and restore of a profile: all of it comes back, or nothing changes and it is said why."""

import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from engine.codec.backup import END_MARK, HEADER_BYTES
from engine.core.blobs.manifest import MAX_SEALED_BYTES
from engine.core.errors import BackupError, BackupFlaw, StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.ports import SaveValue
from engine.crypto.backup import SEALED_CHUNK_BYTES
from engine.persistence import backup
from engine.persistence.backup import forget_backup_leftovers, new_secret, write_backup
from engine.persistence.backup_file import BackupWriter, read_backup_header
from engine.persistence.connection import connect
from engine.persistence.key import KEY_FILE_VARIABLE, obtain_database_key
from engine.persistence.lock import held_file
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.restore import forget_restoring, restore_backup
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.patience import PATIENCE_S
from tests.persistence.backup_examples import (
    CHEAP,
    CHUNKS,
    DEFAULTS,
    MESSAGES,
    SETTINGS,
    STAY,
    WORDS,
    backed_up,
    key_of,
    make_profile,
    place_in,
    restored,
    source_of,
)
from tests.persistence.desktop_keyring import desktop_keyring
from tests.persistence.store_examples import GROUP, PROFILE, row

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> ProfileDirectory:
    return make_profile(tmp_path_factory.mktemp("profile") / "ines")


@pytest.fixture(scope="module")
def file(original: ProfileDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("backups") / "ines.causerie-backup"
    backed_up(original, path)
    return path


@pytest.fixture
def own(original: ProfileDirectory, tmp_path: Path) -> ProfileDirectory:
    """A copy that a test may change."""
    shutil.copytree(original.path, tmp_path / "own")
    return open_profile_directory(tmp_path / "own")


@pytest.fixture
def empty(tmp_path: Path) -> ProfileDirectory:
    return open_profile_directory(tmp_path / "empty")


def rows_of(directory: ProfileDirectory) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    connection = connect(str(directory.database), key_of(directory))
    try:
        return {name: rows_in(connection, name) for name in tables_of(connection)}
    finally:
        connection.close()


def tables_of(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return sorted(name for (name,) in found)


def rows_in(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    found = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - our own name
    return sorted(found, key=repr)


def names_in(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def is_untouched(directory: ProfileDirectory) -> bool:
    """No profile, and nothing that an attempt left."""
    return not directory.has_database() and set(names_in(directory.path)) <= {
        "database.keys", "database.keys.copy", "database.secret", "blobs", "settings.toml"
    }  # fmt: skip


# --- all of it comes back -------------------------------------------------------------------------


def test_every_row_and_file_comes_back_but_what_is_of_the_device(
    original: ProfileDirectory, file: Path, empty: ProfileDirectory
) -> None:
    assert restored(file, empty).files == len(CHUNKS)
    before, after = rows_of(original), rows_of(empty)
    profile, again = before.pop("profile")[0], after.pop("profile")[0]
    assert before.pop("own_sequence")
    assert after.pop("own_sequence") == []
    assert ("network.port", "1") in before["value"]
    before["value"].remove(("network.port", "1"))
    assert before == after
    changed = [n for n, (a, b) in enumerate(zip(profile, again, strict=True)) if a != b]
    assert len(changed) == 2, "the instance id and the network key"
    for sealed in (directory.files for directory in (original, empty)):
        assert [path.read_bytes() for path in sorted(sealed.iterdir())] == [
            path.read_bytes() for path in sorted(original.files.iterdir())
        ]
    assert (empty.path / "settings.toml").read_text(encoding="utf-8") == SETTINGS
    assert (empty.path / "window.json").read_text(encoding="utf-8") == "{}"
    assert key_of(empty) != key_of(original)


def test_two_restored_from_one_file_number_apart(file: Path, tmp_path: Path) -> None:
    instances = {PROFILE.instance_id}
    networks = {PROFILE.network_key}
    for name in ("first", "second"):
        directory = open_profile_directory(tmp_path / name)
        restored(file, directory)
        store = SqliteProfileStore.open(directory.database, key_of(directory))
        profile = store.profile()
        assert profile is not None
        assert profile.signing_key == PROFILE.signing_key
        assert store.own_sequence(GROUP, STAY) is None
        instances.add(profile.instance_id)
        networks.add(profile.network_key)
        store.close()
    assert len(instances) == len(networks) == 3


def test_it_is_of_one_moment_while_the_profile_is_written_to(
    own: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path
) -> None:
    store = SqliteProfileStore.open(own.database, key_of(own))
    written: list[float] = []

    def write(share: float) -> bool:
        number = MESSAGES + len(written)
        store.apply([row(number, f"m{number:03}")])
        written.append(share)
        return True

    file = tmp_path / "file"
    write_backup(
        source_of(own), file, new_secret(WORDS, CHEAP), created_ms=UnixMs(1), progress=write
    )
    assert len(written) > 3
    restored(file, empty)
    again = SqliteProfileStore.open(empty.database, key_of(empty))
    total = again.latest_page(GROUP, limit=1).total
    assert MESSAGES <= total < MESSAGES + len(written)
    assert store.latest_page(GROUP, limit=1).total == MESSAGES + len(written)
    store.close()
    again.close()


def test_what_the_header_says(file: Path) -> None:
    header = read_backup_header(file)
    assert (header.created_ms, header.app_version, header.cost) == (1, "1.0", CHEAP)
    start = file.read_bytes()[:HEADER_BYTES]
    assert PROFILE.name.encode() not in start
    assert PROFILE.signing_key not in start
    assert file.stat().st_mode & 0o077 == 0


def test_nothing_readable_is_in_the_file(original: ProfileDirectory, file: Path) -> None:
    data = file.read_bytes()
    for known in (b"SQLite format", b"text 7", b"mine", PROFILE.signing_key, key_of(original)):
        assert known not in data


def test_it_takes_the_place_of_an_older_one(own: ProfileDirectory, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"older")
    backed_up(own, file)
    assert read_backup_header(file).created_ms == 1
    assert names_in(tmp_path) == ["file", "own"]


# --- the place ------------------------------------------------------------------------------------


def test_never_over_a_profile(own: ProfileDirectory, file: Path) -> None:
    before = {name: (own.path / name).read_bytes() for name in ("causerie.db", "database.keys")}
    with pytest.raises(BackupError) as refused:
        restored(file, own)
    assert refused.value.flaw is BackupFlaw.PROFILE_THERE
    assert before == {name: (own.path / name).read_bytes() for name in before}


def test_a_first_start_in_which_nobody_has_a_name_yet_gives_way(
    file: Path, empty: ProfileDirectory
) -> None:
    store = SqliteProfileStore.open(empty.database, key_of(empty))
    store.apply([SaveValue(key="clock.judged", value="x")])
    store.close()
    key = key_of(empty)
    restored(file, empty)
    assert key_of(empty) == key
    store = SqliteProfileStore.open(empty.database, key)
    assert store.profile() is not None
    assert store.value("clock.judged") is None
    store.close()


def test_settings_that_somebody_chose_stay_and_defaults_do_not(
    file: Path, empty: ProfileDirectory, tmp_path: Path
) -> None:
    settings = empty.path / "settings.toml"
    settings.write_bytes(DEFAULTS)
    assert restored(file, empty).settings_beside is None
    assert settings.read_text(encoding="utf-8") == SETTINGS
    chosen = open_profile_directory(tmp_path / "chosen")
    (chosen.path / "settings.toml").write_text("[log]\n", encoding="utf-8")
    beside = restored(file, chosen).settings_beside
    assert beside == chosen.path / "settings.from-backup.toml"
    assert beside.read_text(encoding="utf-8") == SETTINGS
    assert (chosen.path / "settings.toml").read_text(encoding="utf-8") == "[log]\n"


def test_settings_that_forbid_the_keyring_go_beside_where_it_has_the_key(
    file: Path, empty: ProfileDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    place = structs.replace(
        place_in(empty), force_key_file=False, wants_key_file=lambda _settings: True
    )
    with desktop_keyring():
        done = restore_backup(file, WORDS, place)
        assert done.settings_beside == empty.path / "settings.from-backup.toml"
        assert not place.settings.exists()
        key = obtain_database_key(empty).key
    store = SqliteProfileStore.open(empty.database, key)
    assert store.profile() is not None
    store.close()


# --- files that are not as they were --------------------------------------------------------------


def bent(file: Path, place: int, target: Path) -> Path:
    data = bytearray(file.read_bytes())
    data[place] ^= 1 << place % 8
    target.write_bytes(data)
    return target


def refusal(file: Path, directory: ProfileDirectory) -> BackupFlaw:
    with pytest.raises(BackupError) as refused:
        restored(file, directory)
    assert is_untouched(directory)
    return refused.value.flaw


def test_a_bit_that_flips_anywhere_is_found(
    file: Path, empty: ProfileDirectory, tmp_path: Path
) -> None:
    """In each field of the header, in each chunk and its tag, in what ends the file."""
    size, bad = file.stat().st_size, tmp_path / "bad"
    chunks = range(HEADER_BYTES, size - len(END_MARK), SEALED_CHUNK_BYTES)
    inside = {place + more for place in chunks for more in (0, 1, 77, SEALED_CHUNK_BYTES - 1)}
    last = {size - len(END_MARK) - 1, size - len(END_MARK) - 17}
    for place in sorted(inside | last):
        if place < size - len(END_MARK):
            assert refusal(bent(file, place, bad), empty) is BackupFlaw.DAMAGED
    for place in range(0, HEADER_BYTES, 3):
        assert refusal(bent(file, place, bad), empty) in (
            BackupFlaw.FOREIGN, BackupFlaw.TOO_NEW, BackupFlaw.DAMAGED
        )  # fmt: skip
    for place in range(size - len(END_MARK), size):
        assert refusal(bent(file, place, bad), empty) is BackupFlaw.CUT_OFF


def test_a_file_that_is_cut_off_is_called_so(
    file: Path, empty: ProfileDirectory, tmp_path: Path
) -> None:
    data, bad = file.read_bytes(), tmp_path / "bad"
    for length in (1, 20, HEADER_BYTES, HEADER_BYTES + 1, len(data) // 2, len(data) - 1):
        bad.write_bytes(data[:length])
        assert refusal(bad, empty) is BackupFlaw.CUT_OFF
    bad.write_bytes(data[: len(data) // 2] + END_MARK)
    assert refusal(bad, empty) is BackupFlaw.DAMAGED
    bad.write_bytes(data + END_MARK)
    assert refusal(bad, empty) is BackupFlaw.DAMAGED


def test_chunks_in_another_order_are_found(
    file: Path, empty: ProfileDirectory, tmp_path: Path
) -> None:
    data, bad = file.read_bytes(), tmp_path / "bad"
    first = data[HEADER_BYTES : HEADER_BYTES + SEALED_CHUNK_BYTES]
    second = data[HEADER_BYTES + SEALED_CHUNK_BYTES : HEADER_BYTES + 2 * SEALED_CHUNK_BYTES]
    assert len(second) == SEALED_CHUNK_BYTES
    rest = data[HEADER_BYTES + 2 * SEALED_CHUNK_BYTES :]
    bad.write_bytes(data[:HEADER_BYTES] + second + first + rest)
    assert refusal(bad, empty) is BackupFlaw.DAMAGED


def test_foreign_files_and_another_passphrase(
    file: Path, original: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    for data in (b"", b"PK\3\4", os.urandom(1_000), original.database.read_bytes()):
        foreign.write_bytes(data)
        assert refusal(foreign, empty) is BackupFlaw.FOREIGN
    with pytest.raises(BackupError) as refused:
        restore_backup(file, "correct horse batterx", place_in(empty))
    assert refused.value.flaw is BackupFlaw.NOT_OPENED
    with pytest.raises(StorageError) as absent:
        restored(tmp_path / "absent", empty)
    assert absent.value.fault is StorageFault.FILE_NOT_READ
    assert is_untouched(empty)


def test_a_backup_of_a_newer_version_is_called_newer(
    own: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "SCHEMA_VERSION", 1_000)
    backed_up(own, tmp_path / "newer")
    assert refusal(tmp_path / "newer", empty) is BackupFlaw.TOO_NEW


# --- what goes wrong on the way -------------------------------------------------------------------


def test_it_can_be_stopped_at_any_time(
    own: ProfileDirectory, file: Path, empty: ProfileDirectory, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    for most in (0.0, 0.2, 0.5, 0.9):

        def goes_on(share: float, most: float = most) -> bool:
            return share < most

        with pytest.raises(BackupError) as stopped:
            write_backup(
                source_of(own), target, new_secret(WORDS, CHEAP), created_ms=UnixMs(1),
                progress=goes_on,
            )  # fmt: skip
        assert stopped.value.flaw is BackupFlaw.STOPPED
        assert names_in(tmp_path) == ["empty", "own"]
        assert not own.backup_copy.exists()
        with pytest.raises(BackupError) as stopped:
            restore_backup(file, WORDS, place_in(empty), goes_on)
        assert stopped.value.flaw is BackupFlaw.STOPPED
        assert is_untouched(empty)


def test_a_full_disk_leaves_what_was_there(
    own: ProfileDirectory, file: Path, empty: ProfileDirectory, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    target = tmp_path / "target"
    target.write_bytes(b"older")

    def full(descriptor: int) -> None:
        del descriptor
        raise OSError(28, "No space left on device")

    key_of(empty)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError) as made:
        backed_up(own, target)
    with pytest.raises(StorageError) as put:
        restored(file, empty)
    assert made.value.fault is put.value.fault is StorageFault.DISK_FULL
    assert target.read_bytes() == b"older"
    assert names_in(tmp_path) == ["empty", "own", "target"]
    assert is_untouched(empty)


def test_what_was_written_wrongly_is_not_called_a_backup(
    own: ProfileDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BackupWriter.finish

    def finish(writer: BackupWriter) -> None:
        real(writer)
        bent(writer.passing, HEADER_BYTES + 5_000, writer.passing)

    monkeypatch.setattr(BackupWriter, "finish", finish)
    with pytest.raises(BackupError) as refused:
        backed_up(own, tmp_path / "target")
    assert refused.value.flaw is BackupFlaw.DAMAGED
    assert names_in(tmp_path) == ["own"]


@pytest.mark.parametrize(
    "name", ["causerie.db", "causerie.db-wal", "causerie.db.backup", "database.keys", "blobs/file"]
)
def test_never_inside_the_profile_that_it_is_of(
    own: ProfileDirectory, tmp_path: Path, name: str
) -> None:
    rows, before = rows_of(own), names_in(own.path)
    (tmp_path / "link").symlink_to(own.path, target_is_directory=True)
    for place in (own.path, tmp_path / "link", own.path / "blobs" / ".."):
        with pytest.raises(BackupError) as refused:
            backed_up(own, place / name)
        assert refused.value.flaw is BackupFlaw.IN_PROFILE
    assert (rows_of(own), names_in(own.path)) == (rows, before)


def test_one_backup_at_a_time(own: ProfileDirectory, tmp_path: Path) -> None:
    with held_file(own.backup_lock):
        own.backup_copy.write_bytes(b"being made")
        with pytest.raises(StorageError) as refused:
            backed_up(own, tmp_path / "target")
        forget_backup_leftovers(own)
        assert own.backup_copy.exists()
    assert refused.value.fault is StorageFault.LOCKED
    forget_backup_leftovers(own)
    assert not own.backup_copy.exists()


def test_a_chunk_that_is_damaged_is_left_out(
    own: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path
) -> None:
    damaged = min(own.files.iterdir())
    damaged.write_bytes(b"x")
    made = backed_up(own, tmp_path / "file")
    assert (made.files, made.left_out) == (len(CHUNKS) - 1, 1)
    restored(tmp_path / "file", empty)
    assert damaged.name not in names_in(empty.files)


def test_files_that_no_backup_can_hold_are_left_out(own: ProfileDirectory, tmp_path: Path) -> None:
    for sealed in (b"", b"x" * (MAX_SEALED_BYTES + 1)):
        (own.files / hashlib.sha256(sealed).hexdigest()).write_bytes(sealed)
    (own.files / ("ab" * 32)).mkdir()
    made = backed_up(own, tmp_path / "file")
    assert (made.files, made.left_out) == (len(CHUNKS), 3)


def test_a_chunk_that_vanishes_takes_no_other_with_it(
    own: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path
) -> None:
    """Its name is listed, and then nothing is there: as one that is deleted at this moment."""
    (own.files / ("00" * 32)).symlink_to(tmp_path / "absent")
    made = backed_up(own, tmp_path / "file")
    assert (made.files, made.left_out) == (len(CHUNKS), 0)
    assert restored(tmp_path / "file", empty).files == len(CHUNKS)


# --- killed ---------------------------------------------------------------------------------------


def killed(what: str, directory: ProfileDirectory, file: Path, step: str) -> None:
    arguments = (what, directory.path, file, step)
    done = subprocess.run(
        [sys.executable, "-m", "tests.persistence.backup_process", *arguments],
        cwd=REPOSITORY,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, step


@pytest.mark.parametrize("step", ["100", "500", "999", "_check", "sync_directory"])
def test_a_backup_that_is_killed_loses_nothing(
    own: ProfileDirectory, empty: ProfileDirectory, tmp_path: Path, step: str
) -> None:
    before, target = rows_of(own), tmp_path / "target"
    backed_up(own, target)
    older = target.read_bytes()
    killed("backup", own, target, step)
    if step != "sync_directory":
        assert target.read_bytes() == older
    restored(target, empty)
    forget_backup_leftovers(own)
    assert not own.backup_copy.exists()
    assert rows_of(own) == before
    of_another = tmp_path / f".causerie-{'00' * 8}-{'00' * 8}.part"
    of_another.write_bytes(b"being made")
    backed_up(own, target)
    assert names_in(tmp_path) == [of_another.name, "empty", "own", "target"]


@pytest.mark.parametrize(
    "step",
    ["100", "450", "600", "obtain_database_key", "_begin_anew", "_put_in_place", "_put_settings",
     "bring_into_one_file"],
)  # fmt: skip
def test_a_restore_that_is_killed_can_be_done_again(
    file: Path, original: ProfileDirectory, tmp_path: Path, step: str
) -> None:
    directory = open_profile_directory(tmp_path / "new")
    SqliteProfileStore.open(directory.database, key_of(directory)).close()
    killed("restore", directory, file, step)
    forget_restoring(directory)
    store = SqliteProfileStore.open(directory.database, key_of(directory))
    assert store.profile() is None, "a half restored profile is none"
    store.close()
    restored(file, directory)
    assert len(rows_of(directory)["message"]) == len(rows_of(original)["message"])


def test_a_restore_that_is_killed_at_its_last_step_is_done(
    file: Path, tmp_path: Path, original: ProfileDirectory
) -> None:
    directory = open_profile_directory(tmp_path / "new")
    killed("restore", directory, file, "1000")
    assert len(rows_of(directory)["message"]) == len(rows_of(original)["message"])
