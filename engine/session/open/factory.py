"""Starts open channels: joined by name, or loaded from the store.

Creating a channel and joining it are the same: anyone who knows cluster, shard, content topic
and channel id, and the shared key if there is one, is in.  The factory returns records and writes;
it performs nothing itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from engine.codec.tuples import tuple_bytes
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.invite import conversation_id_of as group_conversation_id
from engine.core.ports import ProfileStore, PutOpenChannel, StoreWrite
from engine.core.records import ChannelName, OpenChannelRecord, OpenFormat, OpenPace
from engine.core.sds.config import FloodLimits, SdsConfig
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import ChannelState
from engine.session.open.session import OpenSession

_ID_DOMAIN: Final = "causerie/1/open-channel"
_KEYED_DOMAIN: Final = "causerie/1/shared-key-channel"
_SENDER_BYTES: Final = 4
_AUTHORS: Final = 4
"""All strangers of a channel have the quota of this many authors of a group."""


def conversation_id_of(name: ChannelName) -> ConversationId:
    """The same on every device, so that a channel is joined once."""
    shard = -1 if name.shard is None else name.shard
    names = (str(name.cluster_id), str(shard), name.content_topic, name.channel_id)
    named = tuple_bytes(_KEYED_DOMAIN, *names, name.key) if name.key else None
    return group_conversation_id(sha256(named or tuple_bytes(_ID_DOMAIN, *names)).digest())


def name_of(record: OpenChannelRecord) -> ChannelName:
    return ChannelName(
        channel_id=record.channel_id,
        content_topic=record.content_topic,
        cluster_id=record.cluster_id,
        shard=record.shard,
        key=record.key,
    )


@dataclass(slots=True, kw_only=True)
class OpenFactory:
    store: ProfileStore
    entropy: Entropy
    counters: Counters
    now_ms: Callable[[], UnixMs]
    online: Callable[[], bool]
    clock_offset_ms: Callable[[], int] = lambda: 0
    """How far our clock is ahead of ``now_ms``, which only ever goes on."""
    flood: FloodLimits = field(default_factory=FloodLimits)

    def joined(
        self, name: ChannelName, *, label: str, nick: str, format_: OpenFormat, pace: OpenPace
    ) -> tuple[OpenChannelRecord, tuple[StoreWrite, ...]]:
        """Join a channel: its record, and the writes.

        Our sender_id there is the nick and four random bytes: js-waku takes what bears its own
        sender_id for its own, so no two members may have the same.
        """
        clock_ms = UnixMs(self.now_ms() + self.clock_offset_ms())
        sender_id = f"{nick} {self.entropy.random_bytes(_SENDER_BYTES).hex()}"
        record = OpenChannelRecord(
            conversation_id=conversation_id_of(name),
            name=label,
            channel_id=name.channel_id,
            content_topic=name.content_topic,
            cluster_id=name.cluster_id,
            shard=name.shard,
            sender_id=ParticipantId(sender_id),
            nick=nick,
            created_ms=clock_ms,
            format=format_,
            pace=pace,
            key=name.key,
        )
        initial_state = ChannelState(lamport_timestamp=clock_ms)
        return record, (PutOpenChannel(channel=record, initial_state=initial_state),)

    def load(self, channel: OpenChannelRecord, log: LogTable | None = None) -> OpenSession:
        """Build the session from the store; runs on the storage thread.

        ``log``: the channel's log, if it was read already.
        """
        return OpenSession(
            channel,
            self.store.channel_state(channel.conversation_id, log=log),
            entropy=self.entropy,
            counters=self.counters.part(),
            config=replace(_config_of(channel.pace), flood=self._flood()),
            online=self.online(),
            now_ms=self.now_ms(),
            clock_offset_ms=self.clock_offset_ms(),
        )

    def _flood(self) -> FloodLimits:
        limits = self.flood
        return replace(
            limits,
            messages_per_day=_AUTHORS * limits.messages_per_day,
            bytes_per_day=_AUTHORS * limits.bytes_per_day,
        )


def _config_of(pace: OpenPace) -> SdsConfig:
    if pace is OpenPace.JS_WAKU:
        return SdsConfig.as_js_in_open_channel()
    return SdsConfig.for_open_channel()
