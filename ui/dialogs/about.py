"""How it works: the marks, what they mean, the keys, and which version this is."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.beads import Bead
from ui.controls import KeyCap, Text
from ui.dialogs.group import scrolling
from ui.dialogs.sheet import Sheet
from ui.glyphs import GLYPH_SIZE, Glyph, draw_glyph
from ui.theme import current_theme
from ui.words import key_words

_STATES = (
    (Glyph.SAVED, "Saved on this device. It waits for the network and survives a restart."),
    (Glyph.SENT, "Sent. A relay or a service took it; nobody is known to hold it yet."),
    (Glyph.MAYBE, "Some members hold it, or may hold it. The number counts who surely does."),
    (Glyph.HELD, "Every other member holds it; to one person: delivered."),
    (Glyph.FAILED, "Not sent. The reason stands below, with a way to send it again."),
)
_BEADS = (
    (Bead.HERE, "A message that is here."),
    (Bead.MISSING, "Missing: others have it, this device does not. It is being asked for."),
    (Bead.LATE, "Arrived late, and was put where it belongs."),
    (Bead.ONLY_HERE, "Only on this device so far."),
    (Bead.FAILED, "Not sent."),
)
_KEYS = (
    ("Ctrl P", "Add a person"),
    ("Ctrl N", "New group"),
    ("Ctrl J", "Join with an invitation"),
    ("Ctrl K", "Search people and groups"),
    ("Alt ↑ ↓", "Conversation above or below"),
    ("Enter", "Send; with Shift a new line"),
    ("F6", "To the next area"),
    ("Ctrl + - 0", "Larger, smaller, normal text"),
    ("F1", "This page"),
    ("Ctrl Q", "Quit"),
)


class _Mark(QWidget):
    def __init__(self, mark: Glyph | Bead) -> None:
        super().__init__()
        self._mark = mark
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        scaled = current_theme().metrics.scaled
        return QSize(scaled(24), scaled(20))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QRectF(self.rect()).center()
        if isinstance(self._mark, Glyph):
            factor = theme.metrics.factor * 1.15
            half = QPointF(GLYPH_SIZE.width() / 2, GLYPH_SIZE.height() / 2) * factor
            colour = theme.danger if self._mark is Glyph.FAILED else theme.ink2
            draw_glyph(painter, self._mark, centre - half, colour, scale=factor)
            return
        fills = {Bead.HERE: theme.accent, Bead.LATE: theme.late}
        rings = {Bead.ONLY_HERE: theme.accent, Bead.MISSING: theme.warnDot}
        radius = theme.metrics.scaled(10) / 2
        if self._mark in fills:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fills[self._mark])
            painter.drawEllipse(centre, radius, radius)
        else:
            painter.setPen(QPen(rings.get(self._mark, theme.danger), 2))
            painter.drawEllipse(centre, radius - 1, radius - 1)


class HowItWorks(Sheet):
    def __init__(
        self,
        version: str,
        key_storage: str,
        parent: QWidget | None = None,
        *,
        refused: Sequence[str] = (),
    ) -> None:
        """``refused``: what was refused or set aside here, in sentences."""
        super().__init__(
            "How it works",
            "Everyone in a group ends up with the same messages in the same order, and every"
            " message shows who holds it.",
            parent=parent,
        )
        content = QWidget()
        whole = QVBoxLayout(content)
        whole.setContentsMargins(0, 0, 8, 0)
        whole.setSpacing(14)
        whole.addLayout(_table("Your messages", [(_Mark(m), w) for m, w in _STATES]))
        whole.addLayout(_table("The beads", [(_Mark(m), w) for m, w in _BEADS]))
        whole.addLayout(_table("Keys", [(KeyCap(k), w) for k, w in _KEYS]))
        if refused:
            whole.addWidget(Text("Refused or set aside here", face="label", strong=True))
            for sentence in refused:
                whole.addWidget(Text(sentence, face="label", colour="ink2", wrap=True))
        kept = "Messages are kept encrypted on this device."
        if key_storage:
            kept += f" {key_words(key_storage)}"
        whole.addWidget(Text(kept, face="label", colour="ink2", wrap=True))
        whole.addWidget(Text(f"Causerie {version}", face="caption", colour="ink3"))
        area = scrolling(content, "How it works")
        area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.body.addWidget(area)
        self.add_close()


def _table(title: str, rows: list[tuple[QWidget, str]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(10)
    grid.setVerticalSpacing(5)
    grid.setColumnStretch(1, 1)
    heading = Text(title, face="label", colour="ink", strong=True)
    grid.addWidget(heading, 0, 0, 1, 2)
    for line, (mark, words) in enumerate(rows, start=1):
        grid.addWidget(mark, line, 0, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        grid.addWidget(Text(words, face="label", colour="ink2", wrap=True), line, 1)
    return grid
