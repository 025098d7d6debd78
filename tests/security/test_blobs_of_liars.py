"""Files beyond 96 KiB of members who lie about them, and of peers who send something else."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.blobs.requests import PutStatus
from engine.core.content import Attachment
from engine.core.ids import ConversationId, MessageId
from engine.core.problems import FileFault, FileProblem
from engine.crypto.blobs import name_of, seal_chunk, seal_names
from engine.file_views import FileState
from engine.network.blobs.server import BlobServing
from engine.network.libp2p.ports import PeerId
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings
from engine.network.node.settings import NodeSettings
from engine.runtime.files import transfer
from engine.session.inputs import Say
from tests.patience import PATIENCE_S
from tests.runtime.blob_people import MIB, FilePerson, failing_with, people, random_file
from tests.runtime.test_engine_annotations import shown

KEY = bytes(range(32))
SIZE = CHUNK_BYTES + 9


def put(person: FilePerson, sealed: bytes) -> ChunkName:
    name = name_of(sealed)
    (person.chunks / name.hex()).write_bytes(sealed)
    return name


def chunks(person: FilePerson, *lengths: int) -> list[ChunkName]:
    return [
        put(person, seal_chunk(KEY, index, bytes(length)))
        for index, length in enumerate(lengths, 1)
    ]


def too_short(person: FilePerson) -> ChunkName:
    return put(person, seal_names(KEY, chunks(person, CHUNK_BYTES, 1)))


def too_few(person: FilePerson) -> ChunkName:
    return put(person, seal_names(KEY, chunks(person, CHUNK_BYTES)))


def exchanged(person: FilePerson) -> ChunkName:
    return put(person, seal_names(KEY, chunks(person, CHUNK_BYTES, 9)[::-1]))


def under_another_key(person: FilePerson) -> ChunkName:
    return put(person, seal_names(bytes(32), chunks(person, CHUNK_BYTES, 9)))


def no_list(person: FilePerson) -> ChunkName:
    return put(person, b"This is no list of names.")


async def announce(
    person: FilePerson, group: ConversationId, root: ChunkName, size: int = SIZE
) -> MessageId:
    manifest = Manifest(key=KEY, root=root, size=size)
    file = Attachment(name="a.bin", media_type="x/y", data=b"", manifest=manifest)
    message_id = await person.engine.runner(group).do(Say(file))
    assert message_id is not None
    return message_id


@pytest.mark.parametrize("lie", [too_short, too_few, exchanged, under_another_key, no_list])
async def test_a_file_that_is_not_what_was_announced_is_refused(
    tmp_path: Path, lie: Callable[[FilePerson], ChunkName]
) -> None:
    mallory, bob = FilePerson("Mallory", tmp_path), FilePerson("Bob", tmp_path)
    async with people(mallory, bob) as group:
        sent = await announce(mallory, group, lie(mallory))
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        failed = await bob.until_state(sent, FileState.FAILED)
        assert failed.problem == FileProblem(fault=FileFault.NOT_AS_SAID)
        assert not list(bob.chunks.iterdir())
        await bob.engine.timeline.send_text(group, "Still here")
        await mallory.until(shown(lambda message: message.text == "Still here"))


async def test_what_never_was_says_who_was_asked(tmp_path: Path) -> None:
    mallory, bob = FilePerson("Mallory", tmp_path), FilePerson("Bob", tmp_path)
    async with people(mallory, bob) as group:
        sent = await announce(mallory, group, ChunkName(bytes(32)), 100 * MIB)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        nobody = await bob.until_file(sent, failing_with(FileFault.NOBODY_HAS_IT))
        assert nobody.problem == FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)


class SilentShelf:
    """Says that it has everything, and sends nothing."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return (True,) * len(names)

    async def read(self, name: ChunkName, /) -> None:
        del name
        self.asked.set()
        await self.closed.wait()

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        del peer_id, name


async def test_chunks_that_never_come_are_said_with_who_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "STALLED_MS", 0)
    mallory, bob = FilePerson("Mallory", tmp_path), FilePerson("Bob", tmp_path)
    async with people(mallory, bob) as group:
        assert mallory.node is not None
        sent = await announce(mallory, group, ChunkName(bytes(32)))
        shelf = SilentShelf()
        mallory.node.blobs().serve(shelf)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await shelf.asked.wait()
        stalled = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)
        waiting = await bob.until_file(sent, lambda file: file.problem == stalled)
        assert waiting.state is FileState.WAITING
        shelf.closed.set()


class LyingShelf:
    """Says that it has everything, and sends something else."""

    def __init__(self) -> None:
        self.lies = 0

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return (True,) * len(names)

    async def read(self, name: ChunkName, /) -> bytes:
        del name
        self.lies += 1
        return b"something else than that"

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        del peer_id, name


class LyingKeeper:
    """Says that it keeps chunks for others and has all of them already."""

    def __init__(self) -> None:
        self.asked = 0

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        self.asked += 1
        return (True,) * len(names)

    async def read(self, name: ChunkName, /) -> None:
        del name

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        del peer_id, name

    async def take(self, sealed: bytes, /, *, source: str, keep_days: int) -> PutStatus:
        del sealed, source, keep_days
        return PutStatus.TAKEN


class Stranger(NamedTuple):
    node: EmbeddedNode
    shelf: LyingKeeper


@asynccontextmanager
async def lying_keeper() -> AsyncIterator[Stranger]:
    shelf = LyingKeeper()
    services = ServiceSettings(blobs=BlobServing())
    node = EmbeddedNode(NodeSettings(network_key=b"s" * 32, services=services), keeper=shelf)
    await node.start()
    try:
        yield Stranger(node, shelf)
    finally:
        await node.stop()


async def until_connected(person: FilePerson) -> None:
    assert person.node is not None
    async with asyncio.timeout(PATIENCE_S):
        while not person.node.blobs().peers():  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def test_a_peer_that_sends_wrong_chunks_is_found_out_and_others_are_asked(
    tmp_path: Path,
) -> None:
    alice, mallory, bob = (FilePerson(name, tmp_path) for name in ("Alice", "Mallory", "Bob"))
    path = random_file(tmp_path, MIB)
    async with people(alice, mallory, bob) as group:
        assert mallory.node is not None
        assert bob.node is not None
        shelf = LyingShelf()
        mallory.node.blobs().serve(shelf)
        bob.node.add_peers(mallory.addresses())
        sent = await alice.send(group, path)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        await bob.until_state(sent, FileState.COMPLETE)
        assert await bob.engine.files.read(group, sent) == path.read_bytes()
        assert shelf.lies <= 16, "two lies end it, and what was asked for by then"


class ForgingShelf(LyingShelf):
    """Has the true list of names, and something else of every part."""

    def __init__(self, root: ChunkName, sealed: bytes) -> None:
        super().__init__()
        self._root, self._sealed = root, sealed

    async def read(self, name: ChunkName, /) -> bytes:
        return self._sealed if name == self._root else await super().read(name)


async def test_if_the_parts_are_forged_the_row_says_who_was_asked(tmp_path: Path) -> None:
    mallory, bob = FilePerson("Mallory", tmp_path), FilePerson("Bob", tmp_path)
    async with people(mallory, bob) as group:
        assert mallory.node is not None
        root = put(mallory, seal_names(KEY, chunks(mallory, CHUNK_BYTES, 9)))
        shelf = ForgingShelf(root, (mallory.chunks / root.hex()).read_bytes())
        mallory.node.blobs().serve(shelf)
        sent = await announce(mallory, group, root)
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        nobody = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)
        waiting = await bob.until_file(sent, lambda file: file.problem == nobody)
        assert (waiting.state, waiting.done_bytes) == (FileState.WAITING, 0)
        assert [each.name for each in bob.chunks.iterdir()] == [root.hex()], "nothing forged stays"
        assert shelf.lies >= 2, "two lies end it"


async def test_if_only_a_liar_has_it_the_row_says_that_nobody_has(tmp_path: Path) -> None:
    mallory, bob = FilePerson("Mallory", tmp_path), FilePerson("Bob", tmp_path)
    async with people(mallory, bob) as group:
        assert mallory.node is not None
        sent = await announce(mallory, group, ChunkName(bytes(32)))
        mallory.node.blobs().serve(LyingShelf())
        await bob.until_state(sent, FileState.OFFERED)
        await bob.engine.files.fetch(group, sent)
        nobody = FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=1)
        await bob.until_file(sent, lambda file: file.problem == nobody)


async def test_a_stranger_who_says_that_it_keeps_everything_keeps_nothing(tmp_path: Path) -> None:
    """Only nodes that the user or the group chose are believed, and get anything."""
    alice = FilePerson("Alice", tmp_path)
    async with lying_keeper() as stranger, people(alice) as group:
        assert alice.node is not None
        alice.node.add_peers(stranger.node.addresses())
        await until_connected(alice)
        sent = await alice.send(group, random_file(tmp_path, SIZE))
        nobody = FileProblem(fault=FileFault.NOBODY_KEEPS_IT, peers=1)
        row = await alice.until_file(sent, lambda file: file.problem == nobody)
        assert (row.state, row.done_bytes) == (FileState.COMPLETE, 0)
        assert stranger.shelf.asked == 0
        alice.chosen += stranger.node.addresses()
        await alice.until_file(sent, lambda file: file.problem is None and file.done_bytes == SIZE)


async def test_a_node_that_another_group_chose_keeps_nothing_of_this_one(tmp_path: Path) -> None:
    alice = FilePerson("Alice", tmp_path)
    async with lying_keeper() as stranger, people(alice) as group:
        assert alice.node is not None
        alice.chosen += stranger.node.addresses()
        chosen_by_it = await alice.engine.groups.create("With a node")
        alice.chosen.clear()
        alice.node.add_peers(stranger.node.addresses())
        await until_connected(alice)
        path = random_file(tmp_path, SIZE)
        nobody = FileProblem(fault=FileFault.NOBODY_KEEPS_IT, peers=1)
        sent = await alice.send(group, path)
        await alice.until_file(sent, lambda file: file.problem == nobody)
        sent = await alice.send(chosen_by_it, path)
        await alice.until_file(sent, lambda file: file.problem is None and file.done_bytes == SIZE)
