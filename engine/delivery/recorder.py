"""Records what happens to messages on its own thread, without ever blocking the event loop.

The loop passes a reference and a time and goes on.  This thread makes and writes rows a moment
later, many at a time, so a message on its way to the window comes first.  The queue is bounded.
Calls that find no room and rows that the disk refuses are dropped and counted, and a ``gap`` row in
the log says how much is missing there.

``engine.runtime.conversation_snapshots`` makes the calls and explains them.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from msgspec import Struct, field

from engine.core.errors import StorageError
from engine.core.ids import MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.ports import StoreWrite
from engine.core.records import LoggedMessage, MemberRecord
from engine.delivery.contract import Kind, Via
from engine.delivery.log_writer import Limits, LogWriter, Owner, usable_rows
from engine.delivery.pseudonym import Pseudonyms
from engine.delivery.row_builder import Copy, RowBuilder, Which
from engine.delivery.rows import Rows
from engine.delivery.snapshot_request import requests_for, take_away
from engine.delivery.steps import Step

MAX_PENDING: Final = 20_000
"""The maximum number of calls that wait to be written."""
MAX_TOGETHER: Final = 2_000
LINGER_MS: Final = 100
"""Delay before writing, to write more rows together."""
CLOSE_WITHIN_MS: Final = 10_000

logger = logging.getLogger(__name__)


class RecorderSettings(Struct, frozen=True, kw_only=True):
    """``network`` is a short name shared by all who can meet, such as ``waku/42``."""

    directory: Path
    key: bytes
    app_version: str
    network: str
    limits: Limits = field(default_factory=Limits)
    max_pending: int = MAX_PENDING
    linger_ms: int = LINGER_MS


class Recorder:
    """Methods return immediately unless they say that they wait.

    Calls before ``begin`` are not recorded.
    """

    def __init__(
        self,
        settings: RecorderSettings,
        *,
        now_ms: Callable[[], UnixMs],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Raises ConfigError for an invalid key."""
        self._settings = settings
        self._pseudonyms = Pseudonyms(settings.key)
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._book: RowBuilder | None = None
        self._owner: Owner | None = None
        self._writer: LogWriter | None = None
        self._via, self._push_via = Via.RELAY, Via.RELAY
        self._dropped = 0
        self._lost = 0
        self._told = 0
        self._flushed: list[threading.Event] = []
        self._on_failing: Callable[[bool], None] | None = None
        self.is_failing = False
        """The disk refuses rows; each call and each flush tries again."""

    @property
    def dropped(self) -> int:
        """The number of calls that found no room, and of rows that could not be written."""
        return self._dropped + self._lost

    @property
    def directory(self) -> Path:
        return self._settings.directory

    # --- called by the loop -------------------------------------------------------------------

    def begin(
        self, own_id: ParticipantId, *, on_failing: Callable[[bool], None] | None = None
    ) -> None:
        """Start recording; call it once, as soon as the log's owner is known.

        ``on_failing`` is called on the recorder's thread, with ``is_failing`` when that changes.
        """
        if self._thread is not None:
            return
        self._on_failing = on_failing
        settings = self._settings
        owner = Owner(
            participant=self._pseudonyms.participant(own_id),
            key_id=self._pseudonyms.key_id,
            app_version=settings.app_version,
            network=settings.network,
        )
        self._owner = owner
        self._book = RowBuilder(self._pseudonyms, own_id)
        self._writer = LogWriter(
            settings.directory,
            owner,
            limits=settings.limits,
            now_ms=self._now_ms,
            random_bytes=self._random_bytes,
        )
        self._note(Kind.STARTED)
        self._thread = threading.Thread(
            target=self._run, args=(self._book, self._writer), name="recorder", daemon=True
        )
        self._thread.start()

    def took(self, which: Which, steps: Sequence[Step], writes: Sequence[StoreWrite]) -> None:
        """A session took these steps, and its writes are durable."""
        if self._book is not None:
            call = partial(self._book.took, which, steps, writes, via=self._via)
            self._put(partial(call, mono_ns=time.monotonic_ns()))

    def published(self, which: Which, copy: Copy) -> None:
        """A copy was handed to the network."""
        if self._book is not None:
            call = partial(self._book.published, which, copy, via=self._push_via)
            self._put(partial(call, at_ms=self._now_ms(), mono_ns=time.monotonic_ns()))

    def network(self, *, online: bool | None, edge: bool) -> None:
        """How copies travel from now on; ``online`` is None if it did not change."""
        self._via = Via.FILTER if edge else Via.RELAY
        self._push_via = Via.LIGHTPUSH if edge else Via.RELAY
        if online is not None:
            self._note(Kind.ONLINE if online else Kind.OFFLINE)

    def before(self, which: Which, logged: Sequence[LoggedMessage]) -> None:
        """The messages in a conversation when recording began."""
        if self._book is not None:
            self._put(partial(self._book.begin, which, logged))

    def before_ends(self) -> None:
        """All existing conversations were reported; any other one is new."""
        if self._book is not None:
            self._put(self._book.all_begun)

    def snapshot(
        self, which: Which, logged: Sequence[LoggedMessage], members: Sequence[MemberRecord]
    ) -> None:
        """The current order and members of a conversation."""
        if self._book is not None:
            self._put(partial(self._book.members, which, members))
            call = partial(self._book.snapshot, which, logged)
            self._put(partial(call, at_ms=self._now_ms(), mono_ns=time.monotonic_ns()))

    def fault(  # noqa: PLR0913 - keyword-only: all that is known of it
        self,
        what: str,
        *,
        which: Which | None = None,
        message_id: MessageId | None = None,
        waku_hash: WakuHash | None = None,
        wire_bytes: int | None = None,
        amount: int | None = None,
    ) -> None:
        """Something was done on purpose: to a copy of a conversation, of a peer, or to all."""
        if self._book is None:
            return
        at_ms, mono_ns = self._now_ms(), time.monotonic_ns()
        if which is None:
            call = partial(
                self._book.note,
                Kind.FAULT,
                waku_hash=waku_hash,
                wire_bytes=wire_bytes,
                amount=amount,
                detail=what,
            )
        else:
            call = partial(
                self._book.fault,
                which,
                what,
                message_id=message_id,
                waku_hash=waku_hash,
                wire_bytes=wire_bytes,
                amount=amount,
            )
        self._put(partial(call, at_ms=at_ms, mono_ns=mono_ns))

    def _note(self, kind: Kind) -> None:
        if self._book is not None:
            call = partial(self._book.note, kind, mono_ns=time.monotonic_ns())
            self._put(partial(call, at_ms=self._now_ms()))

    def _put(self, call: Callable[[], None]) -> None:
        if self._queue.qsize() >= self._settings.max_pending:
            self._dropped += 1
        else:
            self._queue.put(call)

    def asks(self, which: Which, query: int | None) -> None:
        """Store results that follow belong to this query; None: no more of them."""
        if self._book is not None:
            self._put(partial(self._book.asks, which, query))

    def asked(self, which: Which, query: int, *, hashes: int, end: str) -> None:
        """A Store query for ``hashes`` messages is over; 0 means that it was by time."""
        if self._book is not None:
            call = partial(self._book.asked, which, query, hashes=hashes, end=end)
            self._put(partial(call, at_ms=self._now_ms(), mono_ns=time.monotonic_ns()))

    # --- waiting for writes -------------------------------------------------------------------

    def flush(self, *, timeout_ms: int = CLOSE_WITHIN_MS) -> bool:
        """Wait until all earlier calls are written or refused; False on a time-out."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        done = threading.Event()
        self._queue.put(partial(self._tell_when_written, done))
        self._hurry.set()
        return done.wait(timeout_ms / 1000)

    def wanted(self) -> list[Path]:
        """Requests for a snapshot (``engine.delivery.snapshot_request``); reads the disk."""
        return [] if self._owner is None else requests_for(self.directory, self._owner.participant)

    def answer(self, requests: Sequence[Path], *, dropped: int) -> None:
        """Wait for earlier calls; answer ``requests`` if nothing was lost since ``dropped``."""
        if self.flush() and self.dropped == dropped:
            take_away(requests)

    def close(self, *, timeout_ms: int = CLOSE_WITHIN_MS) -> bool:
        """Write what is left and stop; False on a time-out.  Idempotent."""
        thread = self._thread
        if thread is None:
            return True
        self._note(Kind.STOPPED)
        self._queue.put(None)
        self._hurry.set()
        thread.join(timeout_ms / 1000)
        return not thread.is_alive()

    # --- on the thread ------------------------------------------------------------------------

    def _run(self, book: RowBuilder, writer: LogWriter) -> None:
        try:
            while self._take():
                self._write(book, writer)
            self._write(book, writer)
        finally:
            writer.close()
            self._tell_flushed()

    def _take(self) -> bool:
        """Wait for calls and make rows of them; False at the end."""
        call = self._queue.get()
        if call is not None:
            self._hurry.wait(self._settings.linger_ms / 1000)
            self._hurry.clear()
        together = 0
        while call is not None:
            self._make_rows(call)
            together += 1
            if together == MAX_TOGETHER:
                return True
            try:
                call = self._queue.get_nowait()
            except Empty:
                return True
        return False

    def _make_rows(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a mistake here must not end the recording
            self._lost += 1
            logger.warning("not recorded", extra={"error": type(error).__name__})

    def _write(self, book: RowBuilder, writer: LogWriter) -> None:
        missing = self.dropped - self._told
        if missing:
            book.note_first(Kind.GAP, at_ms=self._now_ms(), amount=missing)
        rows = book.take_rows()
        try:
            if rows:
                if self._append(rows, writer):
                    book.note(Kind.STARTED, at_ms=self._now_ms(), mono_ns=time.monotonic_ns())
                self._told += missing
                self._tell_failing(None)
        except StorageError as error:
            self._lost += len(rows.events) - bool(missing)
            self._tell_failing(error)
        self._tell_flushed()

    def _tell_failing(self, error: StorageError | None) -> None:
        """Once, not ten times a second."""
        was, self.is_failing = self.is_failing, error is not None
        if was == self.is_failing:
            return
        if error is not None:
            logger.warning("deliveries are not recorded", extra={"reason": str(error)})
        if self._on_failing is not None:
            self._on_failing(self.is_failing)

    def _append(self, rows: Rows, writer: LogWriter) -> bool:
        try:
            return writer.append(rows)
        except StorageError:
            usable = usable_rows(rows)
            if usable == rows:
                raise
            self._lost += len(rows.events) - len(usable.events)
            return writer.append(usable)

    def _tell_when_written(self, done: threading.Event) -> None:
        self._flushed.append(done)

    def _tell_flushed(self) -> None:
        flushed, self._flushed = self._flushed, []
        for done in flushed:
            done.set()
