"""What the graph draws once and shows in many frames is what it would draw anew."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from engine.core.ids import ConversationId
from engine.delivery_views import DeliveryMark, DeliveryMessage
from tests.ui.driving import NOW
from tests.ui.scripted_inspection import page_of, part_of
from tests.ui.test_window_delivery import message
from ui.delivery.graph import CausalGraphView
from ui.delivery.graph_card import Legend
from ui.delivery.loaded import LoadedMessages
from ui.delivery.painting import axis_words, draw_mark
from ui.delivery.tiles_of_points import TILE
from ui.theme import current_theme

pytestmark = pytest.mark.usefixtures("qapp")
GROUP = ConversationId("tide")
NAMES = ("Maya", "Luc", "Ines")


def anew(graph: CausalGraphView) -> QImage:
    """All of it drawn without anything that was kept."""
    image = QImage(graph.size(), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(current_theme().surface)
    painter = QPainter(image)
    graph.paint_on(painter)
    painter.end()
    return image


def shown(graph: CausalGraphView) -> QImage:
    """As the window paints it."""
    image = QImage(graph.size(), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(current_theme().surface)
    graph.render(image, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
    return image


def points(image: QImage, graph: CausalGraphView) -> QImage:
    """Without the lanes' names: an avatar that was kept is set at whole pixels."""
    left = int(graph.sight().names) + 1
    return image.copy(left, 0, image.width() - left, image.height())


def test_points_that_were_kept_are_those_that_would_be_drawn() -> None:
    graph, loaded = CausalGraphView(lambda: NOW), LoadedMessages()
    graph.resize(900, 200)
    messages = [message(number, sender=NAMES[number % 3]) for number in range(1, 900)]

    def show(change: int | None = None) -> None:
        if change is not None:
            messages[change] = replace(messages[change], mark=DeliveryMark.LATE)
        changed = loaded.take_newest(page_of(GROUP, messages))
        graph.show_loaded(loaded, changed, None, begin=0)

    show()
    graph.zoom(0.0001)
    assert graph.sight().step < 2, "they are points"
    before = shown(graph)
    assert points(before, graph) == points(anew(graph), graph)
    for columns in (-3.0, 17.3, -60.5):
        graph.pan(columns)
        assert points(shown(graph), graph) == points(anew(graph), graph)
    show(change=450)
    late = shown(graph)
    assert points(late, graph) == points(anew(graph), graph)
    messages += [message(number, sender="Maya") for number in range(900, 950)]
    show()
    assert points(shown(graph), graph) == points(anew(graph), graph)
    messages.append(message(950, sender="Somebody new"))  # A lane more: all is another picture.
    show()
    assert points(shown(graph), graph) == points(anew(graph), graph)


def test_a_point_that_changes_at_the_edge_of_a_picture_is_whole() -> None:
    graph, loaded = CausalGraphView(lambda: NOW), LoadedMessages()
    graph.resize(900, 200)
    messages = [message(number) for number in range(1, 1_300)]
    graph.show_loaded(loaded, loaded.take_newest(page_of(GROUP, messages)), None, begin=0)
    graph.zoom(0.0001)
    shown(graph)
    edge = int(TILE / graph.sight().step)  # The column where the second picture begins.
    for at in range(edge - 2, edge + 12):
        for mark in (DeliveryMark.LATE, DeliveryMark.HERE):
            messages[at] = replace(messages[at], mark=mark)
            page = part_of(page_of(GROUP, messages), None, limit=len(messages) - at)
            changed = loaded.take_newest(page)
            assert changed == at
            graph.show_loaded(loaded, changed, None, begin=0)
            assert points(shown(graph), graph) == points(anew(graph), graph)


def test_a_lamport_timestamp_of_ours_is_read_as_a_time() -> None:
    assert axis_words(int(NOW.timestamp() * 1_000)).count(":") == 2
    assert axis_words(4_174).replace("\u202f", "").replace(",", "") == "4174"
    assert axis_words(2**62) == str(2**62)


def test_the_legend_is_whole_in_a_narrow_card() -> None:
    legend = Legend()
    legend.fit(340)
    legend.resize(340, legend.height())
    legend.show()
    entries = [each for each in legend.findChildren(QWidget) if each.parent() is legend]
    assert len(entries) == 8
    assert all(legend.rect().contains(each.geometry()) for each in entries)
    assert len({each.y() for each in entries}) > 1


def test_beads_differ_without_their_colours() -> None:
    """Ours by how many hold it, and each mark from all others; in the graph and small above it."""
    beads = [message(1, sender="Ines", held_by=number) for number in (0, 1, 2)]
    beads += [message(1, mark=mark) for mark in DeliveryMark if mark is not DeliveryMark.HERE]
    for radius in (7.5, 3.5):
        drawn = [grey(each, radius) for each in beads]
        for at, one in enumerate(drawn):
            assert all(one != other for other in drawn[at + 1 :]), beads[at]


def grey(bead: DeliveryMessage, radius: float) -> QImage:
    """Only what is dark and what is light."""
    image = QImage(32, 32, QImage.Format.Format_RGB32)
    image.fill(current_theme().surface)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_mark(painter, bead, QPointF(16, 16), radius, current_theme())
    painter.end()
    return image.convertToFormat(QImage.Format.Format_Mono, Qt.ImageConversionFlag.ThresholdDither)
