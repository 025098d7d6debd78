"""A field for a few lines of text that never shows half a line."""

import math

from PySide6.QtCore import QEvent
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy


class LinesField(QPlainTextEdit):
    def __init__(self, lines: int, text: str = "") -> None:
        super().__init__(text)
        self._lines = lines
        self.setProperty("kind", "field")
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._fit()

    def line_height(self) -> float:
        """As lines are laid out, which is more than the font says."""
        block = self.document().firstBlock()
        margin = self.document().documentMargin()
        height = self.blockBoundingRect(block).height()
        if not self.isVisible() or height <= 0:
            return math.ceil(self.fontMetrics().lineSpacing())
        return (height - margin) / max(1, block.lineCount())

    def _fit(self) -> None:
        self.ensurePolished()
        edges = self.contentsMargins()
        margin = self.document().documentMargin()
        around = edges.top() + edges.bottom() + margin
        self.setFixedHeight(math.floor(self._lines * self.line_height() + around))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self._fit()
