"""The rows of open channels: what a channel is called, and who we are in it.

An open channel's row of ``conversation`` is a group's without epochs, members and admin;
``open_channel`` holds what it has instead.  Its log, timeline, delivery, draft and mark are kept
exactly as a group's.  Runs inside the store's transaction.
"""

import sqlite3
from typing import Final

from engine.core.ids import ChannelId, ContentTopic, ConversationId, ParticipantId, UnixMs
from engine.core.ports import PutOpenChannel
from engine.core.records import OpenChannelRecord, OpenFormat, OpenPace
from engine.persistence.profile_tables import add_channel, mute_end, put_conversation
from engine.persistence.stored_ids import mark_of

OPEN_CHANNEL: Final = """
CREATE TABLE open_channel (
  conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
  channel_id TEXT NOT NULL, content_topic TEXT NOT NULL, cluster_id INTEGER NOT NULL,
  shard INTEGER, sender_id TEXT NOT NULL, nick TEXT NOT NULL, format TEXT NOT NULL,
  pace TEXT NOT NULL
) STRICT
"""
_PUT: Final = """
INSERT INTO open_channel (conversation_key, channel_id, content_topic, cluster_id, shard, sender_id,
                          nick, format, pace, shared_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key) DO UPDATE SET
  channel_id = excluded.channel_id, content_topic = excluded.content_topic,
  cluster_id = excluded.cluster_id, shard = excluded.shard, sender_id = excluded.sender_id,
  nick = excluded.nick, format = excluded.format, pace = excluded.pace,
  shared_key = excluded.shared_key
"""
_READ: Final = """
SELECT conversation_id, name, channel_id, content_topic, cluster_id, shard, sender_id, nick, format,
       pace, shared_key, created_ms, muted, draft, read_lamport, read_message_id
FROM conversation JOIN open_channel USING (conversation_key) JOIN timeline USING (conversation_key)
ORDER BY conversation_key
"""


def put_open_channel(connection: sqlite3.Connection, write: PutOpenChannel) -> None:
    channel = write.channel
    key, is_new = put_conversation(connection, channel)
    if is_new:
        add_channel(connection, key, write)
    connection.execute(
        _PUT,
        (
            key,
            channel.channel_id,
            channel.content_topic,
            channel.cluster_id,
            channel.shard,
            channel.sender_id,
            channel.nick,
            channel.format,
            channel.pace,
            channel.key,
        ),
    )


def read_open_channels(connection: sqlite3.Connection) -> list[OpenChannelRecord]:
    return [
        OpenChannelRecord(
            conversation_id=ConversationId(conversation_id),
            name=name,
            channel_id=ChannelId(channel_id),
            content_topic=ContentTopic(content_topic),
            cluster_id=cluster_id,
            shard=shard,
            sender_id=ParticipantId(sender_id),
            nick=nick,
            format=OpenFormat(format_),
            pace=OpenPace(pace),
            key=key,
            created_ms=UnixMs(created_ms),
            muted=bool(muted),
            muted_until_ms=mute_end(muted),
            draft=draft,
            read_up_to=mark_of(read_lamport, read_message_id),
        )
        for (
            conversation_id,
            name,
            channel_id,
            content_topic,
            cluster_id,
            shard,
            sender_id,
            nick,
            format_,
            pace,
            key,
            created_ms,
            muted,
            draft,
            read_lamport,
            read_message_id,
        ) in connection.execute(_READ)
    ]
