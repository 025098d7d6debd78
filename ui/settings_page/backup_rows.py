"""The rows about backups: the one by hand, and the one that is made every day by itself."""

from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QWidget

from ui.backup_port import BackupActs, DailyBackups, DailyPort, DailyState
from ui.backup_words import last_words
from ui.controls import Button
from ui.error_words import error_words
from ui.foreign_text import breaking
from ui.problem_words import sentence
from ui.settings_page.rows import ActionRow, SettingRow
from ui.translate import tr


class BackupRow(ActionRow):
    """By hand, and when there was one last."""

    def __init__(self, acts: BackupActs) -> None:
        self._daily = acts.daily
        super().__init__(tr("Backup"), "", Button(tr("Back up…")), acts.by_hand)
        self.refresh()

    def refresh(self) -> None:
        words = tr("One encrypted file with your identity, messages, files and settings.")
        if self._daily is not None:
            words = f"{words} {last_words(self._daily.view())}"
        self.show_hint(words)


class DailyRow(SettingRow):
    def __init__(self, acts: BackupActs, port: DailyPort) -> None:
        self._port = port
        self.set_up = Button(tr("Set up…"))
        self.again = Button(tr("Try again"))
        self.off = Button(tr("Turn off"), kind="ghost")
        buttons = QWidget()
        self._buttons = QHBoxLayout(buttons)
        self._buttons.setContentsMargins(0, 0, 0, 0)
        for button in (self.off, self.again, self.set_up):
            self._buttons.addWidget(button)
        buttons.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        super().__init__(tr("Every day"), " ", buttons)
        buttons.setAccessibleName("")
        self.set_up.clicked.connect(lambda _checked=False: acts.set_up())
        self.off.clicked.connect(lambda _checked=False: acts.turn_off())
        self.again.clicked.connect(lambda _checked=False: port.try_again())
        self.refresh()

    def set_narrow(self, narrow: bool) -> None:
        """A button without a frame is not the one that stands at the edge of the words."""
        super().set_narrow(narrow)
        directions = QBoxLayout.Direction
        self._buttons.setDirection(directions.RightToLeft if narrow else directions.LeftToRight)

    def refresh(self) -> None:
        view = self._port.view()
        is_off = view.state is DailyState.OFF
        self.show_hint(daily_words(view))
        self.say("" if view.problem is None else sentence(error_words(view.problem)))
        needs = view.state is DailyState.NEEDS_PASSPHRASE
        self.set_up.rename(
            tr("Set up…") if is_off else tr("Enter the passphrase…") if needs else tr("Change…")
        )
        self.set_up.setAccessibleName(tr("Daily backups: set up"))
        self.off.setAccessibleName(tr("Daily backups: turn off"))
        self.off.setVisible(not is_off)
        self.again.setVisible(view.state is DailyState.FAILED)


def daily_words(view: DailyBackups) -> str:
    folder = breaking(view.folder)
    match view.state:
        case DailyState.OFF:
            return tr(
                "Off. A backup a day into a folder of your choice, the oldest deleted by itself."
            )
        case DailyState.NEEDS_PASSPHRASE:
            return tr("Into {folder}, once you give a passphrase on this device.").format(
                folder=folder
            )
        case DailyState.WORKING:
            words = tr("One is being made in {folder}: {percent} %")
            return words.format(folder=folder, percent=int(view.share * 100))
        case DailyState.ON | DailyState.FAILED:
            words = tr(
                "Into {folder}. %n are kept there.", "Into {folder}. %n is kept there.", view.kept
            )
            return words.format(folder=folder)
