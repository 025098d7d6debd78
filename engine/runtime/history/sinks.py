"""Where a backfill delivers messages: a conversation's session, or the inbox.

Messages from Stores take the same path as live messages, which opens, checks and deduplicates them.
``take_in`` returns once all of them are durable, so the backfill fetches no more than can be
processed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from engine.core.history.queries import HistoryMessage
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.sds.inputs import HastenStoreQuery, StoreAnswered, StoresMissing
from engine.core.waku import WakuMessage
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.job_queue import JobInput  # noqa: TC001 - as a type, like the rest
from engine.session.inputs import MessageArrived, RetrieveKeptBack

LOOK_AGAIN_S: Final = 0.1


class Sink(Protocol):
    """Any method may raise StorageError, or LocalProtocolError if the conversation is gone."""

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        """Deliver messages, oldest first."""

    async def take_older(
        self, messages: Sequence[HistoryMessage], ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        """Deliver dependencies that are older than anything that was requested.

        They count as lost if the messages that depend on them are old as well.
        """

    async def answered(self, through_ms: UnixMs, /) -> None: ...

    async def missing(self, lacks: StoresMissing, /) -> None: ...

    async def reached_back(self) -> None:
        """A longer span than before was requested, and has been covered."""

    async def hasten(self) -> None:
        """Many messages wait for dependencies."""

    @property
    def waiting(self) -> int: ...

    @property
    def arrived(self) -> int: ...

    @property
    def oldest_ms(self) -> UnixMs | None: ...


def _arrived(item: HistoryMessage, *, if_wanted: MessageId | None = None) -> MessageArrived:
    return MessageArrived(item.message, item.message_hash, stored=True, if_wanted=if_wanted)


class RunnerSink:
    def __init__(self, runner: ConversationRunner) -> None:
        self._runner = runner

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        await self._runner.feed([_arrived(item) for item in messages])

    async def take_older(
        self, messages: Sequence[HistoryMessage], ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        inputs: list[JobInput] = []
        for item in messages:
            message_id = ids.get(item.message_hash)
            if message_id is None:
                inputs.append(_arrived(item))
            else:  # Not shown, unless the user asked for it after it was given up.
                kept_back = StoresMissing(message_ids=(message_id,), lacked=0, kept_back=True)
                inputs += [kept_back, _arrived(item, if_wanted=message_id)]
        await self._runner.feed(inputs)

    async def answered(self, through_ms: UnixMs, /) -> None:
        await self._runner.feed([StoreAnswered(through_ms=through_ms)])

    async def missing(self, lacks: StoresMissing, /) -> None:
        await self._runner.feed([lacks])

    async def reached_back(self) -> None:
        await self._runner.feed([RetrieveKeptBack()])

    async def hasten(self) -> None:
        await self._runner.feed([HastenStoreQuery()])

    @property
    def waiting(self) -> int:
        return self._runner.waiting

    @property
    def arrived(self) -> int:
        return self._runner.arrived

    @property
    def oldest_ms(self) -> UnixMs | None:
        return self._runner.oldest_ms


class ContactInbox(Protocol):
    """The inbox for requests to talk."""

    @property
    def is_full(self) -> bool: ...

    def on_message(self, message: WakuMessage, waku_hash: WakuHash, /) -> bool: ...


class InboxSink:
    """Delivers to the inbox, at the rate the inbox accepts."""

    waiting = 0
    arrived = 0
    oldest_ms: UnixMs | None = None

    def __init__(self, inbox: ContactInbox) -> None:
        self._inbox = inbox

    async def take_in(self, messages: Sequence[HistoryMessage], /) -> None:
        for item in messages:
            while self._inbox.is_full:  # noqa: ASYNC110 - it handles 50 a second, no more
                await asyncio.sleep(LOOK_AGAIN_S)
            self._inbox.on_message(item.message, item.message_hash)

    async def take_older(
        self, messages: Sequence[HistoryMessage], _ids: Mapping[WakuHash, MessageId], /
    ) -> None:
        await self.take_in(messages)

    async def answered(self, through_ms: UnixMs, /) -> None:
        """The inbox does not need it."""

    async def missing(self, lacks: StoresMissing, /) -> None:
        """The inbox looks up no hashes."""

    async def reached_back(self) -> None:
        """The inbox keeps nothing back."""

    async def hasten(self) -> None:
        """The inbox has no dependencies."""
