"""The window's menu and its keys.  Every action has a shortcut or stands in this menu, or both."""

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QWidget

from ui.controls import plain_tip
from ui.desktop.autostart import AutostartPort
from ui.dialogs.recording import RecordingKey, recording_confirm
from ui.icons import icon
from ui.menu import Menu
from ui.settings import PICTURES_BELOW_MB, Appearance, CloseToTray, UiSettings
from ui.theme import current_theme, theme_changed
from ui.translate import tr
from ui.window.desktop import Desktop
from ui.window.looks import Looks


def _appearances() -> tuple[tuple[Appearance, str], ...]:
    return (
        (Appearance.SYSTEM, tr("As the desktop")),
        (Appearance.LIGHT, tr("Light")),
        (Appearance.DARK, tr("Dark")),
        (Appearance.HIGH_CONTRAST, tr("High contrast")),
    )


class WindowMenu(Menu):
    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._icons: dict[QAction, str] = {}
        self.setAccessibleName(tr("Menu"))
        self.setToolTipsVisible(True)
        theme_changed.connect(self._dress)

    def add(
        self, text: str, keys: tuple[str, ...], run: Callable[[], None], *, icon_name: str = ""
    ) -> QAction:
        action = self.addAction(text)
        self.bind(action, keys, run)
        if icon_name:
            self._icons[action] = icon_name
            self._dress()
        return action

    def add_hidden(self, text: str, keys: tuple[str, ...], run: Callable[[], None]) -> QAction:
        """A key without a line in the menu."""
        action = QAction(text, self._window)
        self.bind(action, keys, run)
        return action

    def bind(self, action: QAction, keys: tuple[str, ...], run: Callable[[], None]) -> None:
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.triggered.connect(lambda _checked=False: run())
        self._window.addAction(action)

    def add_looks(self, settings: UiSettings, looks: Looks) -> None:
        self.add_appearance(settings, looks.choose)
        self.add_text_size(looks.step_text_size)
        self.add_privacy(settings, looks)
        self.add_pictures(settings, looks)
        self.add_recording(settings, looks)

    def add_appearance(self, settings: UiSettings, chosen: Callable[[Appearance], None]) -> None:
        menu = self.submenu(tr("Appearance"))
        self._icons[menu.menuAction()] = "contrast"
        group = QActionGroup(menu)
        for choice, words in _appearances():
            action = menu.addAction(words)
            action.setCheckable(True)
            action.setChecked(choice is settings.appearance)
            action.triggered.connect(_choosing(chosen, choice))
            group.addAction(action)
        self._dress()

    def add_text_size(self, step: Callable[[int], None]) -> None:
        menu = self.submenu(tr("Text size"))
        self._icons[menu.menuAction()] = "text-size"
        for words, keys, change in (
            (tr("Larger"), ("Ctrl++", "Ctrl+="), 1),
            (tr("Smaller"), ("Ctrl+-",), -1),
            (tr("Normal"), ("Ctrl+0",), 0),
        ):
            self.bind(menu.addAction(words), keys, partial(step, change))
        self._dress()

    def add_desktop(
        self, settings: UiSettings, desktop: Desktop, autostart: AutostartPort | None
    ) -> None:
        """Notifications, the tray, and the start with the session."""

        def notify(wanted: bool) -> None:
            settings.notifications = wanted
            if not wanted:
                desktop.notifications.withdraw_all()

        def preview(shown: bool) -> None:
            settings.show_message_text = shown
            if not shown:
                desktop.notifications.hide_texts()

        def keep_running(wanted: bool) -> None:
            settings.close_to_tray = CloseToTray.YES if wanted else CloseToTray.NO

        self.add_choice(tr("Notifications"), on=settings.notifications, changed=notify)
        self.add_choice(
            tr("Show text in notifications"), on=settings.show_message_text, changed=preview
        )
        quiet = desktop.add_quiet_menu(self)
        self._icons[quiet.menuAction()] = "bell-off"
        keeps = self.add_choice(
            tr("Keep running in the tray when closed"), on=False, changed=keep_running
        )
        keeps.setVisible(False)

        def show_choices() -> None:
            keeps.setVisible(desktop.tray is not None)
            keeps.setChecked(settings.close_to_tray is CloseToTray.YES)

        desktop.choices_changed.connect(show_choices)
        if autostart is not None:
            self._add_autostart(desktop, autostart)
        self._dress()

    def _add_autostart(self, desktop: Desktop, autostart: AutostartPort) -> None:
        def chosen(wanted: bool) -> None:
            if not desktop.switch_autostart(autostart, on=wanted):
                action.setChecked(autostart.is_on())

        action = self.addAction(tr("Start with the session"))
        action.setCheckable(True)
        action.setChecked(autostart.is_on())
        action.triggered.connect(chosen)

    def add_privacy(self, settings: UiSettings, looks: Looks) -> None:
        self.add_choice(
            tr("Tell others when I am typing"),
            on=settings.tell_typing,
            changed=looks.choose_typing,
        )
        self.add_choice(
            tr("Tell people when I am online"),
            on=settings.tell_presence,
            changed=looks.choose_presence,
            tip=tr(
                "What you write and acknowledge shows it all the same. Without it, what others"
                " sent while you were away may take longer to come."
            ),
        )

    def add_pictures(self, settings: UiSettings, looks: Looks) -> None:
        """Switched on again, the same bound holds as before."""
        most = settings.fetch_pictures_below_mb or PICTURES_BELOW_MB
        self.add_choice(
            tr("Fetch pictures below {size} MB by themselves").format(size=most),
            on=settings.fetch_pictures_below_mb > 0,
            changed=lambda wanted: looks.choose_pictures(most if wanted else 0),
            tip=tr("Whoever has them learns that you are there. Without it, a click fetches each."),
        )

    def add_recording(self, settings: UiSettings, looks: Looks) -> None:
        """Switched on only once it was said what that means."""
        action = self.addAction(tr("Record deliveries"))
        action.setCheckable(True)
        action.setChecked(settings.record_deliveries)

        def chosen(wanted: bool) -> None:
            if not wanted:
                looks.choose_recording(wanted=False)
                return
            action.setChecked(False)
            ask = recording_confirm(self._window)
            ask.accepted.connect(agreed)
            ask.open()

        def agreed() -> None:
            looks.choose_recording(wanted=True)
            action.setChecked(True)
            if looks.delivery_key:
                RecordingKey(looks.delivery_key, self._window).open()

        action.triggered.connect(chosen)

    def add_choice(
        self, text: str, *, on: bool, changed: Callable[[bool], None], tip: str = ""
    ) -> QAction:
        action = self.addAction(text)
        action.setToolTip(plain_tip(tip))
        action.setCheckable(True)
        action.setChecked(on)
        action.toggled.connect(changed)
        return action

    def _dress(self) -> None:
        theme = current_theme()
        for action, name in self._icons.items():
            action.setIcon(icon(name, theme.ink2, theme.metrics.scaled(16)))


def _choosing(chosen: Callable[[Appearance], None], choice: Appearance) -> Callable[[], None]:
    def run() -> None:
        chosen(choice)

    return run
