"""The running conversations: a supervised runner for each group, open channel and pair.

It starts and stops them, finds them, and notifies all of them of changes.  Callers that wait when
one stops get an error.  What happens inside a conversation is handled in its session.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from engine.core.counters import Counters
from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    StorageError,
    StorageFault,
)
from engine.core.ids import ContentTopic, ConversationId
from engine.events import ConversationView, EngineEvent
from engine.network.transport import Transport
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.supervisor import keep_running

CLOSING = "the profile is being closed"


class HistoryFetcher(Protocol):
    """The backfills of conversations; implemented by the history service."""

    def begin(self, runner: ConversationRunner, content_topic: ContentTopic, /) -> None: ...

    async def end(self, conversation_id: ConversationId, /) -> None:
        """Stop the backfill; returns once none of its tasks run."""


@dataclass(slots=True)
class _Running:
    """One running conversation."""

    runner: ConversationRunner
    task: asyncio.Task[None]
    unsubscribe: Callable[[], None]


class Conversations:
    def __init__(self, *, publish: Callable[[EngineEvent], None], counters: Counters) -> None:
        self._publish = publish
        self._counters = counters
        self._groups: dict[ConversationId, _Running] = {}
        self._channels: dict[ConversationId, _Running] = {}
        """The open ones."""
        self._pairs: dict[ConversationId, _Running] = {}
        self._stopped = False
        self.history: HistoryFetcher | None = None
        """Set before the first conversation starts."""
        self.turn = asyncio.Lock()
        """Held while an identity is created or changed, or a conversation is added or removed: one
        at a time, so that checks hold until the work is done."""

    # --- starting and stopping ----------------------------------------------------------------

    def run_group(self, runner: ConversationRunner, topic: ContentTopic, net: Transport) -> None:
        self._groups[runner.conversation_id] = self._up(runner, topic, net)

    def run_channel(
        self, runner: ConversationRunner, topic: ContentTopic, net: Transport, *, served: bool
    ) -> None:
        """``served``: the channel is on the cluster of our node; else nothing of it is fetched."""
        running = self._up(runner, topic, net, fetches=served)
        self._channels[runner.conversation_id] = running

    def run_pair(self, runner: ConversationRunner, topic: ContentTopic, net: Transport) -> None:
        self._pairs[runner.conversation_id] = self._up(runner, topic, net)

    def _up(
        self,
        runner: ConversationRunner,
        topic: ContentTopic,
        net: Transport,
        *,
        fetches: bool = True,
    ) -> _Running:
        if self._stopped:
            raise StorageError(CLOSING, StorageFault.CLOSING)
        keep = partial(keep_running, "conversation", runner.load, runner.run)
        task = asyncio.create_task(keep(publish=self._publish, counters=self._counters))
        unsubscribe = net.subscribe(topic, runner.on_message)
        if self.history is not None and fetches:
            self.history.begin(runner, topic)
        return _Running(runner=runner, task=task, unsubscribe=unsubscribe)

    async def end(self, conversation_id: ConversationId) -> None:
        """Stop one conversation; returns once none of its tasks run."""
        kinds = (self._groups, self._channels, self._pairs)
        found = (kind.pop(conversation_id, None) for kind in kinds)
        one = next(filter(None, found), None)
        if self.history is not None:
            await self.history.end(conversation_id)
        if one is not None:
            self._close(one, CommandError(CommandRefusal.NO_CONVERSATION))
            await asyncio.gather(one.task, return_exceptions=True)

    async def stop(self) -> None:
        """Stop all conversations for good."""
        self._stopped = True
        running = list(self._all())
        self._groups.clear()
        self._channels.clear()
        self._pairs.clear()
        for one in running:
            self._close(one, StorageError(CLOSING, StorageFault.CLOSING))
        await asyncio.gather(*(one.task for one in running), return_exceptions=True)

    def _close(self, one: _Running, reason: ChatError) -> None:
        one.unsubscribe()
        one.task.cancel()
        one.runner.close(reason)

    # --- finding ------------------------------------------------------------------------------

    def __contains__(self, conversation_id: ConversationId) -> bool:
        return any(conversation_id in kind for kind in (self._groups, self._channels, self._pairs))

    def runner(self, conversation_id: ConversationId) -> ConversationRunner:
        """The runner of a conversation.  Raises LocalProtocolError if there is none."""
        kinds = (self._groups, self._channels, self._pairs)
        one = next(filter(None, (kind.get(conversation_id) for kind in kinds)), None)
        if one is None:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        return one.runner

    def group(self, conversation_id: ConversationId) -> ConversationRunner:
        """The runner of a group.  Raises LocalProtocolError if there is none, or for a pair."""
        if conversation_id not in self._groups:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        return self._groups[conversation_id].runner

    def channel(self, conversation_id: ConversationId) -> ConversationRunner:
        """The runner of an open channel.  Raises LocalProtocolError if it is none."""
        if conversation_id not in self._channels:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        return self._channels[conversation_id].runner

    def pair(self, conversation_id: ConversationId) -> ConversationRunner:
        """The runner of a pair.  Raises LocalProtocolError if there is none, or for a group."""
        if conversation_id not in self._pairs:
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        return self._pairs[conversation_id].runner

    def groups(self) -> Sequence[ConversationRunner]:
        return tuple(one.runner for one in self._groups.values())

    def channels(self) -> Sequence[ConversationRunner]:
        return tuple(one.runner for one in self._channels.values())

    def pairs(self) -> Sequence[ConversationRunner]:
        return tuple(one.runner for one in self._pairs.values())

    def runners(self) -> Iterator[ConversationRunner]:
        return (one.runner for one in self._all())

    def _all(self) -> Iterator[_Running]:
        yield from tuple(self._groups.values())
        yield from tuple(self._channels.values())
        yield from tuple(self._pairs.values())

    # --- all of them --------------------------------------------------------------------------

    def connectivity_changed(self, *, online: bool) -> None:
        for one in self._all():
            one.runner.connectivity_changed(online=online)

    def clock_moved(self) -> None:
        for one in self._all():
            one.runner.clock_moved()

    async def loaded(self) -> None:
        """Wait until each has its session, or loading it first failed."""
        for one in self._all():
            await one.runner.ready()

    async def views(self) -> Sequence[ConversationView]:
        """The rows of the conversation list, most recent activity first."""
        views = []
        for one in self._all():
            await one.runner.shown()
            view = one.runner.view()
            if view is not None:
                views.append(view)
        return sorted(views, key=lambda view: view.last_said_ms, reverse=True)
