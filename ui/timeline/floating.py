"""The two buttons over the timeline: "3 earlier messages arrived", and to the newest message.

They are real buttons, so keyboard and screen reader reach them.  They paint themselves, because a
style sheet cannot draw a pill with a shadow.
"""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from ui.icons import draw_icon
from ui.mirrored import draw_text, mirror_widget, mirrored_point
from ui.motion import Movement
from ui.theme import Theme, current_theme
from ui.timeline.buttons import advance, strong
from ui.timeline.row_words import late_words
from ui.tips import set_tip
from ui.translate import tr

_SHADOW = 3


def draw_shadow(painter: QPainter, rect: QRectF, radius: float, theme: Theme) -> None:
    """Three stacked outlines of falling strength; nothing in high contrast."""
    if theme.is_high_contrast:
        return
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for step in range(_SHADOW):
        colour = QColor(theme.shadow)
        colour.setAlphaF(theme.shadow.alphaF() * (1 - step / _SHADOW))
        painter.setPen(QPen(colour, 1))
        ring = rect.adjusted(-step, -step + 1, step, step + 1)
        painter.drawRoundedRect(ring, radius + step, radius + step)


class _Floating(QAbstractButton):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._fade = Movement(self)
        self._fade.changed.connect(self.update)
        self.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fade.appear()

    def _painter(self) -> QPainter:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(self._fade.value)
        return painter

    def _body(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_SHADOW, _SHADOW, -_SHADOW, -_SHADOW - 1)

    def _draw_focus(self, painter: QPainter, radius: float) -> None:
        if self.hasFocus():
            theme = current_theme()
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(self._body(), radius, radius)


class LateChip(_Floating):
    """Leads to the first of the messages that arrived late; its cross or Escape dismisses it."""

    dismissed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count = 0
        self._narrow = False
        self.setAccessibleName(late_words(0))

    @property
    def count(self) -> int:
        return self._count

    def show_count(self, count: int, *, narrow: bool) -> None:
        """``narrow``: a bar over the whole width instead of a floating pill."""
        if count == self._count == 0:
            return
        self._count, self._narrow = count, narrow
        self.setText(late_words(count))
        self.setAccessibleName(late_words(count))
        self.setVisible(count > 0)
        self.resize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        theme = current_theme()
        height = theme.metrics.scaled(32)
        if self._narrow:
            parent = self.parentWidget()
            return QSize(0 if parent is None else parent.width(), height)
        words = advance(strong(theme.type.small), self.text())
        width = words + 12 + 8 + 7 + 2 * theme.metrics.scaled(16) + 6
        return QSize(int(width) + 2 * _SHADOW, height + 2 * _SHADOW + 1)

    def _body(self) -> QRectF:
        return QRectF(self.rect()) if self._narrow else super()._body()

    def _cross(self) -> QRectF:
        side = current_theme().metrics.scaled(16)
        body = self._body()
        return QRectF(body.right() - 8 - side, body.center().y() - side / 2, side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter, body = current_theme(), self._painter(), self._body()
        mirror_widget(painter, self)
        radius = 0 if self._narrow else body.height() / 2
        if not self._narrow:
            draw_shadow(painter, body, radius, theme)
        painter.setPen(QPen(theme.lateLine, 1))
        painter.setBrush(theme.lateBg)
        painter.drawRoundedRect(body.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        font, side = strong(theme.type.small), theme.metrics.scaled(16)
        words = advance(font, self.text())
        left = body.center().x() - (words + 7 + side) / 2 if self._narrow else body.left() + 12
        painter.setFont(font)
        painter.setPen(theme.late)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        text = QRectF(left, body.top(), words + 2, body.height())
        draw_text(painter, text, int(flags), self.text())
        pen = QPen(theme.late, 1.6 * theme.metrics.factor)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        draw_arrow(painter, QRectF(text.right() + 6, body.center().y() - side / 2, side, side), -1)
        draw_icon(painter, "close", self._cross().adjusted(1, 1, -1, -1), theme.late)
        self._draw_focus(painter, radius)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._cross().adjusted(-4, -8, 8, 8).contains(mirrored_point(event.position(), self)):
            self.setDown(False)
            self.dismissed.emit()
            return
        super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape:
                self.dismissed.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.click()
            case _:
                super().keyPressEvent(event)


class JumpButton(_Floating):
    """To the newest message; carries how many below are unread."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._unread = 0
        self.show_unread(0)

    @property
    def unread(self) -> int:
        return self._unread

    def show_unread(self, unread: int) -> None:
        if unread == self._unread and self.size() == self.sizeHint():
            return
        self._unread = unread
        self.setAccessibleName(
            tr("To the newest message, %n unread", "To the newest message, %n unread", unread)
            if unread
            else tr("To the newest message")
        )
        set_tip(self, self.accessibleName())
        self.resize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(38)
        return QSize(side + 2 * _SHADOW, side + 2 * _SHADOW + self._badge_height() // 2)

    def _badge_height(self) -> int:
        return current_theme().metrics.scaled(20)

    def _body(self) -> QRectF:
        side = current_theme().metrics.scaled(38)
        return QRectF(_SHADOW, self.height() - _SHADOW - side - 1, side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter, body = current_theme(), self._painter(), self._body()
        mirror_widget(painter, self)
        radius = body.height() / 2
        draw_shadow(painter, body, radius, theme)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.hover if self.underMouse() else theme.surface)
        painter.drawEllipse(body.adjusted(0.5, 0.5, -0.5, -0.5))
        pen = QPen(theme.ink2, 1.6 * theme.metrics.factor)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        side = theme.metrics.scaled(20)
        middle = body.center() - QPointF(side / 2, side / 2)
        draw_arrow(painter, QRectF(middle.x(), middle.y(), side, side), 1)
        if self._unread:
            self._draw_badge(painter, theme, body)
        self._draw_focus(painter, radius)

    def _draw_badge(self, painter: QPainter, theme: Theme, body: QRectF) -> None:
        words = str(self._unread) if self._unread < 1000 else "999+"  # noqa: PLR2004 - fits
        font, height = strong(theme.type.micro), self._badge_height()
        width = max(float(height), advance(font, words) + 10)
        rect = QRectF(body.center().x() - width / 2, 0, width, height)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.accent)
        painter.drawRoundedRect(rect, height / 2, height / 2)
        painter.setFont(font)
        painter.setPen(theme.onAccent)
        draw_text(painter, rect, int(Qt.AlignmentFlag.AlignCenter), words)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


def draw_arrow(painter: QPainter, rect: QRectF, direction: int) -> None:
    """An arrow on the icons' 20 grid with the painter's pen; ``direction`` 1 is down, -1 up."""
    painter.save()
    painter.translate(rect.center())
    painter.scale(rect.width() / 20, direction * rect.height() / 20)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawLine(QPointF(0, -5.5), QPointF(0, 5.5))
    painter.drawPolyline([QPointF(-4.5, 1), QPointF(0, 5.5), QPointF(4.5, 1)])
    painter.restore()
