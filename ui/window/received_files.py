"""Files that came with messages: decoded for the timeline, shown large, kept where one wants."""

import asyncio
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QSize, QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import ChatEngine
from engine.core.errors import ChatError, StorageError, StorageFault
from engine.events import MessageView
from ui.attachments import decode_received, write_new
from ui.tasks import Tasks
from ui.timeline.file_box import FilePictures, is_picture
from ui.translate import tr

_LARGEST = QSize(4096, 4096)


class ReceivedFiles(QObject):
    def __init__(
        self, engine: ChatEngine, tasks: Tasks, pictures: FilePictures, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._pictures = pictures
        self._window = parent
        pictures.wanted.connect(self._decode)

    def _decode(self, message: MessageView, most: QSize) -> None:
        async def work() -> None:
            picture = None
            try:
                data = await self._data(message)
                picture = await asyncio.to_thread(decode_received, data, most)
            except ChatError:
                pass  # It went away meanwhile; the row says so by itself.
            self._pictures.give(message.message_id, picture)

        self._tasks.spawn(work, purpose=tr("show a picture"), retry=False)

    async def _data(self, message: MessageView) -> bytes:
        timeline = self._engine.timeline
        return await timeline.file_data(message.conversation_id, message.message_id)

    def open(self, message: MessageView) -> None:
        """A picture is shown large; anything else is kept, for nothing opens by itself."""
        if message.file is None:
            return
        if not is_picture(message.file):
            self.save(message)
            return
        from ui.dialogs.picture_viewer import PictureViewer  # noqa: PLC0415 - seldom wanted

        async def work() -> None:
            data = await self._data(message)
            image = await asyncio.to_thread(decode_received, data, _LARGEST)
            if image is not None:
                viewer = PictureViewer(image, message, self._window.window())
                viewer.save_requested.connect(partial(self.save, message))
                viewer.open()

        self._tasks.spawn(work, purpose=tr("show the picture"))

    def save(self, message: MessageView) -> None:
        """Ask where; the desktop's dialog asks about a file that is there."""
        if message.file is None:
            return
        place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
        dialog = QFileDialog(self._window, tr("Save as"), str(Path(place) / message.file.name))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(message.file.name)
        dialog.fileSelected.connect(lambda name: self.write(message, Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def write(self, message: MessageView, path: Path) -> None:
        async def work() -> None:
            data = await self._data(message)
            try:
                await asyncio.to_thread(write_new, path, data)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                fault = StorageFault.FILE_NOT_WRITTEN
                raise StorageError(reason, fault, reason) from error

        self._tasks.spawn(work, purpose=tr("save the file"))
