"""The files of messages that travel apart from them.  Implements ``engine.api.Files``.

What becomes of a blob is stored with its message, so a transfer goes on after a restart.  Messages
are heard of by the events of the engine itself, however they came: a blob is offered, a small
picture is wanted at once, and what was retracted or deleted takes its chunks with it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import structs

from engine.answers import PAGE_SIZE
from engine.codec.holdings import MAX_WHOLE_FILES
from engine.core.blobs.manifest import MAX_READ_BYTES, ChunkName, Manifest, usable_thumbnail
from engine.core.content import MAX_FILE_BYTES, Attachment, Mention
from engine.core.entropy import Entropy
from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    CryptoError,
    InputError,
    InputFlaw,
    LocalProtocolError,
    StorageError,
    StorageFault,
)
from engine.core.ids import ConversationId, MessageId, Position
from engine.core.ports import PutTransfer
from engine.core.problems import FileFault, FileProblem
from engine.core.records import OpenChannelRecord, TransferState
from engine.core.stored import StoredMessage
from engine.events import (
    ConversationRemoved,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
    MessageRemoved,
    MessagesAdded,
    MessageView,
    TimelineChanged,
)
from engine.network.owned_tasks import OwnedTasks
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.files.book import LET_GO, Blob, FileBook, FileKey, is_of_others
from engine.runtime.files.chosen_nodes import ChosenNodes
from engine.runtime.files.cut_off import CutOffBlobs
from engine.runtime.files.disk import BlobDisk, FilesSettings, check_size, size_of
from engine.runtime.files.inline import InlineFiles
from engine.runtime.files.letting_go import ServedShelf, all_names, held_by_a_peer
from engine.runtime.files.pictures import Pictures
from engine.runtime.files.progress import Progress
from engine.runtime.files.served import ServedFiles
from engine.runtime.files.transfer import Around, Download, Rate, Transfer, Upload
from engine.runtime.input_checks import usable_attachment, usable_caption
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import message_view
from engine.session.inputs import HoldsFiles, Say

MAX_REQUESTS: Final = 16
"""Of all transfers at once."""
KEY_BYTES: Final = 32

_LOGGER = logging.getLogger(__name__)


class Files:
    """``start`` before the first command; ``stop`` at the end."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        context: RunnerContext,
        conversations: Conversations,
        *,
        book: FileBook,
        settings: FilesSettings | None,
        entropy: Entropy,
        online: Callable[[], bool],
        is_cut_off: Callable[[], bool],
        service_nodes: Callable[[], Sequence[str]],
    ) -> None:
        """Without ``settings`` there is no room for blobs, and none is sent or fetched.

        ``is_cut_off``: on purpose, from everybody.  ``service_nodes``: those that the user chose.
        """
        self._store = context.store
        self._storage = context.storage
        self._own_id = context.own_id
        self._publish = context.publish
        self._conversations = conversations
        self._book = book
        self._inline = InlineFiles(context)
        self._entropy = entropy
        self._online = lambda: online() and not is_cut_off()
        blobs = context.transport.blobs()
        self._network = None if blobs is None else CutOffBlobs(blobs, is_cut_off)
        self._nodes = ChosenNodes(service_nodes, conversations)
        self._disk = None if settings is None else BlobDisk(settings)
        peers = tuple if self._network is None else self._network.peers
        served = ServedFiles(book, peers, context.counters)
        self._shelf = None if self._disk is None else ServedShelf(self._disk, served)
        self._gate = asyncio.Semaphore(MAX_REQUESTS)
        self._tasks = OwnedTasks(context.counters, failed="files.task_failed")
        self._running: dict[FileKey, asyncio.Task[None]] = {}
        self._ready = asyncio.Event()
        self._unavailable: StorageError | None = None
        self._news = asyncio.Event()
        """Messages came, changed or went, and the book may be out of date."""
        largest = (lambda: 0) if settings is None else settings.pictures_below
        self._pictures = Pictures(largest, context.counters)
        self._whole: dict[ConversationId, list[MessageId]] = {}
        """Others' files that are here as a whole, the newest last."""
        self._progress = Progress(
            book, self._running, served, tell=self._tell, view=self._view, publish=self._publish
        )
        self._loading = asyncio.Lock()
        """Held while the book is brought up to date."""
        self._turn = asyncio.Lock()
        """Held while what becomes of a blob changes."""

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        if self._disk is not None:
            self._tasks.spawn(self._run(self._disk))

    async def stop(self) -> None:
        if self._network is not None:
            self._network.serve(None)
        await self._tasks.cancel_all()
        if self._disk is not None:
            await self._disk.close()

    async def _run(self, disk: BlobDisk) -> None:
        try:
            found = await disk.open()
            await self._load()
        except StorageError as error:
            _LOGGER.warning("files of messages are not available", extra={"fault": error.fault})
            self._unavailable = error
            return
        finally:
            self._ready.set()
        if self._network is not None:
            self._network.serve(self._shelf)
        self._tasks.spawn(self._progress.run())
        await self._miss(found)
        await disk.sweep(found, self._manifests())
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._load()
                await self._inline.close_gone(disk)
                await self._fetch_pictures()
            except StorageError:
                _LOGGER.warning("what became of a file was not noted; the next start does")

    async def _miss(self, found: Collection[ChunkName]) -> None:
        """Files of others that were here as a whole, and are not: say so."""
        for blob in list(self._book.blobs.values()):
            if blob.may_go and blob.stored.transfer.manifest.root not in found:
                with suppress(StorageError):
                    gone = FileProblem(fault=FileFault.NOT_HERE)
                    await self._set(blob, TransferState.FAILED, gone)

    async def _load(self) -> None:
        """Take over what is stored: what is new, and what is gone."""
        async with self._loading:
            await self._take_over()

    async def _take_over(self) -> None:
        stored = await self._storage.run(self._store.transfers)
        known = {(one.conversation_id, one.message_id): one for one in stored}
        for key in [key for key in self._book.blobs if key not in known]:
            await self._forget(key)
        came_whole: set[ConversationId] = set()
        for key, one in known.items():
            if key not in self._book.blobs:
                self._book.add(blob := Blob(stored=one))
                self._begin(blob)
                if blob.state is TransferState.PAUSED and not one.is_own and self._disk is not None:
                    blob.reached_bytes = await self._disk.reached(one.transfer.manifest)
                    await self._tell(blob)
                if blob.state is TransferState.COMPLETE and not one.is_own:
                    self._whole.setdefault(one.conversation_id, []).append(one.message_id)
                    came_whole.add(one.conversation_id)
        for conversation_id in came_whole:
            self._claim(conversation_id)

    def _claim(self, conversation_id: ConversationId, let_go: Sequence[MessageId] = ()) -> None:
        """Let the members know what is here as a whole, and what is no more."""
        with suppress(CommandError):
            runner = self._conversations.runner(conversation_id)
            runner.offer(self._held(conversation_id, let_go))

    def _held(self, conversation_id: ConversationId, let_go: Sequence[MessageId]) -> HoldsFiles:
        whole = self._whole.get(conversation_id, [])
        return HoldsFiles(tuple(whole[-MAX_WHOLE_FILES:]), tuple(let_go))

    def _manifests(self, *, without: Iterable[FileKey] = ()) -> list[Manifest]:
        left_out = set(without)
        return [
            blob.stored.transfer.manifest
            for key, blob in self._book.blobs.items()
            if key not in left_out
        ]

    # --- what happens to messages ---------------------------------------------------------------

    def hear(self, event: EngineEvent) -> None:
        """Told of every event of the engine."""
        match event:
            case MessageAdded(message=message):
                self._heard_of((message,), are_new=True)
            case MessagesAdded(messages=messages):
                self._heard_of(messages, are_new=True)
            case MessageChanged(message=message):
                self._heard_of((message,), are_new=False)
            case MessageRemoved() | ConversationRemoved() | TimelineChanged():
                self._news.set()
            case _:
                pass

    def _heard_of(self, messages: Sequence[MessageView], *, are_new: bool) -> None:
        for one in messages:
            self._book.hear(one)
            # While the book is brought up to date, what was read for it may be old already.
            is_new = one.kind is MessageKind.FILE and self._loading.locked()
            if is_new or self._book.differs(one) or self._inline.lost(one):
                self._news.set()
        if are_new and self._network is not None:
            self._network.give_way()
        if are_new:
            self.look_at(messages)

    def look_at(self, messages: Iterable[MessageView]) -> None:
        """Messages came or are shown: small pictures among them are fetched."""
        if self._disk is not None and self._pictures.look_at(messages):
            self._news.set()

    async def _fetch_pictures(self) -> None:
        wanted = TransferState.WANTED
        fetching = sum(blob.state is wanted for blob in self._book.blobs.values())
        for key in self._pictures.take(fetching=fetching):
            blob = self._book.blobs.get(key)
            if blob is not None and blob.is_new:
                await self._set(blob, TransferState.WANTED)

    async def _forget(self, key: FileKey) -> None:
        async with self._turn:
            blob = self._book.remove(key)
            if blob is not None:
                await self._end(blob)
                self._not_whole(blob)
                await self._remove_chunks(blob)

    async def _remove_chunks(self, blob: Blob) -> int:
        """Return how many bytes of the file went."""
        kept, going = self._manifests(without=(blob.key,)), [blob.stored.transfer.manifest]
        return 0 if self._disk is None else await self._disk.remove(going, kept)

    def _not_whole(self, blob: Blob) -> None:
        conversation_id, message_id = blob.key
        whole = self._whole.get(conversation_id, [])
        if message_id in whole:
            whole.remove(message_id)
            self._claim(conversation_id, (message_id,))

    # --- commands -------------------------------------------------------------------------------

    async def send(  # noqa: PLR0913 - one keyword per fact of the file
        self,
        conversation_id: ConversationId,
        path: str,
        *,
        name: str,
        media_type: str,
        caption: str = "",
        mentions: Sequence[Mention] = (),
        reply_to: MessageId | None = None,
        forwarded: bool = False,
        thumbnail: bytes = b"",
        width: int = 0,
        height: int = 0,
    ) -> MessageId:
        runner = self._conversations.runner(conversation_id)
        if isinstance(runner.record, OpenChannelRecord):
            raise LocalProtocolError("an open channel carries no files")
        said = replace(usable_caption(caption, mentions), reply_to=reply_to, forwarded=forwarded)
        body = usable_attachment(name, media_type, said, width=width, height=height)
        place = Path(path)
        size = await asyncio.to_thread(size_of, place)
        check_size(size)
        if self._disk is None:
            raise InputError(InputFlaw.FILE_TOO_LARGE, given=size, limit=MAX_FILE_BYTES)
        disk = await self._usable_disk()
        manifest = await disk.seal(place, self._entropy.random_bytes(KEY_BYTES))
        return await self._say(runner, disk, body, manifest, usable_thumbnail(thumbnail))

    async def forward(
        self, conversation_id: ConversationId, message_id: MessageId, to: ConversationId
    ) -> MessageId:
        runner = self._conversations.runner(to)
        if isinstance(runner.record, OpenChannelRecord):
            raise LocalProtocolError("an open channel carries no files")
        blob, disk = await self._complete(conversation_id, message_id)
        row = await self._row(blob)
        if row is None or (file := row.record.file) is None or file.transfer is None:
            raise CommandError(CommandRefusal.NO_FILE)
        said = replace(usable_caption(row.record.text), forwarded=True)
        width, height = file.width, file.height
        body = usable_attachment(file.name, file.media_type, said, width=width, height=height)
        key = self._entropy.random_bytes(KEY_BYTES)
        try:
            manifest = await disk.seal_anew(blob.stored.transfer.manifest, key)
        except (StorageError, CryptoError) as error:
            raise await self._unreadable(blob, error) from error
        return await self._say(runner, disk, body, manifest, file.transfer.manifest.thumbnail)

    async def _say(
        self,
        runner: ConversationRunner,
        disk: BlobDisk,
        body: Attachment,
        manifest: Manifest,
        thumbnail: bytes,
    ) -> MessageId:
        """Say that a file is here, whose chunks go again if that fails."""
        try:
            offered = structs.replace(manifest, thumbnail=thumbnail)
            message_id = await runner.do(Say(replace(body, manifest=offered)))
        except ChatError:  # Not if it is given up: the message may be stored all the same.
            await disk.remove([manifest], self._manifests())
            raise
        if message_id is None:
            raise LocalProtocolError("a message without an id")
        return message_id

    async def fetch(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        blob = await self._blob(conversation_id, message_id)
        if blob.stored.is_own:
            await self._set(blob, TransferState.OFFERING)
        elif blob.state is not TransferState.COMPLETE:
            await self._set(blob, TransferState.WANTED)

    async def pause(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        blob = await self._blob(conversation_id, message_id)
        if blob.state in {TransferState.WANTED, TransferState.OFFERING}:
            await self._set(blob, TransferState.PAUSED)

    async def cancel(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        blob = await self._blob(conversation_id, message_id)
        if blob.stored.is_own:
            await self._set(blob, TransferState.COMPLETE)
            return
        async with self._turn:
            await self._remove(blob, cancelled=True)

    async def _remove(self, blob: Blob, *, cancelled: bool = False) -> None:
        await self._end(blob)
        await self._note(blob, TransferState.OFFERED, None, LET_GO)
        try:
            gone_bytes = await self._remove_chunks(blob)
            blob.thrown_away_bytes = gone_bytes if cancelled else 0
        finally:
            await self._tell(blob)

    async def let_go(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], *, unasked: bool
    ) -> Sequence[MessageId]:
        runner = self._conversations.runner(conversation_id)
        disk, shelf = await self._usable_disk(), self._shelf
        if shelf is None:
            return ()
        found = (self._book.blobs.get((conversation_id, each)) for each in message_ids)
        blobs = [each for each in found if each is not None and each.may_go]
        files = [await all_names(disk, each.stored.transfer.manifest) for each in blobs]
        with shelf.withholding([name for names in files for name in names]):
            if not unasked:
                held = await held_by_a_peer(self._network, files)
                blobs = [blob for blob, is_held in zip(blobs, held, strict=True) if is_held]
            going = [blob.key[1] for blob in blobs]
            self._whole[conversation_id] = [
                each for each in self._whole.get(conversation_id, []) if each not in going
            ]
            if going:
                # Signed and durable before anything is removed.
                await runner.do(self._held(conversation_id, going))
            for blob in blobs:
                async with self._turn:
                    await self._remove(blob)
        return going

    async def shared(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = PAGE_SIZE,
    ) -> Sequence[MessageView]:
        runner, store = self._conversations.runner(conversation_id), self._store
        rows = await self._storage.run(store.with_files, conversation_id, before, limit=limit)
        views = (message_view(row, runner.members, self._own_id, runner.record) for row in rows)
        return tuple(map(self._book.shown, views))

    async def save_as(
        self, conversation_id: ConversationId, message_id: MessageId, path: str
    ) -> None:
        self._conversations.runner(conversation_id)
        if await self._inline.save((conversation_id, message_id), Path(path)):
            return
        blob, disk = await self._complete(conversation_id, message_id)
        is_received, manifest = is_of_others(await self._row(blob)), blob.stored.transfer.manifest
        try:
            await disk.write_to(manifest, Path(path), is_received=is_received)
        except (StorageError, CryptoError) as error:
            raise await self._unreadable(blob, error) from error

    async def read(
        self, conversation_id: ConversationId, message_id: MessageId, *, limit: int = MAX_READ_BYTES
    ) -> bytes:
        blob, disk = await self._complete(conversation_id, message_id)
        manifest = blob.stored.transfer.manifest
        if manifest.size > min(limit, MAX_READ_BYTES):
            raise CommandError(CommandRefusal.TOO_LARGE_TO_SHOW)
        try:
            return await disk.data(manifest)
        except (StorageError, CryptoError) as error:
            raise await self._unreadable(blob, error) from error

    async def open_path(self, conversation_id: ConversationId, message_id: MessageId) -> str:
        self._conversations.runner(conversation_id)
        key, disk = (conversation_id, message_id), await self._usable_disk()
        if copied := await self._inline.open_copy(key, disk):
            return str(copied)
        blob, disk = await self._complete(conversation_id, message_id)
        row, manifest = await self._row(blob), blob.stored.transfer.manifest
        if row is None or row.record.file is None:
            raise CommandError(CommandRefusal.NO_FILE)
        try:
            name, is_received = row.record.file.name, is_of_others(row)
            return str(await disk.open_copy(manifest, name, is_received=is_received))
        except (StorageError, CryptoError) as error:
            raise await self._unreadable(blob, error) from error

    async def _unreadable(self, blob: Blob, error: StorageError | CryptoError) -> StorageError:
        """What to raise; the row says, too, if a part of the file is gone."""
        if isinstance(error, StorageError) and error.fault is not StorageFault.DAMAGED:
            return error
        await self._set(blob, TransferState.FAILED, FileProblem(fault=FileFault.NOT_HERE))
        return StorageError("a part of the file is gone", StorageFault.DAMAGED)

    async def _blob(self, conversation_id: ConversationId, message_id: MessageId) -> Blob:
        """Raises CommandError."""
        self._conversations.runner(conversation_id)
        await self._usable_disk()
        key = (conversation_id, message_id)
        if key not in self._book.blobs:
            await self._load()
        blob = self._book.blobs.get(key)
        if blob is None:
            raise CommandError(CommandRefusal.NO_FILE)
        return blob

    async def _complete(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> tuple[Blob, BlobDisk]:
        blob = await self._blob(conversation_id, message_id)
        if not blob.stored.is_own and blob.state is not TransferState.COMPLETE:
            raise CommandError(CommandRefusal.NOT_COMPLETE)
        return blob, await self._usable_disk()

    async def _usable_disk(self) -> BlobDisk:
        if self._disk is None:
            raise CommandError(CommandRefusal.NO_FILE)
        await self._ready.wait()
        if self._unavailable is not None:
            raise self._unavailable
        return self._disk

    # --- transfers ------------------------------------------------------------------------------

    async def _set(
        self, blob: Blob, state: TransferState, problem: FileProblem | None = None
    ) -> None:
        """Store what becomes of it, begin or end its transfer, and tell."""
        async with self._turn:
            await self._end(blob)
            await self._change(blob, state, problem)

    async def _change(self, blob: Blob, state: TransferState, problem: FileProblem | None) -> None:
        await self._note(blob, state, problem)
        self._begin(blob)
        await self._tell(blob)

    async def _note(
        self, blob: Blob, state: TransferState, problem: FileProblem | None, note: str = ""
    ) -> None:
        fault = note if problem is None else problem.fault
        conversation_id, message_id = blob.key
        write = PutTransfer(
            conversation_id=conversation_id, message_id=message_id, state=state, fault=fault
        )
        await self._storage.run(self._store.apply, [write])
        blob.become(state, problem, note)
        if state is not TransferState.COMPLETE:
            self._not_whole(blob)

    def _begin(self, blob: Blob) -> None:
        disk, network, known = self._disk, self._network, self._book.blobs.get(blob.key)
        if disk is None or network is None or known is not blob:
            return
        manifest, online = blob.stored.transfer.manifest, self._online
        around = Around(
            disk=disk, network=network, online=online, shuffle=self._shuffle, gate=self._gate
        )
        match blob.state:
            case TransferState.WANTED:
                transfer: Transfer = Download(manifest, around)
            case TransferState.OFFERING:
                chosen = partial(self._nodes.of, blob.stored.conversation_id)
                transfer = Upload(manifest, around, chosen)
            case _:
                return
        blob.transfer = transfer
        blob.rate = Rate()
        self._running[blob.key] = self._tasks.spawn(self._transfer(blob, transfer))
        self._progress.begin()

    async def _transfer(self, blob: Blob, transfer: Transfer) -> None:
        try:
            problem = await transfer.run()
        except ChatError as error:
            fault = error.fault if isinstance(error, StorageError) else None
            problem = FileProblem(fault=FileFault.STORAGE, storage=fault)
        async with self._turn:
            # It ends here: nobody waits for its end, or ends it, any more.
            self._running.pop(blob.key, None)
            blob.transfer = None
            await self._ended(blob, problem)

    async def _ended(self, blob: Blob, problem: FileProblem | None) -> None:
        state = TransferState.COMPLETE if problem is None else TransferState.FAILED
        if problem is not None and problem.fault is FileFault.NOT_AS_SAID:
            await self._remove_chunks(blob)
        try:
            await self._change(blob, state, problem)
        except StorageError as error:
            # Stored is that it goes on, as it will at the next start; the row says why not now.
            unstored = FileProblem(fault=FileFault.STORAGE, storage=error.fault)
            blob.become(TransferState.FAILED, problem or unstored)
            await self._tell(blob)
            return
        if problem is None and not blob.stored.is_own:
            conversation_id, message_id = blob.key
            self._whole.setdefault(conversation_id, []).append(message_id)
            self._claim(conversation_id)

    async def _end(self, blob: Blob) -> None:
        task = self._running.pop(blob.key, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        blob.stop()

    def _shuffle(self, names: list[ChunkName]) -> None:
        for place in range(len(names) - 1, 0, -1):
            other = int(self._entropy.random_unit() * (place + 1))
            names[place], names[other] = names[other], names[place]

    # --- what is told ---------------------------------------------------------------------------

    async def _row(self, blob: Blob) -> StoredMessage | None:
        return await self._storage.run(self._store.message, *blob.key)

    async def _view(self, blob: Blob) -> MessageView | None:
        row = await self._row(blob)
        try:
            runner = self._conversations.runner(blob.stored.conversation_id)
        except CommandError:
            return None
        if row is None or row.record.file is None:
            return None
        return message_view(row, runner.members, self._own_id, runner.record)

    async def _tell(self, blob: Blob) -> None:
        view = await self._view(blob)
        blob.shown = (blob.file_state(), blob.file_problem())
        if view is not None:
            self._publish(MessageChanged(message=view))
