"""The line above the composer with the pictures and files that go out with the next message."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPixmap, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from ui.attachments import Prepared
from ui.controls import Area, Button, ElidedText, IconButton
from ui.file_words import size_words
from ui.foreign_text import file_name, one_line
from ui.theme import current_theme
from ui.tips import set_tip
from ui.translate import tr

_THUMBNAIL = QSize(64, 48)
_WIDTH = 230
"""Of one among several, if its button is no wider."""


class Coming(Struct, frozen=True, kw_only=True):
    """A file that is being read to go out with the message, or that has left and has no row yet."""

    name: str
    words: str
    """What happens to it."""
    leaves: bool = False


class _Along(QScrollArea):
    """A wheel leads along the row: there is nothing above it or below."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned, bar = event.angleDelta(), self.horizontalScrollBar()
        bar.setValue(bar.value() - (turned.x() or turned.y()))
        event.accept()


class AttachmentBar(Area):
    removed = Signal(int)
    """Which of them, counted from 0."""
    original_wanted = Signal(int, bool)
    """Which picture, and whether it is to go out in its original size."""

    def __init__(self) -> None:
        super().__init__("header", edges=("top",))
        self.items: list[AttachedFile] = []
        self._coming: list[_ComingFile] = []
        self._content = QWidget()
        self._row = QHBoxLayout(self._content)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(14)
        self._scrolled = _Along()
        self._scrolled.setFrameShape(QFrame.Shape.NoFrame)
        self._scrolled.setWidgetResizable(True)
        self._scrolled.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scrolled.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scrolled.setWidget(self._content)
        self._scrolled.viewport().setAutoFillBackground(False)
        self._content.setAutoFillBackground(False)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(16, 8, 14, 6)
        whole.addWidget(self._scrolled)
        self.hide()

    def show_files(self, files: Sequence[Prepared], under_way: Sequence[Coming] = ()) -> None:
        for item in (*self.items, *self._coming):
            self._row.removeWidget(item)
            item.hide()
            item.deleteLater()
        self.items = [AttachedFile(file) for file in files]
        self._coming = [_ComingFile(one) for one in under_way]
        leaving = sum(one.leaves for one in under_way)
        shown = (*self._coming[:leaving], *self.items, *self._coming[leaving:])
        width = max((item.one_of_several() for item in self.items), default=0)
        width = max(width, current_theme().metrics.scaled(_WIDTH))
        for place, item in enumerate(self.items):
            item.remove.clicked.connect(partial(self.removed.emit, place))
            item.original.toggled.connect(partial(self._want_original, place))
        for item in shown:
            if len(shown) > 1:
                item.setFixedWidth(width)
            self._row.addWidget(item)
        several = Qt.AlignmentFlag.AlignLeft if len(shown) > 1 else Qt.AlignmentFlag(0)
        self._row.setAlignment(several)
        wide = len(shown) * (width + self._row.spacing())
        scrolls = len(shown) > 1 and wide > self._scrolled.viewport().width()
        height = max((item.sizeHint().height() for item in shown), default=0)
        bar = self._scrolled.horizontalScrollBar().sizeHint().height() if scrolls else 0
        self._scrolled.setFixedHeight(height + bar)
        self.setVisible(bool(shown))
        coming = [one.name for one in under_way if not one.leaves]
        going = [*(file.name for file in files), *coming]
        names = ", ".join(map(file_name, going))
        self.setAccessibleName(
            tr(
                "%n files go out with the message: {names}",
                "Goes out with the message: {names}",
                len(going),
            ).format(names=names)
        )

    def _want_original(self, place: int, wanted: bool) -> None:
        self.original_wanted.emit(place, wanted)


class AttachedFile(QWidget):
    def __init__(self, file: Prepared) -> None:
        super().__init__()
        name = file_name(file.name)
        self.setAccessibleName(name)
        self.picture = QLabel()
        self.picture.setVisible(file.preview is not None)
        if file.preview is not None:
            scale = self.devicePixelRatioF()
            shown = QPixmap.fromImage(
                file.preview.scaled(
                    _THUMBNAIL * scale,
                    Qt.AspectRatioMode.KeepAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            )
            shown.setDevicePixelRatio(scale)
            self.picture.setPixmap(shown)
        self.remove = IconButton("close", tr("Do not send {name}").format(name=name), side=28)
        self.original = Button(_original_words(file), size="tiny")
        self.original.setCheckable(True)
        self.original.setChecked(file.small is not None)
        self.original.setVisible(file.original is not None)
        set_tip(self.original, tr("Place, camera and other details are removed in any case."))
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(
            ElidedText(
                one_line(file.name),
                face="small",
                strong=True,
                elided=Qt.TextElideMode.ElideMiddle,
            )
        )
        texts.addWidget(ElidedText(size_words(file.size), face="caption", colour="ink2"))
        # Without an alignment no line beside it could be wider than this button.
        texts.addWidget(self.original, 0, Qt.AlignmentFlag.AlignLeft)
        if file.keeps_details:
            texts.addWidget(
                ElidedText(tr("Place and time stay in it"), face="caption", colour="warn")
            )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.picture)
        row.addLayout(texts, 1)
        row.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)

    def one_of_several(self) -> int:
        """How wide it is beside others: a name is cut off, the words of a button are not."""
        return max(current_theme().metrics.scaled(_WIDTH), self.minimumSizeHint().width())


class _ComingFile(QWidget):
    """It takes its place among the others once it was read, or goes once it was sealed."""

    def __init__(self, coming: Coming) -> None:
        super().__init__()
        self.setAccessibleName(f"{file_name(coming.name)}, {coming.words}")
        texts = QVBoxLayout(self)
        texts.setContentsMargins(0, 0, 0, 0)
        texts.setSpacing(0)
        middle = Qt.TextElideMode.ElideMiddle
        texts.addWidget(ElidedText(one_line(coming.name), face="small", strong=True, elided=middle))
        texts.addWidget(ElidedText(coming.words, face="caption", colour="ink2"))
        texts.addStretch(1)


def _original_words(file: Prepared) -> str:
    return tr("Original size ({size})").format(size=size_words(file.original_size))
