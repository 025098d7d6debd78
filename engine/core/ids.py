"""Identifiers, time, and a few value types that all layers share."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct

MessageId = NewType("MessageId", str)
"""An SDS message id, opaque on the wire; ours are 22 characters of base64url."""

ChannelId = NewType("ChannelId", str)
"""The SDS ``channel_id`` as on the wire: "0" for a group without channels."""

ConversationId = NewType("ConversationId", str)
"""A group or a pair on this device: base64url (no padding) of the 32-byte group id."""

ParticipantId = NewType("ParticipantId", str)
"""22 characters of base64url: the first 16 bytes of sha256 over (domain, Ed25519 public key)."""

InstanceId = NewType("InstanceId", bytes)
"""16 random bytes, new whenever a profile starts from a backup; precedes sequence numbers."""

UnixMs = NewType("UnixMs", int)
"""Integer Unix milliseconds."""

ContentTopic = NewType("ContentTopic", str)
PubsubTopic = NewType("PubsubTopic", str)
WakuHash = NewType("WakuHash", bytes)
"""The deterministic Waku message hash, 32 bytes; also SDS's retrieval hint."""

KEY_BYTES = 32
"""The length of an Ed25519 or X25519 key, public or private."""

SIGNATURE_BYTES = 64
"""The length of an Ed25519 signature."""


class Position(Struct, frozen=True, order=True):
    """Place in a channel's log: Lamport timestamp, then message id by byte."""

    lamport_timestamp: int
    message_id: MessageId


class AuthorSequence(Struct, frozen=True):
    """The n-th content message of one instance of one author; counts 1, 2, 3 and so on."""

    instance_id: InstanceId
    sequence: int


class DeliveryState(StrEnum):
    """The delivery state shown to the sender; ordered, and a state never moves backwards.

    FAILED stands apart: no relay, service node or Store ever took the message, and it was given up.
    """

    SAVED = "saved"
    SENT = "sent"
    POSSIBLY_HELD = "possibly_held"
    HELD = "held"
    FAILED = "failed"


class HolderSource(StrEnum):
    """How we know that a member holds a message; only BLOOM is uncertain."""

    CAUSAL = "causal"
    HOLDINGS = "holdings"
    REPAIR = "repair"
    BLOOM = "bloom"
