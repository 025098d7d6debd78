"""The menu of the button above the list: the ways to begin a conversation."""

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from ui.icons import icon
from ui.menu import Menu
from ui.theme import current_theme, theme_changed
from ui.translate import tr


class StartMenu(Menu):
    """The keys are bound by the window; here they are only shown."""

    def __init__(  # noqa: PLR0913 - keyword-only: one for each entry
        self,
        parent: QWidget,
        *,
        add_person: Callable[[], None],
        new_group: Callable[[], None],
        join: Callable[[], None],
        open_channel: Callable[[], None],
        key_channel: Callable[[], None],
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Start a conversation"))
        self._icons: list[str] = []
        for words, keys, icon_name, run in (
            (tr("Add a person"), "Ctrl+P", "person-add", add_person),
            (tr("New group"), "Ctrl+N", "people", new_group),
            (tr("Join with an invitation"), "Ctrl+J", "join", join),
            (tr("Open channel"), "Ctrl+O", "network", open_channel),
            (tr("Channel with a shared key"), "Ctrl+Shift+O", "key", key_channel),
        ):
            action = self.addAction(f"{words}\t{keys}")
            action.triggered.connect(_without_argument(run))
            self._icons.append(icon_name)
        theme_changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        theme = current_theme()
        for action, name in zip(self.actions(), self._icons, strict=True):
            action.setIcon(icon(name, theme.ink2, theme.metrics.scaled(16)))


def _without_argument(run: Callable[[], None]) -> Callable[[bool], None]:
    def start(_checked: bool = False) -> None:
        run()

    return start
