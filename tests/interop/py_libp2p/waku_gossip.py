"""py-libp2p 0.8.1's gossipsub as 11/WAKU2-RELAY asks for it: what is set, and what is replaced.

The protocol's name takes the place of gossipsub 1.1's, because the router knows six names and no
other.  StrictNoSign: ``publish`` cannot leave sender and number out, so messages are pushed without
them; then whatever takes both for a message's identity takes its hash instead.  Runs in an
environment of its own, without anything of ours.
"""

import hashlib

from libp2p.abc import IHost
from libp2p.custom_types import TProtocol
from libp2p.pubsub import gossipsub, mcache
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.pubsub import Pubsub

RELAY = TProtocol("/vac/waku/relay/2.0.0")


def message_id(message: rpc_pb2.Message) -> bytes:
    return hashlib.sha256(message.data).digest()


gossipsub.PROTOCOL_ID_V11 = RELAY  # type: ignore[misc, unused-ignore]
mcache.default_msg_id_fn = message_id  # type: ignore[unused-ignore]


def waku_gossip(host: IHost) -> tuple[Pubsub, GossipSub]:
    """To be run as services; without the cap of ten messages a second, which Waku has not."""
    router = GossipSub(
        [RELAY],
        degree=6,
        degree_low=4,
        degree_high=12,
        heartbeat_interval=1,
        spam_protection_enabled=False,
        adaptive_gossip_enabled=False,
        eclipse_protection_enabled=False,
    )
    router._check_equivocation = lambda _: True  # it compares sender and number
    return Pubsub(host, router, strict_signing=False, msg_id_constructor=message_id), router


async def publish(node: Pubsub, topic: str, data: bytes) -> None:
    await node.push_msg(node.my_id, rpc_pb2.Message(data=data, topicIDs=[topic]))
