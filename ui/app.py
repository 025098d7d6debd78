"""Builds the window for an engine.  Makes no event loop and starts no engine: that is not its job.

The caller runs both on one loop, shows the window, and awaits ``MainWindow.start()``; after
``closed`` it awaits ``MainWindow.shutdown()``.
"""

from typing import TYPE_CHECKING

from engine.api import ChatEngine
from ui.backup_port import RestorePort
from ui.carrying_over import CarryingOverWindow
from ui.failed_start import FailedStart, FailedStartWindow
from ui.languages import speak
from ui.lock_port import UnlockPort
from ui.settings import UiSettings
from ui.tasks import Tasks
from ui.window.looks import Looks
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.restoring import RestoreWindow
    from ui.unlocking import UnlockWindow


def build_window(
    engine: ChatEngine, settings: UiSettings, surroundings: WindowContext | None = None
) -> MainWindow:
    """Must be called after a QApplication exists.  The window is not shown yet."""
    speak(settings.language)
    Looks(settings).apply()
    return MainWindow(engine, settings, surroundings or WindowContext())


def build_failed_start(failed: FailedStart) -> FailedStartWindow:
    """Likewise, and without settings: they may be what is wrong."""
    speak(UiSettings().language)
    Looks(UiSettings()).apply()
    return FailedStartWindow(failed)


def build_carrying_over(settings: UiSettings, *, is_salvage: bool = False) -> CarryingOverWindow:
    """Likewise; it needs no engine."""
    speak(settings.language)
    Looks(settings).apply()
    return CarryingOverWindow(is_salvage=is_salvage)


def build_unlocking(
    port: UnlockPort, tasks: Tasks, settings: UiSettings, *, profile: str, reason: str = ""
) -> "UnlockWindow":
    """Likewise; it needs no engine."""
    speak(settings.language)
    Looks(settings).apply()
    from ui.unlocking import UnlockWindow  # noqa: PLC0415 - only where a passphrase is asked for

    return UnlockWindow(port, tasks, profile=profile, reason=reason)


def build_restoring(port: RestorePort, tasks: Tasks) -> "RestoreWindow":
    """Likewise, and without settings: those of the backup are not here yet."""
    speak(UiSettings().language)
    Looks(UiSettings()).apply()
    from ui.restoring import RestoreWindow  # noqa: PLC0415 - seldom wanted, so not at the start

    return RestoreWindow(port, tasks)
