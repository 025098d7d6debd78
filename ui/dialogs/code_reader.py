"""Three ways to a QR code that somebody sent or shows: a file, the clipboard, the screen.

The dialog around it hands over what was pasted or dropped as well.  One look at a time, on a thread
of its own; the answer is a link for the field above, or a sentence that says why there is none.
Nothing is fetched from anywhere, and no picture is kept.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import shiboken6
from msgspec import Struct
from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QGuiApplication, QImage, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.controls import Button, Text
from ui.dialogs.pasted_picture import holds_picture, is_link, link_among, picture_in
from ui.dialogs.profile import ChoosePicture
from ui.pictures import PictureError
from ui.qr_reading import Picture, codes_in
from ui.screen import GrabScreens, nothing_found_words
from ui.tasks import Tasks
from ui.theme import theme_changed
from ui.tips import set_tip
from ui.translate import tr

_GONE_S = 0.35
"""After hiding our windows: desktops take a moment to draw, and fade, what is behind them."""


class PictureSources(Struct, frozen=True, kw_only=True):
    """Ways to pictures outside the window."""

    choose_picture: ChoosePicture
    grab_screens: GrabScreens


class CodeReader(QWidget):
    """``works`` says whether a link could be used; it is asked only to choose among several."""

    found = Signal(str)
    failed = Signal(str)
    text_pasted = Signal(str)

    def __init__(self, sources: PictureSources, works: Callable[[str], bool], tasks: Tasks) -> None:
        super().__init__()
        self._sources = sources
        self._works = works
        self._tasks = tasks
        self._is_gone = False
        self.is_busy = False
        self.words = Text(face="caption", colour="ink2", wrap=True)
        self.file = _way(
            tr("Picture…"), "picture", tr("Choose a picture of the code, or drop one here")
        )
        self.paste = _way(
            tr("Clipboard"), "paste", tr("Read what was copied: a picture of the code, or a link")
        )
        self.screen_button = _way(
            tr("Screen"), "screen", tr("Read the code that is on the screen now")
        )
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._row.setSpacing(8)
        for button in self._buttons():
            self._row.addWidget(button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(6)
        whole.addWidget(self.words)
        whole.addLayout(self._row)
        self.file.clicked.connect(lambda: self._start(self._from_file))
        self.paste.clicked.connect(self.paste_clipboard)
        self.screen_button.clicked.connect(lambda: self._start(self._from_screen))
        theme_changed.connect(self._fit)
        self._show_busy(busy=False)

    def close_down(self) -> None:
        """The dialog is closed: whatever is under way says nothing any more."""
        self._is_gone = True

    # --- what the dialog hands over ---------------------------------------------------------------

    def paste_clipboard(self) -> None:
        mime: QMimeData | None = QGuiApplication.clipboard().mimeData()
        if mime is not None and holds_picture(mime):
            self.take(mime)
        elif mime is not None and mime.text().strip():
            self.text_pasted.emit(mime.text())
        else:
            self.failed.emit(tr("There is neither a picture nor a link to paste."))

    def take(self, mime: QMimeData) -> None:
        """Of a paste or a drop that holds a picture."""
        try:
            picture = picture_in(mime)
        except PictureError as error:
            self.failed.emit(str(error))
            return
        if picture is not None:

            async def look() -> None:
                await self._look([picture])

            self._start(look)

    # --- looking ----------------------------------------------------------------------------------

    def _start(self, look: Callable[[], Awaitable[None]]) -> None:
        """The buttons stay as they are, and so the keys where they are; a second look waits."""
        if self.is_busy:
            return

        async def alone() -> None:
            problem = ""
            try:
                await look()
            except PictureError as error:
                problem = str(error)
            finally:
                self.is_busy = False
                if not self._is_gone:
                    self._show_busy(busy=False)
            if problem and not self._is_gone:
                self.failed.emit(problem)

        self.is_busy = True
        self._tasks.spawn(alone, purpose=tr("read the code"), retry=False)

    async def _from_file(self) -> None:
        path = await self._sources.choose_picture(self)
        if path is not None and not self._is_gone:
            await self._look([path])

    async def _from_screen(self) -> None:
        """First with our windows where they are; only if there is nothing, behind them too."""
        codes = await self._read(self._sources.grab_screens())
        if not any(map(is_link, codes)) and not self._is_gone:
            async with self._out_of_the_way():
                behind = self._behind()
            codes = await self._read(behind) or codes
        if not codes:
            raise PictureError(nothing_found_words())
        self._say(codes)

    def _behind(self) -> list[QImage]:
        """A bare desktop looks like a refusal; that it was none has been seen before."""
        try:
            return self._sources.grab_screens()
        except PictureError:
            return []

    async def _look(self, pictures: Sequence[Picture]) -> None:
        self._say(await self._read(pictures))

    async def _read(self, pictures: Sequence[Picture]) -> tuple[str, ...]:
        if not self._is_gone:
            self._show_busy(busy=True)
        return await asyncio.to_thread(codes_in, pictures)

    def _say(self, codes: Sequence[str]) -> None:
        link = link_among(codes, self._works)
        if not self._is_gone:
            self.found.emit(link)

    @asynccontextmanager
    async def _out_of_the_way(self) -> AsyncIterator[None]:
        """Our own windows hidden for a moment, and then as they were."""
        sheet = self.window()
        parent = sheet.parentWidget()
        windows = [sheet] if parent is None else [sheet, parent.window()]
        hidden = [window for window in windows if window.isVisible()]
        places = [window.pos() for window in hidden]
        for window in hidden:
            window.hide()
        try:
            await asyncio.sleep(_GONE_S)
            yield
        finally:
            for window, place in reversed(list(zip(hidden, places, strict=True))):
                if shiboken6.isValid(window):
                    window.show()
                    window.move(place)
            if shiboken6.isValid(sheet):
                sheet.raise_()
                sheet.activateWindow()

    # --- looks ------------------------------------------------------------------------------------

    def _buttons(self) -> tuple[Button, ...]:
        return (self.file, self.paste, self.screen_button)

    def _show_busy(self, *, busy: bool) -> None:
        self.words.setText(
            tr("Looking for a QR code…") if busy else tr("Or read their QR code from")
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Below each other where they have no room side by side."""
        wanted = sum(button.sizeHint().width() + self._row.spacing() for button in self._buttons())
        narrow = wanted - self._row.spacing() > self.width()
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)


def _way(words: str, icon_name: str, description: str) -> Button:
    button = Button(words, icon_name=icon_name)
    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    set_tip(button, description)
    return button
