"""Says what is known of a message, and how delivery goes.  Implements ``engine.api.Inspection``.

A look reads a few rows by their keys, on the storage thread; nothing is kept up for it, and nothing
is read while nobody looks.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from engine.core.errors import CommandError, CommandRefusal, LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position
from engine.core.records import ContactRecord
from engine.core.stored import StoredMessage
from engine.delivery_views import MOST_IN_PAGE, DeliveryPage
from engine.history_views import StoreView
from engine.inspection_views import Figures, MessageInspection, StoreReturned
from engine.live_views import PairDelivery
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.inspection.delivery import (
    Histories,
    LookingOn,
    channel_page,
    others_messages,
    pair_page,
    read_channel,
    read_pair,
)
from engine.runtime.inspection.figures import (
    LOOKED_AT,
    MOST_CONVERSATIONS,
    connection_figures,
    figures_of,
    store_figures,
)
from engine.runtime.inspection.reading import read_mvds, read_sds
from engine.runtime.inspection.views import Looking, channel_inspection, pair_inspection
from engine.runtime.inspection.watch import DeliveryWatch, read_records
from engine.runtime.maintenance import connection_view
from engine.runtime.runner_context import RunnerContext
from engine.session.pair.session import PairSession

CLAIMS_TOGETHER: Final = 32
"""Messages whose claims are looked up before other tasks of the loop run."""


class Inspection:
    """``engine.api.Inspection``."""

    def __init__(
        self,
        context: RunnerContext,
        conversations: Conversations,
        *,
        stores: Callable[[], Sequence[StoreView]],
        returned_by: Callable[[Iterable[bytes]], tuple[StoreReturned, ...]],
        counters: Callable[[], Mapping[str, int]],
    ) -> None:
        self._context = context
        self._conversations = conversations
        self._stores = stores
        self._returned_by = returned_by
        self._counters = counters
        self._histories = Histories()

    async def message(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> MessageInspection:
        runner, context = self._conversations.runner(conversation_id), self._context
        about = runner.record
        if isinstance(about, ContactRecord):
            facts = await context.storage.run(read_mvds, context.store, about, message_id)
            if facts is not None:
                return pair_inspection(self._looking(runner, message_id), about, facts)
        else:
            found = await context.storage.run(read_sds, context.store, about, message_id)
            if found is not None:
                return channel_inspection(self._looking(runner, message_id), about, found)
        raise CommandError(CommandRefusal.NO_MESSAGE)

    async def delivery(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = MOST_IN_PAGE,
    ) -> DeliveryPage:
        runner, context = self._conversations.runner(conversation_id), self._context
        about, limit = runner.record, max(1, min(limit, MOST_IN_PAGE))
        run, store = context.storage.run, context.store
        if isinstance(about, ContactRecord):
            found = await run(read_pair, store, about, before, limit)
            return pair_page(about, found, self._looking_on(runner, {}), is_newest=before is None)
        facts = await run(
            partial(
                read_channel,
                store,
                about,
                self._histories,
                context.own_id,
                before=before,
                limit=limit,
            )
        )
        ids = others_messages(facts, context.own_id)
        claimed: dict[MessageId, frozenset[ParticipantId]] = {}
        for start in range(0, len(ids), CLAIMS_TOGETHER):
            for message_id in ids[start : start + CLAIMS_TOGETHER]:
                claimed[message_id] = runner.claimed_by(message_id)
            await asyncio.sleep(0)
        return await run(channel_page, about, facts, self._looking_on(runner, claimed))

    def _looking_on(
        self,
        runner: ConversationRunner,
        claimed: Mapping[MessageId, frozenset[ParticipantId]],
    ) -> LookingOn:
        context = self._context
        return LookingOn(
            own_id=context.own_id,
            members=dict(runner.members),
            claimed=claimed,
            looked_ms=context.clock.steady_ms(),
        )

    def watch(self, conversation_id: ConversationId) -> DeliveryWatch:
        self._conversations.runner(conversation_id)
        return DeliveryWatch(self._context, conversation_id, self._conversations.runner)

    async def pair(self, conversation_id: ConversationId) -> PairDelivery:
        if not self._conversations.runner(conversation_id).is_pair:
            raise LocalProtocolError("only two people sync by MVDS")
        now_ms, context = self._context.clock.steady_ms(), self._context
        return await context.storage.run(read_records, context.store, conversation_id, now_ms)

    async def figures(self) -> Figures:
        views = await self._conversations.views()
        now_ms = self._context.clock.steady_ms()
        found = []
        for view in views[:MOST_CONVERSATIONS]:
            if view.conversation_id in self._conversations:  # It may have been removed meanwhile.
                gap = self._conversations.runner(view.conversation_id).gap()
                rows = await self._newest(view.conversation_id)
                found.append(figures_of(view, rows, gap, now_ms=now_ms))
        return Figures(
            at_ms=now_ms,
            connection=connection_figures(connection_view(self._context.transport.status())),
            conversations=tuple(found),
            more_conversations=max(len(views) - MOST_CONVERSATIONS, 0),
            stores=tuple(map(store_figures, self._stores())),
            counters=dict(self._counters()),
        )

    async def _newest(self, conversation_id: ConversationId) -> Sequence[StoredMessage]:
        run, store = self._context.storage.run, self._context.store
        return (await run(store.latest_page, conversation_id, limit=LOOKED_AT)).messages

    def _looking(self, runner: ConversationRunner, message_id: MessageId) -> Looking:
        context, session = self._context, runner.session
        since_ms = session.forward_secret_since if isinstance(session, PairSession) else None
        return Looking(
            olm_since_ms=since_ms,
            clock_offset_ms=context.clock.offset_ms(),
            message_id=message_id,
            own_id=context.own_id,
            members=runner.members,
            claimed=runner.claimed_by(message_id),
            copies=context.copies,
            shown=context.files.shown,
            looked_ms=context.clock.steady_ms(),
            returned_by=self._returned_by,
        )
