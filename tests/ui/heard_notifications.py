"""A desktop that writes down what it is asked to show, and says what its user does."""

from ui.desktop.port import DesktopNotification, Heard, NotificationAnswer
from ui.window.main_window import MainWindow


class HeardPort:
    """A ``NotificationPort``."""

    def __init__(self) -> None:
        self.shown: list[DesktopNotification] = []
        """Everything, updates too."""
        self.on_screen: dict[str, DesktopNotification] = {}
        self._heard: Heard = lambda _answer: None

    def listen(self, heard: Heard, /) -> None:
        self._heard = heard

    def show(self, notification: DesktopNotification, /) -> None:
        self.shown.append(notification)
        self.on_screen[notification.key] = notification

    def withdraw(self, key: str, /) -> None:
        self.on_screen.pop(key, None)

    def close(self) -> None:
        self.on_screen.clear()

    def do(self, answer: NotificationAnswer) -> None:
        self._heard(answer)

    def bodies(self) -> list[str]:
        return [notification.body for notification in self.shown]


def listen_to(window: MainWindow) -> HeardPort:
    port = HeardPort()
    window.desktop.begin(port)
    return port
