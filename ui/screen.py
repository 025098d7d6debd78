"""Takes pictures of the screens, at a click, to look for a QR code; nothing is kept.

X11 and Windows allow it.  macOS gives only the bare desktop until its settings allow the program to
record the screen.  Wayland allows it only after a dialog of the desktop; the window says so, and
what works everywhere: paste a screenshot.
"""

import sys
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage

from ui.pictures import PictureError
from ui.translate import tr

GrabScreens = Callable[[], list[QImage]]
"""On Qt's own thread.  Raises PictureError, whose text is a sentence for the user."""

_SAMPLES = 24


def grab_screens() -> list[QImage]:
    if QGuiApplication.platformName().startswith("wayland"):
        raise PictureError(
            tr(
                "This desktop (Wayland) lets no program read the screen. "
                "Make a screenshot and paste it here."
            )
        )
    grabbed = [screen.grabWindow(0).toImage() for screen in QGuiApplication.screens()]
    seen = [image for image in grabbed if not _is_blank(image)]
    if not seen:
        raise PictureError(
            tr(
                "This desktop does not show Causerie what is on it. "
                "Make a screenshot and paste it here."
            )
        )
    return seen


def nothing_found_words(platform: str = sys.platform) -> str:
    words = tr("There is no QR code on the screen that can be read.")
    if platform == "darwin":
        allowing = tr(
            "Causerie sees other windows only if System Settings, Privacy, Screen Recording"
            " allows it."
        )
        words = f"{words} {allowing}"
    return words


def _is_blank(image: QImage) -> bool:
    """One colour all over: what a refusal looks like where it is not said."""
    if image.isNull():
        return True
    sample = image.scaled(_SAMPLES, _SAMPLES, mode=Qt.TransformationMode.FastTransformation)
    first = sample.pixel(0, 0)
    places = ((x, y) for x in range(_SAMPLES) for y in range(_SAMPLES))
    return all(sample.pixel(x, y) == first for x, y in places)
