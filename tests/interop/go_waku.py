"""A go-waku node in a process of its own, asked over JSON lines; see ``go_waku/main.go``."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import PeerId
from scripts import interop_go
from tests.interop.json_lines import Answer, PeerNode, peer_node
from tests.patience import PATIENCE_S


@dataclass(frozen=True, slots=True)
class Seen:
    """One message as go-waku shows it; ``waku_hash`` is its own computation, where it made one."""

    pubsub_topic: PubsubTopic
    message: WakuMessage
    waku_hash: WakuHash | None

    @property
    def number(self) -> int:
        return int(self.message.payload.split()[0])


class GoWaku:
    def __init__(self, node: PeerNode) -> None:
        self.ask = node.ask
        self.peer_id = PeerId(node.peer_id)
        self.address = node.address("tcp")
        self.websocket = node.address("ws")

    async def until_subscribed(self, peer_id: PeerId, topic: PubsubTopic) -> None:
        """Its router knows that the peer wants the topic, so what it publishes will be sent."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                known = await self.ask("peers", pubsub=topic)
                if peer_id in known["subscribed"]:
                    return
                await asyncio.sleep(0.05)

    async def publish(self, topic: PubsubTopic, message: WakuMessage) -> WakuHash:
        return _hash(await self.ask("publish", pubsub=topic, **_shown(message)))

    async def push(self, peer_id: PeerId, topic: PubsubTopic, message: WakuMessage) -> WakuHash:
        """By lightpush."""
        return _hash(await self.ask("push", peer=peer_id, pubsub=topic, **_shown(message)))

    async def subscribe(self, peer_id: PeerId, topic: PubsubTopic, *wanted: ContentTopic) -> None:
        """To the peer's filter service."""
        await self.ask("subscribe", peer=peer_id, pubsub=topic, topics=wanted)

    async def seen(self, how: str, count: int) -> list[Seen]:
        """``how``: relayed, filtered or archived.  As soon as there are so many, or in the end."""
        return _seen((await self.ask(how, count=count))["messages"])

    async def history(
        self,
        peer_id: PeerId,
        topic: PubsubTopic,
        *content_topics: ContentTopic,
        limit: int,
        forward: bool,
        version_3: bool = False,
    ) -> list[list[Seen]]:
        """The peer's store, page by page to its end, by 2.0.0-beta4 or 3.0.0."""
        answer = await self.ask(
            "history3" if version_3 else "history",
            peer=peer_id,
            pubsub=topic,
            topics=content_topics,
            limit=limit,
            forward=forward,
        )
        return [_seen(page) for page in answer["pages"]]

    async def find(self, peer_id: PeerId, message_hash: WakuHash) -> list[Seen]:
        """The message with this hash in the peer's store, by 3.0.0."""
        answer = await self.ask("history3", peer=peer_id, hash=message_hash.hex(), limit=5)
        return [each for page in answer["pages"] for each in _seen(page)]


def _shown(message: WakuMessage) -> Answer:
    return {
        "topic": message.content_topic,
        "payload": b64encode(message.payload).decode(),
        "timestamp": message.timestamp_ns,
        "meta": None if message.meta is None else b64encode(message.meta).decode(),
        "ephemeral": bool(message.ephemeral),
    }


def _hash(answer: Answer) -> WakuHash:
    return WakuHash(bytes.fromhex(answer["hash"]))


def _seen(messages: list[Answer]) -> list[Seen]:
    return [
        Seen(
            PubsubTopic(each["pubsub"]),
            WakuMessage(
                payload=b64decode(each["payload"]),
                content_topic=ContentTopic(each["topic"]),
                timestamp_ns=each["timestamp"],
                meta=b64decode(each["meta"]) if "meta" in each else None,
                ephemeral=True if "ephemeral" in each else None,
            ),
            _hash(each) if "hash" in each else None,
        )
        for each in messages
    ]


@asynccontextmanager
async def go_waku(*options: str) -> AsyncIterator[GoWaku]:
    """``options``: flags of the program, see there."""
    assert interop_go.is_ready(), "go-waku is not there: make interop-setup says why"
    async with peer_node(str(interop_go.program()), *options) as node:
        yield GoWaku(node)
