"""One person on one device: what two people are to each other, over their messages, sans-I/O.

Bytes from the network pass, in this order: size → seal → signature, of the other of this pair →
MVDS → content → order → what may be said as things stand → rows.  What is refused leaves a named
counter.  The messages themselves are ``engine.session.pair_channel``'s; here is who asked,
accepted, declined or blocked, who is there, and who is typing.

It refuses to know how bytes travel and where they are kept: see ``engine.session.session``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engine.codec.content import decode_pair_ephemeral
from engine.core.contacts import ContactState
from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Presence,
    ProfileUpdate,
    Text,
    Typing,
)
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ContactRecord, MemberRecord, PutContact, SaveValue
from engine.core.types import ContentTopic, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.crypto.pair import MvdsPart, OpenedPair
from engine.events import GapView
from engine.session.batch import Batch
from engine.session.chance import Chance
from engine.session.pair_channel import PairChannel
from engine.session.pair_contact import DECLINED_FOR_MS, PairContact
from engine.session.pair_order import Placed
from engine.session.pair_presence import PresenceBoard
from engine.session.pair_seed import OwnProfile, PairSeed, before_block_key, both, declined_key
from engine.session.types import HeldAside, Loaded, MembersNoted, SessionTransition, TypingNoted
from engine.session.typing import TypingBoard
from engine.session.wire import EPHEMERAL_MAX_AGE_MS, EPHEMERAL_MAX_AHEAD_MS, check_is_fresh


class PairSession:
    """Feed it time, bytes and wishes; it gives back what to write, send and show."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        seed: PairSeed,
        *,
        profile: Callable[[], OwnProfile],
        chance: Chance,
        counters: Counters,
        config: MvdsConfig,
        online: bool,
        now_ms: UnixMs,
    ) -> None:
        self._identity = seed.identity
        self._profile = profile
        self._counters = counters
        self._online = online
        self._contact = PairContact(
            seed.contact, declined_ms=seed.declined_ms, before_block=seed.before_block
        )
        self._channel = PairChannel(
            seed.channel,
            seed.contact,
            seed.identity,
            to_inbox=lambda: self._contact.state is ContactState.ASKED,
            chance=chance,
            counters=counters,
            config=config,
            online=online and not self._contact.is_blocked,
            now_ms=now_ms,
        )
        self._answer_id: MessageId | None = None
        self._request_shown_ms = now_ms if seed.channel.order.authors else None
        self._typing = TypingBoard()
        self._presence = PresenceBoard(last_seen_ms=seed.contact.last_seen_ms)
        self._set_presence(now_ms)

    # --- what people want ---------------------------------------------------------------------

    def say(self, body: Body, *, now_ms: UnixMs) -> SessionTransition:
        """Raises LocalProtocolError, with the reason in words, before both wanted to talk."""
        if not isinstance(body, Text):
            raise LocalProtocolError("this is not said in so many words")
        self._contact.require_accepted()
        self._typing.may_say(active=False, now_ms=now_ms)
        batch = Batch()
        return batch.finish(self._channel.say(body, batch, now_ms=now_ms))

    def ask(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask the other to talk, or accept if they ask; nothing if that was said already."""
        if self._contact.state is ContactState.ASKING:
            return self.accept(now_ms=now_ms)
        if self._contact.is_blocked:
            self._contact.require_accepted()
        batch = Batch()
        if self._contact.state is ContactState.DECLINED:
            self._become(ContactState.ASKED, batch, now_ms=now_ms)
            self._say_request(batch, now_ms=now_ms)
        elif self._has_to_ask() or self._asked_long_ago(now_ms):
            self._say_request(batch, now_ms=now_ms)
        return batch.finish()

    def accept(self, *, now_ms: UnixMs) -> SessionTransition:
        """Whom we declined, or who declined, is asked."""
        if self._contact.state is ContactState.DECLINED:
            return self.ask(now_ms=now_ms)
        if self._contact.state is not ContactState.ASKING:
            raise LocalProtocolError("there is no request to accept")
        batch = Batch()
        self._say_accepted(batch, now_ms=now_ms)
        self._become(ContactState.ACCEPTED, batch, now_ms=now_ms)
        return batch.finish()

    def decline(self, *, now_ms: UnixMs) -> SessionTransition:
        if self._contact.state not in {ContactState.ASKING, ContactState.ACCEPTED}:
            raise LocalProtocolError("there is nothing to decline")
        batch = Batch()
        self._channel.say(ContactAnswer(accepted=False), batch, now_ms=now_ms)
        self._become(ContactState.DECLINED, batch, now_ms=now_ms)
        return batch.finish()

    def block(self, *, blocked: bool, now_ms: UnixMs) -> SessionTransition:
        """From now on, or no longer, nothing of theirs is taken in or answered."""
        batch = Batch()
        if blocked and not self._contact.is_blocked:
            self._become(ContactState.BLOCKED, batch, now_ms=now_ms)
        elif self._contact.is_blocked and not blocked:
            self._contact.unblock()
            self._contact_changed(batch, now_ms=now_ms)
        return batch.finish()

    def rename(self, name: str, *, now_ms: UnixMs) -> SessionTransition:
        """On this device only."""
        batch = Batch()
        self._contact.rename(name)
        self._contact_changed(batch, now_ms=now_ms)
        return batch.finish()

    def tell_profile(self, *, now_ms: UnixMs) -> SessionTransition:
        """Tell our name and picture, if we are on speaking terms; else it waits for the answer."""
        batch = Batch()
        batch.notes.append(MembersNoted())  # The own name stands in the list of members, too.
        if self._contact.state in {ContactState.ASKED, ContactState.ACCEPTED}:
            own = self._profile()
            update = ProfileUpdate(name=own.name, picture=own.picture)
            self._channel.say(update, batch, now_ms=now_ms)
        return batch.finish()

    def type_now(self, *, active: bool, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        together = self._contact.is_accepted and self._online
        if together and self._typing.may_say(active=active, now_ms=now_ms):
            self._channel.say_unheld(Typing(active=active), batch, now_ms=now_ms)
        return batch.finish()

    def resend(self, message_id: MessageId, *, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        self._channel.resend(message_id, batch, now_ms=now_ms)
        return batch.finish()

    def retrieve(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask whether the other is there: if they are, they send what we lack."""
        self._presence.ask_again(now_ms=now_ms)
        return self.advance(now_ms=now_ms)

    # --- what the world says ------------------------------------------------------------------

    def knock(self, message: WakuMessage) -> bool:
        try:
            self._channel.wire.knock(message)
        except RemoteProtocolError as error:
            self._counters.add(f"pair.{error.reason}")
            return False
        return True

    def receive(
        self,
        message: WakuMessage,
        waku_hash: WakuHash,  # noqa: ARG002 - part of the protocol; nothing asks a Store yet
        *,
        now_ms: UnixMs,
    ) -> SessionTransition:
        """Take in one Waku message of the pair's topic or of our inbox.  Never raises for it."""
        batch = Batch()
        try:
            self._take(self._channel.wire.open(message), batch, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._counters.add(f"pair.{error.reason}")
        return batch.finish()

    def accepted(
        self,
        message_ids: Sequence[MessageId],
        *,
        peers: int,
        waku_hash: WakuHash,  # noqa: ARG002 - part of the protocol
        now_ms: UnixMs,  # noqa: ARG002 - part of the protocol
    ) -> SessionTransition:
        batch = Batch()
        if peers > 0:
            for message_id in message_ids:
                # Of what is held or given up, a receipt may come late, also to another session.
                if self._channel.is_awaited(message_id):
                    self._channel.narrator.sent(message_id, batch)
        return batch.finish()

    def loaded(self, loaded: Loaded, *, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        self._channel.loaded(loaded, batch, now_ms=now_ms)
        return batch.finish()

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        self._online = online
        was_here = self.other_is_here
        self._go_online(batch, now_ms=now_ms)
        if self.other_is_here != was_here:
            batch.notes.append(MembersNoted())
        return batch.finish()

    def advance(self, *, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        if self._typing.expire(now_ms):
            batch.notes.append(TypingNoted())
        if self._presence.expire(now_ms):
            batch.notes.append(MembersNoted())
        self._say_presence(batch, now_ms=now_ms)
        if self._has_to_ask():
            self._say_request(batch, now_ms=now_ms)
        if self._channel.awaits and self._presence.nudge(now_ms):
            self._channel.seen(batch, now_ms=now_ms)
        placed, shown = self._channel.advance(batch, now_ms=now_ms)
        self._tell(placed, batch, now_ms=now_ms)
        for one in shown:
            if self._contact.takes(one.content.body, now_ms=now_ms):
                self._channel.narrator.shown(one, batch, now_ms=now_ms)
        return batch.finish()

    # --- what can be asked --------------------------------------------------------------------

    @property
    def content_topic(self) -> ContentTopic:
        return self._channel.wire.content_topic

    @property
    def channel(self) -> PairChannel:
        """For looking at, by tests."""
        return self._channel

    @property
    def record(self) -> ContactRecord:
        return replace(self._contact.record, last_seen_ms=self._presence.last_seen_ms)

    def members(self) -> Mapping[ParticipantId, MemberRecord]:
        return both(self._contact.record, self._identity, own_name=self._profile().name)

    @property
    def other_is_here(self) -> bool:
        return self._presence.is_here

    def next_deadline(self) -> UnixMs | None:
        deadlines = (
            self._channel.next_deadline(),
            self._presence.next_deadline(),
            self._presence.nudge_ms() if self._channel.awaits else None,
            self._typing.next_deadline(),
        )
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        return self._channel.order.gap()

    def held_aside(self) -> HeldAside:
        """Nothing is: a clock that is ahead counts as ours."""
        return HeldAside()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    # --- inside: what we say ------------------------------------------------------------------

    def _has_to_ask(self) -> bool:
        """Also after a crash between the contact's record and its first message."""
        return self._contact.state is ContactState.ASKED and self._channel.said_nothing

    def _asked_long_ago(self, now_ms: UnixMs) -> bool:
        """Who declined does not hear of it again at once, and is not asked again before."""
        asked = self._contact.state is ContactState.ASKED
        return asked and now_ms - self._channel.order.lamport_timestamp > DECLINED_FOR_MS

    def _say_request(self, batch: Batch, *, now_ms: UnixMs) -> None:
        own = self._profile()
        request = ContactRequest(name=own.name, picture=own.picture)
        self._channel.say(request, batch, now_ms=now_ms)

    def _say_accepted(self, batch: Batch, *, now_ms: UnixMs) -> None:
        own = self._profile()
        answer = ContactAnswer(accepted=True, name=own.name, picture=own.picture)
        self._answer_id = self._channel.say(answer, batch, now_ms=now_ms)

    def _say_presence(self, batch: Batch, *, now_ms: UnixMs) -> None:
        answer_wanted = self._presence.due(now_ms)
        if answer_wanted is not None:
            presence = Presence(answer_wanted=answer_wanted)
            self._channel.say_unheld(presence, batch, now_ms=now_ms)

    # --- inside: what they say ----------------------------------------------------------------

    def _take(self, opened: OpenedPair, batch: Batch, *, now_ms: UnixMs) -> None:
        """Raises RemoteProtocolError."""
        if self._contact.is_blocked:
            raise RemoteProtocolError("blocked")
        if isinstance(opened.body, MvdsPart):
            placed = self._channel.take(
                opened.body.payload,
                batch,
                only_contact=not self._contact.may_be_talked_to,
                now_ms=now_ms,
            )
            self._tell(placed, batch, now_ms=now_ms)
            if -EPHEMERAL_MAX_AHEAD_MS <= now_ms - opened.signed_ms <= EPHEMERAL_MAX_AGE_MS:
                self._heard(batch, now_ms=now_ms)
            return
        check_is_fresh(opened.signed_ms, now_ms)
        said = decode_pair_ephemeral(opened.body.content)
        if not self._contact.is_accepted:
            raise RemoteProtocolError("not_accepted")
        self._heard(batch, now_ms=now_ms)
        if isinstance(said, Typing):
            self._heard_typing(batch, active=said.active, now_ms=now_ms)
        elif said.answer_wanted and self._online and self._presence.may_answer(now_ms):
            self._channel.say_unheld(Presence(answer_wanted=False), batch, now_ms=now_ms)

    def _heard(self, batch: Batch, *, now_ms: UnixMs) -> None:
        """A sign of life."""
        if not self._contact.is_accepted:
            return
        self._channel.seen(batch, now_ms=now_ms)
        if self._presence.heard(now_ms):
            batch.writes.append(PutContact(contact=self.record))
            batch.notes.append(MembersNoted())

    def _heard_typing(self, batch: Batch, *, active: bool, now_ms: UnixMs) -> None:
        who = self._contact.record.participant_id
        if self._typing.heard(who, active=active, now_ms=now_ms):
            batch.notes.append(TypingNoted())

    def _tell(self, placed: Sequence[Placed], batch: Batch, *, now_ms: UnixMs) -> None:
        for one in placed:
            body = one.content.body
            if not self._contact.takes(body, now_ms=now_ms, late=one.late):
                self._counters.add("pair.not_accepted")
                self._channel.narrator.refused(one, batch)
                continue
            before = self._contact.record
            answer = self._contact.hear(body)
            if self._is_shown_already(body, before.state, now_ms=now_ms):
                self._counters.add("pair.asked_again")
            else:
                self._channel.narrator.placed(one, batch, now_ms=now_ms)
            self._heard_typing(batch, active=False, now_ms=now_ms)
            if answer and not (self._answer_id and self._channel.is_awaited(self._answer_id)):
                # One serves for all meanwhile: a request is small, and our picture is not.
                self._say_accepted(batch, now_ms=now_ms)
            if self._contact.record != before:
                self._contact_changed(batch, now_ms=now_ms)

    def _is_shown_already(self, body: Body, before: ContactState, *, now_ms: UnixMs) -> bool:
        """A stranger's request is one row and one notification a day, however often it is made."""
        if not isinstance(body, ContactRequest):
            return False
        shown_ms = self._request_shown_ms
        lately = shown_ms is not None and 0 <= now_ms - shown_ms < DECLINED_FOR_MS
        if lately and before is ContactState.ASKING:
            return True
        self._request_shown_ms = now_ms
        return False

    # --- inside: how far we have come ---------------------------------------------------------

    def _become(self, state: ContactState, batch: Batch, *, now_ms: UnixMs) -> None:
        contact = self._contact
        contact.become(state, now_ms=now_ms)
        if state is ContactState.DECLINED:
            batch.writes.append(SaveValue(key=declined_key(contact.record), value=str(now_ms)))
        elif state is ContactState.BLOCKED and contact.before_block is not None:
            key = before_block_key(contact.record)
            batch.writes.append(SaveValue(key=key, value=contact.before_block))
        self._contact_changed(batch, now_ms=now_ms)

    def _contact_changed(self, batch: Batch, *, now_ms: UnixMs) -> None:
        batch.writes.append(PutContact(contact=self.record))
        batch.notes.append(MembersNoted())
        self._go_online(batch, now_ms=now_ms)

    def _go_online(self, batch: Batch, *, now_ms: UnixMs) -> None:
        """Or offline: towards somebody who is blocked we are never there."""
        reachable = self._online and not self._contact.is_blocked
        self._channel.connectivity(online=reachable, batch=batch, now_ms=now_ms)
        self._set_presence(now_ms)
        self._say_presence(batch, now_ms=now_ms)

    def _set_presence(self, now_ms: UnixMs) -> None:
        if self._online and self._contact.is_accepted:
            self._presence.begin(now_ms=now_ms)
        else:
            self._presence.end()
