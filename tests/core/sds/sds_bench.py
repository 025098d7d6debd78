"""Members and hand-made messages for the tests of the channel's rules."""

import hashlib
from collections.abc import Iterable

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import Claim, Event, HistoryEntry, Holdings, Message, SequenceRange
from engine.sim.channel_participant import (
    CHANNEL,
    ChannelParticipant,
    content_of,
    instance_of,
    message_id_of,
    open_payload,
    sign,
)
from engine.sim.network import Outgoing

NOW = UnixMs(1_760_000_000_000)
ALICE, BOB, CAROL = ParticipantId("alice"), ParticipantId("bob"), ParticipantId("carol")
MEMBERS = frozenset({ALICE, BOB, CAROL})
SMALL = SdsConfig.for_small_group()


def after(delay_ms: int) -> UnixMs:
    return UnixMs(NOW + delay_ms)


def member(
    participant_id: ParticipantId = ALICE,
    *,
    members: frozenset[ParticipantId] = MEMBERS,
    config: SdsConfig = SMALL,
    seed: int = 1,
    clock_offset_ms: int = 0,
) -> ChannelParticipant:
    return ChannelParticipant(
        participant_id,
        members=members,
        config=config,
        seed=seed,
        now_ms=NOW,
        clock_offset_ms=clock_offset_ms,
    )


def entries(*ids: MessageId | str) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id=MessageId(item)) for item in ids)


def content(  # noqa: PLR0913 - every field that some rule is about
    sender: ParticipantId,
    text: str,
    *,
    lamport: int = NOW,
    history: Iterable[HistoryEntry] = (),
    sequence: int | None = None,
    bloom: bytes | None = None,
    requests: Iterable[HistoryEntry] = (),
    repaired_by: ParticipantId | None = None,
    verified: bool = True,
    previous: MessageReceived | None = None,
    replaces: MessageReceived | None = None,
) -> MessageReceived:
    """A content message with a true id; ``sequence`` makes it count in holdings."""
    data, dependencies, author = text.encode(), tuple(history), None
    previous_id = None if previous is None else id_of(previous)
    replaced_id = None if replaces is None else id_of(replaces)
    if sequence is not None:
        author = AuthorSequence(instance_id=instance_of(sender), sequence=sequence)
        data = content_of(author, data, previous_id=previous_id, replaces=replaced_id)
    ids = [entry.message_id for entry in dependencies]
    message = Message(
        sender_id=sender,
        message_id=message_id_of(sender, CHANNEL, lamport, ids, data),
        channel_id=CHANNEL,
        lamport_timestamp=lamport,
        causal_history=dependencies,
        bloom_filter=bloom,
        repair_request=tuple(requests),
        content=data,
    )
    return MessageReceived(
        message=message,
        raw=sign(message, None, NOW),
        author=author,
        repaired_by=repaired_by,
        verified=verified,
        retrieval_hint=hashlib.sha256(data).digest(),
        previous_id=previous_id,
        replaces=replaced_id,
    )


def sync(  # noqa: PLR0913 - as above
    sender: ParticipantId,
    *,
    lamport: int = NOW,
    history: Iterable[HistoryEntry] = (),
    holdings: Holdings | None = None,
    bloom: bytes | None = None,
    requests: Iterable[HistoryEntry] = (),
    verified: bool = True,
    held_aside: Iterable[MessageId] = (),
) -> MessageReceived:
    message = Message(
        sender_id=sender,
        message_id=MessageId(f"sync-{lamport}"),
        channel_id=CHANNEL,
        lamport_timestamp=lamport,
        causal_history=tuple(history),
        bloom_filter=bloom,
        repair_request=tuple(requests),
    )
    aside = tuple(held_aside)
    raw = sign(message, Claim(holdings, aside), NOW)
    return MessageReceived(
        message=message, raw=raw, holdings=holdings, verified=verified, held_aside=aside
    )


def holds(*claims: tuple[ParticipantId, int, int]) -> Holdings:
    """Holdings from (author, first, last), one range per author; no heads are told."""
    return {
        instance_of(author): (SequenceRange(first=first, last=last),)
        for author, first, last in claims
    }


def id_of(received: MessageReceived) -> MessageId:
    return received.message.message_id


def dep(received: MessageReceived) -> tuple[HistoryEntry, ...]:
    return entries(id_of(received))


def log_of(participant: ChannelParticipant) -> list[MessageId]:
    return participant.observation().log


def opened(outgoing: Iterable[Outgoing]) -> list[MessageReceived]:
    return [open_payload(item.payload) for item in outgoing]


def said(participant: ChannelParticipant, kind: type[Event]) -> list[Event]:
    """Events of this kind that the last input caused."""
    return [event for event in participant.events if isinstance(event, kind)]


def run_until(participant: ChannelParticipant, end_ms: int) -> list[tuple[UnixMs, Outgoing]]:
    """Call it at each of its deadlines up to ``end_ms``; what it sent, and when."""
    sent: list[tuple[UnixMs, Outgoing]] = []
    now_ms = NOW
    while (deadline_ms := participant.next_deadline()) is not None and deadline_ms <= end_ms:
        now_ms = max(deadline_ms, now_ms)
        sent += [(now_ms, item) for item in participant.advance(now_ms=now_ms)]
    return sent


def syncs(sent: Iterable[tuple[UnixMs, Outgoing]]) -> list[tuple[UnixMs, MessageReceived]]:
    """The sync messages among what was sent."""
    found = [(at_ms, open_payload(item.payload)) for at_ms, item in sent]
    return [(at_ms, received) for at_ms, received in found if received.message.is_sync]
