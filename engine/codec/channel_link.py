"""The text of links to channels with a shared key: ``causerie:channel/``, names and the key.

The form is ``proto/channel_link.proto`` in the text of ``engine.codec.link_text``; non-canonical
bytes are refused.  Whether the content topic is one, and its cluster ours, is judged where one
joins.
"""

from typing import Final

from google.protobuf.message import DecodeError

from engine.codec.canonical import one_form
from engine.codec.link_text import LinkForm
from engine.core.channel_link import (
    CHANNEL_PREFIX,
    MAX_CHANNEL_ID_BYTES,
    MAX_INDEX,
    MAX_TOPIC_BYTES,
    SHARED_KEY_BYTES,
)
from engine.core.contacts import CONTACT_PREFIX
from engine.core.content import visible_line
from engine.core.errors import InviteError, LinkFlaw, LinkKind, LocalProtocolError
from engine.core.ids import ChannelId, ContentTopic
from engine.core.invite import INVITE_PREFIX
from engine.core.records import ChannelName
from proto import channel_link_pb2

VERSION: Final = 1
CHANNEL_FORM: Final = LinkForm(
    kind=LinkKind.CHANNEL,
    prefix=CHANNEL_PREFIX,
    domain="causerie/1/channel",
    other_prefixes=(INVITE_PREFIX, CONTACT_PREFIX),
)


def write_channel_link(name: ChannelName) -> str:
    """Raises LocalProtocolError for an unusable invitation."""
    try:
        wire = channel_link_pb2.ChannelLink(
            version=VERSION,
            key=name.key,
            channel_id=name.channel_id,
            content_topic=name.content_topic,
            cluster_id=name.cluster_id,
            shard=name.shard,
        )
        _check(wire)
    except (InviteError, ValueError) as error:
        raise LocalProtocolError(f"a link that nobody could use: {error}") from error
    return CHANNEL_FORM.write(wire.SerializeToString(deterministic=True))


def read_channel_link(link: str) -> ChannelName:
    """Raises InviteError."""
    encoded = CHANNEL_FORM.read(link)
    try:
        wire = channel_link_pb2.ChannelLink.FromString(encoded)
    except DecodeError as error:
        raise InviteError(LinkFlaw.UNREADABLE, LinkKind.CHANNEL) from error
    _check(wire)
    if one_form(wire) != encoded:
        raise InviteError(LinkFlaw.NOT_CANONICAL, LinkKind.CHANNEL)
    return ChannelName(
        channel_id=ChannelId(wire.channel_id),
        content_topic=ContentTopic(wire.content_topic),
        cluster_id=wire.cluster_id,
        shard=wire.shard if wire.HasField("shard") else None,
        key=wire.key,
    )


def _check(wire: channel_link_pb2.ChannelLink) -> None:
    if wire.version > VERSION:
        raise InviteError(LinkFlaw.NEWER, LinkKind.CHANNEL)
    if wire.version < VERSION:
        raise InviteError(LinkFlaw.INCOMPLETE, LinkKind.CHANNEL)
    if len(wire.key) != SHARED_KEY_BYTES:
        raise InviteError(LinkFlaw.BAD_KEY, LinkKind.CHANNEL)
    for text, most in (
        (wire.channel_id, MAX_CHANNEL_ID_BYTES),
        (wire.content_topic, MAX_TOPIC_BYTES),
    ):
        if not 0 < len(text.encode()) <= most or visible_line(text) != text:
            raise InviteError(LinkFlaw.BAD_NAME, LinkKind.CHANNEL)
    if max(wire.cluster_id, wire.shard) > MAX_INDEX:
        raise InviteError(LinkFlaw.BAD_ADDRESS, LinkKind.CHANNEL)
