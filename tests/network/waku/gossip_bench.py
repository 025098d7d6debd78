"""A gossipsub router on a bench: its clock, what it is told, what it answers."""

import hashlib
from random import Random

from engine.codec.gossipsub import (
    PublishedMessage,
    Rpc,
    Subscription,
)
from engine.codec.waku import encode_waku_message
from engine.core.counters import Counters
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.router import GossipRouter
from engine.network.waku.gossip.vocabulary import (
    DeadlineReached,
    GossipsubSettings,
    Input,
    Join,
    PeerReady,
    RpcReceived,
    SendControl,
    SendMessage,
    Transition,
)
from engine.network.waku.validation import validate_relayed

TOPIC = PubsubTopic("/waku/2/rs/42/4")
OTHER = PubsubTopic("/waku/2/rs/42/5")


def peers(count: int) -> list[PeerId]:
    return [PeerId(f"peer{index:03}") for index in range(count)]


def waku_data(text: str, content_topic: str = "/a/1/b/c") -> bytes:
    return encode_waku_message(
        WakuMessage(payload=text.encode(), content_topic=ContentTopic(content_topic))
    )


def id_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class Bench:
    """A router and its clock."""

    def __init__(self, gossip: GossipsubSettings | None = None, *, seed: int = 1) -> None:
        self.counters = Counters()
        self.settings = gossip or GossipsubSettings()
        self.router = GossipRouter(
            settings=self.settings,
            validate=validate_relayed,
            random=Random(seed),
            counters=self.counters,
        )
        self.now_ms = 1_000

    def __call__(self, input_: Input) -> Transition:
        return self.router.handle(input_, now_ms=self.now_ms)

    def hear(self, peer_id: PeerId, rpc: Rpc, refused: tuple[str, ...] = ()) -> Transition:
        return self(RpcReceived(peer_id=peer_id, rpc=rpc, refused=refused))

    def hear_message(self, peer_id: PeerId, data: bytes) -> Transition:
        return self.hear(peer_id, Rpc(publish=(PublishedMessage(topic=TOPIC, data=data),)))

    def heartbeat(self) -> Transition:
        deadline_ms = self.router.next_deadline()  # None: it rests, and time passes nevertheless.
        at_ms = self.now_ms + self.settings.heartbeat_interval_ms
        self.now_ms = at_ms if deadline_ms is None else deadline_ms
        return self(DeadlineReached())

    def subscribers(
        self, count: int, topic: PubsubTopic = TOPIC, *, outbound: int = 0
    ) -> list[PeerId]:
        """Peers that subscribe and, by being told, know that we joined.

        The last ``outbound`` of them we dialled.
        """
        subscription = Rpc(subscriptions=(Subscription(topic=topic, subscribe=True),))
        for index, peer_id in enumerate(peers(count)):
            self(PeerReady(peer_id=peer_id, outbound=index >= count - outbound))
            self.hear(peer_id, subscription)
        return peers(count)


def joined(count: int, gossip: GossipsubSettings | None = None) -> tuple[Bench, list[PeerId]]:
    bench = Bench(gossip)
    bench(Join(topic=TOPIC))
    return bench, bench.subscribers(count)


def controls(transition: Transition) -> dict[PeerId, Rpc]:
    return {send.peer_id: send.rpc for send in transition.sends if isinstance(send, SendControl)}


def recipients(transition: Transition) -> list[PeerId]:
    return [p for send in transition.sends if isinstance(send, SendMessage) for p in send.peer_ids]
