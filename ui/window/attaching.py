"""From a file, a drop or the clipboard to what goes out with the next message.

Reading and scaling happen off the loop.  What cannot be sent says why where one writes, and nothing
else changes.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from ui.attachments import Prepared, dropped_files, prepare_file, prepare_picture
from ui.pictures import PictureError
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.attachment_bar import AttachmentBar
from ui.window.composer import Composer


class Attaching(QObject):
    def __init__(
        self, tasks: Tasks, composer: Composer, bar: AttachmentBar, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._composer = composer
        self._bar = bar
        self._window = parent
        self._turn = 0
        self.file: Prepared | None = None
        """What goes out with the next message."""
        composer.attach_requested.connect(self.choose)
        composer.box.files_given.connect(self.take_mime)
        bar.removed.connect(self.clear)

    def clear(self) -> None:
        self._turn += 1
        self.show(None)

    def show(self, file: Prepared | None) -> None:
        self.file = file
        self._bar.show_file(file)
        self._composer.has_attachment(file is not None)
        if file is not None:
            self._composer.box.setFocus()

    def choose(self) -> None:
        """Ask for a file in the desktop's own way."""
        dialog = QFileDialog(self._window, tr("Choose a file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.take_file(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def take_mime(self, source: QMimeData) -> None:
        """Something pasted or dropped: a picture, or the first of some files."""
        files = dropped_files(source)
        image = source.imageData() if source.hasImage() else None
        if files:
            self.take_file(files[0])
        elif isinstance(image, QImage) and not image.isNull():
            self.take_image(image)

    def take_file(self, path: Path) -> None:
        self._prepare(lambda: prepare_file(path))

    def take_image(self, image: QImage) -> None:
        self._prepare(lambda: prepare_picture(image, tr("picture")))

    def _prepare(self, make: Callable[[], Prepared]) -> None:
        self._turn += 1
        turn = self._turn

        async def work() -> None:
            try:
                prepared = await asyncio.to_thread(make)
            except PictureError as problem:
                self._composer.complain(str(problem))
                return
            if turn == self._turn:
                self.show(prepared)

        self._tasks.spawn(work, purpose=tr("read the file"), retry=False)
