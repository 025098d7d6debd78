"""Gossipsub RPC ↔ bytes (libp2p pubsub, gossipsub 1.1), under StrictNoSign.

Each RPC is bounded before anything is built from it: an RPC by its bytes, every list by its length,
every topic and message id by its size.  Parts beyond a bound are left out, with a reason beside the
RPC; only bytes that are not an RPC raise.  StrictNoSign: a published message with ``from``,
``seqno``, ``signature`` or ``key``, even empty, is refused.  Peers offered with a PRUNE (peer
exchange) are ignored.  The router acts on the parts (``engine.network.waku.gossip.router``).
"""

from collections.abc import Iterable

from google.protobuf.message import DecodeError
from msgspec import Struct

from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from proto import gossipsub_pb2

MAX_RPC_BYTES = 512 * 1024
MAX_SUBSCRIPTIONS = 256
MAX_PUBLISHED = 2_048
MAX_CONTROLS = 256
"""In one RPC, for each of GRAFT, PRUNE, IHAVE, IWANT and IDONTWANT."""
MAX_MESSAGE_IDS = 5_000
"""In all IHAVEs of one RPC, in its IWANTs, and in its IDONTWANTs."""
MAX_TOPIC_CHARACTERS = 256
MESSAGE_ID_BYTES = 32


class Subscription(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic
    subscribe: bool


class PublishedMessage(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic
    data: bytes


class IHave(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic
    message_ids: tuple[bytes, ...]


class Prune(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic
    backoff_s: int | None = None


class Rpc(Struct, frozen=True, kw_only=True):
    """``iwant`` and ``idontwant`` are flattened: their grouping has no meaning."""

    subscriptions: tuple[Subscription, ...] = ()
    publish: tuple[PublishedMessage, ...] = ()
    graft: tuple[PubsubTopic, ...] = ()
    prune: tuple[Prune, ...] = ()
    ihave: tuple[IHave, ...] = ()
    iwant: tuple[bytes, ...] = ()
    idontwant: tuple[bytes, ...] = ()


class DecodedRpc(Struct, frozen=True, kw_only=True):
    """``refused`` holds one reason for every part that was left out."""

    rpc: Rpc
    refused: tuple[str, ...] = ()


def encode_rpc(rpc: Rpc) -> bytes:
    """Without a length prefix."""
    encoded = gossipsub_pb2.RPC(
        subscriptions=[
            gossipsub_pb2.SubOpts(subscribe=item.subscribe, topic_id=item.topic)
            for item in rpc.subscriptions
        ],
        publish=[
            gossipsub_pb2.PublishedMessage(data=item.data, topic=item.topic) for item in rpc.publish
        ],
    )
    if rpc.graft or rpc.prune or rpc.ihave or rpc.iwant or rpc.idontwant:
        encoded.control.CopyFrom(_encode_control(rpc))
    return encoded.SerializeToString()


def _encode_control(rpc: Rpc) -> gossipsub_pb2.ControlMessage:
    return gossipsub_pb2.ControlMessage(
        ihave=[
            gossipsub_pb2.ControlIHave(topic_id=item.topic, message_ids=item.message_ids)
            for item in rpc.ihave
        ],
        iwant=[gossipsub_pb2.ControlIWant(message_ids=rpc.iwant)] if rpc.iwant else [],
        graft=[gossipsub_pb2.ControlGraft(topic_id=topic) for topic in rpc.graft],
        prune=[
            gossipsub_pb2.ControlPrune(topic_id=item.topic, backoff=item.backoff_s)
            for item in rpc.prune
        ],
        idontwant=[gossipsub_pb2.ControlIDontWant(message_ids=rpc.idontwant)]
        if rpc.idontwant
        else [],
    )


def decode_rpc(data: bytes) -> DecodedRpc:
    """Raises RemoteProtocolError: ``rpc_oversized`` or ``rpc_malformed``."""
    if len(data) > MAX_RPC_BYTES:
        raise RemoteProtocolError("rpc_oversized", f"{len(data)} bytes")
    try:
        decoded = gossipsub_pb2.RPC.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("rpc_malformed") from error
    refused: list[str] = []
    subscriptions = _subscriptions(decoded, refused)
    publish = _published(decoded, refused)
    if not decoded.HasField("control"):
        rpc = Rpc(subscriptions=subscriptions, publish=publish)
        return DecodedRpc(rpc=rpc, refused=tuple(refused))
    control = decoded.control
    rpc = Rpc(
        subscriptions=subscriptions,
        publish=publish,
        graft=tuple(
            PubsubTopic(item.topic_id)
            for item in control.graft[:MAX_CONTROLS]
            if _topic_fits(item.topic_id, refused)
        ),
        prune=tuple(
            Prune(
                topic=PubsubTopic(item.topic_id),
                backoff_s=item.backoff if item.HasField("backoff") else None,
            )
            for item in control.prune[:MAX_CONTROLS]
            if _topic_fits(item.topic_id, refused)
        ),
        ihave=_ihaves(control, refused),
        iwant=_ids((item.message_ids for item in control.iwant[:MAX_CONTROLS]), refused),
        idontwant=_ids((item.message_ids for item in control.idontwant[:MAX_CONTROLS]), refused),
    )
    lists = (control.graft, control.prune, control.ihave, control.iwant, control.idontwant)
    if any(len(parts) > MAX_CONTROLS for parts in lists):
        refused.append("too_many_controls")
    return DecodedRpc(rpc=rpc, refused=tuple(refused))


def _subscriptions(decoded: gossipsub_pb2.RPC, refused: list[str]) -> tuple[Subscription, ...]:
    if len(decoded.subscriptions) > MAX_SUBSCRIPTIONS:
        refused.append("too_many_subscriptions")
    return tuple(
        Subscription(topic=PubsubTopic(item.topic_id), subscribe=item.subscribe)
        for item in decoded.subscriptions[:MAX_SUBSCRIPTIONS]
        if _topic_fits(item.topic_id, refused)
    )


def _published(decoded: gossipsub_pb2.RPC, refused: list[str]) -> tuple[PublishedMessage, ...]:
    if len(decoded.publish) > MAX_PUBLISHED:
        refused.append("too_many_messages")
    accepted: list[PublishedMessage] = []
    for item in decoded.publish[:MAX_PUBLISHED]:
        if any(item.HasField(name) for name in ("from", "seqno", "signature", "key")):
            refused.append("message_signed")
        elif len(item.data) > MAX_WAKU_MESSAGE_BYTES:
            refused.append("message_oversized")
        elif _topic_fits(item.topic, refused):
            accepted.append(PublishedMessage(topic=PubsubTopic(item.topic), data=item.data))
    return tuple(accepted)


def _ihaves(control: gossipsub_pb2.ControlMessage, refused: list[str]) -> tuple[IHave, ...]:
    ihaves: list[IHave] = []
    room = MAX_MESSAGE_IDS
    for item in control.ihave[:MAX_CONTROLS]:
        if _topic_fits(item.topic_id, refused):
            message_ids = _ids([item.message_ids], refused, room=room)
            room -= len(message_ids)
            ihaves.append(IHave(topic=PubsubTopic(item.topic_id), message_ids=message_ids))
    return tuple(ihaves)


def _ids(
    groups: Iterable[Iterable[bytes]], refused: list[str], *, room: int = MAX_MESSAGE_IDS
) -> tuple[bytes, ...]:
    ids: list[bytes] = []
    for group in groups:
        for message_id in group:
            if len(ids) >= room:
                refused.append("too_many_message_ids")
                return tuple(ids)
            if len(message_id) == MESSAGE_ID_BYTES:
                ids.append(message_id)
            elif not refused or refused[-1] != "message_id_malformed":
                refused.append("message_id_malformed")
    return tuple(ids)


def _topic_fits(topic: str, refused: list[str]) -> bool:
    if 0 < len(topic) <= MAX_TOPIC_CHARACTERS:
        return True
    refused.append("topic_malformed")
    return False
