"""Notices about our clock: a quiet line, a banner with two actions, and their sheet.

A quiet line stands in the strip as long as there is anything to say.  From five minutes on a
banner says by how much and who says so; it can be closed, and comes back only for other news.
"""

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject

from engine.api import ChatEngine
from engine.events import ClockJudged, ClockOffsetDropped, NoticeLevel, OwnClockView
from ui.bridge import EngineBridge
from ui.clock_words import banner_words, going_words, needs_banner, quiet_words
from ui.dialogs.clock import CheckClock
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.notices import Notice, NoticesBar
from ui.window.one_sheet import OneSheet
from ui.window.strip import StatusStrip

KEY = "clock"
DROPPED_KEY = "clock/dropped"


class ClockNotice(QObject):
    def __init__(  # noqa: PLR0913 - keyword-only: the parts of the window that it speaks through
        self,
        engine: ChatEngine,
        tasks: Tasks,
        *,
        bridge: EngineBridge,
        notices: NoticesBar,
        strip: StatusStrip,
        one_sheet: OneSheet,
        now: Callable[[], datetime],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._notices = notices
        self._strip = strip
        self._one = one_sheet
        self._now = now
        self._told: tuple[bool, bool, bool] | None = None
        """Whether it is a banner, whether ours is behind, whether one goes by the others."""
        bridge.clock_judged.connect(self._judged)
        bridge.clock_offset_dropped.connect(self._dropped)
        strip.clock.clicked.connect(self.check)

    def start(self) -> None:
        """Show what was judged before the window was there."""
        self._show(self._engine.own_clock())

    def check(self) -> None:
        """The sheet, on which both clocks tick."""

        async def flow() -> None:
            parent = self._strip.window()
            sheet = CheckClock(
                self._engine.own_clock,
                self._engine.set_clock_offset,
                self._now,
                self._tasks,
                parent,
            )
            await self._one.ask(sheet)

        self._one.start(tr("check the clock"), flow)

    def _judged(self, event: ClockJudged) -> None:
        self._show(event.clock)
        sheet = self._one.sheet
        if isinstance(sheet, CheckClock):
            sheet.show_clock(event.clock)

    def _dropped(self, event: ClockOffsetDropped) -> None:
        del event
        text = tr("The time of this device was set, so Causerie goes by it again.")
        self._notices.raise_notice(Notice(key=DROPPED_KEY, level=NoticeLevel.INFO, text=text))

    def _show(self, clock: OwnClockView | None) -> None:
        self._strip.show_clock(quiet_words(clock))
        notice = None if clock is None else self._notice(clock)
        if clock is None or notice is None:
            self._told = None
            self._notices.clear(KEY)
            return
        told = needs_banner(clock), clock.behind_ms > 0, bool(clock.offset_ms)
        if told != self._told or any(one.key == KEY for one in self._notices.notices()):
            self._told = told
            self._notices.raise_notice(notice)

    def _notice(self, clock: OwnClockView) -> Notice | None:
        """None: the quiet line is enough."""
        if needs_banner(clock):
            others_ms = clock.others_ahead_ms
            return Notice(
                key=KEY,
                level=NoticeLevel.WARNING,
                text=banner_words(clock),
                actions=(
                    (tr("Check the clock"), self.check),
                    (tr("Go by the others"), lambda: self._go(others_ms)),
                ),
            )
        if clock.offset_ms:
            return Notice(
                key=KEY,
                level=NoticeLevel.INFO,
                text=going_words(clock),
                actions=(
                    (tr("Check the clock"), self.check),
                    (tr("Go by this device's clock again"), lambda: self._go(None)),
                ),
            )
        return None

    def _go(self, offset_ms: int | None) -> None:
        async def work() -> None:
            await self._engine.set_clock_offset(offset_ms)

        self._tasks.spawn(work, purpose=tr("set the clock"))
