"""The one shadow there is, under what floats: menus, tool tips, sheets, bars above the timeline.

Stacked outlines of falling strength: no blur is computed, and it is as sharp at every scale.  High
contrast has none.
"""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.theme import SHADOW_REACH, Theme

_DROP = 2
_LIGHT, _DARK = (QColor(16, 34, 32), 0.10), (QColor(0, 0, 0), 0.45)


def draw_shadow(painter: QPainter, box: QRectF, radius: float, theme: Theme) -> None:
    """Around ``box``, which is painted over its inner part afterwards."""
    if theme.is_high_contrast:
        return
    colour, strength = _DARK if theme.is_dark else _LIGHT
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for step in range(1, SHADOW_REACH + 1):
        faded = QColor(colour)
        faded.setAlphaF(strength * (1 - (step - 1) / SHADOW_REACH) ** 2)
        painter.setPen(QPen(faded, 1))
        grow = step - 0.5
        around = box.adjusted(-grow, -grow, grow, grow).translated(0, _DROP)
        painter.drawRoundedRect(around, radius + grow, radius + grow)
    painter.restore()
