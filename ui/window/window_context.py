"""What the window needs from outside besides the engine and its settings."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from engine.core.errors import ConfigError, SettingsError
from ui.backup_port import BackupPort, DailyPort
from ui.desktop.autostart import AutostartPort
from ui.dialogs.profile import ChoosePicture, choose_picture_file
from ui.lock_port import PassphrasePort
from ui.recording_port import RecordingPort
from ui.report_port import ReportPort
from ui.screen import GrabScreens, grab_screens
from ui.settings_port import SettingsPort
from ui.space_port import SpacePort
from ui.update_port import UpdatePort


def _now() -> datetime:
    return datetime.now().astimezone()


async def _choose_folder(parent: QWidget) -> Path | None:
    from ui.dialogs.export import choose_folder  # noqa: PLC0415 - seldom wanted

    return await choose_folder(parent)


class WindowContext(Struct, frozen=True, kw_only=True):
    version: Callable[[], str] = lambda: "0"
    open_url: Callable[[QUrl], bool] = QDesktopServices.openUrl
    now: Callable[[], datetime] = _now
    choose_picture: ChoosePicture = choose_picture_file
    choose_folder: Callable[[QWidget], Awaitable[Path | None]] = _choose_folder
    grab_screens: GrabScreens = grab_screens
    settings_port: SettingsPort | None = None
    """None: the window has no settings page."""
    backups: BackupPort | None = None
    """None: the window offers to make none."""
    daily: DailyPort | None = None
    """None: no backups are made by themselves."""
    restore: Callable[[], None] | None = None
    """Called before the window closes to restore a backup; None: that is not offered."""
    restore_beside: Callable[[], None] | None = None
    """Likewise, by whoever forgot the passphrase of a locked window: this profile stays."""
    passphrase: PassphrasePort | None = None
    """None: the window has no passphrase, and is not locked."""
    space: SpacePort | None = None
    """None: the window does not offer to show where the space goes."""
    report: ReportPort | None = None
    """None: the window does not offer to report a problem."""
    recording: RecordingPort | None = None
    """None: the window neither shows nor exports what is recorded of deliveries."""
    updates: UpdatePort | None = None
    """None: this program does not know where releases are announced."""
    profile_name: str = ""
    erase: Callable[[], None] | None = None
    """Called before the window closes for the profile to be erased; None: that is not offered."""
    repair: Callable[[], None] | None = None
    """Called before the window closes for the database to be mended; None: not offered."""
    explains_closing: bool = False
    """Whether it is said, once, that closing the window ends the program."""
    autostart: AutostartPort | None = None
    """None: the window does not offer to start with the session."""
    store_problem: Callable[[str], ConfigError | None] = lambda _: None
    """Why a text is no address of a Store; None if it is one."""
    settings_file: str = ""
    settings_section: str = ""
    """Of the settings page, which is shown at the start; "" = it is not."""
    wrong_settings: tuple[SettingsError, ...] = ()
    """Lines of it that count as if they were not there."""
    earlier_profile: str = ""
    """The file in which a profile of a format that is not used any more is kept; "" = none is."""
