"""Puts an engine together for one profile: key, database, node, faults, clock and chance.

The only place that knows which store and which transport the application uses.  Nothing is opened
here before the engine starts, except the profile's directory and its lock.
"""

import os
import time
from dataclasses import dataclass
from functools import partial
from random import SystemRandom

from chat_app.settings import Settings
from engine.core.faults import FaultPlan, FaultSpec
from engine.core.types import UnixMs
from engine.network.faults import FaultyTransport
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport
from engine.network.waku.topics import Sharding
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineParts, OpenedStore, TransportSeed
from engine.session.chance import Chance

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the command line sets for one run, over the settings."""

    port: int | None = None
    faults: FaultSpec | None = None


def unix_now_ms() -> UnixMs:
    return UnixMs(time.time_ns() // NS_PER_MS)


def system_chance() -> Chance:
    return Chance(random_bytes=os.urandom, random_unit=SystemRandom().random)


def build_engine(
    directory: ProfileDirectory, settings: Settings, overrides: Overrides | None = None
) -> Engine:
    """An engine that has not started yet.  The caller holds the profile's lock."""
    chosen = overrides or Overrides()
    return Engine(
        EngineParts(
            open_store=partial(
                open_store, directory, force_key_file=settings.storage.key == "file"
            ),
            make_transport=partial(make_transport, settings, chosen, directory.path.name),
            port_of=port_of,
            chance=system_chance(),
            now_ms=unix_now_ms,
            peers=settings.network.peers,
        )
    )


def open_store(directory: ProfileDirectory, *, force_key_file: bool) -> OpenedStore:
    key = obtain_database_key(directory, force_key_file=force_key_file)
    store = SqliteProfileStore.open(directory.database, key.key)
    return OpenedStore(store=store, key_storage=key.place.value)


def make_transport(
    settings: Settings, overrides: Overrides, name: str, seed: TransportSeed
) -> Transport:
    """``name`` makes one person's losses independent of another's with the same seed."""
    node = EmbeddedNode(node_settings(settings, overrides, seed))
    if overrides.faults is None:
        return node
    return FaultyTransport(node, FaultPlan(overrides.faults, stream=name))


def node_settings(settings: Settings, overrides: Overrides, seed: TransportSeed) -> NodeSettings:
    port = settings.network.port if overrides.port is None else overrides.port
    return NodeSettings(
        network_key=seed.network_key,
        listen_host=settings.network.listen_host,
        port=port or None,
        remembered_port=seed.remembered_port,
        sharding=Sharding(cluster_id=settings.network.cluster, shard_count=settings.network.shards),
    )


def port_of(transport: Transport) -> int | None:
    """The TCP port that a started transport listens on."""
    ports = [parse_multiaddr(address).port for address in transport.addresses()]
    return next((port for port in ports if port), None)
