"""Which emoji this system can draw, and how to draw them without asking the font each time.

A font has the emoji of the Unicode version that was current when it was made.  Whether it has a
single character can be asked; whether it joins a sequence to one picture cannot.  So the newest
version of which it has every single character is taken for the font's version.
"""

from collections import OrderedDict
from functools import cache
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPixmap

from ui.emoji.table import EmojiTable, emoji_groups
from ui.theme import current_theme

_KEPT_PICTURES: Final = 256
"""Some pages of the picker and a screen of messages."""
_GLYPH_SHARE: Final = 0.78
"""Of the square that an emoji is drawn into: coloured fonts draw higher than their size."""


@cache
def emoji_table() -> EmojiTable:
    """What can be drawn here; everything if nothing can, shown by name (``has_emoji_font``)."""
    groups = emoji_groups()
    return EmojiTable(groups, _fonts_version()) if has_emoji_font() else EmojiTable(groups)


def _metrics() -> QFontMetricsF:
    return QFontMetricsF(current_theme().type.body.font)


@cache
def has_emoji_font() -> bool:
    return _metrics().inFontUcs4(0x1F600)


def _fonts_version() -> float:
    metrics = _metrics()
    complete: dict[float, bool] = {}
    for group in emoji_groups():
        for emoji in group.emoji:
            if len(emoji.text) == 1:
                drawn = metrics.inFontUcs4(ord(emoji.text))
                complete[emoji.version] = complete.get(emoji.version, True) and drawn
    return max((version for version, drawn in complete.items() if drawn), default=0)


_Key = tuple[str, int, float, str]
"""The emoji, its side, the screen's scale and the ink that a font without colours gets."""
pictures: OrderedDict[_Key, QPixmap] = OrderedDict()
"""What was drawn, the last used at the end."""


def _key(text: str, side: int, scale: float) -> _Key:
    return text, side, scale, current_theme().ink.name()


def _drawn(text: str, side: int, scale: float) -> QPixmap:
    picture = QPixmap(round(side * scale), round(side * scale))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    font = QFont(current_theme().type.body.font)
    font.setPixelSize(max(1, round(side * _GLYPH_SHARE)))
    painter = QPainter(picture)
    painter.setFont(font)
    painter.setPen(current_theme().ink)
    painter.drawText(QRectF(0, 0, side, side), Qt.AlignmentFlag.AlignCenter, text)
    painter.end()
    return picture


def is_drawn(text: str, side: int, scale: float) -> bool:
    """Whether ``draw_emoji`` has it ready, so that drawing it costs next to nothing."""
    return _key(text, side, scale) in pictures


def draw_emoji(painter: QPainter, box: QRectF, text: str) -> None:
    """In the middle of ``box``, as large as fits."""
    side = round(min(box.width(), box.height()))
    scale = painter.device().devicePixelRatioF()
    key = _key(text, side, scale)
    if key not in pictures:
        pictures[key] = _drawn(text, side, scale)
        if len(pictures) > _KEPT_PICTURES:
            pictures.popitem(last=False)
    pictures.move_to_end(key)
    at = box.center()
    painter.drawPixmap(round(at.x() - side / 2), round(at.y() - side / 2), pictures[key])
