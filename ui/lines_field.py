"""A field for a few lines of text that never shows half a line."""

import math

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy


class LinesField(QPlainTextEdit):
    def __init__(self, lines: int, text: str = "") -> None:
        super().__init__(text)
        self._lines = lines
        self.setProperty("kind", "field")
        self.document().setDocumentMargin(0)  # In it one would see parts of what is scrolled away.
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._fit()

    def line_height(self) -> float:
        """As lines are laid out, which is more than the font says."""
        block = self.document().firstBlock()
        height = self.blockBoundingRect(block).height()
        if not self.isVisible() or height <= 0:
            return math.ceil(self.fontMetrics().lineSpacing())
        return height / max(1, block.lineCount())

    def _fit(self) -> None:
        self.ensurePolished()
        edges = self.contentsMargins()
        around = edges.top() + edges.bottom()
        self.setFixedHeight(math.ceil(self._lines * self.line_height()) + around + 1)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self._fit()
