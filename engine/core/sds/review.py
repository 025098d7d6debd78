"""Review ACK Status of the specification, and all else that a message carries beside its content.

- A causal history names what its sender holds: acknowledged.
- A filter gives only *possibly acknowledged*.
- Holdings (beyond the specification) name ranges of authors' sequence numbers: acknowledged.  A
  member whose holdings are missing what we hold is sent it.
- Repair requests are SDS-R's.

All of it counts in duplicates and sync messages too; nothing here delivers anything.

For messages from a Store, what a sender was missing is examined once all of the Store's messages
are here, and then only each member's newest message.  So a member who returns after a month does
not send the month again.
"""

from itertools import islice
from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.core.ids import HolderSource, MessageId, ParticipantId, UnixMs
from engine.core.sds.bloom import HASHES, ReceivedBloom
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.shared_state import SharedState
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import Claim, LogEntry, Message

_CAUSAL: Final = HolderSource.CAUSAL
_BLOOM: Final = HolderSource.BLOOM
_PUT_OFF: Final = 1_024
"""The maximum number of members."""
_LOOKED_AT: Final = 8
"""Per author, this many times the number of messages that a claim may make us push."""


class AckReview:
    """Learns from members' messages who holds what."""

    def __init__(self, parts: SharedState) -> None:
        self._parts = parts
        self._put_off: dict[ParticipantId, Message] = {}
        """Each member's newest message from Stores, until one comes live."""

    def review(self, received: MessageReceived, ids: list[MessageId], step: Step) -> bool:
        """Note what the sender holds, is missing and requests.

        ``ids`` are those of its causal history.  False: the sender already claimed or requested
        something later, so this is a kept copy that needs no answer.
        """
        parts, message, verified = self._parts, received.message, received.verified
        claims = verified and received.holdings is not None
        is_news = True
        if claims or (verified and message.repair_request):
            is_news = self._is_news(message, step.now_ms)
        if (parts.holders or parts.outgoing) and not self._is_from_before_ours(received):
            self._review_history(message, ids, step, verified=verified)
            if message.bloom_filter:
                self._review_bloom(message, message.bloom_filter, step)
        if claims:
            claim = Claim(received.holdings, received.held_aside)
            self._hear_claim(message, claim, step, is_news=is_news)
        if not is_news:
            parts.counters.add("sds.stale_claim")
        elif received.stored:
            self._put_off_what_it_lacks(message)
        else:
            # A flood earns no budget for its own repair, and nobody's bytes earn it for strangers.
            if received.repaired_by is None and not parts.config.is_open:
                parts.budget.took(message.sender_id, len(received.raw), step.now_ms)
            if claims or message.repair_request or parts.answers.planned or self._put_off:
                self._answer(message, step, claims=claims)
        return is_news

    def _is_from_before_ours(self, received: MessageReceived) -> bool:
        """Whether a Store's copy is older than all of ours that we review.

        Whoever has one of ours goes on from its Lamport timestamp.
        """
        oldest, lamport = self._parts.holders.oldest_lamport, received.message.lamport_timestamp
        return received.stored and oldest is not None and (lamport or 0) < oldest

    def _answer(self, message: Message, step: Step, *, claims: bool) -> None:
        """Plan the answers to what the sender claims and requests."""
        parts = self._parts
        self._put_off.pop(message.sender_id, None)
        if claims:
            self._plan_pushes(message.sender_id, step.now_ms)
        if message.repair_request:
            self._review_requests(message, step)
        if parts.answers.planned:
            parts.answer_due(step)

    def _is_news(self, message: Message, now_ms: UnixMs) -> bool:
        parts = self._parts
        return parts.newest_claims.is_news(
            message.sender_id,
            message.lamport_timestamp or 0,
            clock_ms=parts.clock_ms(now_ms),
            now_ms=now_ms,
        )

    def _put_off_what_it_lacks(self, message: Message) -> None:
        known = self._put_off.get(message.sender_id)
        if known is not None:
            if (known.lamport_timestamp or 0) > (message.lamport_timestamp or 0):
                return
        elif len(self._put_off) >= _PUT_OFF:
            del self._put_off[next(iter(self._put_off))]
        self._put_off[message.sender_id] = message

    def look_back(self, step: Step) -> None:
        """All messages of Stores are here: check what each member is missing, by its newest one."""
        put_off, self._put_off = self._put_off, {}
        for sender_id, message in put_off.items():
            self._plan_pushes(sender_id, step.now_ms)
            if message.repair_request:
                self._review_requests(message, step)

    def _review_history(
        self, message: Message, ids: list[MessageId], step: Step, *, verified: bool
    ) -> None:
        parts = self._parts
        # An unverified sender gives no certain evidence; the protocol's own state follows all the
        # same.
        source, sender_id = _CAUSAL if verified else _BLOOM, message.sender_id
        if parts.holders:
            for message_id in parts.holders.untold(sender_id, ids, certain=verified):
                parts.evidence(message_id, sender_id, source, step)
        if parts.outgoing:
            for message_id in parts.outgoing.among(ids):
                parts.outgoing.acknowledge(message_id, step)

    def _review_bloom(self, message: Message, bloom_filter: bytes, step: Step) -> None:
        parts = self._parts
        candidates = parts.holders.without(message.sender_id, parts.config.bloom_review_messages)
        if parts.outgoing.unhinted:
            candidates += parts.outgoing.unhinted.items()
        if not candidates:
            return
        try:
            bloom = ReceivedBloom(bloom_filter)
        except RemoteProtocolError as error:
            parts.counters.add(f"sds.{error.reason}")
            return
        hits = {message_id for message_id, hashes in candidates if bloom.may_contain(hashes)}
        if not hits:
            return
        fill = bloom.fill
        if fill > parts.config.bloom_max_fill:
            parts.counters.add("sds.bloom_too_full")
            return
        for message_id, _ in candidates:
            if message_id in hits:
                parts.evidence(
                    message_id,
                    message.sender_id,
                    _BLOOM,
                    step,
                    false_probability=fill**HASHES,
                )

    def _hear_claim(self, message: Message, claim: Claim, step: Step, *, is_news: bool) -> None:
        parts, sender_id = self._parts, message.sender_id
        progressed = False
        lamport = min(message.lamport_timestamp or 0, parts.clock_ms(step.now_ms))
        added = parts.claims.hear(sender_id, lamport, claim, message.bloom_filter, is_news=is_news)
        for instance_id, item in added:
            progressed = True
            for message_id in parts.holders.within(instance_id, item):
                parts.evidence(message_id, sender_id, HolderSource.HOLDINGS, step)
        if progressed and is_news:
            parts.timer.progressed()

    def _plan_pushes(self, sender_id: ParticipantId, now_ms: UnixMs) -> None:
        """Send the member what its holdings are missing: it may never have heard of it."""
        parts = self._parts
        room = parts.config.push_per_claim
        clock_ms = parts.clock_ms(now_ms)
        settled = clock_ms - 2 * parts.config.repair_t_min_ms
        latest = clock_ms + parts.config.max_ahead_ms  # Beyond that, our clock was set back.
        for entry in self._lacking(sender_id, now_ms):
            position = entry.position
            if not room:
                break
            if settled < position.lamport_timestamp <= latest:
                continue  # Probably still on its way.
            message_id, author_id = position.message_id, entry.sender_id
            if parts.set_aside.is_flooding(author_id):
                continue  # Others set aside other messages of this author and want no more.
            if parts.times.in_response_group(message_id, author_id, members=len(parts.members)):
                delay = parts.times.response_delay_ms(message_id, author_id)
                at_ms = UnixMs(now_ms + delay)
                room -= parts.answers.plan_push(message_id, at_ms, sender_id, now_ms=now_ms)

    def _lacking(self, sender_id: ParticipantId, now_ms: UnixMs) -> list[LogEntry]:
        """Entries that the member lacks, by Lamport timestamp: it can deliver the oldest at once.

        Leaves out what was sent a moment ago, what waits there for another missing message, and
        what the member cannot read.
        """
        parts, limit = self._parts, self._parts.config.push_per_claim
        reads_after = parts.reads_after(sender_id)
        found: list[LogEntry] = []
        for numbers in parts.claims.lacking(sender_id):
            looked_at = islice(numbers, _LOOKED_AT * limit)  # Whatever its filter says.
            ids = (parts.log.id_of(instance_id, sequence) for instance_id, sequence in looked_at)
            wanted = (
                entry
                for message_id in ids
                if message_id is not None
                and not parts.answers.is_too_soon(message_id, sender_id, now_ms)
                and not parts.claims.perhaps_received(sender_id, message_id)
                and (entry := parts.log.get(message_id)) is not None
                and (reads_after is None or reads_after < entry.position)
                and not parts.claims.holds_aside(sender_id, entry.position.lamport_timestamp)
            )
            found += islice(wanted, limit)
            if len(found) >= _LOOKED_AT * limit:
                break
        return sorted(found, key=lambda entry: entry.position)

    def _review_requests(self, message: Message, step: Step) -> None:
        parts = self._parts
        wanted_ids = [entry.message_id for entry in message.repair_request]
        parts.claims.asked(message.sender_id, wanted_ids)
        for wanted in message.repair_request:
            entry = parts.log.get(wanted.message_id)
            if entry is None:
                parts.missing.asked_by_other(wanted.message_id, step)
                continue
            message_id, author_id = wanted.message_id, entry.sender_id
            if not parts.times.in_response_group(message_id, author_id, members=len(parts.members)):
                continue
            delay = parts.times.response_delay_ms(message_id, author_id)
            at_ms = UnixMs(step.now_ms + delay)
            if not parts.answers.plan(message_id, at_ms, message.sender_id, now_ms=step.now_ms):
                parts.counters.add("sds.repair_answer_refused")
