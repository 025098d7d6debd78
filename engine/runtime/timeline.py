"""A conversation's messages: sends them, reads pages and holders, asks for what is missing.

Implements ``engine.api.Timeline``.  What changes a conversation goes through its runner; pages are
read from the database.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from engine.answers import (
    PAGE_SIZE,
    Arrival,
    ForkProof,
    HolderView,
    MessageInfo,
    ReactorView,
    TimelinePage,
    VersionView,
)
from engine.core.content import Attachment, Edit, Mention, Reaction, Retraction, Text
from engine.core.drafts import kept_draft
from engine.core.emoji import without_selectors
from engine.core.errors import CommandError, CommandRefusal, LocalProtocolError
from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.core.ports import HideMessage
from engine.core.records import OpenChannelRecord
from engine.core.sds.inputs import (
    ResendRequested,
    RetrieveLostRequested,
    RetrieveQuoted,
    RetrieveRequested,
)
from engine.core.stored import StoredMessage, StoredPage
from engine.events import (
    FloodView,
    ForkView,
    GapView,
    HeldView,
    MessageChanged,
    MessageKind,
    MessageRemoved,
    MessageView,
    TimelineChanged,
)
from engine.history_views import LostView
from engine.persistence.rules import MAX_QUOTING
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.history.backfill import DAY_MS
from engine.runtime.history.service import HistoryService
from engine.runtime.input_checks import (
    usable_caption,
    usable_emoji,
    usable_file,
    usable_text,
)
from engine.runtime.people import People
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import (
    claimed_holder_views,
    holder_views,
    message_view,
    name_of,
    open_holder_views,
    page_view,
    pair_holder_views,
    reactor_views,
    version_views,
)
from engine.session.inputs import Say
from engine.session.pair.gaps import lost_before
from engine.session.rows import spans_in

ROWS_LOOKED_AT = 100
QUOTED_DAYS = 7
"""How long before an answer Stores are searched for what it quotes, in a pair."""
BEFORE_ALL = Position(lamport_timestamp=-1, message_id=MessageId(""))


class Timeline:
    """``engine.api.Timeline``."""

    def __init__(
        self,
        context: RunnerContext,
        conversations: Conversations,
        people: People,
        history: HistoryService,
        shows: Callable[[Sequence[MessageView]], None] = lambda _messages: None,
    ) -> None:
        """``shows`` is told of the messages of each page."""
        self._shows = shows
        self._files = context.files
        self._copies = context.copies
        self._store = context.store
        self._storage = context.storage
        self._load_order = context.load_order
        self._own_id = context.own_id
        self._publish = context.publish
        self._conversations = conversations
        self._people = people
        self._history = history

    # --- what we say --------------------------------------------------------------------------

    async def send_text(
        self,
        conversation_id: ConversationId,
        text: str,
        *,
        reply_to: MessageId | None = None,
        mentions: Sequence[Mention] = (),
        forwarded: bool = False,
    ) -> MessageId:
        body = replace(usable_text(text, mentions), reply_to=reply_to, forwarded=forwarded)
        return await self._say(conversation_id, body)

    async def send_file(  # noqa: PLR0913 - one keyword per fact of the file
        self,
        conversation_id: ConversationId,
        *,
        name: str,
        media_type: str,
        data: bytes,
        caption: str = "",
        mentions: Sequence[Mention] = (),
        reply_to: MessageId | None = None,
        forwarded: bool = False,
        width: int = 0,
        height: int = 0,
    ) -> MessageId:
        said = replace(usable_caption(caption, mentions), reply_to=reply_to, forwarded=forwarded)
        body = usable_file(name, media_type, data, said, width=width, height=height)
        return await self._say(conversation_id, body)

    async def file_data(self, conversation_id: ConversationId, message_id: MessageId) -> bytes:
        row = await self._shown(conversation_id, message_id)
        if row.retracted:
            raise CommandError(CommandRefusal.RETRACTED)
        data = await self._storage.run(self._store.file_data, conversation_id, message_id)
        if data is None:
            raise CommandError(CommandRefusal.NO_FILE)
        if row.record.file is not None and row.record.file.transfer is not None:
            raise CommandError(CommandRefusal.TOO_LARGE_TO_SHOW)
        return data

    async def _say(self, conversation_id: ConversationId, body: Text | Attachment) -> MessageId:
        message_id = await self._runner(conversation_id).do(Say(body))
        if message_id is None:
            raise LocalProtocolError("a message without an id")
        return message_id

    async def react(
        self, conversation_id: ConversationId, message_id: MessageId, emoji: str, *, active: bool
    ) -> Sequence[str]:
        usable = usable_emoji(emoji)
        target = await self._shown(conversation_id, message_id)
        if target.retracted:
            raise CommandError(CommandRefusal.RETRACTED)
        key = without_selectors(usable)
        mine = any(one.mine and without_selectors(one.emoji) == key for one in target.reactions)
        if mine == active and not target.more_reactions:
            return ()
        before = await self._own_emoji(conversation_id, message_id)
        said = Reaction(target_id=message_id, emoji=usable, removed=not active)
        await self._runner(conversation_id).do(Say(said))
        left = await self._own_emoji(conversation_id, message_id)
        return [each for each_key, each in before.items() if each_key not in {*left, key}]

    async def _own_emoji(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Mapping[str, str]:
        """Of our reactions to a message, by what two spellings share; the earliest first."""
        given = await self._storage.run(self._store.reactors, conversation_id, message_id)
        return {without_selectors(each.emoji): each.emoji for each in given if each.is_own}

    async def edit(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        text: str,
        *,
        mentions: Sequence[Mention] = (),
    ) -> None:
        usable = usable_text(text, mentions)
        target = await self._own(conversation_id, message_id)
        if target.retracted:
            raise CommandError(CommandRefusal.RETRACTED)
        if (target.record.text, target.record.spans) != (usable.text, spans_in(usable)):
            said = Edit(target_id=message_id, text=usable)
            await self._runner(conversation_id).do(Say(said))

    async def retract(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        target = await self._own(conversation_id, message_id)
        if not target.retracted:
            await self._runner(conversation_id).do(Say(Retraction(target_id=message_id)))

    async def _shown(self, conversation_id: ConversationId, message_id: MessageId) -> StoredMessage:
        """A row of the timeline.  Raises CommandError if there is none."""
        self._runner(conversation_id)  # Raises if there is no such conversation.
        row = await self._storage.run(self._store.message, conversation_id, message_id)
        if row is None:
            raise CommandError(CommandRefusal.NO_MESSAGE)
        return row

    async def _own(self, conversation_id: ConversationId, message_id: MessageId) -> StoredMessage:
        """A text or file of ours.  Raises CommandError if there is none."""
        row = await self._shown(conversation_id, message_id)
        if row.record.kind not in {MessageKind.TEXT, MessageKind.FILE}:
            raise CommandError(CommandRefusal.NO_MESSAGE)
        if not row.record.is_own:
            raise CommandError(CommandRefusal.NOT_OURS)
        return row

    async def set_typing(self, conversation_id: ConversationId, *, active: bool) -> None:
        self._runner(conversation_id).type_now(active=active)

    async def resend(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Send again what the message shows: itself, its latest edit, or its retraction."""
        if self._runner(conversation_id).is_pair:
            await self._people.resend(conversation_id, message_id)
            return
        row = await self._storage.run(self._store.message, conversation_id, message_id)
        shown_id = (row and row.shown_id) or message_id
        with self._copies.asking_again(conversation_id, shown_id):
            await self._runner(conversation_id).do(ResendRequested(message_id=shown_id))

    async def delete_locally(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        await self._runner(conversation_id).write(
            HideMessage(conversation_id=conversation_id, message_id=message_id)
        )
        self._publish(MessageRemoved(conversation_id=conversation_id, message_id=message_id))
        await self._tell_quoting(conversation_id, message_id)

    async def _tell_quoting(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Publish the rows that quote a message which looks different now."""
        runner, store, run = self._runner(conversation_id), self._store, self._storage.run
        quoting = await run(store.quoting, conversation_id, (message_id,))
        if len(quoting) >= MAX_QUOTING:
            self._publish(TimelineChanged(conversation_id=conversation_id))
            return
        for row in (await run(store.messages, conversation_id, quoting)).values():
            view = message_view(row, runner.members, self._own_id, runner.record)
            self._publish(MessageChanged(message=view))

    async def save_draft(
        self, conversation_id: ConversationId, text: str, *, mentions: Sequence[Mention] = ()
    ) -> None:
        await self._runner(conversation_id).save_draft(kept_draft(text, mentions))

    async def mark_read(self, conversation_id: ConversationId, up_to: Position) -> None:
        await self._runner(conversation_id).mark_read(up_to)

    # --- what is missing ----------------------------------------------------------------------

    async def fetch_missing(self, conversation_id: ConversationId) -> None:
        await self._runner(conversation_id).do(RetrieveRequested())

    async def fetch_lost(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> None:
        runner = self._runner(conversation_id)
        await runner.do(RetrieveLostRequested(message_ids=tuple(message_ids)))
        lost = lost_before(runner.gap(), message_ids) if runner.is_pair else ()
        if lost:
            since_ms, until_ms = await self._time_of_lost(conversation_id, lost)
            await self._history.fetch_between(conversation_id, since_ms, until_ms)

    async def fetch_quoted(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        row = await self._shown(conversation_id, message_id)
        quoted = row.record.reply_to
        if quoted is None or row.quote is not None:
            return
        runner = self._runner(conversation_id)
        await runner.do(RetrieveQuoted(message_id=quoted, before=row.record.position))
        if runner.is_pair:
            sent_ms = row.record.position.lamport_timestamp
            since_ms = UnixMs(max(sent_ms - QUOTED_DAYS * DAY_MS, 0))
            await self._history.fetch_between(conversation_id, since_ms, UnixMs(sent_ms))

    # --- pages --------------------------------------------------------------------------------

    async def latest_page(
        self, conversation_id: ConversationId, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        runner = self._runner(conversation_id)
        self._load_order.opened(conversation_id)
        page = await self._storage.run(self._store.latest_page, conversation_id, limit=limit)
        return self._view(page, runner)

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        runner, store = self._runner(conversation_id), self._store
        page = await self._storage.run(store.page_before, conversation_id, position, limit=limit)
        return self._view(page, runner)

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        runner, store = self._runner(conversation_id), self._store
        page = await self._storage.run(store.page_after, conversation_id, position, limit=limit)
        return self._view(page, runner)

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = PAGE_SIZE
    ) -> TimelinePage:
        older = await self.page_before(conversation_id, position, limit=max(limit // 2, 1))
        after = older.messages[-1].position if older.messages else BEFORE_ALL
        newer = await self.page_after(conversation_id, after, limit=limit - limit // 2)
        both = older.messages + newer.messages
        beyond = max(len(both) - limit, 0)  # With a limit of 1 the older row has no room.
        return TimelinePage(
            messages=both[beyond:],
            has_older=older.older_count + beyond > 0,
            has_newer=newer.has_newer,
            older_count=older.older_count + beyond,
            total=newer.total,
        )

    async def _time_of_lost(
        self, conversation_id: ConversationId, lost: Sequence[LostView]
    ) -> tuple[UnixMs, UnixMs | None]:
        """The whole time in which the lost messages of a pair were sent or resent; None: until now.

        Their ids are unknown.  Each was sent after its author's previous message, if that is close,
        and before the message that follows.  If it was resent, then before it was given up, or
        later while this device was listening.  Raises StorageError.
        """
        since: list[int] = []
        for each in lost:
            since.append(each.since_ms - DAY_MS)
            if each.before is None:
                continue
            since.append(each.before.lamport_timestamp - DAY_MS)
            page = await self.page_before(conversation_id, each.before, limit=ROWS_LOOKED_AT)
            theirs = (row for row in reversed(page.messages) if row.sender_id == each.sender_id)
            earlier = next(theirs, None)
            if earlier is not None:
                since.append(earlier.position.lamport_timestamp)
        given_up = [each.given_up_ms for each in lost if each.given_up_ms is not None]
        until_ms = max(given_up) if len(given_up) == len(lost) else None
        return UnixMs(max(min(since), 0)), until_ms

    # --- about a message ----------------------------------------------------------------------

    async def versions(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[VersionView]:
        runner, store = self._runner(conversation_id), self._store
        versions = await self._storage.run(store.versions, conversation_id, message_id)
        return version_views(versions, runner.members, self._own_id, runner.record)

    async def reactors(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[ReactorView]:
        runner, store = self._runner(conversation_id), self._store
        reactors = await self._storage.run(store.reactors, conversation_id, message_id)
        return reactor_views(reactors, runner.members, self._own_id, runner.record)

    async def info(self, conversation_id: ConversationId, message_id: MessageId) -> MessageInfo:
        runner, store = self._runner(conversation_id), self._store
        row = await self._shown(conversation_id, message_id)
        entry = await self._storage.run(store.inspecting.log_entry, conversation_id, message_id)
        came = await self._storage.run(store.inspecting.came_ms, conversation_id, (message_id,))
        by, members = row.record.repaired_by, runner.members
        saved_ms = row.record.received_ms
        return MessageInfo(
            message=self._files.shown(message_view(row, members, self._own_id, runner.record)),
            received_ms=came.get(message_id, saved_ms),
            placed_ms=saved_ms if message_id in came else None,
            arrival=Arrival(row.record.arrival),
            repaired_by="" if by is None else name_of(by, members),
            holders=await self._holders_of(row, runner),
            size=entry.size if entry else 0,
        )

    async def _holders_of(
        self, row: StoredMessage, runner: ConversationRunner
    ) -> tuple[HolderView, ...]:
        message_id = row.record.position.message_id
        if row.record.is_own:
            return tuple(await self.holders(runner.conversation_id, message_id))
        claimed = runner.claimed_by(message_id)
        author, repairer = row.record.sender_id, row.record.repaired_by
        return claimed_holder_views(author, repairer, claimed, runner.members, self._own_id)

    # --- about it -----------------------------------------------------------------------------

    async def gap(self, conversation_id: ConversationId) -> GapView | None:
        return self._runner(conversation_id).gap()

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        return self._runner(conversation_id).held()

    async def floods(self, conversation_id: ConversationId) -> Sequence[FloodView]:
        await (runner := self._runner(conversation_id)).ready()
        return runner.floods()

    async def forks(self, conversation_id: ConversationId) -> Sequence[ForkView]:
        await (runner := self._runner(conversation_id)).ready()
        return runner.forks()

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        runner, store = self._runner(conversation_id), self._store
        if runner.is_pair:
            message = await self._storage.run(store.message, conversation_id, message_id)
            return pair_holder_views(message, runner.members, self._own_id)
        row = await self._storage.run(store.message, conversation_id, message_id)
        shown_id = (row and row.shown_id) or message_id
        entries = await self._storage.run(store.holders, conversation_id, shown_id)
        if isinstance(runner.record, OpenChannelRecord):
            return open_holder_views(entries)
        if row is None:
            return ()
        said_ms = row.record.sent_ms if row.edited_ms is None else row.edited_ms
        return holder_views(entries, runner.members, self._own_id, sent_ms=said_ms)

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        """The proof of a fork.

        Raises LocalProtocolError if one of its two messages is no longer kept.
        """
        runner, store = self._runner(fork.conversation_id), self._store
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

    def _runner(self, conversation_id: ConversationId) -> ConversationRunner:
        return self._conversations.runner(conversation_id)

    def _view(self, page: StoredPage, runner: ConversationRunner) -> TimelinePage:
        view = page_view(page, runner.members, self._own_id, runner.record)
        shown = tuple(map(self._files.shown, view.messages))
        self._shows(shown)
        return structs.replace(view, messages=shown)


def _proof(fork: ForkView, ids: Sequence[MessageId], signed: Sequence[bytes | None]) -> str:
    """A proof in JSON.  It is enough for anyone who knows the group's format to check it."""
    parts = [
        {"message_id": message_id, "signed_part": b64encode(raw).decode()}
        for message_id, raw in zip(ids, signed, strict=True)
        if raw is not None
    ]
    if len(parts) < len(ids):
        raise CommandError(CommandRefusal.NOT_KEPT)
    return json.dumps(
        {"proves": "equivocation", "author": fork.sender_id, "messages": parts}, indent=2
    )
