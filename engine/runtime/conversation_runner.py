"""Drives one ``GroupSession``: the only place where its clock, timer, disk and network meet.

Inputs wait in one bounded inbox.  Whatever is there is handled in slices of a few milliseconds; the
slice's writes become durable in one transaction on the storage thread, and only then is anything
sent or told.  What the network brings and does not fit is dropped and counted, since SDS repairs
it; what the user wants waits for room.  A StorageError ends the run: memory is then ahead of the
disk, and the supervisor builds a new session from the store.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from engine.core.counters import Counters
from engine.core.errors import ChatError, LocalProtocolError, StorageError, TransportError
from engine.core.ports import (
    ConversationSummary,
    GroupRecord,
    ProfileStore,
    SaveDraft,
    SaveMuted,
    SaveReadMark,
    StoredMessage,
    StoreWrite,
)
from engine.core.types import MessageId, ParticipantId, Position, UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.events import (
    ConversationChanged,
    ConversationView,
    EngineEvent,
    GapUpdated,
    GapView,
    MessageAdded,
    MessageChanged,
    TypingChanged,
)
from engine.network.transport import Transport
from engine.persistence.storage_thread import StorageThread
from engine.runtime.views import Members, conversation_view, message_view
from engine.session.group import GroupSession
from engine.session.types import (
    GapNoted,
    LoadForRepair,
    Note,
    Publish,
    RowAdded,
    RowChanged,
    SessionSend,
    SessionTransition,
    TypingNoted,
)

INBOX_SIZE = 2_000
OUTBOX_SIZE = 500
SLICE_MS = 4
HAND_OVER_MS = 5
STEPS_TO_SOCKET = 4
"""Turns of the loop from the network's queue to the socket: writer, muxer, cipher, pipe."""
MAX_JOBS_PER_SLICE = 128

logger = logging.getLogger(__name__)

Work = Callable[[GroupSession, UnixMs], SessionTransition]


@dataclass(slots=True)
class _Job:
    work: Work
    done: asyncio.Future[MessageId | None] | None = None


@dataclass(slots=True)
class _Slice:
    """What was handled together and becomes durable together."""

    writes: list[StoreWrite] = field(default_factory=list)
    sends: list[SessionSend] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    finished: list[tuple[asyncio.Future[MessageId | None], MessageId | None]] = field(
        default_factory=list
    )

    def add(self, job: _Job, transition: SessionTransition) -> None:
        self.writes.extend(transition.writes)
        self.sends.extend(transition.sends)
        self.notes.extend(transition.notes)
        if job.done is not None:
            self.finished.append((job.done, transition.message_id))

    def touched(self) -> list[MessageId]:
        ids = [n.message_id for n in self.notes if isinstance(n, RowAdded | RowChanged)]
        return list(dict.fromkeys(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every runner of a profile shares."""

    store: ProfileStore
    storage: StorageThread
    transport: Transport
    own_id: ParticipantId
    now_ms: Callable[[], UnixMs]
    publish: Callable[[EngineEvent], None]
    counters: Counters


class ConversationRunner:
    def __init__(
        self,
        group: GroupRecord,
        *,
        load: Callable[[GroupRecord], GroupSession],
        around: Surroundings,
    ) -> None:
        """``load`` runs on the storage thread and builds the session from the store."""
        self.group = group
        self._load = load
        self._around = around
        self._inbox: asyncio.Queue[_Job] = asyncio.Queue(maxsize=INBOX_SIZE)
        self._outbox: asyncio.Queue[SessionSend] = asyncio.Queue(maxsize=OUTBOX_SIZE)
        self._session: GroupSession | None = None
        self._summary: ConversationSummary | None = None
        self._ready = asyncio.Event()

    # --- asked from outside -------------------------------------------------------------------

    async def do(self, work: Work) -> MessageId | None:
        """Run ``work`` on the session; returns once all that it wrote is durable."""
        done: asyncio.Future[MessageId | None] = asyncio.get_running_loop().create_future()
        await self._inbox.put(_Job(work, done))
        return await done

    def offer(self, work: Work) -> None:
        """Like ``do`` for what comes from outside: dropped and counted when there is no room."""
        try:
            self._inbox.put_nowait(_Job(work))
        except asyncio.QueueFull:
            self._around.counters.add("runner.inbox_full")

    def on_message(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        self.offer(lambda session, now_ms: session.receive(message, waku_hash, now_ms=now_ms))

    async def mark_read(self, up_to: Position) -> None:
        if self.group.read_up_to is not None and up_to <= self.group.read_up_to:
            return
        await self._write(SaveReadMark(conversation_id=self.group.conversation_id, up_to=up_to))
        self.group = replace(self.group, read_up_to=up_to)
        self._tell_conversation()

    async def set_muted(self, *, muted: bool) -> None:
        await self._write(SaveMuted(conversation_id=self.group.conversation_id, muted=muted))
        self.group = replace(self.group, muted=muted)
        self._tell_conversation()

    async def save_draft(self, text: str) -> None:
        if text == self.group.draft:
            return
        await self._write(SaveDraft(conversation_id=self.group.conversation_id, text=text))
        self.group = replace(self.group, draft=text)
        self._tell_conversation()

    async def write(self, write: StoreWrite) -> None:
        """Make one write of the user's durable, in turn with everything else."""
        await self._write(write)
        self._tell_conversation()

    async def flush(self, *, timeout_ms: int) -> None:
        """Wait until all that was sent has been handed to the network, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._outbox.join()

    async def ready(self) -> None:
        """Wait until the session has been loaded, or loading it failed for the first time."""
        await self._ready.wait()

    @property
    def members(self) -> Members:
        return self._session.members() if self._session else {}

    def view(self) -> ConversationView | None:
        """The row of the conversation list; None until the session is loaded."""
        if self._session is None or self._summary is None:
            return None
        gap = self.gap()
        return conversation_view(
            self.group,
            self.members,
            self._summary,
            self._around.own_id,
            missing=gap.missing if gap else 0,
        )

    def gap(self) -> GapView | None:
        return self._session.gap() if self._session else None

    # --- running ------------------------------------------------------------------------------

    async def load(self) -> None:
        """Build the session from the store; everything asked before waits."""
        try:
            self._session, self._summary = await self._around.storage.run(self._load_all)
        finally:
            self._ready.set()

    def _load_all(self) -> tuple[GroupSession, ConversationSummary]:
        session = self._load(self.group)
        return session, self._around.store.summary(self.group.conversation_id)

    async def run(self) -> None:
        """Run until cancelled or until the store refuses."""
        if self._session is None:
            await self.load()
        session = self._session
        if session is None:
            raise StorageError("the conversation is not loaded")
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_all(session), name="outbox")
                tasks.create_task(self._handle_all(session), name="inbox")
        except* StorageError as group:
            raise group.exceptions[0] from None
        finally:
            self._session = None

    async def _handle_all(self, session: GroupSession) -> None:
        while True:
            first = await self._next_job(session)
            slice_ = self._handle_slice(session, first)
            if slice_.writes or slice_.sends or slice_.notes or slice_.finished:
                await self._commit(session, slice_)

    async def _next_job(self, session: GroupSession) -> _Job:
        deadline_ms = session.next_deadline()
        advance = _Job(lambda s, now_ms: s.advance(now_ms=now_ms))
        if deadline_ms is None:
            return await self._inbox.get()
        wait_s = (deadline_ms - self._around.now_ms()) / 1000
        if wait_s <= 0 and self._inbox.empty():
            await asyncio.sleep(0)
            return advance
        try:
            async with asyncio.timeout(max(0.0, wait_s)):
                return await self._inbox.get()
        except TimeoutError:
            return advance

    def _handle_slice(self, session: GroupSession, first: _Job) -> _Slice:
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE_MS / 1000
        slice_ = _Slice()
        self._handle_one(session, first, slice_)
        for _ in range(MAX_JOBS_PER_SLICE):
            if self._inbox.empty() or loop.time() > until:
                break
            self._handle_one(session, self._inbox.get_nowait(), slice_)
        return slice_

    def _handle_one(self, session: GroupSession, job: _Job, slice_: _Slice) -> None:
        if job.done is not None and job.done.cancelled():
            return
        try:
            slice_.add(job, job.work(session, self._around.now_ms()))
        except ChatError as error:
            if job.done is None:
                raise
            job.done.set_exception(error)
        except Exception as error:
            if job.done is not None:
                job.done.set_exception(LocalProtocolError(type(error).__name__))
            raise

    async def _commit(self, session: GroupSession, slice_: _Slice) -> None:
        try:
            rows, summary = await self._around.storage.run(
                self._write_and_read, tuple(slice_.writes), slice_.touched()
            )
        except StorageError as error:
            for done, _ in slice_.finished:
                if not done.done():
                    done.set_exception(error)
            raise
        self._summary = summary
        for send in slice_.sends:
            self._enqueue(send)
        if slice_.sends:
            # The others come first: what listeners do with the events, painting above all, takes
            # longer than handing the bytes to the network.
            await self.flush(timeout_ms=HAND_OVER_MS)
            for _ in range(STEPS_TO_SOCKET):
                await asyncio.sleep(0)
        for done, message_id in slice_.finished:
            if not done.done():
                done.set_result(message_id)
        self._tell(session, slice_.notes, rows)

    def _write_and_read(
        self, writes: Sequence[StoreWrite], touched: Sequence[MessageId]
    ) -> tuple[dict[MessageId, StoredMessage], ConversationSummary]:
        store, conversation_id = self._around.store, self.group.conversation_id
        if writes:
            store.apply(writes)
        rows = {
            message_id: stored
            for message_id in touched
            if (stored := store.message(conversation_id, message_id)) is not None
        }
        return rows, store.summary(conversation_id)

    async def _write(self, write: StoreWrite) -> None:
        await self.do(lambda _session, _now_ms: SessionTransition(writes=(write,)))

    # --- sending ------------------------------------------------------------------------------

    def _enqueue(self, send: SessionSend) -> None:
        try:
            self._outbox.put_nowait(send)
        except asyncio.QueueFull:
            # SDS sends again what nobody acknowledges, so losing a copy here loses no message.
            self._around.counters.add("runner.outbox_full")

    async def _send_all(self, session: GroupSession) -> None:
        while True:
            send = await self._outbox.get()
            try:
                await self._send(session, send)
            except TransportError as error:
                self._around.counters.add("runner.publish_failed")
                logger.warning("could not publish", extra={"error": type(error).__name__})
            finally:
                self._outbox.task_done()

    async def _send(self, session: GroupSession, send: SessionSend) -> None:
        publish = await self._prepared(session, send)
        if publish is None:
            return
        receipt = await self._around.transport.publish(publish.message)
        message_id = publish.message_id
        if message_id is not None and receipt.peers > 0:
            self.offer(
                lambda s, now_ms: s.accepted(
                    message_id, peers=receipt.peers, waku_hash=receipt.waku_hash, now_ms=now_ms
                )
            )

    async def _prepared(self, session: GroupSession, send: SessionSend) -> Publish | None:
        if isinstance(send, LoadForRepair):
            raw = await self._around.storage.run(
                self._around.store.raw, self.group.conversation_id, send.message_id
            )
            return session.repair(raw, now_ms=self._around.now_ms()) if raw else None
        return send

    # --- telling ------------------------------------------------------------------------------

    def _tell(
        self, session: GroupSession, notes: Sequence[Note], rows: dict[MessageId, StoredMessage]
    ) -> None:
        if not notes:
            return
        publish = self._around.publish
        added: set[MessageId] = set()
        changed: dict[MessageId, None] = {}
        for note in notes:
            if isinstance(note, RowAdded) and note.message_id in rows:
                added.add(note.message_id)
                view = message_view(rows[note.message_id], self.members, self._around.own_id)
                publish(MessageAdded(message=view, notify=note.notify and not self.group.muted))
            elif isinstance(note, RowChanged):
                changed[note.message_id] = None
        for message_id in changed:
            if message_id in rows and message_id not in added:
                view = message_view(rows[message_id], self.members, self._around.own_id)
                publish(MessageChanged(message=view))
        if any(isinstance(note, GapNoted) for note in notes):
            publish(GapUpdated(conversation_id=self.group.conversation_id, gap=session.gap()))
        if any(isinstance(note, TypingNoted) for note in notes):
            self._tell_typing(session)
        if any(not isinstance(note, TypingNoted) for note in notes):
            self._tell_conversation()

    def _tell_typing(self, session: GroupSession) -> None:
        names = tuple(self.members[who].name for who in session.typing_now() if who in self.members)
        self._around.publish(TypingChanged(conversation_id=self.group.conversation_id, names=names))

    def _tell_conversation(self) -> None:
        view = self.view()
        if view is not None:
            self._around.publish(ConversationChanged(conversation=view))
