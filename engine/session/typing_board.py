"""Who is typing, as heard from ephemeral messages.

Nothing is stored.  Our own "typing" is repeated at most every ``REPEAT_MS``.  A received one holds
for ``HOLD_MS`` unless it is withdrawn or its author sends a message.
"""

from dataclasses import dataclass, field

from engine.core.ids import ParticipantId, UnixMs

REPEAT_MS = 4_000
HOLD_MS = 7_000
MAX_TYPING = 50


@dataclass(slots=True)
class TypingBoard:
    """All times are Unix milliseconds, passed in."""

    _until: dict[ParticipantId, UnixMs] = field(default_factory=dict)
    _said_at: UnixMs | None = None

    def heard(self, who: ParticipantId, *, active: bool, now_ms: UnixMs) -> bool:
        """Note whether ``who`` types; True if the list of typing people changed."""
        before = who in self._until
        if active and (before or len(self._until) < MAX_TYPING):
            self._until[who] = UnixMs(now_ms + HOLD_MS)
        else:
            self._until.pop(who, None)
        return before != (who in self._until)

    def expire(self, now_ms: UnixMs) -> bool:
        """Forget those who fell silent; True if there were any."""
        silent = [who for who, until in self._until.items() if until <= now_ms]
        for who in silent:
            del self._until[who]
        return bool(silent)

    def next_deadline(self) -> UnixMs | None:
        return min(self._until.values(), default=None)

    def now(self) -> tuple[ParticipantId, ...]:
        return tuple(self._until)

    def may_say(self, *, active: bool, now_ms: UnixMs) -> bool:
        """Whether to tell the others our state; if so, it counts as told."""
        if not active:
            was_said = self._said_at is not None
            self._said_at = None
            return was_said
        if self._said_at is not None and now_ms - self._said_at < REPEAT_MS:
            return False
        self._said_at = now_ms
        return True
