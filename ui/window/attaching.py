"""Attaches files, a drop or the clipboard to the next message.

Reading and scaling happen off the loop, one file after another, and the message waits for it.  What
cannot be sent says why where one writes, and nothing else changes.  Whoever goes to another
conversation meanwhile finds the files, or why there are none, on coming back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from PySide6.QtCore import QMimeData, QObject, QTimer
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
from ui.window.attachment_bar import AttachmentBar, Coming
from ui.window.composer import Composer

MAX_TOGETHER = 10
_MOST_LOOKED_AT = 3 * MAX_TOGETHER
"""Of what is given at once: some may be refused."""
_SHOWN_AFTER_MS = 150
_MOST_SAID = 3
"""The others of a choice that are refused are counted."""


class Pile:
    """What is to go out with one message: files, and those that are still being read for it."""

    def __init__(self) -> None:
        self.files: tuple[Prepared, ...] = ()
        self.readings: list[Reading] = []
        self.refusal = ""
        """What has to be said where it is to go out."""
        self._is_dropped = False

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.readings or self.refusal)

    @property
    def takes_more(self) -> bool:
        return not self._is_dropped and len(self.files) < MAX_TOGETHER

    def add(self, file: Prepared) -> None:
        """Nothing if there are enough already, or nothing is to go out any more."""
        if self.takes_more:
            self.files = (*self.files, file)
        else:
            forget_copy(file)

    def change(self, before: Prepared, after: Prepared) -> None:
        """Unless it was sent or removed meanwhile."""
        if any(file is before for file in self.files):
            self.files = tuple(after if file is before else file for file in self.files)
        elif after is not before:
            forget_copy(after)

    def take_over(self, other: Self) -> None:
        """What was put aside stands before what came meanwhile."""
        whole = (*other.files, *self.files)
        for file in whole[MAX_TOGETHER:]:
            forget_copy(file)
        self.files = whole[:MAX_TOGETHER]
        self.readings += other.readings
        for reading in other.readings:
            reading.pile = self
        self.refusal = other.refusal or self.refusal

    def drop(self) -> None:
        """Nothing of it goes out, nor of what is still being read for it."""
        for file in self.files:
            forget_copy(file)
        self.files, self._is_dropped = (), True


class Reading:
    """Something that is being read or written anew, and what it is for."""

    def __init__(self, pile: Pile, names: Sequence[str] = ()) -> None:
        self.pile = pile
        self.names = tuple(names)
        """Of the files that it still reads."""


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
        self._pile = Pile()
        """What goes out with the next message."""
        self._slow = QTimer(self, singleShot=True, interval=_SHOWN_AFTER_MS)
        """Until it is over, what is being read or sent is not shown: it may be done at once."""
        self._slow.timeout.connect(self._show_bar)
        self._leaving: tuple[str, ...] = ()
        """The names of files that were sent, and have no row yet."""
        composer.attach_requested.connect(self.choose)
        composer.box.files_given.connect(self.take_mime)
        bar.removed.connect(self._remove)
        bar.original_wanted.connect(self._take_original)

    def _under_way(self) -> tuple[Coming, ...]:
        """What is shown of files that are still being read, or sealed to be sent."""
        if self._slow.isActive():
            return ()
        left = MAX_TOGETHER - len(self.files)
        read = [name for each in self._pile.readings for name in each.names][:left]
        return (
            *(Coming(name=name, words=tr("Being sealed…"), leaves=True) for name in self._leaving),
            *(Coming(name=name, words=tr("Being read…")) for name in read),
        )

    def show_leaving(self, files: Sequence[Prepared]) -> None:
        """These were sent in the open conversation, and have no row yet."""
        names = tuple(file.name for file in files)
        if names != self._leaving:
            self._wait_to_show()
            self._leaving = names
            self._show_bar()

    def _wait_to_show(self) -> None:
        """Something begins: it may be over before anybody could read of it."""
        if not self._under_way():
            self._slow.start()

    @property
    def files(self) -> tuple[Prepared, ...]:
        """What is ready to go out with the next message."""
        return self._pile.files

    def put_aside(self) -> Pile:
        """Nothing goes out for now; what is still being read comes to the pile all the same."""
        aside, self._pile, self._leaving = self._pile, Pile(), ()
        self._composer.wait_for_files(waits=False, go_on=False)
        self._show(take_focus=False)
        return aside

    def bring_back(self, aside: Pile) -> None:
        """What was put aside goes out with the next message, before what came meanwhile."""
        if not aside.is_empty:
            self._pile.take_over(aside)
            self._composer.wait_for_files(waits=bool(self._pile.readings))
            self._show(take_focus=False)
            self._complain()

    def take_all(self) -> tuple[Prepared, ...]:
        """What goes out now."""
        files, self._pile.files = self.files, ()
        self._show()
        return files

    def _show_bar(self) -> None:
        self._bar.show_files(self.files, self._under_way())

    def _show(self, *, take_focus: bool = True) -> None:
        self._show_bar()
        self._composer.has_attachment(bool(self.files))
        if self.files and take_focus:
            self._composer.box.setFocus()

    def add(self, file: Prepared) -> None:
        if self._pile.takes_more:
            self._pile.add(file)
            self._show()
        else:
            self._composer.complain(_too_many())

    def _remove(self, place: int) -> None:
        file = self.files[place]
        forget_copy(file)
        self._pile.files = tuple(each for each in self.files if each is not file)
        self._show()

    def _take_original(self, place: int, wanted: bool) -> None:
        """Send this picture in its original size, or made small again."""
        file = self.files[place]
        if not wanted:
            forget_copy(file)
            self._pile.change(file, file.small or file)
            self._show()
            return

        async def read(reading: Reading) -> str:
            try:
                whole = await asyncio.to_thread(prepare_original, file)
            except PictureError as problem:
                return str(problem)
            reading.pile.change(file, whole)
            self._show_changed(reading.pile)
            return ""

        self._read(read, tr("read the picture"))

    def _show_changed(self, pile: Pile) -> None:
        """In another conversation nothing is to be seen of it."""
        if pile is self._pile:
            self._show()

    def _complain(self) -> None:
        """At the end: what is attached takes away what was said before."""
        if self._pile.refusal:
            self._composer.complain(self._pile.refusal)
            self._pile.refusal = ""

    def _read(
        self,
        work: Callable[[Reading], Awaitable[str]],
        purpose: str,
        names: Sequence[str] = (),
    ) -> None:
        """For the conversation that is open now, wherever one goes meanwhile.

        The message waits for ``work``, and goes out by itself only if that refuses nothing.
        """
        reading = Reading(self._pile, names)
        if names:
            self._wait_to_show()
        reading.pile.readings.append(reading)
        self._composer.wait_for_files(waits=True)

        async def whole() -> None:
            refusal, is_good = "", False
            try:
                refusal = await work(reading)
                is_good = not refusal
            finally:
                pile = reading.pile
                pile.readings.remove(reading)
                pile.refusal = refusal or pile.refusal
                if pile is self._pile:
                    self._show_bar()
                    self._complain()
                    waits = bool(pile.readings)
                    self._composer.wait_for_files(waits=waits, go_on=is_good)

        self._tasks.spawn(whole, purpose=purpose, retry=False)

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
        makes = [partial(prepare_file, path, most=MAX_LARGE_FILE_BYTES) for path in paths]
        self._prepare(makes, [path.name for path in paths])

    def take_image(self, image: QImage) -> None:
        name = tr("picture")
        self._prepare([lambda: prepare_picture(image, name)], [name])

    def _prepare(self, makes: Sequence[Callable[[], Prepared]], names: Sequence[str]) -> None:
        """``names``: of what each makes."""

        async def read(reading: Reading) -> str:
            refused: list[str] = []
            more = ""
            for number, make in enumerate(makes):
                if not reading.pile.takes_more or number == _MOST_LOOKED_AT:
                    more = _too_many()
                    break
                try:
                    prepared = await asyncio.to_thread(make)
                except PictureError as problem:
                    refused.append(str(problem))
                    continue
                finally:
                    reading.names = tuple(names[number + 1 :])
                reading.pile.add(prepared)
                self._show_changed(reading.pile)
            return _refusal(refused, more)

        self._read(read, tr("read the file"), names)


def _refusal(refused: Sequence[str], more: str) -> str:
    """Of each file that is refused why, or how many others there are; ``more``: of what is left."""
    said, others = [*refused[:_MOST_SAID]], len(refused) - _MOST_SAID
    if others > 0:
        said.append(tr("%n more cannot be sent.", "One more cannot be sent.", others))
    return " ".join(words for words in (*said, more) if words)


def _too_many() -> str:
    return tr("At most {most} files go out at once.").format(most=MAX_TOGETHER)
