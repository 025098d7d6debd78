"""Engines on real nodes and a real disk, which send each other files beyond 96 KiB."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

from msgspec import structs

from engine.core.ids import ConversationId, MessageId
from engine.core.problems import FileFault
from engine.events import EngineEvent, MessageAdded, MessageChanged
from engine.file_views import FileState, FileView
from engine.network.blobs.faulty import FaultyBlobs
from engine.network.blobs.port import BlobNetwork
from engine.network.blobs.server import BlobServing
from engine.network.edge.edge_node import EdgeNode
from engine.network.edge.settings import EdgeSettings, edge_key
from engine.network.memory import MemoryNetwork
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport
from engine.network.wrapped import WrappedTransport
from engine.persistence.kept_chunks import KeptChunks
from engine.runtime.engine import Engine, SavedTransport
from engine.runtime.files.disk import FilesSettings
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person

MIB = 1024 * 1024
SIZE = MIB + 12_345


class BadTransport(WrappedTransport):
    def __init__(self, inner: EmbeddedNode, chance: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._chance = chance

    def blobs(self) -> BlobNetwork | None:
        inner = super().blobs()
        return None if inner is None else FaultyBlobs(inner, self._chance)


class FilePerson(Person):
    """``resets``: the share of requests for blobs that break off; ``answers``: all after so many.

    With ``service_nodes`` it relays nothing, listens nowhere, and knows only these.  ``chosen``:
    the addresses of nodes that may keep what it sends, the former anyway.
    """

    def __init__(  # noqa: PLR0913 - keyword-only: what some test is about
        self,
        name: str,
        place: Path,
        *,
        resets: float = 0.0,
        answers: float = inf,
        serves: bool = True,
        max_bytes: int = 10**9,
        pictures_below: int = 0,
        service_nodes: Sequence[str] = (),
    ) -> None:
        super().__init__(name, place, MemoryNetwork())
        self.chunks = place / f"{name}.blobs"
        self.node: EmbeddedNode | None = None
        self._resets = resets
        self.answers = answers
        """How many requests do not break off yet."""
        self._serves = serves
        self._service_nodes = tuple(service_nodes)
        self.chosen = list(service_nodes)
        self._random = random.Random(name)
        self.pictures_below = pictures_below
        self.parts = structs.replace(
            self.parts,
            make_transport=self._transport,
            service_nodes=lambda: self.chosen,
            files=FilesSettings(
                chunks=self.chunks,
                opened=place / f"{name}.opened",
                max_bytes=max_bytes,
                pictures_below=lambda: self.pictures_below,
            ),
        )
        self._renew()

    def _renew(self) -> None:
        self.told.clear()
        self.engine = Engine(self.parts)
        self.engine.subscribe(self._hear)

    def _transport(self, saved: SavedTransport) -> Transport:
        if self._service_nodes:
            return EdgeNode(
                EdgeSettings(
                    network_key=edge_key(saved.network_key), service_nodes=self._service_nodes
                )
            )
        serving = ServiceSettings(blobs=BlobServing() if self._serves else None)
        settings = NodeSettings(network_key=saved.network_key, services=serving)
        self.node = EmbeddedNode(settings)
        return BadTransport(self.node, self._breaks_off)

    def _breaks_off(self) -> bool:
        self.answers -= 1
        return self.answers < 0 or self._random.random() < self._resets

    async def restart(self) -> None:
        """As after a crash: what was not durable is gone."""
        await self.engine.stop()
        self._renew()
        await self.engine.start()

    def addresses(self) -> Sequence[str]:
        assert self.node is not None
        return self.node.addresses()

    async def send(
        self, place: ConversationId, path: Path, *, media_type: str = "application/octet-stream"
    ) -> MessageId:
        return await self.engine.files.send(place, str(path), name=path.name, media_type=media_type)

    async def until_file(
        self,
        message_id: MessageId,
        wanted: Callable[[FileView], bool],
        *,
        in_time: tuple[ConversationId, "FilePerson"] | None = None,
    ) -> FileView:
        """``in_time``: it goes by for both in that conversation."""

        def found(event: EngineEvent) -> bool:
            return (
                isinstance(event, MessageAdded | MessageChanged)
                and event.message.message_id == message_id
                and event.message.file is not None
                and wanted(event.message.file)
            )

        waiting = self.until_in_time(found, *in_time) if in_time else self.until(found)
        event = await waiting
        assert isinstance(event, MessageAdded | MessageChanged)
        assert event.message.file is not None
        return event.message.file

    async def until_state(self, message_id: MessageId, state: FileState) -> FileView:
        return await self.until_file(message_id, lambda file: file.state is state)

    async def until_left(self, count: int) -> None:
        """Removing chunks tells nobody: look again and again."""
        async with asyncio.timeout(PATIENCE_S):
            while len(list(self.chunks.iterdir())) != count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def shown(self, place: ConversationId, message_id: MessageId) -> FileView:
        page = await self.engine.timeline.latest_page(place)
        [message] = [each for each in page.messages if each.message_id == message_id]
        assert message.file is not None
        return message.file


def random_file(place: Path, size: int, name: str = "film.bin") -> Path:
    path = place / name
    path.write_bytes(random.Random(size).randbytes(size))
    return path


@asynccontextmanager
async def people(*made: FilePerson) -> AsyncIterator[ConversationId]:
    """A group of them, created by the first."""
    try:
        for one in made:
            await one.start()
        first, *others = made
        group = await first.engine.groups.create("Friends")
        link = await first.engine.groups.make_invite_link(group)
        for one in others:
            await one.engine.groups.join(link)
        for one in others:
            async with asyncio.timeout(PATIENCE_S):
                while one.node and not one.node.blobs().peers():  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.01)
        yield group
    finally:
        for one in made:
            await one.engine.stop()


@asynccontextmanager
async def keeping_node(place: Path, *, max_bytes: int = 10**9) -> AsyncIterator[EmbeddedNode]:
    """A node that keeps chunks of others."""
    kept = KeptChunks(place / "kept", max_bytes=max_bytes, max_days=30)
    kept.open()
    settings = NodeSettings(
        network_key=b"n" * 32, services=structs.replace(all_services(), store=None)
    )
    node = EmbeddedNode(settings, keeper=kept)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def failing_with(fault: FileFault) -> Callable[[FileView], bool]:
    return lambda file: file.problem is not None and file.problem.fault is fault


def content(path: str | Path) -> tuple[bytes, int]:
    """Its bytes, and its permissions."""
    return Path(path).read_bytes(), Path(path).stat().st_mode & 0o777
