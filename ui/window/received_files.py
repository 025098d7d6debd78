"""Files that came with messages: decoded for the timeline, shown large, kept where one wants."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, QStandardPaths
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import ChatEngine
from engine.core.errors import ChatError, StorageError, StorageFault
from engine.events import MessageView
from ui.attachments import decode_received, moves, write_new
from ui.file_words import is_picture
from ui.tasks import Tasks
from ui.timeline.file_box import FilePictures
from ui.translate import tr

if TYPE_CHECKING:
    from ui.dialogs.picture_viewer import PictureViewer

_LARGEST = QSize(4096, 4096)


class ReceivedFiles(QObject):
    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        pictures: FilePictures,
        parent: QWidget,
        *,
        loaded: Callable[[], Sequence[MessageView]],
    ) -> None:
        """``loaded``: the messages of the open conversation, among which one looks at pictures."""
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._pictures = pictures
        self._window = parent
        self._loaded = loaded
        self._viewer: PictureViewer | None = None
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

    # --- looking at pictures ----------------------------------------------------------------------

    def open(self, message: MessageView) -> None:
        """A picture is shown large; anything else is kept, for nothing opens by itself."""
        if message.file is None:
            return
        if is_picture(message.file):
            self._show_large(message)
        else:
            self.save(message)

    def _show_large(self, message: MessageView) -> None:
        async def work() -> None:
            data = await self._data(message)
            image, plays = await asyncio.to_thread(_large, data)
            if image is None:
                return
            viewer = self._open_viewer()
            shown = self._shown_pictures()
            at = next((i for i, one in enumerate(shown) if _is(one, message)), 0)
            viewer.show_picture(
                message, image, data if plays else b"", before=at > 0, after=at < len(shown) - 1
            )

        self._tasks.spawn(work, purpose=tr("show the picture"))

    def _open_viewer(self) -> "PictureViewer":
        if self._viewer is None:
            from ui.dialogs.picture_viewer import PictureViewer  # noqa: PLC0415 - seldom wanted

            viewer = PictureViewer(self._window.window())
            viewer.save_requested.connect(self.save)
            viewer.stepped.connect(self._step)
            viewer.finished.connect(self._viewer_closed)
            viewer.open()
            self._viewer = viewer
        return self._viewer

    def _viewer_closed(self) -> None:
        self._viewer = None

    def _step(self, step: int) -> None:
        current = None if self._viewer is None else self._viewer.message
        if current is None:
            return
        shown = self._shown_pictures()
        at = next((i for i, one in enumerate(shown) if _is(one, current)), None)
        if at is not None and 0 <= at + step < len(shown):
            self._show_large(shown[at + step])

    def _shown_pictures(self) -> list[MessageView]:
        return [
            message
            for message in self._loaded()
            if message.file is not None
            and is_picture(message.file)
            and not self._pictures.is_broken(message.message_id)
        ]

    # --- keeping ----------------------------------------------------------------------------------

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


def _large(data: bytes) -> tuple[QImage | None, bool]:
    """The picture, and whether it moves.  Slow: call it off the loop."""
    return decode_received(data, _LARGEST), moves(data)


def _is(one: MessageView, other: MessageView) -> bool:
    return one.message_id == other.message_id
