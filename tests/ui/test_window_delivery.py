"""The delivery view of a conversation: how it opens, what it reads, and what leads out of it."""

import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.delivery_views import DeliveryMark, DeliveryMessage, HolderMark
from engine.events import ConversationRemoved
from tests.ui.driving import Key, Stage, heard, stage, turn, until
from tests.ui.driving import play as played
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_inspection import SENT_MS, page_of, part_of
from ui.delivery.export import MARGIN
from ui.delivery.graph_card import GraphCard
from ui.delivery.loaded import LoadedMessages

pytestmark = pytest.mark.usefixtures("qapp")


def message(number: int, *, sender: str = "Maya", **changes: object) -> DeliveryMessage:
    message_id = MessageId(f"m-{number:05}")
    found = DeliveryMessage(
        message_id=message_id,
        mark=DeliveryMark.HERE,
        sender_id=ParticipantId(sender.lower()),
        sender_name=sender,
        is_own=sender == "Ines",
        lamport_timestamp=number,
        position=Position(number, message_id),
        received_ms=UnixMs(SENT_MS + number * 1_000),
        is_shown=True,
        names=(MessageId(f"m-{number - 1:05}"),),
        of=2,
    )
    return replace(found, **changes)


@asynccontextmanager
async def looking(
    count: int = 12, *, size: tuple[int, int] = (1280, 820)
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId]]:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", ("Maya", "Luc"))
    engine.receive(group, "Maya", "Lovely", minute=0)
    names = ("Maya", "Luc", "Ines")
    messages = [message(number, sender=names[number % 3]) for number in range(1, count + 1)]
    engine.inspected.pages[group] = page_of(group, messages)
    async with stage(engine, opening=group, size=size) as it:
        await until(lambda: it.window.pane.timeline.scene.loaded.total == 1)
        yield it, engine, group


async def opened(it: Stage) -> None:
    shown = heard(it.window.delivery.shown)
    it.window.pane.header.views.choose(1)
    await shown


def test_the_segment_opens_and_closes_it_and_nothing_is_read_while_it_is_closed() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            engine.receive(group, "Maya", "more", minute=1)
            await turn()
            assert engine.inspected.pages_read == []
            await opened(it)
            assert engine.inspected.pages_read == [(group, None)]
            assert not it.window.pane.timeline.isVisible()
            assert len(it.window.delivery.loaded.messages) == 12
            it.window.pane.header.views.choose(0)
            assert it.window.delivery.page is None
            assert it.window.pane.timeline.isVisible()
            engine.receive(group, "Maya", "and more", minute=2)
            await turn()
            assert len(engine.inspected.pages_read) == 1

    played(scenario)


def test_a_conversation_removed_meanwhile_closes_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            await opened(it)
            del engine.rows[group]
            engine.tell(ConversationRemoved(conversation_id=group))
            await until(lambda: it.window.delivery.page is None)

    played(scenario)


def test_pages_that_overlap_are_joined_and_what_left_the_log_is_gone() -> None:
    whole = page_of(ConversationId("c"), [message(number) for number in range(1, 901)])
    loaded = LoadedMessages()
    loaded.take_newest(part_of(whole, None, 400))
    assert [each.lamport_timestamp for each in loaded.messages] == [*range(501, 901)]
    assert loaded.take_older(part_of(whole, loaded.first, 400))
    assert len(loaded.messages) == 800
    fewer = replace(whole, messages=(*whole.messages[:-2], message(901)))
    changed = loaded.take_newest(part_of(fewer, None, 300))
    assert changed == 499
    assert [each.lamport_timestamp for each in loaded.messages][-3:] == [897, 898, 901]
    assert loaded.find(MessageId("m-00900")) is None
    far = page_of(ConversationId("c"), [message(number) for number in range(1, 2_001)])
    assert loaded.take_newest(part_of(far, None, 400)) == 0
    assert len(loaded.messages) == 400, "what does not join is let go"
    assert loaded.take_older(part_of(far, loaded.first, 400))
    assert not loaded.take_older(part_of(far, None, 400)), "it is no older one"


async def card_of(it: Stage) -> GraphCard:
    await opened(it)
    page = it.window.delivery.page
    assert page is not None
    page.graph_card.ranges.choose(2)
    return page.graph_card


def test_keys_go_through_the_graph_and_enter_looks_into_a_message() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group):
            card = await card_of(it)
            graph = card.graph
            graph.setFocus(Qt.FocusReason.TabFocusReason)
            it.press(Key.Key_End)
            assert graph.current == "m-00012"
            assert "Maya" in graph.accessibleName()
            it.press(Key.Key_Left)
            assert graph.current == "m-00011"
            it.press(Key.Key_Up)
            assert graph.message is not None
            assert graph.message.sender_name != "Ines", "ours is the last lane"
            it.press(Key.Key_Home)
            assert graph.current == "m-00001"
            shown = graph.sight().shown
            it.press(Key.Key_Plus)
            assert graph.sight().shown < shown
            it.press(Key.Key_Return)
            await until(lambda: engine.inspected.asked == ["m-00001"])

    played(scenario)


def test_a_click_on_a_bead_looks_into_it_and_dragging_pans() -> None:
    async def scenario() -> None:
        async with looking(900) as (it, engine, _group):
            graph = (await card_of(it)).graph
            at = graph.place_of(MessageId("m-00895")).toPoint()
            QTest.mouseClick(graph, Qt.MouseButton.LeftButton, pos=at)
            await until(lambda: engine.inspected.asked == ["m-00895"])
            before = graph.sight()
            drag(graph, QPoint(300, 40), QPoint(500, 40))
            after = graph.sight()
            assert before.left - after.left == pytest.approx(200 / before.step)
            assert engine.inspected.asked == ["m-00895"], "a drag is no click"

    played(scenario)


def drag(widget: QWidget, begin: QPoint, end: QPoint) -> None:
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QTest.mousePress(widget, left, none, begin)
    move = QMouseEvent(
        QMouseEvent.Type.MouseMove, QPointF(end), widget.mapToGlobal(QPointF(end)), left, left, none
    )
    QApplication.sendEvent(widget, move)
    QTest.mouseRelease(widget, left, none, end)


def test_older_pages_are_read_as_one_looks_at_them() -> None:
    async def scenario() -> None:
        async with looking(900) as (it, engine, group):
            whole = engine.inspected.pages[group]
            long_after = UnixMs(SENT_MS + 10_000_000)
            engine.inspected.pages[group] = replace(whole, looked_ms=long_after)
            graph = (await card_of(it)).graph
            assert engine.inspected.pages_read == [(group, None)], "only what is looked at"
            shown = heard(it.window.delivery.shown)
            graph.pan(-390)
            before = graph.place_of(MessageId("m-00900"))
            await shown
            assert len(it.window.delivery.loaded.messages) == 800
            assert len(engine.inspected.pages_read) == 2
            after = graph.place_of(MessageId("m-00900"))
            assert after.x() == pytest.approx(before.x()), "one still looks at the same place"

    played(scenario)


def test_while_it_is_paused_nothing_is_read_and_going_on_reads_all_anew() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            card = await card_of(it)
            card.pause.click()
            engine.receive(group, "Maya", "more", minute=1)
            await turn()
            assert len(engine.inspected.pages_read) == 1
            shown = heard(it.window.delivery.shown)
            card.pause.click()
            await shown
            assert len(engine.inspected.pages_read) == 2

    played(scenario)


def test_it_is_read_regularly_since_members_claim_without_an_event_unless_it_is_paused() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group):
            flows = it.window.delivery
            assert not flows.refresh.regularly.isActive()
            await opened(it)
            assert flows.refresh.regularly.isActive()
            read = engine.inspected.pages_read
            before, shown = len(read), heard(flows.shown)
            flows.refresh.regularly.timeout.emit()
            await shown
            assert len(read) > before
            assert flows.page is not None
            flows.page.graph_card.pause.click()
            assert not flows.refresh.regularly.isActive()
            it.window.pane.header.views.choose(0)
            assert not flows.refresh.regularly.isActive()

    played(scenario)


def test_a_view_that_was_closed_while_it_was_paused_goes_on_when_it_is_opened_again() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            card = await card_of(it)
            card.pause.click()
            it.window.pane.header.views.choose(0)
            await opened(it)
            shown = heard(it.window.delivery.shown)
            before = len(engine.inspected.pages_read)
            engine.receive(group, "Maya", "more", minute=1)
            await shown
            assert len(engine.inspected.pages_read) > before
            assert it.window.delivery.refresh.regularly.isActive()

    played(scenario)


def test_a_table_says_the_same_to_a_screen_reader() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group):
            card = await card_of(it)
            card.as_table.click()
            assert not card.graph.isVisible()
            model = card.table.model()
            assert model.rowCount() == 12
            words = [
                model.index(11, column).data(Qt.ItemDataRole.AccessibleTextRole)
                for column in range(model.columnCount())
            ]
            assert words[0] == "Lamport timestamp: 12"
            assert words[3:5] == ["State: here", "Held by: Held by 0 of 2"]
            card.table.setCurrentIndex(model.index(11, 0))
            card.table.setFocus()
            it.press(Key.Key_Return)
            await until(lambda: engine.inspected.asked == ["m-00012"])

    played(scenario)


def test_names_of_strangers_stay_harmless_in_words_and_files() -> None:
    evil = '\u202e=HYPERLINK("x")\n<script>&'

    async def scenario() -> None:
        async with looking() as (it, engine, group):
            pages = engine.inspected.pages
            hostile = [replace(each, sender_name=evil) for each in pages[group].messages]
            pages[group] = page_of(group, hostile)
            card = await card_of(it)
            card.graph.choose(MessageId("m-00012"))
            assert "\u202e" not in card.graph.accessibleName()
            rows = [*csv.DictReader(io.StringIO(card.as_file("csv").decode("utf-8-sig")))]
            assert rows[-1]["sender_name"].startswith("'=HYPERLINK")
            assert rows[-1]["causal_history"] == "m-00011"
            drawing = ET.fromstring(card.as_file("svg"))  # noqa: S314 - our own
            assert "\u202e" not in "".join(drawing.itertext())
            assert QImage.fromData(card.as_file("png")).width() == 2 * (
                card.graph.width() + 2 * MARGIN
            )

    played(scenario)


def test_tiles_count_the_chosen_time() -> None:
    def held(number: int, after_ms: int) -> DeliveryMessage:
        plain = message(number, sender="Ines")
        since = UnixMs((plain.received_ms or 0) + after_ms)
        mark = HolderMark(participant_id=ParticipantId("luc"), certain=True, since_ms=since)
        return replace(plain, holders=(mark,), of=1, held_by=1)

    async def scenario() -> None:
        async with looking() as (it, engine, group):
            old, late = held(1, 90_000), replace(message(500), mark=DeliveryMark.LATE)
            gone = replace(message(501), mark=DeliveryMark.MISSING, position=None, of=0)
            found = [old, late, gone, held(502, 1_400)]
            page = page_of(group, found)
            engine.inspected.pages[group] = page
            await opened(it)
            shown = it.window.delivery.page
            assert shown is not None
            shown.graph_card.ranges.choose(0)
            tiles = shown.tiles
            assert tiles.held.accessibleName() == "Held by everyone: 1 of 2 known here"
            assert tiles.time.value.text() == "1.4 s"
            assert (tiles.missing.value.text(), tiles.late.value.text()) == ("1", "1")
            shown.graph_card.ranges.choose(2)
            assert tiles.held.value.text() == "2 of 3"

    played(scenario)


def test_the_legend_is_whole_at_every_width() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group):
            legend = (await card_of(it)).legend
            for width in (1280, 1320, 1370, 1420, 1100, 900, 420):
                it.window.resize(width, 820)
                await turn()
                entries = [each for each in legend.findChildren(QWidget) if each.parent() is legend]
                assert all(legend.rect().contains(each.geometry()) for each in entries), width

    played(scenario)
