"""``causerie node``: the node alone, for a team, a LAN or tests, until it is interrupted.

It relays, and filters, publishes and stores for others unless it is told not to.  Its identity is a
key file of its own in the profile directory, since it has no person and no database; what it stores
for others is ``archive.db`` there.  The port that it got is remembered beside it, so that addresses
stay true.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from chat_app.effective_network import discovers, listen_host, proxy_of
from chat_app.logs import logging_to
from chat_app.node_options import NodeOptions
from chat_app.paths import ProfilePaths
from chat_app.settings import ServingSettings
from chat_app.settings_reading import load_settings
from engine.core.errors import ConfigError, StorageError
from engine.network.libp2p.limits import HostLimits, limits_for
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.node.standalone import run_node
from engine.network.waku.topics import Sharding
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.kept_chunks import KeptChunks
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)

KEY_BYTES = 32
_DAY_NS = 24 * 3_600 * 10**9
_MIB = 1024 * 1024
MEGABYTE = 1_000_000
MAX_RELAYED_SHARDS = 64
OTHER_FILES = 64
"""Open besides connections: archive, log, listeners, metrics, and what Python has."""


def serve(
    paths: ProfilePaths, *, port: int | None, listen: str | None, options: NodeOptions
) -> int:
    """Run until SIGINT or SIGTERM.  Raises ConfigError, StorageError, TransportError."""
    settings = load_settings(paths.settings_file)
    limits = limits_for(settings.node.devices)
    _allow_open_files(limits)
    directory = open_profile_directory(paths.directory)
    with ProfileLock(directory), logging_to(settings.log, paths.log_directory):
        chosen = settings.network.port if port is None else port
        node = NodeSettings(
            network_key=_network_key(directory),
            listen_host=listen or listen_host(settings),
            proxy=proxy_of(settings),
            connections_per_address=settings.network.connections_per_address,
            limits=limits,
            port=chosen or None,
            remembered_port=_remembered_port(directory),
            sharding=Sharding(
                cluster_id=settings.network.cluster, shard_count=settings.network.shards
            ),
            relayed_shards=_relayed_shards(settings.network.shards),
            websocket_port=options.websocket_port,
            services=_services(options, settings.node),
        )
        peers = (*settings.network.peers, *settings.network.service_nodes)
        keeper = _keeper(directory, options, settings.node)
        asyncio.run(_serve(node, directory, peers, options, keeper, discover=discovers(settings)))
    return 0


def _relayed_shards(shards: int) -> tuple[int, ...]:
    """All of them, for a node serves other applications too; in a huge cluster only our own."""
    return tuple(range(shards)) if shards <= MAX_RELAYED_SHARDS else ()


def _services(options: NodeOptions, room: ServingSettings) -> ServiceSettings:
    on, every = options.services, all_services(subscribers=room.subscribers)
    return ServiceSettings(
        filter=every.filter if "filter" in on else None,
        lightpush=every.lightpush if "lightpush" in on else None,
        store=every.store if "store" in on else None,
        blobs=every.blobs if "blobs" in on else None,
    )


def open_files(limits: HostLimits) -> int:
    """What a node with these limits may need at most."""
    return limits.max_connections + limits.max_handshakes + OTHER_FILES


def _allow_open_files(limits: HostLimits) -> None:
    """Raise the soft limit as far as this process may.  Raises ConfigError if that is not enough.

    Beyond the limit a node accepts connections only to lose them, and says nothing.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on Windows

    needed = open_files(limits)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"[node] devices = {limits.max_inbound_connections}: needs {needed} open files, and"
            f" this process may have {soft}. Allow more (systemd: LimitNOFILE={needed}; a shell:"
            f" ulimit -n {needed}), or fewer devices."
        ) from error


def _set_by_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows: Ctrl+C raises KeyboardInterrupt instead
            break
    return stop


async def _serve(  # noqa: PLR0913 - each is a different thing, and all are needed
    node: NodeSettings,
    directory: ProfileDirectory,
    peers: Sequence[str],
    options: NodeOptions,
    keeper: KeptChunks | None,
    *,
    discover: bool,
) -> None:
    stop = _set_by_signals()

    def ready(addresses: Sequence[str]) -> None:
        for address in addresses:
            sys.stdout.write(f"listening on {address}\n")
        sys.stdout.flush()
        if addresses:
            port = parse_multiaddr(addresses[0]).port
            write_private_file(directory.path / "node.port", f"{port}\n")

    def metrics_ready(metrics_port: int) -> None:
        sys.stdout.write(f"metrics on http://127.0.0.1:{metrics_port}/metrics\n")

    archive = await _archive(directory, options)
    try:
        await run_node(
            node,
            ready=ready,
            stop=stop,
            peers=peers,
            archive=archive,
            keeper=keeper,
            metrics_port=options.metrics_port,
            metrics_ready=metrics_ready,
            discover=discover,
        )
    finally:
        if archive is not None:
            await archive.close()


def _keeper(
    directory: ProfileDirectory, options: NodeOptions, room: ServingSettings
) -> KeptChunks | None:
    """Where chunks of others' files are kept.  Raises StorageError."""
    if "blobs" not in options.services:
        return None
    kept = KeptChunks(
        directory.kept_files, max_bytes=room.blobs_mb * MEGABYTE, max_days=room.blob_days
    )
    kept.open()
    return kept


async def _archive(directory: ProfileDirectory, options: NodeOptions) -> ThreadedArchive | None:
    if "store" not in options.services:
        return None
    retention = Retention(
        max_age_ns=options.archive_days * _DAY_NS, max_bytes=options.archive_mib * _MIB
    )
    return await ThreadedArchive.open(directory.path / "archive.db", retention)


def _network_key(directory: ProfileDirectory) -> bytes:
    path = directory.path / "node.key"
    try:
        if not path.exists():
            write_private_file(path, os.urandom(KEY_BYTES).hex() + "\n")
        key = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        raise StorageError(f"The node's key {path} cannot be used.") from error
    if len(key) != KEY_BYTES:
        raise StorageError(f"The node's key {path} cannot be used: it has the wrong length.")
    return key


def _remembered_port(directory: ProfileDirectory) -> int | None:
    try:
        return int((directory.path / "node.port").read_text("ascii")) or None
    except (OSError, ValueError):
        return None
