"""Messages for archives, and what an archive should answer, found the slow way."""

import hashlib

from engine.core.types import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku_archive import ArchivedMessage, ArchiveQuery
from engine.core.waku_store import HistoryIndex

NOW_NS = 1_800_000_000 * 10**9
SHARD = PubsubTopic("/waku/2/rs/42/0")
OTHER_SHARD = PubsubTopic("/waku/2/rs/42/1")
TOPIC = ContentTopic("/causerie/1/a/proto")
OTHER_TOPIC = ContentTopic("/causerie/1/b/proto")


def archived(  # noqa: PLR0913 - a field each
    number: int,
    *,
    timestamp_ns: int = NOW_NS,
    pubsub_topic: PubsubTopic = SHARD,
    content_topic: ContentTopic = TOPIC,
    digest_of: bytes | None = None,
    size: int = 10,
) -> ArchivedMessage:
    name = b"%d " % number
    return ArchivedMessage(
        message_hash=WakuHash(hashlib.sha256(name).digest()),
        pubsub_topic=pubsub_topic,
        content_topic=content_topic,
        timestamp_ns=timestamp_ns,
        digest=hashlib.sha256(b"digest" + (name if digest_of is None else digest_of)).digest(),
        data=name.ljust(size, b"x"),
    )


def query(  # noqa: PLR0913 - a field each
    *,
    cursor: WakuHash | HistoryIndex | None = None,
    by_digest: bool = False,
    forward: bool = True,
    limit: int = 20,
    max_bytes: int = 1_000_000,
    pubsub_topic: PubsubTopic | None = None,
    content_topics: tuple[ContentTopic, ...] = (),
    time_start_ns: int | None = None,
    time_end_ns: int | None = None,
    message_hashes: tuple[WakuHash, ...] = (),
) -> ArchiveQuery:
    return ArchiveQuery(
        cursor=cursor,
        by_digest=by_digest,
        forward=forward,
        limit=limit,
        max_bytes=max_bytes,
        pubsub_topic=pubsub_topic,
        content_topics=content_topics,
        time_start_ns=time_start_ns,
        time_end_ns=time_end_ns,
        message_hashes=message_hashes,
    )
