"""The few controls that the window is built of: areas, texts and buttons that follow the theme.

A text is always plain text: names and messages come from strangers and must never be read as
markup.  Every button carries an accessible name.
"""

import unicodedata
from typing import Literal

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ui.icons import draw_icon, icon
from ui.theme import Radius, Theme, Typeface, current_theme, theme_changed
from ui.tips import set_tip

ColourRole = Literal[
    "canvas", "panel", "surface", "surface2", "header", "ink", "ink2", "ink3", "accent",
    "accentInk", "accentSoft", "onAccent", "danger", "dangerBg", "warn", "warnBg", "ok", "late",
    "lateBg", "line", "line2", "dangerLine", "warnLine", "ownLine",
]  # fmt: skip
TypeRole = Literal["title", "heading", "body", "label", "small", "caption", "micro", "code"]
Edge = Literal["top", "bottom", "left", "right"]
ButtonKind = Literal["plain", "primary", "warning", "danger", "ghost"]
ButtonSize = Literal["tiny", "small", "normal", "big"]


def colour_of(theme: Theme, role: ColourRole) -> QColor:
    colour: QColor = getattr(theme, role)
    return colour


def face_of(theme: Theme, role: TypeRole) -> Typeface:
    face: Typeface = getattr(theme.type, role)
    return face


def literal(text: str) -> str:
    """For buttons and menus, where an ampersand would become a mnemonic."""
    return text.replace("&", "&&")


def pressed_by_enter(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Enter presses the button that has the focus.

    Qt leaves Enter to a dialog's default button, whichever one has the focus, and to nobody
    elsewhere.
    """
    if event.key() not in {Qt.Key.Key_Return, Qt.Key.Key_Enter} or event.isAutoRepeat():
        return False
    button.click()
    return True


class Area(QFrame):
    """A filled rectangle of one colour role, with hairlines on some edges."""

    def __init__(
        self, fill: ColourRole, *, edges: tuple[Edge, ...] = (), parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._fill: ColourRole = fill
        self._edges = edges
        theme_changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.fillRect(self.rect(), colour_of(theme, self._fill))
        painter.setPen(QPen(theme.line, 1))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        lines = {
            "top": (box.topLeft(), box.topRight()),
            "bottom": (box.bottomLeft(), box.bottomRight()),
            "left": (box.topLeft(), box.bottomLeft()),
            "right": (box.topRight(), box.bottomRight()),
        }
        for edge in self._edges:
            painter.drawLine(*lines[edge])


class Card(QFrame):
    """A rounded box with an outline; floats on whatever lies below."""

    def __init__(
        self,
        fill: ColourRole = "surface",
        outline: ColourRole = "line",
        *,
        radius: float = Radius.BUBBLE,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._fill: ColourRole = fill
        self._outline: ColourRole = outline
        self._radius = radius
        theme_changed.connect(self.update)

    def recolour(self, fill: ColourRole, outline: ColourRole) -> None:
        self._fill, self._outline = fill, outline
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour_of(theme, self._outline), 1))
        painter.setBrush(colour_of(theme, self._fill))
        radius = theme.metrics.gap(self._radius)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, radius, radius)


class Text(QLabel):
    """Plain text in a type and a colour role."""

    def __init__(
        self,
        text: str = "",
        *,
        face: TypeRole = "body",
        colour: ColourRole = "ink",
        strong: bool = False,
        wrap: bool = False,
    ) -> None:
        super().__init__()
        self._face: TypeRole = face
        self._colour: ColourRole = colour
        self._strong = strong
        self._column = 0
        self._shown_text = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setForegroundRole(QPalette.ColorRole.WindowText)  # A button's words have another.
        self.setWordWrap(wrap)
        if self.isRightToLeft():  # Qt goes by the letters: names of others would leave their side.
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute
            self.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setText(text)
        theme_changed.connect(self._dress)
        self._dress()

    def recolour(self, colour: ColourRole) -> None:
        if colour != self._colour:
            self._colour = colour
            self._dress()

    def set_column(self, width: int) -> None:
        """Wrap at this width wherever it stands, as high as the words need."""
        self._column = width
        self._dress()

    def setText(self, text: str) -> None:
        super().setText(text)
        if "\u200b" in text:  # Where a long run may break is nothing to be read out.
            self.setAccessibleName(text.replace("\u200b", ""))
        elif "\u200b" in self._shown_text:
            self.setAccessibleName("")
        self._shown_text = text
        self._fit_column()

    def showEvent(self, event: QShowEvent) -> None:
        """Words that were never shown get back their colour of before from a new style sheet."""
        super().showEvent(event)
        shown = self.palette().color(QPalette.ColorRole.WindowText)
        if shown != colour_of(current_theme(), self._colour):
            self._dress()

    def _fit_column(self) -> None:
        if self._column:
            self.setFixedWidth(self._column)
            line = int(face_of(current_theme(), self._face).line_height)
            self.setFixedHeight(max(line, self.heightForWidth(self._column)))

    def _dress(self) -> None:
        theme = current_theme()
        face = face_of(theme, self._face)
        self.setFont(face.strong() if self._strong else face.font)
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, colour_of(theme, self._colour))
        self.setPalette(palette)
        self.setMinimumHeight(int(face.line_height))
        self._fit_column()


_LEFT_TO_RIGHT = "\u200e"


def _runs_left(text: str) -> bool:
    """Whether letters in it run from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in {"R", "AL"} for c in text)


class ElidedText(Text):
    """One line with an ellipsis when there is no room; the whole text as tool tip."""

    def __init__(
        self,
        text: str = "",
        *,
        face: TypeRole = "body",
        colour: ColourRole = "ink",
        strong: bool = False,
        elided: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        """``elided``: where something is left out."""
        self._whole, self._elided = "", elided
        super().__init__(text, face=face, colour=colour, strong=strong)
        if not self.isRightToLeft():  # Qt goes by the letters: a name would lead it to the right.
            side = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute
            self.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def setText(self, text: str) -> None:
        if text != self._whole:
            self._whole = text
            self.setAccessibleName(text)
            self._elide()

    def whole_text(self) -> str:
        return self._whole

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        hint.setWidth(self.fontMetrics().horizontalAdvance(self._whole) + 2)
        return hint

    def minimumSizeHint(self) -> QSize:
        """Of four letters, or what fewer take: what stands beside a short name is near it."""
        least = min(self.fontMetrics().averageCharWidth() * 4, self.sizeHint().width())
        return QSize(least, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _dress(self) -> None:
        super()._dress()
        self._elide()

    def _elide(self) -> None:
        width = max(self.width(), 1)
        shown = self.fontMetrics().elidedText(self._whole, self._elided, width)
        is_cut = shown != self._whole
        if not self.isRightToLeft() and _runs_left(shown):
            shown = f"{_LEFT_TO_RIGHT}{shown}"  # A sentence that a name begins stays in its order.
        if shown != self.text():
            super().setText(shown)
            self.updateGeometry()
        set_tip(self, self._whole if is_cut else "")


class IconButton(QToolButton):
    """A square button with an icon only, so its name is said by tool tip and screen reader."""

    def __init__(
        self,
        icon_name: str,
        name: str,
        *,
        side: int = 34,
        colour: ColourRole = "ink2",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._icon_name = icon_name
        self._side = side
        self._colour: ColourRole = colour
        self.setAccessibleName(name)
        set_tip(self, name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        theme_changed.connect(self._dress)
        self._dress()

    def rename(self, name: str, icon_name: str) -> None:
        """What it does has changed."""
        self.setAccessibleName(name)
        set_tip(self, name)
        if icon_name != self._icon_name:
            self._icon_name = icon_name
            self._dress()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def _dress(self) -> None:
        theme = current_theme()
        size = theme.metrics.scaled(20)
        role: ColourRole = self._colour if self.isEnabled() else "ink3"
        self.setIcon(icon(self._icon_name, colour_of(theme, role), size))
        self.setIconSize(QSize(size, size))
        side = theme.metrics.scaled(self._side)
        self.setFixedSize(side, side)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange:
            self._dress()


class Button(QPushButton):
    """A button with words, and an icon where it helps."""

    def __init__(
        self,
        text: str,
        *,
        kind: ButtonKind = "plain",
        size: ButtonSize = "normal",
        icon_name: str | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._kind: ButtonKind = kind
        self._size: ButtonSize = size
        self._icon_name = icon_name
        self.setProperty("kind", kind)
        self.setProperty("extent", size)
        self.rename(text)
        self.setAutoDefault(False)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._dress)
        self._dress()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def inset(self) -> int:
        """From its edge to its words."""
        self.ensurePolished()
        return (self.sizeHint().width() - self.fontMetrics().horizontalAdvance(self.text())) // 2

    def rename(self, text: str) -> None:
        # Qt leaves hardly any room between an icon and the words.
        self.setText(literal(text) if self._icon_name is None else f" {literal(text)}")
        self.setAccessibleName(text)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange:
            self._dress()

    def _dress(self) -> None:
        if self._icon_name is None:
            return
        roles: dict[ButtonKind, ColourRole] = {
            "primary": "onAccent",
            "warning": "warn",
            "danger": "danger",
            "ghost": "ink2",
            "plain": "ink",
        }
        theme = current_theme()
        role: ColourRole = roles[self._kind] if self.isEnabled() else "ink3"
        size = theme.metrics.scaled(16)
        self.setIcon(icon(self._icon_name, colour_of(theme, role), size))
        self.setIconSize(QSize(size, size))


class SearchLine(QLineEdit):
    """A field with a magnifier in front, as large as its text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "search")
        theme_changed.connect(self._make_room)
        self._make_room()

    def magnifier(self) -> QRectF:
        """Where it stands."""
        metrics = current_theme().metrics
        side = metrics.scaled(16)
        return QRectF(metrics.gap(10), (self.height() - side) / 2, side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_icon(QPainter(self), "search", self.magnifier(), current_theme().ink3)

    def _make_room(self) -> None:
        metrics = current_theme().metrics
        self.setTextMargins(metrics.scaled(16) + metrics.gap(6), 0, 0, 0)


class KeyCap(Text):
    """The name of a key, in a little box."""

    def __init__(self, text: str, *, parent: QWidget | None = None) -> None:
        super().__init__(text, face="micro", colour="ink2")
        self.setParent(parent)
        self.setContentsMargins(6, 0, 6, 0)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        face = current_theme().type.micro
        width = self.fontMetrics().horizontalAdvance(self.text()) + 14
        return QSize(width, int(face.line_height) + 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.line2 if theme.is_high_contrast else theme.line, 1))
        painter.setBrush(theme.surface)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, 5, 5)
        painter.end()
        super().paintEvent(event)


PILL_INSET = 7
"""From the edge to the words."""


def draw_pill(painter: QPainter, box: QRectF, fill: ColourRole) -> None:
    """What the words of a mark stand on."""
    theme = current_theme()
    painter.setPen(QPen(theme.line, 1) if theme.is_high_contrast else QPen(Qt.PenStyle.NoPen))
    painter.setBrush(colour_of(theme, fill))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 7, 7)


class Pill(Text):
    """A short mark behind a name: "you", "admin", "maybe"."""

    def __init__(self, text: str, *, ink: ColourRole, fill: ColourRole) -> None:
        super().__init__(text, face="micro", colour=ink, strong=True)
        self._fill: ColourRole = fill
        self.setContentsMargins(PILL_INSET, 1, PILL_INSET, 1)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw_pill(painter, QRectF(self.rect()), self._fill)
        painter.end()
        super().paintEvent(event)
