"""The port to Store nodes (13/WAKU2-STORE): one request, one outcome; which Stores are near.

Both roles of a device offer it, beside ``engine.network.transport``.  ``engine.core.history``
pages, merges and chooses the next Store; the runtime decides when.  A Store's fault is an outcome,
not an exception.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from engine.core.history.progress import StoreRef
from engine.core.history.queries import Ask, Outcome, StoreVersion
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs
from engine.core.problems import StoreProblem


class FoundStore(Struct, frozen=True, kw_only=True):
    """A connected peer that says it keeps messages for others.

    ``store`` names only the peer, so it stays the same wherever the peer listens.
    """

    store: StoreRef
    address: str
    versions: tuple[StoreVersion, ...]


class TestedStore(Struct, frozen=True, kw_only=True):
    """``problem``: why it cannot be used; None if it can."""

    problem: StoreProblem | None
    reachable: bool = False
    versions: tuple[StoreVersion, ...] = ()
    cluster: int | None = None
    round_trip_ms: int | None = None
    clock_ahead_ms: int | None = None
    oldest_ms: UnixMs | None = None


class StoreNetwork(Protocol):
    def pubsub_topic(self, content_topic: ContentTopic, /) -> PubsubTopic:
        """The pubsub topic that relays this content topic.  Raises LocalProtocolError."""

    def found(self) -> tuple[FoundStore, ...]:
        """Stores connected now, the best first."""

    def versions(self, store: StoreRef, /) -> tuple[StoreVersion, ...]:
        """The versions it named; none while it is not connected."""

    async def perform(self, ask: Ask, /) -> Outcome:
        """Dial if necessary, query, check the answer.  Never raises."""

    async def test(
        self, multiaddr: str, content_topics: Sequence[ContentTopic], /, *, timeout_s: float
    ) -> TestedStore:
        """Test whether this address can be used.  Raises ConfigError for a malformed address."""
