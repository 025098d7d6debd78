"""A bar that says how one stands to the open conversation, with what can be done about it.

Words on the left and buttons on the right; in a narrow window the buttons stand below.  It can be
reached by Tab and is read as a whole, and never takes the focus to one of its buttons by itself.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.controls import Area, Button, ButtonKind, ColourRole, Edge, Text
from ui.dialogs.group import selectable
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_STACK_BELOW = 620
Choice = tuple[str, ButtonKind, Callable[[], None]]
"""What a button says, how it looks, and what it does."""


class StandingBar(Area):
    def __init__(self, fill: ColourRole = "header", *, edge: Edge = "top") -> None:
        super().__init__(fill, edges=(edge,))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._shown: object = None
        self.title = Text(face="body", strong=True, wrap=True)
        self.words = Text(face="label", colour="ink2", wrap=True)
        self.fingerprint = selectable("")
        self.buttons: list[Button] = []
        self._foot = QWidget()
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._foot)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addStretch(1)
        for text in (self.title, self.words, self.fingerprint):
            texts.addWidget(text)
        texts.addStretch(1)
        self._whole = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._whole.addLayout(texts, 1)
        self._whole.addWidget(self._foot, 0, Qt.AlignmentFlag.AlignVCenter)
        theme_changed.connect(self._dress)
        self.hide()
        self._dress()

    @property
    def is_wanted(self) -> bool:
        return self._shown is not None

    def show_nothing(self) -> None:
        self._shown = None
        self.hide()

    def show_standing(
        self,
        about: object,
        title: str,
        words: str,
        choices: Sequence[Choice],
        *,
        fingerprint: str = "",
    ) -> None:
        """``about``: equal as long as the buttons stay as they are, with the focus that they have.

        Of several choices the safest comes first.
        """
        self.title.setText(title)
        self.words.setText(words)
        self.words.setVisible(bool(words))
        self.fingerprint.setText(fingerprint)
        self.fingerprint.setVisible(bool(fingerprint))
        said = tr("Their fingerprint: {fingerprint}").format(fingerprint=fingerprint)
        self.fingerprint.setAccessibleName(said)
        parts = (title, words, said if fingerprint else "")
        self.setAccessibleName(". ".join(part for part in parts if part))
        if about != self._shown:
            self._shown = about
            self._make_buttons(choices)
        self.show()
        self._fit()

    def _make_buttons(self, choices: Sequence[Choice]) -> None:
        had_focus = any(button.hasFocus() for button in self.buttons)
        for button in self.buttons:
            button.hide()
            button.deleteLater()
        self.buttons = []
        before: QWidget = self.fingerprint
        for words, kind, run in choices:
            button = Button(words, kind=kind)
            button.clicked.connect(lambda _checked=False, run=run: run())
            self._row.addWidget(button)
            QWidget.setTabOrder(before, button)  # Else Tab would come to it last of all.
            before = button
            self.buttons.append(button)
        if had_focus:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Beside each other, below each other, or the buttons in a column of their own."""
        stack(self, self._whole, self._row, self.buttons)
        fit_height(self, self._whole)

    def _dress(self) -> None:
        gap = current_theme().metrics.gap
        self._whole.setContentsMargins(gap(20), gap(10), gap(14), gap(10))
        self._whole.setSpacing(gap(12))
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        paint_focus(self)


# --- for this bar and others like it --------------------------------------------------------------


def stack(bar: QWidget, whole: QBoxLayout, row: QBoxLayout, buttons: Sequence[Button]) -> bool:
    """Buttons beside the words, or below them in a narrow window.

    True: they stand in a column of their own, since there is no room for them in a row.
    """
    narrow = bar.width() / current_theme().metrics.factor < _STACK_BELOW
    directions = QBoxLayout.Direction
    whole.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
    edges = whole.contentsMargins()
    room = bar.contentsRect().width() - edges.left() - edges.right()
    wanted = sum(button.sizeHint().width() + row.spacing() for button in buttons)
    column = narrow and wanted > room
    row.setDirection(directions.TopToBottom if column else directions.LeftToRight)
    for button in buttons:
        sideways = QSizePolicy.Policy.Expanding if column else QSizePolicy.Policy.Fixed
        button.setSizePolicy(sideways, QSizePolicy.Policy.Fixed)
    return column


def fit_height(bar: QWidget, whole: QBoxLayout) -> None:
    """As high as its parts need in its width."""
    whole.activate()
    height = whole.totalHeightForWidth(bar.width())
    bar.setFixedHeight(height if height > 0 else whole.totalSizeHint().height())
    # A height that is set while the layout answers a resize leaves the parts where they were.
    whole.setGeometry(bar.contentsRect())


def paint_focus(bar: QWidget) -> None:
    if bar.hasFocus():
        theme = current_theme()
        painter = QPainter(bar)
        painter.setPen(QPen(theme.focus, theme.focus_width))
        painter.drawRect(QRectF(bar.rect()).adjusted(2, 2, -2, -2))
