"""Passes the state of whole conversations to the delivery recorder.

It does so when recording begins, every 5 minutes, on request, and at the end.  Earlier messages and
the final order cannot be derived from events alone; those are reported by runners
(``engine.runtime.recorded_queries``).  Recording may begin and end while the program runs.  It also
tells the user when the recorder cannot write.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from engine.core.errors import ChatError
from engine.core.ids import ParticipantId
from engine.core.records import LoggedMessage
from engine.delivery.recorder import Recorder
from engine.events import (
    EngineEvent,
    Listener,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
    RecordingStopped,
)
from engine.network.transport import TransportRole, TransportStatus
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.recorded_queries import Recording, which_is
from engine.runtime.runner_context import RunnerContext

if TYPE_CHECKING:
    from engine.core.ids import Position

SNAPSHOT_EVERY_MS = 300_000
LOOK_EVERY_MS = 1_000
"""How often to check for snapshot requests, and whether a disk that refused takes rows again."""
NOTICE = "recording"
PAGE = 5_000

logger = logging.getLogger(__name__)


class ConversationSnapshots:
    """Records the state of all conversations of a profile, while somebody records."""

    def __init__(
        self,
        recording: Recording,
        conversations: Conversations,
        *,
        publish: Callable[[EngineEvent], None],
        own: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
    ) -> None:
        """``own`` runs a task until the engine ends."""
        self._recording = recording
        self._conversations = conversations
        self._publish = publish
        self._own = own
        self._own_id: ParticipantId | None = None
        self._context: RunnerContext | None = None
        self._online: bool | None = None
        self._is_edge = False
        self._last: Sequence[ConversationRunner] | None = None
        self._running: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    # --- beginning and ending -----------------------------------------------------------------

    def know_owner(self, own_id: ParticipantId) -> None:
        """Whose log it is; recording begins now if it is wanted."""
        self._own_id = own_id
        self._begin()

    def run(self, context: RunnerContext) -> None:
        """The conversations are there."""
        self._context = context
        self._go_on()

    async def switch(self, recorder: Recorder | None) -> None:
        """Another recorder from now on, or none.  Waits for what was recorded before."""
        async with self._turn:
            if recorder is self._recording.recorder or self._last is not None:
                return
            await self._end(self._runners())
            self._recording.recorder = recorder
            if self._own_id is not None:
                self._begin()
                self._go_on()

    def stopping(self) -> None:
        """Remember the conversations, which are about to be stopped."""
        self._last = self._runners()

    async def stop(self) -> None:
        """Record the final state and close the recorder."""
        async with self._turn:
            await self._end(self._last or ())

    def _begin(self) -> None:
        recorder = self._recording.recorder
        if recorder is None or self._own_id is None:
            return
        loop = asyncio.get_running_loop()

        def heard(is_failing: bool) -> None:
            notice = self._notice(recorder) if is_failing else NoticeCleared(key=NOTICE)
            with suppress(RuntimeError):  # The loop has ended, and nobody looks any more.
                loop.call_soon_threadsafe(self._publish, notice)

        recorder.begin(self._own_id, on_failing=heard)
        if self._online is not None:
            recorder.network(online=self._online, edge=self._is_edge)

    def _go_on(self) -> None:
        recorder, context = self._recording.recorder, self._context
        if recorder is not None and context is not None:
            self._running = self._own(self._keep_recording(recorder, context))

    async def _end(self, runners: Sequence[ConversationRunner]) -> None:
        recorder, context, running = self._recording.recorder, self._context, self._running
        self._running = None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        if recorder is None:
            return
        if context is not None:
            await self._snapshot(recorder, runners, context)
        self._recording.recorder = None
        if not await asyncio.to_thread(recorder.close):
            logger.warning("the end is not recorded")
        if recorder.is_failing:
            self._publish(NoticeCleared(key=NOTICE))

    # --- while it goes on ---------------------------------------------------------------------

    def greet(self, listener: Listener) -> None:
        """Tell one that came later, such as a window, what stands."""
        recorder = self._recording.recorder
        if recorder is not None and recorder.is_failing:
            # Once it is whole: a window's parts are not there yet when it begins to listen.
            asyncio.get_running_loop().call_soon(listener, self._notice(recorder))

    @staticmethod
    def _notice(recorder: Recorder) -> NoticeRaised:
        content = RecordingStopped(directory=str(recorder.directory))
        return NoticeRaised(key=NOTICE, level=NoticeLevel.WARNING, content=content)

    def status_changed(self, status: TransportStatus, *, online: bool) -> None:
        changed, self._online = online != self._online, online
        self._is_edge = status.role is TransportRole.EDGE
        recorder = self._recording.recorder
        if recorder is not None:
            recorder.network(online=online if changed else None, edge=self._is_edge)

    async def _keep_recording(self, recorder: Recorder, context: RunnerContext) -> None:
        """Record existing messages first, then snapshots, until cancelled."""
        try:
            for runner in self._runners():
                logged = await self._logged(runner, context)
                recorder.before(which_is(runner.record), logged)
        except ChatError as error:
            logger.warning("what was before is not recorded", extra={"error": type(error).__name__})
        else:
            recorder.before_ends()
        loop_s = asyncio.get_running_loop().time
        due_s = loop_s() + SNAPSHOT_EVERY_MS / 1000
        while True:
            await asyncio.sleep(LOOK_EVERY_MS / 1000)
            if recorder.is_failing:
                await asyncio.to_thread(recorder.flush)
            wanted = await asyncio.to_thread(recorder.wanted)
            if wanted or loop_s() >= due_s:
                due_s = loop_s() + SNAPSHOT_EVERY_MS / 1000
                dropped = recorder.dropped
                await self._snapshot(recorder, self._runners(), context)
                if wanted:
                    answer = partial(recorder.answer, wanted, dropped=dropped)
                    await asyncio.to_thread(answer)

    async def _snapshot(
        self, recorder: Recorder, runners: Sequence[ConversationRunner], context: RunnerContext
    ) -> None:
        """Record the state of each conversation, except those removed meanwhile."""
        for runner in runners:
            try:
                logged = await self._logged(runner, context)
            except ChatError as error:
                logger.warning("no snapshot", extra={"error": type(error).__name__})
                continue
            members = tuple(runner.members.values())
            recorder.snapshot(which_is(runner.record), logged, members)

    def _runners(self) -> Sequence[ConversationRunner]:
        conversations = self._conversations
        return (*conversations.groups(), *conversations.channels(), *conversations.pairs())

    @staticmethod
    async def _logged(runner: ConversationRunner, context: RunnerContext) -> list[LoggedMessage]:
        logged: list[LoggedMessage] = []
        after: Position | None = None
        while True:
            page = await context.storage.run(
                context.store.logged, runner.conversation_id, after, limit=PAGE
            )
            logged += page
            if len(page) < PAGE:
                return logged
            after = page[-1].position
