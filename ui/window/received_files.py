"""Received files: decodes them for the timeline, shows them large, saves them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import ChatEngine
from engine.core.errors import ChatError
from engine.events import MessageView
from engine.file_views import FileState
from ui.attachments import decode_received, moves
from ui.file_choice import Folders
from ui.file_words import is_here, is_picture
from ui.tasks import Tasks
from ui.timeline.buttons import RowButton
from ui.timeline.file_pictures import FilePictures
from ui.translate import tr

if TYPE_CHECKING:
    from ui.dialogs.picture_viewer import PictureViewer

_LARGEST = QSize(4096, 4096)


class ReceivedFiles(QObject):
    open_requested = Signal(MessageView)
    """Its file is to be opened by another program."""
    saved = Signal(str)
    """Where the user wanted it."""

    def __init__(  # noqa: PLR0913 - what files are read, shown and kept with
        self,
        engine: ChatEngine,
        tasks: Tasks,
        pictures: Sequence[FilePictures],
        parent: QWidget,
        *,
        folders: Folders,
        loaded: Callable[[], Sequence[MessageView]],
    ) -> None:
        """``pictures``: those that one looks at first, and others that are to be decoded.

        ``loaded``: the messages of the open conversation, among which one looks at pictures.
        """
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._pictures = pictures[0]
        self._window = parent
        self._folders = folders
        self._loaded = loaded
        self._viewer: PictureViewer | None = None
        self._wanted: MessageView | None = None
        """The picture that is to be seen in the viewer, once it is decoded."""
        for wanting in pictures:
            wanting.wanted.connect(partial(self._decode, wanting))

    def _decode(self, pictures: FilePictures, message: MessageView, most: QSize) -> None:
        async def work() -> None:
            picture = None
            try:
                data = await self._shown_data(message)
                picture = await asyncio.to_thread(decode_received, data, most)
            except ChatError:
                pass  # It went away meanwhile; the row says so by itself.
            pictures.give(message, picture)

        self._tasks.spawn(work, purpose=tr("show a picture"), retry=False)

    async def _shown_data(self, message: MessageView) -> bytes:
        """Of its thumbnail while there is no more."""
        file = message.file
        return await self._data(message) if file is None or is_here(file) else file.thumbnail

    async def _data(self, message: MessageView) -> bytes:
        conversation_id, message_id = message.conversation_id, message.message_id
        if message.file is not None and message.file.state is not FileState.INLINE:
            return await self._engine.files.read(conversation_id, message_id)
        return await self._engine.timeline.file_data(conversation_id, message_id)

    # --- looking at pictures ----------------------------------------------------------------------

    def open(self, message: MessageView) -> None:
        """What a click on it does: fetch it, show a picture large, open anything else."""
        file = message.file
        if file is None:
            return
        if not is_here(file):
            self._get(message)
        elif is_picture(file) and not self._pictures.is_broken(message):
            self._show_large(message)
        else:
            self.open_requested.emit(message)

    def _get(self, message: MessageView) -> None:
        resting = {FileState.OFFERED, FileState.PAUSED, FileState.FAILED}
        if message.file is not None and message.file.state in resting:
            self.act(message, RowButton.FILE_FETCH)

    def act(self, message: MessageView, button: RowButton) -> None:
        """What a button or an entry of the menu says, about a file."""
        match button:
            case RowButton.FILE_SAVE:
                self.save(message)
                return
            case RowButton.FILE_OPEN:
                self.open_requested.emit(message)
                return
            case RowButton.FILE_PAUSE:
                command, purpose = self._engine.files.pause, tr("pause the file")
            case RowButton.FILE_CANCEL:
                command, purpose = self._engine.files.cancel, tr("cancel the file")
            case _:
                command, purpose = self._engine.files.fetch, tr("fetch the file")

        async def work() -> None:
            await command(message.conversation_id, message.message_id)

        self._tasks.spawn(work, purpose=purpose)

    def _show_large(self, message: MessageView, within: QWidget | None = None) -> None:
        """``within``: the viewer in which it follows another; nothing if that is closed by then."""
        self._wanted = message

        async def work() -> None:
            data = await self._data(message)
            image, plays = await asyncio.to_thread(_large, data)
            if image is None or not self._window.isVisible():
                return  # The window may have been locked meanwhile.
            if self._wanted is not message or (within is not None and self._viewer is not within):
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
        self._viewer = self._wanted = None

    def _step(self, step: int) -> None:
        """From the one that is wanted: keys may come faster than pictures are decoded."""
        current = self._wanted
        if self._viewer is None or current is None:
            return
        shown = self._shown_pictures()
        at = next((i for i, one in enumerate(shown) if _is(one, current)), None)
        if at is not None and 0 <= at + step < len(shown):
            self._show_large(shown[at + step], self._viewer)

    def _shown_pictures(self) -> list[MessageView]:
        return [
            message
            for message in self._loaded()
            if message.file is not None
            and is_picture(message.file)
            and is_here(message.file)
            and not self._pictures.is_broken(message)
        ]

    # --- keeping ----------------------------------------------------------------------------------

    def save(self, message: MessageView) -> None:
        """Ask where; the desktop's dialog asks about a file that is there."""
        if message.file is None:
            return
        place = self._folders.to_save_in() / message.file.name
        dialog = QFileDialog(self._window, tr("Save as"), str(place))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(message.file.name)
        dialog.fileSelected.connect(lambda name: self._save_in(message, Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _save_in(self, message: MessageView, path: Path) -> None:
        self._folders.saved_to(path)
        self.write(message, path)

    def write(self, message: MessageView, path: Path) -> None:
        async def work() -> None:
            await self._engine.files.save_as(message.conversation_id, message.message_id, str(path))
            self.saved.emit(str(path))

        self._tasks.spawn(work, purpose=tr("save the file"))


def _large(data: bytes) -> tuple[QImage | None, bool]:
    """The picture, and whether it moves.  Slow: call it off the loop."""
    return decode_received(data, _LARGEST), moves(data)


def _is(one: MessageView, other: MessageView) -> bool:
    return one.message_id == other.message_id
