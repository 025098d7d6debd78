"""Queues the inputs of one conversation's session, by kind, so that none starves another.

- *Asked*: commands.  Never dropped and always answered with a result or an error, also when the
  runner fails or closes.
- *Offered*: messages from the network.  Bounded; the excess is dropped and counted.
- *Latest*: replaced by a newer one, never dropped.
- *Fed*: messages from Stores, in order.  The caller waits until they are done, so it fetches no
  more than fits.

Asked, offered and fed jobs take turns.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from engine.core.counters import Counters
from engine.core.errors import ChatError
from engine.core.ids import MessageId
from engine.core.ports import StoreWrite
from engine.session.inputs import SessionInput

INBOX_SIZE = 2_000


class WriteForUser(Struct, frozen=True):
    """Make one of the user's writes durable, in turn with all other jobs."""

    write: StoreWrite


class LookAtClock(Struct, frozen=True):
    """Does nothing itself: the clock is checked before each batch."""


JobInput: TypeAlias = SessionInput | WriteForUser | LookAtClock


@dataclass(slots=True, eq=False)
class Job:
    """``done`` is set for asked jobs, and for the last of several fed ones."""

    input_: JobInput
    done: asyncio.Future[MessageId | None] | None = None
    is_fed: bool = False

    def succeed(self, message_id: MessageId | None) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(message_id)

    def fail(self, error: ChatError) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_exception(error)


class JobQueue:
    """Jobs of one conversation.  The queue outlives sessions that fail."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._asked: deque[Job] = deque()
        self._offered: deque[Job] = deque()
        self._fed: deque[Job] = deque()
        self._latest: Job | None = None
        self._taken: set[Job] = set()
        self._room = asyncio.Semaphore(INBOX_SIZE)
        self._wake = asyncio.Event()
        self._closed: ChatError | None = None
        self._turn = 0
        self._to_come = 0

    def __len__(self) -> int:
        return len(self._asked) + len(self._offered) + len(self._fed) + (self._latest is not None)

    @property
    def holds_only_fed(self) -> bool:
        return len(self) == len(self._fed) > 0

    @property
    def has_more_to_come(self) -> bool:
        """Whether more will be fed soon, and nothing waits to be handled before that."""
        return self._to_come > 0 and not len(self)

    # --- putting in -----------------------------------------------------------------------------

    async def ask(self, input_: JobInput) -> MessageId | None:
        """Wait for room, queue the input, and wait for its result."""
        async with self._room:
            if self._closed is not None:
                raise self._closed
            job = Job(input_, asyncio.get_running_loop().create_future())
            self._asked.append(job)
            self._wake.set()
            try:
                return await _outcome(job)
            finally:
                self._taken.discard(job)

    def offer(self, input_: JobInput) -> None:
        """Queue an input from outside, or drop and count it if there is no room."""
        if len(self._offered) >= INBOX_SIZE:
            self._counters.add("runner.inbox_full")
            return
        self._offered.append(Job(input_))
        self._wake.set()

    async def feed(self, inputs: Sequence[JobInput]) -> None:
        """Queue inputs in order.  Returns once their results are durable, or raises why not."""
        if self._closed is not None:
            raise self._closed
        if not inputs:
            return
        jobs = [Job(input_, is_fed=True) for input_ in inputs]
        last = jobs[-1]
        last.done = asyncio.get_running_loop().create_future()
        self._fed.extend(jobs)
        self._wake.set()
        try:
            await _outcome(last)
        finally:
            self._taken.discard(last)

    @contextlib.contextmanager
    def more_to_come(self) -> Generator[None]:
        """Within this, more is on its way to be fed."""
        self._to_come += 1
        try:
            yield
        finally:
            self._to_come -= 1
            self._wake.set()

    def put(self, input_: JobInput) -> None:
        """Queue what nobody waits for, after what was asked before.

        Never dropped: the session bounds its own requests, and typing whoever types.
        """
        if self._closed is None:
            self._asked.append(Job(input_))
            self._wake.set()

    def drop_put(self) -> None:
        """Drop answers to an old session's requests: the next session has no use for them."""
        self._asked = deque(job for job in self._asked if job.done is not None)

    def offer_latest(self, input_: JobInput) -> None:
        """Queue an input in place of the previous latest one, if that was not taken yet."""
        self._latest = Job(input_)
        self._wake.set()

    # --- taking out -----------------------------------------------------------------------------

    async def wait(self, timeout_s: float | None) -> None:
        """Wait until there is a job, or until the timeout."""
        if len(self):
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()

    def take(self) -> Job | None:
        """Remove and return the next job; None if there is none."""
        if self._latest is not None:
            job, self._latest = self._latest, None
            return job
        queues = (self._asked, self._offered, self._fed)
        for _ in queues:
            self._turn = (self._turn + 1) % len(queues)
            if queues[self._turn]:
                job = queues[self._turn].popleft()
                if job.done is not None:
                    self._taken.add(job)
                return job
        return None

    # --- failing --------------------------------------------------------------------------------

    def fail_taken(self, error: ChatError) -> None:
        """Fail the jobs that a discarded session took but did not finish, and all fed ones."""
        for job in self._taken:
            job.fail(error)
        self._taken.clear()
        for job in self._fed:  # Earlier fed ones are lost, so all are fed again.
            job.fail(error)
        self._fed.clear()

    def fail_asked(self, error: ChatError) -> None:
        """Fail everything asked so far; later jobs may succeed."""
        self.fail_taken(error)
        for job in self._asked:
            job.fail(error)
        self._asked.clear()

    def close(self, error: ChatError) -> None:
        """Fail pending and future jobs: there will be no session."""
        self._closed = error
        self.fail_asked(error)
        self._offered.clear()


async def _outcome(job: Job) -> MessageId | None:
    return await job.done if job.done is not None else None
