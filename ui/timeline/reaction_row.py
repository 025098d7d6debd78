"""The reactions that are given most, side by side in a menu; all other emoji are behind the last.

Up and Down lead through the menu as ever, and Left and Right along the row.  Qt's own entries can
only stand below one another, so the row is one entry that has buttons.
"""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QPushButton, QWidget, QWidgetAction

from engine.core.emoji import without_selectors
from engine.events import MessageView
from ui.controls import pressed_by_enter
from ui.icons import draw_icon
from ui.menu import Menu
from ui.theme import Radius, current_theme
from ui.timeline.abilities import QUICK_REACTIONS
from ui.timeline.requests import TimelineRequests
from ui.tips import set_tip
from ui.translate import tr

_SIDE, _GLYPH = 34, 20
_IN_A_ROW = len(QUICK_REACTIONS) + 1


class ReactionButton(QPushButton):
    """An emoji, or without one the way to all of them."""

    def __init__(self, emoji: str, *, mine: bool, step: Callable[[int], None]) -> None:
        super().__init__()
        self.emoji = emoji
        self._step = step
        self.setAccessibleName(emoji or tr("Other emoji…"))
        if emoji:
            self.setCheckable(True)
            self.setChecked(mine)
        else:
            set_tip(self, tr("Other emoji…"))
        side = current_theme().metrics.scaled(_SIDE)
        self.setFixedSize(QSize(side, side))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        back = Qt.Key.Key_Right if self.isRightToLeft() else Qt.Key.Key_Left
        if event.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self._step(-1 if event.key() == back else 1)
        elif event.key() in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            event.ignore()  # They are the menu's; a button would hand the focus on.
        elif not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        radius = theme.metrics.gap(Radius.BUTTON)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isChecked():
            painter.setBrush(theme.accentSoft)
            painter.setPen(QPen(theme.accent, 1))
        elif self.underMouse() or self.hasFocus():
            painter.setBrush(theme.selected)
        painter.drawRoundedRect(box, radius, radius)
        side = theme.metrics.scaled(_GLYPH)
        glyph = QRectF(0, 0, side, side)
        glyph.moveCenter(box.center())
        if self.emoji:
            font = QFont(theme.type.body.font)
            font.setPixelSize(side)
            painter.setFont(font)
            painter.setPen(theme.ink)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.emoji)
        else:
            draw_icon(painter, "plus", glyph, theme.ink2)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, radius, radius)


class ReactionRow(QWidgetAction):
    def __init__(self, menu: Menu, message: MessageView, requests: TimelineRequests) -> None:
        super().__init__(menu)
        self._menu = menu
        mine = {without_selectors(r.emoji): r.emoji for r in message.reactions if r.mine}
        quick = {without_selectors(emoji) for emoji in QUICK_REACTIONS}
        others = sorted(emoji for key, emoji in mine.items() if key not in quick)
        self.buttons = [
            ReactionButton(e, mine=without_selectors(e) in mine, step=self._step)
            for e in (*QUICK_REACTIONS, "", *others)
        ]
        row = QWidget()
        grid = QGridLayout(row)
        grid.setContentsMargins(2, 2, 2, 2)
        grid.setSpacing(2)
        for at, button in enumerate(self.buttons):
            grid.addWidget(button, at // _IN_A_ROW, at % _IN_A_ROW)
            if button.emoji:
                button.clicked.connect(
                    partial(self._react, partial(requests.react, message, button.emoji))
                )
            else:
                button.clicked.connect(partial(self._pick, requests, message))
        grid.setColumnStretch(_IN_A_ROW, 1)
        row.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        row.setFocusProxy(self.buttons[0])
        self.setText(tr("React"))
        self.setDefaultWidget(row)

    def _step(self, by: int) -> None:
        at = next(i for i, button in enumerate(self.buttons) if button.hasFocus())
        self.buttons[(at + by) % len(self.buttons)].setFocus(Qt.FocusReason.TabFocusReason)

    def _react(self, react: Callable[[], None], _checked: bool = False) -> None:
        self._menu.close()
        react()

    def _pick(
        self, requests: TimelineRequests, message: MessageView, _checked: bool = False
    ) -> None:
        self._menu.close()
        requests.pick_reaction(message)
