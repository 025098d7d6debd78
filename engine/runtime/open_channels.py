"""Implements the open channels of ``engine.api``: join, label and leave.

A node is on one cluster.  A channel on another one is kept and shown, but nothing of it can be
sent or received, which the window says.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.codec.channel_link import read_channel_link, write_channel_link
from engine.core.channel_link import MAX_CHANNEL_ID_BYTES, SHARED_KEY_BYTES
from engine.core.errors import InputError, InputFlaw, LocalProtocolError, RemoteProtocolError
from engine.core.ids import ChannelId, ContentTopic, ConversationId, WakuHash
from engine.core.ports import RemoveGroup
from engine.core.records import ChannelName, MemberRecord, OpenChannelRecord, OpenFormat, OpenPace
from engine.core.sds.log_table import LogTable
from engine.core.stored import Listed
from engine.core.waku import WakuMessage
from engine.events import ConversationAdded, ConversationRemoved
from engine.network.transport import MessageHandler, Receipt
from engine.network.waku.topics import MAX_INDEX, Sharding, parse_content_topic
from engine.network.wrapped import WrappedTransport
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.input_checks import usable_name
from engine.runtime.maintenance import Maintenance
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import Members
from engine.session.contract import ConversationRecord
from engine.session.inputs import SetLabel
from engine.session.open.factory import OpenFactory, conversation_id_of, name_of
from engine.session.open.session import OpenSession

MAX_NICK_BYTES: Final = 96
_TOPIC_NAME_BYTES: Final = 16
NO_CHANNEL: Final = ChannelId("0")
"""The specification's id for a group without channels."""


class _Unserved(WrappedTransport):
    """Of another cluster: nothing goes out and nothing comes in."""

    async def publish(self, message: WakuMessage, /) -> Receipt:
        del message
        return Receipt(waku_hash=WakuHash(b""), peers=0)

    def subscribe(self, content_topic: ContentTopic, handler: MessageHandler, /) -> "_Nothing":
        del content_topic, handler
        return _Nothing()


class _Nothing:
    def __call__(self) -> None:
        """Nothing was subscribed."""


def _open(record: ConversationRecord) -> OpenChannelRecord:
    if not isinstance(record, OpenChannelRecord):
        raise LocalProtocolError("not an open channel")
    return record


class OpenChannels:
    """``engine.api.OpenChannels``."""

    def __init__(
        self,
        book: OpenFactory,
        conversations: Conversations,
        context: RunnerContext,
        maintenance: Maintenance,
    ) -> None:
        self._book = book
        self._conversations = conversations
        self._context = context
        self._maintenance = maintenance

    @property
    def _sharding(self) -> Sharding:
        return self._context.transport.sharding

    def bring_up(
        self, channel: OpenChannelRecord, listed: Listed | None = None
    ) -> ConversationRunner:
        """``listed``: what the store says of it, if that was read already."""
        context, served = self._context, channel.cluster_id == self._sharding.cluster_id
        if served:
            self._sharding.place(channel.content_topic, channel.shard)
        else:
            unserved = _Unserved(context.transport)
            context = replace(context, transport=unserved, stores_reachable=lambda: False)
        runner = ConversationRunner(
            channel, load=self._load, people=_nobody, context=context, listed=listed
        )
        self._conversations.run_channel(
            runner, channel.content_topic, context.transport, served=served
        )
        return runner

    def _load(self, record: ConversationRecord, log: LogTable) -> OpenSession:
        return self._book.load(_open(record), log)

    def cluster_id(self) -> int:
        return self._sharding.cluster_id

    def new_name(self) -> ChannelName:
        random_bytes = self._book.entropy.random_bytes
        return ChannelName(
            channel_id=ChannelId("general"),
            content_topic=ContentTopic(
                f"/causerie/1/{random_bytes(_TOPIC_NAME_BYTES).hex()}/proto"
            ),
            cluster_id=self.cluster_id(),
            key=random_bytes(SHARED_KEY_BYTES),
        )

    async def make_link(self, conversation_id: ConversationId) -> str:
        record = _open(self._conversations.channel(conversation_id).record)
        return write_channel_link(name_of(record))

    def preview_link(self, link: str) -> ChannelName:
        return read_channel_link(link)

    async def shared_key(self, conversation_id: ConversationId) -> bytes:
        return _open(self._conversations.channel(conversation_id).record).key

    async def join(
        self,
        name: ChannelName,
        *,
        label: str,
        nick: str,
        format_: OpenFormat = OpenFormat.AUTO,
        pace: OpenPace = OpenPace.JS_WAKU,
    ) -> ConversationId:
        usable = self._usable(name)
        label, nick = usable_name(label or usable.channel_id), usable_name(nick)
        if len(nick.encode()) > MAX_NICK_BYTES:
            raise InputError(InputFlaw.NAME_TOO_LONG, limit=MAX_NICK_BYTES // 4)
        async with self._conversations.turn:
            usable = self._as_placed(usable)
            conversation_id = conversation_id_of(usable)
            if conversation_id not in self._conversations:
                channel, writes = self._book.joined(
                    usable, label=label, nick=nick, format_=format_, pace=pace
                )
                await self._context.storage.run(self._context.store.apply, writes)
                runner = self.bring_up(channel)
                await runner.ready()
                view = runner.view()
                if view is not None:
                    self._context.publish(ConversationAdded(conversation=view))
        return conversation_id

    def _usable(self, name: ChannelName) -> ChannelName:
        channel_id = name.channel_id.strip()
        content_topic = ContentTopic(name.content_topic.strip())
        if len(channel_id.encode("utf-8", "replace")) > MAX_CHANNEL_ID_BYTES:
            raise InputError(InputFlaw.CHANNEL_TOO_LONG, limit=MAX_CHANNEL_ID_BYTES)
        try:
            parse_content_topic(content_topic)
        except RemoteProtocolError as error:
            raise InputError(InputFlaw.CONTENT_TOPIC, given=content_topic) from error
        if len(name.key) not in {0, SHARED_KEY_BYTES}:
            raise InputError(InputFlaw.SHARED_KEY, limit=SHARED_KEY_BYTES)
        if name.shard is not None and not 0 <= name.shard <= MAX_INDEX:
            raise InputError(InputFlaw.SHARD, given=name.shard, limit=MAX_INDEX)
        ours = self._sharding.cluster_id
        if name.cluster_id != ours:
            raise InputError(InputFlaw.CLUSTER, given=name.cluster_id, limit=ours)
        return replace(
            name,
            channel_id=ChannelId(channel_id.encode("utf-8", "replace").decode()) or NO_CHANNEL,
            content_topic=content_topic,
        )

    def _as_placed(self, name: ChannelName) -> ChannelName:
        """A shard can be said by its number or left out, as the first channel of a topic did."""
        for runner in self._conversations.channels():
            record = _open(runner.record)
            here = (record.cluster_id, record.content_topic)
            if here == (name.cluster_id, name.content_topic) and record.shard != name.shard:
                if self._shard(record.content_topic, record.shard) != self._shard(
                    name.content_topic, name.shard
                ):
                    raise InputError(InputFlaw.TOPIC_PLACED, given=name.content_topic)
                return replace(name, shard=record.shard)
        return name

    def _shard(self, content_topic: ContentTopic, said: int | None) -> int:
        return self._sharding.usual_shard(content_topic) if said is None else said

    async def set_label(self, conversation_id: ConversationId, label: str) -> None:
        await self._conversations.channel(conversation_id).do(SetLabel(usable_name(label)))

    async def leave(self, conversation_id: ConversationId) -> None:
        """Nobody is told: nobody was known to be there."""
        async with self._conversations.turn:
            record = _open(self._conversations.channel(conversation_id).record)
            await self._conversations.end(conversation_id)
            remove = RemoveGroup(conversation_id=conversation_id)
            await self._context.storage.run(self._context.store.apply, [remove])
            others = (_open(runner.record) for runner in self._conversations.channels())
            if all(other.content_topic != record.content_topic for other in others):
                self._sharding.place(record.content_topic, None)
        self._context.publish(ConversationRemoved(conversation_id=conversation_id))
        self._maintenance.clear_removed(self._context.store)


def _nobody(_record: ConversationRecord, _members: Sequence[MemberRecord]) -> Members:
    return {}
