"""``causerie export-store``: what a Store holds, one row for each message, without its payload.

Either a node is asked with the Store protocol, or the archive of a node of ours is read.  Of a node
each message's hash is computed again; 2.0.0-beta4, which names none, has to be told topics.  If it
fails half-way nothing is written: a part would pass for the whole.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from chat_app.compose import unix_now_ms
from chat_app.effective_network import proxy_of
from chat_app.export_paging import PATIENT, StoreExport
from chat_app.paths import profile_paths
from chat_app.settings import Settings
from chat_app.settings_reading import load_settings
from chat_app.table_export import Row, export_tables, writer_of
from engine.codec.waku import decode_waku_message
from engine.core.errors import (
    AddressError,
    ChatError,
    ConfigError,
    RemoteProtocolError,
    TransportError,
)
from engine.core.history.progress import StoreRef
from engine.core.history.queries import MAX_QUERY_TOPICS, Candidate, HistoryMessage, Window
from engine.core.ids import ContentTopic, PubsubTopic
from engine.delivery.check import problem_of
from engine.delivery.contract import SCHEMA_VERSION, STORE_MESSAGE
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.ports import PeerId
from engine.network.stores.host_stores import HostStores
from engine.network.waku.topics import Sharding
from ui.address_words import address_words

NS_PER_MS: Final = 1_000_000
DIAL_WITHIN_S: Final = 15.0
BATCH: Final = 5_000
KEY_BYTES: Final = 32
MAX_ROWS: Final = 20_000_000
"""Of a Store that is asked; they are in memory until all are there."""
EXIT_INCOMPLETE: Final = 1


class StoreQuery(Struct, frozen=True, kw_only=True):
    """Inclusive times; no topics: all."""

    content_topics: tuple[ContentTopic, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None


def export_store(asked: argparse.Namespace) -> int:
    """Returns the exit status.  Raises ConfigError, TransportError."""
    writer_of(asked.format)  # before anybody is asked for anything
    query = StoreQuery(
        content_topics=tuple(map(ContentTopic, asked.topics or ())),
        since_ns=None if asked.since is None else asked.since * NS_PER_MS,
        until_ns=None if asked.until is None else asked.until * NS_PER_MS,
    )
    if asked.archive is not None:
        rows = archived_rows(asked.archive, query)
    else:
        settings = load_settings(profile_paths(asked.profile, asked.profile_dir).settings_file)
        rows = iter(asyncio.run(asked_rows(asked.store, settings, query)))
    good = Judged()
    counts = export_tables(asked.out, asked.format, {STORE_MESSAGE: good.batches(rows)})
    sys.stdout.write(f"{asked.out}: {counts[STORE_MESSAGE.name]} messages\n")
    if good.bad:
        sys.stderr.write(f"causerie: {good.bad} messages do not keep to the contract\n")
    return EXIT_INCOMPLETE if good.bad else 0


class Judged:
    """Lets through what keeps to the contract, and counts the rest."""

    def __init__(self) -> None:
        self.bad = 0

    def batches(self, rows: Iterator[Row]) -> Iterator[list[Row]]:
        batch: list[Row] = []
        for row in rows:
            if problem_of(STORE_MESSAGE, row) is not None:
                self.bad += 1
                continue
            batch.append(row)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


# --- a node that is asked -------------------------------------------------------------------------


def _address_of_store(multiaddr: str) -> tuple[Multiaddr, PeerId]:
    try:
        address = parse_multiaddr(multiaddr)
    except AddressError as error:
        raise ConfigError(f"--store: {address_words(error)}") from error
    if address.peer_id is None:
        raise ConfigError(f"--store {multiaddr}: /p2p/ and the peer id are missing")
    return address, address.peer_id


async def asked_rows(multiaddr: str, settings: Settings, query: StoreQuery) -> list[Row]:
    """Raises ConfigError for the address, TransportError for the Store."""
    address, source = _address_of_store(multiaddr)
    network = settings.network
    sharding = Sharding(cluster_id=network.cluster, shard_count=network.shards)
    host = TcpHost(os.urandom(KEY_BYTES), [], proxy=proxy_of(settings))
    stores = HostStores(lambda: [host], sharding)
    store = StoreRef(str(address))
    rows: list[Row] = []
    try:
        await host.start()
        async with asyncio.timeout(DIAL_WITHIN_S):
            await host.connect(str(address))
        candidate = Candidate(store=store, versions=stores.versions(store))
        export, exported_ms = StoreExport(candidate, stores.perform), unix_now_ms()
        for window in _windows(query, sharding):
            async for page in export.messages(window):
                rows += (_row_of(source, one, exported_ms) for one in page)
                if len(rows) > MAX_ROWS:
                    raise TransportError(f"more than {MAX_ROWS} messages: bound it with --since")
    except TimeoutError:
        raise TransportError(f"--store {multiaddr}: nobody answers there") from None
    except ChatError as error:
        raise TransportError(f"--store {multiaddr}: {error}") from error
    finally:
        await host.stop()
    if export.left_out:
        sys.stderr.write(f"causerie: {export.left_out} entries of its answers could not be used\n")
    return rows


def _windows(query: StoreQuery, sharding: Sharding) -> list[Window]:
    """Content topics are asked for under the pubsub topic of their shard in our cluster."""
    latest_ns = (unix_now_ms() + PATIENT.ahead_ms) * NS_PER_MS
    start_ns = query.since_ns or 0
    end_ns = max(latest_ns if query.until_ns is None else query.until_ns, start_ns)
    topics: dict[PubsubTopic, list[ContentTopic]] = {}
    for topic in dict.fromkeys(query.content_topics):
        topics.setdefault(sharding.pubsub_topic(topic), []).append(topic)
    some: list[tuple[PubsubTopic | None, tuple[ContentTopic, ...]]] = [
        (pubsub_topic, tuple(found[first : first + MAX_QUERY_TOPICS]))
        for pubsub_topic, found in topics.items()
        for first in range(0, len(found), MAX_QUERY_TOPICS)
    ]
    return [
        Window(pubsub_topic=pubsub, content_topics=content, start_ns=start_ns, end_ns=end_ns)
        for pubsub, content in some or [(None, ())]
    ]


def _row_of(source: str, stored: HistoryMessage, exported_ms: int) -> Row:
    message = stored.message
    return (
        SCHEMA_VERSION,
        source,
        stored.message_hash,
        stored.pubsub_topic,
        message.content_topic,
        message.timestamp_ns or 0,
        len(message.payload),
        exported_ms,
    )


# --- an archive of ours ---------------------------------------------------------------------------


def archived_rows(path: Path, query: StoreQuery) -> Iterator[Row]:
    """Reads only; a node may run meanwhile.  Raises ConfigError."""
    if not path.is_file():
        raise ConfigError(f"--archive {path}: there is no such file")
    exported_ms = unix_now_ms()
    sql = (
        "SELECT hash, pubsub_topic, content_topic, timestamp_ns, data"
        " FROM message JOIN topic USING (topic_key)"
        " JOIN pubsub ON pubsub.pubsub_key = topic.pubsub_key"
        " WHERE timestamp_ns >= ? AND timestamp_ns <= ? ORDER BY timestamp_ns, hash"
    )
    span = (query.since_ns or 0, 2**63 - 1 if query.until_ns is None else query.until_ns)
    wanted = set(query.content_topics)
    try:
        uri = path.absolute().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            for hash_, pubsub, content, at_ns, data in connection.execute(sql, span):
                if not wanted or content in wanted:
                    size = _payload_bytes(data)
                    yield (
                        SCHEMA_VERSION,
                        path.name,
                        hash_,
                        pubsub,
                        content,
                        at_ns,
                        size,
                        exported_ms,
                    )
    except sqlite3.Error as error:
        raise ConfigError(f"--archive {path}: this is no archive, or it is damaged") from error


def _payload_bytes(data: object) -> int | None:
    try:
        return len(decode_waku_message(data).payload) if isinstance(data, bytes) else None
    except RemoteProtocolError:
        return None
