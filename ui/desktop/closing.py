"""What closing the window means: it goes to the tray, or the program ends, and that is said before.

With a tray the user is asked once, and the answer is a setting.  Without one it is said once that
nothing arrives any more.  Quitting by the menu asks nothing, and a session that ends is
not held up.
"""

from enum import Enum, auto

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from ui.dialogs.confirm import Confirm
from ui.settings import CloseToTray, UiSettings
from ui.translate import tr


class Closing(Enum):
    HIDE = auto()
    END = auto()
    ASK = auto()
    """Whether to keep running."""
    EXPLAIN = auto()


def what_closing_means(settings: UiSettings, *, has_tray: bool, explains: bool) -> Closing:
    if isinstance(app := QGuiApplication.instance(), QGuiApplication) and app.isSavingSession():
        return Closing.END
    if has_tray:
        match settings.close_to_tray:
            case CloseToTray.YES:
                return Closing.HIDE
            case CloseToTray.NO:
                return Closing.END
            case CloseToTray.ASK:
                return Closing.ASK
    if explains and settings.get("closing_explained") != "yes":
        return Closing.EXPLAIN
    return Closing.END


class KeepRunning(Confirm):
    """Accepted: keep running.  ``quit_chosen`` tells the other answer from none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Keep Causerie running?"),
            tr(
                "It can stay in the tray and tell you of messages. If it ends, nothing arrives on"
                " this device until you start it again. You can change this in the settings."
            ),
            yes=tr("Keep running"),
            parent=parent,
        )
        self.quit_chosen = False
        self.quit = self.add_button(tr("Quit"), left=True, kind="ghost")
        self.quit.clicked.connect(self._quit)

    def _quit(self) -> None:
        self.quit_chosen = True
        self.reject()


def closing_explained(parent: QWidget) -> Confirm:
    return Confirm(
        tr("Quit Causerie?"),
        tr(
            "This desktop has no tray, so closing the window ends the program. Nothing arrives on"
            " this device until you start it again; then it fetches what it missed."
        ),
        yes=tr("Quit"),
        parent=parent,
    )
