"""The services of a node besides relaying: metadata always, the others as configured.

Every message that the node learns of, relayed, pushed or its own, passes here once, byte for byte,
on its way to filter subscribers and the archive.  A message that came by lightpush is relayed, and
delivered to the node's own subscribers like any other.  A light node may push one message to
several service nodes, so a message that already came by gossip is not relayed again.

A service that is off is not imported: the node in the desktop offers metadata and chunks of files,
maybe a Store, and the window should not wait for the rest.

Each service implements its own protocol; messages are opaque here.
"""

# ruff: noqa: PLC0415 - see above

import asyncio
import hashlib
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.codec.waku_metadata import Metadata
from engine.core.counters import Counters
from engine.core.errors import ConfigError
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.core.waku_archive import OURSELVES, ArchivePage, ArchiveQuery, Source
from engine.network.libp2p.ports import Host, PeerId
from engine.network.waku.gossip.cache import SeenCache
from engine.network.waku.metadata import MetadataObserver, WakuMetadata
from engine.network.waku.relay.relay import WakuRelay
from engine.network.waku.sources import Sources
from engine.network.waku.topics import Sharding, parse_pubsub_topic

if TYPE_CHECKING:
    from engine.network.blobs.port import ChunkKeeper, ChunkShelf
    from engine.network.blobs.server import BlobServer, BlobServing
    from engine.network.waku.filter.server import FilterServer, FilterSettings
    from engine.network.waku.lightpush.server import LightpushSettings, Published
    from engine.network.waku.store.intake import Archive, ArchiveIntake, IntakeSettings
    from engine.network.waku.store.server import StoreSettings

_SEEN_TTL_MS = 120_000
_MAX_SEEN = 20_000


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """None means that the service is off."""

    filter: "FilterSettings | None" = None
    lightpush: "LightpushSettings | None" = None
    store: "StoreSettings | None" = None
    intake: "IntakeSettings | None" = None
    """Limits of the archive's intake; None: the defaults."""
    blobs: "BlobServing | None" = None
    """Chunks of files: those on this device, or with a keeper those of others."""
    archives_own_only: bool = False
    """Archive only messages that passed the precheck of the node's own subscribers.  Otherwise
    archive all that it relays."""


def all_services(*, subscribers: int | None = None) -> ServiceSettings:
    """``subscribers``: peers that filter serves; None: as many as it usually does."""
    from engine.network.blobs.server import BlobServing
    from engine.network.waku.filter.server import FilterSettings
    from engine.network.waku.lightpush.server import LightpushSettings
    from engine.network.waku.store.server import StoreSettings

    usual = FilterSettings()
    return ServiceSettings(
        blobs=BlobServing(),
        filter=usual if subscribers is None else replace(usual, max_peers=subscribers),
        lightpush=LightpushSettings(),
        store=StoreSettings(),
    )


class ServiceContext(Struct, frozen=True, kw_only=True):
    """What the services need from their node."""

    host: Host
    relay: WakuRelay
    sharding: Sharding
    topics: Collection[PubsubTopic]
    """Relayed topics; they change while the node runs."""
    deliver: Callable[[PubsubTopic, WakuMessage], bool]
    """Delivers to the node's own subscribers; returns whether it passed the precheck of one."""
    source_key: bytes
    """Random key for the pseudonyms of message sources."""
    observer: MetadataObserver
    counters: Counters
    now_ns: Callable[[], int]


class NodeServices:
    """Create new for every start of a node.  Raises ConfigError for a Store without an archive."""

    def __init__(
        self,
        around: ServiceContext,
        settings: ServiceSettings,
        archive: "Archive | None",
        keeper: "ChunkKeeper | None" = None,
    ) -> None:
        self._around = around
        self._settings = settings
        self._metadata = WakuMetadata(
            around.host, self._own_metadata, counters=around.counters, observer=around.observer
        )
        self._sources = Sources(around.host, around.source_key)
        self._seen = SeenCache(ttl_ms=_SEEN_TTL_MS, max_entries=_MAX_SEEN)
        self._filter = _filter_server(around, settings)
        self._intake = _archive_intake(around, settings, archive)
        self._blobs = self._blob_server(keeper)

    def start(self) -> None:
        """Call before the host starts, so that no peer is missed."""
        around, settings = self._around, self._settings
        self._metadata.start()
        if self._blobs is not None:
            self._blobs.start()
        if self._filter is not None:
            self._filter.start()
        if settings.lightpush is not None:
            from engine.network.waku.lightpush.server import LightpushServer

            LightpushServer(
                around.host,
                settings.lightpush,
                sharding=around.sharding,
                relays=lambda topic: topic in around.topics,
                publish=self._publish,
                now_ns=around.now_ns,
                counters=around.counters,
            ).start()
        if self._intake is not None and settings.store is not None:
            from engine.network.waku.store.server import serve_store

            self._intake.start()
            query = partial(self._query, self._intake)
            serve_store(around.host, query, settings.store, around.counters)

    async def stop(self) -> None:
        """Call before the host stops."""
        await self._metadata.stop()
        if self._filter is not None:
            await self._filter.stop()

    async def finish(self) -> None:
        """Call after the host has stopped and no more messages arrive."""
        if self._intake is not None:
            await self._intake.stop()

    def take(
        self,
        topic: PubsubTopic,
        message: WakuMessage,
        data: bytes,
        *,
        is_own: bool,
        brought_by: PeerId | None = None,
    ) -> bool:
        """Handle a new message.  Return whether a subscriber or the archive has it now.

        ``is_own``: the node's own subscribers get or sent it.  ``brought_by`` None means this node.
        """
        if self._settings.lightpush is not None:
            self._note(data)
        pushed = 0
        if self._filter is not None:
            pushed = self._filter.push(topic, message.content_topic, data)
        if self._intake is None or (self._settings.archives_own_only and not is_own):
            return pushed > 0
        archived = self._intake.offer(topic, message, data, self._source(brought_by))
        return archived or pushed > 0

    async def wait_for_room(self, brought_by: PeerId | None = None) -> None:
        """Wait briefly if the archive or filter subscribers need time.  Call between messages."""
        if self._filter is not None:
            await self._filter.wait_for_room()
        if self._intake is not None:
            await self._intake.wait_for_room(self._source(brought_by))

    def serve_chunks(self, shelf: "ChunkShelf | None") -> None:
        """Of the files on this device.  A node that keeps chunks of others serves only those."""
        if self._blobs is not None:
            self._blobs.shelf = shelf

    def slow_files_down(self) -> None:
        """For a moment: somebody talks here."""
        if self._blobs is not None:
            self._blobs.give_way()

    def _blob_server(self, keeper: "ChunkKeeper | None") -> "BlobServer | None":
        if self._settings.blobs is None:
            return None
        from engine.network.blobs.server import BlobServer

        around = self._around
        return BlobServer(
            around.host,
            self._settings.blobs,
            source=lambda peer_id: self._sources.of(peer_id).network,
            counters=around.counters,
            keeper=keeper,
        )

    async def _query(
        self, intake: "ArchiveIntake", query: ArchiveQuery, asked_by: PeerId
    ) -> ArchivePage:
        return await intake.query(replace(query, asker=self._sources.of(asked_by)))

    def _source(self, brought_by: PeerId | None) -> Source:
        return OURSELVES if brought_by is None else self._sources.of(brought_by)

    @property
    def filter_subscribers(self) -> int:
        return 0 if self._filter is None else self._filter.subscriber_count

    @property
    def archive_failing(self) -> bool:
        return self._intake is not None and self._intake.failing

    @property
    def archive_clock_suspect(self) -> bool:
        return self._intake is not None and self._intake.clock_suspect

    async def _publish(
        self, peer_id: PeerId, topic: PubsubTopic, message: WakuMessage, data: bytes
    ) -> "Published":
        """Publish for lightpush."""
        from engine.network.waku.lightpush.server import Published

        otherwise = hashlib.sha256(data).digest() in self._seen
        if not otherwise:
            is_own = self._around.deliver(topic, message)
            otherwise = self.take(topic, message, data, is_own=is_own, brought_by=peer_id)
        relay_peers = await self._around.relay.publish(topic, data)
        await self.wait_for_room(peer_id)
        return Published(relay_peers=relay_peers, otherwise=otherwise)

    def _note(self, data: bytes) -> None:
        now_ms = int(asyncio.get_running_loop().time() * 1_000)
        self._seen.expire(now_ms=now_ms)
        self._seen.add(hashlib.sha256(data).digest(), now_ms=now_ms)

    def _own_metadata(self) -> Metadata:
        shards = sorted(parse_pubsub_topic(topic).shard for topic in self._around.topics)
        return Metadata(cluster_id=self._around.sharding.cluster_id, shards=tuple(shards))


def _filter_server(around: ServiceContext, settings: ServiceSettings) -> "FilterServer | None":
    if settings.filter is None:
        return None
    from engine.network.waku.filter.server import FilterServer

    return FilterServer(around.host, settings.filter, counters=around.counters)


def _archive_intake(
    around: ServiceContext, settings: ServiceSettings, archive: "Archive | None"
) -> "ArchiveIntake | None":
    if settings.store is None:
        return None
    from engine.network.waku.store.intake import ArchiveIntake, IntakeSettings

    if archive is None:
        raise ConfigError("the store service needs an archive")
    bounds = settings.intake or IntakeSettings()
    return ArchiveIntake(archive, bounds, now_ns=around.now_ns, counters=around.counters)
