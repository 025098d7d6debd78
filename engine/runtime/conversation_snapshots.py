"""Passes the state of whole conversations to the delivery recorder.

It does so when recording starts, every 5 minutes, on request, and at the end.  Earlier messages and
the final order cannot be derived from events alone; those are reported by runners
(``engine.runtime.recorded_queries``).  It also tells the user when the recorder cannot write.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
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
from engine.runtime.recorded_queries import which_is
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
    """Records the state of all conversations of a profile."""

    def __init__(self, recorder: Recorder, conversations: Conversations) -> None:
        self._recorder = recorder
        self._conversations = conversations
        self._online: bool | None = None
        self._last: Sequence[ConversationRunner] = ()

    def begin(self, own_id: ParticipantId, publish: Callable[[EngineEvent], None]) -> None:
        """Start recording."""
        loop = asyncio.get_running_loop()

        def heard(is_failing: bool) -> None:
            notice = self._notice() if is_failing else NoticeCleared(key=NOTICE)
            with suppress(RuntimeError):  # The loop has ended, and nobody looks any more.
                loop.call_soon_threadsafe(publish, notice)

        self._recorder.begin(own_id, on_failing=heard)

    def greet(self, listener: Listener) -> None:
        """Tell one that came later, such as a window, what stands."""
        if self._recorder.is_failing:
            # Once it is whole: a window's parts are not there yet when it begins to listen.
            asyncio.get_running_loop().call_soon(listener, self._notice())

    def _notice(self) -> NoticeRaised:
        content = RecordingStopped(directory=str(self._recorder.directory))
        return NoticeRaised(key=NOTICE, level=NoticeLevel.WARNING, content=content)

    def status_changed(self, status: TransportStatus, *, online: bool) -> None:
        changed, self._online = online != self._online, online
        self._recorder.network(
            online=online if changed else None, edge=status.role is TransportRole.EDGE
        )

    async def run(self, context: RunnerContext) -> None:
        """Record existing messages first, then snapshots, until cancelled."""
        try:
            for runner in self._runners():
                logged = await self._logged(runner, context)
                self._recorder.before(which_is(runner.record), logged)
        except ChatError as error:
            logger.warning("what was before is not recorded", extra={"error": type(error).__name__})
        else:
            self._recorder.before_ends()
        loop_s = asyncio.get_running_loop().time
        due_s = loop_s() + SNAPSHOT_EVERY_MS / 1000
        while True:
            await asyncio.sleep(LOOK_EVERY_MS / 1000)
            if self._recorder.is_failing:
                await asyncio.to_thread(self._recorder.flush)
            wanted = await asyncio.to_thread(self._recorder.wanted)
            if wanted or loop_s() >= due_s:
                due_s = loop_s() + SNAPSHOT_EVERY_MS / 1000
                dropped = self._recorder.dropped
                await self.snapshot(context)
                if wanted:
                    answer = partial(self._recorder.answer, wanted, dropped=dropped)
                    await asyncio.to_thread(answer)

    def stopping(self) -> None:
        """Remember the conversations, which are about to be stopped."""
        self._last = self._runners()

    async def stop(self, context: RunnerContext | None) -> None:
        """Record the final state and close the recorder."""
        if context is not None:
            await self._snapshot(self._last, context)
        if not await asyncio.to_thread(self._recorder.close):
            logger.warning("the end is not recorded")

    async def snapshot(self, context: RunnerContext) -> None:
        """Record the state of each conversation, except those removed during the snapshot."""
        await self._snapshot(self._runners(), context)

    async def _snapshot(
        self, runners: Sequence[ConversationRunner], context: RunnerContext
    ) -> None:
        for runner in runners:
            try:
                logged = await self._logged(runner, context)
            except ChatError as error:
                logger.warning("no snapshot", extra={"error": type(error).__name__})
                continue
            members = tuple(runner.members.values())
            self._recorder.snapshot(which_is(runner.record), logged, members)

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
