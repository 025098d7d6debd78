"""Attaches files, a drop or the clipboard to the next message.

Reading and scaling happen off the loop, one file after another, and the message waits for it.  What
cannot be sent says why where one writes, and nothing else changes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import MAX_LARGE_FILE_BYTES
from ui.attachments import (
    Prepared,
    dropped_files,
    forget_copy,
    prepare_file,
    prepare_original,
    prepare_picture,
)
from ui.file_choice import Folders
from ui.pictures import PictureError
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.attachment_bar import AttachmentBar
from ui.window.composer import Composer

MAX_TOGETHER = 10
_MOST_LOOKED_AT = 3 * MAX_TOGETHER
"""Of what is given at once: some may be refused."""
_MOST_SAID = 3
"""The others of a choice that are refused are counted."""


class Attaching(QObject):
    def __init__(
        self,
        tasks: Tasks,
        composer: Composer,
        bar: AttachmentBar,
        parent: QWidget,
        folders: Folders,
    ) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._composer = composer
        self._bar = bar
        self._window = parent
        self._folders = folders
        self._turn = 0
        self._reading = 0
        """How much of this turn is being read or written anew."""
        self.files: tuple[Prepared, ...] = ()
        """What goes out with the next message."""
        composer.attach_requested.connect(self.choose)
        composer.box.files_given.connect(self.take_mime)
        bar.removed.connect(self._remove)
        bar.original_wanted.connect(self._take_original)

    def put_aside(self) -> tuple[Prepared, ...]:
        """Nothing goes out for now; what is still being read is not attached any more."""
        self._turn += 1
        self._reading = 0
        self._composer.wait_for_files(waits=False, go_on=False)
        return self.take_all()

    def bring_back(self, files: Sequence[Prepared]) -> None:
        """What was put aside goes out with the next message, before what came meanwhile."""
        if files:
            self._show((*files, *self.files)[:MAX_TOGETHER], take_focus=False)

    def take_all(self) -> tuple[Prepared, ...]:
        """What goes out now."""
        files = self.files
        self._show(())
        return files

    def _show(self, files: Sequence[Prepared], *, take_focus: bool = True) -> None:
        self.files = tuple(files)
        self._bar.show_files(self.files)
        self._composer.has_attachment(bool(files))
        if files and take_focus:
            self._composer.box.setFocus()

    def add(self, file: Prepared) -> None:
        if len(self.files) < MAX_TOGETHER:
            self._show((*self.files, file))
        else:
            self._composer.complain(_too_many())

    def _remove(self, place: int) -> None:
        forget_copy(self.files[place])
        self._show([file for at, file in enumerate(self.files) if at != place])

    def _take_original(self, place: int, wanted: bool) -> None:
        """Send this picture in its original size, or made small again."""
        file = self.files[place]
        if not wanted:
            forget_copy(file)
            self._change(file, file.small or file)
            return

        async def read() -> bool:
            try:
                whole = await asyncio.to_thread(prepare_original, file)
            except PictureError as problem:
                self._composer.complain(str(problem))
                return False
            self._change(file, whole)
            return True

        self._read(read, tr("read the picture"))

    def _read(self, work: Callable[[], Awaitable[bool]], purpose: str) -> None:
        """The message waits for ``work``, and goes out by itself only if that returns True."""
        turn = self._turn
        self._reading += 1
        self._composer.wait_for_files(waits=True)

        async def whole() -> None:
            is_good = False
            try:
                is_good = await work()
            finally:
                if turn == self._turn:
                    self._reading -= 1
                    self._composer.wait_for_files(waits=self._reading > 0, go_on=is_good)

        self._tasks.spawn(whole, purpose=purpose, retry=False)

    def _change(self, before: Prepared, after: Prepared) -> None:
        """Unless it was sent or removed meanwhile."""
        if any(file is before for file in self.files):
            self._show([after if file is before else file for file in self.files])
        elif after is not before:
            forget_copy(after)

    def choose(self) -> None:
        """Ask for files in the desktop's own way."""
        begin = str(self._folders.to_send_from())
        dialog = QFileDialog(self._window, tr("Choose files"), begin)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda names: self._chosen(list(map(Path, names))))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _chosen(self, paths: Sequence[Path]) -> None:
        for path in paths[:1]:
            self._folders.sent_from(path)
        self.take_files(paths)

    def take_mime(self, source: QMimeData) -> None:
        """Something pasted or dropped: a picture, or files."""
        files = dropped_files(source)
        image = source.imageData() if source.hasImage() else None
        if files:
            self.take_files(files)
        elif isinstance(image, QImage) and not image.isNull():
            self.take_image(image)

    def take_files(self, paths: Sequence[Path]) -> None:
        self._prepare([partial(prepare_file, path, most=MAX_LARGE_FILE_BYTES) for path in paths])

    def take_image(self, image: QImage) -> None:
        self._prepare([lambda: prepare_picture(image, tr("picture"))])

    def _prepare(self, makes: Sequence[Callable[[], Prepared]]) -> None:
        turn = self._turn

        async def read() -> bool:
            refused: list[str] = []
            more = ""
            for number, make in enumerate(makes):
                if turn != self._turn:
                    break
                if len(self.files) == MAX_TOGETHER or number == _MOST_LOOKED_AT:
                    more = _too_many()
                    break
                try:
                    prepared = await asyncio.to_thread(make)
                except PictureError as problem:
                    refused.append(str(problem))
                else:
                    if turn == self._turn:
                        self.add(prepared)
                    else:
                        forget_copy(prepared)
            if turn == self._turn and (refused or more):
                # At the end: what is attached takes away what was said before.
                self._composer.complain(_refusal(refused, more))
            return not refused and not more

        self._read(read, tr("read the file"))


def _refusal(refused: Sequence[str], more: str) -> str:
    """Of each file that is refused why, or how many others there are; ``more``: of what is left."""
    said, others = [*refused[:_MOST_SAID]], len(refused) - _MOST_SAID
    if others > 0:
        said.append(tr("%n more cannot be sent.", "One more cannot be sent.", others))
    return " ".join(words for words in (*said, more) if words)


def _too_many() -> str:
    return tr("At most {most} files go out at once.").format(most=MAX_TOGETHER)
