"""All that one Store holds of a window, page after page: for an operator's export.

Paged by the machine that fills conversations (``engine.core.history``), with this one Store: both
versions of the protocol, lost cursors, refusals, pages too large, and every bound on a Store that
never ends or never says anything new.  What it refuses to know: what is made of the messages.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from random import SystemRandom
from typing import Final

from msgspec.structs import replace

from chat_app.compose import unix_now_ms
from engine.core.errors import TransportError
from engine.core.history.config import HistoryConfig
from engine.core.history.merging import StoresQuery
from engine.core.history.queries import (
    Answered,
    Ask,
    Candidate,
    DeadlineReached,
    End,
    Fetched,
    HistoryMessage,
    HistoryTransition,
    Outcome,
    QueryEnded,
    Window,
)
from engine.core.problems import QueryFailed
from ui.problem_words import store_problem_words

LONGEST_MS: Final = 24 * 3_600_000
PATIENT: Final = replace(HistoryConfig(), max_pages=100_000, query_timeout_ms=LONGEST_MS)
"""Nobody waits at a window; the whole may take a day."""
NEEDS_TOPICS: Final = "it speaks 2.0.0-beta4 alone, which cannot be asked for everything: --topics"


@dataclass(slots=True)
class StoreExport:
    """``left_out``: entries that could not be used."""

    store: Candidate
    perform: Callable[[Ask], Awaitable[Outcome]]
    config: HistoryConfig = PATIENT
    left_out: int = 0

    async def messages(self, window: Window) -> AsyncIterator[tuple[HistoryMessage, ...]]:
        """Each once, oldest first as far as the Store keeps to that.

        Raises TransportError, also half-way, with the reason in words.
        """
        query = StoresQuery(
            1,
            window,
            [self.store],
            config=self.config,
            random_unit=SystemRandom().random,
            ask_ids=count(1),
        )
        step = query.begin(unix_now_ms())
        while True:
            for event in step.events:
                if isinstance(event, Fetched):
                    yield event.messages
                elif isinstance(event, QueryEnded):
                    self._judge(event)
            if query.ended is not None:
                return
            step = await self._next(query, step)

    async def _next(self, query: StoresQuery, step: HistoryTransition) -> HistoryTransition:
        """One Store is asked for one page at a time."""
        for ask in step.asks:
            outcome = await self.perform(ask)
            return query.handle(Answered(ask.ask_id, outcome), now_ms=unix_now_ms())
        due_ms = query.next_deadline()
        if due_ms is not None:
            await asyncio.sleep(max(due_ms - unix_now_ms(), 0) / 1_000)
        return query.handle(DeadlineReached(), now_ms=unix_now_ms())

    def _judge(self, ended: QueryEnded) -> None:
        self.left_out += sum(note.statistics.refused for note in ended.notes)
        if ended.end is End.CANNOT:
            raise TransportError(NEEDS_TOPICS)
        if ended.end is not End.COMPLETE:
            raise TransportError(store_problem_words(QueryFailed(ended.end, ended.reason)))
