"""Whether the peer of a pair is online, and how they learn that we are.

- Both sides announce themselves in ephemeral messages: when the conversation comes online, then
  every ``SAY_EVERY_MS``.  With many contacts the first announcements are spread over time.
- An announcement asks for an answer if the peer was not heard lately.  Answers go out at most every
  ``ANSWER_EVERY_MS`` and replace the next announcement.
- A silent peer gets announcements less and less often, unless something waits for it.  It announces
  itself when it comes online, and is answered then.
- Any live message is a sign of life.  "Last seen" is saved at most every ``SAVE_EVERY_MS``.
- A peer heard lately counts as online.  After each of ``NUDGES_MS`` of silence, what it has not
  acknowledged is sent again.

Nothing is announced before both agree to talk, and nothing while the user does not want it: then
the peer learns of us by what we say and acknowledge.  This module handles no bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.core.ids import UnixMs

SAY_EVERY_MS = 60_000
MOST_DOUBLINGS = 2
"""A peer that is offline gets an announcement every four minutes in the end."""
TOLD_AT_ONCE = 10
"""Up to this many contacts are told at the same moment."""
SPREAD_MS = 50
"""Added for each further contact: about twenty are told per second."""
MAX_SPREAD_MS = 30_000
ANSWER_EVERY_MS = 30_000
ASK_EVERY_MS = 10_000
"""Applies however often the connection drops and returns."""
SAVE_EVERY_MS = 60_000
ONLINE_FOR_MS = 120_000
"""How long a peer counts as online after its last sign of life."""
NUDGES_MS = (2_000, 4_000, 6_000, 8_000, 10_000, 14_000, 20_000, 36_000, 68_000)


def spread_ms(contacts: int) -> int:
    """The time over which to spread our announcement to this many contacts."""
    return min(max(contacts - TOLD_AT_ONCE, 0) * SPREAD_MS, MAX_SPREAD_MS)


@dataclass(slots=True)
class PresenceBoard:
    """Times are Unix milliseconds by our own clock."""

    last_seen_ms: UnixMs | None = None
    announces: Callable[[], bool] = lambda: True
    """Whether the user wants the peer to be told."""
    _saved_ms: UnixMs | None = None
    _shown_online: bool = False
    _answered_ms: UnixMs | None = None
    _asked_ms: UnixMs | None = None
    _say_ms: UnixMs | None = None
    _must_ask: bool = False
    _unheard: int = 0
    """How many announcements we sent since the peer was last heard."""
    _nudges: int = 0

    @property
    def is_here(self) -> bool:
        """Whether the peer was heard lately, since we started or last came online."""
        return self._shown_online

    def begin(self, *, now_ms: UnixMs, delay_ms: int = 0) -> None:
        """Start announcing ourselves and asking for the peer, after ``delay_ms``."""
        if self._say_ms is not None:
            return
        self._unheard = 0
        early_ms = 0 if self._asked_ms is None else self._asked_ms + ASK_EVERY_MS
        self._say_ms = UnixMs(min(max(now_ms, early_ms), now_ms + ASK_EVERY_MS) + delay_ms)

    def end(self) -> None:
        """We are offline or do not talk: announce nothing and know nothing of the peer."""
        self._say_ms = None
        self._shown_online = False

    def ask_again(self, *, now_ms: UnixMs) -> None:
        if self._say_ms is not None:
            self._say_ms, self._must_ask = now_ms, True

    def due(self, now_ms: UnixMs, *, awaits: bool) -> bool | None:
        """None if no announcement is due; else whether it asks for an answer.

        ``awaits``: something of ours waits for the peer to come online.
        """
        latest_ms = now_ms + (SAY_EVERY_MS << MOST_DOUBLINGS)
        if self._say_ms is None or now_ms < self._say_ms <= latest_ms:
            return None  # It can only be later than that if the clock was set back.
        wanted, self._must_ask = self._must_ask or not self._shown_online, False
        doublings = 0
        if wanted:
            self._asked_ms = now_ms
        if not self._shown_online and not awaits:
            doublings, self._unheard = min(self._unheard, MOST_DOUBLINGS), self._unheard + 1
        self._say_ms = UnixMs(now_ms + (SAY_EVERY_MS << doublings))
        return wanted if self.announces() else None

    def may_answer(self, now_ms: UnixMs) -> bool:
        """Whether to answer a peer that asks; if so, it counts as answered."""
        answered_ms = self._answered_ms
        if not self.announces():
            return False
        if answered_ms is not None and 0 <= now_ms - answered_ms < ANSWER_EVERY_MS:
            return False
        self._answered_ms = now_ms
        if self._say_ms is not None and not self._must_ask:
            self._say_ms = UnixMs(now_ms + SAY_EVERY_MS)  # The answer is an announcement, too.
        return True

    def heard(self, now_ms: UnixMs) -> bool:
        """Note a sign of life; True if it is worth a write."""
        self.last_seen_ms = now_ms
        news = not self._shown_online
        self._shown_online = True
        self._nudges = self._unheard = 0
        if news or self._saved_ms is None or abs(now_ms - self._saved_ms) >= SAVE_EVERY_MS:
            self._saved_ms = now_ms
            return True
        return False

    def expire(self, now_ms: UnixMs) -> bool:
        """True once, when a peer shown as online has fallen silent."""
        if self._shown_online and now_ms >= self._silent_ms():
            self._shown_online = False
            return True
        return False

    def nudge_ms(self) -> UnixMs | None:
        """When to send again to a peer that is online but silent."""
        if self._say_ms is None or not self._shown_online or self.last_seen_ms is None:
            return None
        if self._nudges == len(NUDGES_MS):
            return None
        return UnixMs(self.last_seen_ms + NUDGES_MS[self._nudges])

    def nudge(self, now_ms: UnixMs) -> bool:
        """Whether a nudge is due; if so, it counts as done."""
        nudge_ms = self.nudge_ms()
        if nudge_ms is None or now_ms < nudge_ms:
            return False
        self._nudges += 1
        return True

    def next_deadline(self) -> UnixMs | None:
        deadlines = [self._say_ms]
        if self._shown_online:
            deadlines.append(self._silent_ms())
        return min((d for d in deadlines if d is not None), default=None)

    def _silent_ms(self) -> UnixMs:
        return UnixMs((self.last_seen_ms or 0) + ONLINE_FOR_MS)
