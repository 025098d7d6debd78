"""The Waku message (14/WAKU2-MESSAGE) as the engine's own type, and its limits."""

from msgspec import Struct

from engine.core.ids import ContentTopic

MAX_WAKU_MESSAGE_BYTES = 150 * 1024


class WakuMessage(Struct, frozen=True, kw_only=True):
    """``timestamp_ns`` is Unix nanoseconds by the sender's clock, None if absent."""

    payload: bytes
    content_topic: ContentTopic
    version: int | None = None
    timestamp_ns: int | None = None
    meta: bytes | None = None
    ephemeral: bool | None = None
