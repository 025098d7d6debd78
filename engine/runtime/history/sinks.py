"""Where messages from Stores go: into a conversation's session, or to the inbox of strangers.

Everything takes the way of live messages: opened, checked and known again there.  ``take_in``
returns once all of it is durable, so that nobody asks for more than can be worked off.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Generic, Protocol

from engine.core.history.queries import HistoryMessage
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.sds.inputs import StoresMissing
from engine.core.waku import WakuMessage
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.job_queue import S, Work
from engine.session.transitions import SessionTransition

NOTHING: Final = SessionTransition()
LOOK_AGAIN_S: Final = 0.1


class Sink(Protocol):
    """Every method may raise StorageError, and LocalProtocolError once there is no conversation."""

    def expect(self, messages: Sequence[HistoryMessage], /) -> None:
        """They came from a Store and will be taken in soon, unless they are known."""

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        """Oldest first."""

    async def take_older(
        self, messages: Sequence[HistoryMessage], ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        """What was looked up for others that depend on it, and is from before all we want to see.

        It counts as lost where the others are old as well.
        """

    async def answered(self, through_ms: UnixMs, /) -> None: ...

    async def missing(self, lacks: StoresMissing, /) -> None: ...

    async def reached_back(self) -> None:
        """More is wanted than before, and all of it was asked for."""

    async def hasten(self) -> None:
        """Much waits."""

    @property
    def waiting(self) -> int: ...

    @property
    def arrived(self) -> int: ...

    @property
    def oldest_ms(self) -> UnixMs | None: ...


def _receive(item: HistoryMessage, session: S, now_ms: UnixMs) -> SessionTransition:
    return session.receive(item.message, item.message_hash, now_ms=now_ms, stored=True)


def _missing(lacks: StoresMissing, session: S, now_ms: UnixMs) -> SessionTransition:
    return session.stores_missing(lacks, now_ms=now_ms)


def _keep_back(message_id: MessageId, session: S, now_ms: UnixMs) -> SessionTransition:
    """Nobody wants to see it, unless they asked for it after it was given up."""
    kept_back = StoresMissing(message_ids=(message_id,), lacked=0, kept_back=True)
    return session.stores_missing(kept_back, now_ms=now_ms)


def _receive_if_wanted(
    item: HistoryMessage, message_id: MessageId, session: S, now_ms: UnixMs
) -> SessionTransition:
    return _receive(item, session, now_ms) if session.wants(message_id) else NOTHING


class RunnerSink(Generic[S]):
    def __init__(self, runner: ConversationRunner[S]) -> None:
        self._runner = runner

    def expect(self, messages: Sequence[HistoryMessage], /) -> None:
        self._runner.expect(messages)

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        self._runner.begins(messages)
        await self._runner.feed([partial(_receive, item) for item in messages])

    async def take_older(
        self, messages: Sequence[HistoryMessage], ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        self._runner.begins(messages)
        works: list[Work[S]] = []
        for item in messages:
            message_id = ids.get(item.message_hash)
            if message_id is None:
                works.append(partial(_receive, item))
            else:
                works.append(partial(_keep_back, message_id))
                works.append(partial(_receive_if_wanted, item, message_id))
        await self._runner.feed(works)

    async def answered(self, through_ms: UnixMs, /) -> None:
        await self._runner.feed(
            [lambda session, now_ms: session.stores_answered(through_ms=through_ms, now_ms=now_ms)]
        )

    async def missing(self, lacks: StoresMissing, /) -> None:
        await self._runner.feed([partial(_missing, lacks)])

    async def reached_back(self) -> None:
        await self._runner.feed([lambda session, now_ms: session.retrieve_kept_back(now_ms=now_ms)])

    async def hasten(self) -> None:
        await self._runner.feed([lambda session, now_ms: session.hasten_stores(now_ms=now_ms)])

    @property
    def waiting(self) -> int:
        return self._runner.waiting

    @property
    def arrived(self) -> int:
        return self._runner.arrived

    @property
    def oldest_ms(self) -> UnixMs | None:
        return self._runner.oldest_ms


class JobQueue(Protocol):
    """Of strangers."""

    @property
    def is_full(self) -> bool: ...

    def on_message(self, message: WakuMessage, waku_hash: WakuHash, /) -> bool: ...


class InboxSink:
    """At the inbox's own pace."""

    waiting = 0
    arrived = 0
    oldest_ms: UnixMs | None = None

    def __init__(self, inbox: JobQueue) -> None:
        self._jobs = inbox

    def expect(self, messages: Sequence[HistoryMessage], /) -> None:
        """Nothing is done beforehand."""

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        for item in messages:
            while self._jobs.is_full:  # noqa: ASYNC110 - it works off 50 a second, no more
                await asyncio.sleep(LOOK_AGAIN_S)
            self._jobs.on_message(item.message, item.message_hash)

    async def take_older(
        self, messages: Sequence[HistoryMessage], _ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        await self.take_in(messages)

    async def answered(self, through_ms: UnixMs, /) -> None:
        """Nobody waits for that."""

    async def missing(self, lacks: StoresMissing, /) -> None:
        """Nothing is asked for by name."""

    async def reached_back(self) -> None:
        """Nothing was kept back."""

    async def hasten(self) -> None:
        """Nothing waits."""
