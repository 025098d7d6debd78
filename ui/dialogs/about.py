"""How it works: the marks, what they mean, and which version this is."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.beads import Bead
from ui.connection_words import key_words
from ui.controls import KeyCap, Text
from ui.dialogs.sheet import ScrolledPart, Sheet
from ui.glyphs import GLYPH_SIZE, Glyph, draw_glyph
from ui.theme import current_theme
from ui.translate import tr


def _states() -> tuple[tuple[Glyph, str], ...]:
    return (
        (Glyph.SAVED, tr("Saved on this device. It waits for the network and survives a restart.")),
        (Glyph.SENT, tr("Sent. A relay or a service took it; nobody is known to hold it yet.")),
        (
            Glyph.MAYBE,
            tr("Some members hold it, or may hold it. The number counts who surely does."),
        ),
        (Glyph.HELD, tr("Every other member holds it; to one person: delivered.")),
        (Glyph.FAILED, tr("Not sent. The reason stands below, with a way to send it again.")),
    )


def _beads() -> tuple[tuple[Bead, str], ...]:
    return (
        (Bead.HERE, tr("A message that is here.")),
        (Bead.MISSING, tr("Missing: others have it, this device does not. It is being asked for.")),
        (Bead.LATE, tr("Arrived late, and was put where it belongs.")),
        (Bead.ONLY_HERE, tr("Only on this device so far.")),
        (Bead.FAILED, tr("Not sent.")),
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
            tr("How it works"),
            tr(
                "Everyone in a group ends up with the same messages in the same order, and every"
                " message shows who holds it."
            ),
            parent=parent,
        )
        content = QWidget()
        whole = QVBoxLayout(content)
        whole.setContentsMargins(0, 0, 8, 0)
        whole.setSpacing(14)
        whole.addLayout(_table(tr("Your messages"), [(_Mark(m), w) for m, w in _states()]))
        whole.addLayout(_table(tr("The beads"), [(_Mark(m), w) for m, w in _beads()]))
        keys = QHBoxLayout()
        keys.setSpacing(8)
        keys.addWidget(KeyCap(tr("Ctrl /")))
        keys.addWidget(Text(tr("shows all keys."), face="label", colour="ink2"))
        keys.addStretch(1)
        whole.addLayout(keys)
        if refused:
            whole.addWidget(Text(tr("Refused or set aside here"), face="label", strong=True))
            for sentence in refused:
                whole.addWidget(Text(sentence, face="label", colour="ink2", wrap=True))
        kept = tr("Messages are kept encrypted on this device.")
        if key_storage:
            kept += f" {key_words(key_storage)}"
        whole.addWidget(Text(kept, face="label", colour="ink2", wrap=True))
        whole.addWidget(
            Text(tr("Causerie {version}").format(version=version), face="caption", colour="ink3")
        )
        area = ScrolledPart(content, tr("How it works"))
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
