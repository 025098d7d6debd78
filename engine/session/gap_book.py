"""What is missing in an SDS channel, as the window shows it: gaps, and what is lost.

Starts from the saved state and follows the channel's writes.  What waits is told by the channel.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.sds.vocabulary import (
    ChannelState,
    Gap,
    MissingEntry,
    MissingState,
    PutMissing,
    RemoveMissing,
    Write,
)
from engine.events import GapPlace, GapView
from engine.history_views import LostView

_MAX_LOST_TOLD: Final = 64


class GapBook:
    def __init__(
        self,
        conversation_id: ConversationId,
        *,
        name_of: Callable[[ParticipantId], str],
        state: ChannelState,
    ) -> None:
        self._conversation_id = conversation_id
        self._name_of = name_of
        self._lost: dict[MessageId, MissingEntry] = {}
        self._kept_back: dict[MessageId, MissingEntry] = {}
        """Also given up, but only because they are older than what the user wants, and a Store has
        them; or than what we were given keys of."""
        for missing in state.missing:
            if missing.state is MissingState.LOST:
                self._note_lost(missing)
        self._asked_again: dict[MessageId, UnixMs] = {}
        """When the user last asked again for a lost message, since the program started."""
        self.waiting = len(state.incoming)
        """How many messages wait, as the channel last told."""

    def hear_writes(self, writes: Sequence[Write]) -> None:
        """Keep track of what is lost."""
        for write in writes:
            if isinstance(write, PutMissing) and write.entry.state is MissingState.LOST:
                self._note_lost(write.entry)
            elif isinstance(write, RemoveMissing):
                self._lost.pop(write.message_id, None)
                self._kept_back.pop(write.message_id, None)
                self._asked_again.pop(write.message_id, None)

    def _note_lost(self, missing: MissingEntry) -> None:
        message_id = missing.entry.message_id
        if missing.stores is not None and missing.stores.kept_back:
            self._lost.pop(message_id, None)
            self._kept_back[message_id] = missing
        else:
            self._kept_back.pop(message_id, None)
            self._lost[message_id] = missing

    def asked_again(self, message_ids: Sequence[MessageId], now_ms: UnixMs) -> None:
        self._asked_again |= {each: now_ms for each in message_ids if each in self._lost}

    def kept_back(self) -> tuple[MessageId, ...]:
        """What Stores have from before the time that the user wants to see."""
        return tuple(self._kept_back)

    def is_from_before(self, message_id: MessageId) -> bool:
        entry = self._kept_back.get(message_id)
        return entry is not None and entry.is_from_before

    def gap(self, gaps: Sequence[Gap]) -> GapView | None:
        """``gaps``: what the channel is looking for."""
        if not gaps and not self.waiting and not self._lost:
            return None
        latest = islice(reversed(self._lost.values()), _MAX_LOST_TOLD)
        places = tuple(map(_gap_place, gaps))
        if not places and self.waiting:
            places = (GapPlace(missing=0, waiting=self.waiting, since_ms=UnixMs(0)),)
        return GapView(
            conversation_id=self._conversation_id,
            missing=sum(gap.missing for gap in gaps),
            waiting=self.waiting,
            places=places,
            lost=tuple(map(self._lost_view, latest)),
            lost_total=len(self._lost),
        )

    def _lost_view(self, missing: MissingEntry) -> LostView:
        sender_id, said = missing.entry.sender_id, missing.stores
        return LostView(
            message_id=missing.entry.message_id,
            sender_id=sender_id,
            sender_name="" if sender_id is None else self._name_of(sender_id),
            before=missing.before,
            since_ms=missing.since_ms,
            stores_ms=None if said is None else said.at_ms,
            lacked_by=0 if said is None else said.lacked,
            silent_stores=() if said is None else said.silent,
            asked_again_ms=self._asked_again.get(missing.entry.message_id),
        )


def _gap_place(gap: Gap) -> GapPlace:
    return GapPlace(
        missing=gap.missing,
        waiting=gap.waiting,
        since_ms=gap.since_ms,
        requests=gap.requests,
        next_request_ms=gap.next_request_ms,
        before=gap.before,
    )
