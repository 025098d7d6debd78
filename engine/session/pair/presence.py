"""Whether the other of a pair is there, and how they learn that we are.

Both say so in ephemeral messages: when the conversation comes online, then every ``SAY_EVERY_MS``.
Who has many contacts does not tell all of them at once.  An answer is wanted of somebody who was
not heard lately, and given at most every ``ANSWER_EVERY_MS``; it serves as saying so ourselves.
Who says nothing is told less and less often, unless something waits for them: when they come, they
say so and are answered.  Whatever is heard live is a sign of life.  When somebody was last seen is
worth a write at most every ``SAVE_EVERY_MS``.  Who was heard lately is taken to be there still:
what they have not acknowledged is sent again after ``NUDGES_MS`` of silence.  Nothing here knows
bytes; nothing is said before both wanted to talk.
"""

from dataclasses import dataclass

from engine.core.ids import UnixMs

SAY_EVERY_MS = 60_000
MOST_DOUBLINGS = 2
"""Somebody who is not there is told at last every four minutes."""
TOLD_AT_ONCE = 10
"""So few contacts are told in the same moment."""
SPREAD_MS = 50
"""For each further contact: about twenty are told in a second."""
MAX_SPREAD_MS = 30_000
ANSWER_EVERY_MS = 30_000
ASK_EVERY_MS = 10_000
"""However often the connection comes and goes."""
SAVE_EVERY_MS = 60_000
ONLINE_FOR_MS = 120_000
"""After the last sign of life."""
NUDGES_MS = (2_000, 4_000, 6_000, 8_000, 10_000, 14_000, 20_000, 36_000, 68_000)


def spread_ms(contacts: int) -> int:
    """Within which time so many contacts are told that we came."""
    return min(max(contacts - TOLD_AT_ONCE, 0) * SPREAD_MS, MAX_SPREAD_MS)


@dataclass(slots=True)
class PresenceBoard:
    """Times are Unix milliseconds by our own clock."""

    last_seen_ms: UnixMs | None = None
    _saved_ms: UnixMs | None = None
    _shown_online: bool = False
    _answered_ms: UnixMs | None = None
    _asked_ms: UnixMs | None = None
    _say_ms: UnixMs | None = None
    _must_ask: bool = False
    _unheard: int = 0
    """How often we said that we are there since the other was heard."""
    _nudges: int = 0

    @property
    def is_here(self) -> bool:
        """Heard lately, while we were online ourselves: not before a start, nor across a break."""
        return self._shown_online

    def begin(self, *, now_ms: UnixMs, delay_ms: int = 0) -> None:
        """From now on we are there for the other: say so, and ask, after so long."""
        if self._say_ms is not None:
            return
        self._unheard = 0
        early_ms = 0 if self._asked_ms is None else self._asked_ms + ASK_EVERY_MS
        self._say_ms = UnixMs(min(max(now_ms, early_ms), now_ms + ASK_EVERY_MS) + delay_ms)

    def end(self) -> None:
        """Offline, or not on speaking terms: nothing is said, and nothing known of the other."""
        self._say_ms = None
        self._shown_online = False

    def ask_again(self, *, now_ms: UnixMs) -> None:
        if self._say_ms is not None:
            self._say_ms, self._must_ask = now_ms, True

    def due(self, now_ms: UnixMs, *, awaits: bool) -> bool | None:
        """Whether an answer is wanted, if it is time to say that we are there; else None.

        ``awaits``: something of ours waits until the other is there.
        """
        latest_ms = now_ms + (SAY_EVERY_MS << MOST_DOUBLINGS)
        if self._say_ms is None or now_ms < self._say_ms <= latest_ms:
            return None  # Later than that it never is, unless the clock was set back.
        wanted, self._must_ask = self._must_ask or not self._shown_online, False
        doublings = 0
        if wanted:
            self._asked_ms = now_ms
        if not self._shown_online and not awaits:
            doublings, self._unheard = min(self._unheard, MOST_DOUBLINGS), self._unheard + 1
        self._say_ms = UnixMs(now_ms + (SAY_EVERY_MS << doublings))
        return wanted

    def may_answer(self, now_ms: UnixMs) -> bool:
        """Whether to answer somebody who asks; if so it counts as answered."""
        answered_ms = self._answered_ms
        if answered_ms is not None and 0 <= now_ms - answered_ms < ANSWER_EVERY_MS:
            return False
        self._answered_ms = now_ms
        if self._say_ms is not None and not self._must_ask:
            self._say_ms = UnixMs(now_ms + SAY_EVERY_MS)  # It says that we are there, too.
        return True

    def heard(self, now_ms: UnixMs) -> bool:
        """Note a sign of life; True if that is news worth a write."""
        self.last_seen_ms = now_ms
        news = not self._shown_online
        self._shown_online = True
        self._nudges = self._unheard = 0
        if news or self._saved_ms is None or abs(now_ms - self._saved_ms) >= SAVE_EVERY_MS:
            self._saved_ms = now_ms
            return True
        return False

    def expire(self, now_ms: UnixMs) -> bool:
        """True once the other fell silent and was shown as online until now."""
        if self._shown_online and now_ms >= self._silent_ms():
            self._shown_online = False
            return True
        return False

    def nudge_ms(self) -> UnixMs | None:
        """When to try again with somebody who is there but says nothing."""
        if self._say_ms is None or not self._shown_online or self.last_seen_ms is None:
            return None
        if self._nudges == len(NUDGES_MS):
            return None
        return UnixMs(self.last_seen_ms + NUDGES_MS[self._nudges])

    def nudge(self, now_ms: UnixMs) -> bool:
        """Whether it is time to; if so it counts as done."""
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
