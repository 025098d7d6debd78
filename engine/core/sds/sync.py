"""When to send a periodic sync message, and whether there is anything to say.

This is Periodic Sync Message of the specification, with js-waku's timer: U(0, 1) · interval ·
multiplier.  Beyond js-waku, small groups acknowledge news after a short random delay, and a member
who syncs is answered.  Nothing is sent while every member is known to be level.  Rounds that only a
silent member keeps going slow down.  What a sync message contains is decided elsewhere.
"""

from engine.core.entropy import RandomUnit
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import HistoryEntry

_UNSAID_MAX = 1_024


class SyncTimer:
    """The next sync message of one channel, and the reasons for it."""

    def __init__(self, config: SdsConfig, random_unit: RandomUnit) -> None:
        self._config = config
        self._random = random_unit
        content_ms = int(config.sync_interval_ms * config.sync_multiplier_content_received)
        self._unhurried = 0, content_ms
        """The shortest and longest wait before acknowledging a delivery."""
        self._prompt = config.prompt_sync_ms or self._unhurried
        """The same in a small group."""
        self.unsaid: set[MessageId] = set()
        """Messages delivered since we last stated what we hold."""
        self._asked = False
        self._stated_ms: UnixMs | None = None
        self._silent_rounds = 0
        self._repeats = 0
        """How often we stated the same since any member told something new."""
        self._spoken_for = False
        self.at_ms: UnixMs | None = None
        self.for_repairs = False
        """Brought forward because requests are due; they travel with the next message."""

    @property
    def has_news(self) -> bool:
        """Whether something was delivered, or we were asked, since we last stated what we hold."""
        return self._asked or bool(self.unsaid)

    @property
    def _slowdown(self) -> int:
        rounds = self._silent_rounds - self._config.sync_patient_rounds
        return min(1 << min(max(rounds, 0), 30), self._config.sync_slowdown_max)

    def arm(self, multiplier: float, now_ms: UnixMs) -> None:
        """Start the timer unless it runs."""
        if self.at_ms is None:
            at_ms = self._random_time(multiplier, now_ms)
            self.at_ms = UnixMs(max(at_ms, now_ms + self._config.sync_gap_ms))

    def hasten(self, multiplier: float, now_ms: UnixMs, *, small_group: bool) -> None:
        """Bring the next sync forward; in a small group to a short random delay."""
        prompt = self._config.prompt_sync_ms
        if small_group and prompt is not None:
            low, high = prompt
        else:
            low, high = 0, int(self._config.sync_interval_ms * multiplier)
        # Draw once per window: drawing for every message would shorten the wait each time.
        if self.at_ms is None or self.at_ms > now_ms + high:
            self._draw(low, high, now_ms)

    def delivered(self, message_id: MessageId, now_ms: UnixMs, *, small_group: bool) -> None:
        """Another member's message was delivered: its sender wants to know."""
        if len(self.unsaid) < _UNSAID_MAX:
            self.unsaid.add(message_id)
        else:
            self._asked = True  # More than our own content can list: it takes a sync.
        self._silent_rounds = 0
        low, high = self._prompt if small_group else self._unhurried
        if self.at_ms is None or self.at_ms > now_ms + high:
            self._draw(low, high, now_ms)

    def progressed(self) -> None:
        """A member told something new, so rounds are useful again."""
        self._silent_rounds = self._repeats = 0

    def asked(self, now_ms: UnixMs) -> bool:
        """A member seems not to know what we hold; False if we stated it a moment ago.

        The more often we stated the same, the longer that moment.
        """
        stated_ms = self._stated_ms
        config = self._config
        again = min(max(self._repeats - config.sync_patient_rounds, 0), 30)
        wait_ms = min(config.answer_sync_after_ms << again, config.answer_sync_longest_ms)
        if stated_ms is not None and now_ms < stated_ms + wait_ms:
            return False
        self._asked = True
        return True

    def woke(self) -> None:
        """We started, came online, or the group changed: introduce ourselves."""
        self._asked = True
        self._silent_rounds = self._repeats = 0

    def claim_changed(self) -> None:
        """We claim something that the others have not heard, or may have missed."""
        self._asked = True

    def heard_level_sync(self, now_ms: UnixMs) -> None:
        """Another member just stated what we would state: restart the random wait."""
        self._spoken_for = True
        if self.at_ms is not None and not self.has_news and not self.for_repairs:
            self._wait_again(now_ms)

    def content_sent(self, history: tuple[HistoryEntry, ...], *, holdings: bool) -> None:
        """Our own content message stated this much."""
        if holdings:
            self.unsaid.clear()
            return
        for entry in reversed(history):  # Unsaid ids are new, so mostly at the end.
            if not self.unsaid:
                return
            self.unsaid.discard(entry.message_id)

    def stated(self, now_ms: UnixMs, *, for_silent_member: bool) -> None:
        """A sync message went out: all is stated, and the next round comes by itself."""
        if for_silent_member:
            self._silent_rounds += 1
        self._repeats = 0 if self.unsaid else self._repeats + 1
        self.unsaid.clear()
        self._asked = False
        self._spoken_for = False
        self._stated_ms = now_ms
        at_ms = self._random_time(self._config.sync_multiplier_own_sync * self._slowdown, now_ms)
        self.at_ms = UnixMs(max(at_ms, now_ms + self._config.sync_gap_ms))

    def skip_if_spoken_for(self, now_ms: UnixMs) -> bool:
        """Whether another member stated the same, so we skip this round; never two in a row."""
        if not self._spoken_for:
            return False
        self._spoken_for = False
        self._wait_again(now_ms)
        return True

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: the next round is no later than if the last were just over."""
        if self._stated_ms is not None:
            self._stated_ms = min(self._stated_ms, now_ms)
        if self.at_ms is not None:
            self.at_ms = min(self.at_ms, UnixMs(now_ms + self._config.sync_interval_ms))

    def stop(self) -> None:
        """Stop: there is nothing to say, or no one to say it to."""
        self.at_ms = None
        self.for_repairs = False

    def _draw(self, low: int, high: int, now_ms: UnixMs) -> None:
        self.at_ms = UnixMs(now_ms + low + int(self._random() * (high - low)))

    def _wait_again(self, now_ms: UnixMs) -> None:
        multiplier = self._config.sync_multiplier_sync_received * self._slowdown
        at_ms = self._random_time(multiplier, now_ms)
        since_ms = now_ms if self._stated_ms is None else self._stated_ms
        self.at_ms = UnixMs(max(at_ms, since_ms + self._config.sync_gap_ms))

    def _random_time(self, multiplier: float, now_ms: UnixMs) -> UnixMs:
        return UnixMs(now_ms + int(self._random() * self._config.sync_interval_ms * multiplier))
