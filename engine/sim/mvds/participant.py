"""An MVDS node as a participant of a simulation: the real machine and codec, a store model.

It acts like the real runner: writes in one transaction, then sends, then events; the store supplies
the records that the node requests.  A crash may come before the writes, or between them and the
sends.  Deliveries are written in the same transaction, like rows of a conversation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from engine.codec.mvds import decode_payload, encode_payload
from engine.codec.mvds_id import message_id_of, mvds_id_of
from engine.core.errors import RemoteProtocolError
from engine.core.faults import SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.node import MvdsNode
from engine.core.mvds.vocabulary import (
    Acknowledged,
    AppendMessage,
    GivenUp,
    GroupId,
    Input,
    LoadRecords,
    MvdsDelivered,
    MvdsId,
    MvdsMessage,
    MvdsTransition,
    Payload,
    PayloadReceived,
    SendPayload,
)
from engine.core.sds.vocabulary import SendPurpose
from engine.delivery.contract import Protocol
from engine.delivery.steps import MvdsStep
from engine.sim.mvds.store import MvdsStore
from engine.sim.recording import SimRecording

ALL: Final = 2**31
_SECOND_MS: Final = 1_000


class Fate(Enum):
    """What happens to the process within one step."""

    FINE = auto()
    UNWRITTEN = auto()
    """It dies before the transaction."""
    UNSENT = auto()
    """It dies after the transaction, before anything is sent."""


class Parcel(Struct, frozen=True):
    """A payload in transit."""

    to: ParticipantId
    data: bytes
    copies: int
    """How many whole messages it contains."""


class MvdsParticipant:
    """One participant with its disk, its machine, and an observer's record of it."""

    def __init__(  # noqa: PLR0913 - what a simulation decides
        self,
        own_id: ParticipantId,
        *,
        groups: Mapping[GroupId, frozenset[ParticipantId]],
        config: MvdsConfig,
        seed: int,
        now_ms: UnixMs,
        load_limit: int = ALL,
    ) -> None:
        self.own_id = own_id
        self.store = MvdsStore()
        self.online = True
        self.appended: dict[MvdsId, tuple[ParticipantId, ...]] = {}
        self.appended_ms: dict[MvdsId, UnixMs] = {}
        self.delivered: Counter[MvdsId] = Counter()
        self.delivered_ms: dict[MvdsId, UnixMs] = {}
        self.acknowledged: set[tuple[ParticipantId, MvdsId]] = set()
        self.acknowledged_ms: dict[tuple[ParticipantId, MvdsId], UnixMs] = {}
        self.given_up: set[tuple[ParticipantId, MvdsId]] = set()
        self.refused: Counter[str] = Counter()
        self.hollow = 0
        """Payloads that are empty, or lack the body of a message."""
        self.recording: SimRecording | None = None
        self.groups = groups
        self._config = config
        self._random = SeededRandom(seed, own_id)
        self._load_limit = load_limit
        self._serial = 0
        self.node = self._build(now_ms)

    def _build(self, now_ms: UnixMs) -> MvdsNode:
        return MvdsNode(
            self.own_id,
            config=self._config,
            id_of=mvds_id_of,
            groups=self.groups,
            random_unit=self._random,
            state=self.store.state(limit=self._load_limit),
            online=self.online,
            now_ms=now_ms,
        )

    # --- what the user and the environment do ---

    def append(
        self,
        group_id: GroupId,
        peer_ids: Iterable[ParticipantId],
        size: int,
        *,
        now_ms: UnixMs,
        fate: Fate = Fate.FINE,
    ) -> list[Parcel]:
        """Send a message of ``size`` bytes; the serial number is the nonce that bodies need."""
        self._serial += 1
        text = f"{self.own_id}/{self._serial}/".encode()
        message = MvdsMessage(group_id, now_ms // _SECOND_MS, text.ljust(size, b"."))
        input_ = AppendMessage(message=message, peer_ids=tuple(peer_ids))
        parcels = self.handle(input_, now_ms=now_ms, fate=fate)
        if fate is not Fate.UNWRITTEN:
            message_id = mvds_id_of(message)
            self.appended[message_id] = input_.peer_ids
            self.appended_ms[message_id] = now_ms
        return parcels

    def receive(
        self, sender: ParticipantId, data: bytes, *, now_ms: UnixMs, fate: Fate = Fate.FINE
    ) -> list[Parcel]:
        if self.recording is not None:
            self.recording.arrived(now_ms, data)
        try:
            payload, generation = decode_payload(data)
            received = PayloadReceived(peer_id=sender, payload=payload, generation=generation)
            return self.handle(received, now_ms=now_ms, fate=fate)
        except RemoteProtocolError as error:
            self.refused[error.reason] += 1
            if self.recording is not None:
                self.recording.refused(now_ms, error.reason)
            return []

    def restart(self, *, now_ms: UnixMs) -> None:
        """The process died; only what was written remains."""
        self.node = self._build(now_ms)
        if self.recording is not None:
            self.recording.begin(now_ms)

    # --- the runner's part ---

    def handle(self, input_: Input, *, now_ms: UnixMs, fate: Fate = Fate.FINE) -> list[Parcel]:
        transition = self.node.handle(input_, now_ms=now_ms)
        if fate is Fate.UNWRITTEN:
            self.restart(now_ms=now_ms)
            return []
        self._write(transition, now_ms)
        if self.recording is not None:
            self.recording.stepped(MvdsStep(now_ms, input_, transition))
        if fate is Fate.UNSENT:
            self.restart(now_ms=now_ms)
            return []
        parcels = []
        for send in transition.sends:
            match send:
                case SendPayload():
                    parcels.append(self._parcel(send, now_ms))
                case LoadRecords():
                    parcels += self.handle(self.store.load(send), now_ms=now_ms)
        return parcels

    def _write(self, transition: MvdsTransition, now_ms: UnixMs) -> None:
        self.store.apply(transition.writes)
        for event in transition.events:
            match event:
                case MvdsDelivered(message_id=message_id):
                    self.delivered[message_id] += 1
                    self.delivered_ms.setdefault(message_id, now_ms)
                case Acknowledged(peer_id=peer_id, message_id=message_id):
                    self.acknowledged.add((peer_id, message_id))
                    self.acknowledged_ms.setdefault((peer_id, message_id), now_ms)
                case GivenUp(peer_id=peer_id, message_id=message_id):
                    self.given_up.add((peer_id, message_id))

    def _parcel(self, send: SendPayload, now_ms: UnixMs) -> Parcel:
        bodies = [self.store.bodies.get(message_id) for message_id in send.message_ids]
        messages = tuple(body for body in bodies if body is not None)
        payload = Payload(send.acks, send.offers, send.requests, messages)
        self.hollow += len(messages) < len(bodies) or payload == Payload()
        data = encode_payload(payload, send.generation)
        if self.recording is not None:
            purpose = SendPurpose.CONTENT if messages else SendPurpose.SYNC
            ids = tuple(message_id_of(mvds_id_of(message)) for message in messages)
            self.recording.published(now_ms, purpose, data, message_ids=ids, to=send.peer_id)
        return Parcel(send.peer_id, data, len(messages))

    # --- recording ---

    def record(self, run: str, *, now_ms: UnixMs) -> SimRecording:
        """Record from now on; call it before any message is sent."""
        self.recording = SimRecording(self.own_id, protocol=Protocol.MVDS, run=run)
        self.recording.begin(now_ms)
        self.recording.online(now_ms, online=self.online)
        return self.recording

    def finish_recording(self, joined_ms: int, *, now_ms: UnixMs) -> None:
        """Members of the groups, all from ``joined_ms`` on; MVDS itself keeps no order."""
        if self.recording is not None:
            members = {self.own_id, *(one for group in self.groups.values() for one in group)}
            self.recording.stands_as_delivered(
                now_ms, ((member, joined_ms, None) for member in sorted(members))
            )
            self.recording.end(now_ms)
