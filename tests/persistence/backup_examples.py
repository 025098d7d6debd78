"""A small profile with every kind of thing that a backup holds, and how tests make and open one."""

import hashlib
from pathlib import Path
from typing import Final

from engine.core.backup import Cost
from engine.core.ids import InstanceId, MessageId, UnixMs
from engine.core.ports import PutContact, PutGroup, SaveOwnSequence, SaveProfile, SaveValue
from engine.core.records import OwnSequence
from engine.persistence.backup import BackupMade, BackupSource, new_secret, write_backup
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.restore import Restored, RestorePlace, restore_backup
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import GROUP, PROFILE, channel, contact, group, logged, row

CHEAP: Final = Cost(memory_kib=64, iterations=1, lanes=1)
WORDS: Final = "correct horse battery"
STAY: Final = InstanceId(b"s" * 16)
MESSAGES: Final = 50
SETTINGS: Final = "[network]\nport = 4711  # mine\n"
DEFAULTS: Final = b"# as it came\n"
CHUNKS: Final = tuple(bytes([n]) * 200_000 for n in range(3))


def key_of(directory: ProfileDirectory) -> bytes:
    return obtain_database_key(directory, force_key_file=True).key


def make_profile(path: Path) -> ProfileDirectory:
    directory = open_profile_directory(path)
    store = SqliteProfileStore.open(directory.database, key_of(directory))
    store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    store.apply([PutContact(contact=contact())])
    store.apply([row(n, f"m{n:03}", text=f"text {n}") for n in range(MESSAGES)])
    store.apply([channel(*(logged(n, f"m{n:03}") for n in range(MESSAGES)))])
    own = OwnSequence(stay=STAY, instance_id=STAY, sequence=7, previous_id=MessageId("m005"))
    store.apply([SaveOwnSequence(conversation_id=GROUP, own_sequence=own)])
    store.apply([SaveValue(key=key, value="1") for key in ("network.port", "people.verified")])
    store.close()
    directory.files.mkdir()
    for sealed in CHUNKS:
        (directory.files / hashlib.sha256(sealed).hexdigest()).write_bytes(sealed)
    (path / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    (path / "window.json").write_text("{}", encoding="utf-8")
    return directory


def source_of(directory: ProfileDirectory) -> BackupSource:
    return BackupSource(
        directory=directory,
        key=key_of(directory),
        settings=directory.path / "settings.toml",
        window=directory.path / "window.json",
        app_version="1.0",
    )


def place_in(directory: ProfileDirectory) -> RestorePlace:
    return RestorePlace(
        directory=directory,
        settings=directory.path / "settings.toml",
        default_settings=DEFAULTS,
        window=directory.path / "window.json",
        force_key_file=True,
    )


def backed_up(directory: ProfileDirectory, file: Path) -> BackupMade:
    secret = new_secret(WORDS, CHEAP)
    return write_backup(source_of(directory), file, secret, created_ms=UnixMs(1))


def restored(file: Path, directory: ProfileDirectory) -> Restored:
    return restore_backup(file, WORDS, place_in(directory))
