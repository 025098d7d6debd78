"""The parts of one channel, built from its saved state, and how they depend on each other.

This is the whole participant state of the specification.  The steps (sending, receiving, reviewing,
sweeping) are elsewhere.  This module keeps the parts consistent: the filter follows the log, and
changes of holders and gap become one event each at the end of a step.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.ids import (
    ChannelId,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.budget import AnswerBudget
from engine.core.sds.claims import Claims
from engine.core.sds.config import SdsConfig
from engine.core.sds.flooding import Account, Quotas, SetAsideTable
from engine.core.sds.floods import SetAsideChanged
from engine.core.sds.forks import Fork
from engine.core.sds.held import HeldAside
from engine.core.sds.holders import HoldersTable
from engine.core.sds.incoming import IncomingBuffer
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.log import LogIndex
from engine.core.sds.missing import MissingTable, OnlineClock
from engine.core.sds.newest_claims import NewestClaims
from engine.core.sds.outgoing import OutgoingBuffer
from engine.core.sds.repair import RepairAnswers, RepairTimes
from engine.core.sds.step import Step
from engine.core.sds.store_query import StoreQueries
from engine.core.sds.sync import SyncTimer
from engine.core.sds.vocabulary import (
    BroadcastRepair,
    ChannelState,
    Claim,
    GapChanged,
    Hash64,
    HistoryEntry,
    Message,
    OwnFromFuture,
    PutHolder,
    Replacement,
    SaveClock,
)

ANYBODY = ParticipantId("")
"""Who pays in an open channel, where a sender_id is whatever a message says."""


@dataclass(slots=True, kw_only=True)
class SharedState:
    """Everything a channel remembers."""

    channel_id: ChannelId
    participant_id: ParticipantId
    config: SdsConfig
    counters: Counters
    members: frozenset[ParticipantId]
    """Empty = unknown (an open channel); otherwise includes us.  Set by ``set_members``."""
    alone: bool = field(init=False)
    small_group: bool = field(init=False)
    clock_offset_ms: int
    """How far our clock is ahead of the time of inputs; timers go by the latter."""
    lamport_timestamp: int
    clock: OnlineClock
    log: LogIndex
    bloom: BloomFilter
    unfiltered: deque[MessageId]
    """The newest ids not in the filter yet, as many as it could hold."""
    unfiltered_count: int = 0
    """How many ids are not in the filter yet."""
    outgoing: OutgoingBuffer
    incoming: IncomingBuffer
    held: HeldAside
    quotas: Quotas
    set_aside: SetAsideTable
    replaced: dict[tuple[MessageId, ParticipantId], Replacement]
    """Messages that were replaced, received or not: by message and by who says so.  If there are
    several replacements, the one with the smallest Lamport timestamp, so their order does not
    matter."""
    replacing: dict[MessageId, Replacement]
    """All replacements, by the message that takes the place."""
    disowned: set[MessageId] = field(default_factory=set)
    """Messages that anyone says are replaced, theirs or not."""
    forks: dict[InstanceId, Fork]
    own_from_future: list[MessageId] = field(default_factory=list)
    """Still to be reported."""
    lamport_put_back: bool = False
    """Still to be written."""
    news_of_start: bool
    """Something was held or set aside before the start: report it with the first step."""
    times: RepairTimes
    missing: MissingTable
    holders: HoldersTable
    claims: Claims
    newest_claims: NewestClaims
    answers: RepairAnswers
    budget: AnswerBudget
    timer: SyncTimer
    store: StoreQueries
    reads_after: Callable[[ParticipantId], Position | None] = lambda _who: None
    """Up to where a member can read nothing, so that it is no use to send that."""

    def __post_init__(self) -> None:
        self.set_members(self.members)

    def set_members(self, members: frozenset[ParticipantId]) -> None:
        """Set the members of the channel."""
        self.members = members
        self.alone = members == {self.participant_id}
        self.small_group = 0 < len(members) <= self.config.prompt_members

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: what was due soon must not wait until the clock catches up.

        Nothing is written for that, as every start does the same with saved state.
        """
        self.outgoing.bring_forward(now_ms)
        self.incoming.bring_forward(now_ms)
        self.missing.bring_forward(now_ms)
        self.answers.bring_forward(now_ms)
        self.budget.forget()
        self.timer.bring_forward(now_ms)

    def clock_ms(self, now_ms: UnixMs) -> UnixMs:
        """Our clock: the system's time plus the user's correction."""
        return UnixMs(now_ms + self.clock_offset_ms)

    def latest(self, now_ms: UnixMs) -> int:
        """The greatest Lamport timestamp that is not too far ahead of our clock."""
        return now_ms + self.clock_offset_ms + self.config.max_ahead_ms

    def put_clock_right(self, now_ms: UnixMs) -> None:
        """If our clock was ahead, continue from the last message that is not from the future.

        No one else has delivered our own messages from the future, unless their clocks were as
        wrong.  A message that itself replaces another is not replaced once more: it stays, and its
        time will come.
        """
        latest, log = self.latest(now_ms), self.log
        self.newest_claims.put_clock_right(latest, self.clock_ms(now_ms))
        if self.lamport_timestamp > latest:
            self.lamport_timestamp = log.newest_lamport(latest)
            self.lamport_put_back = True
        if log.newest_lamport() > latest:
            self.own_from_future = [
                message_id
                for message_id in log.ids_after(latest)
                if log.sender_of(message_id) == self.participant_id
                and message_id not in self.replacing
            ]

    def claim(self) -> Claim:
        """Our claim to send beside a message."""
        return Claim(self.claims.own(), self.held.newest_ids(self.config.held_claim_entries))

    def knows(self, message_id: MessageId) -> bool:
        """Whether a message is here: in the local log, waiting, or held aside."""
        return message_id in self.log or message_id in self.incoming or message_id in self.held

    def learn_times(self, message: Message, wanted: Iterable[HistoryEntry]) -> None:
        """Note about when the missing messages that ``message`` names were sent."""
        wanted_ids = [entry.message_id for entry in wanted]
        self.store.by_time.learn(message, wanted_ids, self._lamport_of)

    def _lamport_of(self, message_id: MessageId) -> int | None:
        """The Lamport timestamp of a message that is in the log or waits."""
        if message_id in self.incoming:
            return self.incoming.waiting[message_id].entry.message.lamport_timestamp
        logged = self.log.get(message_id)
        return None if logged is None else logged.position.lamport_timestamp

    def is_met(self, entry: HistoryEntry) -> bool:
        """Whether a dependency is in the local log, given up, or replaced by its sender."""
        message_id = entry.message_id
        return message_id in self.log or self.is_given_up(message_id) or self.is_replaced(entry)

    def is_given_up(self, message_id: MessageId) -> bool:
        """Whether it is lost or set aside: nothing waits for it, but it may still come."""
        return self.missing.is_lost(message_id) or message_id in self.set_aside

    def payer(self, sender_id: ParticipantId) -> ParticipantId:
        """Whose quota and budget a message takes: its sender's, where senders are proved."""
        return ANYBODY if self.config.is_open else sender_id

    def accounts_of(self, received: MessageReceived, now_ms: UnixMs) -> tuple[Account, ...]:
        """The accounts to charge: none for our own messages, nor for what the user wants to see."""
        payer = self.payer(received.message.sender_id)
        if payer == self.participant_id or received.wanted:
            return ()
        if not received.verified and payer is not ANYBODY:
            return ()
        return self.quotas.accounts(
            payer,
            received.message.lamport_timestamp or 0,
            self.clock_ms(now_ms),
            live=not received.stored and received.repaired_by is None,
        )

    def show_set_aside(self, sender_id: ParticipantId, step: Step) -> None:
        """Accept all of this author's messages today; forget ids kept without their bytes."""
        self.quotas.lift(sender_id, self.clock_ms(step.now_ms), step)
        self.set_aside.forget_bare(sender_id, step)

    def is_replaced(self, entry: HistoryEntry) -> bool:
        """Whether its own sender replaced it.  No one can replace another's message."""
        sender_id = entry.sender_id
        return sender_id is not None and (entry.message_id, sender_id) in self.replaced

    def note_replacement(self, replacement: Replacement) -> None:
        key = replacement.message_id, replacement.sender_id
        known = self.replaced.get(key)
        if known is None or replacement.lamport_timestamp < known.lamport_timestamp:
            self.replaced[key] = replacement
        self.replacing[replacement.by] = replacement
        self.disowned.add(replacement.message_id)

    def remember_id(self, message_id: MessageId) -> None:
        """Include a received or sent content message in the next filter."""
        self.unfiltered.append(message_id)
        self.unfiltered_count += 1

    def filter_bytes(self) -> bytes:
        """The filter over all ids, rolled over when full."""
        bloom, count = self.bloom, self.unfiltered_count
        if count:
            if bloom.count + count <= bloom.room:
                bloom.include(self.unfiltered)
            else:
                self._rebuild_bloom(bloom.kept_of(bloom.count + count))
            self.unfiltered.clear()
            self.unfiltered_count = 0
        return bloom.to_bytes()

    def restore_bloom(self) -> None:
        """Restore the filter from all that is in the log or waits."""
        self._rebuild_bloom(self.bloom.kept_of(len(self.log) + len(self.incoming)))

    def _rebuild_bloom(self, keep: int) -> None:
        ids = [*reversed(self.unfiltered), *self.log.newest_ids(keep)]
        waiting = (entry.message.message_id for entry in self.incoming.entries())
        ids.extend(islice(waiting, max(keep - len(ids), 0)))
        rolled_over = len(self.log) + len(self.incoming) > self.bloom.capacity
        self.bloom.rebuild(islice(dict.fromkeys(ids), keep), rolled_over=rolled_over)

    def advance_lamport(self, lamport_timestamp: int, step: Step) -> None:
        """Advance the clock by a message that leaves no trace in the log (``ChannelState``)."""
        self.lamport_timestamp = lamport_timestamp
        step.writes.append(SaveClock(lamport_timestamp))

    def evidence(
        self,
        message_id: MessageId,
        participant_id: ParticipantId,
        source: HolderSource,
        step: Step,
        *,
        false_probability: float | None = None,
    ) -> None:
        """A member holds one of our messages, or may hold it: then with P(false), from a filter."""
        entry = self.holders.note(
            message_id, participant_id, source, step.now_ms, false_probability
        )
        if entry is not None:
            step.writes.append(PutHolder(entry))
            step.holders_changed[message_id] = None
        if false_probability is None:
            self.outgoing.acknowledge(message_id, step)
        else:
            self.outgoing.possibly_acknowledge(message_id, step)

    def answer_due(self, step: Step) -> None:
        """Send again what other members are missing."""
        if not self.clock.online or not len(self.answers):
            return
        for message_id, askers in self.answers.take_due(step.now_ms):
            lacking = [each for each in askers if self._still_lacks(each, message_id)]
            if not lacking:
                continue
            payers = dict.fromkeys(map(self.payer, lacking))
            again_ms = self.budget.charge(payers, self.log.size_of(message_id), step.now_ms)
            if again_ms is not None:
                self.counters.add("sds.answer_put_off")
                self.answers.put_off(message_id, lacking, again_ms)
                continue
            self.answers.answered(message_id, lacking, step.now_ms)
            step.sends.append(BroadcastRepair(message_id=message_id))

    def _still_lacks(self, participant_id: ParticipantId, message_id: MessageId) -> bool:
        entry = self.log.get(message_id)
        if entry is None or self.claims.perhaps_received(participant_id, message_id):
            return False
        if entry.author is None:
            return True  # Holdings do not say.
        if self.claims.holds_aside(participant_id, entry.position.lamport_timestamp):
            return False
        author = self.log.counted_as(message_id, entry.author)
        return not self.claims.holds(participant_id, author.instance_id, author.sequence)

    def finish(self, step: Step) -> None:
        """Add the events and writes that come once per input."""
        if step.holders_changed:
            step.events += self.holders.take_events(step.holders_changed)
        if step.gap_changed or step.held_changed or step.set_aside_changed or self.news_of_start:
            self.tell_of_gap(step)
        if self.newest_claims.unsaved:
            self.newest_claims.save(step)

    def tell_of_gap(self, step: Step) -> None:
        """Report once what is missing, waits and is held aside after this step."""
        if step.held_changed or self.news_of_start:
            step.events.append(self.held.event(self.clock_offset_ms))
        if step.set_aside_changed or (self.news_of_start and self.set_aside):
            step.events.append(SetAsideChanged(senders=self.set_aside.tell()))
        if step.gap_changed:
            self.store.gap_changed(step.now_ms)
        if step.gap_changed or self.news_of_start:
            step.events.append(GapChanged(waiting=len(self.incoming)))
        self.news_of_start = False

    def tell_of_clock_put_right(self, step: Step) -> None:
        if self.lamport_put_back:
            step.writes.append(SaveClock(self.lamport_timestamp))
            self.lamport_put_back = False
        if not self.own_from_future:
            return
        step.events.append(OwnFromFuture(message_ids=tuple(self.own_from_future)))
        self.own_from_future = []


def build_parts(  # noqa: PLR0913 - see SdsChannel, whose arguments these are
    channel_id: ChannelId,
    participant_id: ParticipantId,
    *,
    config: SdsConfig,
    random_unit: RandomUnit,
    hash64: Hash64,
    state: ChannelState,
    members: frozenset[ParticipantId],
    online: bool,
    now_ms: UnixMs,
    clock_offset_ms: int,
    counters: Counters,
) -> SharedState:
    """Build the parts from saved state; nothing that must survive is anywhere else."""
    log = LogIndex(state.log)
    clock = OnlineClock(online=online, now_ms=now_ms, longest_tick_ms=config.longest_tick_ms)
    times = RepairTimes(participant_id, config=config, hash64=hash64)
    missing = MissingTable(state.missing, config=config, times=times, clock=clock)
    parts = SharedState(
        channel_id=channel_id,
        participant_id=participant_id,
        config=config,
        counters=counters,
        members=members,
        clock_offset_ms=clock_offset_ms,
        lamport_timestamp=max(state.lamport_timestamp, log.newest_lamport()),
        clock=clock,
        log=log,
        bloom=BloomFilter(capacity=config.bloom_capacity, fixed=config.open_bloom),
        unfiltered=deque(maxlen=config.bloom_capacity),
        outgoing=OutgoingBuffer(state.outgoing, config=config, random_unit=random_unit),
        incoming=IncomingBuffer(config),
        held=HeldAside(config),
        quotas=Quotas(config.flood, state.spent),
        set_aside=SetAsideTable(config.flood, state.set_aside),
        replaced={},
        replacing={},
        forks={fork.instance_id: fork for fork in state.forks},
        news_of_start=False,
        times=times,
        missing=missing,
        holders=HoldersTable(participant_id, members=members, holders=state.holders),
        claims=Claims(log, config),
        newest_claims=NewestClaims(state.newest_claims),
        answers=RepairAnswers(config),
        budget=AnswerBudget(config),
        timer=SyncTimer(config, random_unit),
        store=StoreQueries(
            missing, config=config, queried_ms=state.store_queried_ms, online=online
        ),
    )
    for replacement in state.replaced:
        parts.note_replacement(replacement)
    _restore_incoming(parts, state, now_ms)
    _restore_holders(parts, now_ms)
    parts.restore_bloom()
    parts.bring_forward(now_ms)
    parts.put_clock_right(now_ms)
    return parts


def _restore_incoming(parts: SharedState, state: ChannelState, now_ms: UnixMs) -> None:
    here = {entry.message.message_id for entry in state.incoming}
    for entry in state.incoming:
        history = entry.message.causal_history
        unmet = [e.message_id for e in history if not parts.is_met(e)]
        # What waits for nothing, or for what is not looked for, was ahead of our clock then: it is
        # due now.
        unsought = any(each not in parts.missing and each not in here for each in unmet)
        if not unmet or unsought or parts.held.due_ms(entry) > parts.clock_ms(now_ms):
            parts.held.add(entry)
        else:
            parts.incoming.add(entry, unmet)
            for each in unmet:
                if parts.missing.find(each) is not None:
                    parts.missing.also_named_by(each, entry.message.sender_id)
    for entry in parts.incoming.entries():
        history = entry.message.causal_history
        parts.learn_times(
            entry.message, [each for each in history if each.message_id in parts.missing]
        )
    parts.news_of_start = bool(len(parts.held) or len(parts.set_aside))


def _restore_holders(parts: SharedState, now_ms: UnixMs) -> None:
    # A message without saved holders that waits for none is older than the table, or complete.
    wanted = {*parts.holders.restored_ids(), *(e.message_id for e in parts.outgoing.entries())}
    entries = [entry for message_id in wanted if (entry := parts.log.get(message_id))]
    for entry in sorted(entries, key=lambda entry: entry.position):
        if entry.sender_id == parts.participant_id:
            position = entry.position
            parts.holders.track(position.message_id, position.lamport_timestamp, entry.author)
    parts.holders.expire(parts.clock_ms(now_ms) - parts.config.review_holders_ms)
