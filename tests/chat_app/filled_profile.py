"""A profile as an application leaves it: with messages, and started twice."""

from pathlib import Path

from chat_app.compose import open_store
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.conftest import KEY
from tests.persistence.damage import fill

MESSAGES = 100


def filled_profile(place: Path) -> ProfileDirectory:
    """Its key is in a file, and the second start has copied the list of tables."""
    directory = open_profile_directory(place)
    write_private_file(directory.key_file, KEY.hex() + "\n")
    for _ in range(2):
        store = open_store(directory, force_key_file=True).store
        assert isinstance(store, SqliteProfileStore)
        if store.profile() is None:
            fill(store, MESSAGES)
        store.close()
    return directory
