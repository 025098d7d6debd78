"""Watches our clock: collects clock echoes from all conversations and judges the clock by them.

It checks whether the clock was set every minute and with every echo, and notifies conversations of
a change.  A changed verdict is published and saved for ``causerie doctor``.  It never sets the
clock; the user does, with ``set_offset``.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Final

from msgspec.structs import asdict, replace

from engine.core.clock_evidence import CLEAR_MS, NOTICE_MS, ClockEvidence, ClockVerdict
from engine.core.errors import StorageError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.ports import ProfileStore, SaveValue
from engine.events import ClockJudged, ClockOffsetDropped, EngineEvent, OwnClockView
from engine.persistence.storage_thread import StorageThread
from engine.runtime.own_clock import OFFSET_KEY, OwnClock, read_offset, saved
from engine.session.transitions import EchoHeard

JUDGED_KEY: Final = "clock.judged"
"""Profile key of the last published ``OwnClockView`` and its time; "" for none."""
LOOK_EVERY_S: Final = 60.0
NEWS_MS: Final = 2_000
"""Smaller changes of the verdict are not published."""

logger = logging.getLogger(__name__)


class ClockWatch:
    def __init__(
        self,
        clock: OwnClock,
        *,
        publish: Callable[[EngineEvent], None],
        moved: Callable[[], None],
    ) -> None:
        """``moved`` is called when our clock changed."""
        self._clock = clock
        self._publish = publish
        self._moved = moved
        self._evidence = ClockEvidence()
        self._names: dict[ParticipantId, str] = {}
        self._offset_ms = clock.offset_ms()
        self._view: OwnClockView | None = None
        self._unsaved: dict[str, SaveValue] = {}
        self._save_soon = asyncio.Event()

    async def load(self, store: ProfileStore, storage: StorageThread) -> None:
        """Load the stored offset.  Call before anything uses the clock.  Raises StorageError."""
        stored = await storage.run(store.value, OFFSET_KEY)
        offset = read_offset(stored)
        if not self._clock.restore(offset) and offset is not None:
            self._publish(ClockOffsetDropped(offset_ms=offset.offset_ms))
            self._save(saved(None))
        if await storage.run(store.value, JUDGED_KEY):
            self._save(SaveValue(key=JUDGED_KEY, value=""))  # From an earlier run.
        self._offset_ms = self._clock.offset_ms()
        self._judge()

    async def run(self, store: ProfileStore, storage: StorageThread) -> None:
        """Run until cancelled."""
        while True:
            self._save_soon.clear()
            self.look()
            try:
                await self.save(store, storage)
            except StorageError as error:
                logger.warning("the clock was not saved", extra={"error": type(error).__name__})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._save_soon.wait()

    async def save(self, store: ProfileStore, storage: StorageThread) -> None:
        """Save what was published but not saved yet.  Raises StorageError."""
        writes = tuple(self._unsaved.values())
        if writes:
            await storage.run(store.apply, writes)
        for write in writes:  # Not before: the wait for the disk may have been cancelled.
            if self._unsaved.get(write.key) is write:
                del self._unsaved[write.key]

    # --- evidence -----------------------------------------------------------------------------

    def hear(self, heard: EchoHeard, name: str) -> None:
        """Take an echo from any conversation.  ``name``: the member who sent it."""
        self.look()
        self._names[heard.echo.participant_id] = name
        self._evidence.hear(
            heard.echo,
            known_for_ms=self._known_for_ms(heard.known_ms),
            now_ms=self._clock.steady_ms(),
        )
        self._judge()

    def _known_for_ms(self, known_ms: int) -> int:
        """The smaller of two measures, so that the clock in question cannot choose its judges.

        A clock that is days off would make old friends strangers, or strangers old friends.
        """
        if not known_ms:
            return 0
        by_clock_ms = abs(self._clock.clock_ms() - known_ms)
        return min(by_clock_ms, self._clock.steady_ms() - known_ms)

    def look(self) -> None:
        """Check whether the clock was set; if so, discard the evidence from before."""
        offset_ms = self._clock.offset_ms()
        dropped = self._clock.take_dropped()
        if dropped is not None:
            self._save(saved(None))
            self._publish(ClockOffsetDropped(offset_ms=dropped.offset_ms))
        if offset_ms != self._offset_ms:
            self._offset_ms = offset_ms
            self._evidence.forget()
            self._names.clear()
            self._moved()
        self._judge()

    # --- verdict ------------------------------------------------------------------------------

    def view(self) -> OwnClockView | None:
        self.look()
        return self._view

    async def set_offset(
        self, offset_ms: int | None, store: ProfileStore, storage: StorageThread
    ) -> None:
        """Set the offset; None removes it.

        Raises ConfigError if it is out of range, StorageError if it cannot be saved.
        """
        before = self._clock.stored
        stored = self._clock.set_offset(offset_ms)
        try:
            await storage.run(store.apply, [saved(stored)])
        except StorageError:
            self._clock.stored = before
            raise
        finally:
            self.look()

    def _judge(self) -> None:
        told_ms = self._view.behind_ms if self._view else 0
        verdict = self._evidence.verdict(
            self._clock.steady_ms(), least_ms=CLEAR_MS if told_ms else NOTICE_MS
        )
        view = self._view_of(verdict)
        if _is_news(self._view, view):
            self._view = view
            self._publish(ClockJudged(clock=view))
            self._save(_judged(view, self._clock.clock_ms()))

    def _view_of(self, verdict: ClockVerdict | None) -> OwnClockView | None:
        stored = self._clock.stored
        if verdict is None and stored is None:
            return None
        view = OwnClockView()
        if verdict is not None:
            view = OwnClockView(
                behind_ms=verdict.offset_ms,
                by=tuple(sorted(self._names[who] for who in verdict.by)),
                heard=verdict.heard,
                known_long=verdict.known_long,
            )
        if stored is not None:
            view = replace(view, offset_ms=stored.offset_ms, since_ms=stored.since_ms)
        return view

    def _save(self, write: SaveValue) -> None:
        self._unsaved[write.key] = write
        self._save_soon.set()


def _is_news(before: OwnClockView | None, after: OwnClockView | None) -> bool:
    if before is None or after is None:
        return before is not after
    moved_ms = abs(after.behind_ms - before.behind_ms)
    return moved_ms >= NEWS_MS or replace(after, behind_ms=before.behind_ms) != before


def _judged(view: OwnClockView | None, at_ms: UnixMs) -> SaveValue:
    words = "" if view is None else json.dumps({"at_ms": at_ms, **asdict(view)})
    return SaveValue(key=JUDGED_KEY, value=words)


def read_judged(value: str | None) -> tuple[OwnClockView, UnixMs] | None:
    """The last published view, and when it was published by our clock."""
    if not value:
        return None
    words = json.loads(value)
    at_ms = UnixMs(words.pop("at_ms"))
    return OwnClockView(**{**words, "by": tuple(words["by"])}), at_ms
