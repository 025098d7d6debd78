"""Files beyond 96 KiB where a disk is full, damaged or given back, on real nodes."""

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core.errors import (
    StorageError,
    StorageFault,
)
from engine.core.ids import ConversationId, MessageId
from engine.core.problems import FileFault, FileProblem
from engine.file_views import FileState, FileView
from engine.network.blobs.pace import FilePace
from engine.persistence import chunk_files
from engine.persistence.chunk_files import write_durably
from tests.runtime.blob_people import (
    MIB,
    SIZE,
    FilePerson,
    content,
    failing_with,
    people,
    random_file,
)
from tests.runtime.test_engine_annotations import own_id, shown

PNG = b"\x89PNG\r\n\x1a\n"


async def test_a_full_disk_is_said_and_harms_nothing_else(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    bob = FilePerson("Bob", tmp_path, max_bytes=MIB)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        failed = await bob.until_state(sent, FileState.FAILED)
        assert failed.problem == FileProblem(
            fault=FileFault.STORAGE, storage=StorageFault.FILES_FULL
        )
        with pytest.raises(StorageError) as full:
            await bob.send(group, path)
        assert full.value.fault is StorageFault.FILES_FULL
        await bob.engine.timeline.send_text(group, "Still here")
        await alice.until(shown(lambda message: message.text == "Still here"))


async def test_what_is_damaged_is_fetched_again(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        largest = max(bob.chunks.iterdir(), key=lambda each: each.stat().st_size)
        largest.write_bytes(b"damaged")
        with pytest.raises(StorageError) as damaged:
            await bob.engine.files.read(group, sent)
        assert damaged.value.fault is StorageFault.DAMAGED
        await bob.until_file(sent, failing_with(FileFault.NOT_HERE))
        bob.told.clear()
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.read(group, sent) == path.read_bytes()
        shutil.rmtree(alice.chunks)
        with pytest.raises(StorageError):
            await alice.engine.files.read(group, sent)
        await alice.until_file(sent, failing_with(FileFault.NOT_HERE))


class SmallDisk:
    """Chunks in ``place`` fit as long as there is ``room``; then the system has no space left."""

    def __init__(self, place: Path, room: int) -> None:
        self.place = place
        self.room = room
        self._turn = threading.Lock()

    def write(self, path: Path, data: bytes) -> None:
        if path.parent == self.place:
            with self._turn:
                if not self.room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self.room -= 1
        write_durably(path, data)


async def test_a_disk_that_is_full_in_the_middle_harms_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    path = random_file(tmp_path, SIZE)
    disk = SmallDisk(bob.chunks, room=3)
    monkeypatch.setattr(chunk_files, "write_durably", disk.write)
    async with people(alice, bob) as group:
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        failed = await bob.until_state(sent, FileState.FAILED)
        full = FileProblem(fault=FileFault.STORAGE, storage=StorageFault.DISK_FULL)
        assert failed.problem == full
        kept = len(list(bob.chunks.iterdir()))
        assert kept == 3, "what came stays"
        with pytest.raises(StorageError) as unsent:
            await bob.send(group, path)
        assert unsent.value.fault is StorageFault.DISK_FULL
        assert len(list(bob.chunks.iterdir())) == kept, "nothing half sealed stays"
        await bob.engine.timeline.send_text(group, "Still here")
        await alice.until(shown(lambda message: message.text == "Still here"))
        bob.told.clear()
        disk.room = 100
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        assert disk.room == 100 - len(list(alice.chunks.iterdir())) + kept, "only what was missing"
        assert await bob.engine.files.read(group, sent) == path.read_bytes()


async def test_what_does_not_fit_where_it_is_saved_leaves_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = FilePerson("Alice", tmp_path)
    path, place = random_file(tmp_path, SIZE), tmp_path / "stick"
    place.mkdir()
    target = place / "film.bin"
    target.write_bytes(b"older")

    def full(descriptor: int) -> None:
        del descriptor
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with people(alice) as group:
        sent = await alice.send(group, path)
        with monkeypatch.context() as then:
            then.setattr("engine.persistence.saved_file.os.fsync", full)
            for write in (
                alice.engine.files.save_as(group, sent, str(target)),
                alice.engine.files.open_path(group, sent),
            ):
                with pytest.raises(StorageError) as unwritten:
                    await write
                assert unwritten.value.fault is StorageFault.FILE_NOT_WRITTEN
        assert [(one.name, one.read_bytes()) for one in place.iterdir()] == [("film.bin", b"older")]
        await alice.engine.files.save_as(group, sent, str(target))
        assert target.read_bytes() == path.read_bytes()
        opened = await alice.engine.files.open_path(group, sent)
        assert content(opened) == (path.read_bytes(), 0o600)


async def test_files_give_way_where_somebody_talks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed: list[FilePace] = []

    def note(pace: FilePace) -> None:
        slowed.append(pace)

    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        monkeypatch.setattr(FilePace, "give_way", note)
        await alice.engine.timeline.send_text(group, "One moment")
        await bob.until(shown(lambda message: message.text == "One moment"))
        assert len({id(pace) for pace in slowed}) == 2, "who wrote, and who reads"


async def fetched(person: FilePerson, group: ConversationId, sent: MessageId) -> None:
    await person.until_state(sent, FileState.OFFERED)
    await person.engine.files.fetch(group, sent)
    await person.until_state(sent, FileState.COMPLETE)


def held_by(*people_: FilePerson) -> Callable[[FileView], bool]:
    return lambda file: set(file.held_whole_by) == {own_id(each) for each in people_}


async def test_of_two_who_let_the_same_file_go_at_once_one_keeps_it(tmp_path: Path) -> None:
    alice, bob, carol = (FilePerson(name, tmp_path) for name in ("Alice", "Bob", "Carol"))
    path = random_file(tmp_path, SIZE)
    async with people(alice, bob, carol) as group:
        sent = await alice.send(group, path)
        for person in (bob, carol):
            await fetched(person, group, sent)
        await bob.until_file(sent, held_by(carol))
        await carol.until_file(sent, held_by(bob), in_time=(group, bob))
        assert carol.node is not None
        carol.node.add_peers(bob.addresses())
        await alice.engine.stop()
        gone = await asyncio.gather(
            *(each.engine.files.let_go(group, [sent], unasked=False) for each in (bob, carol))
        )
        assert [*map(list, gone)] != [[sent], [sent]], "each saw that the other claims it"
        stays, goes = (bob, carol) if not gone[0] else (carol, bob)
        if not any(gone):  # Both heard no, and keep it: the second try is alone.
            assert await goes.engine.files.let_go(group, [sent], unasked=False) == [sent]
        await stays.until_file(sent, held_by())
        assert (await goes.shown(group, sent)).state is FileState.OFFERED
        assert not list(goes.chunks.iterdir())
        assert await stays.engine.files.let_go(group, [sent], unasked=False) == []
        assert await stays.engine.files.read(group, sent) == path.read_bytes()
        await fetched(goes, group, sent)
        await stays.until_file(sent, held_by(goes))
        assert await stays.engine.files.let_go(group, [sent], unasked=True) == [sent]


async def test_a_picture_that_was_let_go_comes_only_when_somebody_wants_it(tmp_path: Path) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path, pictures_below=2 * MIB)
    async with people(alice, bob) as group:

        async def picture(size: int) -> MessageId:
            path = str(random_file(tmp_path, size, f"{size}.png"))
            return await alice.engine.files.send(
                group, path, name="a.png", media_type="image/png", width=10, height=10
            )

        sent = await picture(SIZE)
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.let_go(group, [sent], unasked=True) == [sent]
        bob.told.clear()
        page = await bob.engine.timeline.latest_page(group)
        assert page.messages[-1].message_id == sent, "it is shown again"
        other = await picture(SIZE + 1)
        await bob.until_state(other, FileState.COMPLETE)
        assert (await bob.shown(group, sent)).state is FileState.OFFERED
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)


@pytest.mark.long
async def test_a_file_that_is_lost_on_the_disk_is_said_to_be_gone(tmp_path: Path) -> None:
    alice, bob, carol = (FilePerson(name, tmp_path) for name in ("Alice", "Bob", "Carol"))
    async with people(alice, bob, carol) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await fetched(bob, group, sent)
        await carol.until_file(sent, held_by(bob))
        for chunk in bob.chunks.iterdir():
            chunk.unlink()
        await bob.restart()
        await bob.until_file(sent, failing_with(FileFault.NOT_HERE))
        await carol.until_file(sent, held_by())
