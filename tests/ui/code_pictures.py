"""Pictures with QR codes in them, as people send them: straight, turned, small, badly taken."""

from random import Random

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QTransform
from PySide6.QtTest import QTest

from ui.qr import QrCode

SMOOTH = Qt.TransformationMode.SmoothTransformation
KEEP = Qt.AspectRatioMode.KeepAspectRatio
WHITE = QColor(Qt.GlobalColor.white)
DESK = QColor("#b9a58c")


def shown_code(text: str, side: int = 264) -> QImage:
    """The widget of the window, as a screenshot of it."""
    code = QrCode(text, "Code", side=side)
    code.resize(code.sizeHint())
    image = code.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    code.deleteLater()
    QTest.qWait(0)
    return image


def blank(size: QSize, colour: QColor = WHITE) -> QImage:
    image = QImage(size, QImage.Format.Format_RGB32)
    image.fill(colour)
    return image


def framed(image: QImage, margin: int, colour: QColor = WHITE) -> QImage:
    """Somewhere within something larger."""
    whole = blank(image.size() + QSize(2 * margin, 2 * margin), colour)
    painter = QPainter(whole)
    painter.drawImage(margin, margin, image)
    painter.end()
    return whole


def side_by_side(*images: QImage) -> QImage:
    edge = max(max(image.width(), image.height()) for image in images) + 40
    whole = blank(QSize(edge * len(images), edge))
    painter = QPainter(whole)
    for place, image in enumerate(images):
        painter.drawImage(place * edge + 20, 20, image)
    painter.end()
    return whole


def turned(image: QImage, degrees: float) -> QImage:
    code = framed(image, 8)
    spun = code.transformed(QTransform().rotate(degrees), SMOOTH)
    return framed(spun, 30, WHITE)


def photographed(image: QImage, seed: int = 1) -> QImage:
    """Askew on a desk, seen at an angle, unevenly lit, grainy, and pressed into a JPEG."""
    tilt = QTransform()
    tilt.rotate(11)
    tilt.shear(0.06, -0.04)
    tilt = tilt * QTransform(1, 0, 0.00008, 0, 1, 0.00012, 0, 0, 1)
    large = framed(image.scaled(image.size() * 2, KEEP, SMOOTH), 16)
    shot = large.transformed(tilt, SMOOTH).convertToFormat(QImage.Format.Format_ARGB32)
    whole = blank(shot.size() + QSize(160, 160), DESK)
    painter = QPainter(whole)
    painter.drawImage(80, 80, shot)
    painter.fillRect(whole.rect(), QColor(0, 0, 30, 60))
    painter.fillRect(0, 0, whole.width() // 2, whole.height(), QColor(255, 240, 200, 40))
    grain = Random(seed)
    for _ in range(whole.width() * whole.height() // 40):
        x, y = grain.randrange(whole.width()), grain.randrange(whole.height())
        painter.fillRect(x, y, 1, 1, QColor.fromHsv(0, 0, grain.randrange(256)))
    painter.end()
    taken = QImage.fromData(encoded(whole, "JPEG", 55))
    assert not taken.isNull()
    return taken


def encoded(image: QImage, format_: str = "PNG", quality: int = -1) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert image.save(buffer, format_, quality)  # type: ignore[call-overload]
    return bytes(data.data())
