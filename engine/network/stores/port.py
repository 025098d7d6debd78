"""The port to Store nodes (13/WAKU2-STORE): one request, one outcome; which Stores are near.

Both roles of a device offer it, beside ``engine.network.transport``.  Paging, merging and whom to
ask next are ``engine.core.history``'s; when, is the runtime's.  A Store's fault is an outcome here
and no exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.core.history.queries import Ask, Outcome, StoreRef, StoreVersion
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStore:
    """A connected peer that says it keeps messages for others.

    ``store`` names the peer alone, so that it stays the same wherever it listens.
    """

    store: StoreRef
    address: str
    versions: tuple[StoreVersion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedStore:
    """``problem``: why it cannot be used, a sentence without capital and full stop."""

    problem: str
    reachable: bool = False
    versions: tuple[StoreVersion, ...] = ()
    cluster: int | None = None
    round_trip_ms: int | None = None
    clock_ahead_ms: int | None = None
    oldest_ms: UnixMs | None = None


class StoreNetwork(Protocol):
    def pubsub_topic(self, content_topic: ContentTopic, /) -> PubsubTopic:
        """Where messages of this topic are relayed.  Raises LocalProtocolError."""

    def found(self) -> tuple[FoundStore, ...]:
        """Connected now, the best first."""

    def versions(self, store: StoreRef, /) -> tuple[StoreVersion, ...]:
        """What it said that it speaks; none while it is not connected."""

    async def perform(self, ask: Ask, /) -> Outcome:
        """Dial if need be, ask, check the answer.  Never raises."""

    async def test(
        self, multiaddr: str, content_topics: Sequence[ContentTopic], /, *, timeout_s: float
    ) -> TestedStore:
        """Look whether this address can be used.  Raises ConfigError for no address."""
