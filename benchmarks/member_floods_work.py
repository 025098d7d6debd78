"""A device of the group and the member who attacks it, each a process, for ``member_floods``.

``… device DIR NAME HOST LINK`` is a real engine with a profile on disk and a node on HOST; without
LINK it makes the group.  ``… attack KIND LINK LINK…`` knows a link of each device: it has the
group's key, an identity that cost nothing and a node, and makes what it sends by hand.  Both print
lines of JSON and do what lines of JSON on standard input say.
"""

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypedDict

from msgspec.structs import replace

from benchmarks.report import percentile
from chat_app.compose import build_engine
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.codec.content import encode_content
from engine.codec.message_id import message_id_in
from engine.codec.sds import encode_message
from engine.core.content import NONCE_BYTES, Body, Content, Text
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    ConversationId,
    InstanceId,
    MessageId,
    UnixMs,
)
from engine.core.sds.vocabulary import Claim, HistoryEntry, Holdings, Message, SequenceRange
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.join import build_join
from engine.crypto.links import parse_invite
from engine.crypto.sealed import SealedGroup, content_topic_of
from engine.events import EngineEvent, MessageAdded, MessageChanged, MessageKind
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine

TICK_S: Final = 0.002
SWITCH_INTERVAL_S: Final = 0.0005
"""As in the application."""
LARGE: Final = "large " * 10_000
PHANTOMS: Final = 250
"""Ids that nobody has, in one message."""


class Told(TypedDict):
    """What a device tells of a talk.  Times are the machine's, the same for every process."""

    said_ns: dict[str, int]
    """When each text of its own was due."""
    shown_ns: dict[str, int]
    """When each text of others had its place, durably."""
    late_p99_ms: float
    gap_ms: float
    processor: float
    """Of one core."""


def tell(what: object) -> None:
    print(json.dumps(what), flush=True)


async def told() -> dict[str, object]:
    line = await asyncio.to_thread(sys.stdin.readline)
    said: dict[str, object] = json.loads(line or "{}")
    return said


# --- an honest device -----------------------------------------------------------------------------


class Device:
    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._group = ConversationId("")
        self._shown_ns: dict[str, int] = {}
        """When each text of others had its place, durably."""
        engine.subscribe(self._hear)

    def _hear(self, event: EngineEvent) -> None:
        if not isinstance(event, MessageAdded | MessageChanged):
            return
        row = event.message
        if row.kind is MessageKind.TEXT and not (row.is_own or row.waiting or len(row.text) > 100):
            self._shown_ns.setdefault(row.text, time.monotonic_ns())

    async def meet(self, link: str) -> None:
        await self._engine.start()
        await self._engine.create_identity(self._name)
        if link:
            self._group = await self._engine.groups.join(link)
        else:
            self._group = await self._engine.groups.create("Benchmark")
        gc.collect()
        gc.freeze()  # As in the application.
        tell({"link": await self._engine.groups.make_invite_link(self._group)})

    async def obey(self) -> None:
        while order := await told():
            match order:
                case {"members": int(count)}:
                    await self._until_members(count)
                    tell("all here")
                case {"say_large": int(count)}:
                    ids = [
                        await self._engine.timeline.send_text(self._group, f"{n} {LARGE}")
                        for n in range(count)
                    ]
                    tell(ids)
                case {"talk": str(words), "times": int(times), "per_second": int(rate)}:
                    tell(await self._talk(words, times, rate))
                case _:
                    raise ValueError(order)
        await self._engine.stop()

    async def _until_members(self, count: int) -> None:
        while True:
            (view,) = await self._engine.conversations()
            if len(view.members) == count:
                return
            await asyncio.sleep(0.05)

    async def _talk(self, words: str, times: int, rate: int) -> Told:
        """From when it was due, so that a device that gets to say it late is late."""
        late_ms: list[float] = []
        watch = asyncio.create_task(_watch(late_ms))
        before_s, begun_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), time.monotonic()
        due_ns = time.monotonic_ns()
        said_ns: dict[str, int] = {}
        for number in range(times):
            text = f"{self._name} {words} {number}"
            said_ns[text] = due_ns
            await self._engine.timeline.send_text(self._group, text)
            due_ns += 10**9 // rate
            await asyncio.sleep(max(due_ns - time.monotonic_ns(), 0) / 10**9)
        await asyncio.sleep(1)
        watch.cancel()
        used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before_s
        return {
            "said_ns": said_ns,
            "shown_ns": self._shown_ns,
            "late_p99_ms": percentile(late_ms, 0.99),
            "gap_ms": max(late_ms),
            "processor": used_s / (time.monotonic() - begun_s),
        }


async def _watch(late_ms: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        late_ms.append(max(loop.time() - due_s, 0.0) * 1_000)


async def device(place: str, name: str, host: str, link: str) -> None:
    settings = Settings(
        network=NetworkSettings(listen_host=host, discovery=False),
        storage=StorageSettings(key="file"),
    )
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    one = Device(build_engine(open_profile_directory(Path(place)), settings), name)
    await one.meet(link)
    await one.obey()


# --- the member who attacks -----------------------------------------------------------------------


class Attacker:
    """What the protocol lets a member sign and seal, whatever an engine would do."""

    def __init__(self, link: str) -> None:
        invite = parse_invite(link)
        self._group_id = invite.group_id
        self._identity = Identity.generate(os.urandom)
        self._sealed = SealedGroup(group_id=invite.group_id, epoch_keys=(invite.epoch_key,))
        self._instance = InstanceId(os.urandom(16))
        self._sequence = 0
        self._previous: MessageId | None = None
        self._join = build_join(
            self._identity, group_id=self._group_id, name="Mallory", joined_ms=_now_ms()
        )
        self.topic = content_topic_of(invite.epoch_key)

    def join(self) -> bytes:
        return self._seal(self._said(self._join))

    def attacks(self, kind: str, ids: Sequence[MessageId]) -> Iterator[bytes]:
        named = tuple(HistoryEntry(message_id=each) for each in ids)
        # Of nobody whom there is, so all that there is lacks.
        holdings: Holdings = {
            InstanceId(bytes(16)): (SequenceRange(first=1, last=1, head=bytes(8)),)
        }
        while True:
            match kind:
                case "phantoms":
                    yield self._seal(self._said(Text(text="seen these?"), _phantoms(PHANTOMS)))
                case "requests":
                    yield self._seal(replace(self._sync(), repair_request=named))
                case "claims":
                    yield self._seal(self._sync(), Claim(holdings=holdings))
                case _:
                    yield self._seal(self._said(Text(text=LARGE)))

    def _said(self, body: Body, history: Sequence[HistoryEntry] = ()) -> Message:
        """The next of the chain of its own."""
        self._sequence += 1
        content = encode_content(
            Content(
                author=AuthorSequence(instance_id=self._instance, sequence=self._sequence),
                previous_id=self._previous,
                nonce=os.urandom(NONCE_BYTES),
                sent_ms=_now_ms(),
                body=body,
            )
        )
        names = [entry.message_id for entry in history]
        made = replace(self._sync(), causal_history=tuple(history), content=content)
        self._previous = message_id_in(self._group_id)(
            made.sender_id,
            made.channel_id,
            made.lamport_timestamp or 0,
            names,
            content,
        )
        return replace(made, message_id=self._previous)

    def _sync(self) -> Message:
        return Message(
            sender_id=self._identity.participant_id,
            message_id=MessageId(f"sync-{time.time_ns()}"),
            channel_id=ChannelId("0"),
            lamport_timestamp=_now_ms(),
            causal_history=(),
        )

    def _seal(self, message: Message, claim: Claim | None = None) -> bytes:
        signed = self._sealed.sign(self._identity, encode_message(message), claim, _now_ms())
        return self._sealed.seal(
            signed, random_bytes=os.urandom, statements=(self._join.statement,)
        )


def _phantoms(count: int) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id=MessageId(os.urandom(16).hex())) for _ in range(count))


def _now_ms() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


async def attack(kind: str, links: Sequence[str]) -> None:
    node = EmbeddedNode(NodeSettings(network_key=os.urandom(32), listen_host="127.0.0.9"))
    node.add_peers([each for link in links for each in parse_invite(link).node_addresses])
    await node.start()
    while node.status().peers < len(links):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    attacker = Attacker(links[0])

    async def publish(payload: bytes) -> None:
        await node.publish(
            WakuMessage(payload=payload, content_topic=attacker.topic, timestamp_ns=time.time_ns())
        )

    await publish(attacker.join())
    tell("joined")
    order = json.loads(await asyncio.to_thread(sys.stdin.readline))
    begun_s, sent, sent_bytes = time.monotonic(), 0, 0
    for payload in attacker.attacks(kind, order["ids"]):
        await publish(payload)
        sent, sent_bytes = sent + 1, sent_bytes + len(payload)
        due_s = begun_s + sent / order["per_second"]
        if due_s > begun_s + order["seconds"]:
            break
        await asyncio.sleep(max(due_s - time.monotonic(), 0))
    tell({"sent": sent, "bytes": sent_bytes, "took_s": time.monotonic() - begun_s})
    await asyncio.to_thread(sys.stdin.readline)
    await node.stop()


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "device":
        asyncio.run(device(*arguments))
    else:
        asyncio.run(attack(arguments[0], arguments[1:]))
