"""Our clock beside the others': both tick, and one reads how to set the wrong one right.

Nothing here judges a clock: a person looks at both and decides, and may let the others' time hold
until the clock of this device is set.
"""

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QGridLayout, QWidget

from engine.events import OwnClockView
from ui.clock_words import going_words, how_to_set, off_sentence, who_sentence
from ui.controls import Button, Text
from ui.dialogs.sheet import Sheet, problem_line, say_problem
from ui.regional import clock_with_seconds, day_of_year
from ui.tasks import Tasks
from ui.translate import tr

_TICK_MS = 250
_LATEST = timedelta(days=400 * 365)


class CheckClock(Sheet):
    def __init__(  # noqa: PLR0913 - what it shows, asks and sets
        self,
        look: Callable[[], OwnClockView | None],
        set_offset: Callable[[int | None], Awaitable[None]],
        now: Callable[[], datetime],
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        platform: str = sys.platform,
    ) -> None:
        """``look`` asks how it stands now; ``set_offset``: by so much, None: by this device's."""
        super().__init__(tr("Check the clock"), parent=parent)
        self._look = look
        self._set_offset = set_offset
        self._now = now
        self._tasks = tasks
        self.words = Text(face="body", colour="ink2", wrap=True)
        self.ours, self.theirs = _Face(tr("This device")), _Face(tr("The others"))
        faces = QGridLayout()
        faces.setHorizontalSpacing(24)
        faces.setVerticalSpacing(2)
        for column, face in enumerate((self.ours, self.theirs)):
            face.put(faces, column)
            faces.setColumnStretch(column, 1)
        self.how = Text(how_to_set(platform), face="label", colour="ink2", wrap=True)
        self.go_by = Button(tr("Go by the others"))
        self.problem = problem_line()
        self.body.addWidget(self.words)
        self.body.addSpacing(6)
        self.body.addLayout(faces)
        self.body.addSpacing(6)
        self.body.addWidget(self.how)
        self.body.addWidget(self.go_by)
        self.body.addWidget(self.problem)
        self.again = self.add_button(tr("Look again"), left=True, kind="ghost")
        self.close_button = self.add_button(tr("Close"), kind="primary")
        self.close_button.setDefault(True)
        self.again.clicked.connect(self.look_again)
        self.go_by.clicked.connect(self._go)
        self.close_button.clicked.connect(self.reject)
        self._clock: OwnClockView | None = None
        self._ticking = QTimer(self)
        self._ticking.timeout.connect(self.tick)
        self._ticking.start(_TICK_MS)
        self.look_again()
        self.close_button.setFocus()

    def look_again(self) -> None:
        self.show_clock(self._look())

    def show_clock(self, clock: OwnClockView | None) -> None:
        self._clock = clock
        shown = clock or OwnClockView()
        going = going_words(shown) if shown.offset_ms else ""
        said = f"{off_sentence(shown)} {who_sentence(shown)}".strip()
        self.words.setText(" ".join(filter(None, (said, going))))
        self.theirs.setVisible(clock is not None)
        self.how.setVisible(clock is not None)
        goes_back = bool(shown.offset_ms) and not shown.behind_ms
        self._offset_ms = None if goes_back else shown.others_ahead_ms
        self.go_by.rename(
            tr("Go by this device's clock again") if goes_back else tr("Go by the others")
        )
        self.go_by.setVisible(clock is not None)
        say_problem(self.problem, "")
        self.tick()

    def tick(self) -> None:
        now = self._now()
        self.ours.show_time(now)
        ahead = timedelta(milliseconds=(self._clock or OwnClockView()).others_ahead_ms)
        self.theirs.show_time(now + max(min(ahead, _LATEST), -_LATEST))

    def _go(self) -> None:
        offset_ms = self._offset_ms

        async def work() -> None:
            await self._set_offset(offset_ms)
            self.accept()

        self._tasks.spawn(work, purpose=tr("set the clock"), retry=False)


class _Face:
    """Whose time, the time, and the day."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self.heading = Text(whose, face="caption", colour="ink2", strong=True)
        self.time = Text(face="title", strong=True)
        self.day = Text(face="label", colour="ink2")

    def put(self, grid: QGridLayout, column: int) -> None:
        for row, text in enumerate((self.heading, self.time, self.day)):
            grid.addWidget(text, row, column)

    def setVisible(self, visible: bool) -> None:
        for text in (self.heading, self.time, self.day):
            text.setVisible(visible)

    def show_time(self, at: datetime) -> None:
        time, day = clock_with_seconds(at), day_of_year(at)
        self.time.setText(time)
        self.day.setText(day)
        words = tr("{whose}: {time}, {day}").format(whose=self._whose, time=time, day=day)
        self.time.setAccessibleName(words)
