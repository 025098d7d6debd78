"""Reads pages of a conversation's timeline, holders of messages, and proofs of forks."""

import json
from base64 import b64encode
from collections.abc import Sequence

from engine.answers import ForkProof, HolderView, TimelinePage
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position
from engine.core.ports import ProfileStore, StoredPage
from engine.events import ForkView
from engine.persistence.storage_thread import StorageThread
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.views import holder_views, message_view, page_view, pair_holder_views

PROVES = (
    "Both parts bear the signature of this author. Either they have the same number among its own "
    "messages, or the second names another message than the first as the one before it. So it told "
    "different people different things."
)
BEFORE_ALL = Position(lamport_timestamp=-1, message_id=MessageId(""))


class TimelinePages:
    def __init__(
        self,
        store: ProfileStore,
        storage: StorageThread,
        conversations: Conversations,
        *,
        own_id: ParticipantId,
    ) -> None:
        self._store = store
        self._storage = storage
        self._conversations = conversations
        self._own_id = own_id

    async def latest(self, conversation_id: ConversationId, *, limit: int) -> TimelinePage:
        runner = self._conversations.runner(conversation_id)
        page = await self._storage.run(self._store.latest_page, conversation_id, limit=limit)
        return self._view(page, runner)

    async def before(
        self, conversation_id: ConversationId, position: Position, *, limit: int
    ) -> TimelinePage:
        runner, store = self._conversations.runner(conversation_id), self._store
        page = await self._storage.run(store.page_before, conversation_id, position, limit=limit)
        return self._view(page, runner)

    async def after(
        self, conversation_id: ConversationId, position: Position, *, limit: int
    ) -> TimelinePage:
        runner, store = self._conversations.runner(conversation_id), self._store
        page = await self._storage.run(store.page_after, conversation_id, position, limit=limit)
        return self._view(page, runner)

    async def around(
        self, conversation_id: ConversationId, position: Position, *, limit: int
    ) -> TimelinePage:
        older = await self.before(conversation_id, position, limit=max(limit // 2, 1))
        after = older.messages[-1].position if older.messages else BEFORE_ALL
        newer = await self.after(conversation_id, after, limit=limit - limit // 2)
        both = older.messages + newer.messages
        beyond = max(len(both) - limit, 0)  # With a limit of 1 the older row has no room.
        return TimelinePage(
            messages=both[beyond:],
            has_older=older.older_count + beyond > 0,
            has_newer=newer.has_newer,
            older_count=older.older_count + beyond,
            total=newer.total,
        )

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        runner, store = self._conversations.runner(conversation_id), self._store
        if runner.is_pair:
            message = await self._storage.run(store.message, conversation_id, message_id)
            return pair_holder_views(message, runner.members, self._own_id)
        entries = await self._storage.run(store.holders, conversation_id, message_id)
        return holder_views(entries, runner.members, self._own_id)

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        """The proof of a fork.

        Raises LocalProtocolError if one of its two messages is no longer kept.
        """
        runner, store = self._conversations.runner(fork.conversation_id), self._store
        run, ids = self._storage.run, (fork.first_id, fork.second_id)
        rows = await run(store.messages, fork.conversation_id, ids)
        signed = [await run(store.raw, fork.conversation_id, message_id) for message_id in ids]
        first, second = (
            message_view(rows[message_id], runner.members, self._own_id)
            if message_id in rows
            else None
            for message_id in ids
        )
        return ForkProof(messages=(first, second), text=_proof(fork, ids, signed))

    def _view(self, page: StoredPage, runner: ConversationRunner) -> TimelinePage:
        return page_view(page, runner.members, self._own_id, is_pair=runner.is_pair)


def _proof(fork: ForkView, ids: Sequence[MessageId], signed: Sequence[bytes | None]) -> str:
    """A proof in JSON.  It is enough for anyone who knows the group's format to check it."""
    parts = [
        {"message_id": message_id, "signed_part": b64encode(raw).decode()}
        for message_id, raw in zip(ids, signed, strict=True)
        if raw is not None
    ]
    if len(parts) < len(ids):
        raise LocalProtocolError("one of the two messages is not kept here any more")
    return json.dumps({"proves": PROVES, "author": fork.sender_id, "messages": parts}, indent=2)
