"""The rows of the settings page: words on the left, a control on the right, its problem below.

A row is bound to one setting and always shows what counts.  A change is made at once; if it is
refused, or cannot be written, that stands below the control, and the control goes back.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.core.errors import ChatError, ConfigError, SettingsError, SettingsFlaw
from engine.core.search_text import folded
from ui.choice import Choice
from ui.controls import Button, Text
from ui.dialogs.sheet import problem_line, say_problem
from ui.error_words import error_words
from ui.lines_field import LinesField
from ui.problem_words import sentence
from ui.setting_words import allowed_words
from ui.settings_port import SettingName, SettingsPort, SettingValue
from ui.switch import Switch
from ui.tasks import Tasks
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_EDGE = 18
_FIELD_WIDTH = 96
_CHOICE_WIDTH = 160
_LONGEST = 400
_NUMBER_DIGITS = 12


class SettingRow(QWidget):
    """``below``: the control takes a line of its own whatever the room."""

    def __init__(
        self, label: str, hint: str = "", control: QWidget | None = None, *, below: bool = False
    ) -> None:
        super().__init__()
        self.control = control
        self._below = below
        self._narrow = False
        self.is_first = True
        self.label = Text(label, face="body", wrap=True)
        self.hint = Text(hint, face="caption", colour="ink3", wrap=True)
        if not hint:  # To show what lies nowhere yet would open a window.
            self.hint.hide()
        self.problem = problem_line()
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self.label)
        words.addWidget(self.hint)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._line.addLayout(words, 1)
        if control is not None:
            self._line.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
            self.label.setBuddy(control)
            control.setAccessibleName(label)
            control.setAccessibleDescription(hint)
        self._whole = QVBoxLayout(self)
        self._whole.addLayout(self._line)
        self._whole.addWidget(self.problem)
        theme_changed.connect(self._dress)
        self._dress()
        self.set_narrow(False)

    # --- looking for it ---------------------------------------------------------------------------

    def searchable(self) -> str:
        return f"{self.label.text()} {self.hint.text()}"

    def matches(self, words: Sequence[str]) -> bool:
        text = folded(self.searchable())
        return all(word in text for word in words)

    def show_hint(self, hint: str) -> None:
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        if self.control is not None:
            self.control.setAccessibleDescription(hint)

    # --- what is wrong ----------------------------------------------------------------------------

    def say(self, problem: str) -> None:
        """Beside the control, and to a screen reader; "" for nothing."""
        if problem == self.problem.text():
            return
        say_problem(self.problem, problem)
        if self.control is not None:
            described = " ".join(filter(None, (problem, self.hint.text())))
            self.control.setAccessibleDescription(described)
            if problem:
                event = QAccessibleAnnouncementEvent(self.control, problem)
                QAccessible.updateAccessibility(event)

    def refresh(self) -> None:
        """Show what counts."""

    # --- looks ------------------------------------------------------------------------------------

    def set_narrow(self, narrow: bool) -> None:
        """Little room: the control stands below the words."""
        self._narrow = narrow
        directions = QBoxLayout.Direction
        column = self._below or (narrow and not isinstance(self.control, Switch))
        self._line.setDirection(directions.TopToBottom if column else directions.LeftToRight)
        if self.control is None:
            return
        policy = self.control.sizePolicy().horizontalPolicy()
        fills = column and policy is not QSizePolicy.Policy.Fixed
        alignment = Qt.AlignmentFlag(0) if fills else Qt.AlignmentFlag.AlignVCenter
        if column and not fills:
            alignment = Qt.AlignmentFlag.AlignLeft
        self._line.setAlignment(self.control, alignment)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.is_first:
            painter = QPainter(self)
            painter.setPen(QPen(current_theme().line, 1))
            painter.drawLine(1, 0, self.width() - 2, 0)

    def _dress(self) -> None:
        gap = current_theme().metrics.gap
        self._whole.setContentsMargins(gap(_EDGE), gap(9), gap(16), gap(9))
        self._whole.setSpacing(gap(4))
        self._line.setSpacing(gap(12) if not self._below else gap(6))


class Bound(Struct, frozen=True):
    """What a row needs to be bound to a setting."""

    port: SettingsPort
    tasks: Tasks


class BoundRow(SettingRow):
    def __init__(  # noqa: PLR0913 - what a row is made of
        self,
        bound: Bound,
        name: SettingName,
        label: str,
        hint: str = "",
        control: QWidget | None = None,
        *,
        below: bool = False,
    ) -> None:
        self.name = name
        self._port = bound.port
        self._tasks = bound.tasks
        if not bound.port.counts_at_once(name):
            hint = " ".join(filter(None, (hint, tr("From the next start on."))))
        super().__init__(label, hint, control, below=below)

    def searchable(self) -> str:
        """Also by the key's name in the settings file."""
        return f"{super().searchable()} {self.name[1]}"

    def change(self, value: SettingValue) -> None:
        async def work() -> None:
            try:
                await self._port.change(self.name, value)
            except ChatError as error:
                self.refresh()
                self.say(refusal_words(error))
            else:
                self.refresh()
                self.say("")

        self._tasks.spawn(work, purpose=tr("change a setting"), retry=False)


def refusal_words(error: ChatError) -> str:
    """Beside the field its key needs no name."""
    is_wrong = isinstance(error, SettingsError) and error.flaw is SettingsFlaw.WRONG_VALUE
    if is_wrong and isinstance(error, SettingsError) and error.allowed is not None:
        return tr("Allowed: {allowed}.").format(allowed=allowed_words(error.allowed))
    return sentence(error_words(error))


class SwitchRow(BoundRow):
    def __init__(self, bound: Bound, name: SettingName, label: str, hint: str = "") -> None:
        self.switch = Switch(label)
        super().__init__(bound, name, label, hint, self.switch)
        self.switch.clicked.connect(self.wish)
        self.refresh()

    def wish(self, on: bool) -> None:
        self.change(on)

    def refresh(self) -> None:
        self.switch.setChecked(bool(self._port.value(self.name)))


class ChoiceRow(BoundRow):
    """``choices``: values of the setting and what they are called."""

    def __init__(
        self,
        bound: Bound,
        name: SettingName,
        label: str,
        choices: Sequence[tuple[SettingValue, str]],
        hint: str = "",
    ) -> None:
        self._choices = tuple(choices)
        self.choice = Choice()
        self.choice.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        super().__init__(bound, name, label, hint, self.choice)
        self.choice.activated.connect(self._chosen)
        self.refresh()

    def values(self) -> tuple[SettingValue, ...]:
        return tuple(value for value, _ in self._choices)

    def searchable(self) -> str:
        words = " ".join(words for _, words in self._choices)
        return f"{super().searchable()} {words}"

    def _chosen(self, number: int) -> None:
        value = self._offered()[number][0]
        if value != self._port.value(self.name):
            self.change(value)

    def _offered(self) -> tuple[tuple[SettingValue, str], ...]:
        return self._choices

    def refresh(self) -> None:
        offered = self._offered()
        words = [words for _, words in offered]
        if words != [self.choice.itemText(n) for n in range(self.choice.count())]:
            self.choice.clear()
            self.choice.addItems(words)
        value = self._port.value(self.name)
        places = [number for number, (each, _) in enumerate(offered) if each == value]
        self.choice.setCurrentIndex(places[0] if places else -1)

    def _dress(self) -> None:
        super()._dress()
        self.choice.setMinimumWidth(current_theme().metrics.scaled(_CHOICE_WIDTH))


class PercentRow(ChoiceRow):
    """Steps of a percentage; one that somebody wrote into the file is offered, too."""

    def _offered(self) -> tuple[tuple[SettingValue, str], ...]:
        value = self._port.value(self.name)
        if not isinstance(value, int) or value in self.values():
            return self._choices
        odd = (value, tr("{percent} %").format(percent=value))
        return tuple(sorted((*self._choices, odd), key=lambda pair: int(str(pair[0]))))


class FieldRow(BoundRow):
    """One line of text, judged while one types and taken by Enter or when one goes on."""

    def __init__(  # noqa: PLR0913 - what a row is made of
        self,
        bound: Bound,
        name: SettingName,
        label: str,
        hint: str = "",
        *,
        placeholder: str = "",
        below: bool = True,
    ) -> None:
        self.field = _Field(self._give_up)
        self.field.setMaxLength(_LONGEST)
        self.field.setPlaceholderText(placeholder)
        super().__init__(bound, name, label, hint, self.field, below=below)
        self.field.textEdited.connect(self._judge)
        self.field.editingFinished.connect(self._take)
        self.refresh()

    def entered(self) -> SettingValue:
        return self.field.text().strip()

    def _judge(self) -> None:
        problem = self._port.problem(self.name, self.entered())
        self.say("" if problem is None else refusal_words(problem))

    def _take(self) -> None:
        value = self.entered()
        if value != self._port.value(self.name) and self._port.problem(self.name, value) is None:
            self.change(value)

    def _give_up(self) -> bool:
        """Whether there was something to put back."""
        before = self.field.text()
        self.refresh()
        return self.field.text() != before

    def refresh(self) -> None:
        self.field.setText(str(self._port.value(self.name)))
        self.say("")


class NumberRow(FieldRow):
    def __init__(
        self, bound: Bound, name: SettingName, label: str, hint: str = "", unit: str = ""
    ) -> None:
        super().__init__(bound, name, label, hint, below=False)
        self.field.setMaxLength(_NUMBER_DIGITS)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        if unit:
            self._line.removeWidget(self.field)
            beside = QHBoxLayout()
            beside.addWidget(self.field)
            beside.addWidget(Text(unit, face="label", colour="ink2"))
            beside.addStretch()
            self._line.addLayout(beside)
        self._dress()

    def entered(self) -> SettingValue:
        text = self.field.text().strip()
        return int(text) if text.isdecimal() else text

    def _dress(self) -> None:
        super()._dress()
        self.field.setFixedWidth(current_theme().metrics.scaled(_FIELD_WIDTH))


class LinesRow(BoundRow):
    """Several lines, each an address; taken by a button that appears once there is a change."""

    def __init__(
        self, bound: Bound, name: SettingName, label: str, hint: str = "", placeholder: str = ""
    ) -> None:
        self.field = LinesField(lines=3)
        self.field.setPlaceholderText(placeholder)
        super().__init__(bound, name, label, hint, self.field, below=True)
        self.take = Button(tr("Apply"), kind="primary", size="small")
        self.take.setAccessibleName(tr("Apply: {what}").format(what=label))
        self.give_up = Button(tr("Undo"), kind="ghost", size="small")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.give_up)
        buttons.addWidget(self.take)
        self._whole.addLayout(buttons)
        self.field.textChanged.connect(self._judge)
        self.take.clicked.connect(lambda: self.change(self.entered()))
        self.give_up.clicked.connect(self.refresh)
        self.refresh()

    def entered(self) -> tuple[str, ...]:
        lines = (line.strip() for line in self.field.toPlainText().splitlines())
        return tuple(line for line in lines if line)

    def _judge(self) -> None:
        problem = self._port.problem(self.name, self.entered())
        self.say("" if problem is None else refusal_words(problem))
        changed = self.entered() != self._port.value(self.name)
        self.take.setVisible(changed)
        self.give_up.setVisible(changed)
        self.take.setEnabled(problem is None)

    def refresh(self) -> None:
        value = self._port.value(self.name)
        text = "\n".join(value) if isinstance(value, tuple) else str(value)
        if text != self.field.toPlainText():
            self.field.setPlainText(text)
        self._judge()


class ActionRow(SettingRow):
    """Words, and a button that leads somewhere."""

    def __init__(self, label: str, hint: str, button: Button, run: Callable[[], None]) -> None:
        super().__init__(label, hint, button)
        self.button = button
        button.setAccessibleName(button.text().strip())
        button.clicked.connect(lambda _checked=False: run())


class OnOffRow(SettingRow):
    """A switch that is no setting of the file; ``turn`` says whether it could be done."""

    def __init__(
        self, label: str, hint: str, is_on: Callable[[], bool], turn: Callable[[bool], None]
    ) -> None:
        self.switch = Switch(label)
        super().__init__(label, hint, self.switch)
        self._is_on = is_on
        self._turn = turn
        self.switch.clicked.connect(self._wish)
        self.refresh()

    def _wish(self, on: bool) -> None:
        try:
            self._turn(on)
        except ConfigError as error:
            self.say(sentence(error_words(error)))
        else:
            self.say("")
        self.refresh()

    def refresh(self) -> None:
        self.switch.setChecked(self._is_on())


class _Field(QLineEdit):
    """Escape puts back what counts; only then does it go on to the page."""

    def __init__(self, give_up: Callable[[], bool]) -> None:
        super().__init__()
        self._give_up = give_up

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Escape or not self._give_up():
            super().keyPressEvent(event)
