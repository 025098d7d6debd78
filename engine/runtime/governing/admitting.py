"""Our invitations to governed groups: who asks with one, and who is let in.

An ask is judged in this order: the token, by an HMAC; whether it is a replay; the newcomer's
statement; then whether the invitation is still open.  Who is let in at once, or was approved, gets
an ``Add`` entry and then the admission, in chunks; whoever is in already gets the admission again.
Everybody else gets a reason.  What is kept of people who wait is bounded, and so is how often one
asker is answered.  docs/invitations.md has the rules.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from msgspec import Struct

from engine.codec.join import decode_join
from engine.codec.joining import encode_admission
from engine.core.admin_log.acts import MAX_USES, Add, EntryId, Invite, Revoke
from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    LocalProtocolError,
    RemoteProtocolError,
)
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.invite import TOKEN_BYTES, StrongInvite, group_id_of
from engine.core.joining import (
    ANSWERED_FOR_MS,
    MAX_ASKING,
    MAX_ASKING_BY_ONE,
    MAX_OPEN_INVITATIONS,
    Ask,
    Asking,
    Chunk,
    Joining,
    JoiningKind,
    OwnInvitation,
    PutAsking,
    PutInvitation,
    Reason,
    Refusal,
    RemoveAsking,
    RemoveInvitation,
)
from engine.core.ports import StoreWrite
from engine.core.records import GroupRecord
from engine.crypto.identity import fingerprint_of, participant_id_of
from engine.crypto.joining import check_ask, check_proof, seal_admission, token_hash_of
from engine.crypto.links import encode_strong_invite
from engine.crypto.pair import OpenedPair
from engine.governance_views import AskingView, EarlierMessages
from engine.runtime.conversations import Conversations
from engine.runtime.governing.mail import JoiningMail
from engine.runtime.governing.passing_on import is_passable
from engine.runtime.governing.sessions import (
    closed_because,
    govern,
    governed_session,
    is_known_to_removed,
    may_invite,
    part_of,
    session_of,
    state_of,
)
from engine.runtime.runner_context import RunnerContext
from engine.session.group.session import GroupSession

DAY_MS: Final = 86_400_000
MAX_DAYS: Final = 30
ANSWER_AGAIN_MS: Final = 10_000
"""After the first answer to somebody; twice as long after each."""
MAX_SEALED: Final = 4
"""Admissions kept as they were sent, of up to 16 MiB each."""
MAX_ANSWERED: Final = 2_000
"""People of whom it is remembered when they were answered."""

_REASON_OF: Final = {
    CommandRefusal.INVITATION_OVER: Reason.SPENT,
    CommandRefusal.NOBODY_MORE: Reason.FULL,
}

logger = logging.getLogger(__name__)


class _Answered(Struct):
    """When somebody was answered."""

    signed_ms: UnixMs
    """Of the newest ask that was looked at, by the asker's clock: older ones are replays.

    No later than it was by ours, or whoever's clock was ahead could not ask again once it is right.
    """
    last_ms: UnixMs
    """Of the last one that was looked at."""
    again_ms: int = 0
    """When the admission may be sent again, by the time that timers go by."""
    every_ms: int = ANSWER_AGAIN_MS


class _Sealed(Struct, frozen=True):
    """An admission as it was sent: of one sent again, chunks of several answers make a whole."""

    made_of: tuple[bytes, tuple[bytes, ...]]
    """The answer key, and the entries of the log."""
    chunks: tuple[Chunk, ...]


class Admitting:
    def __init__(
        self,
        mail: JoiningMail,
        conversations: Conversations,
        context: RunnerContext,
        *,
        own_name: Callable[[], str],
    ) -> None:
        self._mail = mail
        self._conversations = conversations
        self._context = context
        self._own_name = own_name
        self.changed: Callable[[ConversationId], None] = lambda _group: None
        """Called when what is shown of a group's invitations, or of who asks, is different."""
        self._invitations: dict[ConversationId, list[OwnInvitation]] = {}
        self._asking: dict[tuple[ConversationId, ParticipantId], Asking] = {}
        self._sealed: OrderedDict[tuple[ConversationId, ParticipantId], _Sealed] = OrderedDict()
        self._answered: OrderedDict[tuple[ConversationId, ParticipantId], _Answered] = OrderedDict()
        self._full: set[ConversationId] = set()

    async def load(self) -> None:
        store, storage = self._context.store, self._context.storage
        over_ms = self._context.clock.clock_ms() - ANSWERED_FOR_MS
        for one in await storage.run(store.joining.invitations):
            if one.expires_ms < over_ms:
                await self._apply(
                    RemoveInvitation(conversation_id=one.conversation_id, token=one.token)
                )
            else:
                self._invitations.setdefault(one.conversation_id, []).append(one)
        for asking in await storage.run(store.joining.asking):
            ours = self._of(asking.conversation_id)
            if any(one.invitation_id in {None, asking.invitation_id} for one in ours):
                self._asking[asking.conversation_id, asking.participant_id] = asking
            else:  # Its invitation is forgotten, and they have to make room for others.
                await self._forget(asking)

    def forget(self, conversation_id: ConversationId) -> None:
        """The group is gone."""
        self._full.discard(conversation_id)
        self._invitations.pop(conversation_id, None)
        for place in [place for place in self._asking if place[0] == conversation_id]:
            del self._asking[place]

    def is_full(self, conversation_id: ConversationId) -> bool:
        """Whether nobody could be given the admin log when somebody was to be let in last."""
        return conversation_id in self._full

    async def _apply(self, *writes: StoreWrite) -> None:
        await self._context.storage.run(self._context.store.apply, writes)

    # --- our invitations ------------------------------------------------------------------------

    async def invite(
        self,
        conversation_id: ConversationId,
        *,
        uses: int,
        days: int,
        needs_approval: bool,
        earlier: EarlierMessages,
    ) -> str:
        """The token is on the disk before its hash is in the log, so no entry is without one."""
        if not (1 <= uses <= MAX_USES and 1 <= days <= MAX_DAYS):
            raise LocalProtocolError(f"an invitation for {uses} people and {days} days")
        runner = self._conversations.group(conversation_id)
        session = governed_session(runner)
        clock_ms = self._context.clock.clock_ms()
        if sum(self._is_open(one) for one in self._of(conversation_id)) >= MAX_OPEN_INVITATIONS:
            raise CommandError(CommandRefusal.TOO_MANY_INVITATIONS)
        await self._require_passable(conversation_id, session)
        one = OwnInvitation(
            conversation_id=conversation_id,
            token=self._mail.random_bytes(TOKEN_BYTES),
            needs_approval=needs_approval,
            earlier=earlier.value,
            made_ms=clock_ms,
            expires_ms=UnixMs(clock_ms + days * DAY_MS),
            uses=uses,
        )
        await self._apply(PutInvitation(invitation=one))
        act = Invite(token_hash=token_hash_of(one.token), uses=uses, expires_ms=one.expires_ms)
        await govern(runner, act)
        one = _named(one, session, self._context.own_id)
        await self._apply(PutInvitation(invitation=one))
        self._invitations.setdefault(conversation_id, []).append(one)
        link = self.link(one)
        if link is None:
            raise LocalProtocolError("an invitation that is not in the log")
        self.changed(conversation_id)
        return link

    async def _require_passable(
        self, conversation_id: ConversationId, session: GroupSession
    ) -> None:
        """Before an entry is written for somebody who could not be given the log.

        Raises CommandError.
        """
        admission = part_of(session).admission(self._context.own_id)
        if not await asyncio.to_thread(is_passable, admission):
            raise self._nobody_more(conversation_id)
        if self.is_full(conversation_id):
            self._full.discard(conversation_id)
            self.changed(conversation_id)

    def _nobody_more(self, conversation_id: ConversationId) -> CommandError:
        self._context.counters.add("joining.log_too_large")
        if not self.is_full(conversation_id):
            self._full.add(conversation_id)
            self.changed(conversation_id)
        return CommandError(CommandRefusal.NOBODY_MORE)

    def _of(self, conversation_id: ConversationId) -> list[OwnInvitation]:
        return self._invitations.get(conversation_id, [])

    def _find_unnamed(self, conversation_id: ConversationId) -> None:
        """The program ended between an entry and the note of its id."""
        ours = self._of(conversation_id)
        if all(one.invitation_id is not None for one in ours):
            return
        session = session_of(self._conversations.group(conversation_id))
        if session is not None:
            self._invitations[conversation_id] = [
                _named(one, session, self._context.own_id) for one in ours
            ]

    def _is_open(self, one: OwnInvitation) -> bool:
        """As far as this device knows by itself."""
        return one.expires_ms > self._context.clock.clock_ms()

    def own(self, conversation_id: ConversationId) -> dict[EntryId, OwnInvitation]:
        """Those of ours whose entries are in the log."""
        self._find_unnamed(conversation_id)
        return {
            one.invitation_id: one
            for one in self._of(conversation_id)
            if one.invitation_id is not None
        }

    def link(self, one: OwnInvitation) -> str | None:
        """Made anew each time, with where we are reachable now; None if it is in no log."""
        record = self._conversations.group(one.conversation_id).record
        if one.invitation_id is None or not isinstance(record, GroupRecord):
            return None
        if record.first_entry is None:
            return None
        identity = self._mail.identity
        return encode_strong_invite(
            identity,
            StrongInvite(
                group_id=group_id_of(one.conversation_id),
                first_entry=EntryId(record.first_entry),
                group_name=record.name,
                inviter_name=self._own_name(),
                public_key=identity.public_key,
                encryption_key=identity.encryption_public_key,
                invitation_id=one.invitation_id,
                token=one.token,
                expires_ms=one.expires_ms,
                node_addresses=tuple(self._context.transport.addresses()),
                service_nodes=record.service_nodes,
            ),
        )

    def links(self, conversation_id: ConversationId) -> dict[EntryId, str]:
        """Of ours, also of those that ended."""
        made = {name: self.link(one) for name, one in self.own(conversation_id).items()}
        return {name: link for name, link in made.items() if link is not None}

    async def revoke(self, conversation_id: ConversationId, invitation_id: EntryId) -> None:
        """Those who wait for a decision are told with their next ask."""
        await govern(self._conversations.group(conversation_id), Revoke(invitation=invitation_id))
        gone = [one for one in self._asked(conversation_id) if one.invitation_id == invitation_id]
        await self._forget(*gone)
        self.changed(conversation_id)

    # --- who asks -------------------------------------------------------------------------------

    def _asked(self, conversation_id: ConversationId) -> Iterable[Asking]:
        return [one for place, one in self._asking.items() if place[0] == conversation_id]

    def asking(self, conversation_id: ConversationId) -> tuple[AskingView, ...]:
        """For whom we have to decide, the earliest first."""
        found = []
        for one in self._asked(conversation_id):
            if one.is_refused:
                continue
            join = decode_join(one.statement)
            found.append(
                AskingView(
                    participant_id=one.participant_id,
                    name=join.name,
                    fingerprint=fingerprint_of(join.public_key),
                    invitation_id=one.invitation_id,
                    asked_ms=one.asked_ms,
                )
            )
        return tuple(sorted(found, key=lambda each: each.asked_ms))

    async def approve(self, conversation_id: ConversationId, who: ParticipantId) -> None:
        asking = self._waiting(conversation_id, who)
        await self._let_in(asking)
        await self._forget(asking)
        self.changed(conversation_id)

    async def refuse(self, conversation_id: ConversationId, who: ParticipantId) -> None:
        """They are told now, and whenever they ask again with this invitation."""
        refused = replace(self._waiting(conversation_id, who), is_refused=True)
        await self._keep(refused)
        await self._answer(refused, Refusal(reason=Reason.REFUSED, answer_key=refused.answer_key))
        self.changed(conversation_id)

    def _waiting(self, conversation_id: ConversationId, who: ParticipantId) -> Asking:
        asking = self._asking.get((conversation_id, who))
        if asking is None or asking.is_refused:
            raise CommandError(CommandRefusal.NOBODY_ASKS)
        return asking

    async def _keep(self, asking: Asking) -> None:
        await self._apply(PutAsking(asking=asking))
        self._asking[asking.conversation_id, asking.participant_id] = asking

    async def _forget(self, *gone: Asking) -> None:
        await self._apply(
            *(
                RemoveAsking(conversation_id=one.conversation_id, participant_id=one.participant_id)
                for one in gone
            )
        )
        for one in gone:
            self._asking.pop((one.conversation_id, one.participant_id), None)

    # --- asks -----------------------------------------------------------------------------------

    async def asked(
        self, opened: OpenedPair, conversation_id: ConversationId, joining: Joining, ask: Ask
    ) -> None:
        """Raises RemoteProtocolError, also ``join_unknown`` and ``join_replayed``."""
        one = self.own(conversation_id).get(joining.invitation_id)
        if one is None or conversation_id not in self._conversations:
            raise RemoteProtocolError("join_unknown")
        check_proof(
            ask,
            token=one.token,
            group_id=joining.group_id,
            invitation_id=joining.invitation_id,
            public_key=opened.sender_public_key,
        )
        who = participant_id_of(opened.sender_public_key)
        answered = self._note(conversation_id, who, opened.signed_ms)
        check_ask(
            ask,
            group_id=joining.group_id,
            public_key=opened.sender_public_key,
            encryption_key=opened.sender_encryption_key,
        )
        runner = self._conversations.group(conversation_id)
        await runner.ready()
        asking = Asking(
            conversation_id=conversation_id,
            participant_id=who,
            invitation_id=joining.invitation_id,
            statement=ask.statement,
            answer_key=ask.answer_key,
            asked_ms=self._context.clock.clock_ms(),
        )
        reason = await self._decide(asking, one, answered)
        if reason is not None:
            await self._answer(asking, Refusal(reason=reason, answer_key=ask.answer_key))

    def _note(
        self, conversation_id: ConversationId, who: ParticipantId, signed_ms: UnixMs
    ) -> _Answered:
        place = conversation_id, who
        answered = self._answered.setdefault(
            place, _Answered(signed_ms=UnixMs(-1), last_ms=UnixMs(-1))
        )
        if signed_ms <= answered.signed_ms or signed_ms == answered.last_ms:
            raise RemoteProtocolError("join_replayed")
        answered.signed_ms = min(signed_ms, self._context.clock.clock_ms())
        answered.last_ms = signed_ms
        self._answered.move_to_end(place)
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        return answered

    async def _decide(
        self, asking: Asking, one: OwnInvitation, answered: _Answered
    ) -> Reason | None:
        """Let them in, keep them waiting, or say why not; None if there is no reason to be said."""
        conversation_id, who = asking.conversation_id, asking.participant_id
        session = governed_session(self._conversations.group(conversation_id))
        state = state_of(session)
        before = self._asking.get((conversation_id, who))
        if who in state.roles:
            return await self._welcome_again(asking, before, answered)
        if not may_invite(session):
            if before is not None:
                await self._forget(before)
                self.changed(conversation_id)
            return Reason.REVOKED
        if before is not None and before.invitation_id == asking.invitation_id:
            kept = replace(asking, asked_ms=before.asked_ms, is_refused=before.is_refused)
            if kept != before:
                await self._keep(kept)
            return Reason.REFUSED if before.is_refused else Reason.WAITS
        closed = closed_because(state, asking.invitation_id)
        if closed is None and not self._is_open(one):
            closed = Reason.EXPIRED
        if closed is not None:
            return closed
        if one.needs_approval or is_known_to_removed(state, asking.invitation_id, who):
            return await self._let_wait(asking)
        return await self._let_in_at_once(asking, answered)

    async def _welcome_again(
        self, asking: Asking, before: Asking | None, answered: _Answered
    ) -> Reason | None:
        """They are in, and did not get the admission."""
        if before is not None:
            await self._forget(before)
        if not self._may_send_again(answered):
            self._context.counters.add("joining.asked_too_often")
            return None
        try:
            await self._send_admission(asking)
        except CommandError as error:
            return _REASON_OF.get(error.refusal, Reason.REVOKED)
        return None

    async def _let_in_at_once(self, asking: Asking, answered: _Answered) -> Reason | None:
        try:
            await self._let_in(asking)
        except CommandError as error:  # Else we may not let others in any more.
            return _REASON_OF.get(error.refusal, Reason.REVOKED)
        self._may_send_again(answered)
        self.changed(asking.conversation_id)
        return None

    def _may_send_again(self, answered: _Answered) -> bool:
        now_ms = self._context.clock.steady_ms()
        if now_ms < answered.again_ms:
            return False
        answered.again_ms = now_ms + answered.every_ms
        answered.every_ms *= 2
        return True

    async def _let_wait(self, asking: Asking) -> Reason | None:
        beside = [
            one
            for one in self._asked(asking.conversation_id)
            if one.invitation_id == asking.invitation_id
        ]
        if len(beside) >= MAX_ASKING_BY_ONE or len(self._asking) >= MAX_ASKING:
            self._context.counters.add("joining.too_many_ask")
            return None
        await self._keep(asking)
        self.changed(asking.conversation_id)
        return Reason.WAITS

    async def _let_in(self, asking: Asking) -> None:
        """Also by hand, after the invitation ended: we decided it.  Raises CommandError."""
        runner = self._conversations.group(asking.conversation_id)
        session = governed_session(runner)
        own = self.own(asking.conversation_id).get(asking.invitation_id)
        state = state_of(session)
        if asking.participant_id not in state.roles:
            await self._require_passable(asking.conversation_id, session)
            is_open = own is not None and self._is_open(own)
            by_it = is_open and closed_because(state, asking.invitation_id) is None
            earlier = EarlierMessages.NONE if own is None else EarlierMessages(own.earlier)
            act = Add(
                member=asking.participant_id,
                invitation=asking.invitation_id if by_it else None,
                reads_from=self._reads_from(session, earlier),
            )
            await govern(runner, act)
        await self._send_admission(asking)

    def _reads_from(self, session: GroupSession, earlier: EarlierMessages) -> int | None:
        match earlier:
            case EarlierMessages.NONE:
                return None
            case EarlierMessages.ALL:
                return 1
            case EarlierMessages.DAYS_30:
                since_ms = UnixMs(self._context.clock.clock_ms() - 30 * DAY_MS)
                return part_of(session).keys.written_in_at(since_ms)

    async def _send_admission(self, asking: Asking) -> None:
        """Raises CommandError if it is too large."""
        session = governed_session(self._conversations.group(asking.conversation_id))
        admission = part_of(session).admission(asking.participant_id)
        place = asking.conversation_id, asking.participant_id
        sealed = self._sealed.pop(place, None)
        made_of = asking.answer_key, admission.entries
        if sealed is None or sealed.made_of != made_of:
            parts = seal_admission(admission, asking.participant_id, asking.answer_key)
            try:
                chunks = await asyncio.to_thread(encode_admission, parts)
            except LocalProtocolError as error:
                raise self._nobody_more(asking.conversation_id) from error
            sealed = _Sealed(made_of=made_of, chunks=chunks)
        self._sealed[place] = sealed
        if len(self._sealed) > MAX_SEALED:
            self._sealed.popitem(last=False)
        for chunk in sealed.chunks:
            await self._answer(asking, chunk)

    async def _answer(self, asking: Asking, kind: JoiningKind) -> None:
        """What is lost comes again with the next ask."""
        join = decode_join(asking.statement)
        joining = Joining(
            group_id=group_id_of(asking.conversation_id),
            invitation_id=asking.invitation_id,
            kind=kind,
        )
        try:
            await self._mail.send(join.public_key, join.encryption_key, joining)
        except ChatError as error:
            self._context.counters.add("joining.not_answered")
            logger.warning("could not answer", extra={"error": type(error).__name__})


def _named(one: OwnInvitation, session: GroupSession, own_id: ParticipantId) -> OwnInvitation:
    """With the id of its entry, if that is in the log."""
    wanted = own_id, token_hash_of(one.token)
    found = (
        name
        for name, each in state_of(session).invitations.items()
        if (each.made_by, each.token_hash) == wanted
    )
    return replace(one, invitation_id=next(found, None))
