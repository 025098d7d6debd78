"""One Store on its page: how it stands, what it brought, and what can be done with it.

The sign beside the words is a shape of its own for every state, so that no colour is needed to
tell them apart.  The row has the focus as a whole: Alt with an arrow moves the Store, Delete takes
it out of the list.
"""

from datetime import datetime

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from engine.history_views import StoreHealth, StoreOrigin, StoreTestView, StoreView
from ui.controls import Button, Card, ElidedText, IconButton, Text
from ui.foreign_text import breaking
from ui.history_words import short_address, store_state, store_statistics, test_words
from ui.icons import draw_icon
from ui.menu import Menu
from ui.switch import Spinner, Switch
from ui.theme import Radius, current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_COLUMN_BELOW = 430


class HealthSign(QWidget):
    """Filled disc: good; triangle: doubtful; crossed disc: failed; ring: not asked, or off."""

    def __init__(self) -> None:
        super().__init__()
        self._store: StoreView | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def show_store(self, store: StoreView) -> None:
        self._store = store
        self.update()

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(16)
        return QSize(side, side)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._store is None:
            return
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        centre, radius = box.center(), box.width() / 2 - 3
        health = self._store.health if self._store.enabled else StoreHealth.UNKNOWN
        match health:
            case StoreHealth.DOUBTFUL:
                draw_icon(painter, "warning", box, theme.warnDot)
            case StoreHealth.GOOD:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.ok)
                painter.drawEllipse(centre, radius, radius)
            case StoreHealth.FAILED:
                painter.setPen(QPen(theme.danger, 1.6))
                painter.drawEllipse(centre, radius, radius)
                arm = radius * 0.45
                painter.drawLine(centre + QPointF(-arm, -arm), centre + QPointF(arm, arm))
                painter.drawLine(centre + QPointF(-arm, arm), centre + QPointF(arm, -arm))
            case StoreHealth.UNKNOWN:
                painter.setPen(QPen(theme.ink3, 1.5))
                painter.drawEllipse(centre, radius - 0.75, radius - 0.75)
                if not self._store.enabled:
                    painter.drawLine(centre - QPointF(radius, 0), centre + QPointF(radius, 0))


class StoreRow(Card):
    test_requested = Signal(str)
    """A multiaddr, as in all of these."""
    keep_requested = Signal(str)
    remove_requested = Signal(str)
    use_requested = Signal(str, bool)
    move_requested = Signal(str, int)
    """So many places down, or up if negative."""

    def __init__(self, store: StoreView) -> None:
        super().__init__(radius=Radius.ROW)
        self.store = store
        self._number = self._of = 1
        self._test: StoreTestView | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        address = short_address(store.multiaddr)
        self._sign = HealthSign()
        self.address = ElidedText(face="body", strong=True)
        self.state = Text(face="small", colour="ink2", wrap=True)
        self.statistics = Text(face="caption", colour="ink3", wrap=True)
        self.result = Text(face="small", wrap=True)
        self._spinner = Spinner()
        self.test = Button(tr("Test"), size="small")
        self.test.setAccessibleName(tr("Test {address}").format(address=address))
        self.keep = Button(tr("Keep in the list"), size="small")
        self.keep.setAccessibleName(tr("Keep {address} in the list").format(address=address))
        self.use = Switch(tr("Use {address}").format(address=address))
        self.more = IconButton(
            "more", tr("What can be done with {address}").format(address=address), side=30
        )
        self._build_menu()
        self._lay_out()
        self.test.clicked.connect(lambda: self.test_requested.emit(self.store.multiaddr))
        self.keep.clicked.connect(lambda: self.keep_requested.emit(self.store.multiaddr))
        self.use.clicked.connect(lambda on: self.use_requested.emit(self.store.multiaddr, on))
        theme_changed.connect(self._dress)
        self._dress()

    def _build_menu(self) -> None:
        menu = Menu(self)
        menu.setAccessibleName(tr("What can be done with this Store"))
        self.up = menu.addAction(tr("Move up") + "\tAlt+Up")
        self.up.triggered.connect(lambda: self._move(-1))
        self.down = menu.addAction(tr("Move down") + "\tAlt+Down")
        self.down.triggered.connect(lambda: self._move(1))
        menu.addSeparator()
        menu.addAction(tr("Copy address")).triggered.connect(self._copy)
        self.remove = menu.addAction(tr("Remove") + "\tDel")
        self.remove.triggered.connect(lambda: self.remove_requested.emit(self.store.multiaddr))
        self.more.setMenu(menu)

    def _lay_out(self) -> None:
        testing = QHBoxLayout()
        testing.setSpacing(6)
        testing.addWidget(self._spinner, 0, Qt.AlignmentFlag.AlignTop)
        testing.addWidget(self.result, 1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.address)
        words.addWidget(self.state)
        words.addWidget(self.statistics)
        words.addLayout(testing)
        left = QHBoxLayout()
        left.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        left.addLayout(words, 1)
        left.setSpacing(8)
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        for button in (self.test, self.keep, self.use, self.more):
            buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._whole = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._whole.addLayout(left, 1)
        self._whole.addLayout(buttons)
        self._buttons = buttons
        for text in (self.address, self.state, self.statistics, self.result):
            policy = text.sizePolicy()
            policy.setHorizontalPolicy(QSizePolicy.Policy.Expanding)
            text.setSizePolicy(policy)
        self._spinner.hide()
        self.result.hide()

    def show_store(self, store: StoreView, number: int, of: int, now: datetime) -> None:
        """``number`` of ``of`` in the order in which they are asked."""
        self.store, self._number, self._of = store, number, of
        own = store.origin is StoreOrigin.USER
        self._sign.show_store(store)
        self.address.setText(short_address(store.multiaddr))
        set_tip(self.address, store.multiaddr)
        self.state.setText(breaking(store_state(store)))
        failed = store.enabled and store.health is StoreHealth.FAILED
        self.state.recolour("danger" if failed else "ink2")
        statistics = store_statistics(store, now)
        self.statistics.setText(statistics)
        self.statistics.setVisible(bool(statistics))
        for part in (self.use, self.more):
            part.setVisible(own)
        self.keep.setVisible(not own)
        self.use.setChecked(store.enabled)
        self.up.setEnabled(number > 1)
        self.down.setEnabled(number < of)
        if store.test is not None and not self._spinner.isVisibleTo(self):
            self._show_result(store.test)
        self._name()

    def show_testing(self) -> None:
        self.result.setText(tr("Testing…"))
        self.result.recolour("ink2")
        self.result.show()
        self._spinner.show()
        self.test.setEnabled(False)
        self._name()

    def show_test(self, test: StoreTestView | None, problem: str = "") -> None:
        """What came of it; ``problem``: there was no test."""
        self._spinner.hide()
        self.test.setEnabled(True)
        if test is not None:
            self._show_result(test)
        else:
            self.result.setText(breaking(problem))
            self.result.recolour("danger")
        self._name()

    def _show_result(self, test: StoreTestView) -> None:
        self.result.setText(breaking(test_words(test)))
        self.result.recolour("danger" if test.problem else "ink2")
        self.result.show()

    def _name(self) -> None:
        said = [self.address.whole_text(), self.state.text(), self.statistics.text()]
        said.append(self.result.text() if self.result.isVisibleTo(self) else "")
        words = ". ".join(part.rstrip(".") for part in said if part).replace("\u200b", "")
        name = tr("Store {words}")
        if self.store.origin is StoreOrigin.USER:
            name = tr("Store {number} of {all}: {words}")
        self.setAccessibleName(name.format(number=self._number, all=self._of, words=words))

    # --- keys -------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        own = self.store.origin is StoreOrigin.USER
        match Qt.Key(event.key()):
            case Qt.Key.Key_Up if alt and own:
                self._move(-1)
            case Qt.Key.Key_Down if alt and own:
                self._move(1)
            case Qt.Key.Key_Delete if own:
                self.remove_requested.emit(self.store.multiaddr)
            case Qt.Key.Key_Up:
                self.focusPreviousChild()
            case Qt.Key.Key_Down:
                self.focusNextChild()
            case _:
                super().keyPressEvent(event)

    def _move(self, by: int) -> None:
        if 1 <= self._number + by <= self._of:
            self.move_requested.emit(self.store.multiaddr, by)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.store.multiaddr)

    # --- looks ------------------------------------------------------------------------------------

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.hasFocus():
            return
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.focus, theme.focus_width))
        half = theme.focus_width / 2
        radius = theme.metrics.gap(Radius.ROW)
        painter.drawRoundedRect(
            QRectF(self.rect()).adjusted(half, half, -half, -half), radius, radius
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """In a narrow window the buttons stand below the words."""
        directions = QBoxLayout.Direction
        narrow = self.width() / current_theme().metrics.factor < _COLUMN_BELOW
        wanted = directions.TopToBottom if narrow else directions.LeftToRight
        if self._whole.direction() != wanted:
            self._whole.setDirection(wanted)
            beside = Qt.AlignmentFlag.AlignVCenter
            self._whole.setAlignment(
                self._buttons, Qt.AlignmentFlag.AlignLeft if narrow else beside
            )

    def _dress(self) -> None:
        gap = current_theme().metrics.gap
        self._whole.setContentsMargins(gap(12), gap(9), gap(10), gap(9))
        self._whole.setSpacing(gap(8))
        self._fit()
