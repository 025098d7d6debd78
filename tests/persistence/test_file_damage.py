"""Damaged files are told from files that a crash leaves, and from a key that does not fit."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.compose import open_store
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.ports import SaveProfile
from engine.persistence.cipher_pages import PAGE_BYTES, PageCipher, cipher_of
from engine.persistence.database import damaged_pages, open_database, open_readonly
from engine.persistence.database_files import DatabaseFiles
from engine.persistence.file_damage import (
    examine_files,
    explained,
    require_readable_log,
    require_what_was_there,
)
from engine.persistence.key import obtain_database_key
from engine.persistence.page_trees import keep_list_of_tables, page_owners, tree
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.recovery import Recovered, recover
from engine.persistence.salvage import salvage
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.wal_frames import LogPages, committed_frames, read_index, read_log
from tests.persistence.conftest import KEY
from tests.persistence.damage import content, copy_files, fill, flip, ruin, say
from tests.persistence.store_examples import PROFILE

FRAME_BYTES = PAGE_BYTES + 24
LOG_HEADER = 32
OTHER_KEY = bytes(reversed(KEY))


class Files:
    """Of a process that was killed: all that it said last is in the log."""

    def __init__(self, place: Path) -> None:
        live = place / "live.db"
        store = SqliteProfileStore.open(live, KEY)
        fill(store, 100)
        store.close()
        keep_list_of_tables(live, KEY)
        shutil.copyfile(live, place / "closed.db")
        store = SqliteProfileStore.open(live, KEY)
        say(store, 100, 200)
        self.files = DatabaseFiles(place / "killed.db")
        copy_files(live, self.files.path)
        shutil.copyfile(DatabaseFiles(live).kept, self.files.kept)
        store.close()
        self.closed = DatabaseFiles(place / "closed.db")
        self.content = content(live)


@pytest.fixture
def killed(tmp_path: Path) -> Files:
    return Files(tmp_path)


def recovered(files: DatabaseFiles) -> tuple[Recovered, dict[str, list[tuple[object, ...]]]]:
    new = files.path.with_name("new.db")
    found = recover(files.path, new, KEY, now_ms=UnixMs(1))
    return found, content(new)


def is_refused(files: DatabaseFiles) -> None:
    before = files.path.read_bytes()
    with pytest.raises(StorageError, match="SQLite would forget them") as refused:
        require_readable_log(files.path, KEY)
    assert refused.value.fault is StorageFault.DAMAGED
    assert files.path.read_bytes() == before
    assert examine_files(files.path, KEY).frames_lost > 0


# --- a database that is gone ----------------------------------------------------------------------


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("trace", ["causerie.db-wal", "causerie.db.tables", "archive.db"])
def test_an_empty_profile_is_not_begun_where_one_was(
    directory: ProfileDirectory, trace: str, is_there: bool
) -> None:
    (directory.path / trace).write_bytes(b"something")
    if is_there:
        directory.database.touch()
    with pytest.raises(StorageError, match=r"empty|gone") as refused:
        require_what_was_there(directory)
    assert refused.value.fault is StorageFault.DATABASE_GONE


def test_no_new_key_is_made_where_a_database_was(directory: ProfileDirectory) -> None:
    """It would take the place of the key that opens what is left of it."""
    DatabaseFiles(directory.database).kept.write_bytes(b"something")
    with pytest.raises(StorageError, match="gone"):
        obtain_database_key(directory, force_key_file=True)
    assert [path.name for path in directory.path.iterdir()] == ["causerie.db.tables"]


def test_a_first_start_that_was_killed_may_begin_again(directory: ProfileDirectory) -> None:
    require_what_was_there(directory)
    directory.database.touch()
    directory.key_file.touch()
    require_what_was_there(directory)


def test_a_database_that_is_emptied_after_its_first_start_is_told(
    directory: ProfileDirectory,
) -> None:
    """Its list of tables is kept from that start on."""
    store = open_store(directory, force_key_file=True).store
    store.apply([SaveProfile(profile=PROFILE)])
    store.close()
    directory.database.write_bytes(b"")
    with pytest.raises(StorageError, match="empty") as refused:
        open_store(directory, force_key_file=True)
    assert refused.value.fault is StorageFault.DATABASE_GONE
    assert directory.database.read_bytes() == b""


def test_another_profile_s_database_is_not_taken_for_damage(
    directory: ProfileDirectory, killed: Files
) -> None:
    """The copy of the list of tables, which fits the key, says nothing of a database put there."""
    open_store(directory, force_key_file=True).store.close()
    assert DatabaseFiles(directory.database).kept.exists()
    shutil.copyfile(killed.closed.path, directory.database)
    key = obtain_database_key(directory).key
    with pytest.raises(StorageError) as refused:
        open_store(directory, force_key_file=True)
    assert refused.value.fault is StorageFault.NOT_DECRYPTED
    with pytest.raises(StorageError, match="the key is another one"):
        salvage(directory, key, day="2026-11-26", now_ms=UnixMs(1))
    assert directory.database.read_bytes() == killed.closed.path.read_bytes()


# --- the log --------------------------------------------------------------------------------------


def test_a_log_that_a_killed_process_left_is_right(killed: Files) -> None:
    require_readable_log(killed.files.path, KEY)
    assert examine_files(killed.files.path, KEY).is_whole


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(8 * 2, id="magic"),
        pytest.param(8 * 17, id="salt"),
        pytest.param(8 * (LOG_HEADER + 3), id="number of a page"),
        pytest.param(8 * (LOG_HEADER + 9), id="salt of a frame"),
        pytest.param(8 * (LOG_HEADER + 17), id="checksum"),
        pytest.param(8 * (LOG_HEADER + 2 * FRAME_BYTES + 999), id="a page"),
    ],
)
@pytest.mark.parametrize("has_index", [True, False])
def test_a_changed_bit_in_the_log_is_told_and_undone(
    killed: Files, bit: int, has_index: bool
) -> None:
    flip(killed.files.log, bit)
    if not has_index:
        killed.files.index.unlink()
    is_refused(killed.files)
    found, rows = recovered(killed.files)
    assert found.unreadable == 0
    assert rows == killed.content


def test_a_commit_that_a_power_cut_tore_is_no_damage(killed: Files) -> None:
    """It was not synced yet, so nobody was told that it was saved; and there is no index then."""
    killed.files.index.unlink()
    data = bytearray(killed.files.log.read_bytes())
    log = read_log(killed.files.log)
    assert log is not None
    commits = [n for n, frame in enumerate(log.frames) if frame.pages_after]
    torn = log.frames[commits[-2] + 1]
    data[torn.at : torn.at + 512] = bytes(512)
    killed.files.log.write_bytes(data)
    require_readable_log(killed.files.path, KEY)


@pytest.mark.parametrize("left", [0, LOG_HEADER, LOG_HEADER + 3 * FRAME_BYTES + 100])
def test_a_log_that_was_cut_off_or_removed_is_told(killed: Files, left: int) -> None:
    if left:
        killed.files.log.write_bytes(killed.files.log.read_bytes()[:left])
    else:
        killed.files.log.unlink()
    is_refused(killed.files)
    found, rows = recovered(killed.files)
    assert found.pages.frames_missing > 0 or left <= LOG_HEADER
    assert rows["profile"] == killed.content["profile"]


@pytest.mark.parametrize("missing", [1, 3, 20])
def test_of_a_log_that_lost_its_end_no_half_transaction_comes_over(
    killed: Files, missing: int
) -> None:
    """Its pages would contradict those that are missing, and rows would go without a word."""
    log = read_log(killed.files.log)
    assert log is not None
    left = len(log.frames) - missing
    whole = max(n for n, frame in enumerate(log.frames[:left], 1) if frame.pages_after)
    data = killed.files.log.read_bytes()
    killed.files.log.write_bytes(data[: LOG_HEADER + left * FRAME_BYTES + 100])
    before = DatabaseFiles(killed.files.path.with_name("before.db"))
    shutil.copyfile(killed.files.path, before.path)
    before.log.write_bytes(data[: LOG_HEADER + whole * FRAME_BYTES])
    found, rows = recovered(killed.files)
    assert rows == content(before.path)
    assert found.pages.frames_missing == len(log.frames) - whole
    assert not found.is_all


def test_a_page_of_the_log_that_cannot_be_read_is_not_replaced_by_an_older_one(
    killed: Files,
) -> None:
    log = read_log(killed.files.log)
    assert log is not None
    with killed.files.log.open("r+b") as file:
        file.seek(log.frames[len(log.frames) // 2].at + 500)
        file.write(b"\xa5" * 300)
    is_refused(killed.files)
    found, rows = recovered(killed.files)
    assert len(found.pages.unreadable) <= 1
    assert {*rows["message"]} <= {*killed.content["message"]}


@given(data=st.binary(max_size=3 * FRAME_BYTES), index=st.binary(max_size=120))
def test_any_bytes_are_a_log_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, index: bytes
) -> None:
    place = tmp_path_factory.mktemp("log")
    files = DatabaseFiles(place / "x.db")
    files.log.write_bytes(data)
    files.index.write_bytes(index)
    log, said = read_log(files.log), read_index(files.index)
    if log is not None:
        cipher = PageCipher(KEY, bytes(16))
        pages = LogPages(files.log, cipher.is_authentic)
        assert committed_frames(log, said, pages) >= log.readable
        assert log.readable <= len(log.frames)
    shutil.rmtree(place)


# --- pages ----------------------------------------------------------------------------------------


def test_what_sqlcipher_finds_is_found(killed: Files) -> None:
    files = killed.closed
    ruin(files.path, 30, 40)
    assert [*examine_files(files.path, KEY).unreadable] == [30, 40]
    connection = open_database(files.path, KEY)
    assert damaged_pages(connection) == [
        "HMAC verification failed for page 30", "HMAC verification failed for page 40",
    ]  # fmt: skip
    connection.close()


def test_pages_are_named_by_what_they_belong_to(killed: Files) -> None:
    files = killed.closed
    connection = open_readonly(files.path, KEY)
    every = range(1, files.size() // PAGE_BYTES + 1)
    owners = page_owners(connection, files.path, KEY, every)
    roots = connection.execute(
        "SELECT name, tbl_name, rootpage FROM sqlite_master WHERE rootpage > 0"
    ).fetchall()
    connection.close()
    for name, table, root in roots:
        assert owners[root] == (name if name == table else f"{name} of {table}")
    assert owners[1] == "sqlite_master"
    assert list(owners.values()).count("message") > 2


@pytest.mark.parametrize("bit", [8 * 3, 8 * 500, 8 * 4093])
def test_one_bit_of_the_first_page(killed: Files, bit: int) -> None:
    """Of the salt, of the page, of its HMAC; no copy of it helps here."""
    files = killed.closed
    before = content(files.path)
    flip(files.path, bit)
    with pytest.raises(StorageError) as refused:
        open_database(files.path, KEY)
    assert explained(files.path, KEY, refused.value).fault is StorageFault.DAMAGED
    found, rows = recovered(files)
    assert found.pages.mended == [1]
    assert rows == before


def test_a_first_page_that_is_gone_is_replaced_by_the_copy(killed: Files) -> None:
    files = killed.closed
    before = content(files.path)
    shutil.copyfile(killed.files.kept, files.kept)
    data = bytearray(files.path.read_bytes())
    data[:PAGE_BYTES] = bytes(PAGE_BYTES)
    files.path.write_bytes(data)
    with pytest.raises(StorageError) as refused:
        open_database(files.path, KEY)
    assert explained(files.path, KEY, refused.value).fault is StorageFault.DAMAGED
    found, rows = recovered(files)
    assert found.pages.replaced == [1]
    assert rows == before


def test_or_by_that_of_the_log(killed: Files) -> None:
    killed.files.kept.unlink()
    data = bytearray(killed.files.path.read_bytes())
    data[:PAGE_BYTES] = bytes(PAGE_BYTES)
    killed.files.path.write_bytes(data)
    found, rows = recovered(killed.files)
    assert found.unreadable == 0
    assert rows == killed.content


def test_without_any_first_page_it_is_said(killed: Files) -> None:
    ruin(killed.closed.path, 1)
    with pytest.raises(StorageError, match="there is no copy of it") as refused:
        recovered(killed.closed)
    assert refused.value.fault is StorageFault.DAMAGED


def test_a_key_that_does_not_fit_is_not_called_damage(killed: Files) -> None:
    with pytest.raises(StorageError) as refused:
        open_database(killed.closed.path, OTHER_KEY)
    said = explained(killed.closed.path, OTHER_KEY, refused.value)
    assert said.fault is StorageFault.NOT_DECRYPTED
    with pytest.raises(StorageError) as refused:
        recover(killed.closed.path, killed.closed.path.with_name("n"), OTHER_KEY, now_ms=UnixMs(1))
    assert refused.value.fault is StorageFault.NOT_DECRYPTED


def cut(path: Path, to: int) -> None:
    with path.open("r+b") as file:
        file.truncate(to)


def zeros(path: Path, pages: range) -> None:
    data = bytearray(path.read_bytes())
    for page in pages:
        data[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda path: cut(path, 60 * PAGE_BYTES), id="cut off"),
        pytest.param(lambda path: cut(path, 60 * PAGE_BYTES + 77), id="cut off within a page"),
        pytest.param(lambda path: zeros(path, range(50, 90)), id="zeros"),
    ],
)
def test_what_reads_as_zeros_is_not_taken_for_content(
    killed: Files, harm: Callable[[Path], None]
) -> None:
    """SQLCipher takes pages of zeros for pages that were never written."""
    files = killed.closed
    before = content(files.path)
    keep_list_of_tables(files.path, KEY)
    harm(files.path)
    found, rows = recovered(files)
    assert found.unreadable > 0
    for table in ("message", "raw_block", "log_raw", "file"):
        assert {*map(repr, rows[table])} <= {*map(repr, before[table])}


@given(begin=st.binary(max_size=200), number=st.integers(1, 2**31))
def test_no_other_bytes_are_a_page(begin: bytes, number: int) -> None:
    page = begin.ljust(PAGE_BYTES, b"x")
    assert not PageCipher(KEY, bytes(16)).is_authentic(page, number)
    assert cipher_of(KEY, begin) is None


@given(page=st.binary(max_size=300), number=st.integers(1, 9))
def test_any_bytes_lead_to_pages_or_to_none(page: bytes, number: int) -> None:
    assert number in [*tree(number, lambda _: page)]
