"""The first window, while a profile of an old version is carried over to this one.

It shows the progress.  Closing it stops the work.
"""

from PySide6.QtCore import Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from ui.controls import Area, Button, Text
from ui.icons import app_icon
from ui.progress_line import ProgressLine
from ui.theme import current_theme
from ui.translate import tr

_WIDTH = 440
_EDGE, _GAP = 24, 10


class CarryingOverWindow(Area):
    closed = Signal()
    """By the user: to be stopped."""

    def __init__(self, *, is_salvage: bool = False) -> None:
        """``is_salvage``: what can be read of a damaged database is copied."""
        super().__init__("canvas")
        self.setWindowTitle("Causerie")
        self.setWindowIcon(app_icon())
        title = tr("Your messages are carried over to this version")
        words = tr(
            "This happens once and may take minutes. You may stop it: nothing is lost, and"
            " the next start begins anew."
        )
        if is_salvage:
            title = tr("The database is being repaired")
            words = tr(
                "What can be read is copied; the damaged database stays as it is. You may stop it:"
                " nothing has changed then."
            )
        self.title = Text(title, face="heading", strong=True, wrap=True)
        self.words = Text(words, colour="ink2", wrap=True)
        self.line = ProgressLine(tr("Messages carried over"))
        self.percent = Text(face="label", colour="ink2")
        self.stop = Button(tr("Stop and quit"))
        self.stop.clicked.connect(self.close)
        self.show_share(0.0)
        self._lay_out()

    def _lay_out(self) -> None:
        foot = QHBoxLayout()
        foot.addWidget(self.percent)
        foot.addStretch(1)
        foot.addWidget(self.stop)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        whole.setSpacing(_GAP)
        for part in (self.title, self.words, self.line):
            whole.addWidget(part)
        whole.addStretch(1)
        whole.addLayout(foot)
        width = current_theme().metrics.scaled(_WIDTH)
        self.resize(width, whole.totalHeightForWidth(width))

    def show_share(self, share: float) -> None:
        self.line.show_fraction(share)
        self.percent.setText(tr("{percent} %").format(percent=int(share * 100)))

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit()
