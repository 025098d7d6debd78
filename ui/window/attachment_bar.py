"""The line above the composer with the picture or file that goes out with the next message."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from ui.attachments import Prepared, decode_received
from ui.controls import Area, ElidedText, IconButton
from ui.file_words import size_words
from ui.foreign_text import one_line
from ui.translate import tr

_THUMBNAIL = QSize(64, 48)
_MAX_NAME = 80


class AttachmentBar(Area):
    removed = Signal()

    def __init__(self) -> None:
        super().__init__("header", edges=("top",))
        self.picture = QLabel()
        self.name = ElidedText("", face="small", strong=True)
        self.size_line = ElidedText("", face="caption", colour="ink2")
        self.remove = IconButton("close", tr("Do not send it"), side=28)
        self.remove.clicked.connect(self.removed)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(self.name)
        texts.addWidget(self.size_line)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 14, 6)
        row.setSpacing(10)
        row.addWidget(self.picture)
        row.addLayout(texts, 1)
        row.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def show_file(self, file: Prepared | None) -> None:
        """None: nothing goes out with the text."""
        self.setVisible(file is not None)
        if file is None:
            return
        image = decode_received(file.data, _THUMBNAIL * 2) if file.width else None
        self.picture.setVisible(image is not None)
        if image is not None:
            shown = QPixmap.fromImage(image).scaled(
                _THUMBNAIL,
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            self.picture.setPixmap(shown)
        self.name.setText(one_line(file.name, _MAX_NAME))
        self.size_line.setText(size_words(len(file.data)))
        self.setAccessibleName(
            tr("Goes out with the message: {name}").format(name=one_line(file.name, _MAX_NAME))
        )
