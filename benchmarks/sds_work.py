"""The SDS workloads on our channel, one per process.

``python -m benchmarks.sds_work pair js 1000`` runs one and prints one JSON object.  The core and
its codec only, no seal and no disk: what a machine asks to be written is dropped.  Every workload
measures the CPU time of its own process; sending includes encoding, receiving decoding.
``sds_js.mjs`` does the same with ``@waku/sds``.
"""

import gc
import hashlib
import json
import pickle
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from engine.codec.holdings import encode_claim
from engine.codec.sds import decode_message, encode_message
from engine.core.faults import FaultSpec
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.packed_ids import pack_id
from engine.core.sds.bloom import BloomFilter, ReceivedBloom, base_hashes
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import CopyAccepted, MessageReceived, SendContent
from engine.core.sds.log_table import LogTable, Row
from engine.core.sds.vocabulary import (
    Broadcast,
    ChannelState,
    Claim,
    HistoryEntry,
    Message,
    MessageDelivered,
)
from engine.sim.channel_participant import ChannelParticipant, hash64
from engine.sim.network import SimNetwork

CHANNEL: Final = ChannelId("general")
START: Final = UnixMs(1_760_000_000_000)
CONTENT_BYTES: Final = 100
HINT: Final = bytes([7]) * 32
CONFIGS: Final[dict[str, Callable[[], SdsConfig]]] = {
    "js": SdsConfig.js_defaults,
    "ours": SdsConfig,
}
ALICE, BOB = ParticipantId("alice"), ParticipantId("bob")
Sent: TypeAlias = tuple[bytes, AuthorSequence | None, MessageId | None, Claim | None]
"""The bytes, the author's number, the message of the author before it, and what is claimed."""
QUIET_MS: Final = 10 * 60_000
PAGE_BYTES: Final = 4_096


def content_of(number: int) -> bytes:
    return f"message {number} ".ljust(CONTENT_BYTES, ".").encode()


def js_id(
    _sender: ParticipantId,
    _channel: ChannelId,
    _lamport: int,
    _history: Sequence[MessageId],
    content: bytes,
) -> MessageId:
    return MessageId(hashlib.sha256(content).hexdigest())


def our_id(
    sender: ParticipantId,
    channel: ChannelId,
    lamport: int,
    history: Sequence[MessageId],
    content: bytes,
) -> MessageId:
    """Of the shape of ours, and a hash over as much."""
    hashed = f"{channel}/{sender}/{lamport}/{'/'.join(history)}/".encode() + content
    return short_id(hashlib.sha256(hashed).digest())


def short_id(digest: bytes) -> MessageId:
    return MessageId(urlsafe_b64encode(digest[:16]).decode().rstrip("="))


def instance_of(participant_id: ParticipantId) -> InstanceId:
    return InstanceId(hashlib.sha256(participant_id.encode()).digest()[:16])


class Peer:
    """One channel, what it sends and how it reads; open as js-waku's channels are, or sealed."""

    def __init__(
        self, name: ParticipantId, config: str, *, old: int = 0, others: ParticipantId = BOB
    ) -> None:
        """``old``: messages already in the log, a million of them if need be."""
        self.is_open = config == "js"
        self._claim: Claim | None = None
        self._previous_id: MessageId | None = None
        self._sequence = 0
        self._instance = instance_of(name)
        log = LogTable()
        log.add_rows(old_log(old, is_open=self.is_open))
        self.channel = SdsChannel(
            CHANNEL,
            name,
            config=CONFIGS[config](),
            message_id_of=js_id if self.is_open else our_id,
            sign=self._sign,
            random_unit=Random(name).random,  # noqa: S311 - jitter
            hash64=hash64,
            state=ChannelState(lamport_timestamp=START, log=log),
            members=frozenset() if self.is_open else frozenset({name, others}),
            online=True,
            now_ms=START,
        )

    def _sign(self, message: Message, claim: Claim | None, _now_ms: UnixMs) -> bytes:
        if claim is not None:
            encode_claim(claim)  # its cost; the bytes travel beside the message
        self._claim = claim
        return encode_message(message)

    def send(self, content: bytes, now_ms: UnixMs) -> Sent:
        author = None
        if not self.is_open:
            self._sequence += 1
            author = AuthorSequence(self._instance, self._sequence)
        first = self.channel.handle(SendContent(content, author), now_ms=now_ms).sends[0]
        if not isinstance(first, Broadcast):
            raise TypeError("a message sent is a broadcast")
        self.channel.handle(CopyAccepted(first.message_id, 1, HINT), now_ms=now_ms)
        previous_id, self._previous_id = self._previous_id, first.message_id
        return first.raw, author, None if self.is_open else previous_id, self._claim

    def receive(self, sent: Sent, now_ms: UnixMs) -> None:
        """Raises ValueError unless the message is delivered at once."""
        raw, author, previous_id, claim = sent
        received = MessageReceived(
            decode_message(raw),
            raw,
            author,
            None if claim is None else claim.holdings,
            verified=not self.is_open,
            retrieval_hint=HINT,
            previous_id=previous_id,
        )
        for event in self.channel.handle(received, now_ms=now_ms).events:
            if isinstance(event, MessageDelivered):
                return
        raise ValueError("not delivered")

    def hear_that_all_arrived(self, now_ms: UnixMs) -> None:
        """Somebody names everything that we sent: nothing is kept for sending it again."""
        outgoing = self.channel.snapshot().outgoing
        message = Message(
            sender_id=BOB,
            message_id=MessageId("sync"),
            channel_id=CHANNEL,
            lamport_timestamp=now_ms,
            causal_history=tuple(HistoryEntry(message_id=item.message_id) for item in outgoing),
        )
        self.channel.handle(
            MessageReceived(message=message, raw=b"", verified=not self.is_open), now_ms=now_ms
        )


def old_log(count: int, *, is_open: bool) -> Iterator[Row]:
    """A conversation of old: ``count`` messages of twenty authors, up to a second ago."""
    authors = [ParticipantId(f"old-{number}") for number in range(20)]
    instances = [None if is_open else instance_of(author) for author in authors]
    for number in range(count):
        digest = hashlib.sha256(f"old {number}".encode())
        yield (
            START - 1_000 - count + number,
            MessageId(digest.hexdigest()) if is_open else pack_id(short_id(digest.digest())) or b"",
            authors[number % 20],
            digest.digest(),
            instances[number % 20],
            None if is_open else number // 20 + 1,
            None,
            CONTENT_BYTES,
        )


def after(number: int) -> UnixMs:
    """A message every ten seconds."""
    return UnixMs(START + 10_000 * number)


# --- workloads ----------------------------------------------------------------------------------


def pair(config: str, count: int, old: int = 0) -> dict[str, float]:
    """Two channels talk in turns."""
    two = [Peer(ALICE, config, old=old), Peer(BOB, config, old=old, others=ALICE)]
    contents = [content_of(number) for number in range(count)]
    gc.collect()
    began, sent_bytes = time.process_time(), 0
    for number, content in enumerate(contents):
        now_ms = after(number)
        sent = two[number % 2].send(content, now_ms)
        sent_bytes += len(sent[0])
        two[(number + 1) % 2].receive(sent, now_ms)
    seconds = time.process_time() - began
    return {"per_cpu_second": count / seconds, "bytes_per_message": sent_bytes / count}


def receive(config: str, old: int, count: int) -> dict[str, float]:
    """One channel hears messages whose whole history it knows; CPU per message."""
    sender = Peer(ALICE, config, old=old)
    sent = [sender.send(content_of(number), after(number)) for number in range(count)]
    del sender
    receiver = Peer(BOB, config, old=old, others=ALICE)
    gc.collect()
    warm = count // 5
    for number in range(warm):
        receiver.receive(sent[number], after(number))
    began = time.process_time()
    for number in range(warm, count):
        receiver.receive(sent[number], after(number))
    seconds = time.process_time() - began
    return {
        "cpu_ms": seconds / (count - warm) * 1e3,
        "message_bytes": len(sent[-1][0]),
    }


def load(config: str, old: int) -> dict[str, float]:
    """What a channel of ``old`` loaded messages takes more than one that has just started.

    The rows are made one by one, as a store reads them.
    """
    Peer(ALICE, config)
    gc.collect()
    before = _resident_bytes()
    peer = Peer(BOB, config, old=old, others=ALICE)
    gc.collect()
    grown = _resident_bytes() - before
    del peer
    return {"bytes_per_message": grown / old}


def write(config: str, count: int, path: str) -> dict[str, float]:
    """Leave ``count`` messages in a file, for ``memory`` in another process."""
    sender = Peer(ALICE, config)
    with Path(path).open("wb") as file:
        for number in range(count):
            pickle.dump(sender.send(content_of(number), after(number)), file)
            if number % 100 == 99:
                sender.hear_that_all_arrived(after(number))
    return {"file_bytes": Path(path).stat().st_size}


def memory(config: str, count: int, path: str) -> dict[str, float]:
    """What a receiver that hears ``count`` messages, one after another, grows by.

    A tenth is heard before: what any receiver needs, and the allocator's pools, are there then.
    """
    with Path(path).open("rb") as file:
        receiver = Peer(BOB, config, others=ALICE)
        warm = count // 10
        for number in range(warm):
            receiver.receive(pickle.load(file), after(number))  # noqa: S301 - our own, just written
        gc.collect()
        before = _resident_bytes()
        for number in range(warm, count):
            receiver.receive(pickle.load(file), after(number))  # noqa: S301 - as above
        gc.collect()
        return {"bytes_per_message": (_resident_bytes() - before) / (count - warm)}


def quiet_group(members: int, messages: int) -> dict[str, float]:
    """Bytes on the wire for a short text every ten minutes in a healthy group."""
    names = frozenset(ParticipantId(f"member-{number}") for number in range(members))
    network = SimNetwork(FaultSpec(delay_ms=(20, 80)), start_ms=START)
    people = [
        ChannelParticipant(name, members=names, config=SdsConfig(), seed=1, now_ms=START)
        for name in sorted(names)
    ]
    for person in people:
        network.add(person.participant_id, person)
    network.run_until(UnixMs(START + QUIET_MS))
    content_bytes, before = 0, network.traffic.broadcast_bytes
    for number in range(messages):
        speaker = people[number % members]
        sent = speaker.send("x" * CONTENT_BYTES, now_ms=network.now_ms)
        content_bytes += sum(len(item.payload) for item in sent)
        network.broadcast(speaker.participant_id, sent)
        network.run_until(UnixMs(network.now_ms + QUIET_MS))
    return {
        "message_bytes": content_bytes / messages,
        "all_bytes": (network.traffic.broadcast_bytes - before) / messages,
    }


def micro() -> dict[str, float]:
    """One operation each, in µs, on js-waku's filter and its 200 entries."""
    ids = [
        MessageId(hashlib.sha256(f"id {number}".encode()).hexdigest()) for number in range(5_000)
    ]
    bloom = BloomFilter(capacity=10_000, fixed=True)
    insert_us = _microseconds(5_000, lambda: [bloom.add(item) for item in ids])
    data = bytes(bloom)
    heard = ReceivedBloom(data)
    history = tuple(
        HistoryEntry(message_id=item, retrieval_hint=HINT, sender_id=ALICE) for item in ids[:200]
    )
    message = Message(
        sender_id=BOB,
        message_id=ids[300],
        channel_id=CHANNEL,
        lamport_timestamp=1,
        causal_history=history,
        bloom_filter=data,
        content=content_of(1),
    )
    raw = encode_message(message)
    return {
        "insert_us": insert_us,
        "lookup_us": _microseconds(
            5_000, lambda: [heard.may_contain(base_hashes(item)) for item in ids]
        ),
        "to_bytes_us": _microseconds(200, lambda: [bytes(bloom) for _ in range(200)]),
        "from_bytes_us": _microseconds(200, lambda: [ReceivedBloom(data) for _ in range(200)]),
        "encode_us": _microseconds(500, lambda: [encode_message(message) for _ in range(500)]),
        "decode_us": _microseconds(500, lambda: [decode_message(raw) for _ in range(500)]),
    }


def _microseconds(count: int, run: Callable[[], object]) -> float:
    run()
    began = time.process_time()
    run()
    return (time.process_time() - began) / count * 1e6


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


def main() -> None:
    workload, *arguments = sys.argv[1:]
    workloads: dict[str, Callable[..., dict[str, float]]] = {
        "pair": pair,
        "receive": receive,
        "load": load,
        "write": write,
        "memory": memory,
        "quiet": quiet_group,
        "micro": micro,
    }
    run = partial(workloads[workload], *(int(a) if a.isdigit() else a for a in arguments))
    print(json.dumps(run()))


if __name__ == "__main__":
    main()
