"""A QR code as a widget: always black on white with its quiet edge, or no camera would read it.

The library is loaded and the code made when one is first shown: together that takes a tenth of a
second, which neither the start nor a sheet that shows something else has to spend.
"""

from functools import cached_property

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import Radius, current_theme, theme_changed

_QUIET = 4
"""Modules around the code, as the standard wants them."""


def qr_rows(text: str) -> tuple[bytes, ...]:
    """The modules, 1 is black; empty if the text is too long for any code."""
    import segno  # noqa: PLC0415 - see above

    try:
        code = segno.make_qr(text, error="l")
    except segno.DataOverflowError:
        return ()
    return tuple(bytes(row) for row in code.matrix)


class QrCode(QWidget):
    """As large as whole pixels for each module allow within ``side``."""

    def __init__(self, text: str, name: str, *, side: int) -> None:
        super().__init__()
        self._text = text
        self._side = side
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    @cached_property
    def _rows(self) -> tuple[bytes, ...]:
        return qr_rows(self._text)

    def _module(self) -> int:
        wanted = current_theme().metrics.scaled(self._side)
        return max(2, wanted // (len(self._rows) + 2 * _QUIET))

    def sizeHint(self) -> QSize:
        if not self._rows:
            return QSize(0, 0)
        side = (len(self._rows) + 2 * _QUIET) * self._module()
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._rows:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(Qt.GlobalColor.white)
        painter.drawRoundedRect(self.rect(), Radius.BUTTON, Radius.BUTTON)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        module = self._module()
        for y, row in enumerate(self._rows):
            for x, black in enumerate(row):
                if black:
                    at = QRect((x + _QUIET) * module, (y + _QUIET) * module, module, module)
                    painter.fillRect(at, Qt.GlobalColor.black)
