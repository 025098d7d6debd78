"""Implements ``ChatEngine`` for one profile: storage, network and one runner per conversation.

``start`` runs it on the calling asyncio loop: the window's qasync loop or a plain one (tests, node,
headless).  It owns the storage thread, the transport and all tasks on them, and ends them in
``stop``.  Which transport and which store it uses is injected.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.errors import ChatError, LocalProtocolError
from engine.core.ids import (
    ConversationId,
    InstanceId,
    ParticipantId,
)
from engine.core.ports import ProfileStore, SavePicture, SaveProfile, SaveValue
from engine.core.problems import ConnectionReason
from engine.core.records import GroupRecord, ProfileRecord
from engine.crypto.identity import Identity
from engine.delivery.recorder import Recorder
from engine.events import (
    ConnectionChanged,
    ConnectionLevel,
    ConnectionView,
    ConversationView,
    DatabaseDamaged,
    EngineEvent,
    IdentityView,
    Listener,
    NoticeLevel,
    NoticeRaised,
    OwnClockView,
)
from engine.network.libp2p.ports import JudgeCopy
from engine.network.transport import Transport, TransportLevel, TransportStatus
from engine.network_views import NetworkView
from engine.persistence.storage_thread import StorageThread
from engine.runtime.clock_watch import ClockWatch
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversation_snapshots import ConversationSnapshots
from engine.runtime.conversations import Conversations
from engine.runtime.dependencies import NO_IDENTITY, EngineDependencies, OpenedStore, SavedTransport
from engine.runtime.event_bus import EventBus
from engine.runtime.event_publisher import LONGEST_MUTE_MS
from engine.runtime.fault_bench import FaultBench
from engine.runtime.files.book import FileBook
from engine.runtime.files.service import Files
from engine.runtime.governing.commands import Governing
from engine.runtime.groups import Groups
from engine.runtime.history.dependencies import HistoryDependencies
from engine.runtime.history.service import HistoryService
from engine.runtime.input_checks import require_usable_picture, usable_name
from engine.runtime.inspection.copies import CopyNotes
from engine.runtime.inspection.service import Inspection
from engine.runtime.maintenance import Maintenance, connection_view
from engine.runtime.mute_ends import MuteEnds
from engine.runtime.network_look import network_view
from engine.runtime.open_channels import OpenChannels
from engine.runtime.own_clock import OwnClock
from engine.runtime.people import UNTOLD_KEY, People
from engine.runtime.profile_services import ProfileServices, ProfileStart, make_profile_services
from engine.runtime.recorded_queries import Recording
from engine.runtime.runner_context import RunnerContext
from engine.runtime.search import Search
from engine.runtime.timeline import Timeline

__all__ = ["Engine", "EngineDependencies", "OpenedStore", "SavedTransport"]

R = TypeVar("R")

PORT_KEY = "network.port"
NS_PER_MS = 1_000_000


class Engine:
    """One profile's chats.  ``engine.api.ChatEngine`` describes its methods."""

    def __init__(self, parts: EngineDependencies) -> None:
        self._parts = parts
        self._storage = StorageThread()
        self._storage.damage_met = self._tell_of_damage
        self._counters = Counters()
        self._event_bus = EventBus(self._counters)
        self._conversations = Conversations(publish=self._publish, counters=self._counters)
        self._clock = OwnClock(parts.now_ms, parts.counted_ms)
        self._clock_watch = ClockWatch(
            self._clock, publish=self._publish, moved=self._conversations.clock_moved
        )
        self._maintenance = Maintenance(
            storage=self._storage,
            counters=self._counters,
            publish=self._publish,
            now_ms=self._clock.clock_ms,
        )
        self._recording = Recording(parts.recorder)
        self._snapshots = ConversationSnapshots(
            self._recording,
            self._conversations,
            publish=self._publish,
            own=self._maintenance.own,
        )
        self._opened: OpenedStore | None = None
        self._profile: ProfileRecord | None = None
        self._picture = b""
        self._transport: Transport | None = None
        self._history: HistoryService | None = None
        self._services: ProfileServices | None = None
        self._online = False
        self._files = FileBook()
        self._fault_bench = FaultBench(
            self._clock,
            counters=self._counters,
            publish=self._publish,
            knows=self._conversations.__contains__,
            knows_member=self._knows_member,
            cut_off=self._cut_off,
            judge_peer_copies_by=self._judge_peer_copies_by,
            random_unit=parts.entropy.random_unit,
            recording=self._recording,
        )
        self._fault_bench.changed = self._faults_changed
        self._mute_ends = MuteEnds(self._conversations, self._clock, self._counters)

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the profile and, if it has an identity, go online.

        Raises StorageError, and TransportError if the port that the user set is not available.
        """
        self._opened = await self._storage.run(self._parts.open_store)
        await self._clock_watch.load(self._store, self._storage)
        self._maintenance.own(self._clock_watch.run(self._store, self._storage))
        self._profile = await self._storage.run(self._opened.store.profile)
        if self._profile is not None:
            self._picture = await self._storage.run(self._opened.store.picture)
            await self._bring_up(self._profile)

    async def stop(self) -> None:
        """Stop everything; confirmed writes are saved already.

        Callers that still wait get an error saying that the outcome is not known.
        """
        self._snapshots.stopping()
        await self._fault_bench.stop_bench()
        if self._history is not None:
            await self._history.stop()
        await self._conversations.stop()
        if self._services is not None:
            await self._services.files.stop()
            await self._services.search.stop()
        await self._maintenance.stop()
        if self._transport is not None:
            await self._transport.stop()
        await self._snapshots.stop()
        if self._opened is not None:
            with contextlib.suppress(ChatError):
                await self._clock_watch.save(self._store, self._storage)
                await self._maintenance.save_counters(self._store, self._transport)
            await self._storage.close(self._opened.store.close)
        else:
            await self._storage.close()

    async def _bring_up(self, profile: ProfileRecord) -> None:
        identity = Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)
        self._snapshots.know_owner(identity.participant_id)
        store, transport = self._store, await self._start_transport(profile)
        history = await self._start_history(store, transport)
        context = self._runner_context(identity, store, transport, history)
        self._services = services = make_profile_services(
            self._profile_start(profile, identity),
            self._conversations,
            context,
            history,
            self._maintenance,
        )
        is_untold = await self._storage.run(store.value, UNTOLD_KEY)
        # The last to wait for: what the conversations begin with would delay the window's picture.
        await services.load()
        services.files.start()
        services.search.start()
        self._snapshots.run(context)
        self._maintenance.own(services.inbox.run())
        self._maintenance.own(services.joins.run())
        self._maintenance.own(self._mute_ends.run())
        if is_untold:
            self._maintenance.own(services.people.tell_untold())
        self._maintenance.begin(store, transport)

    def _runner_context(
        self,
        identity: Identity,
        store: ProfileStore,
        transport: Transport,
        history: HistoryService,
    ) -> RunnerContext:
        return RunnerContext(
            store=store,
            storage=self._storage,
            transport=transport,
            own_id=identity.participant_id,
            clock=self._clock,
            publish=self._publish,
            counters=self._counters,
            copies=CopyNotes(self._clock.steady_ms),
            faults=self._fault_bench,
            recording=self._recording,
            mentions_when_muted=self._parts.mentions_when_muted,
            files=self._files,
            stores_reachable=history.reachable,
            ask_store=history.ask,
            hear_echo=self._clock_watch.hear,
            tell_governance=self._tell_governance,
        )

    def _profile_start(self, profile: ProfileRecord, identity: Identity) -> ProfileStart:
        parts = self._parts
        return ProfileStart(
            identity=identity,
            profile=profile,
            picture=self._picture,
            entropy=parts.entropy,
            online=lambda: self._online,
            service_nodes=parts.service_nodes,
            flood=parts.flood,
            announces_presence=parts.announces_presence,
            mvds=parts.mvds,
            pairs_by_olm=parts.pairs_by_olm,
            files=parts.files,
        )

    async def _start_transport(self, profile: ProfileRecord) -> Transport:
        store = self._store
        remembered = await self._storage.run(store.value, PORT_KEY)
        transport = self._parts.make_transport(
            SavedTransport(
                network_key=profile.network_key,
                remembered_port=int(remembered) if remembered else None,
                now_ns=lambda: self._clock.clock_ms() * NS_PER_MS,
            )
        )
        self._transport = transport
        transport.on_status(self._status_changed)
        transport.on_peer_address(lambda address: self._maintenance.remember(store, address))
        await transport.start()
        known = await self._storage.run(store.node_addresses)
        transport.add_peers([*self._parts.peers, *known])
        port = self._parts.port_of(transport)
        if port is not None and str(port) != remembered:
            await self._storage.run(store.apply, [SaveValue(key=PORT_KEY, value=str(port))])
        return transport

    async def _start_history(self, store: ProfileStore, transport: Transport) -> HistoryService:
        history = HistoryService(
            HistoryDependencies(
                network=transport.stores(),
                store=store,
                storage=self._storage,
                random_unit=self._parts.entropy.random_unit,
                publish=self._publish,
                counters=self._counters,
                online=self._can_fetch,
                config=self._parts.history,
                clock=self._clock,
                recording=self._recording,
                opening_command=self._parts.opening_command,
            )
        )
        self._history = self._conversations.history = history
        await history.start()
        return history

    # --- events -------------------------------------------------------------------------------

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        self._snapshots.greet(listener)
        return self._event_bus.subscribe(listener)

    def _tell_of_damage(self) -> None:
        notice = NoticeRaised(key="damage", level=NoticeLevel.ERROR, content=DatabaseDamaged())
        self._publish(notice)

    def _publish(self, event: EngineEvent) -> None:
        shown = self._files.event_as_shown(event)
        self._event_bus.publish(shown)
        if self._services is not None:
            self._services.files.hear(shown)
            self._services.search.hear(shown)

    def _tell_governance(self, conversation_id: ConversationId) -> None:
        if self._services is not None:
            self._services.governing.tell(conversation_id)

    def _status_changed(self, status: TransportStatus) -> None:
        online = status.level is not TransportLevel.OFFLINE
        if online != self._online:
            self._online = online
            self._conversations.connectivity_changed(online=online)
            if self._history is not None:
                self._history.online_changed()
        if self._services is not None:
            self._services.joins.peers_changed(status.peers)
        self._snapshots.status_changed(status, online=online)
        self._publish(ConnectionChanged(connection=connection_view(status)))

    def _knows_member(self, conversation_id: ConversationId, participant_id: ParticipantId) -> bool:
        runner = self._conversations.runner(conversation_id)
        return isinstance(runner.record, GroupRecord) and participant_id in runner.members

    def _cut_off(self, peers: Collection[str]) -> None:
        if self._transport is not None:
            self._transport.cut_off(peers)

    def _judge_peer_copies_by(self, judge: JudgeCopy | None) -> None:
        if self._transport is not None:
            self._transport.judge_copies_by(judge)

    def _can_fetch(self) -> bool:
        """From Stores: not while the network is cut off on purpose."""
        return self._online and not self._fault_bench.cuts_off_everything

    def _faults_changed(self) -> None:
        self._clock_watch.look()
        if self._history is not None:
            self._history.online_changed()

    # --- facets -------------------------------------------------------------------------------

    @property
    def groups(self) -> Groups:
        return self._started_services.groups

    @property
    def governing(self) -> Governing:
        return self._started_services.governing

    @property
    def open_channels(self) -> OpenChannels:
        return self._started_services.open_channels

    @property
    def people(self) -> People:
        return self._started_services.people

    @property
    def timeline(self) -> Timeline:
        return self._started_services.timeline

    @property
    def files(self) -> Files:
        return self._started_services.files

    @property
    def history(self) -> HistoryService:
        return self._started_services.history

    @property
    def search(self) -> Search:
        return self._started_services.search

    @property
    def faults(self) -> FaultBench:
        return self._fault_bench

    @property
    def inspection(self) -> Inspection:
        return self._started_services.inspection

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
            picture=self._picture,
        )

    async def create_identity(self, name: str) -> IdentityView:
        async with self._conversations.turn:
            if self._profile is not None:
                raise LocalProtocolError("this profile has an identity already")
            random_bytes = self._parts.entropy.random_bytes
            identity = Identity.generate(random_bytes)
            profile = ProfileRecord(
                name=usable_name(name),
                signing_key=identity.signing_key,
                encryption_key=identity.encryption_key,
                network_key=random_bytes(32),
                instance_id=InstanceId(random_bytes(16)),
                created_ms=self._clock.clock_ms(),
            )
            await self._storage.run(self._store.apply, [SaveProfile(profile=profile)])
            self._profile = profile
            await self._bring_up(profile)
        return self._identity()

    def _identity(self) -> IdentityView:
        identity = self.identity()
        if identity is None:
            raise LocalProtocolError(NO_IDENTITY)
        return identity

    async def set_profile(self, *, name: str, picture: bytes) -> IdentityView:
        usable = usable_name(name)
        require_usable_picture(picture)
        services = self._started_services
        async with self._conversations.turn:
            if self._profile is None:
                raise LocalProtocolError(NO_IDENTITY)
            profile = replace(self._profile, name=usable)
            writes = (
                SaveProfile(profile=profile),
                SavePicture(picture=picture),
                SaveValue(key=UNTOLD_KEY, value="1"),
            )
            await self._storage.run(self._store.apply, writes)
            self._profile, self._picture = profile, picture
            services.change_profile(profile, picture)
            await services.people.tell_profile()
        return self._identity()

    # --- conversations ------------------------------------------------------------------------

    async def conversations(self) -> Sequence[ConversationView]:
        return await self._conversations.views()

    async def loaded(self) -> None:
        """Wait until all conversations are loaded, or reading them first failed."""
        await self._conversations.loaded()

    async def set_muted(
        self, conversation_id: ConversationId, *, muted: bool, for_ms: int | None = None
    ) -> None:
        if for_ms is not None and not 0 < for_ms <= LONGEST_MUTE_MS:
            raise LocalProtocolError("muted for no time, or for more than a day")
        await self.runner(conversation_id).set_muted(muted=muted, for_ms=for_ms)
        self._mute_ends.changed()

    def runner(self, conversation_id: ConversationId) -> ConversationRunner:
        """What is below the facets, for programs that drive an engine step by step.

        Raises LocalProtocolError if there is no such conversation.
        """
        return self._conversations.runner(conversation_id)

    # --- clock --------------------------------------------------------------------------------

    def own_clock(self) -> OwnClockView | None:
        return self._clock_watch.view()

    async def set_clock_offset(self, offset_ms: int | None) -> None:
        await self._clock_watch.set_offset(offset_ms, self._store, self._storage)

    # --- state --------------------------------------------------------------------------------

    def connection(self) -> ConnectionView:
        if self._transport is None:
            return ConnectionView(
                level=ConnectionLevel.OFFLINE,
                peers=0,
                reason=ConnectionReason.NOT_STARTED,
                bytes_in=0,
                bytes_out=0,
            )
        return connection_view(self._transport.status())

    def counters(self) -> Mapping[str, int]:
        return self._maintenance.all_counters(self._transport)

    def network(self) -> NetworkView:
        return network_view(
            self._transport,
            self._history,
            self._conversations,
            connection=self.connection(),
            clock=self._clock,
            own_id=self._services.context.own_id if self._services else ParticipantId(""),
        )

    async def record(self, recorder: Recorder | None) -> None:
        """Record deliveries from now on, by another recorder than before or by none.

        Returns once what was recorded before is on the disk.
        """
        await self._snapshots.switch(recorder)
        self._fault_bench.recording_changed()

    # --- what the program keeps beside the conversations -----------------------------------------

    async def value(self, key: str) -> str | None:
        return await self._storage.run(self._store.value, key)

    async def save_value(self, key: str, value: str) -> None:
        """Returns once it is durable."""
        await self._storage.run(self._store.apply, [SaveValue(key=key, value=value)])

    async def alone_with_storage(self, work: Callable[[], R]) -> R:
        """Call ``work`` where the profile is written: what comes meanwhile is saved after it."""
        return await self._storage.run(work)

    # --- preconditions ------------------------------------------------------------------------

    @property
    def _store(self) -> ProfileStore:
        if self._opened is None:
            raise LocalProtocolError("the engine was not started")
        return self._opened.store

    @property
    def _started_services(self) -> ProfileServices:
        if self._services is None:
            raise LocalProtocolError(NO_IDENTITY)
        return self._services
