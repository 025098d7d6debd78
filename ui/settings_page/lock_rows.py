"""Rows about the passphrase and the lock, in the section about privacy."""

from collections.abc import Callable, Iterator

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from ui.controls import Button
from ui.lock_port import KeyWaysView
from ui.settings_page.rows import Bound, ChoiceRow, SettingRow, SwitchRow
from ui.translate import tr
from ui.window.lock_flows import LockFlows

_MINUTES = (5, 15, 60)


def lock_rows(bound: Bound, flows: LockFlows, *, told_by_screen: bool) -> Iterator[SettingRow]:
    """``told_by_screen``: whether this desktop can tell that its screen is locked."""
    yield PassphraseRow(flows)
    after = [("off", tr("Never"))]
    after += [
        (f"{minutes}", tr("After %n minutes", "After %n minute", minutes)) for minutes in _MINUTES
    ]
    yield ChoiceRow(
        bound,
        ("privacy", "lock_after"),
        tr("Lock when unused"),
        after,
        tr("No key and no mouse in this window. Needs a passphrase."),
    )
    if told_by_screen:
        yield SwitchRow(
            bound,
            ("privacy", "lock_with_screen"),
            tr("Lock with the screen"),
            tr("When the desktop locks its own. Needs a passphrase."),
        )


class PassphraseRow(SettingRow):
    """What opens the messages, and buttons to change that."""

    def __init__(self, flows: LockFlows) -> None:
        self._lock = flows.lock
        buttons = QWidget()
        buttons.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        line = QHBoxLayout(buttons)
        line.setContentsMargins(0, 0, 0, 0)
        self.remove = Button(tr("Remove…"), kind="ghost")
        self.set = Button(tr("Set…"))
        line.addWidget(self.remove)
        line.addWidget(self.set)
        super().__init__(tr("Passphrase"), " ", buttons)
        self.label.setBuddy(self.set)
        buttons.setAccessibleName("")
        self.set.clicked.connect(_called(flows.set_passphrase))
        self.remove.clicked.connect(_called(flows.remove_passphrase))
        self._lock.ways_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        ways = self._lock.ways
        has_one = ways.has_passphrase
        self.remove.setVisible(has_one)
        self.set.rename(tr("Change…") if has_one else tr("Set…"))
        self.set.setAccessibleName(
            tr("Change the passphrase") if has_one else tr("Set a passphrase")
        )
        self.remove.setAccessibleName(tr("Remove the passphrase"))
        self.show_hint(_words(ways))
        self.set.setAccessibleDescription(self.hint.text())


def _called(run: Callable[[], None]) -> Callable[[bool], None]:
    return lambda _checked: run()


def _words(ways: KeyWaysView) -> str:
    if not ways.has_passphrase:
        return tr("Locks the window, and protects your messages if this device is lost.")
    if not ways.place:
        return tr("Asked at every start, and when the window is locked.")
    if ways.place == "key file":
        return tr("Asked when the window is locked; the key file opens the profile at a start.")
    return tr("Asked when the window is locked; the system keyring opens the profile at a start.")
