"""Drives one ``Session``: connects it to its clock, timer, disk and network.

Inputs wait in a bounded job queue and are handled in batches of a few milliseconds, deadlines
first.  The storage thread makes a batch's writes durable in one transaction; only then are its
sends performed and its events published.  While a batch from Stores is committed, the next one is
handled.  Between batches other tasks of the loop run.

A StorageError ends the run, since memory is then ahead of the disk; the supervisor loads a new
session from the store.  Every caller gets a result or an error.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

from msgspec.structs import replace

from engine.core.errors import ChatError, LocalProtocolError, StorageError, StorageFault
from engine.core.ids import (
    ConversationId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
    WakuHash,
)
from engine.core.ports import SaveDraft, SaveMemberMuted, SaveMuted, SaveReadMark, StoreWrite
from engine.core.records import MemberRecord
from engine.core.sds.inputs import ClockSet, ConnectivityChanged, DeadlineReached, StoreChanged
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import AskStore, Buffers, SendPurpose
from engine.core.stored import Listed, StoredMessage
from engine.core.waku import WakuMessage
from engine.events import ConversationView, FloodView, ForkView, GapView, HeldView
from engine.runtime.commit_batch import CommitBatch, SavedBatch, read_back
from engine.runtime.event_publisher import EventPublisher, in_log_order
from engine.runtime.fault_bench import Direction, PassingCopy
from engine.runtime.job_queue import Job, JobInput, JobQueue, LookAtClock, WriteForUser
from engine.runtime.outgoing import Outgoing
from engine.runtime.recorded_queries import record_batch
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import Members
from engine.session.contract import ConversationRecord, Session
from engine.session.group.session import GroupSession
from engine.session.inputs import EnvelopeArrived, MessageArrived, TypeNow
from engine.session.transitions import (
    MembersNoted,
    Publish,
    SessionSend,
    SessionTransition,
)

BATCH_MS = 4
HAND_OVER_MS = 5
MAX_JOBS_PER_BATCH = 128
TOLD_ONE_BY_ONE = 24
TOLD_TOGETHER = 64
"""More rows from Stores are told together, so that a window does not act on each of thousands."""
LOG_SLICE = 8_192
"""Entries of a log that are read in one go: some 20 ms of the storage thread."""
FED_BATCH_MS = 1
FED_TOGETHER = 1_024
FED_TOGETHER_MS = 500
"""Messages from Stores are made durable in larger batches, unless a caller waits.

In one transaction they share pages of the indexes, over which their random ids spread them: in a
log of 100 000, a thousand together take two thirds of the work.  So a batch also waits for what is
on its way.  The time is reached on a machine that is busy otherwise, and there small batches cost
most."""
LONGEST_WAIT_MS = 60_000
"""The longest wait before the next check: machines sleep, and a peer may choose a huge delay."""
LEAST_ADVANCE_MS = 5
"""Minimum time between two checks for deadlines, so that nothing can make the loop spin."""
UNKNOWN_OUTCOME = "interrupted; it is not known whether this was saved"

logger = logging.getLogger(__name__)


class ConversationRunner:
    def __init__(
        self,
        record: ConversationRecord,
        *,
        load: Callable[[ConversationRecord, LogTable], Session],
        people: Callable[[ConversationRecord, Sequence[MemberRecord]], Members],
        context: RunnerContext,
        listed: Listed | None = None,
    ) -> None:
        """``load`` builds the session from the store, and from a group's log, on its thread.

        ``people`` says who is there, given the members that the store knows; ``listed`` is what the
        store says of the conversation, if that was read already.
        """
        self._publisher = EventPublisher(record, context)
        self._load = load
        self._people = people
        self._context = context
        self._jobs = JobQueue(context.counters)
        self._outgoing = Outgoing(
            context, self._jobs, record=lambda: self.record, alone=lambda: self._publisher.is_alone
        )
        self._session: Session | None = None
        self._advanced_s = 0.0
        self._clock_offset_ms = 0  # The offset that the session knows.
        self._shown = asyncio.Event()
        self._ready = asyncio.Event()
        self.arrived = 0  # Readable messages that came from Stores.
        if listed is not None:
            self._introduce(listed)

    # --- requests -----------------------------------------------------------------------------

    async def do(self, input_: JobInput) -> MessageId | None:
        """Handle an input.  Returns once its writes are durable, or raises why they are not."""
        return await self._jobs.ask(input_)

    def offer(self, input_: JobInput) -> None:
        """Queue an input from outside.  It is dropped and counted if there is no room."""
        self._jobs.offer(input_)

    def connectivity_changed(self, *, online: bool) -> None:
        self._jobs.offer_latest(ConnectivityChanged(online=online))

    def close(self, error: ChatError) -> None:
        """Fail all pending and future requests with ``error``."""
        self._jobs.close(error)
        self._shown.set()
        self._ready.set()

    def on_message(self, message: WakuMessage, waku_hash: WakuHash) -> bool:
        """Take a message from the network.  Returns whether it passed the precheck.

        Junk is rejected here, so it cannot crowd out members' messages.  Without a session there is
        no precheck: the message is queued, and the result is False.
        """
        if self._session is None:
            self._take_in(MessageArrived(message, waku_hash), message, waku_hash)
            return False
        checked = self._session.precheck(message, waku_hash)
        if checked is None:
            return False
        self._take_in(EnvelopeArrived(checked), message, waku_hash)
        return True

    def _take_in(self, arrived: JobInput, message: WakuMessage, waku_hash: WakuHash) -> None:
        """Queue what came, unless it is lost or delayed on purpose."""
        faults = self._context.faults
        if faults is not None and faults.is_on:
            copy = PassingCopy(
                direction=Direction.IN,
                payload=message.payload,
                go_on=partial(self.offer, arrived),
                waku_hash=waku_hash,
            )
            if not faults.lets_pass(self.record, copy):
                return
        self.offer(arrived)

    async def feed(self, inputs: Sequence[JobInput]) -> None:
        """Feed messages from Stores, in order.  Returns once all results are durable."""
        await self._jobs.feed(inputs)

    def more_to_come(self) -> AbstractContextManager[None]:
        """Within this, more is on its way to be fed: it may share a transaction with the rest."""
        return self._jobs.more_to_come()

    def stores_changed(self, *, reachable: bool) -> None:
        if self._session is not None:  # Else ``load`` reports it.
            self._jobs.put(StoreChanged(reachable=reachable))

    def type_now(self, *, active: bool) -> None:
        """After all that was asked before: a text that was sent says that one stopped."""
        if self._session is not None:
            self._jobs.put(TypeNow(active=active))

    def clock_moved(self) -> None:
        """Check the clock soon, even if nothing else happens."""
        if self._session is not None:
            self._jobs.put(LookAtClock())

    @property
    def session(self) -> Session | None:
        """To be read; None until it is loaded."""
        return self._session

    @property
    def waiting(self) -> int:
        """Received messages that wait for missing dependencies."""
        gap = self.gap()
        return gap.waiting if gap else 0

    def next_deadline(self) -> UnixMs | None:
        """When the session has something to do next; None if it has not, or is not loaded."""
        return self._session.next_deadline() if self._session else None

    @property
    def oldest_ms(self) -> UnixMs | None:
        return self._session.oldest_ms if self._session else None

    @property
    def reads_since_ms(self) -> UnixMs | None:
        known = self._session.governance() if isinstance(self._session, GroupSession) else None
        return None if known is None else known.reads_since_ms

    async def mark_read(self, up_to: Position) -> None:
        if self.record.read_up_to is not None and up_to <= self.record.read_up_to:
            return
        await self._write(SaveReadMark(conversation_id=self.conversation_id, up_to=up_to))
        furthest = max(up_to, self.record.read_up_to or up_to)
        self._publisher.record = replace(self.record, read_up_to=furthest)
        self._tell_conversation()

    async def set_muted(self, *, muted: bool, for_ms: int | None = None) -> None:
        until_ms = None
        if muted and for_ms is not None:
            until_ms = UnixMs(self._context.clock.clock_ms() + for_ms)
        await self._write(
            SaveMuted(conversation_id=self.conversation_id, muted=muted, until_ms=until_ms)
        )
        self._publisher.record = replace(self.record, muted=muted, muted_until_ms=until_ms)
        self._tell_conversation()

    @property
    def mute_is_over(self) -> bool:
        return self._publisher.mute_is_over

    async def end_mute(self) -> None:
        """Unmute, if the time for which it was muted is over."""
        if self.mute_is_over:
            await self.set_muted(muted=False)

    async def set_member_muted(self, participant_id: ParticipantId, *, muted: bool) -> None:
        """Mute or unmute a member.  Raises LocalProtocolError for ourselves and in a pair."""
        if self.is_pair or participant_id == self._context.own_id:
            raise LocalProtocolError("only another member of a group can be muted")
        await self._write(
            SaveMemberMuted(
                conversation_id=self.conversation_id, participant_id=participant_id, muted=muted
            )
        )
        self._publisher.set_muted(participant_id, self._session, muted=muted)

    async def tell_timeline(self) -> None:
        """Publish that a muted member's rows were hidden or restored."""
        context = self._context
        self._publisher.summary = await context.storage.run(
            context.store.summary, self.conversation_id
        )
        self._publisher.tell_timeline(self._session)

    async def save_draft(self, text: str) -> None:
        if text == self.record.draft:
            return
        await self._write(SaveDraft(conversation_id=self.conversation_id, text=text))
        self._publisher.record = replace(self.record, draft=text)
        self._tell_conversation()

    async def write(self, write: StoreWrite) -> None:
        """Make one of the user's writes durable, in turn with all other jobs."""
        await self._write(write)
        self._tell_conversation()

    async def flush(self, *, timeout_ms: int) -> None:
        """Wait until all sends have been handed to the network, or until the timeout."""
        await self._outgoing.flush(timeout_ms=timeout_ms)

    async def shown(self) -> None:
        """Wait until the window can show it, its session loaded or not, or reading failed."""
        await self._shown.wait()

    async def ready(self) -> None:
        """Wait until the session has been loaded, or loading it first failed."""
        await self._ready.wait()

    @property
    def record(self) -> ConversationRecord:
        return self._publisher.record

    @property
    def conversation_id(self) -> ConversationId:
        return self.record.conversation_id

    @property
    def is_pair(self) -> bool:
        return self._publisher.is_pair

    @property
    def members(self) -> Members:
        """The members as last known; empty until the session is loaded."""
        return self._publisher.members

    def view(self) -> ConversationView | None:
        """The row of the conversation list; None until its summary was read.

        Until the session is loaded it says that nothing is missing, and that nobody is here.
        """
        return self._publisher.view(self._session)

    def gap(self) -> GapView | None:
        return self._session.gap() if self._session else None

    def held(self) -> HeldView | None:
        return self._publisher.held(self._session) if self._session else None

    def floods(self) -> tuple[FloodView, ...]:
        return self._publisher.floods(self._session) if self._session else ()

    def forks(self) -> tuple[ForkView, ...]:
        return self._publisher.forks(self._session) if self._session else ()

    def buffers(self) -> Buffers | int | None:
        """As ``Session.buffers``; None until the session is loaded."""
        return self._session.buffers() if self._session else None

    def counted(self) -> Mapping[str, int]:
        """As ``Session.counted``; nothing until the session is loaded."""
        return self._session.counted() if self._session else {}

    @property
    def queued(self) -> tuple[int, int]:
        """What waits to be handed to the network, and what waits to be handled."""
        return self._outgoing.waiting, len(self._jobs)

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:
        return self._session.claimed_by(message_id) if self._session else frozenset()

    def heard(self) -> Mapping[ParticipantId, UnixMs]:
        """When something live came from others, as far as it is known."""
        return self._session.heard() if self._session else {}

    # --- running ------------------------------------------------------------------------------

    async def load(self) -> None:
        """Load the session from the store.  Pending requests wait, or fail if loading fails."""
        reloaded = self._ready.is_set()
        self._jobs.drop_put()
        try:
            if reloaded or not self._shown.is_set():
                store, mine = self._context.store, self.conversation_id
                self._introduce((await self._context.storage.run(store.listed, (mine,)))[mine])
            log = await self._read_log()
            self._clock_offset_ms = self._context.clock.offset_ms()
            session = await self._context.storage.run(self._load, self.record, log)
        except StorageError as error:
            self._jobs.fail_asked(error)
            raise
        finally:
            self._shown.set()
            self._ready.set()
        self._session = session
        self._publisher.learn(session)
        if log.distrusted:
            self._context.counters.add("runner.index_made_again")
            logger.warning("the index of a log was damaged or out of date")
            self._publisher.tell_index_made_again()
        self.offer(DeadlineReached())  # Publishes what is held aside.
        self.stores_changed(reachable=self._context.stores_reachable())
        if reloaded or self._publisher.shown_unloaded:
            self._publisher.tell_loaded(session)

    def _introduce(self, listed: Listed) -> None:
        people = self._people(self.record, listed.members)
        self._publisher.introduce(people, listed.summary, listed.muted)
        self._shown.set()

    async def _read_log(self) -> LogTable:
        """Read the index of a group's log, letting others use the storage thread in between."""
        log = LogTable()
        more = not self.is_pair
        read, storage = self._context.store.read_log, self._context.storage
        while more:
            async with self._context.load_order.turn(self.conversation_id, self._active_ms):
                more = await storage.run(read, self.conversation_id, log, limit=LOG_SLICE)
        return log

    @property
    def _active_ms(self) -> UnixMs:
        summary = self._publisher.summary
        last = summary.last_message if summary else None
        return last.record.sent_ms if last else self.record.created_ms

    async def run(self) -> None:
        """Run until cancelled or until the store fails."""
        session = self._session
        if session is None:
            raise StorageError("The conversation is not loaded.", StorageFault.NOT_LOADED)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._outgoing.send_all(), name="publish queue")
                tasks.create_task(self._handle_all(session, tasks), name="job queue")
        except ExceptionGroup as group:
            # Not "except*": some 3.11 releases wrap what it raises.
            for error in group.exceptions:
                if isinstance(error, StorageError):
                    self._jobs.fail_taken(error)
                    raise error from None
            raise
        finally:
            self._jobs.fail_taken(StorageError(UNKNOWN_OUTCOME, StorageFault.UNKNOWN_OUTCOME))

    async def _handle_all(self, session: Session, tasks: asyncio.TaskGroup) -> None:
        committing: asyncio.Task[None] | None = None
        while True:
            await self._jobs.wait(self._wait_s(session))
            batch = CommitBatch(recorded=self._is_recorded)
            self._handle_batch(session, batch)
            if batch.fed:
                await self._handle_fed(session, batch)
            if not batch:
                await asyncio.sleep(0)  # Junk, perhaps a lot of it: let the user interface run.
                continue
            if committing is not None:
                await committing
            commit = self._commit(session, batch, written := asyncio.Event())
            if batch.fed:
                committing = tasks.create_task(commit, name="commit")
                await written.wait()
            else:
                await commit

    def _wait_s(self, session: Session) -> float | None:
        deadline_ms = session.next_deadline()
        if deadline_ms is None:
            return None
        wait_ms = min(deadline_ms - self._context.clock.steady_ms(), LONGEST_WAIT_MS)
        since_s = asyncio.get_running_loop().time() - self._advanced_s
        return max(wait_ms / 1000, LEAST_ADVANCE_MS / 1000 - since_s, 0.0)

    async def _handle_fed(self, session: Session, batch: CommitBatch) -> None:
        """Handle more messages from Stores, letting other tasks run in between."""
        now_s, jobs = asyncio.get_running_loop().time, self._jobs
        until_s = now_s() + FED_TOGETHER_MS / 1000
        while batch.fed < FED_TOGETHER and (left_s := until_s - now_s()) > 0:
            if jobs.has_more_to_come:
                wait_s = self._wait_s(session)
                await jobs.wait(left_s if wait_s is None else min(left_s, wait_s))
            elif jobs.holds_only_fed:
                await asyncio.sleep(0)
            if not jobs.holds_only_fed:
                break
            self._handle_batch(session, batch)

    def _handle_batch(self, session: Session, batch: CommitBatch) -> None:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        self._look_at_clock(session, batch)
        self._advance(session, batch, started_s)
        for _ in range(MAX_JOBS_PER_BATCH):
            job = self._jobs.take()
            if job is None:
                break
            self._handle_one(session, job, batch)
            batch_ms = FED_BATCH_MS if batch.fed else BATCH_MS
            if loop.time() > started_s + batch_ms / 1000:
                break

    def _look_at_clock(self, session: Session, batch: CommitBatch) -> None:
        """Pass a changed clock offset to the session before it handles anything by the clock."""
        clock = self._context.clock
        offset_ms = clock.offset_ms()
        if offset_ms != self._clock_offset_ms:
            self._clock_offset_ms = offset_ms
            batch.add(session.handle(ClockSet(offset_ms=offset_ms), now_ms=clock.steady_ms()))

    def _advance(self, session: Session, batch: CommitBatch, loop_s: float) -> None:
        """Handle deadlines first, or a flood of input would delay them."""
        if loop_s - self._advanced_s < LEAST_ADVANCE_MS / 1000:
            return
        deadline_ms, now_ms = session.next_deadline(), self._context.clock.steady_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return
        self._advanced_s = loop_s
        batch.add(session.handle(DeadlineReached(), now_ms=now_ms))

    def _handle_one(self, session: Session, job: Job, batch: CommitBatch) -> None:
        if job.done is not None and job.done.done():
            return
        try:
            batch.add(self._transition(session, job.input_), job)
        except ChatError as error:
            if job.done is None:
                raise
            job.fail(error)
        except Exception as error:
            job.fail(LocalProtocolError(type(error).__name__))
            raise

    def _transition(self, session: Session, input_: JobInput) -> SessionTransition:
        match input_:
            case WriteForUser():
                return SessionTransition(writes=(input_.write,))
            case LookAtClock():
                return SessionTransition()
            case _:
                return session.handle(input_, now_ms=self._context.clock.steady_ms())

    async def _commit(self, session: Session, batch: CommitBatch, written: asyncio.Event) -> None:
        """Make a batch durable, then act on it.

        ``written`` is set once nothing but the transaction's commit is left for the storage thread:
        while that encrypts and syncs, the interpreter is free.
        """
        rows: Mapping[MessageId, StoredMessage] = {}
        is_crowded = False
        try:
            saved = await self._save(batch, written)
        finally:
            written.set()
        if saved is not None:
            rows, self._publisher.summary = saved.rows, saved.summary
            is_crowded = saved.is_crowded
            batch.hush(saved.counting)
        if batch.steps:
            self._tell_steps(batch)
        for send in batch.sends:
            if isinstance(send, AskStore):
                self._context.ask_store(self.conversation_id, send)
            else:
                await self._outgoing.enqueue(send)
        if any(map(_is_awaited, batch.sends)):
            # Send before notifying listeners: what they do, above all painting, takes longer than
            # handing the bytes to the network.
            await self.flush(timeout_ms=HAND_OVER_MS)
        self.arrived += batch.arrived
        for job, message_id in batch.finished:
            job.succeed(message_id)
        await self._tell(session, batch, rows)
        if is_crowded:
            self._publisher.tell_timeline(session)

    @property
    def _is_recorded(self) -> bool:
        """Whether anybody hears which steps the session takes."""
        context = self._context
        return context.recording.recorder is not None or bool(context.taps.of(self.conversation_id))

    def _tell_steps(self, batch: CommitBatch) -> None:
        recorder = self._context.recording.recorder
        if recorder is not None:
            record_batch(recorder, self.record, batch)
        for tap in self._context.taps.of(self.conversation_id):
            tap.took(batch.steps, clock_offset_ms=self._clock_offset_ms)

    async def _tell(
        self, session: Session, batch: CommitBatch, rows: Mapping[MessageId, StoredMessage]
    ) -> None:
        """Publish events; many rows in groups, letting other tasks run in between."""
        notes = in_log_order(batch.notes, rows)
        if len(notes) <= TOLD_ONE_BY_ONE:
            self._publisher.tell(session, notes, rows)
            return
        if any(isinstance(note, MembersNoted) for note in notes):
            self._publisher.learn(session)
        tell_rows = self._publisher.tell_many if batch.fed else self._publisher.tell_rows
        for first in range(0, len(notes), TOLD_TOGETHER):
            tell_rows(notes[first : first + TOLD_TOGETHER], rows)
            await asyncio.sleep(0)
        self._publisher.tell_concerned(notes, rows)
        self._publisher.tell_others(session, notes)

    async def _save(self, batch: CommitBatch, written: asyncio.Event) -> SavedBatch | None:
        touched = batch.touched()
        if not batch.writes and not touched:
            return None
        loop = asyncio.get_running_loop()
        return await self._context.storage.run(
            self._write_and_read, batch, touched, lambda: loop.call_soon_threadsafe(written.set)
        )

    def _write_and_read(
        self, batch: CommitBatch, touched: Sequence[MessageId], written: Callable[[], object]
    ) -> SavedBatch:
        saved: list[SavedBatch] = []

        def read() -> None:
            saved.append(read_back(self._context.store, self.conversation_id, batch, touched))
            written()

        self._context.store.apply(batch.lasting_writes(), read)
        return saved[0]

    async def _write(self, write: StoreWrite) -> None:
        await self.do(WriteForUser(write))

    def _tell_conversation(self) -> None:
        self._publisher.tell_conversation(self._session)


def _is_awaited(send: SessionSend) -> bool:
    """Whether the user waits for it; acknowledgements do not count."""
    return isinstance(send, Publish) and send.purpose is not SendPurpose.SYNC
