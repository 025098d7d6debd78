"""The deterministic message hash of 14/WAKU2-MESSAGE, which names a Waku message everywhere.

It covers the pubsub topic and all fields except ``version`` and ``ephemeral``.  A missing timestamp
hashes like 0.
"""

import hashlib

from engine.core.ids import PubsubTopic, WakuHash
from engine.core.waku import WakuMessage

_MASK_64 = 2**64 - 1


def message_hash(pubsub_topic: PubsubTopic, message: WakuMessage) -> WakuHash:
    hashed = (
        pubsub_topic.encode(),
        message.payload,
        message.content_topic.encode(),
        message.meta or b"",
        ((message.timestamp_ns or 0) & _MASK_64).to_bytes(8, "big"),
    )
    return WakuHash(hashlib.sha256(b"".join(hashed)).digest())
