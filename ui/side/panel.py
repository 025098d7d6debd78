"""What all side panels are made of: a title that stays, a close button, and sections that scroll.

Escape closes a panel from anywhere in it.  Rows that can be pressed are buttons with a name that
says all of the row, so that Tab and a screen reader go from one to the next.
"""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.avatar import Avatar
from ui.controls import (
    Area,
    Button,
    ColourRole,
    ElidedText,
    IconButton,
    Pill,
    Text,
    pressed_by_enter,
)
from ui.fitted_scroll_area import FittedScrollArea
from ui.theme import Radius, current_theme, theme_changed
from ui.translate import tr

_HEAD = 58
_EDGE = 16


def _is_stop(widget: QWidget) -> bool:
    takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    return bool(takes_tab) and widget.isEnabled() and widget.isVisible()


class Painted(Area):
    """A part of a panel that paints all of its ground, so that Qt moves what is painted of it.

    As high as its width makes it.  Qt's hint is the height for another width, for which all words
    in it would be laid out anew, time and again, and nobody here asks for it.
    """

    def __init__(self) -> None:
        super().__init__("panel")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()


class SidePanel(Area):
    close_requested = Signal()
    back_requested = Signal()
    left_by_key = Signal(bool)
    """By Tab beyond the last button; False: by Shift+Tab before the first."""

    def __init__(self, title: str, *, back: str = "") -> None:
        """``back``: what the button that leads back is called; "" for none."""
        super().__init__("panel", edges=("left",))
        self.setAccessibleName(title)
        self.title = Text(title, face="heading", strong=True, wrap=True)
        self.close_button = IconButton("close", tr("Close the panel"))
        self.close_button.clicked.connect(self.close_requested)
        self.back_button = IconButton("back", back or tr("Back"))
        self.back_button.clicked.connect(self.back_requested)
        head = QWidget()
        head.setFixedHeight(current_theme().metrics.scaled(_HEAD))
        top = QHBoxLayout(head)
        top.setContentsMargins(6 if back else _EDGE, 0, 10, 0)
        top.setSpacing(4)
        top.addWidget(self.back_button)
        self.back_button.setVisible(bool(back))  # Not before: it would be a window of its own.
        top.addWidget(self.title, 1)
        top.addWidget(self.close_button)
        self._top = top
        self.content = Painted()
        self.body = QVBoxLayout(self.content)
        self.body.setContentsMargins(_EDGE, 4, _EDGE, _EDGE)
        self.body.setSpacing(8)
        self.area = FittedScrollArea(self.content)
        self.area.setAccessibleName(title)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(1, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(head)
        whole.addWidget(self.area, 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_requested.emit()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        """In the order in which one sees it: rows come after what was made before them."""
        stops = self._stops()
        focused = QApplication.focusWidget()
        at = stops.index(focused) if focused in stops else -1
        place = at + (1 if next else -1)
        if at < 0 or not 0 <= place < len(stops):
            self.left_by_key.emit(next)
            return True
        reason = Qt.FocusReason.TabFocusReason if next else Qt.FocusReason.BacktabFocusReason
        stops[place].setFocus(reason)
        if self.content.isAncestorOf(stops[place]):
            self.reveal(stops[place])
        return True

    def _stops(self) -> list[QWidget]:
        found = [w for w in self.findChildren(QWidget) if _is_stop(w)]
        places = {widget: widget.mapTo(self, QPoint(0, 0)) for widget in found}
        return sorted(found, key=lambda w: (places[w].y() + w.height() / 2, places[w].x()))

    def take_focus(self) -> None:
        self.close_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def reveal(self, widget: QWidget) -> None:
        self.area.ensureWidgetVisible(widget, 0, 24)

    def add_to_head(self, button: QWidget) -> None:
        """Before the button that closes."""
        self._top.insertWidget(self._top.count() - 1, button)

    def add_section(self, title: str) -> Text:
        self.body.addSpacing(8)
        words = Text(title, face="small", colour="ink2", strong=True)
        self.body.addWidget(words)
        return words

    def add_action(
        self, words: str, icon_name: str, run: Callable[[], None], *, danger: bool = False
    ) -> Button:
        button = Button(words, kind="danger" if danger else "plain", icon_name=icon_name)
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda _checked=False: run())
        self.body.addWidget(button)
        return button


class PressableRow(QAbstractButton):
    """A row with widgets in it that is pressed as a whole."""

    focused = Signal(QWidget)

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(8, 6, 8, 6)
        self.row.setSpacing(10)
        theme_changed.connect(self.update)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(self)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = theme.metrics.gap(Radius.BUTTON)
        box = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        if self.underMouse() or self.isDown():
            painter.setBrush(theme.hover)
            painter.drawRoundedRect(box, radius, radius)
        if self.hasFocus():
            inset = theme.focus_width / 2
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.drawRoundedRect(box.adjusted(inset, inset, -inset, -inset), radius, radius)


class WhoRow(PressableRow):
    """A person or a group: picture, name with marks behind it, and a line of words."""

    def __init__(self, *, is_group: bool = False) -> None:
        super().__init__()
        self.avatar = Avatar(32, is_group=is_group)
        self.name = ElidedText(face="label", strong=True)
        self.line = ElidedText(face="caption", colour="ink2")
        self._marks = QHBoxLayout()
        self._marks.setSpacing(4)
        first = QHBoxLayout()
        first.setSpacing(6)
        first.addWidget(self.name)
        first.addLayout(self._marks)
        first.addStretch(1)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addLayout(first)
        words.addWidget(self.line)
        self.row.addWidget(self.avatar)
        self.row.addLayout(words, 1)

    def show_words(
        self, name: str, line: str, marks: tuple[tuple[str, ColourRole, ColourRole], ...] = ()
    ) -> None:
        self.name.setText(name)
        self.line.setText(line)
        self.line.setVisible(bool(line))
        while (item := self._marks.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for words, ink, fill in marks:
            self._marks.addWidget(Pill(words, ink=ink, fill=fill))
        said = [name, *(words for words, _, _ in marks), line]
        self.setAccessibleName(", ".join(part for part in said if part))
