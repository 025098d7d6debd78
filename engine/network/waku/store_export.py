"""All that a Store holds between two times, page after page: for an operator's export.

Forward, so that what comes meanwhile is found at the end.  The Store may answer slowly, in an
endless circle, or with the same again: pages, waits and pages without anything new are bounded, and
a message is given once.  Merging several Stores and judging them by each other is not done here.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engine.core.errors import TransportError
from engine.core.types import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku_store import MAX_PAGE_MESSAGES, StoreQueryRequest
from engine.network.libp2p.ports import PeerId
from engine.network.waku.store_client import StoredMessage, StorePage

MAX_PAGES: Final = 100_000
MAX_OLD_PAGES: Final = 3
PAGE_WITHIN_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportQuery:
    """Inclusive times; no topics: all.  A Store wants content topics with their pubsub topic."""

    pubsub_topic: PubsubTopic | None = None
    content_topics: tuple[ContentTopic, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None


class AsksStores(Protocol):
    """As ``StoreClient`` does."""

    async def query(self, peer_id: PeerId, request: StoreQueryRequest, /) -> StorePage: ...


async def stored_messages(
    client: AsksStores,
    peer_id: PeerId,
    query: ExportQuery,
    *,
    max_pages: int = MAX_PAGES,
    page_within_s: float = PAGE_WITHIN_S,
) -> AsyncIterator[list[StoredMessage]]:
    """A page at a time.  Raises TransportError, also half-way, with the reason in words."""
    seen: set[WakuHash] = set()
    request = StoreQueryRequest(
        request_id="",
        include_data=True,
        pubsub_topic=query.pubsub_topic,
        content_topics=query.content_topics,
        time_start_ns=query.since_ns,
        time_end_ns=query.until_ns,
        pagination_forward=True,
        pagination_limit=MAX_PAGE_MESSAGES,
    )
    old_pages = 0
    for number in range(max_pages):
        asked = replace(request, request_id=f"export-{number}")
        try:
            async with asyncio.timeout(page_within_s):
                page = await client.query(peer_id, asked)
        except TimeoutError:
            raise TransportError(f"no answer within {page_within_s:.0f} s") from None
        if not page.succeeded:
            raise TransportError(f"the Store refused with status {page.status_code}")
        new = [one for one in page.messages if one.message_hash not in seen]
        seen.update(one.message_hash for one in new)
        if new:
            yield new
        old_pages = 0 if new else old_pages + 1
        if page.cursor is None:
            return
        if old_pages == MAX_OLD_PAGES:
            raise TransportError(f"the Store gave nothing new for {old_pages} pages")
        request = replace(request, pagination_cursor=page.cursor)
    raise TransportError(f"the Store has no end after {max_pages} pages")
