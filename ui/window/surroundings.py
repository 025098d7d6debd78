"""What the window needs from outside besides the engine and its settings."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from ui.dialogs.profile import ChoosePicture, choose_picture_file


def _now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    version: str = "0"
    open_url: Callable[[QUrl], bool] = QDesktopServices.openUrl
    now: Callable[[], datetime] = _now
    choose_picture: ChoosePicture = choose_picture_file
