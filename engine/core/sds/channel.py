"""The SDS channel: Protocol Steps of the specification, composed from their parts.

It takes inputs with the time and returns transitions.  A transition's writes must be durable before
its sends are performed and its events shown.  After a storage error the machine is ahead of the
disk: discard it and build it again from ``ChannelState``.  Signing, sealing, storage, transport and
display are handled elsewhere.  The channel keeps no content once a message is delivered.
"""

from collections.abc import Callable
from typing import assert_never

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.errors import LocalProtocolError
from engine.core.ids import (
    ChannelId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.sds.config import SdsConfig
from engine.core.sds.floods import SetAsideOf
from engine.core.sds.forks import Fork
from engine.core.sds.inputs import (
    ClaimChanged,
    ClockSet,
    ConnectivityChanged,
    CopyAccepted,
    DeadlineReached,
    HastenStoreQuery,
    Input,
    MembersChanged,
    MessageReceived,
    NotForUs,
    ResendRequested,
    RetrieveLostRequested,
    RetrieveQuoted,
    RetrieveRequested,
    SendContent,
    SendEphemeral,
    ShowSetAside,
    SignedAnew,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.sds.receive import Receiver
from engine.core.sds.shared_state import build_parts
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import (
    AppendToLog,
    Broadcast,
    BroadcastRepair,
    Buffers,
    ChannelState,
    Claim,
    Gap,
    Hash64,
    HistoryEntry,
    LogEntry,
    Message,
    MessageDelivered,
    MessageIdOf,
    OutgoingEntry,
    RepairRequested,
    ReplaceRaw,
    SaveRetrievalHint,
    SendPurpose,
    Sign,
    Transition,
)


class SdsChannel:
    """One participant's side of one channel."""

    def __init__(  # noqa: PLR0913 - all that a sans-I/O machine may not fetch itself is handed in
        self,
        channel_id: ChannelId,
        participant_id: ParticipantId,
        *,
        config: SdsConfig,
        message_id_of: MessageIdOf,
        sign: Sign,
        random_unit: RandomUnit,
        hash64: Hash64,
        state: ChannelState,
        members: frozenset[ParticipantId],
        online: bool,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
        counters: Counters | None = None,
    ) -> None:
        """``members`` includes us; empty = unknown, as in an open channel.

        ``clock_offset_ms``: how far our clock is ahead of ``now_ms``, which never goes back.
        """
        self._parts = build_parts(
            channel_id,
            participant_id,
            config=config,
            random_unit=random_unit,
            hash64=hash64,
            state=state,
            members=members,
            online=online,
            now_ms=now_ms,
            clock_offset_ms=clock_offset_ms,
            counters=counters if counters is not None else Counters(),
        )
        self._receiver = Receiver(self._parts, message_id_of)
        self._message_id_of = message_id_of
        self._sign = sign
        self._now_ms = now_ms
        self._since_holdings = config.holdings_every
        if online:
            self._introduce(now_ms)

    # --- the two entry points ---

    def handle(  # noqa: C901, PLR0912, PLR0915 - one case per kind of input
        self, input_: Input, *, now_ms: UnixMs
    ) -> Transition:
        """Take one input.

        Raises RemoteProtocolError for a message to be dropped, having changed nothing.  Raises
        LocalProtocolError for a request that is not allowed.
        """
        step, parts = Step(now_ms), self._parts
        if now_ms != self._now_ms:
            self._now_ms = now_ms
            if parts.clock.tick(now_ms):
                parts.bring_forward(now_ms)
                parts.put_clock_right(now_ms)
        if parts.lamport_put_back or parts.own_from_future:
            parts.tell_of_clock_put_right(step)
        match input_:  # The frequent ones first.
            case MessageReceived():
                self._receiver.receive(input_, step)
            case SendContent():
                self._send_content(input_, step)
            case CopyAccepted():
                self._copy_accepted(input_, step)
            case SendEphemeral(content=content):
                self._send_ephemeral(content, step)
            case SignedAnew(message_id=message_id, raw=raw):
                if parts.outgoing.sign_anew(message_id, raw, step):
                    step.writes.append(ReplaceRaw(message_id, raw))
            case NotForUs(message_ids=message_ids):
                self._receiver.go_on_without(message_ids, step)
            case ConnectivityChanged(online=online):
                self._connectivity_changed(online, step)
            case ClaimChanged():
                self._state_claim(now_ms)
            case ClockSet(offset_ms=offset_ms):
                parts.clock_offset_ms = offset_ms
                parts.put_clock_right(now_ms)
                parts.tell_of_clock_put_right(step)
                self._receiver.release_due(step)
            case MembersChanged(members=members):
                self._members_changed(members, step)
            case ResendRequested(message_id=message_id):
                self._resend(message_id, step)
            case RetrieveRequested():
                self._retrieve(step)
            case StoreChanged(reachable=reachable):
                parts.store.set_reachable(reachable, step)
            case HastenStoreQuery():
                parts.store.hasten(step)
            case StoreAnswered(through_ms=through_ms):
                parts.store.answered(through_ms, step)
                self._receiver.look_back(step)
            case StoresMissing() | WindowAnswered():
                self._receiver.take_absence(input_, step)
            case ShowSetAside(sender_id=sender_id):
                parts.show_set_aside(sender_id, step)
            case RetrieveLostRequested():
                parts.store.ask_once(parts.missing.ask_for_lost(input_, step), step)
            case RetrieveQuoted():
                self._retrieve_quoted(input_, step)
            case DeadlineReached():
                self._sweep(step)
            case _:
                assert_never(input_)
        parts.finish(step)
        return step

    def next_deadline(self) -> UnixMs | None:
        """When ``DeadlineReached`` is due next; None if not before another input."""
        parts = self._parts
        deadlines = [self._receiver.next_release(), parts.incoming.next_deadline()]
        if parts.clock.online:
            deadlines += [
                parts.outgoing.next_deadline(),
                parts.missing.next_loss(self._now_ms),
                parts.answers.next_deadline(),
                parts.timer.at_ms,
                parts.store.next_deadline(),
            ]
            if not parts.timer.for_repairs and not parts.alone:
                deadlines.append(parts.missing.next_request())
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    @property
    def is_online(self) -> bool:
        return self._parts.clock.online

    def knows(self, message_id: MessageId) -> bool:
        """Whether it is in the log, or waits for its place there."""
        return self._parts.knows(message_id)

    def said_by(self, who: ParticipantId) -> tuple[Position, ...]:
        """The places of all their messages in the log; reads all of it."""
        return tuple(each.position for each in self._parts.log.entries() if each.sender_id == who)

    def last_of(self, who: ParticipantId) -> tuple[LogEntry, ...]:
        """The last message of each of their instances in the log, the newest first."""
        last = self._parts.log.last_of(who)
        return tuple(sorted(last, key=lambda entry: entry.position, reverse=True))

    def has_logged(self, message_id: MessageId) -> bool:
        return message_id in self._parts.log

    def sender_of(self, message_id: MessageId) -> ParticipantId | None:
        """None if it is not in the log."""
        return self._parts.log.sender_of(message_id)

    def keeps(self, message_id: MessageId) -> bool:
        """Whether a further copy is useless: it is in the log, or set aside with its bytes."""
        return message_id in self._parts.log or self._parts.set_aside.keeps(message_id)

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """The authors beyond their daily quota, and how many messages are set aside."""
        return self._parts.set_aside.tell()

    def before(self, position: Position, count: int) -> tuple[MessageId, ...]:
        """The newest messages up to this one, and the next one of its author, if it is here."""
        return self._parts.log.before(position, count)

    def send_nothing_before(self, reads_after: Callable[[ParticipantId], Position | None]) -> None:
        """``reads_after``: a member can read nothing up to there, whatever their claim lacks."""
        self._parts.reads_after = reads_after

    def untaken(self) -> tuple[OutgoingEntry, ...]:
        """Messages of ours that are to be sent, and that nobody has taken so far."""
        return tuple(one for one in self._parts.outgoing.entries() if not one.accepted)

    def is_untaken(self, message_id: MessageId) -> bool:
        return self._parts.outgoing.is_untaken(message_id)

    def waiting_aside(self, sender_id: ParticipantId) -> int:
        """How many of this author's messages are set aside with their bytes."""
        return self._parts.set_aside.waiting(sender_id)

    def wants(self, message_id: MessageId) -> bool:
        """Whether it is a missing dependency; a lost one only if the user asked again."""
        missing = self._parts.missing
        return missing.find(message_id) is not None or missing.is_asked_again(message_id)

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:
        """The members whose newest claim covers this message of our log."""
        parts = self._parts
        entry = parts.log.get(message_id)
        if entry is None or entry.author is None:
            return frozenset()
        instance_id, sequence = entry.author.instance_id, entry.author.sequence
        return frozenset(
            who for who in parts.members if parts.claims.holds(who, instance_id, sequence)
        )

    def gaps(self) -> tuple[Gap, ...]:
        """What is missing, by place; if there are very many gaps, the last ones are merged."""
        missing = self._parts.missing
        places = missing.places(self._parts.config.max_gaps)
        beyond = len(missing) - sum(len(entries) for _, entries in places)
        placed = sum(place is not None for place, _ in places)
        ends = [*(place for place, _ in places[1:placed]), None, None][: len(places)]
        return tuple(
            Gap(
                before=place,
                missing=len(entries) + (beyond if number == placed else 0),
                waiting=self._waiting_between(place, end),
                since_ms=min(entry.since_ms for entry in entries),
                requests=max(entry.requests for entry in entries),
                next_request_ms=min(entry.request_at_ms for entry in entries),
            )
            for number, ((place, entries), end) in enumerate(zip(places, ends, strict=True), 1)
        )

    def _waiting_between(self, place: Position | None, end: Position | None) -> int:
        if place is None:
            return 0
        incoming = self._parts.incoming
        return incoming.before(end) - incoming.before(place)

    def oldest_lamport(self) -> int | None:
        """The Lamport timestamp of the first message in the log; None if it is empty."""
        return self._parts.log.oldest_lamport()

    @property
    def store_queried_ms(self) -> UnixMs | None:
        """The time up to which Stores were queried for everything."""
        return self._parts.store.queried_ms

    def forks(self) -> tuple[Fork, ...]:
        """Authors who sent different people different messages, with the proof."""
        return tuple(self._parts.forks.values())

    def buffers(self) -> Buffers:
        parts = self._parts
        return Buffers(
            outgoing=len(parts.outgoing),
            incoming=len(parts.incoming),
            held=len(parts.held),
            missing=len(parts.missing),
            filter_bytes=parts.filter_bytes(),
            lamport_timestamp=parts.lamport_timestamp,
        )

    def snapshot(self) -> ChannelState:
        """The durable state as it would be loaded, for audits and tests; costs O(log)."""
        parts = self._parts
        return ChannelState(
            lamport_timestamp=parts.lamport_timestamp,
            log=tuple(parts.log.entries()),
            outgoing=tuple(parts.outgoing.entries()),
            incoming=(*parts.incoming.entries(), *parts.held.entries()),
            missing=tuple(parts.missing.entries()),
            holders=tuple(parts.holders.entries()),
            store_queried_ms=parts.store.queried_ms,
            replaced=tuple(parts.replacing.values()),
            forks=tuple(parts.forks.values()),
            set_aside=tuple(parts.set_aside.entries()),
            newest_claims=tuple(parts.newest_claims.entries()),
        )

    # --- sending ---

    def _send_content(self, input_: SendContent, step: Step) -> None:
        parts, content, author = self._parts, input_.content, input_.author
        me, online = parts.participant_id, parts.clock.online
        if not content:
            raise LocalProtocolError("a content message needs content")
        if len(content) > parts.config.max_content_bytes:
            raise LocalProtocolError("the content is larger than any receiver accepts")
        if len(parts.outgoing) >= parts.config.max_outgoing:
            raise LocalProtocolError("too many unacknowledged messages")
        lamport = self._next_lamport(step.now_ms)
        history = self._causal_history(step.now_ms)
        ids = [entry.message_id for entry in history]
        message_id = self._message_id_of(me, parts.channel_id, lamport, ids, content)
        if parts.knows(message_id):
            # In open channels equal content has an equal id, even from different senders.
            raise LocalProtocolError("there is a message with this id already")
        message = self._message(lamport, message_id, history, content, step)
        self._since_holdings += 1
        claim = None
        if self._since_holdings >= parts.config.holdings_every:
            self._since_holdings = 0
            claim = parts.claim()
        raw = self._sign(message, claim, parts.clock_ms(step.now_ms))
        parts.lamport_timestamp = lamport  # The log yields it at the next start.
        position = Position(lamport, message_id)
        logged = LogEntry(position, me, None, author, None, len(raw))
        parts.log.insert(logged)
        step.writes.append(AppendToLog(logged, raw))
        parts.remember_id(message_id)
        if parts.holders:
            parts.holders.expire(parts.clock_ms(step.now_ms) - parts.config.review_holders_ms)
        parts.holders.track(message_id, lamport, author)
        parts.outgoing.add(message_id, raw, online=online, step=step)
        is_own, late = True, False
        step.events.append(MessageDelivered(message, position, author, is_own, late))
        if input_.replaces is not None:
            self._receiver.replace(input_.replaces, position, me, step)
        timer = parts.timer
        if timer.unsaid:
            timer.content_sent(history, holdings=claim is not None)
        if online and timer.at_ms is None:
            timer.arm(parts.config.sync_multiplier_content_sent, step.now_ms)

    def _send_ephemeral(self, content: bytes, step: Step) -> None:
        parts = self._parts
        if not content:
            raise LocalProtocolError("an ephemeral message needs content")
        if not parts.clock.online:
            return
        message = Message(
            sender_id=parts.participant_id,
            message_id=MessageId(f"ephemeral-{step.now_ms}"),
            channel_id=parts.channel_id,
            content=content,
        )
        self._broadcast(message, None, SendPurpose.EPHEMERAL, step)

    def _send_sync(self, step: Step, *, for_silent_member: bool) -> None:
        parts = self._parts
        lamport = self._next_lamport(step.now_ms)
        history = self._causal_history(step.now_ms)
        message = self._message(lamport, MessageId(f"sync-{lamport}"), history, None, step)
        parts.advance_lamport(lamport, step)
        self._broadcast(message, parts.claim(), SendPurpose.SYNC, step)
        parts.counters.add("sds.sync_sent")
        parts.timer.stated(step.now_ms, for_silent_member=for_silent_member)

    def _broadcast(
        self, message: Message, claim: Claim | None, purpose: SendPurpose, step: Step
    ) -> None:
        raw = self._sign(message, claim, self._parts.clock_ms(step.now_ms))
        step.sends.append(Broadcast(message_id=message.message_id, raw=raw, purpose=purpose))

    def _causal_history(self, now_ms: UnixMs) -> tuple[HistoryEntry, ...]:
        """Without messages from the future: others hold them aside and would wait for them.

        In an open channel they are delivered; there they take half of the places at most, so that
        what bears an honest time is named, whatever anybody sends.
        """
        parts, count = self._parts, self._parts.config.causal_history_size
        ahead = count // 2 if parts.config.is_open else 0
        return parts.log.causal_history(count, parts.latest(now_ms), ahead=ahead)

    def _message(
        self,
        lamport: int,
        message_id: MessageId,
        history: tuple[HistoryEntry, ...],
        content: bytes | None,
        step: Step,
    ) -> Message:
        parts = self._parts
        return Message(
            parts.participant_id,
            message_id,
            parts.channel_id,
            lamport,
            history,
            parts.filter_bytes(),
            self._due_requests(step),
            content,
        )

    def _next_lamport(self, now_ms: UnixMs) -> int:
        parts = self._parts
        lamport = max(parts.clock_ms(now_ms), parts.lamport_timestamp + 1)
        if lamport >= parts.config.max_lamport:
            raise LocalProtocolError("the Lamport timestamp is exhausted")
        return lamport

    def _due_requests(self, step: Step) -> tuple[HistoryEntry, ...]:
        parts = self._parts
        if not parts.clock.online:
            return ()
        parts.timer.for_repairs = False
        requests = parts.missing.take_due(parts.config.repair_requests_per_message, step)
        if requests:
            step.events.append(
                RepairRequested(message_ids=tuple(entry.message_id for entry in requests))
            )
        return requests

    # --- reports from the runner ---

    def _copy_accepted(self, input_: CopyAccepted, step: Step) -> None:
        parts, message_id, hint = self._parts, input_.message_id, input_.retrieval_hint
        if parts.log.sender_of(message_id) != parts.participant_id:
            return  # Sync and ephemeral messages are not in the log.
        if hint is not None and parts.log.set_hint(message_id, hint):
            step.writes.append(SaveRetrievalHint(message_id, hint))
        if input_.peers > 0:
            parts.outgoing.accept(message_id, step)

    def _connectivity_changed(self, online: bool, step: Step) -> None:
        parts, now_ms = self._parts, step.now_ms
        if online == parts.clock.online:
            return
        parts.clock.online = online
        if online:
            parts.claims.forget()
            parts.outgoing.came_online(now_ms)
            self._introduce(now_ms)
        else:
            parts.timer.stop()
        parts.store.set_online(online, step)

    def _members_changed(self, members: frozenset[ParticipantId], step: Step) -> None:
        parts, now_ms = self._parts, step.now_ms
        if members == parts.members:
            return
        if members - parts.members:
            parts.missing.ask_again_for_quoted(step)
        parts.set_members(members)
        parts.holders.members_changed(members)
        parts.claims.retain(members)
        if parts.clock.online:
            self._introduce(now_ms)

    def _introduce(self, now_ms: UnixMs) -> None:
        """Tell the others what we hold, and so learn what they hold."""
        parts = self._parts
        if parts.alone:
            return
        if parts.small_group:
            parts.timer.woke()
        multiplier = parts.config.sync_multiplier_start
        parts.timer.hasten(multiplier, now_ms, small_group=parts.small_group)

    def _state_claim(self, now_ms: UnixMs) -> None:
        """Say soon what we claim, although no message asks for it."""
        parts = self._parts
        if parts.clock.online and not parts.alone:
            parts.timer.claim_changed()
            multiplier = parts.config.sync_multiplier_start
            parts.timer.hasten(multiplier, now_ms, small_group=parts.small_group)

    def _resend(self, message_id: MessageId, step: Step) -> None:
        parts = self._parts
        entry = parts.log.get(message_id)
        if entry is None or entry.sender_id != parts.participant_id:
            raise LocalProtocolError("only a message of our own can be sent again")
        if message_id in parts.outgoing:
            parts.outgoing.resend(message_id, online=parts.clock.online, step=step)
        elif parts.clock.online:
            step.sends.append(BroadcastRepair(message_id=message_id))

    def _retrieve(self, step: Step) -> None:
        parts = self._parts
        parts.missing.ask_now(step)
        parts.store.ask_now(step.now_ms)
        self._hasten_requests(step)

    def _retrieve_quoted(self, wanted: RetrieveQuoted, step: Step) -> None:
        parts, message_id = self._parts, wanted.message_id
        if parts.knows(message_id):
            return
        if parts.missing.is_lost(message_id):
            again = RetrieveLostRequested(message_ids=(message_id,))
            parts.store.ask_once(parts.missing.ask_for_lost(again, step), step)
        else:
            parts.missing.want_quoted(message_id, parts.participant_id, wanted.before, step)
            parts.store.ask_now(step.now_ms)
        self._hasten_requests(step)

    def _hasten_requests(self, step: Step) -> None:
        parts = self._parts
        if parts.clock.online and not parts.alone:
            parts.timer.woke()
            multiplier = parts.config.sync_multiplier_repairs
            parts.timer.hasten(multiplier, step.now_ms, small_group=parts.small_group)

    # --- sweeps ---

    def _sweep(self, step: Step) -> None:
        parts = self._parts
        self._receiver.release_due(step)
        self._receiver.show_waiting(step)
        if not parts.clock.online:
            return
        self._receiver.give_up_lost(step)
        parts.outgoing.sweep(step)
        parts.answer_due(step)
        parts.store.sweep(step)
        self._hasten_repairs(step.now_ms)
        if parts.timer.at_ms is not None and parts.timer.at_ms <= step.now_ms:
            self._sync_due(step)

    def _hasten_repairs(self, now_ms: UnixMs) -> None:
        """Requests travel with the next message, so send one soon."""
        parts = self._parts
        if parts.alone or parts.timer.for_repairs or not self._requests_due(now_ms):
            return
        parts.timer.for_repairs = True
        multiplier = parts.config.sync_multiplier_repairs
        parts.timer.hasten(multiplier, now_ms, small_group=parts.small_group)

    def _requests_due(self, now_ms: UnixMs) -> bool:
        request_ms = self._parts.missing.next_request()
        return request_ms is not None and request_ms <= now_ms

    def _sync_due(self, step: Step) -> None:
        parts, timer = self._parts, self._parts.timer
        if parts.alone:
            timer.stop()
        elif timer.has_news or self._requests_due(step.now_ms):
            self._send_sync(step, for_silent_member=False)
        elif self._all_level():
            timer.stop()
        elif not timer.skip_if_spoken_for(step.now_ms):
            self._send_sync(step, for_silent_member=True)

    def _all_level(self) -> bool:
        """Whether every member is known to hold exactly what we hold: there is nothing to send."""
        parts = self._parts
        if not parts.members:
            return not len(parts.log)
        return parts.claims.are_level(parts.members - {parts.participant_id})
