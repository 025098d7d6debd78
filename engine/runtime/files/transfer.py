"""Runs one transfer: gives the state machine of a download or an upload its clock, disk, network.

Who is connected is looked at once a second.  A request is a task; what comes of it is told to the
machine at once, and what the machine wants next begins at once.  Everything ends with ``run``.
"""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from engine.core.blobs.download import (
    BlobDownload,
    ChunkCame,
    ChunkForged,
    ChunkMissing,
    ChunksEnded,
    DownloadInput,
    HolderTold,
    HoldingsCame,
    HoldingsFailed,
    ListOpened,
    SourceId,
    SourcesChanged,
    TimePassed,
    Want,
    WantChunks,
    WantHoldings,
)
from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.blobs.requests import MAX_KEEP_DAYS, ChunkAnswer, ChunkStatus
from engine.core.blobs.upload import BlobUpload, PutEnded, UploadInput, UploadWant, WantPut
from engine.core.errors import (
    CryptoError,
    RemoteProtocolError,
    StorageError,
    TransportError,
)
from engine.core.problems import FileFault, FileProblem
from engine.network.blobs.port import BlobNetwork
from engine.network.libp2p.ports import PeerId
from engine.runtime.files.disk import BlobDisk

LOOK_S: Final = 1.0
"""How often it is looked who is connected."""
STALLED_MS: Final = 60_000
"""After so long without a chunk the row says that nobody has it, whatever they say."""
RATE_S: Final = 3.0
"""Over how long a rate is measured."""


class Around(Struct, frozen=True, kw_only=True):
    """What all transfers of a profile share."""

    disk: BlobDisk
    network: BlobNetwork
    online: Callable[[], bool]
    shuffle: Callable[[list[ChunkName]], None]
    gate: asyncio.Semaphore
    """Admits so many requests of all transfers at once."""


class Transfer(Protocol):
    """``done_bytes``, ``problem`` and ``is_running`` may be read at any time."""

    done_bytes: int

    @property
    def problem(self) -> FileProblem | None: ...

    @property
    def is_running(self) -> bool: ...

    def held_by_another(self) -> None:
        """Somebody else says that they have all of it."""

    @abstractmethod
    async def run(self) -> FileProblem | None:
        """Return None once it is complete, or why it cannot be."""


class _Tasks:
    """The requests of one transfer, and its way to wait.  ``gate``: so many run of all at once."""

    def __init__(self, gate: asyncio.Semaphore) -> None:
        self._gate = gate
        self._running: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    def begin(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        task = asyncio.create_task(self._admitted(work), name="blob request")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _admitted(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        async with self._gate:
            await work()

    def tell(self) -> None:
        self._news.set()

    async def wait(self, until_ms: int | None) -> None:
        """Until there is news, it is time, or it is to be looked who is connected."""
        wait_s = LOOK_S if until_ms is None else min(LOOK_S, max(0.0, (until_ms - now_ms()) / 1e3))
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    async def end(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class Download:
    def __init__(self, manifest: Manifest, around: Around) -> None:
        self.done_bytes = 0
        self._manifest = manifest
        self._disk = around.disk
        self._network = around.network
        self._online = around.online
        self._shuffle = around.shuffle
        self._machine = self._new_machine()
        self._names: tuple[ChunkName, ...] = ()
        self._failure: FileProblem | None = None
        self._came_ms = now_ms()
        self._tasks = _Tasks(around.gate)
        self._sources: tuple[SourceId, ...] = ()

    def _new_machine(self) -> BlobDownload:
        return BlobDownload(self._manifest.root, shuffle=self._shuffle)

    @property
    def is_running(self) -> bool:
        return self._machine.is_running

    @property
    def problem(self) -> FileProblem | None:
        """Why nothing comes just now; None while it comes, or may soon, or is all here."""
        if self._failure is not None or self._machine.is_complete:
            return self._failure
        asked = self._machine.asked()
        is_stalled = now_ms() - self._came_ms > STALLED_MS
        if (self.is_running or asked.useful) and not is_stalled:
            return None
        if not self._online() and not self._sources:
            return FileProblem(fault=FileFault.NOBODY_CONNECTED)
        if not self._sources:
            return FileProblem(fault=FileFault.NEEDS_SERVICE_NODE)
        if asked.pending and not is_stalled:
            return None
        return FileProblem(fault=FileFault.NOBODY_HAS_IT, peers=asked.peers, nodes=asked.keepers)

    def held_by_another(self) -> None:
        self._feed(HolderTold())
        self._tasks.tell()

    async def run(self) -> FileProblem | None:
        try:
            await self._open_list()
            while self._failure is None:
                self._look()
                if self._machine.is_complete and await self._verified():
                    break
                await self._tasks.wait(self._machine.next_deadline())
        finally:
            await self._tasks.end()
        return self._failure

    def _look(self) -> None:
        sources = tuple(map(SourceId, self._network.peers()))
        if sources != self._sources:
            self._sources = sources
            self._feed(SourcesChanged(sources))
        else:
            self._feed(TimePassed())

    def _feed(self, given: DownloadInput) -> None:
        wants = self._machine.handle(given, now_ms=now_ms())
        here = len(self._machine.here) * CHUNK_BYTES
        self.done_bytes = min(here, self._manifest.size)
        for want in wants:
            self._tasks.begin(partial(self._perform, want))
        if self._machine.is_complete:
            self._tasks.tell()

    async def _perform(self, want: Want) -> None:
        if isinstance(want, WantHoldings):
            try:
                held = await self._network.holdings(PeerId(want.source), want.names)
            except (TransportError, RemoteProtocolError):
                self._feed(HoldingsFailed(want))
            else:
                self._feed(HoldingsCame(want, held))
        else:
            await self._get(want)

    async def _get(self, want: WantChunks) -> None:
        is_busy = failed = False

        async def on_chunk(name: ChunkName, answer: ChunkAnswer) -> None:
            nonlocal is_busy
            match answer.status:
                case ChunkStatus.HERE:
                    await self._take(want.source, name, answer.sealed)
                case ChunkStatus.MISSING:
                    self._feed(ChunkMissing(want.source, name))
                case ChunkStatus.BUSY | ChunkStatus.TOO_MUCH:
                    is_busy = True

        try:
            await self._network.get(PeerId(want.source), want.names, on_chunk)
        except StorageError as error:
            self._fail(FileFault.STORAGE, error)
        except (TransportError, RemoteProtocolError):
            failed = True
        self._feed(ChunksEnded(want=want, failed=failed, busy=is_busy))

    async def _take(self, source: SourceId, name: ChunkName, sealed: bytes) -> None:
        try:
            await self._disk.keep(name, sealed)
        except RemoteProtocolError:
            self._feed(ChunkForged(source, name))
            raise
        self._came_ms = now_ms()
        self._feed(ChunkCame(source, name))
        if name == self._manifest.root:
            await self._open_list()

    async def _open_list(self) -> None:
        try:
            names = await self._disk.names(self._manifest)
            if names is None:  # Not yet, or not any more.
                self._machine, self._sources = self._new_machine(), ()
            else:
                self._names = names
                held = await self._disk.held(names)
                here = frozenset(name for name, is_here in zip(names, held, strict=True) if is_here)
                self._feed(ListOpened(names=names, here=here))
        except CryptoError:
            self._fail(FileFault.NOT_AS_SAID)

    async def _verified(self) -> bool:
        """Whether all is here and what was announced.  What is damaged is missing again."""
        try:
            is_whole = await self._disk.verify(self._manifest, self._names)
        except CryptoError:
            self._fail(FileFault.NOT_AS_SAID)
            return False
        if not is_whole:
            await self._open_list()
        return is_whole

    def _fail(self, fault: FileFault, error: StorageError | None = None) -> None:
        self._failure = FileProblem(fault=fault, storage=None if error is None else error.fault)
        self._tasks.tell()


class Upload:
    """Ends only when a node has all of it: until then it waits for one.

    ``nodes``: those that the user or the conversation chose.  Nobody else is asked: a stranger who
    says that it keeps everything would be believed.
    """

    def __init__(
        self, manifest: Manifest, around: Around, nodes: Callable[[], Collection[PeerId]]
    ) -> None:
        self.done_bytes = 0
        self._nodes = nodes
        self._manifest = manifest
        self._disk = around.disk
        self._network = around.network
        self._online = around.online
        self._machine = BlobUpload(())
        self._failure: FileProblem | None = None
        self._tasks = _Tasks(around.gate)
        self._peers = 0
        self._sources: tuple[SourceId, ...] = ()
        """The chosen nodes among the peers."""

    @property
    def is_running(self) -> bool:
        return self._machine.is_running

    @property
    def problem(self) -> FileProblem | None:
        """Why it is at no node yet."""
        if self._failure is not None:
            return self._failure
        if self._machine.nodes() or self._machine.is_asking:
            return None
        if not self._online() and not self._peers:
            return FileProblem(fault=FileFault.NOBODY_CONNECTED)
        return FileProblem(fault=FileFault.NOBODY_KEEPS_IT, peers=self._peers)

    def held_by_another(self) -> None:
        """A member keeps nothing for others."""

    async def run(self) -> FileProblem | None:
        try:
            names = await self._disk.names(self._manifest)
            if names is None:
                return FileProblem(fault=FileFault.NOT_HERE)
            self._machine = BlobUpload((self._manifest.root, *names))
            while self._failure is None and not self._machine.is_complete:
                self._look()
                await self._tasks.wait(self._machine.next_deadline())
        except CryptoError:
            return FileProblem(fault=FileFault.NOT_HERE)
        finally:
            await self._tasks.end()
        return self._failure

    def _look(self) -> None:
        peers, nodes = self._network.peers(), self._nodes()
        self._peers = len(peers)
        sources = tuple(SourceId(peer_id) for peer_id in peers if peer_id in nodes)
        changed = sources != self._sources
        self._sources = sources
        self._feed(SourcesChanged(sources) if changed else TimePassed())

    def _feed(self, given: UploadInput) -> None:
        wants = self._machine.handle(given, now_ms=now_ms())
        self.done_bytes = min(self._machine.done * CHUNK_BYTES, self._manifest.size)
        for want in wants:
            self._tasks.begin(partial(self._perform, want))
        if self._machine.is_complete:
            self._tasks.tell()

    async def _perform(self, want: UploadWant) -> None:
        peer_id = PeerId(want.source)
        try:
            if isinstance(want, WantHoldings):
                held = await self._network.holdings(peer_id, want.names)
                self._feed(HoldingsCame(want, held))
            else:
                await self._put(peer_id, want)
        except (TransportError, RemoteProtocolError):
            broke_off = (
                HoldingsFailed(want) if isinstance(want, WantHoldings) else PutEnded(want, None)
            )
            self._feed(broke_off)

    async def _put(self, peer_id: PeerId, want: WantPut) -> None:
        sealed = await self._disk.read(want.name)
        if sealed is None:
            self._failure = FileProblem(fault=FileFault.NOT_HERE)
            self._tasks.tell()
            return
        status = await self._network.put(peer_id, sealed, keep_days=MAX_KEEP_DAYS)
        self._feed(PutEnded(want, status))


class Rate:
    """Bytes per second over the last RATE_S seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()

    def add(self, done_bytes: int) -> int:
        at_ms = now_ms()
        self._seen.append((at_ms, done_bytes))
        while len(self._seen) > 1 and at_ms - self._seen[0][0] > RATE_S * 1_000:
            self._seen.popleft()
        first_ms, first = self._seen[0]
        elapsed_ms = at_ms - first_ms
        return max(0, (done_bytes - first) * 1_000 // elapsed_ms) if elapsed_ms else 0


def now_ms() -> int:
    """Of a clock that cannot be set."""
    return int(asyncio.get_running_loop().time() * 1_000)
