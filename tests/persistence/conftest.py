"""Both stores, opened on an empty place, and with a conversation in them."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.ports import ProfileStore, PutContact, PutGroup, StoreWrite
from engine.persistence.database import open_database
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.new_database import new_database
from tests.persistence.store_examples import GROUP, contact, group

KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def restored_umask() -> Iterator[None]:
    """Opening a profile narrows the umask of the process; the next test starts from 022."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def key() -> bytes:
    return KEY


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "causerie.db"


@pytest.fixture
def directory(tmp_path: Path) -> ProfileDirectory:
    return open_profile_directory(tmp_path / "alice")


@pytest.fixture
def connection(database_path: Path) -> Iterator[sqlite3.Connection]:
    """That of ``sqlite_store``, for what SQL alone can see."""
    opened = open_database(new_database(database_path, KEY), KEY)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(connection: sqlite3.Connection) -> SqliteProfileStore:
    return SqliteProfileStore(connection)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, database_path: Path) -> Iterator[ProfileStore]:
    """Both stores: whoever asks for this states what the port promises."""
    opened: ProfileStore = (
        MemoryProfileStore()
        if request.param == "memory"
        else SqliteProfileStore.open(new_database(database_path, KEY), KEY)
    )
    yield opened
    opened.close()


@pytest.fixture
def with_group(store: ProfileStore) -> ProfileStore:
    store.apply([PutGroup(group=group())])
    return store


@pytest.fixture(params=["group", "pair"])
def with_conversation(request: pytest.FixtureRequest, store: ProfileStore) -> ProfileStore:
    """A timeline is the same of a group and of a pair; the id is GROUP in any case."""
    about: StoreWrite = (
        PutGroup(group=group()) if request.param == "group" else PutContact(contact=contact(GROUP))
    )
    store.apply([about])
    return store


@pytest.fixture
def with_pair(store: ProfileStore) -> ProfileStore:
    store.apply([PutContact(contact=contact())])
    return store
