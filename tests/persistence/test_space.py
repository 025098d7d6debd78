"""Where the space goes: what is said matches the disk, and what goes when a conversation does."""

import hashlib
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.errors import StorageError
from engine.core.ids import ConversationId, MessageId
from engine.core.ports import PutFileHolder, PutGroup, PutMessage, SaveProfile
from engine.core.records import TransferRecord, TransferState
from engine.crypto.blobs import name_of, seal_chunk, seal_names
from engine.persistence.connection import connect
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from engine.persistence.space import ConversationSpace, Kind, ProfileSpace, measure_space
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.backup_examples import key_of
from tests.persistence.store_examples import BOB, GROUP, PROFILE, channel, group, logged, row

OTHER = ConversationId("Q" * 43)
BATCH = 200


def said(random: Random, size: int) -> str:
    return random.randbytes(size // 2).hex()


def talk(store: SqliteProfileStore, conversation: ConversationId, texts: int, size: int) -> None:
    random = Random(size)
    for first in range(0, texts, BATCH):
        numbers = range(first, min(first + BATCH, texts))
        store.apply(
            [
                row(n, f"{n:064x}", text=said(random, size), conversation_id=conversation)
                for n in numbers
            ]
        )
        raws = [logged(n, f"{n:064x}", random.randbytes(size)) for n in numbers]
        store.apply([channel(*raws, conversation_id=conversation)])


def blob(
    directory: ProfileDirectory, number: int, *, is_own: bool, conversation: ConversationId
) -> PutMessage:
    """A complete file of 300 000 bytes and some, whose chunks are there."""
    random = Random(number)
    manifest = Manifest(key=random.randbytes(32), root=ChunkName(b"r" * 32), size=300_000)
    data = random.randbytes(manifest.size)
    sealed = [
        seal_chunk(manifest.key, index, part)
        for index, part in enumerate((data[:262_144], data[262_144:]), start=1)
    ]
    listed = seal_names(manifest.key, tuple(map(name_of, sealed)))
    for each in (listed, *sealed):
        (directory.files / hashlib.sha256(each).hexdigest()).write_bytes(each)
    whole = structs.replace(manifest, root=name_of(listed))
    put = row(
        9_000 + number, f"file{number}", kind="file", is_own=is_own, conversation_id=conversation
    )
    assert put.message.file is not None
    transfer = TransferRecord(manifest=whole, state=TransferState.COMPLETE)
    file = structs.replace(put.message.file, size=whole.size, transfer=transfer)
    return PutMessage(message=structs.replace(put.message, file=file), data=b"")


@pytest.fixture
def profile(tmp_path: Path) -> ProfileDirectory:
    directory = open_profile_directory(tmp_path / "ines")
    store = SqliteProfileStore.open(directory.database, key_of(directory))
    store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    store.apply([PutGroup(group=group(OTHER, "Others"))])
    talk(store, GROUP, 2_400, 400)
    talk(store, OTHER, 600, 300)
    directory.files.mkdir()
    store.apply(
        [
            blob(directory, 1, is_own=False, conversation=GROUP),
            blob(directory, 2, is_own=False, conversation=GROUP),
            blob(directory, 3, is_own=True, conversation=GROUP),
            blob(directory, 1, is_own=False, conversation=OTHER),
            row(9_100, "small", kind="file", data=bytes(90_000), conversation_id=OTHER),
        ]
    )
    store.apply(
        [PutFileHolder(conversation_id=GROUP, message_id=MessageId("file1"), participant_id=BOB)]
    )
    store.close()
    for name, size in (("logs/causerie.log", 5_000), ("delivery/1.jsonl", 7_000)):
        (directory.path / name).parent.mkdir()
        (directory.path / name).write_bytes(bytes(size))
    (directory.path / "archive.db").write_bytes(bytes(40_000))
    return directory


def measured(directory: ProfileDirectory) -> ProfileSpace:
    return measure_space(directory, key_of(directory))


def of(space: ProfileSpace, conversation: ConversationId) -> ConversationSpace:
    return next(each for each in space.conversations if each.conversation_id == conversation)


def on_disk(path: Path) -> int:
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def test_the_whole_is_what_the_disk_says(profile: ProfileDirectory) -> None:
    space = measured(profile)
    assert space.total == pytest.approx(on_disk(profile.path), rel=0.05)
    assert (space.kept_for_others, space.records, space.logs) == (40_000, 7_000, 5_000)
    assert [each.conversation_id for each in space.conversations] == [GROUP, OTHER]


@pytest.mark.parametrize("conversation", [GROUP, OTHER])
def test_a_conversation_has_what_goes_when_it_goes(
    profile: ProfileDirectory, conversation: ConversationId
) -> None:
    """In the database, which is as small as it can be before and after."""

    def packed() -> int:
        connection = connect(str(profile.database), key_of(profile))
        connection.execute("VACUUM")
        connection.close()
        return profile.database.stat().st_size

    before = packed()
    space = of(measured(profile), conversation)
    chunks = sum(each.stat().st_size for each in profile.files.iterdir())
    files = space.size[Kind.FILES] - (chunks if conversation == GROUP else 0)
    connection = connect(str(profile.database), key_of(profile))
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("DELETE FROM conversation WHERE conversation_id = ?", (conversation,))
    connection.close()
    went = before - packed()
    found = space.size[Kind.TEXTS] + space.size[Kind.EVIDENCE] + files
    assert found == pytest.approx(went, rel=0.15)


def test_files_are_counted_once_and_told_apart(profile: ProfileDirectory) -> None:
    space = measured(profile)
    here, there = of(space, GROUP), of(space, OTHER)
    assert (here.fetchable.count, here.message_ids) == (1, [MessageId("file1")])
    assert (here.unheld.count, here.own.count, here.own_only_here.count) == (1, 1, 1)
    assert here.size[Kind.FILES] >= 3 * 300_000
    # The same file in the second conversation lies on the disk once.
    assert 90_000 < there.size[Kind.FILES] < 200_000
    (profile.files / ("0" * 64)).write_bytes(bytes(1_000))
    assert measured(profile).other == space.other + 1_000


def test_room_that_is_not_used_is_told_and_a_stop_is_heard(profile: ProfileDirectory) -> None:
    connection = connect(str(profile.database), key_of(profile))
    connection.execute("DELETE FROM raw_block")
    connection.close()
    assert measured(profile).unused > 200_000
    shares: list[float] = []

    def stop(share: float) -> bool:
        shares.append(share)
        return len(shares) < 5

    with pytest.raises(StorageError):
        measure_space(profile, key_of(profile), stop)
    assert len(shares) == 5
    assert shares == sorted(shares)


def test_links_out_of_the_profile_are_not_its_space(
    profile: ProfileDirectory, tmp_path: Path
) -> None:
    before = measured(profile).total
    (tmp_path / "huge").write_bytes(bytes(1_000_000))
    (profile.path / "logs" / "link").symlink_to(tmp_path / "huge")
    assert measured(profile).total == before
