"""The open channels of ``ScriptedEngine``: an object of its own, as groups are joined otherwise."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.api import OpenChannels
from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.errors import InputError, InputFlaw, InviteError, LinkFlaw, LinkKind
from engine.core.ids import ChannelId, ContentTopic, ConversationId, ParticipantId, UnixMs
from engine.core.records import ChannelName, OpenFormat, OpenPace
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    ConversationView,
    OpenChannelView,
)

if TYPE_CHECKING:
    from tests.ui.scripted_engine import ScriptedEngine

CLUSTER = 1
OWN_SENDER = ParticipantId("Ines 0a1b2c3d")
PROPOSED = ChannelName(
    channel_id=ChannelId("general"),
    content_topic=ContentTopic("/causerie/1/0123456789abcdef/proto"),
    cluster_id=CLUSTER,
    key=bytes(range(32)),
)
CHANNEL_LINK = f"{CHANNEL_PREFIX}harbour"
LINKED = ChannelName(
    channel_id=ChannelId("harbour"),
    content_topic=ContentTopic("/tides/1/harbour/proto"),
    cluster_id=CLUSTER,
    shard=3,
    key=bytes(range(32, 64)),
)


class ScriptedOpenChannels(OpenChannels):
    def __init__(self, engine: "ScriptedEngine") -> None:
        self._engine = engine

    def cluster_id(self) -> int:
        return CLUSTER

    def new_name(self) -> ChannelName:
        return PROPOSED

    async def make_link(self, conversation_id: ConversationId) -> str:
        self._engine.calls.append(("make_channel_link", conversation_id))
        return CHANNEL_LINK

    def preview_link(self, link: str) -> ChannelName:
        if link != CHANNEL_LINK:
            raise InviteError(LinkFlaw.CUT_OFF, LinkKind.CHANNEL)
        return LINKED

    async def shared_key(self, conversation_id: ConversationId) -> bytes:
        self._engine.calls.append(("shared_key", conversation_id))
        return LINKED.key

    async def join(
        self,
        name: ChannelName,
        *,
        label: str,
        nick: str,
        format_: OpenFormat = OpenFormat.AUTO,
        pace: OpenPace = OpenPace.JS_WAKU,
    ) -> ConversationId:
        self._engine.calls.append(("join_open", (name, label, nick, format_, pace)))
        if name.cluster_id != CLUSTER:
            raise InputError(InputFlaw.CLUSTER, given=name.cluster_id, limit=CLUSTER)
        conversation_id = ConversationId(name.channel_id.ljust(43, "_")[:43])
        self.add(conversation_id, name, label or name.channel_id)
        return conversation_id

    def add(
        self,
        conversation_id: ConversationId,
        name: ChannelName,
        label: str,
        *,
        is_served: bool = True,
    ) -> None:
        view = ConversationView(
            conversation_id=conversation_id,
            name=label,
            members=(),
            unread=0,
            first_unread=None,
            muted=False,
            last_message=None,
            missing=0,
            waiting_to_send=0,
            failed=0,
            created_ms=UnixMs(0),
            draft="",
            open_channel=OpenChannelView(
                channel_id=name.channel_id,
                content_topic=name.content_topic,
                cluster_id=name.cluster_id,
                shard=name.shard,
                sender_id=OWN_SENDER,
                is_served=is_served,
                has_key=bool(name.key),
            ),
        )
        self._engine.views[conversation_id] = view
        self._engine.rows[conversation_id] = {}
        self._engine.tell(ConversationAdded(conversation=view))

    async def set_label(self, conversation_id: ConversationId, label: str) -> None:
        self._engine.calls.append(("set_label", (conversation_id, label)))
        view = replace(self._engine.views[conversation_id], name=label)
        self._engine.views[conversation_id] = view
        self._engine.tell(ConversationChanged(conversation=view))

    async def leave(self, conversation_id: ConversationId) -> None:
        self._engine.calls.append(("leave_open", conversation_id))
        del self._engine.views[conversation_id]
        self._engine.tell(ConversationRemoved(conversation_id=conversation_id))
