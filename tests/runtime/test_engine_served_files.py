"""What its sender sees while others fetch a file from this device: as much as was really sent."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.blobs.requests import ChunkAnswer
from engine.core.counters import Counters
from engine.core.errors import StorageError
from engine.core.ids import ConversationId, MessageId
from engine.core.records import TransferRecord, TransferState
from engine.core.stored import StoredTransfer
from engine.events import EngineEvent, MessageChanged, MessageView
from engine.file_views import FetchView, FileProgressed, FileState, FileView
from engine.network.libp2p.ports import PeerId
from engine.runtime.files import served
from engine.runtime.files.book import Blob, FileBook
from engine.runtime.files.disk import BlobDisk
from engine.runtime.files.progress import Progress
from engine.runtime.files.served import ServedFiles
from tests.patience import PATIENCE_S
from tests.runtime.blob_people import MIB, FilePerson, people, random_file

SIZE = 12 * MIB
IN_FLIGHT = 12
"""Chunks: of two requests for four each, and what a connection takes before they are read."""


def file_told(event: EngineEvent, message_id: MessageId) -> FileView | None:
    match event:
        case FileProgressed(message_id=told, file=file) if told == message_id:
            return file
        case MessageChanged(message=message) if message.message_id == message_id:
            return message.file
        case _:
            return None


def fetched(
    message_id: MessageId, wanted: Callable[[FetchView | None], bool]
) -> Callable[[EngineEvent], bool]:
    def is_told(event: EngineEvent) -> bool:
        file = file_told(event, message_id)
        return file is not None and wanted(file.fetch)

    return is_told


def by_somebody(fetch: FetchView | None) -> bool:
    return fetch is not None


def by_nobody(fetch: FetchView | None) -> bool:
    return fetch is None


def let_through(monkeypatch: pytest.MonkeyPatch, chunks: int) -> asyncio.Semaphore:
    """So many chunks that people fetch are kept; the next wait for the semaphore."""
    keep, may = BlobDisk.keep, asyncio.Semaphore(chunks)

    async def when_it_may(disk: BlobDisk, name: ChunkName, sealed: bytes) -> None:
        await may.acquire()
        await keep(disk, name, sealed)

    monkeypatch.setattr(BlobDisk, "keep", when_it_may)
    return may


def own_names(person: FilePerson) -> tuple[ChunkName, list[ChunkName]]:
    """Of the only file that is here: its root, which is the smallest of its chunks, and others."""
    found = sorted(person.chunks.iterdir(), key=lambda chunk: chunk.stat().st_size)
    root, *others = (ChunkName(bytes.fromhex(chunk.name)) for chunk in found)
    return root, others


def peer_of(person: FilePerson) -> PeerId:
    assert person.node is not None
    [peer_id] = person.node.blobs().peers()
    return peer_id


async def until_shown(
    person: FilePerson, group: ConversationId, sent: MessageId, fetch: FetchView | None
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await person.shown(group, sent)).fetch
            if found == fetch or (found and fetch and structs.replace(found, rate=0) == fetch):
                return
            await asyncio.sleep(0.02)


async def test_the_sender_sees_how_far_it_is_until_somebody_has_it_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        may = let_through(monkeypatch, 6)
        await bob.engine.files.fetch(group, sent)
        await alice.until(fetched(sent, by_somebody))
        file = await alice.shown(group, sent)
        assert (file.state, file.is_upload) == (FileState.COMPLETE, True)
        shown = file.fetch
        assert shown is not None
        assert shown.peers == 1
        assert CHUNK_BYTES <= shown.done_bytes <= (6 + IN_FLIGHT) * CHUNK_BYTES
        for _ in range(SIZE // CHUNK_BYTES):
            may.release()
        await alice.until_file(sent, lambda file: bool(file.held_whole_by))
        await until_shown(alice, group, sent, None)
        told = [each for event in alice.told if (each := file_told(event, sent))]
        assert told[-1].fetch is None
        amounts = [each.fetch.done_bytes for each in told if each.fetch]
        assert amounts == sorted(amounts)
        assert amounts[-1] < SIZE
        assert (await bob.shown(group, sent)).fetch is None


@pytest.mark.parametrize("how", ["paused", "gone"])
async def test_a_fetch_that_stops_is_not_shown_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        let_through(monkeypatch, 6)
        await bob.engine.files.fetch(group, sent)
        await alice.until(fetched(sent, by_somebody))
        if how == "paused":
            await bob.engine.files.pause(group, sent)
            monkeypatch.setattr(served, "STALLED_MS", 0)
        else:
            await bob.engine.stop()
        await until_shown(alice, group, sent, None)
        told = [each.fetch for event in alice.told if (each := file_told(event, sent))]
        most = max(fetch.done_bytes for fetch in told if fetch)
        monkeypatch.undo()
        let_through(monkeypatch, 4)
        if how == "paused":
            await bob.engine.files.fetch(group, sent)
        else:
            await bob.restart()
        await alice.until(
            fetched(sent, lambda fetch: fetch is not None and fetch.done_bytes > most)
        )
        told = [each.fetch for event in alice.told if (each := file_told(event, sent))]
        amounts = [fetch.done_bytes for fetch in told if fetch]
        assert amounts == sorted(amounts)


async def test_a_chunk_that_is_fetched_again_counts_once_until_its_peer_begins_anew(
    tmp_path: Path,
) -> None:
    alice, bob = FilePerson("Alice", tmp_path), FilePerson("Bob", tmp_path)
    async with people(alice, bob) as group:
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        await bob.until_state(sent, FileState.OFFERED)
        assert bob.node is not None
        network, peer, (root, names) = bob.node.blobs(), peer_of(bob), own_names(alice)

        async def ignore(name: ChunkName, answer: ChunkAnswer) -> None:
            del name, answer

        await network.get(peer, names[:1], ignore)
        await network.holdings(peer, (root,))
        for _ in range(3):
            await network.get(peer, [root, *[names[1]] * 9], ignore)
        once = FetchView(peers=1, done_bytes=CHUNK_BYTES, rate=0)
        await until_shown(alice, group, sent, once)
        await network.get(peer, names[:16], ignore)
        some = FetchView(peers=1, done_bytes=16 * CHUNK_BYTES, rate=0)
        await until_shown(alice, group, sent, some)
        await network.get(peer, [root, names[3]], ignore)
        await until_shown(alice, group, sent, once)


def stored(message_id: str, *, is_own: bool) -> Blob:
    """Of the same file, whoever said it."""
    manifest = Manifest(key=bytes(32), root=ChunkName(b"r" * 32), size=2 * CHUNK_BYTES)
    return Blob(
        StoredTransfer(
            conversation_id=ConversationId("group"),
            message_id=MessageId(message_id),
            is_own=is_own,
            transfer=TransferRecord(manifest=manifest, state=TransferState.COMPLETE),
        )
    )


def test_who_repeats_our_file_and_takes_that_back_hides_nothing_of_ours() -> None:
    book, ours, repeated = FileBook(), stored("ours", is_own=True), stored("theirs", is_own=False)
    root = ours.stored.transfer.manifest.root
    book.add(ours)
    book.add(repeated)
    book.remove(repeated.key)
    assert book.own(root) is ours
    book.remove(ours.key)
    assert book.own(root) is None


async def test_files_and_peers_that_are_not_followed_any_more_are_counted() -> None:
    counters, many = Counters(), [PeerId(str(number)) for number in range(served.MAX_PEERS + 3)]
    known, others = ServedFiles(FileBook(), lambda: many, counters), (ChunkName(b"o" * 32),)
    name = ChunkName(b"n" * 32)
    for number in range(served.MAX_FILES + 2):
        root, name = ChunkName(bytes([number]) * 32), ChunkName(bytes([number]) * 31 + b"n")
        known.know(Manifest(key=bytes(32), root=root, size=2 * CHUNK_BYTES), (name, *others))
    assert (counters["files.served_left"], counters["files.takers_left"]) == (2, 0)
    for peer_id in many:
        known.given(peer_id, name)
    assert (counters["files.served_left"], counters["files.takers_left"]) == (2, 3)


async def test_a_fetch_is_over_although_the_disk_failed_when_it_was_to_be_told() -> None:
    book, ours, asked = FileBook(), stored("ours", is_own=True), list[FetchView | None]()
    book.add(ours)
    peer, name, again = PeerId("peer"), ChunkName(b"1" * 32), asyncio.Event()

    async def ignore(blob: Blob) -> None:
        del blob

    async def refuse(blob: Blob) -> MessageView | None:
        asked.append(blob.fetch)
        if len(asked) == 1:
            raise StorageError("the disk failed")
        again.set()
        return None

    known = ServedFiles(book, lambda: () if asked else (peer,), Counters())
    known.know(ours.stored.transfer.manifest, (name, ChunkName(b"2" * 32)))
    progress = Progress(book, {}, known, tell=ignore, view=refuse, publish=lambda _event: None)
    running = asyncio.create_task(progress.run())
    known.given(peer, name)
    async with asyncio.timeout(PATIENCE_S):
        await again.wait()
    running.cancel()
    assert asked[0] is not None
    assert asked[1] is None
