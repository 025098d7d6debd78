"""Real engines, real disks, real Store nodes over loopback: everything but the window."""

import asyncio
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from msgspec import structs

from engine.codec.invite import read_invite, write_invite
from engine.core.contacts import ContactState
from engine.core.history.config import HistoryConfig
from engine.core.ids import ConversationId, DeliveryState, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.waku_archive import (
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
)
from engine.delivery.recorder import Recorder
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageKind,
    MessagesAdded,
    MessageView,
)
from engine.history_views import HistoryChanged, HistoryReason, HistoryState, HistoryView
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport
from engine.network.waku.store.intake import Archive
from engine.network.waku.store.server import StoreSettings
from engine.network.waku.topics import DEFAULT_CLUSTER_ID, Sharding
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.database import open_readonly
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore, SavedTransport
from engine.runtime.own_clock import boot_time_ms
from tests.patience import PATIENCE_S
from tests.persistence.new_database import new_database
from tests.runtime.conftest import BreakableStore, hurried_entropy
from tests.runtime.history.bad_stores import Honest

KEY = bytes(range(32))
QUICK = HistoryConfig(trailing_ms=500, retry_ms=200, back_off_ms=50)
Row: TypeAlias = tuple[int, str, str]
"""Lamport timestamp, id, text."""


def ask_stores_soon(patch: pytest.MonkeyPatch) -> None:
    """Stores are asked for what is missing after half a second, not after ten."""
    small = structs.replace(SdsConfig.for_small_group(), store_query_interval_ms=500)
    patch.setattr(SdsConfig, "for_small_group", lambda: small)


class StoreNode:
    """A node with all services, and a disk of its own."""

    def __init__(self, place: Path, name: str) -> None:
        self._place = place / f"{name}.archive.db"
        self._key = os.urandom(32)
        self.archive: ThreadedArchive | None = None
        self.node: EmbeddedNode | None = None
        self._was_at = ""

    async def start(
        self,
        wrap: Callable[[Archive], Archive] = lambda archive: archive,
        services: ServiceSettings | None = None,
        port: int | None = None,
        websocket_port: int | None = None,
        shards: tuple[int, ...] = (),
    ) -> str:
        self.archive = await ThreadedArchive.open(self._place)
        settings = NodeSettings(
            network_key=self._key,
            services=services or all_services(),
            port=port,
            websocket_port=websocket_port,
            relayed_shards=shards,
        )
        self.node = EmbeddedNode(settings, archive=wrap(self.archive))
        await self.node.start()
        return self.address

    async def off_and_on(self) -> None:
        """It goes, and comes back with its archive, where it was."""
        await self.stop()
        await self.start_where_it_was()

    async def start_where_it_was(self) -> None:
        was_at = self._was_at
        assert await self.start(port=int(was_at.split("/tcp/")[1].split("/")[0])) == was_at

    @property
    def address(self) -> str:
        assert self.node is not None
        return self.node.addresses()[0]

    async def messages(self) -> int:
        assert self.archive is not None
        return (await self.archive.statistics()).messages

    async def stop(self) -> None:
        if self.node is not None:
            self._was_at = self.address
            await self.node.stop()
        if self.archive is not None:
            await self.archive.close()


class RationedArchive:
    """An archive that holds its next answer back once it gave out its ration of messages.

    What fetches from it is then in the middle, however fast or slow the machine is.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._ration = 0
        self._more = asyncio.Event()
        self.used_up = asyncio.Event()

    def give_out(self, messages: int) -> None:
        """So many more, in whole pages."""
        self._ration = messages
        self.used_up.clear()
        self._more.set()

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        return await self._archive.append(messages)

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        while self._ration <= 0:
            self.used_up.set()
            self._more.clear()
            await self._more.wait()
        page = await self._archive.query(query)
        self._ration -= len(page.rows)
        return page

    async def retain(self) -> int:
        return await self._archive.retain()

    async def statistics(self) -> ArchiveStatistics:
        return await self._archive.statistics()

    async def close(self) -> None:
        await self._archive.close()


class Person:
    """One engine, what it told, and how to wait for it."""

    def __init__(  # noqa: PLR0913 - keyword-only: what people differ in
        self,
        name: str,
        place: Path,
        *,
        peers: tuple[str, ...] = (),
        config: HistoryConfig = QUICK,
        keeps: bool = False,
        recorder: Recorder | None = None,
        opening_command: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.told: list[EngineEvent] = []
        self._place = place
        self._keeps = keeps
        self._peers = peers
        self._config = config
        self._recorder = recorder
        self._opening_command = opening_command
        self._changed = asyncio.Event()
        self.store: BreakableStore | None = None
        self.passed_ms = 0
        """Time for which nobody waited, for timers and the system's clock: a day is over sooner."""
        self.ahead_ms = 0
        """How far the system's clock was set ahead of what timers count."""
        self.cluster_id = DEFAULT_CLUSTER_ID
        self.wrap: Callable[[Transport], Transport] = lambda transport: transport
        """What is between the node and the engine; set it before the start."""
        self.engine = self._make()

    @contextmanager
    def disk(self) -> Iterator[SqliteProfileStore]:
        """What is saved, to be read by another connection while the engine runs."""
        store = SqliteProfileStore(open_readonly(self._place / f"{self.name}.db", KEY))
        try:
            yield store
        finally:
            store.close()

    def _make(self) -> Engine:
        engine = Engine(
            EngineDependencies(
                open_store=self._open,
                make_transport=self._transport,
                port_of=lambda _transport: None,
                entropy=hurried_entropy(),
                now_ms=self.now_ms,
                counted_ms=lambda: boot_time_ms() + self.passed_ms,
                peers=self._peers,
                history=self._config,
                recorder=self._recorder,
                opening_command=self._opening_command,
            )
        )
        engine.subscribe(self._hear)
        return engine

    def now_ms(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self.passed_ms + self.ahead_ms)

    @property
    def database(self) -> Path:
        return self._place / f"{self.name}.db"

    def _open(self) -> OpenedStore:
        self.store = BreakableStore.open(new_database(self.database, KEY), KEY)
        return OpenedStore(store=self.store, key_storage="key file")

    def _transport(self, seed: SavedTransport) -> Transport:
        sharding = Sharding(cluster_id=self.cluster_id)
        settings = NodeSettings(network_key=seed.network_key, sharding=sharding)
        if not self._keeps:
            return self.wrap(EmbeddedNode(settings))
        keeping = ServiceSettings(store=StoreSettings(), archives_own_only=True)
        kept = replace(settings, services=keeping)
        return self.wrap(EmbeddedNode(kept, open_archive=self._open_archive))

    async def _open_archive(self) -> ThreadedArchive:
        return await ThreadedArchive.open(self._place / f"{self.name}.archive.db")

    def _hear(self, event: EngineEvent) -> None:
        self.told.append(event)
        self._changed.set()

    async def start(self) -> "Person":
        await self.engine.start()
        if self.engine.identity() is None:
            await self.engine.create_identity(self.name)
        return self

    async def stop(self) -> None:
        await self.engine.stop()

    async def start_again(self, *peers: str) -> "Person":
        self._peers = (*self._peers, *peers)
        self.told.clear()
        self.engine = self._make()
        return await self.start()

    # --- waiting --------------------------------------------------------------------------------

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Looked at after every event."""
        async with asyncio.timeout(PATIENCE_S):
            while not wanted():
                self._changed.clear()
                await self._changed.wait()

    async def until_online(self, peers: int = 1) -> None:
        await self.until(lambda: self.engine.connection().peers >= peers)

    def texts(self, conversation_id: ConversationId) -> list[str]:
        """As they were told, in the order of telling."""
        return [
            message.text
            for event in self.told
            for message in added_in(event)
            if message.conversation_id == conversation_id and message.kind is MessageKind.TEXT
        ]

    async def until_out(self, conversation_id: ConversationId) -> None:
        """All that was said here has reached a node; what met none is sent again by and by."""
        async with asyncio.timeout(PATIENCE_S):
            while any(  # noqa: ASYNC110 - a row that nobody looked at tells nothing
                row.delivery is not None and row.delivery.state is DeliveryState.SAVED
                for row in (
                    await self.engine.timeline.latest_page(conversation_id, limit=1_000)
                ).messages
            ):
                await asyncio.sleep(0.05)

    async def until_told(self, conversation_id: ConversationId, count: int) -> None:
        await self.until(lambda: len(self.texts(conversation_id)) >= count)

    def histories(self) -> list[HistoryView]:
        return [event.history for event in self.told if isinstance(event, HistoryChanged)]

    async def until_fetched(self, reason: HistoryReason | None = None) -> None:
        """Until it was told that a backfill, for this reason if one is named, is done."""
        await self.until(
            lambda: any(
                view.state is HistoryState.DONE and reason in {None, view.reason}
                for view in self.histories()
            )
        )

    async def log(self, conversation_id: ConversationId) -> list[Row]:
        """The whole timeline, as the window would page through it."""
        page = await self.engine.timeline.latest_page(conversation_id, limit=1_000)
        rows = list(page.messages)
        while page.has_older:
            page = await self.engine.timeline.page_before(
                conversation_id, rows[0].position, limit=1_000
            )
            rows = [*page.messages, *rows]
        return [(r.position.lamport_timestamp, r.message_id, r.text) for r in rows]

    async def log_of(self, conversation_id: ConversationId, texts: Collection[str]) -> list[Row]:
        """What of the timeline says one of these."""
        wanted = set(texts)
        return [row for row in await self.log(conversation_id) if row[2] in wanted]

    async def has_once(self, conversation_id: ConversationId, said: list[str]) -> bool:
        """Each was told once, and they stand as they were said.

        Not: told in that order.  What waits for an earlier one may be shown before it.
        """
        logged = [text for _, _, text in await self.log_of(conversation_id, said)]
        return sorted(self.texts(conversation_id)) == sorted(said) and logged == said

    async def say(self, conversation_id: ConversationId, count: int, word: str = "m") -> list[str]:
        texts = [f"{word} {number}" for number in range(count)]
        for text in texts:
            await self.engine.timeline.send_text(conversation_id, text)
        return texts


def added_in(event: EngineEvent) -> tuple[MessageView, ...]:
    """The new rows that it tells of."""
    match event:
        case MessageAdded(message=message):
            return (message,)
        case MessagesAdded(messages=messages):
            return messages
        case _:
            return ()


def shown_in(event: EngineEvent) -> tuple[MessageView, ...]:
    """The rows that it adds or changes, as they are now."""
    return (event.message,) if isinstance(event, MessageChanged) else added_in(event)


async def befriend(ann: Person, bob: Person) -> ConversationId:
    """Both are online."""
    pair = await ann.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(lambda: any(isinstance(event, ConversationAdded) for event in bob.told))
    await bob.engine.people.accept(pair)

    def is_accepted() -> bool:
        changed = [e.conversation for e in ann.told if isinstance(e, ConversationChanged)]
        contact = changed[-1].contact if changed else None
        return contact is not None and contact.state is ContactState.ACCEPTED

    await ann.until(is_accepted)
    return pair


async def connected_friends(
    place: Path, *nodes: StoreNode
) -> tuple[Person, Person, ConversationId]:
    """Ann and Bob, both connected to all of these, and their conversation."""
    addresses = tuple(node.address for node in nodes)
    ann = await Person("Ann", place, peers=addresses).start()
    bob = await Person("Bob", place, peers=addresses).start()
    await ann.until_online(len(nodes))
    await bob.until_online(len(nodes))
    return ann, bob, await befriend(ann, bob)


@dataclass(frozen=True, slots=True)
class GroupPast:
    """What was said in a group by somebody who is gone, as it stood there, and how to join it."""

    group: ConversationId
    link: str
    said: list[str]
    logged: list[Row]


class _Noting(Honest):
    """Notes what it is given."""

    def __init__(self, inner: Archive) -> None:
        super().__init__(inner)
        self.given: list[ArchivedMessage] = []

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        self.given += messages
        return await super().append(messages)


@dataclass(frozen=True, slots=True)
class _Said:
    """A past, what a Store was given of it, and the profile that Ann left."""

    past: GroupPast
    archived: tuple[ArchivedMessage, ...]
    profile: bytes


_SAID: dict[int, _Said] = {}
"""By how much was said: to say it takes ten times as long as to fetch it."""


async def say_in_a_group(place: Path, count: int, *nodes: StoreNode) -> GroupPast:
    """By Ann, who is gone then: all of these have it, and no member sends it any more.

    It was said once in this process, to a node of its own.  These are given what that one archived,
    and the place gets Ann's profile.
    """
    if count not in _SAID:
        with TemporaryDirectory() as somewhere:
            _SAID[count] = await _say_once(Path(somewhere), count)
    said = _SAID[count]
    (place / "Ann.db").write_bytes(said.profile)
    for node in nodes:
        assert node.archive is not None
        assert await node.archive.append(said.archived) == Appended(added=len(said.archived))
    invite = read_invite(said.past.link)
    addresses = tuple(node.address for node in nodes)
    link = write_invite(replace(invite, node_addresses=addresses))
    return replace(said.past, link=link, said=[*said.past.said], logged=[*said.past.logged])


async def _say_once(place: Path, count: int) -> _Said:
    notes: list[_Noting] = []

    def note(archive: Archive) -> Archive:
        notes.append(_Noting(archive))
        return notes[-1]

    node = StoreNode(place, "store")
    await node.start(wrap=note)
    ann = await Person("Ann", place, peers=(node.address,)).start()
    group = await ann.engine.groups.create("Friends")
    await ann.until_online()
    said = await ann.say(group, count)
    await ann.until_out(group)
    link = await ann.engine.groups.make_invite_link(group)
    await until_stored(node, count)
    logged = await ann.log_of(group, said)
    await ann.stop()
    await node.stop()
    archived = tuple({one.message_hash: one for one in notes[0].given}.values())
    past = GroupPast(group, link, said, logged)
    return _Said(past, archived, ann.database.read_bytes())


async def until(wanted: Callable[[], bool]) -> None:
    """For what tells nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not wanted():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until_stored(node: StoreNode, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await node.messages() < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
