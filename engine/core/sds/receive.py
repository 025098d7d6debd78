"""Receive Message, Deliver Message and the incoming sweep of the specification.

Two things go beyond it: a message too far ahead of our clock is held aside, and a message from the
future that its sender replaced is dropped.

A content message whose dependencies are all in the local log (or lost) is delivered, and with it
everything that waited only for it.  Otherwise it waits in the incoming buffer and its dependencies
are looked for.  Sync messages never wait and are never logged, but their dependencies are looked
for too: that reveals a lost newest message.  ``review`` handles what a sender claims.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from engine.core.errors import RemoteProtocolError
from engine.core.ids import HolderSource, MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.absence import Absence
from engine.core.sds.chains import Chains
from engine.core.sds.claims import MAX_SEQUENCE, check_holdings
from engine.core.sds.forms import Forms
from engine.core.sds.incoming import waiting_entry
from engine.core.sds.inputs import MessageReceived, StoresMissing, WindowAnswered
from engine.core.sds.review import AckReview
from engine.core.sds.shared_state import SharedState
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import (
    AppendToLog,
    DependencyLost,
    EphemeralReceived,
    HistoryEntry,
    IncomingEntry,
    LogEntry,
    Message,
    MessageDelivered,
    MessageIdOf,
    MessageReplaced,
    MessageShownWaiting,
    PutIncoming,
    PutReplacement,
    RemoveFromLog,
    RemoveIncoming,
    Replacement,
    SaveRetrievalHint,
)

Arrived: TypeAlias = MessageReceived | IncomingEntry
"""A message just received, or one that had to wait."""


class Receiver:
    """Takes messages in and delivers them in causal order."""

    def __init__(self, parts: SharedState, message_id_of: MessageIdOf) -> None:
        self._parts = parts
        self._message_id_of = message_id_of
        self._review = AckReview(parts)
        self._chains = Chains(parts)
        self._forms = Forms(parts)
        self._absence = Absence(parts)

    def receive(self, received: MessageReceived, step: Step) -> None:
        """Take one message.

        Raises RemoteProtocolError, before anything is changed: ``wrong_channel``, ``empty_id``,
        ``lamport_too_large``, ``self_dependent``, ``id_mismatch``, ``another_form``, ``no_kind``,
        ``bad_holdings``, ``bad_sequence``.
        """
        if is_open := self._parts.config.is_open:
            received = received.without_itself()
        message = received.message
        ids = [entry.message_id for entry in message.causal_history]
        self._check(received, ids)
        own = message.sender_id == self._parts.participant_id
        # Ephemeral Messages: delivered at once, neither buffered nor logged.
        if message.lamport_timestamp is None:
            if not own:
                step.events.append(EphemeralReceived(message=message))
            return
        # Receive Message: ours is ignored, unless it is proved to be from our history.  In an open
        # channel what we never sent is a stranger's who took our sender_id: others deliver it too.
        is_sync = not message.content
        if own and (is_sync or not (received.verified or is_open)):
            return
        # Receive Message: a copy is recognised by its message_id.
        known = not is_sync and self._parts.knows(message.message_id)
        if known and received.verified:
            self._forms.check(message.message_id, received.raw)
        # Review ACK Status.
        is_news = own or self._review.review(received, ids, step)
        # Receive Message: bloom filter and dependencies; then Deliver Message, or wait.
        if is_sync:
            self._receive_sync(received, step, is_news=is_news)
        else:
            self._receive_content(received, ids, step, known=known)

    # --- checks before Receive Message ---

    def _check(self, received: MessageReceived, ids: list[MessageId]) -> None:
        message = received.message
        lamport, content = message.lamport_timestamp, message.content
        if message.channel_id != self._parts.channel_id:
            raise RemoteProtocolError("wrong_channel")
        if not message.sender_id or "" in ids:
            raise RemoteProtocolError("empty_id")
        if lamport is None:
            if not content:
                raise RemoteProtocolError("no_kind")
            return
        if not 0 <= lamport < self._parts.config.max_lamport:
            raise RemoteProtocolError("lamport_too_large")
        if received.author is not None and not 0 < received.author.sequence < MAX_SEQUENCE:
            raise RemoteProtocolError("bad_sequence")
        if received.holdings is not None:
            check_holdings(received.holdings)
        if content:
            if message.message_id in ids:
                raise RemoteProtocolError("self_dependent")
            self._check_content(received, lamport, ids, content)

    def _check_content(
        self, received: MessageReceived, lamport: int, ids: list[MessageId], content: bytes
    ) -> None:
        message, message_id = received.message, received.message.message_id
        if not message_id:
            raise RemoteProtocolError("empty_id")
        if received.id_checked or not received.verified:
            return
        expected = self._message_id_of(message.sender_id, message.channel_id, lamport, ids, content)
        if message_id != expected:
            raise RemoteProtocolError("id_mismatch")

    # --- messages from the future ---

    def _hold(self, entry: IncomingEntry, step: Step) -> None:
        """Hold aside a message too far ahead of our clock, and let its sender know."""
        parts, message_id = self._parts, entry.message.message_id
        leaving = parts.held.make_room(entry)
        if leaving is None:
            parts.counters.add("sds.held_ahead_overflow")
            return
        for victim in leaving:  # Its sender's share is full; it will be fetched again.
            parts.counters.add("sds.held_ahead_gave_way")
            parts.held.remove(victim)
            step.writes.append(RemoveIncoming(message_id=victim.message.message_id))
        parts.counters.add("sds.held_ahead")
        parts.held.add(entry)
        step.writes.append(PutIncoming(entry=entry))
        parts.missing.remove(message_id, step)
        step.held_changed = True
        self._release(message_id, step)  # What names it continues from an earlier time.
        if entry.message.sender_id != parts.participant_id:
            parts.timer.delivered(message_id, step.now_ms, small_group=parts.small_group)

    def look_back(self, step: Step) -> None:
        """The Stores' messages are all here."""
        self._review.look_back(step)

    def next_release(self) -> UnixMs | None:
        parts = self._parts
        due_ms = parts.held.next_deadline()
        return None if due_ms is None else UnixMs(due_ms - parts.clock_offset_ms)

    def release_due(self, step: Step) -> None:
        """Receive what was held aside and is no longer ahead."""
        parts = self._parts
        for entry in parts.held.take_due(parts.clock_ms(step.now_ms)):
            step.held_changed = True
            message = entry.message
            step.writes.append(RemoveIncoming(message_id=message.message_id))
            ids = [item.message_id for item in message.causal_history]
            self._take_content(entry, ids, step)

    # --- replaced messages ---

    def replace(
        self, old_id: MessageId, by: Position, sender_id: ParticipantId, step: Step
    ) -> None:
        """``sender_id`` replaced a message from the future by one at ``by``: drop the old one.

        It may be here or yet to come.  No effect on another member's message, on one that is not
        further ahead, or on one that itself replaces another.
        """
        parts = self._parts
        replacement = Replacement(
            message_id=old_id,
            sender_id=sender_id,
            lamport_timestamp=by.lamport_timestamp,
            by=by.message_id,
        )
        parts.note_replacement(replacement)
        step.writes.append(PutReplacement(replacement=replacement))
        place = self._place_of(old_id)
        if place and not _replaces(replacement, *place):
            parts.counters.add("sds.false_replacement")
            return
        if place:
            self._drop(old_id, by.message_id, step)
        wanted = parts.missing.find(old_id)
        if wanted is not None and wanted.entry.sender_id == sender_id:
            parts.missing.remove(old_id, step)
        if place or wanted is None or wanted.entry.sender_id == sender_id:
            self._release(old_id, step)
        else:
            self._release_shown(old_id, step)

    def _replacement_of(self, entry: Arrived) -> Replacement | None:
        """The replacement by its sender, if there is one."""
        message = entry.message
        found = self._parts.replaced.get((message.message_id, message.sender_id))
        place = message.sender_id, _lamport(message), entry.replaces is not None
        return found if found is not None and _replaces(found, *place) else None

    def _place_of(self, message_id: MessageId) -> tuple[ParticipantId, int, bool] | None:
        """Sender, Lamport timestamp and whether it replaces another, if the message is here."""
        parts = self._parts
        logged = parts.log.get(message_id)
        if logged is not None:
            lamport = logged.position.lamport_timestamp
            return logged.sender_id, lamport, message_id in parts.replacing
        if message_id in parts.incoming:
            entry = parts.incoming.waiting[message_id].entry
        elif message_id in parts.held:
            entry = parts.held.waiting[message_id]
        else:
            return None
        message = entry.message
        return message.sender_id, _lamport(message), entry.replaces is not None

    def _drop(self, message_id: MessageId, by: MessageId, step: Step) -> None:
        parts = self._parts
        if message_id in parts.log:
            parts.log.remove(message_id)
            parts.outgoing.remove(message_id, step)
            parts.holders.untrack(message_id)
            parts.answers.drop(message_id)
            step.writes.append(RemoveFromLog(message_id=message_id))
            step.events.append(MessageReplaced(message_id=message_id, by=by))
            return
        step.writes.append(RemoveIncoming(message_id=message_id))
        if message_id in parts.incoming:
            if parts.incoming.remove(message_id).shown:
                step.events.append(MessageReplaced(message_id=message_id, by=by))
            step.gap_changed = True
        else:
            parts.held.remove(parts.held.waiting[message_id])
            step.held_changed = True

    # --- Receive Message: sync messages, content messages ---

    def _receive_sync(self, received: MessageReceived, step: Step, *, is_news: bool) -> None:
        parts, message = self._parts, received.message
        parts.counters.add("sds.sync_received")
        wanted = self._wanted(message.causal_history)
        if wanted:
            self._want_of_sync(wanted, message.sender_id, step)
            parts.learn_times(message, wanted)
        if received.stored or not is_news:
            return  # By now its sender has an answer, or asks again.
        timer, config = parts.timer, parts.config
        if received.holdings is None or not received.verified:
            timer.heard_level_sync(step.now_ms)
            timer.arm(config.sync_multiplier_sync_received, step.now_ms)
            asks = parts.small_group
        elif parts.claims.are_level((message.sender_id,)):
            timer.heard_level_sync(step.now_ms)
            # An acknowledgement needs no answer; a repeated claim shows that its sender missed one.
            asks = parts.claims.repeated
        else:
            timer.arm(config.sync_multiplier_sync_received, step.now_ms)
            asks = parts.small_group
        if asks:
            self._answer_sync(step)

    def _want_of_sync(
        self, wanted: list[HistoryEntry], sender_id: ParticipantId, step: Step
    ) -> None:
        """Look for what a sync message names, within limits, as no message waits for it."""
        missing = self._parts.missing
        room = missing.room_for_syncs(sender_id)
        for entry in wanted:
            if missing.find(entry.message_id) is None:
                room -= 1
                if room < 0:
                    self._parts.counters.add("sds.missing_overflow")
                    return
            missing.want(entry, named_by=sender_id, step=step)

    def _receive_content(
        self, received: MessageReceived, ids: list[MessageId], step: Step, *, known: bool
    ) -> None:
        parts, message_id = self._parts, received.message.message_id
        if parts.replaced and self._replacement_of(received):
            parts.counters.add("sds.replaced")
            return
        if received.repaired_by is None:
            if parts.answers.planned:
                parts.answers.drop(message_id)  # It came by itself.
        else:
            parts.answers.heard(message_id, step.now_ms)
        if known:
            if message_id in parts.log:
                self._receive_duplicate(received, step)
            return
        self._take_new(received, ids, step)

    def _take_new(self, received: MessageReceived, ids: list[MessageId], step: Step) -> None:
        """Deliver or buffer a message within its author's quota; set aside one beyond it."""
        parts, message, message_id = self._parts, received.message, received.message.message_id
        accounts = parts.accounts_of(received, step.now_ms)
        if message_id in parts.set_aside:
            if not received.wanted:
                parts.counters.add("sds.set_aside_again")
                return
            parts.set_aside.remove(message_id, step)
        elif not parts.quotas.have_room(accounts, len(received.raw)):
            self._set_aside(received, step)
            return
        is_ahead = (message.lamport_timestamp or 0) > parts.latest(step.now_ms)
        if is_ahead and not parts.config.is_open:
            self._hold(waiting_entry(received, step.now_ms), step)
        else:
            self._take_content(received, ids, step)
            if received.repaired_by is not None:
                self._note_repair(received, step)
        if parts.knows(message_id):
            for account in accounts:
                account.spend(len(received.raw), step)
        elif received.wanted:  # No room to wait for a gap; others are refetched.
            parts.set_aside.add(received, parts.payer(message.sender_id), step)

    def _set_aside(self, received: MessageReceived, step: Step) -> None:
        """Set aside a message beyond its author's quota; no message waits for it any more."""
        parts, message_id = self._parts, received.message.message_id
        parts.counters.add("sds.set_aside")
        parts.set_aside.add(received, parts.payer(received.message.sender_id), step)
        parts.missing.remove(message_id, step)
        if parts.incoming.is_waited_for(message_id):
            step.gap_changed = True
            self._release(message_id, step)

    def _take_content(self, entry: Arrived, ids: list[MessageId], step: Step) -> None:
        """Deliver a message that is new to us, or let it wait."""
        parts, message_id = self._parts, entry.message.message_id
        # Are all dependencies met?  If not, it goes into the incoming buffer.
        lacking = parts.log.absent(ids)
        if lacking:
            unmet = self._unmet(entry.message, lacking)
            if unmet:
                self._buffer(waiting_entry(entry, step.now_ms), unmet, step)
                return
        # They are: Deliver Message, and whatever waited for it alone.
        self._deliver([entry], step)
        # Its id enters the bloom filter.
        parts.remember_id(message_id)

    def _unmet(self, message: Message, lacking: Iterable[MessageId]) -> set[MessageId]:
        """Those of the dependencies missing from the log that a message has to wait for."""
        parts = self._parts
        unmet = {item for item in lacking if not parts.is_given_up(item)}
        if parts.replaced:
            unmet.difference_update(
                item.message_id for item in message.causal_history if parts.is_replaced(item)
            )
        for message_id in [item for item in unmet if item in parts.held]:
            # No one who delivered it would continue from an earlier time, so it is no dependency.
            if _lamport(parts.held.waiting[message_id].message) >= _lamport(message):
                unmet.discard(message_id)
        return unmet

    def _receive_duplicate(self, received: MessageReceived, step: Step) -> None:
        parts, message_id = self._parts, received.message.message_id
        if received.retrieval_hint and parts.log.wants_hint(message_id):
            parts.log.set_hint(message_id, received.retrieval_hint)
            step.writes.append(
                SaveRetrievalHint(message_id=message_id, retrieval_hint=received.retrieval_hint)
            )
        if received.message.sender_id == parts.participant_id:
            self._note_repair(received, step)
        elif received.repaired_by is None and not received.stored:
            # Its author sends it again, so our acknowledgement was lost.
            self._answer_sync(step)

    def _note_repair(self, received: MessageReceived, step: Step) -> None:
        """A member that resends one of our messages under its own signature holds it."""
        parts, message = self._parts, received.message
        speaker = received.repaired_by
        if speaker is None or message.sender_id != parts.participant_id:
            return
        if speaker != parts.participant_id:  # Our own repair coming back proves nothing.
            parts.evidence(message.message_id, speaker, HolderSource.REPAIR, step)

    def _answer_sync(self, step: Step) -> None:
        """A member does not seem to know what we hold."""
        parts = self._parts
        if parts.members and parts.timer.asked(step.now_ms):
            multiplier = parts.config.sync_multiplier_content_received
            parts.timer.hasten(multiplier, step.now_ms, small_group=parts.small_group)

    # --- Receive Message: the incoming buffer ---

    def _wanted(self, history: Iterable[HistoryEntry]) -> list[HistoryEntry]:
        """Dependencies that are neither in the log nor lost nor waiting themselves."""
        parts = self._parts
        return [
            entry
            for entry in history
            if not parts.knows(entry.message_id)
            and not parts.is_given_up(entry.message_id)
            and not parts.is_replaced(entry)
        ]

    def _buffer(self, entry: IncomingEntry, unmet: set[MessageId], step: Step) -> None:
        """Let a message wait; if there is no room, it will be fetched again later."""
        parts, message = self._parts, entry.message
        leaving = parts.incoming.make_room(entry)
        wanted = self._wanted(message.causal_history)
        new = sum(parts.missing.find(each.message_id) is None for each in wanted)
        if leaving is None or not parts.missing.room_for(new, message.sender_id):
            parts.counters.add(
                "sds.incoming_overflow" if leaving is None else "sds.missing_overflow"
            )
            return
        parts.incoming.add(entry, unmet)
        step.writes.append(PutIncoming(entry=entry))
        parts.missing.remove(message.message_id, step)
        place = Position(_lamport(message), message.message_id)
        oldest = parts.clock_ms(step.now_ms) - parts.config.lost_after_ms
        for dependency in wanted:
            parts.missing.want(
                dependency,
                named_by=message.sender_id,
                step=step,
                before=place,
                is_old=place.lamport_timestamp < oldest,
            )
        parts.learn_times(message, wanted)
        for victim in leaving:
            self._give_way(victim, step)
        parts.remember_id(message.message_id)
        step.gap_changed = True

    def _give_way(self, victim: IncomingEntry, step: Step) -> None:
        parts, message = self._parts, victim.message
        parts.counters.add("sds.incoming_gave_way")
        parts.incoming.remove(message.message_id)
        step.writes.append(RemoveIncoming(message_id=message.message_id))
        for dependency in message.causal_history:
            if not parts.incoming.is_waited_for(dependency.message_id):
                parts.missing.forget(dependency.message_id, step)
        if parts.incoming.is_waited_for(message.message_id):
            wanted = HistoryEntry(
                message_id=message.message_id,
                retrieval_hint=victim.retrieval_hint,
                sender_id=message.sender_id,
            )
            parts.missing.want(wanted, named_by=message.sender_id, step=step)
            parts.store.by_time.learn_place(message.message_id, _lamport(message))

    # --- Deliver Message ---

    def _deliver(self, entries: Sequence[Arrived], step: Step) -> None:
        """Deliver, together with all that waited for nothing else, in the log's order."""
        parts = self._parts
        ready: list[tuple[int, MessageId, Arrived]] = [
            (_lamport(entry.message), entry.message.message_id, entry) for entry in entries
        ]
        heapify(ready)
        while ready:
            _, message_id, entry = heappop(ready)
            self._deliver_one(entry, step)
            for waiter in parts.incoming.meet(message_id):
                step.writes.append(RemoveIncoming(message_id=waiter.message.message_id))
                step.gap_changed = True
                item = (_lamport(waiter.message), waiter.message.message_id, waiter)
                heappush(ready, item)

    def _deliver_one(self, entry: Arrived, step: Step) -> None:
        parts, message, author = self._parts, entry.message, entry.author
        message_id, sender_id = message.message_id, message.sender_id
        replacement = self._replacement_of(entry) if parts.replaced else None
        if replacement is not None:  # Released together with what replaces it.
            parts.counters.add("sds.replaced")
            parts.missing.remove(message_id, step)
            if isinstance(entry, IncomingEntry) and entry.shown:
                by = replacement.by
                step.events.append(MessageReplaced(message_id=message_id, by=by))
            return
        # Our Lamport timestamp is at least the message's.  The log yields it at the next start.
        # What is from the future is delivered in an open channel only, and not followed.
        lamport = message.lamport_timestamp or 0
        if lamport <= parts.latest(step.now_ms) or not parts.config.is_open:
            parts.lamport_timestamp = max(parts.lamport_timestamp, lamport)
        # Into the log by Lamport timestamp; Resolve Conflicts: at equal ones by message_id.
        position, previous_id = Position(lamport, message_id), None
        if author is not None:
            previous_id = self._chains.check(position, sender_id, author, entry.previous_id, step)
        logged = LogEntry(
            position, sender_id, entry.retrieval_hint, author, previous_id, len(entry.raw)
        )
        late = parts.log.insert(logged)
        self._forms.note(message_id, entry.raw)
        parts.missing.remove(message_id, step)
        is_own = sender_id == parts.participant_id and not parts.config.is_open
        step.writes.append(AppendToLog(logged, entry.raw))
        came_back = is_own
        came_ms = entry.received_ms if isinstance(entry, IncomingEntry) else None
        step.events.append(
            MessageDelivered(message, position, author, is_own, late, came_back, came_ms)
        )
        if entry.replaces is not None:
            self.replace(entry.replaces, position, sender_id, step)
        if is_own:
            parts.holders.track(message_id, lamport, author)
            return
        parts.timer.delivered(message_id, step.now_ms, small_group=parts.small_group)

    # --- Periodic Incoming Buffer Sweep ---

    def show_waiting(self, step: Step) -> None:
        """Show what still waits after the soft time-out below the gap."""
        parts = self._parts
        for entry in parts.incoming.show_due(step.now_ms):
            step.writes.append(PutIncoming(entry=entry))
            step.events.append(
                MessageShownWaiting(
                    message=entry.message, author=entry.author, came_ms=entry.received_ms
                )
            )
            if parts.config.is_open:
                self._leave_cycles(entry, step)
        if parts.disowned:
            for dependency in [*filter(parts.disowned.__contains__, parts.incoming.waiters)]:
                self._release_shown(dependency, step)

    def _release_shown(self, dependency: MessageId, step: Step) -> None:
        """Continue without a message that someone says is replaced, after waiting long enough.

        A member may give different people different senders of a dependency.  Some would then wait
        forever for what the others dropped.
        """
        waiting = self._parts.incoming.waiting
        waiters = self._parts.incoming.waiters.get(dependency, ())
        if any(waiting[waiter].entry.shown for waiter in waiters):
            self._release(dependency, step)

    def give_up_lost(self, step: Step) -> None:
        """Mark as irretrievably lost what was looked for long enough, and deliver what waited."""
        for lost in self._parts.missing.take_lost(step):
            self._go_on_without(lost, step)

    def go_on_without(self, message_ids: Iterable[MessageId], step: Step) -> None:
        """Nobody will give us these; deliver what waited."""
        for message_id in message_ids:
            if not self._parts.knows(message_id):
                self._parts.missing.keep_back(message_id, step)
                self._release(message_id, step)

    def take_absence(self, said: StoresMissing | WindowAnswered, step: Step) -> None:
        """Stores do not have something: go on without what that decides."""
        for lost in self._absence.take(said, step):
            self._go_on_without(lost, step)

    def _go_on_without(self, lost: HistoryEntry, step: Step) -> None:
        step.events.append(DependencyLost(entry=lost))
        self._release(lost.message_id, step)

    def _release(self, dependency: MessageId, step: Step) -> None:
        """Deliver what waited for nothing else."""
        self._go_on(self._parts.incoming.meet(dependency), step)

    def _leave_cycles(self, shown: IncomingEntry, step: Step) -> None:
        for released in self._parts.incoming.leave_cycles(shown.message.message_id):
            self._parts.counters.add("sds.cycle_left")
            self._go_on(released, step)

    def _go_on(self, released: Sequence[IncomingEntry], step: Step) -> None:
        step.gap_changed = step.gap_changed or bool(released)
        for entry in released:
            step.writes.append(RemoveIncoming(message_id=entry.message.message_id))
        self._deliver(released, step)


def _replaces(
    replacement: Replacement, sender_id: ParticipantId, lamport: int, replaces: bool
) -> bool:
    return (
        replacement.sender_id == sender_id
        and lamport > replacement.lamport_timestamp
        and not replaces
    )


def _lamport(message: Message) -> int:
    return message.lamport_timestamp or 0
