"""A code says its text, black on white however the window looks, and is made only when shown."""

import subprocess
import sys

import pytest
import segno
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from ui.qr import QrCode, qr_rows

TEXT = "causerie:contact/" + "Qm3-x_9Zk2LpT7vR" * 20


def test_the_modules_are_those_of_the_text() -> None:
    expected = tuple(bytes(row) for row in segno.make_qr(TEXT, error="l").matrix)
    assert qr_rows(TEXT) == expected
    assert set(b"".join(expected)) == {0, 1}


def test_what_no_code_can_hold_is_no_code(qtbot: QtBot) -> None:
    assert qr_rows("x" * 5000) == ()
    code = QrCode("x" * 5000, "Code", side=200)
    qtbot.addWidget(code)
    assert code.sizeHint().isEmpty()
    code.grab()


def test_what_is_drawn_are_the_modules_in_whole_pixels_with_a_quiet_edge(qtbot: QtBot) -> None:
    code = QrCode(TEXT, "Code", side=264)
    qtbot.addWidget(code)
    code.resize(code.sizeHint())
    rows = qr_rows(TEXT)
    modules = len(rows) + 8
    assert code.width() == code.height()
    assert code.width() % modules == 0
    size = code.width() // modules
    image = code.grab().toImage()
    for y, row in enumerate(rows):
        for x, black in enumerate(row):
            at = ((x + 4) * size + size // 2, (y + 4) * size + size // 2)
            assert image.pixelColor(*at) == QColor("black" if black else "white")
    for place in range(size * 2, code.width() - size * 2):
        assert image.pixelColor(place, size * 2) == QColor("white")


@pytest.mark.parametrize("module", ["ui.app"])
def test_the_window_starts_without_the_library(module: str) -> None:
    program = f"import sys, {module}; sys.exit('segno' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
