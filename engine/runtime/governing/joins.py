"""Groups that we asked to be let into: asks again and again, and takes the answer.

An ask goes to the inviter's inbox at once, after 15 s, then ever more rarely up to once an hour;
also after a restart, and whenever the network comes back or another peer is connected.  An
admission is taken only from the inviter, and only if all of it is genuine
(``engine.crypto.joining``).  The group and the end of asking are one transaction.  Nobody is asked
any more once the inviter's device has forgotten the invitation, a month after it expired; if that
is only what a wrong clock says, asking goes on when it is right.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Final

from msgspec import Struct

from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    InviteError,
    RemoteProtocolError,
)
from engine.core.governed import Admission
from engine.core.ids import KEY_BYTES, ConversationId, UnixMs
from engine.core.invite import StrongInvite
from engine.core.joining import (
    ANSWERED_FOR_MS,
    MAX_JOINS,
    Chunk,
    Joining,
    PendingJoin,
    PutJoin,
    Reason,
    Refusal,
    RemoveJoin,
)
from engine.core.ports import PutNodeAddress, StoreWrite
from engine.crypto.join import build_join
from engine.crypto.joining import make_ask, open_admission, public_answer_key
from engine.crypto.links import parse_any_invite
from engine.crypto.pair import OpenedPair
from engine.governance_views import JoinsChanged, JoinState, JoinView
from engine.runtime.governing.chunk_book import ChunkBook
from engine.runtime.governing.mail import JoiningMail
from engine.runtime.runner_context import RunnerContext

ASK_FIRST_MS: Final = 15_000
ASK_MOST_MS: Final = 3_600_000
_STATES: Final = {
    None: JoinState.ASKED,
    Reason.WAITS: JoinState.WAITS,
    Reason.REFUSED: JoinState.REFUSED,
    Reason.SPENT: JoinState.SPENT,
    Reason.EXPIRED: JoinState.EXPIRED,
    Reason.REVOKED: JoinState.REVOKED,
    Reason.FULL: JoinState.FULL,
}

TakeIn = Callable[[Admission, StoreWrite], Coroutine[object, object, None]]
"""Begins the group that somebody let us into, with this write in the same transaction."""

logger = logging.getLogger(__name__)


class _Join(Struct):
    """One group that we ask to be let into."""

    kept: PendingJoin
    invite: StrongInvite
    ask_at_ms: UnixMs | None
    """By the time that timers go by; None: it was answered for good."""
    every_ms: int = ASK_FIRST_MS
    asked_ms: int = -ASK_FIRST_MS
    """When it was asked last, by the time that timers go by."""
    is_over: bool = False
    """By our clock, the inviter's device does not know the invitation any more."""

    @property
    def view(self) -> JoinView:
        return JoinView(
            conversation_id=self.kept.conversation_id,
            group_name=self.invite.group_name,
            inviter_name=self.invite.inviter_name,
            asked_ms=self.kept.asked_ms,
            state=JoinState.EXPIRED if self.is_over else _STATES[self.kept.reason],
        )


class Joins:
    def __init__(
        self,
        mail: JoiningMail,
        context: RunnerContext,
        *,
        own_name: Callable[[], str],
        online: Callable[[], bool],
        take_in: TakeIn,
    ) -> None:
        self._mail = mail
        self._context = context
        self._own_name = own_name
        self._online = online
        self._take_in = take_in
        self._joins: dict[ConversationId, _Join] = {}
        self._chunks = ChunkBook()
        self._peers = 0
        self._wake = asyncio.Event()

    async def load(self) -> None:
        context = self._context
        for kept in await context.storage.run(context.store.joining.joins):
            try:
                invite = parse_any_invite(kept.link, now_ms=None)
            except InviteError:
                context.counters.add("joining.unreadable")
                continue
            if isinstance(invite, StrongInvite):
                self._joins[kept.conversation_id] = self._begun(kept, invite)

    def _begun(self, kept: PendingJoin, invite: StrongInvite) -> _Join:
        self._context.transport.add_service_nodes(invite.service_nodes)
        self._context.transport.add_peers(invite.node_addresses)
        is_open = kept.reason in {None, Reason.WAITS}
        at_once = self._context.clock.steady_ms() if is_open else None
        return _Join(kept=kept, invite=invite, ask_at_ms=at_once)

    def views(self) -> tuple[JoinView, ...]:
        """Newest first."""
        joins = sorted(self._joins.values(), key=lambda one: one.kept.asked_ms, reverse=True)
        return tuple(one.view for one in joins)

    # --- commands -------------------------------------------------------------------------------

    async def begin(self, link: str, invite: StrongInvite) -> None:
        """Ask to be let in, or ask anew.  Raises CommandError."""
        conversation_id = invite.conversation_id
        if conversation_id not in self._joins and len(self._joins) >= MAX_JOINS:
            raise CommandError(CommandRefusal.TOO_MANY_JOINS)
        clock_ms = self._context.clock.clock_ms()
        kept = PendingJoin(
            conversation_id=conversation_id,
            link=link,
            answer_key=self._mail.random_bytes(KEY_BYTES),
            asked_ms=clock_ms,
        )
        addresses = (
            PutNodeAddress(multiaddr=address, seen_ms=clock_ms) for address in invite.node_addresses
        )
        await self._apply(PutJoin(join=kept), *addresses)
        self._chunks.forget(conversation_id)
        self._joins[conversation_id] = self._begun(kept, invite)
        self._tell()
        self._wake.set()

    async def forget(self, conversation_id: ConversationId) -> None:
        await self._apply(RemoveJoin(conversation_id=conversation_id))
        self._drop(conversation_id)

    def _drop(self, conversation_id: ConversationId) -> None:
        self._chunks.forget(conversation_id)
        if self._joins.pop(conversation_id, None) is not None:
            self._tell()

    def _tell(self) -> None:
        self._context.publish(JoinsChanged(joins=self.views()))

    async def _apply(self, *writes: StoreWrite) -> None:
        await self._context.storage.run(self._context.store.apply, writes)

    # --- asking ---------------------------------------------------------------------------------

    def peers_changed(self, peers: int) -> None:
        """Ask if there are more: one of them may be the inviter, or on the way to them.

        At once when the network is back, else not sooner than ASK_FIRST_MS after the last ask.
        """
        before, self._peers = self._peers, peers
        if peers <= before:
            return
        for one in self._joins.values():
            if one.ask_at_ms is not None:
                soon_ms = one.asked_ms + ASK_FIRST_MS if before else 0
                one.ask_at_ms = UnixMs(min(one.ask_at_ms, soon_ms))
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._wake.clear()
            wait_s = await self._ask_all()
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _ask_all(self) -> float | None:
        """Ask where it is due; returns in how many seconds it is next, None if never."""
        if not self._online():
            return None
        now_ms = self._context.clock.steady_ms
        for one in [*self._joins.values()]:
            if one.ask_at_ms is not None and one.ask_at_ms <= now_ms():
                one.asked_ms = now_ms()
                one.ask_at_ms = UnixMs(one.asked_ms + one.every_ms)
                one.every_ms = min(2 * one.every_ms, ASK_MOST_MS)
                if not self._is_over(one):
                    await self._ask(one)
        due = [one.ask_at_ms for one in self._joins.values() if one.ask_at_ms is not None]
        return max(0, min(due) - now_ms()) / 1000 if due else None

    def _is_over(self, one: _Join) -> bool:
        is_over = self._context.clock.clock_ms() > one.invite.expires_ms + ANSWERED_FOR_MS
        if is_over is not one.is_over:
            one.is_over = is_over
            self._tell()
        return is_over

    async def _ask(self, one: _Join) -> None:
        invite, identity = one.invite, self._mail.identity
        try:
            join = build_join(
                identity,
                group_id=invite.group_id,
                name=self._own_name(),
                joined_ms=one.kept.asked_ms,
            )
            ask = make_ask(identity, invite, one.kept.answer_key, join.statement)
            joining = Joining(
                group_id=invite.group_id, invitation_id=invite.invitation_id, kind=ask
            )
            await self._mail.send(invite.public_key, invite.encryption_key, joining)
        except ChatError as error:
            self._context.counters.add("joining.not_asked")
            logger.warning("could not ask", extra={"error": type(error).__name__})

    # --- answers --------------------------------------------------------------------------------

    async def answered(
        self, opened: OpenedPair, conversation_id: ConversationId, joining: Joining
    ) -> None:
        """Raises RemoteProtocolError, also ``join_unknown``, ``join_stranger``, ``join_stale``."""
        one = self._joins.get(conversation_id)
        if one is None or joining.invitation_id != one.invite.invitation_id:
            raise RemoteProtocolError("join_unknown")
        if opened.sender_public_key != one.invite.public_key:
            raise RemoteProtocolError("join_stranger")
        match joining.kind:
            case Refusal() as refusal:
                await self._refused(one, refusal)
            case Chunk() as chunk:
                await self._came(one, opened, chunk)
            case _:
                raise RemoteProtocolError("join_unknown")

    async def _refused(self, one: _Join, refusal: Refusal) -> None:
        if refusal.answer_key != public_answer_key(one.kept.answer_key):
            raise RemoteProtocolError("join_stale")
        if refusal.reason is one.kept.reason:
            return
        one.kept = replace(one.kept, reason=refusal.reason)
        if refusal.reason is not Reason.WAITS:
            one.ask_at_ms = None
        await self._apply(PutJoin(join=one.kept))
        self._tell()

    async def _came(self, one: _Join, opened: OpenedPair, chunk: Chunk) -> None:
        conversation_id = one.kept.conversation_id
        self._context.counters.add("joining.chunks")
        whole = self._chunks.take(conversation_id, opened.sender_public_key, chunk)
        if whole is None:
            return
        admission = await asyncio.to_thread(
            open_admission,
            whole,
            one.invite,
            self._mail.identity.participant_id,
            one.kept.answer_key,
        )
        if self._joins.get(conversation_id) is one:
            await self._take_in(admission, RemoveJoin(conversation_id=conversation_id))
            self._drop(conversation_id)
