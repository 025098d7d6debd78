"""A scroll area that goes up and down only: its content is as wide as what is seen of it.

Qt gives a scrolled widget its minimum width, even where that is more than there is, and words at
its right edge are then cut off.  Here the content never gets more than the viewport has.  Qt also
gives it a new height only after it was laid out, and painted, in the old one; here it is as high as
it has to be before anybody sees it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


class FittedScrollArea(QScrollArea):
    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # What has the focus is scrolled into view.
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(content)
        self.viewport().setAutoFillBackground(False)
        content.setAutoFillBackground(False)
        content.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._content and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        width = max(1, self.viewport().width())
        self._content.setMaximumWidth(width)
        if self._content.hasHeightForWidth():
            needed = self._content.heightForWidth(width)
            least = self._content.minimumSizeHint().height()
            self._content.resize(width, max(needed, least, self.viewport().height()))

    @contextmanager
    def laid_out_once(self, *parts: QWidget) -> Iterator[None]:
        """Whatever of the content is changed meanwhile, it is laid out once, at the end.

        Else each widget that is shown has all that it stands in laid out there and then.
        ``parts``: those of the content that have a layout of their own, of which Qt would learn
        only later that they need more room.
        """
        layouts = [part.layout() for part in (*parts, self._content)]
        *_, whole = layouts
        if whole is not None:
            whole.setEnabled(False)
        try:
            yield
        finally:
            if whole is not None:
                whole.setEnabled(True)
            for part in parts:
                part.updateGeometry()
            self._fit()
            for layout in layouts:
                if layout is not None:
                    layout.activate()
