"""The fault bench on the settings page: makes the network of this device bad, for testers.

Its rows are bound to no setting: nothing of it is kept.  What is wrong with a number stands below
its field, and nothing is switched on until all are right.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QLineEdit, QSizePolicy

from engine.core.errors import ChatError
from engine.core.fault_bench import FaultRule, Preset
from engine.core.faults import MAX_DELAY_MS, FaultSpec
from engine.core.ids import ConversationId
from engine.events import ConversationView
from engine.fault_views import Faults
from ui.choice import Choice
from ui.controls import Button
from ui.error_words import error_words
from ui.fault_words import overview_words, preset_words
from ui.foreign_text import one_line
from ui.problem_words import sentence
from ui.settings_page.rows import ActionRow, SettingRow
from ui.settings_page.section import SettingsSection
from ui.theme import current_theme
from ui.translate import tr

_FIELD_WIDTH = 96
_DIGITS = 6
_AGAIN_MS = 1_000
_DAY_MIN = 24 * 60
_MAX_LINE_KB = 100_000


class AmountRow(SettingRow):
    """A whole number between two bounds."""

    def __init__(self, label: str, hint: str, least: int, most: int, *, given: int = 0) -> None:
        self.field = QLineEdit(str(given))
        self.field.setMaxLength(_DIGITS)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._least, self._most = least, most
        super().__init__(label, hint, self.field)
        self.field.textEdited.connect(self.amount)

    def amount(self) -> int | None:
        """None if it is wrong, which is said."""
        try:
            number = int(self.field.text().strip() or "0")
        except ValueError:
            number = self._least - 1
        if self._least <= number <= self._most:
            self.say("")
            return number
        words = tr("Allowed: {least} to {most}.")
        self.say(words.format(least=self._least, most=self._most))
        return None

    def _dress(self) -> None:
        super()._dress()
        self.field.setFixedWidth(current_theme().metrics.scaled(_FIELD_WIDTH))


class _WhereRow(SettingRow):
    def __init__(self, conversations: Callable[[], Sequence[ConversationView]]) -> None:
        self.choice = Choice()
        self.choice.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._conversations = conversations
        self._ids: tuple[ConversationId | None, ...] = ()
        words = tr("A conversation with faults of its own does not share in those of all.")
        super().__init__(tr("For"), words, self.choice)
        self.refresh()

    @property
    def conversation_id(self) -> ConversationId | None:
        """None: all of them."""
        return self._ids[max(0, self.choice.currentIndex())]

    def refresh(self) -> None:
        chosen = self.conversation_id if self._ids else None
        views = self._conversations()
        self._ids = (None, *(view.conversation_id for view in views))
        self.choice.clear()
        self.choice.addItems(
            [tr("All conversations"), *(one_line(view.name, 30) for view in views)]
        )
        self.choice.setCurrentIndex(self._ids.index(chosen) if chosen in self._ids else 0)


class OverviewRow(ActionRow):
    """What is on, and the button that ends it; it counts on while it is looked at."""

    def __init__(self, words: Callable[[], str], stop: Callable[[], None]) -> None:
        self._words = words
        button = Button(tr("Stop all faults"), kind="danger")
        super().__init__(tr("Faults that are on"), "", button, stop)
        self._again = QTimer(self)
        self._again.setInterval(_AGAIN_MS)
        self._again.timeout.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        words = self._words()
        if words != self.hint.text():
            self.show_hint(words)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._again.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._again.stop()


class FaultRows:
    """The rows, and what they do."""

    def __init__(
        self,
        faults: Callable[[], Faults],
        conversations: Callable[[], Sequence[ConversationView]],
        now: Callable[[], datetime],
    ) -> None:
        self._faults = faults
        self._conversations = conversations
        self._now = now
        self.overview = OverviewRow(self._overview, self._stop_all)
        self.where = _WhereRow(conversations)
        self.presets = {
            preset: ActionRow(
                preset_words(preset),
                hint,
                Button(tr("Start")),
                partial(self._do, partial(self._start, preset)),
            )
            for preset, hint in (
                (Preset.TRAIN, tr("Slow, with nothing at all in tunnels; three minutes.")),
                (Preset.HOTEL, tr("A narrow line, and a tenth is lost; five minutes.")),
                (Preset.PARTITION, tr("Nothing goes out or comes in.")),
            )
        }
        self.pause = ActionRow(
            tr("Pause"),
            tr("Everything is held, both ways, until you stop it."),
            Button(tr("Pause")),
            partial(self._do, lambda: self._set(FaultRule(paused=True))),
        )
        for preset, row in self.presets.items():
            words = tr("Start: {name}").format(name=preset_words(preset))
            row.button.setAccessibleName(words)
        self.loss = AmountRow(tr("Loss"), tr("Percent of all copies."), 0, 100)
        self.delay = AmountRow(tr("Delay"), tr("Milliseconds, at least."), 0, MAX_DELAY_MS)
        self.longest = AmountRow(tr("Longest delay"), tr("Milliseconds."), 0, MAX_DELAY_MS)
        self.doubled = AmountRow(tr("Duplicates"), tr("Percent of what comes in."), 0, 100)
        self.overtaken = AmountRow(
            tr("Reordering"), tr("Percent that later ones overtake."), 0, 100
        )
        self.line = AmountRow(
            tr("Bandwidth"), tr("Kilobytes a second; 0: as it is."), 0, _MAX_LINE_KB
        )
        self.own = ActionRow(
            tr("With these numbers"),
            tr("Until you stop it."),
            Button(tr("Start")),
            partial(self._do, self._set_own),
        )
        self.own.button.setAccessibleName(tr("Start with these numbers"))
        self.skew = AmountRow(
            tr("Put the clock ahead"),
            tr("By so many minutes; below 0: back. Others see the wrong time."),
            -_DAY_MIN,
            _DAY_MIN,
        )
        self.clock = ActionRow(
            tr("With this clock"),
            tr("Until you stop it."),
            Button(tr("Apply")),
            partial(self._do, self._skew),
        )

    def add_to(self, section: SettingsSection) -> None:
        section.add_rows(self.overview, heading=tr("Fault bench"))
        section.add_rows(self.where, *self.presets.values(), self.pause)
        section.add_rows(
            self.loss,
            self.delay,
            self.longest,
            self.doubled,
            self.overtaken,
            self.line,
            self.own,
            heading=tr("By numbers"),
        )
        section.add_rows(self.skew, self.clock, heading=tr("A wrong clock"))

    def _overview(self) -> str:
        names = {view.conversation_id: view.name for view in self._conversations()}
        said = overview_words(
            self._faults().view(),
            self._now(),
            lambda key: one_line(names[key], 30) if key in names else "?",
        )
        always = tr(
            "Makes the network bad on purpose, for tests. Nothing you say is lost for good, and a"
            " restart ends all of it."
        )
        return f"{always}\n{said}"

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ChatError as error:
            self.where.say(sentence(error_words(error)))
        else:
            self.where.say("")
        self.overview.refresh()

    def _start(self, preset: Preset) -> None:
        self._faults().start(self.where.conversation_id, preset)

    def _set(self, rule: FaultRule) -> None:
        self._faults().set(self.where.conversation_id, rule)

    def _set_own(self) -> None:
        rows = (self.loss, self.delay, self.longest, self.doubled, self.overtaken, self.line)
        amounts = [row.amount() for row in rows]
        if any(amount is None for amount in amounts):
            return
        loss, delay, longest, doubled, overtaken, line = (amount or 0 for amount in amounts)
        self._set(
            FaultRule(
                spec=FaultSpec(
                    loss=loss / 100,
                    delay_ms=(delay, max(delay, longest)),
                    dup=doubled / 100,
                    reorder=overtaken / 100,
                ),
                bytes_per_s=line * 1_000,
            )
        )

    def _skew(self) -> None:
        minutes = self.skew.amount()
        if minutes is not None:
            self._faults().skew(minutes * 60_000)

    def _stop_all(self) -> None:
        self._faults().stop_all()
        self.overview.refresh()
