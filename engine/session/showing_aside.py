"""Delivers messages set aside beyond an author's daily quota, because the user asks for them.

It is loaded a few messages at a time.  As long as that places some, the next ones are loaded at
once; where the rest waits behind a gap for room, it is tried again after a pause.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.core.ids import ParticipantId, UnixMs
from engine.core.records import KeptAside
from engine.core.sds.channel import SdsChannel
from engine.session.transitions import LoadSetAside, RowAdded, SetAsideLoaded, TransitionBuilder

SHOW_AGAIN_MS: Final = 60_000
"""Pause before placing more, when there was no room for it."""


class ShowingAside:
    def __init__(self, channel: SdsChannel) -> None:
        self._channel = channel
        self._again_ms: dict[ParticipantId, UnixMs] = {}
        """Authors whose messages the user wants to see but which are not all placed."""

    def place(
        self,
        loaded: SetAsideLoaded,
        take: Callable[[KeptAside], None],
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
    ) -> None:
        """Place a few messages with ``take``, and ask for the next ones."""
        sender_id = loaded.load.sender_id
        before = self._channel.waiting_aside(sender_id)
        for kept in loaded.kept:
            take(kept)
        # The user asked for them, so they need no notification.
        builder.notes = [
            replace(note, notify=False) if isinstance(note, RowAdded) else note
            for note in builder.notes
        ]
        left = self._channel.waiting_aside(sender_id)
        if left < before:
            builder.sends.append(LoadSetAside(sender_id=sender_id))
        elif left:  # They wait behind a gap, as far as there is room.
            self._again_ms[sender_id] = UnixMs(now_ms + SHOW_AGAIN_MS)

    def next_deadline(self) -> UnixMs | None:
        return min(self._again_ms.values(), default=None)

    def go_on(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Try again what is due."""
        for sender_id in [who for who, at in self._again_ms.items() if at <= now_ms]:
            del self._again_ms[sender_id]
            builder.sends.append(LoadSetAside(sender_id=sender_id))
