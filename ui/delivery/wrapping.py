"""A row of widgets that go on in the next line where they have no room, at one end of each."""

from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem

_SPACING: Final = 4


class WrappingRow(QLayout):
    def __init__(self, *, leading: bool = False) -> None:
        """``leading``: where a line begins; else where it ends."""
        super().__init__()
        self._leading = leading
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(_SPACING)

    @property
    def line_width(self) -> int:
        """What all of them need in one line."""
        widths = [item.sizeHint().width() for item in self._items if not item.isEmpty()]
        return sum(widths) + self.spacing() * max(len(widths) - 1, 0)

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        used = 0
        for item in self._items:
            if item.isEmpty():
                continue
            needed = item.sizeHint().width()
            if not lines or used + self.spacing() + needed > width:
                lines.append([])
                used = -self.spacing()
            lines[-1].append(item)
            used += self.spacing() + needed
        return lines

    def _place(self, box: QRect, *, only_measure: bool) -> int:
        y = box.top()
        parent = self.parentWidget()
        mirrored = parent is not None and parent.isRightToLeft()
        direction = Qt.LayoutDirection.RightToLeft if mirrored else Qt.LayoutDirection.LeftToRight
        for line in self._lines(box.width()):
            sizes = [item.sizeHint() for item in line]
            height = max(size.height() for size in sizes)
            x = box.right() + 1 - sum(s.width() for s in sizes) - self.spacing() * (len(line) - 1)
            x = box.left() if self._leading else max(x, box.left())
            for item, size in zip(line, sizes, strict=True):
                middle = y + (height - size.height()) // 2
                width = min(size.width(), box.width())
                place = QRect(QPoint(x, middle), QSize(width, size.height()))
                if not only_measure:
                    item.setGeometry(_mirrored(direction, box, place))
                x += size.width() + self.spacing()
            y += height + self.spacing()
        return max(y - self.spacing() - box.top(), 0)

    # --- Qt ---------------------------------------------------------------------------------------

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), only_measure=True)

    def setGeometry(self, box: QRect) -> None:
        super().setGeometry(box)
        self._place(box, only_measure=False)

    def sizeHint(self) -> QSize:
        heights = [item.sizeHint().height() for item in self._items]
        return QSize(self.line_width, max(heights, default=0))

    def minimumSize(self) -> QSize:
        widths = [item.sizeHint().width() for item in self._items if not item.isEmpty()]
        return QSize(max(widths, default=0), self.sizeHint().height())


def _mirrored(direction: Qt.LayoutDirection, box: QRect, place: QRect) -> QRect:
    if direction is Qt.LayoutDirection.LeftToRight:
        return place
    return QRect(
        box.left() + box.right() - place.right(), place.top(), place.width(), place.height()
    )
