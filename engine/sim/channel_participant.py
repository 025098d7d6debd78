"""A bare SDS channel as a participant of the simulated network: codec, a store model, no crypto.

Each payload frames a *signed part* (SDS bytes and holdings, as in a sealed channel) and the member
who repaired it, if any.  Content starts with the author's instance, sequence number, previous
message and replaced message.  Senders are trusted: the simulation takes for granted what signatures
prove elsewhere.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import assert_never

from msgspec.structs import replace

from engine.codec.sds import decode_message, encode_message
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.faults import SeededRandom
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.records import LoggedMessage
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.forks import ForkFound
from engine.core.sds.inputs import (
    ClockSet,
    ConnectivityChanged,
    CopyAccepted,
    DeadlineReached,
    Input,
    MembersChanged,
    MessageReceived,
    SendContent,
    SendEphemeral,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.sds.vocabulary import (
    AskStore,
    Broadcast,
    BroadcastRepair,
    Claim,
    DependencyLost,
    Event,
    HeldByChanged,
    Holdings,
    Message,
    MessageDelivered,
    MessageReplaced,
    OwnFromFuture,
    SendPurpose,
    SequenceRange,
    StoreWindow,
)
from engine.delivery.contract import Protocol
from engine.delivery.steps import SdsStep
from engine.sim.archive import SimArchive
from engine.sim.channel_store import ChannelStore
from engine.sim.judge import Observation
from engine.sim.network import Outgoing
from engine.sim.recording import SimRecording

CHANNEL = ChannelId("0")
ID_CHARACTERS = 22
_AUTHOR = struct.Struct(f">16sQ{ID_CHARACTERS}s{ID_CHARACTERS}s")
_RANGE = struct.Struct(">16sQQ8s")
_LENGTHS = struct.Struct(">IIIB")


@lru_cache(maxsize=65_536)
def hash64(text: str) -> int:
    """SDS-R's H."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def message_id_of(
    sender_id: ParticipantId,
    channel_id: ChannelId,
    lamport: int,
    history: Sequence[MessageId],
    content: bytes,
) -> MessageId:
    """Short, and unique because content holds the author's sequence number."""
    text = f"{sender_id}/{channel_id}/{lamport}/{'/'.join(history)}/".encode()
    return MessageId(hashlib.sha256(text + content).hexdigest()[:ID_CHARACTERS])


def content_of(
    author: AuthorSequence,
    text: bytes,
    *,
    previous_id: MessageId | None = None,
    replaces: MessageId | None = None,
) -> bytes:
    ids = ((each or "").encode() for each in (previous_id, replaces))
    return _AUTHOR.pack(author.instance_id, author.sequence, *ids) + text


def text_of(content: bytes) -> bytes:
    """The text in the content."""
    return content[_AUTHOR.size :]


def instance_of(participant_id: ParticipantId) -> InstanceId:
    return InstanceId(hashlib.sha256(participant_id.encode()).digest()[:16])


class ChannelParticipant:
    """One member with its disk, its state machine, and an observer's record of it."""

    def __init__(  # noqa: PLR0913 - keyword-only: what a member is and how it stands
        self,
        participant_id: ParticipantId,
        *,
        members: frozenset[ParticipantId],
        config: SdsConfig,
        seed: int,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
    ) -> None:
        """``clock_offset_ms``: how far this member's clock is ahead of the network's time."""
        self.participant_id = participant_id
        self.clock_offset_ms = clock_offset_ms
        self.store = ChannelStore()
        self.counters = Counters()
        self.seen = Observation(participant_id=participant_id)
        self.sends: dict[str, int] = {}
        """Broadcasts by purpose."""
        self.asked_stores: list[AskStore] = []
        self.events: list[Event] = []
        """Events of the last input."""
        self.on_certain_holders: Callable[[MessageId, set[ParticipantId]], None] | None = None
        """Called whenever this member claims certain holders for one of its messages."""
        self.recording: SimRecording | None = None
        self.archive: SimArchive | None = None
        """The Store that answers; see ``use_store``."""
        self.members = members
        self._config = config
        self._random = SeededRandom(seed, participant_id)
        self._own_chain = OwnChain(instance_of(participant_id))
        self._copies = 0
        self.online = True
        self.channel = self._build(now_ms)

    # --- what a subclass may do otherwise ---

    channel_id = CHANNEL

    def message_id_of(
        self,
        sender_id: ParticipantId,
        channel_id: ChannelId,
        lamport: int,
        history: Sequence[MessageId],
        content: bytes,
    ) -> MessageId:
        return message_id_of(sender_id, channel_id, lamport, history, content)

    def sign(self, message: Message, claim: Claim | None, now_ms: UnixMs) -> bytes:
        return sign(message, claim, now_ms)

    def frame(self, raw: bytes, *, again: bool) -> bytes:
        """A payload; ``again``: it repairs another member's message."""
        return frame(raw, self.participant_id if again else None)

    def open(self, payload: bytes) -> MessageReceived:
        return open_payload(payload)

    def retrieval_hint(self, _payload: bytes) -> bytes:
        """Unique for each copy, like the hash of a sealed message."""
        self._copies += 1
        return hashlib.sha256(f"{self.participant_id}/{self._copies}".encode()).digest()

    def _build(self, now_ms: UnixMs) -> SdsChannel:
        return SdsChannel(
            self.channel_id,
            self.participant_id,
            config=self._config,
            message_id_of=self.message_id_of,
            sign=self.sign,
            random_unit=self._random,
            hash64=hash64,
            state=self.store.state(),
            members=self.members,
            online=self.online,
            now_ms=now_ms,
            clock_offset_ms=self.clock_offset_ms,
            counters=self.counters,
        )

    # --- what the user and the environment do ---

    def send(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        return self._say(text.encode(), None, now_ms=now_ms)

    def _say(self, text: bytes, replaces: MessageId | None, *, now_ms: UnixMs) -> list[Outgoing]:
        author, previous_id = self._own_chain.next()
        content = content_of(author, text, previous_id=previous_id, replaces=replaces)
        sent = self.handle(SendContent(content, author, replaces), now_ms=now_ms)
        self._own_chain.said(self.seen.sent[-1])
        return sent

    def send_ephemeral(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        return self.handle(SendEphemeral(content=text.encode()), now_ms=now_ms)

    def restart(self, *, now_ms: UnixMs) -> None:
        """The process died; only what was written remains."""
        self.channel = self._build(now_ms)
        if self.recording is not None:
            self.recording.begin(now_ms)
        if self.archive is not None:
            self.handle(StoreChanged(reachable=True), now_ms=now_ms)

    def set_online(self, online: bool, *, now_ms: UnixMs) -> list[Outgoing]:
        if self.recording is not None and online != self.online:
            self.recording.online(now_ms, online=online)
        self.online = online
        return self.handle(ConnectivityChanged(online=online), now_ms=now_ms)

    def use_store(self, archive: SimArchive, *, now_ms: UnixMs) -> list[Outgoing]:
        """From now on this Store can be asked."""
        self.archive = archive
        return self.handle(StoreChanged(reachable=True), now_ms=now_ms)

    def set_clock(self, offset_ms: int, *, now_ms: UnixMs) -> list[Outgoing]:
        self.clock_offset_ms = offset_ms
        return self.handle(ClockSet(offset_ms=offset_ms), now_ms=now_ms)

    def set_members(self, members: frozenset[ParticipantId], *, now_ms: UnixMs) -> list[Outgoing]:
        self.members = members
        return self.handle(MembersChanged(members=members), now_ms=now_ms)

    # --- SimParticipant ---

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        if self.recording is None:
            return self.handle(self.open(payload), now_ms=now_ms)
        self.recording.arrived(now_ms, payload)
        try:
            return self.handle(self.open(payload), now_ms=now_ms)
        except RemoteProtocolError as error:
            self.recording.refused(now_ms, error.reason)
            raise

    def advance(self, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        return self.handle(DeadlineReached(), now_ms=now_ms)

    def next_deadline(self) -> UnixMs | None:
        return self.channel.next_deadline()

    def observation(self) -> Observation:
        """The judge's view of this member."""
        self.seen.log = self.store.log_ids()
        return self.seen

    # --- the runner's part ---

    def handle(self, input_: Input, *, now_ms: UnixMs) -> list[Outgoing]:
        """Writes first, then events and sends, like the real runner."""
        transition = self.channel.handle(input_, now_ms=now_ms)
        self.store.apply(transition.writes)
        if self.recording is not None:
            self.recording.stepped(SdsStep(now_ms, input_, transition))
        self.events = list(transition.events)
        for event in transition.events:
            self._watch(event)
        outgoing = []
        for send in transition.sends:
            if isinstance(send, AskStore):
                self.asked_stores.append(send)
                outgoing += self._ask_archive(send, now_ms)
            else:
                outgoing.append(self._outgoing(send, now_ms))
        for event in transition.events:
            if isinstance(event, OwnFromFuture):
                outgoing += self._say_again(event.message_ids, now_ms)
        return outgoing

    def _ask_archive(self, ask: AskStore, now_ms: UnixMs) -> list[Outgoing]:
        """What the history service does for a session, in no time."""
        archive = self.archive
        if archive is None:
            return []
        found = [(entry, archive.find(entry.retrieval_hint or b"")) for entry in ask.missing]
        outgoing = self._take_stored((copy for _, copy in found if copy is not None), now_ms)
        lacking = tuple(entry.message_id for entry, copy in found if copy is None)
        if lacking:
            outgoing += self.handle(StoresMissing(message_ids=lacking), now_ms=now_ms)
        for window in ask.windows:
            outgoing += self._take_stored(archive.between(window), now_ms)
            outgoing += self.handle(WindowAnswered(window=window), now_ms=now_ms)
        if ask.since_ms is not None:
            window = StoreWindow(since_ms=ask.since_ms, until_ms=now_ms)
            outgoing += self._take_stored(archive.between(window), now_ms)
            outgoing += self.handle(StoreAnswered(through_ms=now_ms), now_ms=now_ms)
        return outgoing

    def _take_stored(self, copies: Iterable[bytes], now_ms: UnixMs) -> list[Outgoing]:
        outgoing: list[Outgoing] = []
        for copy in copies:
            with suppress(RemoteProtocolError):
                outgoing += self.handle(replace(self.open(copy), stored=True), now_ms=now_ms)
        return outgoing

    def _say_again(self, message_ids: Sequence[MessageId], now_ms: UnixMs) -> list[Outgoing]:
        """Repeat messages dated by our wrong clock under another instance, with fresh numbers."""
        self._own_chain = OwnChain(instance_of(ParticipantId(f"after {message_ids[-1]}")))
        outgoing: list[Outgoing] = []
        for message_id in message_ids:
            said = open_payload(frame(self.store.raw[message_id], None)).message.content or b""
            outgoing += self._say(text_of(said), message_id, now_ms=now_ms)
        return outgoing

    def _watch(self, event: Event) -> None:
        match event:
            case MessageDelivered(message=message, is_own=is_own):
                history = tuple(entry.message_id for entry in message.causal_history)
                self.seen.deliveries.append((message.message_id, history))
                if is_own:
                    self.seen.sent.append(message.message_id)
            case MessageReplaced(message_id=message_id):
                if message_id in self.seen.sent:
                    self.seen.sent.remove(message_id)
                self.seen.certain_holders.pop(message_id, None)
            case ForkFound(fork=fork):
                self.seen.accused.add(fork.sender_id)
            case DependencyLost(entry=entry):
                self.seen.lost.add(entry.message_id)
            case HeldByChanged(message_id=message_id, certain=certain):
                holders = {entry.participant_id for entry in certain}
                self.seen.certain_holders[message_id] = holders
                if self.on_certain_holders is not None:
                    self.on_certain_holders(message_id, holders)
            case _:
                pass

    def _outgoing(self, send: Broadcast | BroadcastRepair, now_ms: UnixMs) -> Outgoing:
        match send:
            case Broadcast(message_id=message_id, raw=raw, purpose=purpose):
                name = purpose.value
                payload = self.frame(raw, again=False)
                ephemeral = purpose is SendPurpose.EPHEMERAL
            case BroadcastRepair(message_id=message_id):
                name, ephemeral = "repair", False
                payload = self.frame(self.store.raw[message_id], again=True)
            case _:
                assert_never(send)
        self.sends[name] = self.sends.get(name, 0) + 1
        self.seen.retransmissions += name in {"repair", SendPurpose.RETRANSMISSION.value}
        if self.recording is not None:
            self._record_copy(self.recording, send, payload, now_ms)
        hint = self.retrieval_hint(payload)

        def accepted(peers: int, now_ms: UnixMs) -> Sequence[Outgoing]:
            copy = CopyAccepted(message_id=message_id, peers=peers, retrieval_hint=hint)
            return self.handle(copy, now_ms=now_ms)

        return Outgoing(payload=payload, ephemeral=ephemeral, accepted=accepted)

    @staticmethod
    def _record_copy(
        recording: SimRecording, send: Broadcast | BroadcastRepair, payload: bytes, now_ms: UnixMs
    ) -> None:
        if isinstance(send, BroadcastRepair):
            again = SendPurpose.RETRANSMISSION
            recording.published(now_ms, again, payload, repairs=send.message_id)
        elif send.purpose in {SendPurpose.CONTENT, SendPurpose.RETRANSMISSION}:
            recording.published(now_ms, send.purpose, payload, message_ids=(send.message_id,))
        else:
            recording.published(now_ms, send.purpose, payload)

    def record(self, run: str, *, now_ms: UnixMs) -> SimRecording:
        """Record from now on; call it before any message is sent."""
        self.recording = SimRecording(self.participant_id, protocol=Protocol.SDS, run=run)
        self.recording.begin(now_ms)
        self.recording.online(now_ms, online=self.online)
        return self.recording

    def finish_recording(self, joined_ms: int, *, now_ms: UnixMs) -> None:
        """The conversation's final state; all members were present from ``joined_ms`` on."""
        if self.recording is not None:
            log = self.store.state().log
            logged = [
                LoggedMessage(
                    position=e.position,
                    sender_id=e.sender_id,
                    sent_ms=UnixMs(e.position.lamport_timestamp),
                )
                for e in log
            ]
            self.recording.stands(now_ms, logged, ((m, joined_ms, None) for m in self.members))
            self.recording.end(now_ms)


# --- framing ------------------------------------------------------------------------------------


class OwnChain:
    """A member's numbers: the current instance and its last message."""

    def __init__(self, instance_id: InstanceId) -> None:
        self._author = AuthorSequence(instance_id, 0)
        self._previous_id: MessageId | None = None

    def next(self) -> tuple[AuthorSequence, MessageId | None]:
        """For the next message: its number, and the message before it."""
        self._author = AuthorSequence(self._author.instance_id, self._author.sequence + 1)
        return self._author, self._previous_id

    def said(self, message_id: MessageId) -> None:
        self._previous_id = message_id


def sign(message: Message, claim: Claim | None, _now_ms: UnixMs) -> bytes:
    """The signed part: SDS bytes and claim."""
    sds = encode_message(message)
    holdings = None if claim is None else claim.holdings
    ranges = b"".join(
        _RANGE.pack(instance_id, item.first, item.last, item.head)
        for instance_id, items in (holdings or {}).items()
        for item in items
    )
    aside = b"" if claim is None else "".join(claim.held_aside).encode()
    lengths = _LENGTHS.pack(len(sds), len(ranges), len(aside), holdings is not None)
    return lengths + sds + ranges + aside


def frame(raw: bytes, repaired_by: ParticipantId | None) -> bytes:
    """A payload: who repaired it, then the signed part."""
    name = (repaired_by or "").encode()
    return bytes([len(name)]) + name + raw


@lru_cache(maxsize=4_096)
def open_payload(payload: bytes) -> MessageReceived:
    """Raises RemoteProtocolError ``frame`` or what the codec raises.

    Cached: all receivers of a broadcast read the same bytes, and the result is immutable.
    """
    try:
        start = 1 + payload[0]
        repaired_by = payload[1:start].decode()
        *lengths, has_holdings = _LENGTHS.unpack_from(payload, start)
        sds, ranges, aside = _parts(payload[start + _LENGTHS.size :], lengths)
        holdings = _holdings(ranges) if has_holdings else None
        held_aside = aside.decode()
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise RemoteProtocolError("frame") from error
    message = decode_message(sds)
    author = previous_id = replaces = None
    if not message.is_ephemeral and len(message.content or b"") >= _AUTHOR.size:
        instance_id, sequence, *ids = _AUTHOR.unpack_from(message.content or b"")
        author = AuthorSequence(instance_id=InstanceId(instance_id), sequence=sequence)
        previous_id, replaces = (
            MessageId(each.decode(errors="replace")) if each.strip(b"\0") else None for each in ids
        )
    return MessageReceived(
        message=message,
        raw=payload[start:],
        author=author,
        holdings=holdings,
        repaired_by=ParticipantId(repaired_by) if repaired_by else None,
        retrieval_hint=hashlib.sha256(payload).digest(),
        held_aside=tuple(
            MessageId(held_aside[start : start + ID_CHARACTERS])
            for start in range(0, len(held_aside), ID_CHARACTERS)
        ),
        previous_id=previous_id,
        replaces=replaces,
    )


def _parts(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    parts, start = [], 0
    for length in lengths:
        parts.append(data[start : start + length])
        start += length
    if start != len(data):
        raise RemoteProtocolError("frame")
    return parts


def _holdings(data: bytes) -> Holdings:
    holdings: dict[InstanceId, list[SequenceRange]] = {}
    for instance_id, first, last, head in _RANGE.iter_unpack(data):
        item = SequenceRange(first=first, last=last, head=head)
        holdings.setdefault(InstanceId(instance_id), []).append(item)
    return {instance_id: tuple(items) for instance_id, items in holdings.items()}
