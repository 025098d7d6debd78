"""A Store node with a long conversation in its archive: ``… history_store N DIR [unlimited]``.

Three members say N messages over the last twenty days, as sessions do it, and every copy goes into
the archive as a relay would have brought it.  Then the node serves; the first line of output holds
its address and an invitation to the group.  ``unlimited``: it gives a peer as much as it asks for.
"""

import asyncio
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.core.content import Body, Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import InstanceId, UnixMs
from engine.core.records import ProfileRecord
from engine.core.waku import WakuMessage
from engine.core.waku_archive import ArchivedMessage
from engine.crypto.identity import Identity
from engine.crypto.links import parse_invite
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.persistence.archive_thread import ThreadedArchive
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.contract import Session  # noqa: TC001 - as a type, like the rest
from engine.session.group.factory import GroupFactory
from engine.session.inputs import MessageArrived, Say
from engine.session.transitions import Publish

MEMBERS: Final = 3
SPAN_MS: Final = 20 * 24 * 3_600_000
BATCH: Final = 2_000
MANY: Final = 10**12


class Member:
    def __init__(self, number: int, clock: "Clock") -> None:
        entropy = Random(number)  # noqa: S311 - the same conversation each time
        self.identity = Identity.generate(entropy.randbytes)
        self.store = SqliteProfileStore.in_memory()
        profile = ProfileRecord(
            name=f"Member {number}",
            signing_key=self.identity.signing_key,
            encryption_key=self.identity.encryption_key,
            network_key=entropy.randbytes(32),
            instance_id=InstanceId(entropy.randbytes(16)),
            created_ms=clock.now_ms,
        )
        self.book = GroupFactory(
            store=self.store,
            identity=self.identity,
            profile=profile,
            entropy=Entropy(random_bytes=entropy.randbytes, random_unit=entropy.random),
            counters=Counters(),
            now_ms=lambda: clock.now_ms,
            online=lambda: True,  # Nobody is given time to sync: the conversation, nothing else.
        )
        self.session: Session | None = None


class Clock:
    def __init__(self) -> None:
        self.now_ms = UnixMs(time.time_ns() // 1_000_000 - SPAN_MS)


class Conversation:
    """What is said reaches the other members at once, and the archive."""

    def __init__(self, clock: Clock, count: int) -> None:
        self.clock = clock
        self.members = [Member(number, clock) for number in range(MEMBERS)]
        self.said: list[WakuMessage] = []
        self._step_ms = SPAN_MS // (count + 10) - 1
        founder = self.members[0]
        group, writes, opening = founder.book.new_group("History")
        founder.store.apply(writes)
        founder.session = founder.book.load(group)
        self.link = founder.book.invite_link(group, ())
        self.say(founder, opening[0])
        for member in self.members[1:]:
            joined, writes, words = member.book.joined_group(parse_invite(self.link))
            member.store.apply(writes)
            member.session = member.book.load(joined)
            for earlier in self.said:
                self._reach(member, earlier)
            self.say(member, words[0])

    def say(self, member: Member, body: Body) -> None:
        self.clock.now_ms = UnixMs(self.clock.now_ms + self._step_ms)
        session = member.session
        if session is None:
            return
        transition = session.handle(Say(body), now_ms=self.clock.now_ms)
        for send in transition.sends:
            if isinstance(send, Publish):
                self._publish(send.message, member)

    def _publish(self, message: WakuMessage, sender: Member) -> None:
        self.said.append(message)
        for member in self.members:
            if member is not sender:
                self._reach(member, message)

    def _reach(self, member: Member, message: WakuMessage) -> None:
        if member.session is not None:
            topic = Sharding().pubsub_topic(message.content_topic)
            member.session.handle(
                MessageArrived(message, message_hash(topic, message)), now_ms=self.clock.now_ms
            )


def archived(message: WakuMessage) -> ArchivedMessage:
    topic = Sharding().pubsub_topic(message.content_topic)
    return ArchivedMessage(
        message_hash=message_hash(topic, message),
        pubsub_topic=topic,
        content_topic=message.content_topic,
        timestamp_ns=message.timestamp_ns or 0,
        digest=hashlib.sha256(message.content_topic.encode() + message.payload).digest(),
        data=encode_waku_message(message),
    )


def services(*, unlimited: bool) -> ServiceSettings:
    every = all_services()
    if not unlimited or every.store is None:
        return every
    gate = replace(every.store.service.gate, per_second=MANY, burst=MANY)
    service = replace(every.store.service, gate=gate)
    store = replace(every.store, answer_bytes=MANY, service=service)
    return replace(every, store=store)


async def serve(count: int, place: Path, *, unlimited: bool) -> None:
    archive = await ThreadedArchive.open(place / "archive.db")
    conversation = Conversation(Clock(), count)
    entropy = Random(7)  # noqa: S311 - likewise
    for number in range(count):
        words = f"{number}: " + "lorem ipsum " * entropy.randrange(1, 12)
        conversation.say(conversation.members[number % MEMBERS], Text(text=words))
        if len(conversation.said) >= BATCH:
            await archive.append([archived(message) for message in conversation.said])
            conversation.said.clear()
    await archive.append([archived(message) for message in conversation.said])
    link = conversation.link
    del conversation
    node = EmbeddedNode(
        NodeSettings(network_key=os.urandom(32), services=services(unlimited=unlimited)),
        archive=archive,
    )
    await node.start()
    print(json.dumps({"address": node.addresses()[0], "link": link}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await node.stop()
    await archive.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]), unlimited="unlimited" in sys.argv[3:]))
