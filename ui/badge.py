"""The pill that carries a count of unread messages."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from ui.mirrored import draw_text
from ui.theme import current_theme

_MOST_UNREAD = 999


def badge_text(number: int, most: int = _MOST_UNREAD) -> str:
    return str(number) if number <= most else f"{most}+"


def draw_mention_mark(painter: QPainter, right_middle: QPointF) -> float:
    """An "@" in a rounded square that ends at ``right_middle``; returns its width."""
    theme = current_theme()
    side = float(theme.metrics.scaled(20))
    box = QRectF(right_middle.x() - side, right_middle.y() - side / 2, side, side)
    painter.setPen(QPen(theme.accent, 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    radius = theme.metrics.gap(5)
    painter.drawRoundedRect(box.adjusted(0.75, 0.75, -0.75, -0.75), radius, radius)
    painter.setFont(QFont(theme.type.micro.strong()))
    painter.setPen(theme.accentInk)
    draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, "@")
    return side


def draw_badge(painter: QPainter, right_middle: QPointF, text: str, *, muted: bool) -> float:
    """A filled pill that ends at ``right_middle``; returns its width."""
    theme = current_theme()
    font = QFont(theme.type.micro.strong())
    height = float(theme.metrics.scaled(20))
    width = max(height, QFontMetricsF(font).horizontalAdvance(text) + theme.metrics.scaled(12))
    box = QRectF(right_middle.x() - width, right_middle.y() - height / 2, width, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.badgeMute if muted else theme.accent)
    painter.drawRoundedRect(box, height / 2, height / 2)
    painter.setFont(font)
    painter.setPen(theme.onMute if muted else theme.onAccent)
    draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, text)
    return width


def draw_unread_dot(painter: QPainter, right_middle: QPointF, *, muted: bool) -> float:
    """What the user marked as unread; ends at ``right_middle``; returns its width."""
    theme = current_theme()
    side = float(theme.metrics.scaled(12))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.badgeMute if muted else theme.accent)
    painter.drawEllipse(QRectF(right_middle.x() - side, right_middle.y() - side / 2, side, side))
    return side
