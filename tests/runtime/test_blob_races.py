"""Transfers that end while something else is decided about them, or while nothing can be stored."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.errors import CommandError, StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId
from engine.core.ports import StoreWrite
from engine.core.problems import FileFault, FileProblem
from engine.events import MessageAdded, MessageChanged
from engine.file_views import FileState
from engine.runtime.files.disk import BlobDisk
from engine.runtime.job_queue import JobInput
from engine.session.inputs import HoldsFiles
from tests.patience import PATIENCE_S
from tests.runtime.blob_people import FilePerson, people, random_file
from tests.runtime.test_engine_annotations import shown

SIZE = CHUNK_BYTES + 9


@asynccontextmanager
async def running(person: FilePerson) -> AsyncIterator[FilePerson]:
    await person.start()
    try:
        yield person
    finally:
        await person.engine.stop()


def claims_of(
    person: FilePerson, group: ConversationId, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[MessageId, ...]]:
    """What it is told from now on that it has as a whole."""
    told: list[tuple[MessageId, ...]] = []
    runner = person.engine.runner(group)
    offer = runner.offer

    def also_noted(given: JobInput) -> None:
        if isinstance(given, HoldsFiles):
            told.append(given.message_ids)
        offer(given)

    monkeypatch.setattr(runner, "offer", also_noted)
    return told


async def fetched_whole(
    sender: FilePerson, receiver: FilePerson, group: ConversationId, path: Path
) -> MessageId:
    """Sent, fetched, and known to be held by both."""
    sent = await sender.send(group, path)
    await receiver.until_state(sent, FileState.OFFERED)
    await receiver.engine.files.fetch(group, sent)
    await sender.until_file(sent, lambda file: bool(file.held_whole_by))
    return sent


async def test_what_is_here_no_more_is_claimed_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        told = claims_of(bob, group, monkeypatch)
        sent = await fetched_whole(alice, bob, group, random_file(tmp_path, SIZE))
        assert told == [(sent,)]
        await bob.engine.files.cancel(group, sent)
        assert told == [(sent,), ()]


async def test_what_was_lost_from_the_disk_is_claimed_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        told = claims_of(bob, group, monkeypatch)
        sent = await fetched_whole(alice, bob, group, random_file(tmp_path, SIZE))
        for chunk in bob.chunks.iterdir():
            chunk.unlink()
        with pytest.raises(StorageError):
            await bob.engine.files.read(group, sent)
        assert told == [(sent,), ()]


async def test_a_disk_that_is_full_for_the_profile_too_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path, max_bytes=100)
    keep = BlobDisk.keep

    async def is_full(disk: BlobDisk, name: ChunkName, sealed: bytes) -> None:
        assert bob.store is not None
        bob.store.broken = True
        await keep(disk, name, sealed)

    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        monkeypatch.setattr(BlobDisk, "keep", is_full)
        await bob.engine.files.fetch(group, sent)
        failed = await bob.until_state(sent, FileState.FAILED)
        full = FileProblem(fault=FileFault.STORAGE, storage=StorageFault.FILES_FULL)
        assert failed.problem == full
        assert bob.store is not None
        bob.store.broken = False
        bob.told.clear()
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.FAILED)


async def test_a_file_whose_sending_is_given_up_too_late_is_here(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    path = random_file(tmp_path, SIZE)
    stored, may_go_on = threading.Event(), threading.Event()

    def slowly(writes: Sequence[StoreWrite]) -> None:
        if path.name in repr(writes):
            stored.set()
            assert may_go_on.wait(PATIENCE_S)

    async with people(alice) as group:
        assert alice.store is not None
        alice.store.before_write = slowly
        sending = asyncio.create_task(alice.send(group, path))
        assert await asyncio.to_thread(stored.wait, PATIENCE_S)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        may_go_on.set()
        said = await alice.until(shown(lambda message: message.file is not None))
        assert isinstance(said, MessageAdded | MessageChanged)
        data = await alice.engine.files.read(group, said.message.message_id)
        assert data == path.read_bytes()


async def test_a_disk_that_cannot_be_read_for_a_moment_ends_no_telling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path, serves=False), FilePerson("Bob", tmp_path)
    async with people(bob, alice) as group, running(FilePerson("Carol", tmp_path)) as carol:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        alone = FileProblem(fault=FileFault.NEEDS_SERVICE_NODE)
        await bob.until_file(sent, lambda file: file.problem == alone)
        refused = threading.Event()

        def unreadable(*_: object) -> None:
            refused.set()
            raise StorageError("The disk does not answer.")

        assert bob.node is not None
        with monkeypatch.context() as then:
            then.setattr(bob.store, "message", unreadable)
            bob.node.add_peers(carol.addresses())
            assert await asyncio.to_thread(refused.wait, PATIENCE_S)
        nobody = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)
        await bob.until_file(sent, lambda file: file.problem == nobody)


async def test_what_is_retracted_while_the_book_is_brought_up_to_date_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    remove, removals = BlobDisk.remove, asyncio.Queue[asyncio.Event]()

    async def when_told(disk: BlobDisk, gone: list[Manifest], kept: list[Manifest]) -> None:
        removals.put_nowait(may := asyncio.Event())
        await may.wait()
        await remove(disk, gone, kept)

    async with asyncio.timeout(PATIENCE_S), people(alice, bob) as group:
        first, second = [await alice.send(group, random_file(tmp_path, SIZE)) for _ in range(2)]
        for sent in (first, second):
            await bob.until_state(sent, FileState.OFFERED)
        monkeypatch.setattr(BlobDisk, "remove", when_told)
        await bob.engine.timeline.delete_locally(group, first)
        removing = await removals.get()
        third = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(third, FileState.OFFERED)
        await bob.engine.timeline.delete_locally(group, second)
        removing.set()
        removing = await removals.get()  # The third is known from the disk, not in the book yet.
        await alice.engine.timeline.retract(group, third)
        await bob.until(shown(lambda message: message.retracted))
        removing.set()
        for _ in range(2):  # The author's chunks go, and ours.
            (await removals.get()).set()
        with pytest.raises(CommandError):
            await bob.engine.files.fetch(group, third)
