"""Paints the pictures that the people of docs/images send and wear.

They are drawn by code, so no picture of somebody else lies in the repository, and each run of
``scripts.screenshots`` has the same ones.  A QApplication must exist.
"""

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, Qt
from PySide6.QtGui import QColor, QImage, QImageWriter, QLinearGradient, QPainter, QPen

from ui.pictures import encoded_picture


def lighthouse(sea: str, sky: str) -> bytes:
    """A profile picture."""
    image = QImage(192, 192, QImage.Format.Format_RGB32)
    image.fill(QColor(sky))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor("#fff3d6"))
    painter.drawEllipse(118, 30, 40, 40)
    painter.setBrush(QColor("#ffffff"))
    painter.drawPolygon([QPoint(66, 140), QPoint(76, 58), QPoint(104, 58), QPoint(114, 140)])
    painter.setBrush(QColor("#b0472b"))
    painter.drawRect(74, 84, 32, 18)
    painter.drawRect(74, 40, 32, 18)
    painter.setBrush(QColor(sea))
    painter.drawRect(0, 134, 192, 58)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not QImageWriter(buffer, QByteArray(b"png")).write(image):
        raise OSError("a picture cannot be written")
    return bytes(data.data())


def pier_photo(width: int = 560, height: int = 250) -> bytes:
    """A photo of the new sensor, as far as a painter gets."""
    image = QImage(width, height, QImage.Format.Format_RGB32)
    sky = QLinearGradient(0, 0, 0, height)
    sky.setColorAt(0, QColor("#7fb2d6"))
    sky.setColorAt(0.55, QColor("#f4d9b4"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(image.rect(), sky)
    painter.setPen(Qt.PenStyle.NoPen)
    water = int(height * 0.56)
    painter.fillRect(0, water, width, height - water, QColor("#3b6ea5"))
    painter.setBrush(QColor("#5b8fc4"))
    for number in range(9):
        painter.drawRect(30 + number * 61, water + 14 + number * 37 % 80, 44, 3)
    painter.setBrush(QColor("#6d4a35"))
    for post in range(5):
        painter.drawRect(20 + post * 66, water - 34, 12, 100)
    painter.drawRect(0, water - 46, 330, 14)
    painter.setBrush(QColor("#d9dfe2"))
    painter.drawRoundedRect(262, water - 92, 46, 46, 6, 6)
    painter.setBrush(QColor("#0b6b66"))
    painter.drawEllipse(278, water - 76, 14, 14)
    painter.setPen(QPen(QColor("#2b2b2b"), 3))
    painter.drawLine(285, water - 46, 285, water + 60)
    painter.end()
    return encoded_picture(image, "JPEG", 88)
