"""A whole sealed session as a participant of the simulated network: the same class the app runs.

Identity, signatures, seals, membership, SDS, content and a store, with everything random drawn from
the seed and the time handed in, so that a run is the same bit for bit.  Only the disk is a model
(SQLite in memory), and writes are applied before anything is sent, as the real runner does.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from engine.codec.envelope import decode_signed_part
from engine.codec.sds import decode_message
from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.admin_log.acts import Act
from engine.core.content import Attachment, Body, Text
from engine.core.counters import Counters
from engine.core.emoji import without_selectors
from engine.core.entropy import Entropy
from engine.core.faults import SeededRandom
from engine.core.governed import Admission
from engine.core.ids import HolderSource, InstanceId, MessageId, ParticipantId, PubsubTopic, UnixMs
from engine.core.ports import ApplyChannel, StoreWrite
from engine.core.records import FileRecord, GroupRecord, ProfileRecord
from engine.core.sds.inputs import ConnectivityChanged, DeadlineReached, ResendRequested
from engine.core.sds.vocabulary import (
    AppendToLog,
    MissingState,
    PutHolder,
    PutMissing,
    SendPurpose,
    Write,
)
from engine.crypto.identity import Identity
from engine.crypto.links import parse_invite
from engine.delivery.contract import Protocol
from engine.delivery.row_builder import Copy
from engine.network.waku.message_hash import message_hash
from engine.persistence.rules import MAX_PAGE_ROWS, SAID_KINDS
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.group.factory import GroupFactory
from engine.session.group.session import GroupSession
from engine.session.inputs import (
    CopiesAccepted,
    Govern,
    HoldsFiles,
    MessageArrived,
    Say,
    TakeAdmission,
)
from engine.session.loading import read
from engine.session.transitions import (
    Load,
    LoadEntries,
    LoadForRepair,
    LoadToSayAgain,
    LoadToShow,
    LoadWritten,
    Publish,
    SessionTransition,
)
from engine.sim.judge import Observation, ShownFile, ShownMessage
from engine.sim.network import Outgoing
from engine.sim.recording import SIM_KEY, SimRecording

_TOPIC = PubsubTopic("/waku/2/rs/42/0")
MAX_LOGGED = 1_000_000
"""Messages of a simulated group; all of them stand in memory anyway."""


def seeded_bytes(seed: int, name: str) -> Callable[[int], bytes]:
    """A stream of bytes that is the same for a seed on every machine.  Not for real secrets."""
    counter = 0

    def take(count: int) -> bytes:
        nonlocal counter
        blocks = b""
        while len(blocks) < count:
            blocks += sha256(f"{seed}/{name}/{counter}".encode()).digest()
            counter += 1
        return blocks[:count]

    return take


class SessionParticipant:
    """One person with a profile in memory and, once it began or joined one, a group."""

    def __init__(self, name: str, *, seed: int, now_ms: UnixMs) -> None:
        self.name = name
        self.store = SqliteProfileStore.in_memory()
        self.counters = Counters()
        self.sends: dict[SendPurpose, int] = {}
        self.online = True
        self._now_ms = now_ms
        random_bytes = seeded_bytes(seed, name)
        self.identity = identity = Identity.generate(random_bytes)
        self._book = GroupFactory(
            store=self.store,
            identity=identity,
            profile=ProfileRecord(
                name=name,
                signing_key=identity.signing_key,
                encryption_key=identity.encryption_key,
                network_key=random_bytes(32),
                instance_id=InstanceId(random_bytes(16)),
                created_ms=now_ms,
            ),
            entropy=Entropy(random_bytes=random_bytes, random_unit=SeededRandom(seed, name)),
            counters=self.counters,
            now_ms=lambda: self._now_ms,
            online=lambda: self.online,
        )
        self.seen = Observation(participant_id=identity.participant_id)
        self.recording: SimRecording | None = None
        self._group: GroupRecord | None = None
        self._session: GroupSession | None = None

    @property
    def participant_id(self) -> ParticipantId:
        return self._book.own_id

    @property
    def session(self) -> GroupSession:
        if self._session is None:
            raise LookupError(f"{self.name} is in no group")
        return self._session

    def record(self, run: str, *, key: bytes = SIM_KEY, now_ms: UnixMs) -> None:
        """From now on.  Raises ConfigError for an invalid key."""
        self.recording = SimRecording(self.participant_id, protocol=Protocol.SDS, run=run, key=key)
        self.recording.begin(now_ms)
        self.recording.online(now_ms, online=self.online)

    def finish_recording(self, *, now_ms: UnixMs) -> None:
        """The group's final order and members."""
        if self.recording is None or self._group is None:
            return
        logged = self.store.logged(self._group.conversation_id, None, limit=MAX_LOGGED)
        members = self.session.members().values()
        stays = ((one.participant_id, one.joined_ms, one.left_ms) for one in members)
        self.recording.stands(now_ms, logged, stays)
        self.recording.end(now_ms)

    # --- what a user does ---

    def create_group(self, name: str, *, now_ms: UnixMs) -> list[Outgoing]:
        self._now_ms = now_ms
        return self._begin(*self._book.new_group(name))

    def invite_link(self) -> str:
        if self._group is None:
            raise LookupError(f"{self.name} is in no group")
        return self._book.invite_link(self._group, ())

    def join_group(self, link: str, *, now_ms: UnixMs) -> list[Outgoing]:
        self._now_ms = now_ms
        return self._begin(*self._book.joined_group(parse_invite(link)))

    def create_governed_group(self, name: str, *, now_ms: UnixMs) -> list[Outgoing]:
        self._now_ms = now_ms
        return self._begin(*self._book.new_governed_group(name))

    def let_in(self, admission: Admission, *, now_ms: UnixMs) -> list[Outgoing]:
        """Somebody let us into their governed group, for the first time or again."""
        self._now_ms = now_ms
        if self._group is not None:
            return self.perform(self.session.handle(TakeAdmission(admission), now_ms=now_ms))
        return self._begin(*self._book.admitted_group(admission))

    def govern(self, act: Act, *, now_ms: UnixMs) -> list[Outgoing]:
        self._now_ms = now_ms
        return self.perform(self.session.handle(Govern(act), now_ms=now_ms))

    def say(self, body: Body, *, now_ms: UnixMs) -> list[Outgoing]:
        self._now_ms = now_ms
        transition = self.session.handle(Say(body), now_ms=now_ms)
        if isinstance(body, Text | Attachment) and transition.message_id is not None:
            self.seen.sent.append(transition.message_id)
        return self.perform(transition)

    def hold_files(
        self,
        message_ids: Sequence[MessageId],
        *,
        let_go: Sequence[MessageId] = (),
        now_ms: UnixMs,
    ) -> list[Outgoing]:
        """These are here as a whole, and ``let_go`` no more."""
        self._now_ms = now_ms
        held = HoldsFiles(tuple(message_ids), tuple(let_go))
        return self.perform(self.session.handle(held, now_ms=now_ms))

    def send_again(self, message_id: MessageId, *, now_ms: UnixMs) -> list[Outgoing]:
        """The user wants one of ours to be sent again."""
        self._now_ms = now_ms
        return self.perform(
            self.session.handle(ResendRequested(message_id=message_id), now_ms=now_ms)
        )

    def set_online(self, online: bool, *, now_ms: UnixMs) -> list[Outgoing]:
        if self.recording is not None and online != self.online:
            self.recording.online(now_ms, online=online)
        self._now_ms, self.online = now_ms, online
        return self.perform(self.session.handle(ConnectivityChanged(online=online), now_ms=now_ms))

    def restart(self, *, now_ms: UnixMs) -> None:
        """The process died; only what was written remains."""
        self._now_ms = now_ms
        if self._group is not None:
            group_id = self._group.conversation_id
            self._group = next(
                one for one in self.store.groups() if one.conversation_id == group_id
            )
            self._session = self._book.load(self._group)

    def rename(self, name: str) -> None:
        """The group is told when it is due."""
        self._book.profile = replace(self._book.profile, name=name)

    # --- SimParticipant ---

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        self._now_ms = now_ms
        message = decode_waku_message(payload)
        if message.content_topic != self.session.content_topic:
            return []
        return self.perform(
            self.session.handle(
                MessageArrived(message, message_hash(_TOPIC, message)), now_ms=now_ms
            )
        )

    def advance(self, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        self._now_ms = now_ms
        return self.perform(self.session.handle(DeadlineReached(), now_ms=now_ms))

    def next_deadline(self) -> UnixMs | None:
        return self.session.next_deadline() if self._session else None

    def observation(self) -> Observation:
        """The judge's view of this participant."""
        log = self.session.channel.snapshot().log
        self.seen.log = [entry.position.message_id for entry in log]
        self.seen.retransmissions = self.sends.get(SendPurpose.RETRANSMISSION, 0)
        self.seen.shown = self._shown()
        return self.seen

    def _shown(self) -> list[ShownMessage]:
        """The texts of the timeline that have their place."""
        if self._group is None:
            return []
        conversation_id, store = self._group.conversation_id, self.store
        page = store.latest_page(conversation_id, limit=MAX_PAGE_ROWS)
        return [
            ShownMessage(
                message_id=(message_id := stored.record.position.message_id),
                text=stored.record.text,
                is_edited=stored.edited_ms is not None,
                retracted=stored.retracted,
                reactions=()
                if not stored.reactions
                else tuple(
                    sorted(
                        (without_selectors(one.emoji), one.participant_id)
                        for one in store.reactors(conversation_id, message_id)
                    )
                ),
                quoted_id=stored.record.reply_to,
                quoted_text=stored.quote.text if stored.quote else None,
                file=_shown_file(stored.record.file),
            )
            for stored in page.messages
            if stored.record.kind in SAID_KINDS and not stored.record.waiting
        ]

    def holders_of_files(self) -> dict[MessageId, frozenset[ParticipantId]]:
        """Of each file that is shown: who says that they have all of it, and did not send it."""
        if self._group is None:
            return {}
        page = self.store.latest_page(self._group.conversation_id, limit=MAX_PAGE_ROWS)
        return {
            record.position.message_id: frozenset(transfer.holders) - {record.sender_id}
            for record in (stored.record for stored in page.messages)
            if record.file is not None and (transfer := record.file.transfer) is not None
        }

    # --- the runner's part ---

    def _begin(
        self, group: GroupRecord, writes: Sequence[StoreWrite], opening: Sequence[Body]
    ) -> list[Outgoing]:
        self.store.apply(writes)
        self._group = group
        self._session = self._book.load(group)
        return [out for body in opening for out in self.say(body, now_ms=self._now_ms)]

    def perform(self, transition: SessionTransition) -> list[Outgoing]:
        """Write, then return what goes out."""
        if transition.writes:
            self.store.apply(transition.writes)
        for write in transition.writes:
            if isinstance(write, ApplyChannel):
                for channel_write in write.writes:
                    self._watch(channel_write)
        if self.recording is not None and transition.steps:
            self.recording.took(self._now_ms, transition.steps, transition.writes)
        outgoing: list[Outgoing] = []
        for send in transition.sends:
            if isinstance(send, Publish):
                outgoing.append(self._outgoing(send))
            elif isinstance(
                send, LoadForRepair | LoadToSayAgain | LoadToShow | LoadWritten | LoadEntries
            ):
                outgoing += self._load(send)
        return outgoing

    def _load(self, load: Load) -> list[Outgoing]:
        loaded = self._group and read(self.store, self._group.conversation_id, load)
        if not loaded:
            return []
        return self.perform(self.session.handle(loaded, now_ms=self._now_ms))

    def _outgoing(self, publish: Publish) -> Outgoing:
        self.sends[publish.purpose] = self.sends.get(publish.purpose, 0) + 1
        message_ids, waku_hash = publish.message_ids, message_hash(_TOPIC, publish.message)
        if self.recording is not None:
            size = len(publish.message.payload)
            copy = Copy(publish.purpose, message_ids, publish.repairs, waku_hash, size, None)
            self.recording.handed_over(self._now_ms, copy)

        def accepted(peers: int, now_ms: UnixMs) -> list[Outgoing]:
            self._now_ms = now_ms
            if not message_ids:
                return []
            return self.perform(
                self.session.handle(
                    CopiesAccepted(
                        message_ids=tuple(message_ids), peers=peers, waku_hash=waku_hash
                    ),
                    now_ms=now_ms,
                )
            )

        return Outgoing(
            payload=encode_waku_message(publish.message),
            ephemeral=publish.purpose is SendPurpose.EPHEMERAL,
            accepted=accepted,
        )

    def _watch(self, write: Write) -> None:
        """Report what became durable to the judge: a restart would find it."""
        match write:
            case AppendToLog(entry=entry, raw=raw):
                message = decode_message(decode_signed_part(raw).sds_message)
                history = tuple(dependency.message_id for dependency in message.causal_history)
                self.seen.deliveries.append((entry.position.message_id, history))
            case PutMissing(entry=missing) if missing.state is MissingState.LOST:
                self.seen.lost.add(missing.entry.message_id)
            case PutHolder(entry=holder) if holder.source is not HolderSource.BLOOM:
                certain = self.seen.certain_holders.setdefault(holder.message_id, set())
                certain.add(holder.participant_id)
            case _:
                pass


def _shown_file(file: FileRecord | None) -> ShownFile | None:
    if file is None or file.transfer is None:
        return None
    return ShownFile(name=file.name, size=file.size, root=file.transfer.manifest.root)
