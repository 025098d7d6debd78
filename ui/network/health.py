"""Strips of past results: one sign for each query or request, oldest first, with words beside it.

A disc is complete, a ring with a dot left something out, a cross failed; so no colour is needed.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from engine.network_views import ServiceNodeView, ServiceResult, StorePast, StoreResult
from ui.controls import ElidedText, Text
from ui.foreign_text import breaking, one_line
from ui.history_words import short_address, store_state
from ui.mirrored import mirror_widget
from ui.problem_words import node_problem_words, sentence
from ui.regional import grouped
from ui.theme import current_theme, theme_changed
from ui.times import off_words
from ui.tips import set_tip
from ui.translate import tr

_CELL = 11


class Outcome(StrEnum):
    COMPLETE = "complete"
    DOUBTFUL = "doubtful"
    FAILED = "failed"


class ResultStrip(QWidget):
    """As many of the last results as there is room for."""

    def __init__(self) -> None:
        super().__init__()
        self._outcomes: tuple[Outcome, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def show_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        if self._outcomes != tuple(outcomes):
            self._outcomes = tuple(outcomes)
            self.update()

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(_CELL)
        return QSize(32 * side, side + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(4 * current_theme().metrics.scaled(_CELL), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        side = theme.metrics.scaled(_CELL)
        fitting = self._outcomes[-max(1, self.width() // side) :]
        for place, outcome in enumerate(fitting):
            box = QRectF(place * side, 1, side, side).adjusted(1.5, 1.5, -1.5, -1.5)
            _draw(painter, outcome, box)


def _draw(painter: QPainter, outcome: Outcome, box: QRectF) -> None:
    theme, centre, radius = current_theme(), box.center(), box.width() / 2
    match outcome:
        case Outcome.COMPLETE:
            painter.setPen(QPen(theme.ok, 1))
            painter.setBrush(theme.ok)
            painter.drawEllipse(centre, radius - 0.5, radius - 0.5)
        case Outcome.DOUBTFUL:
            painter.setPen(QPen(theme.warn, 1.6))
            painter.setBrush(theme.surface)
            painter.drawEllipse(centre, radius - 0.8, radius - 0.8)
            painter.setBrush(theme.warn)
            painter.drawEllipse(centre, 0.6, 0.6)
        case Outcome.FAILED:
            arm = radius - 0.5
            painter.setPen(QPen(theme.danger, 1.8))
            painter.drawLine(centre + QPointF(-arm, -arm), centre + QPointF(arm, arm))
            painter.drawLine(centre + QPointF(-arm, arm), centre + QPointF(arm, -arm))


class HealthLine(Struct, frozen=True, kw_only=True):
    """One Store or service node."""

    key: str
    name: str
    address: str
    """In full, for the tool tip."""
    state: str
    figures: str
    outcomes: tuple[Outcome, ...]


class HealthRow(QWidget):
    def __init__(self) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.name = ElidedText(face="label", strong=True)
        self.state = Text(face="small", colour="ink2", wrap=True)
        self.strip = ResultStrip()
        self.figures = Text(face="caption", colour="ink2", wrap=True)
        for part in (self.name, self.state, self.strip, self.figures):
            column.addWidget(part)

    def show_line(self, line: HealthLine) -> None:
        for text, words in ((self.name, line.name), (self.state, breaking(line.state))):
            text.setText(words)
        self.figures.setText(line.figures)
        self.strip.show_outcomes(line.outcomes)
        self.strip.setVisible(bool(line.outcomes))
        set_tip(self.name, line.address)
        self.setAccessibleName(f"{line.name}. {line.state} {line.figures}")


def store_line(past: StorePast, at_ms: int) -> HealthLine:
    store = past.store
    return HealthLine(
        key=store.multiaddr,
        name=short_address(store.multiaddr),
        address=one_line(store.multiaddr, 300),
        state=sentence(store_state(store)) if past.is_listed else tr("Not asked at present."),
        figures=_store_figures(past.results, at_ms),
        outcomes=tuple(map(_store_outcome, past.results)),
    )


def _store_outcome(result: StoreResult) -> Outcome:
    if not result.is_complete:
        return Outcome.FAILED
    return Outcome.DOUBTFUL if result.problem else Outcome.COMPLETE


def _store_figures(results: Sequence[StoreResult], at_ms: int) -> str:
    if not results:
        return tr("No result since the start.")
    outcomes = [_store_outcome(result) for result in results]
    words = tr(
        "Last %n results: {complete} complete, {omitted} with messages left out, {failed} failed.",
        "Last %n result: {complete} complete, {omitted} with messages left out, {failed} failed.",
        len(results),
    ).format(
        complete=outcomes.count(Outcome.COMPLETE),
        omitted=outcomes.count(Outcome.DOUBTFUL),
        failed=outcomes.count(Outcome.FAILED),
    )
    trips = sorted(each.round_trip_ms for each in results if each.round_trip_ms is not None)
    ago = off_words(max(0, at_ms - results[-1].at_ms))
    more = tr("The last one {time} ago.").format(time=ago)
    if trips:
        half = tr("Half of the answers came within {number} ms; the last one {time} ago.")
        more = half.format(number=grouped(trips[len(trips) // 2]), time=ago)
    return f"{words} {more}"


def node_line(node: ServiceNodeView, at_ms: int) -> HealthLine:
    name = one_line(node.name, 80)
    return HealthLine(
        key=node.peer_id,
        name=name,
        address=one_line(node.peer_id, 100),
        state=_node_state(node),
        figures=_node_figures(node.results, at_ms),
        outcomes=tuple(
            Outcome.FAILED if result.problem else Outcome.COMPLETE for result in node.results
        ),
    )


def _node_state(node: ServiceNodeView) -> str:
    if not node.is_connected:
        state = tr("Not connected.")
    elif node.holds_subscriptions:
        state = tr("Connected; it passes on what is for you.")
    else:
        state = tr("Connected; in reserve.")
    if node.problem is not None:
        problem = tr("it {problem}").format(problem=node_problem_words(node.problem))
        state = f"{state} {sentence(problem)}"
    if node.rests_ms:
        rests = tr("It is asked again in {time}.").format(time=off_words(node.rests_ms))
        state = f"{state} {rests}"
    return state


def _node_figures(results: Sequence[ServiceResult], at_ms: int) -> str:
    if not results:
        return tr("No result since the start.")
    failed = sum(result.problem is not None for result in results)
    words = tr(
        "Last %n requests: {failed} failed; the last one {time} ago.",
        "Last %n request: {failed} failed; the last one {time} ago.",
        len(results),
    )
    return words.format(failed=failed, time=off_words(max(0, at_ms - results[-1].at_ms)))
