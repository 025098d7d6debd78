"""The strip at the foot says how the connection stands, and why, where there is room."""

from PySide6.QtWidgets import QApplication

from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionRole, ConnectionView
from ui.connection_words import connection_line, connection_reason, shown_level
from ui.controls import ElidedText
from ui.window.strip import StatusStrip


def test_the_strip_names_service_nodes_and_why_it_is_not_well(qapp: QApplication) -> None:
    del qapp
    poor = ConnectionView(
        level=ConnectionLevel.MINIMAL,
        peers=1,
        reason=ConnectionReason.ONE_SERVICE_NODE,
        bytes_in=0,
        bytes_out=0,
        role=ConnectionRole.EDGE,
    )
    assert shown_level(poor) is ConnectionLevel.MINIMAL
    assert connection_line(poor) == "Limited, 1 service node"
    assert connection_reason(poor) == "Everything depends on one service node."
    strip = StatusStrip()
    strip.resize(4_000, 30)  # Wide enough for letters of any size that a test before this chose.
    strip.show_connection(poor)
    (reason,) = [
        text
        for text in strip.findChildren(ElidedText)
        if text.whole_text() == "Everything depends on one service node."
    ]
    assert not reason.isHidden()
    strip.resize(300, 30)
    strip.show_connection(poor)
    assert reason.isHidden()
