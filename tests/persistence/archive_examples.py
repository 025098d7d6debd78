"""An archive as a test has it, messages for it, and queries."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku_archive import (
    OURSELVES,
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Source,
)
from engine.core.waku_store import HistoryIndex
from engine.persistence.archive import Retention, SqliteArchive
from engine.persistence.archive_pages import ArchiveReader

NOW_NS = 1_800_000_000 * 10**9
SHARD = PubsubTopic("/waku/2/rs/42/0")
OTHER_SHARD = PubsubTopic("/waku/2/rs/42/1")
TOPIC = ContentTopic("/causerie/1/a/proto")
OTHER_TOPIC = ContentTopic("/causerie/1/b/proto")


class OpenArchive:
    """Writer and reader, on one thread."""

    def __init__(self, path: Path, retention: Retention | None = None) -> None:
        self.writer = SqliteArchive.open(path, retention)
        self.reader = ArchiveReader.open(path, clock_s=lambda: 0.0)

    def append(self, messages: Sequence[ArchivedMessage], *, now_ns: int = NOW_NS) -> Appended:
        return self.writer.append(messages, now_ns=now_ns)

    def retain(self, *, now_ns: int) -> int:
        return self.writer.retain(now_ns=now_ns)

    def query(self, asked: ArchiveQuery) -> ArchivePage:
        return self.reader.query(asked, deadline_s=1.0).page

    def ask_by_name(self, topic: ContentTopic, asker: Source = OURSELVES) -> None:
        """As somebody does who wants this topic; the writer is told."""
        found = self.reader.query(query(content_topics=(topic,)), deadline_s=1.0)
        self.writer.ask_for([(topic, asker) for topic in found.topics])

    def statistics(self) -> ArchiveStatistics:
        return self.writer.statistics()

    def close(self) -> None:
        self.reader.close()
        self.writer.close()


def archived(  # noqa: PLR0913 - a field each
    number: int,
    *,
    timestamp_ns: int = NOW_NS,
    pubsub_topic: PubsubTopic = SHARD,
    content_topic: ContentTopic = TOPIC,
    digest_of: bytes | None = None,
    size: int = 10,
    source: Source = OURSELVES,
) -> ArchivedMessage:
    name = b"%d " % number
    return ArchivedMessage(
        message_hash=WakuHash(hashlib.sha256(name).digest()),
        pubsub_topic=pubsub_topic,
        content_topic=content_topic,
        timestamp_ns=timestamp_ns,
        digest=hashlib.sha256(b"digest" + (name if digest_of is None else digest_of)).digest(),
        data=name.ljust(size, b"x"),
        source=source,
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
