"""The desktop's own dialog for a file or a folder, as something to await, and where it begins.

The dialog may also go with its window, and then nothing was chosen.
"""

import asyncio
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog

from ui.settings import UiSettings

_Place = QStandardPaths.StandardLocation
_SENT_FROM = "sent_from"
_SAVED_TO = "saved_to"


class Folders:
    """Where dialogs for files begin: where one was last, or else in the usual place.

    A folder that is gone by now, or whose name was damaged, counts as not known.
    """

    def __init__(self, settings: UiSettings) -> None:
        self._settings = settings

    def to_send_from(self) -> Path:
        return self._known(_SENT_FROM) or usual_folder(_Place.DocumentsLocation)

    def to_save_in(self) -> Path:
        return self._known(_SAVED_TO) or usual_folder(_Place.DownloadLocation)

    def sent_from(self, file: Path) -> None:
        self._settings.put(_SENT_FROM, str(file.parent))

    def saved_to(self, file: Path) -> None:
        self._settings.put(_SAVED_TO, str(file.parent))

    def _known(self, key: str) -> Path | None:
        path = Path(self._settings.get(key) or "")
        return path if path.is_absolute() and _is_there(path) else None


def usual_folder(place: QStandardPaths.StandardLocation) -> Path:
    """The user's own folder for this, or else their home."""
    path = Path(QStandardPaths.writableLocation(place))
    return path if path.is_absolute() and _is_there(path) else Path.home()


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:  # It may not be looked at, or its name is too long for a file system.
        return False


async def chosen_path(dialog: QFileDialog) -> Path | None:
    """Open it; None if nothing was chosen."""
    answer: asyncio.Future[Path | None] = asyncio.get_running_loop().create_future()
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def settle(code: int) -> None:
        files = dialog.selectedFiles() if code == QFileDialog.DialogCode.Accepted.value else []
        if not answer.done():
            answer.set_result(Path(files[0]) if files else None)

    dialog.finished.connect(settle)
    dialog.destroyed.connect(lambda: settle(QFileDialog.DialogCode.Rejected.value))
    dialog.open()
    return await answer
