"""Asks Stores of 2.0.0-beta4, now and then, when they took in a message that we heard live.

One page of one message, whose cursor holds that time; there is none while nothing follows, and then
another message is tried next time.  Version 3 of the protocol does not tell it.
"""

from collections.abc import Sequence
from typing import Final

from engine.core.history.types import Ask, Candidate, Page, StoreVersion
from engine.core.types import ContentTopic
from engine.core.waku_store import HistoryIndex, HistoryQuery
from engine.network.stores.port import StoreNetwork
from engine.runtime.history.clock_check import ClockCheck

HEARD_BEFORE_MS: Final = 20_000
"""By then a Store has it, and something may have followed."""
STORES_ASKED: Final = 3
PATIENCE_MS: Final = 10_000


async def ask_for_times(
    network: StoreNetwork,
    clock: ClockCheck,
    candidates: Sequence[Candidate],
    topics: Sequence[ContentTopic],
    *,
    heard_before_ms: int = HEARD_BEFORE_MS,
) -> None:
    """``topics``: on one pubsub topic, as many as a query may have."""
    at_ns = clock.heard_at(least_ms=heard_before_ms)
    able = [one.store for one in candidates if StoreVersion.V2 in one.versions]
    if at_ns is None or not topics:
        return
    query = HistoryQuery(
        request_id="times",
        pubsub_topic=network.pubsub_topic(topics[0]),
        content_topics=tuple(topics),
        page_size=1,
        forward=True,
        start_time_ns=at_ns,
    )
    for store in able[:STORES_ASKED]:
        ask = Ask(
            ask_id=0,
            store=store,
            request=query,
            first_byte_timeout_ms=PATIENCE_MS,
            timeout_ms=PATIENCE_MS,
        )
        outcome = await network.perform(ask)
        if isinstance(outcome, Page) and isinstance(outcome.cursor, HistoryIndex):
            clock.hear_store(store, outcome.cursor)
