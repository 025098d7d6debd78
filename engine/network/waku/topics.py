"""Content topics (23/WAKU2-TOPICS) and shards (51/WAKU2-RELAY-SHARDING).

A content topic says what a message is about, for applications.  A pubsub topic names the shard that
relays it.  Static sharding fixes the shard; autosharding derives it from the content topic's
application and version, so that one application uses one shard.  Callers ask ``Sharding`` for each
content topic and need not know how many shards there are.
"""

import hashlib
import re

from msgspec import Struct, field

from engine.core.errors import ConfigError, RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic

DEFAULT_CLUSTER_ID = 42
DEFAULT_SHARD_COUNT = 8
MAX_INDEX = 2**16 - 1

_CONTENT_TOPIC = re.compile(r"(?:/(\d{1,5}))?/([^/\s]+)/([^/\s]+)/([^/\s]+)/([^/\s]+)", re.ASCII)
_PUBSUB_TOPIC = re.compile(r"/waku/2/rs/(0|[1-9]\d{0,4})/(0|[1-9]\d{0,4})", re.ASCII)
_MAX_CHARACTERS = 256


class ContentTopicParts(Struct, frozen=True, kw_only=True):
    """``/{application}/{version}/{name}/{encoding}``, optionally preceded by a generation."""

    application: str
    version: str
    name: str
    encoding: str
    generation: int = 0


class Shard(Struct, frozen=True, kw_only=True):
    cluster_id: int
    shard: int

    @property
    def pubsub_topic(self) -> PubsubTopic:
        return PubsubTopic(f"/waku/2/rs/{self.cluster_id}/{self.shard}")


class Sharding(Struct, frozen=True, kw_only=True):
    """Maps content topics to shards.  ``static_shard`` overrides autosharding."""

    cluster_id: int = DEFAULT_CLUSTER_ID
    shard_count: int = DEFAULT_SHARD_COUNT
    static_shard: int | None = None
    placed: dict[ContentTopic, int] = field(default_factory=dict)
    """Shards of single content topics, as open channels name them; see ``place``."""

    def __post_init__(self) -> None:
        if not 0 <= self.cluster_id <= MAX_INDEX:
            raise ConfigError(f"cluster {self.cluster_id}: allowed are 0 to {MAX_INDEX}")
        if not 1 <= self.shard_count <= MAX_INDEX + 1:
            raise ConfigError(f"{self.shard_count} shards: allowed are 1 to {MAX_INDEX + 1}")
        if self.static_shard is not None and not 0 <= self.static_shard < self.shard_count:
            raise ConfigError(
                f"shard {self.static_shard}: allowed are 0 to {self.shard_count - 1} "
                f"in cluster {self.cluster_id}"
            )

    def pubsub_topic(self, content_topic: ContentTopic) -> PubsubTopic:
        """Raises RemoteProtocolError for a malformed content topic."""
        shard = self.placed.get(content_topic)
        if shard is None:
            shard = self.usual_shard(content_topic)
        return Shard(cluster_id=self.cluster_id, shard=shard).pubsub_topic

    def usual_shard(self, content_topic: ContentTopic) -> int:
        """Where it is unless it is placed.  Raises RemoteProtocolError as above."""
        parts = parse_content_topic(content_topic)
        if self.static_shard is not None:
            return self.static_shard
        return autoshard(parts, self.shard_count)

    def place(self, content_topic: ContentTopic, shard: int | None) -> None:
        """Fix one content topic's shard, for all that share this value; None: as for any other."""
        if shard is None:
            self.placed.pop(content_topic, None)
        elif 0 <= shard <= MAX_INDEX:
            self.placed[content_topic] = shard
        else:
            raise ConfigError(f"shard {shard}: allowed are 0 to {MAX_INDEX}")


def parse_content_topic(text: str) -> ContentTopicParts:
    """Raises RemoteProtocolError ``content_topic_malformed``.  Only generation 0 exists."""
    match = _CONTENT_TOPIC.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None or int(match[1] or 0) != 0:
        raise RemoteProtocolError("content_topic_malformed")
    return ContentTopicParts(
        application=match[2], version=match[3], name=match[4], encoding=match[5]
    )


def parse_pubsub_topic(text: str) -> Shard:
    """Raises RemoteProtocolError ``pubsub_topic_malformed``."""
    match = _PUBSUB_TOPIC.fullmatch(text)
    if match is None or max(int(match[1]), int(match[2])) > MAX_INDEX:
        raise RemoteProtocolError("pubsub_topic_malformed")
    return Shard(cluster_id=int(match[1]), shard=int(match[2]))


def autoshard(parts: ContentTopicParts, shard_count: int) -> int:
    digest = hashlib.sha256((parts.application + parts.version).encode()).digest()
    return int.from_bytes(digest[-8:], "big") % shard_count
