"""What Stores do not have: which Stores said so, and which dependencies are lost because of it.

Part of the Periodic Incoming Buffer Sweep (*irretrievably lost*).  What Stores do not find by its
retrieval hint is searched for by time first (``time_search``).
"""

from collections.abc import Iterable, Sequence

from engine.core.ids import MessageId
from engine.core.sds.inputs import StoresMissing, WindowAnswered
from engine.core.sds.shared_state import SharedState
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import HistoryEntry, StoresSaid


class Absence:
    def __init__(self, parts: SharedState) -> None:
        self._parts = parts

    def take(self, said: StoresMissing | WindowAnswered, step: Step) -> list[HistoryEntry]:
        """Remember who answered; returns what is lost, and marked so, because of it."""
        if isinstance(said, StoresMissing):
            return self._not_by_hint(said, step)
        lacking, over = self._parts.store.by_time.answered(said.window)
        note = StoresSaid(at_ms=step.now_ms, lacked=said.lacked, silent=said.silent)
        self._note(lacking, note, step)
        return self._give_up(over, step)

    def _not_by_hint(self, lacks: StoresMissing, step: Step) -> list[HistoryEntry]:
        message_ids: Sequence[MessageId] = lacks.message_ids
        note = StoresSaid(
            at_ms=step.now_ms,
            lacked=lacks.lacked,
            silent=lacks.silent,
            kept_back=lacks.kept_back,
        )
        self._note(message_ids, note, step)
        if not lacks.kept_back:  # Else a Store has it, so there is nothing to search for.
            searched = self._parts.store.search(message_ids, step, decided=lacks.decided)
            message_ids = [each for each in message_ids if each not in searched]
        return self._give_up(message_ids, step) if lacks.decided else []

    def _note(self, message_ids: Iterable[MessageId], said: StoresSaid, step: Step) -> None:
        for message_id in message_ids:
            self._parts.missing.note_stores(message_id, said, step)

    def _give_up(self, message_ids: Iterable[MessageId], step: Step) -> list[HistoryEntry]:
        """Mark as lost what precedes a message older than the time-out.

        Anyone who held it had that time to send it.  So history older than all Stores and members
        does not delay members who join late.  What turns up after all takes its place.
        """
        parts = self._parts
        oldest = parts.clock_ms(step.now_ms) - parts.config.lost_after_ms
        given_up: list[HistoryEntry] = []
        for message_id in message_ids:
            named_at = parts.incoming.oldest_waiter(message_id)
            if named_at is not None and named_at < oldest:
                lost = parts.missing.give_up(message_id, step)
                given_up += [] if lost is None else [lost]
        return given_up
