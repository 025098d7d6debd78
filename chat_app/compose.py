"""Puts an engine together for one profile: key, database, node, faults, clock and chance.

The only place that knows which store and which transport the application uses.  Nothing is opened
here before the engine starts, except the profile's directory and its lock.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import SystemRandom

from msgspec import Struct, structs

from chat_app.effective_network import discovers, listen_host, proxy_of
from chat_app.network_control import NetworkControl
from chat_app.settings import NetworkSettings, Settings
from engine.core.entropy import Entropy
from engine.core.errors import StorageError
from engine.core.faults import FaultPlan, FaultSpec
from engine.core.ids import UnixMs
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import WireGeneration
from engine.delivery.recorder import Recorder
from engine.network.blobs.server import BlobServing
from engine.network.discovery.discovery import DiscoveringTransport
from engine.network.faults import FaultyTransport
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.roles import Role, RoleSettings, RoleTransport
from engine.network.node.services import ServiceSettings
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport
from engine.network.waku.store.server import StoreSettings
from engine.network.waku.topics import Sharding
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.backup import forget_backup_leftovers
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.database import open_database
from engine.persistence.earlier_profile import forget_beginning_anew, keep_aside
from engine.persistence.errors import DatabaseFromBeforeError
from engine.persistence.file_damage import (
    explained,
    require_readable_log,
    require_what_was_there,
)
from engine.persistence.key import DatabaseKey, obtain_database_key
from engine.persistence.key_changes import tend_key_header
from engine.persistence.page_trees import keep_list_of_tables
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.restore import forget_restoring
from engine.persistence.salvage import finish_salvage
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore, SavedTransport
from engine.runtime.files.disk import FilesSettings
from engine.session.pair.factory import PAIR_CONFIG

NS_PER_MS = 1_000_000
DAY_NS = 24 * 3_600 * 10**9
MEGABYTE = 1_000_000
SERVING = ServiceSettings(blobs=BlobServing())
"""Sealed chunks of the files on this device, to those who know their names."""
KEEPING = structs.replace(SERVING, store=StoreSettings(), archives_own_only=True)
"""Also what was said in one's own conversations, for those who missed it."""


class Overrides(Struct, frozen=True, kw_only=True):
    """What the command line sets for one run, over the settings."""

    port: int | None = None
    faults: FaultSpec | None = None


def unix_now_ms() -> UnixMs:
    return UnixMs(time.time_ns() // NS_PER_MS)


def system_entropy() -> Entropy:
    return Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random)


def build_engine(  # noqa: PLR0913 - all but the first two may be left out
    directory: ProfileDirectory,
    settings: Settings,
    overrides: Overrides | None = None,
    control: NetworkControl | None = None,
    recorder: Recorder | None = None,
    *,
    announces_presence: Callable[[], bool] | None = None,
    fetches_pictures_below_mb: Callable[[], int] | None = None,
    mentions_when_muted: Callable[[], bool] | None = None,
    progress: Progress = unheard,
    key: DatabaseKey | None = None,
) -> Engine:
    """An engine that has not started yet.  The caller holds the profile's lock.

    ``control`` can change its network while it runs; ``recorder`` is told of deliveries.
    ``announces_presence``: whether people are told that we are online, asked each time; as the
    settings have it if left out.  ``fetches_pictures_below_mb`` and
    ``mentions_when_muted``: the settings, likewise.
    ``progress`` is told, on another thread, how far the carrying over of an old profile is.
    ``key``: of the database, if it was had already.
    """
    chosen = overrides or Overrides()
    live = control or NetworkControl(settings.network)

    def transport_of(seed: SavedTransport) -> Transport:
        now = replace(settings, network=live.settings)  # they may have been changed meanwhile
        return make_transport(
            now, chosen, directory.path.name, seed, live, archive=directory.archive
        )

    return Engine(
        EngineDependencies(
            open_store=partial(
                open_store,
                directory,
                force_key_file=settings.storage.key == "file",
                progress=progress,
                key=key,
            ),
            make_transport=transport_of,
            port_of=port_of,
            entropy=system_entropy(),
            now_ms=unix_now_ms,
            peers=settings.network.peers,
            opening_command=opening_command(),
            mvds=mvds_config(settings.network),
            files=files_settings(
                directory,
                settings,
                fetches_pictures_below_mb or (lambda: settings.privacy.fetch_pictures_below_mb),
            ),
            service_nodes=lambda: live.settings.service_nodes,
            recorder=recorder,
            announces_presence=announces_presence or (lambda: settings.privacy.presence),
            mentions_when_muted=mentions_when_muted
            or (lambda: settings.notifications.mentions_when_muted),
        )
    )


def opening_command() -> tuple[str, ...]:
    """What starts the program as the process that opens history."""
    if getattr(sys, "frozen", False):
        return (sys.executable, "open-history")
    return (sys.executable, "-P", "-m", "chat_app", "open-history")


def files_settings(
    directory: ProfileDirectory, settings: Settings, pictures_below_mb: Callable[[], int]
) -> FilesSettings:
    return FilesSettings(
        chunks=directory.files,
        opened=directory.opened_files,
        max_bytes=settings.storage.files_megabytes * MEGABYTE,
        pictures_below=lambda: pictures_below_mb() * MEGABYTE,
    )


def mvds_config(network: NetworkSettings) -> MvdsConfig:
    """How one-to-one conversations go out."""
    mode = Mode.MIXED if network.mvds_mode == "ours" else Mode(network.mvds_mode)
    return structs.replace(PAIR_CONFIG, mode=mode, generation=WireGeneration(network.mvds_wire))


def open_store(
    directory: ProfileDirectory,
    *,
    force_key_file: bool,
    progress: Progress = unheard,
    key: DatabaseKey | None = None,
) -> OpenedStore:
    """A profile from before the first schema is kept aside, and a new one begins.

    Raises StorageError, also where a database that was there is gone, or a part of it would be
    forgotten: no new profile begins then.
    """
    forget_backup_leftovers(directory)
    forget_restoring(directory)
    finish_salvage(directory)
    require_what_was_there(directory)
    key = key or obtain_database_key(directory, force_key_file=force_key_file)
    if not directory.has_database():
        _begin(directory, key)
    forget_beginning_anew(directory)
    require_readable_log(directory.database, key.key)
    keep_list_of_tables(directory.database, key.key)
    try:
        store = SqliteProfileStore.open(directory.database, key.key, progress)
    except DatabaseFromBeforeError:
        keep_aside(directory, key.key, day=time.strftime("%Y-%m-%d"))
        _begin(directory, key)
        forget_beginning_anew(directory)
        store = SqliteProfileStore.open(directory.database, key.key)
    except StorageError as error:
        raise explained(directory.database, key.key, error) from error
    tend_key_header(directory, key, force_key_file=force_key_file)
    return OpenedStore(store=store, key_storage=key.place.value)


def _begin(directory: ProfileDirectory, key: DatabaseKey) -> None:
    """All of it is in its file then, and a copy of its list of tables tells that it was there."""
    open_database(directory.database, key.key).close()
    keep_list_of_tables(directory.database, key.key)


def make_transport(  # noqa: PLR0913 - the last two may be left out
    settings: Settings,
    overrides: Overrides,
    name: str,
    seed: SavedTransport,
    control: NetworkControl | None = None,
    *,
    archive: Path | None = None,
) -> Transport:
    """``name`` makes one person's losses independent of another's with the same seed.

    ``archive``: the file in which sealed messages are kept for others; None: nothing is kept.
    """
    keeps = archive is not None and settings.storage.keep_days > 0
    roles = RoleTransport(
        RoleSettings(
            relay=replace(
                node_settings(settings, overrides, seed),
                services=KEEPING if keeps else SERVING,
            ),
            role=Role(settings.network.role),
            service_nodes=settings.network.service_nodes,
        ),
        make_relay=partial(
            EmbeddedNode,
            open_archive=partial(open_archive, archive, settings) if archive and keeps else None,
        ),
    )
    if control is not None:
        control.attach(roles)
    transport: Transport = roles
    host = listen_host(settings)
    if discovers(settings) and host is not None:
        transport = DiscoveringTransport(transport, listen_host=host)
    if overrides.faults is None:
        return transport
    return FaultyTransport(transport, FaultPlan(overrides.faults, stream=name))


async def open_archive(path: Path, settings: Settings) -> ThreadedArchive:
    """Raises StorageError."""
    storage = settings.storage
    retention = Retention(
        max_age_ns=storage.keep_days * DAY_NS, max_bytes=storage.keep_megabytes * MEGABYTE
    )
    return await ThreadedArchive.open(path, retention)


def node_settings(settings: Settings, overrides: Overrides, seed: SavedTransport) -> NodeSettings:
    port = settings.network.port if overrides.port is None else overrides.port
    return NodeSettings(
        network_key=seed.network_key,
        listen_host=listen_host(settings),
        proxy=proxy_of(settings),
        connections_per_address=settings.network.connections_per_address,
        port=port or None,
        remembered_port=seed.remembered_port,
        now_ns=seed.now_ns,
        sharding=Sharding(cluster_id=settings.network.cluster, shard_count=settings.network.shards),
    )


def port_of(transport: Transport) -> int | None:
    """The TCP port that a started transport listens on."""
    ports = [parse_multiaddr(address).port for address in transport.addresses()]
    return next((port for port in ports if port), None)
