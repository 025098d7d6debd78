"""``ChatEngine`` for one profile: storage, network and one supervised runner per conversation.

The composition of a running profile, on whatever asyncio loop calls ``start``: the qasync loop of
the window, or a plain one (tests, node, headless).  It owns the storage thread and the transport
and everything that runs on them, and takes all of it down in ``stop``.  It refuses to know the
window, and which transport and which store it was given.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.api import HolderView, InvitePreview, Listener, Page
from engine.codec.invite import parse_invite
from engine.core.content import MAX_TEXT_BYTES, Body, Leave, Text, clean_name
from engine.core.counters import Counters
from engine.core.errors import ChatError, ConfigError, LocalProtocolError, StorageError
from engine.core.ports import (
    AddCounters,
    GroupRecord,
    HideMessage,
    ProfileRecord,
    ProfileStore,
    PutNodeAddress,
    RemoveGroup,
    SaveProfile,
    SaveValue,
)
from engine.core.types import (
    ConversationId,
    InstanceId,
    MessageId,
    Position,
    UnixMs,
)
from engine.crypto.identity import Identity, fingerprint_of
from engine.events import (
    ConnectionChanged,
    ConnectionLevel,
    ConnectionView,
    ConversationAdded,
    ConversationRemoved,
    ConversationView,
    EngineEvent,
    GapView,
    HeldView,
    IdentityView,
    MessageRemoved,
)
from engine.network.transport import Transport, TransportLevel, TransportStatus
from engine.persistence.storage_thread import StorageThread
from engine.runtime.conversation_runner import ConversationRunner, Surroundings
from engine.runtime.supervisor import keep_running
from engine.runtime.views import holder_views, page_view
from engine.session.chance import Chance
from engine.session.group import GroupSession
from engine.session.groups import GroupBook
from engine.session.types import SessionTransition

COUNTERS_EVERY_MS = 60_000
TRAFFIC_EVERY_MS = 2_000
LEAVE_FLUSH_MS = 1_500
PORT_KEY = "network.port"
BEFORE_ALL = Position(lamport_timestamp=-1, message_id=MessageId(""))
NO_CONVERSATION = "no such conversation"
CLOSING = "The profile is being closed; what was asked last may not have been saved."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStore:
    """What opening the profile's storage gives; ``key_storage`` is shown to the user."""

    store: ProfileStore
    key_storage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSeed:
    """What the profile remembers of its network: identity and the port it had."""

    network_key: bytes
    remembered_port: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """Everything that is injected into an engine.

    ``open_store`` runs on the storage thread.  ``port_of`` reads the port that a started transport
    listens on, None if it has none.
    """

    open_store: Callable[[], OpenedStore]
    make_transport: Callable[[TransportSeed], Transport]
    port_of: Callable[[Transport], int | None]
    chance: Chance
    now_ms: Callable[[], UnixMs]
    peers: Sequence[str] = ()


@dataclass(slots=True)
class _Running:
    """One conversation that is up."""

    runner: ConversationRunner
    task: asyncio.Task[None]
    unsubscribe: Callable[[], None]


def _connection_view(status: TransportStatus) -> ConnectionView:
    return ConnectionView(
        level=ConnectionLevel(status.level.value),
        peers=status.peers,
        reason=status.reason,
        bytes_in=status.bytes_in,
        bytes_out=status.bytes_out,
    )


def _usable_name(name: str) -> str:
    try:
        return clean_name(name)
    except ValueError as error:
        raise ConfigError(f"This name cannot be used: {error}.") from error


def _say(body: Body, session: GroupSession, now_ms: UnixMs) -> SessionTransition:
    return session.say(body, now_ms=now_ms)


def _last_activity_ms(view: ConversationView) -> int:
    return view.last_message.sent_ms if view.last_message else view.created_ms


class Engine:
    """One profile's chats.  See ``engine.api.ChatEngine`` for what may be asked."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._storage = StorageThread()
        self._counters = Counters()
        self._persisted_counters: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self._running: dict[ConversationId, _Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened: OpenedStore | None = None
        self._profile: ProfileRecord | None = None
        self._book: GroupBook | None = None
        self._transport: Transport | None = None
        self._online = False
        self._stopped = False
        self._turn = asyncio.Lock()
        """Who becomes somebody, or comes into or out of a group, does so one at a time: the checks
        hold until the work is done."""

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the profile and, if it has an identity, go online.

        Raises StorageError, and TransportError if the port that the user set cannot be had.
        """
        self._opened = await self._storage.run(self._parts.open_store)
        self._profile = await self._storage.run(self._opened.store.profile)
        if self._profile is not None:
            await self._bring_up(self._profile)

    async def stop(self) -> None:
        """Take everything down; what was told to be saved is saved already.

        Whoever still waits for something is told that its outcome is not known.
        """
        self._stopped = True
        running = list(self._running.values())
        self._running.clear()
        for one in running:
            self._close(one, StorageError(CLOSING))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(one.task for one in running), *self._tasks, return_exceptions=True)
        if self._transport is not None:
            await self._transport.stop()
        if self._opened is not None:
            with contextlib.suppress(ChatError):
                await self._save_counters()
            await self._storage.close(self._opened.store.close)
        else:
            await self._storage.close()

    async def _bring_up(self, profile: ProfileRecord) -> None:
        store = self._store
        identity = Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)
        self._book = GroupBook(
            store=store,
            identity=identity,
            profile=profile,
            chance=self._parts.chance,
            counters=self._counters,
            now_ms=self._parts.now_ms,
            online=lambda: self._online,
        )
        await self._start_transport(profile)
        for group in await self._storage.run(store.groups):
            runner = ConversationRunner(group, load=self._book.load, around=self._surroundings())
            self._run(runner)
        self._own(self._keep_counters())
        self._own(self._tell_traffic())

    async def _start_transport(self, profile: ProfileRecord) -> None:
        store = self._store
        remembered = await self._storage.run(store.value, PORT_KEY)
        transport = self._parts.make_transport(
            TransportSeed(
                network_key=profile.network_key,
                remembered_port=int(remembered) if remembered else None,
            )
        )
        self._transport = transport
        transport.on_status(self._status_changed)
        transport.on_peer_address(self._peer_address_known)
        await transport.start()
        known = await self._storage.run(store.node_addresses)
        transport.add_peers([*self._parts.peers, *known])
        port = self._parts.port_of(transport)
        if port is not None and str(port) != remembered:
            await self._storage.run(store.apply, [SaveValue(key=PORT_KEY, value=str(port))])

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            store=self._store,
            storage=self._storage,
            transport=self._net,
            own_id=self._groups.own_id,
            now_ms=self._parts.now_ms,
            publish=self._publish,
            counters=self._counters,
        )

    def _run(self, runner: ConversationRunner) -> None:
        if self._stopped:
            raise StorageError(CLOSING)
        conversation_id = runner.group.conversation_id
        task = asyncio.create_task(
            keep_running(
                "conversation",
                runner.load,
                runner.run,
                publish=self._publish,
                counters=self._counters,
            )
        )
        unsubscribe = self._net.subscribe(
            self._groups.content_topic(runner.group), runner.on_message
        )
        self._running[conversation_id] = _Running(runner=runner, task=task, unsubscribe=unsubscribe)

    def _close(self, one: _Running, reason: ChatError) -> None:
        one.unsubscribe()
        one.task.cancel()
        one.runner.close(reason)

    def _own(self, coroutine: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- events -------------------------------------------------------------------------------

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _publish(self, event: EngineEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                # A bug of whoever listens: the others, and what goes on here, must not suffer.
                self._counters.add("engine.listener_failed")
                logger.exception("a listener failed", extra={"event": type(event).__name__})

    def _status_changed(self, status: TransportStatus) -> None:
        online = status.level is not TransportLevel.OFFLINE
        if online != self._online:
            self._online = online
            for one in self._running.values():
                one.runner.connectivity_changed(online=online)
        self._publish(ConnectionChanged(connection=_connection_view(status)))

    def _peer_address_known(self, multiaddr: str) -> None:
        write = PutNodeAddress(multiaddr=multiaddr, seen_ms=self._parts.now_ms())
        self._own(self._remember(write))

    async def _remember(self, write: PutNodeAddress) -> None:
        try:
            await self._storage.run(self._store.apply, [write])
        except ChatError as error:
            self._counters.add("engine.address_not_saved")
            logger.warning("an address was not saved", extra={"error": type(error).__name__})

    async def _keep_counters(self) -> None:
        while True:
            await asyncio.sleep(COUNTERS_EVERY_MS / 1000)
            try:
                await self._save_counters()
            except ChatError as error:
                logger.warning("counters were not saved", extra={"error": type(error).__name__})

    async def _tell_traffic(self) -> None:
        """Status changes are told at once; bytes alone only now and then."""
        told = (0, 0)
        while True:
            await asyncio.sleep(TRAFFIC_EVERY_MS / 1000)
            view = self.connection()
            if (view.bytes_in, view.bytes_out) != told:
                told = (view.bytes_in, view.bytes_out)
                self._publish(ConnectionChanged(connection=view))

    async def _save_counters(self) -> None:
        now = dict(self._own_counters())
        amounts = {k: v - self._persisted_counters.get(k, 0) for k, v in now.items()}
        amounts = {k: v for k, v in amounts.items() if v > 0}
        if amounts:
            await self._storage.run(self._store.apply, [AddCounters(amounts=amounts)])
        self._persisted_counters = now

    # --- identity -----------------------------------------------------------------------------

    def identity(self) -> IdentityView | None:
        profile, opened = self._profile, self._opened
        if profile is None or opened is None:
            return None
        identity = Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)
        return IdentityView(
            participant_id=identity.participant_id,
            name=profile.name,
            fingerprint=identity.fingerprint,
            key_storage=opened.key_storage,
        )

    async def create_identity(self, name: str) -> IdentityView:
        async with self._turn:
            return await self._create_identity(name)

    async def _create_identity(self, name: str) -> IdentityView:
        if self._profile is not None:
            raise LocalProtocolError("this profile has an identity already")
        random_bytes = self._parts.chance.random_bytes
        identity = Identity.generate(random_bytes)
        profile = ProfileRecord(
            name=_usable_name(name),
            signing_key=identity.signing_key,
            encryption_key=identity.encryption_key,
            network_key=random_bytes(32),
            instance_id=InstanceId(random_bytes(16)),
            created_ms=self._parts.now_ms(),
        )
        await self._storage.run(self._store.apply, [SaveProfile(profile=profile)])
        self._profile = profile
        await self._bring_up(profile)
        made = self.identity()
        if made is None:
            raise LocalProtocolError("the identity vanished")
        return made

    # --- conversations ------------------------------------------------------------------------

    async def conversations(self) -> Sequence[ConversationView]:
        views = []
        for one in list(self._running.values()):
            await one.runner.ready()
            view = one.runner.view()
            if view is not None:
                views.append(view)
        return sorted(views, key=_last_activity_ms, reverse=True)

    async def create_group(self, name: str) -> ConversationId:
        async with self._turn:
            group, writes, opening = self._groups.new_group(_usable_name(name))
            await self._storage.run(self._store.apply, writes)
            await self._begin(group, opening)
        return group.conversation_id

    async def make_invite_link(self, conversation_id: ConversationId) -> str:
        return self._groups.invite_link(self._runner(conversation_id).group, self._net.addresses())

    def preview_invite(self, link: str) -> InvitePreview:
        invite = parse_invite(link)
        return InvitePreview(
            conversation_id=invite.conversation_id,
            group_name=invite.group_name,
            inviter_name=invite.inviter_name,
            admin_fingerprint=fingerprint_of(invite.admin_public_key),
            node_addresses=invite.node_addresses,
            already_joined=invite.conversation_id in self._running,
        )

    async def join_group(self, link: str) -> ConversationId:
        invite = parse_invite(link)
        conversation_id = invite.conversation_id
        async with self._turn:
            if conversation_id not in self._running:
                group, writes, opening = self._groups.joined_group(invite)
                await self._storage.run(self._store.apply, writes)
                self._net.add_peers(invite.node_addresses)
                await self._begin(group, opening)
        return conversation_id

    async def _begin(self, group: GroupRecord, opening: Sequence[Body]) -> None:
        """Bring a new conversation up and say its first words."""
        runner = ConversationRunner(group, load=self._groups.load, around=self._surroundings())
        self._run(runner)
        await runner.ready()
        for body in opening:
            await runner.do(partial(_say, body))
        view = runner.view()
        if view is not None:
            self._publish(ConversationAdded(conversation=view))

    async def leave_group(self, conversation_id: ConversationId) -> None:
        """Tell the others if they can be reached, and forget the group."""
        async with self._turn:
            one = self._one(conversation_id)
            await one.runner.do(partial(_say, Leave()))
            await one.runner.flush(timeout_ms=LEAVE_FLUSH_MS)
            remove = RemoveGroup(conversation_id=conversation_id)
            self._running.pop(conversation_id, None)
            self._close(one, LocalProtocolError(NO_CONVERSATION))
            await asyncio.gather(one.task, return_exceptions=True)
            await self._storage.run(self._store.apply, [remove])
        self._publish(ConversationRemoved(conversation_id=conversation_id))

    async def set_muted(self, conversation_id: ConversationId, *, muted: bool) -> None:
        await self._runner(conversation_id).set_muted(muted=muted)

    async def mark_read(self, conversation_id: ConversationId, up_to: Position) -> None:
        await self._runner(conversation_id).mark_read(up_to)

    async def save_draft(self, conversation_id: ConversationId, text: str) -> None:
        await self._runner(conversation_id).save_draft(text)

    # --- messages -----------------------------------------------------------------------------

    async def send_text(self, conversation_id: ConversationId, text: str) -> MessageId:
        size = len(text.encode("utf-8", "replace"))
        if not text.strip():
            raise ConfigError("A message needs some text.")
        if size > MAX_TEXT_BYTES:
            raise ConfigError(
                f"This message has {size} bytes; at most {MAX_TEXT_BYTES} can be sent at once."
            )
        body = Text(text=text.encode("utf-8", "replace").decode())
        message_id = await self._runner(conversation_id).do(partial(_say, body))
        if message_id is None:
            raise LocalProtocolError("a message without an id")
        return message_id

    async def set_typing(self, conversation_id: ConversationId, *, active: bool) -> None:
        self._runner(conversation_id).offer(
            lambda session, now_ms: session.type_now(active=active, now_ms=now_ms)
        )

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        await self._runner(conversation_id).do(
            lambda session, now_ms: session.resend(message_id, now_ms=now_ms)
        )

    async def delete_locally(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        await self._runner(conversation_id).write(
            HideMessage(conversation_id=conversation_id, message_id=message_id)
        )
        self._publish(MessageRemoved(conversation_id=conversation_id, message_id=message_id))

    async def fetch_missing(self, conversation_id: ConversationId) -> None:
        await self._runner(conversation_id).do(
            lambda session, now_ms: session.retrieve(now_ms=now_ms)
        )

    async def latest_page(self, conversation_id: ConversationId, *, limit: int = 100) -> Page:
        runner = self._runner(conversation_id)
        page = await self._storage.run(self._store.latest_page, conversation_id, limit=limit)
        return page_view(page, runner.members, self._groups.own_id)

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> Page:
        runner = self._runner(conversation_id)
        page = await self._storage.run(
            self._store.page_before, conversation_id, position, limit=limit
        )
        return page_view(page, runner.members, self._groups.own_id)

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> Page:
        runner = self._runner(conversation_id)
        page = await self._storage.run(
            self._store.page_after, conversation_id, position, limit=limit
        )
        return page_view(page, runner.members, self._groups.own_id)

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> Page:
        older = await self.page_before(conversation_id, position, limit=max(limit // 2, 1))
        after = older.messages[-1].position if older.messages else BEFORE_ALL
        newer = await self.page_after(conversation_id, after, limit=limit - limit // 2)
        both = older.messages + newer.messages
        beyond = max(len(both) - limit, 0)  # With a limit of 1 the older one has no room.
        return Page(
            messages=both[beyond:],
            has_older=older.older_count + beyond > 0,
            has_newer=newer.has_newer,
            older_count=older.older_count + beyond,
            total=newer.total,
        )

    async def gap(self, conversation_id: ConversationId) -> GapView | None:
        return self._runner(conversation_id).gap()

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        return self._runner(conversation_id).held()

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        runner = self._runner(conversation_id)
        entries = await self._storage.run(self._store.holders, conversation_id, message_id)
        return holder_views(entries, runner.members, self._groups.own_id)

    # --- state --------------------------------------------------------------------------------

    def connection(self) -> ConnectionView:
        if self._transport is None:
            return ConnectionView(
                level=ConnectionLevel.OFFLINE,
                peers=0,
                reason="Not started yet.",
                bytes_in=0,
                bytes_out=0,
            )
        return _connection_view(self._transport.status())

    def counters(self) -> Mapping[str, int]:
        return self._own_counters()

    def _own_counters(self) -> Mapping[str, int]:
        merged = dict(self._counters.snapshot())
        if self._transport is not None:
            merged.update(self._transport.counters())
        return merged

    # --- what must be there -------------------------------------------------------------------

    @property
    def _store(self) -> ProfileStore:
        if self._opened is None:
            raise LocalProtocolError("the engine was not started")
        return self._opened.store

    @property
    def _groups(self) -> GroupBook:
        if self._book is None:
            raise LocalProtocolError("there is no identity yet")
        return self._book

    @property
    def _net(self) -> Transport:
        if self._transport is None:
            raise LocalProtocolError("there is no identity yet")
        return self._transport

    def _one(self, conversation_id: ConversationId) -> _Running:
        try:
            return self._running[conversation_id]
        except KeyError:
            raise LocalProtocolError(NO_CONVERSATION) from None

    def _runner(self, conversation_id: ConversationId) -> ConversationRunner:
        return self._one(conversation_id).runner
