"""The chain of an author's messages: each names the one before, which exposes contradictions.

This goes beyond the specification.  Content carries the author's sequence number and the id of the
author's previous message; a message's id commits to both.  Two messages with one number, or a
message that names another predecessor than the one we have, prove that their author sent different
people different messages (a *fork*).  All of them are delivered, messages missing here from the
other branch are looked for, and the proof is kept.  An author may fork in good faith, with a copied
profile; the reason is not examined.
"""

from typing import Final

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, Position
from engine.core.sds.forks import Fork, ForkFound, PutFork
from engine.core.sds.shared_state import SharedState
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import HistoryEntry

MAX_FORKS: Final = 1_024
"""How many proofs a channel keeps."""


class Chains:
    """Checks each message against its neighbours in its author's chain."""

    def __init__(self, parts: SharedState) -> None:
        self._parts = parts

    def check(
        self,
        position: Position,
        sender_id: ParticipantId,
        author: AuthorSequence,
        previous_id: MessageId | None,
        step: Step,
    ) -> MessageId | None:
        """Check a message that is about to enter the log.

        Returns ``previous_id`` if it must be remembered because that message is not here.
        """
        log, message_id = self._parts.log, position.message_id
        twin, before = log.neighbours(author)
        if twin is not None:
            self._found(sender_id, author, twin, message_id, step)
        if log.expected:
            self._check_successor(position, sender_id, author, step)
        if previous_id is None or before == previous_id:
            return None
        known = log.get(previous_id)
        if known is not None:  # On another branch, or not directly before it.
            if known.author != AuthorSequence(author.instance_id, author.sequence - 1):
                self._found(sender_id, author, previous_id, message_id, step)
            return None
        if before is not None:
            self._found(sender_id, author, before, message_id, step)
            self._look_for(previous_id, sender_id, position, step)
        return previous_id

    def _check_successor(
        self, position: Position, sender_id: ParticipantId, author: AuthorSequence, step: Step
    ) -> None:
        expected = self._parts.log.expected.get(author)
        if expected is None:
            return
        expected_id, successor = expected
        if expected_id == position.message_id:
            del self._parts.log.expected[author]
        elif expected_id not in self._parts.log:
            self._found(sender_id, author, position.message_id, successor, step)
            self._look_for(expected_id, sender_id, position, step)

    def _look_for(
        self, message_id: MessageId, sender_id: ParticipantId, before: Position, step: Step
    ) -> None:
        parts = self._parts
        entry = HistoryEntry(message_id, None, sender_id)
        if parts.knows(message_id) or parts.is_met(entry):
            return
        if not parts.missing.room_for(1, sender_id):
            parts.counters.add("sds.missing_overflow")
            return
        parts.missing.want(entry, named_by=sender_id, step=step, before=before)

    def _found(
        self,
        sender_id: ParticipantId,
        author: AuthorSequence,
        first_id: MessageId,
        second_id: MessageId,
        step: Step,
    ) -> None:
        forks = self._parts.forks
        if author.instance_id in forks:
            return
        self._parts.counters.add("sds.fork")
        if len(forks) >= MAX_FORKS:
            return
        fork = Fork(
            sender_id=sender_id,
            instance_id=author.instance_id,
            sequence=author.sequence,
            first_id=first_id,
            second_id=second_id,
        )
        forks[author.instance_id] = fork
        step.writes.append(PutFork(fork=fork))
        step.events.append(ForkFound(fork=fork))
