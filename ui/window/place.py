"""Where the window stood and how wide its list was, kept from one start to the next."""

import base64

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow

from ui.settings import UiSettings
from ui.window.layout import LIST_WIDTH, Body


def restore_place(window: QMainWindow, body: Body, settings: UiSettings) -> None:
    stored = settings.get("geometry") or ""
    try:
        geometry = base64.b64decode(stored, validate=True)
    except ValueError:
        geometry = b""
    if geometry:
        window.restoreGeometry(QByteArray(geometry))
    width = settings.get("list_width") or ""
    body.set_list_width(int(width) if width.isdecimal() else LIST_WIDTH)


def keep_place(window: QMainWindow, settings: UiSettings) -> None:
    packed = base64.b64encode(window.saveGeometry().data()).decode("ascii")
    settings.put("geometry", packed)
