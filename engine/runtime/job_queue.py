"""What waits for a conversation's session: wishes, bytes from the network, and from Stores.

Several kinds, so that none starves another.  What somebody *asked* for is never dropped and always
answered: with its result, or with the error that kept it from being done, also when the runner
fails or is closed.  What was *offered* (the network's) is bounded, dropped and counted.  Of the
*latest* only the newest matters, and it is never dropped.  What is *fed* comes from Stores, in
order; whoever feeds waits until it is done, and so is asked for no more than there is room for.
Wishes, offers and what is fed take turns.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.core.counters import Counters
from engine.core.errors import ChatError
from engine.core.ids import MessageId
from engine.core.ports import StoreWrite
from engine.session.inputs import SessionInput

INBOX_SIZE = 2_000


@dataclass(frozen=True, slots=True)
class WriteForUser:
    """Make one write of the user's durable, in turn with everything else."""

    write: StoreWrite


@dataclass(frozen=True, slots=True)
class LookAtClock:
    """Handle nothing: the clock is looked at before each batch."""


JobInput: TypeAlias = SessionInput | WriteForUser | LookAtClock


@dataclass(slots=True, eq=False)
class Job:
    """``done`` is set for what was asked, and for the last of what was fed."""

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
    """Jobs of one conversation; made once, it outlives sessions that fail."""

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

    def __len__(self) -> int:
        return len(self._asked) + len(self._offered) + len(self._fed) + (self._latest is not None)

    @property
    def holds_only_fed(self) -> bool:
        return len(self) == len(self._fed) > 0

    # --- putting in -----------------------------------------------------------------------------

    async def ask(self, input_: JobInput) -> MessageId | None:
        """Wait for room, then for what comes of it."""
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
        if len(self._offered) >= INBOX_SIZE:
            self._counters.add("runner.inbox_full")
            return
        self._offered.append(Job(input_))
        self._wake.set()

    async def feed(self, inputs: Sequence[JobInput]) -> None:
        """In order; returns once all that came of it is durable, or raises why it is not."""
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

    def put(self, input_: JobInput) -> None:
        """What the session itself asked for: never dropped, and no more than it asked for."""
        if self._closed is None:
            self._asked.append(Job(input_))
            self._wake.set()

    def drop_put(self) -> None:
        """What a session asked for is of no use to the next one."""
        self._asked = deque(job for job in self._asked if job.done is not None)

    def offer_latest(self, input_: JobInput) -> None:
        """Replaces what was offered so before and not taken yet."""
        self._latest = Job(input_)
        self._wake.set()

    # --- taking out -----------------------------------------------------------------------------

    async def wait(self, timeout_s: float | None) -> None:
        """Until there is a job, or the time is over."""
        if len(self):
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()

    def take(self) -> Job | None:
        """The next job, if there is one."""
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

    # --- when it cannot be done -----------------------------------------------------------------

    def fail_taken(self, error: ChatError) -> None:
        """The session is thrown away: what it was given and has not answered has failed."""
        for job in self._taken:
            job.fail(error)
        self._taken.clear()
        for job in self._fed:  # What came before these is lost with it: all is fed again.
            job.fail(error)
        self._fed.clear()

    def fail_asked(self, error: ChatError) -> None:
        """Everything that was asked so far has failed; what comes now may do better."""
        self.fail_taken(error)
        for job in self._asked:
            job.fail(error)
        self._asked.clear()

    def close(self, error: ChatError) -> None:
        """There will be no session any more: whoever waits, or asks from now on, is told."""
        self._closed = error
        self.fail_asked(error)
        self._offered.clear()


async def _outcome(job: Job) -> MessageId | None:
    return await job.done if job.done is not None else None
