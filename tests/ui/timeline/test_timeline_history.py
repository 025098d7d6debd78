"""History slides in above, below and around: what one reads stays, and is not taken for read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.core.ids import MessageId, Position, UnixMs
from engine.events import MessageView
from engine.history_views import HistoryReason, HistoryState, HistoryView
from tests.ui.seeing import spoken_rows
from tests.ui.timeline.timeline_stage import (
    CONVERSATION,
    NOW,
    MemoryPages,
    active,
    chatter,
    conversation,
    message,
    name_of,
    opened_view,
    places,
    run,
    settled,
    shown_view,
)
from ui.timeline.loaded import MAX_LOADED
from ui.timeline.rows import EarlierRow, Withheld
from ui.timeline.view import TimelineView
from ui.times import date_words, moment

pytestmark = pytest.mark.usefixtures("qapp")
MANY = 5000
LAMPORT_BASE = 1_000_000


def local(count: int = 60) -> list[MessageView]:
    """What is here already; all that is fetched is older."""
    return [
        message(LAMPORT_BASE + n * 10, "Maya" if n % 2 else "Luc", f"here {n} " + "tide " * (n % 9))
        for n in range(count)
    ]


@asynccontextmanager
async def with_earlier(source: MemoryPages) -> AsyncIterator[tuple[TimelineView, list[None]]]:
    """A timeline before which there may be more, and every time it asked for that."""
    with shown_view(source) as view:
        asked: list[None] = []
        view.earlierRequested.connect(lambda: asked.append(None))
        view.open(conversation())
        view.offer_earlier(None)
        await settled(view)
        yield view, asked


def test_five_thousand_older_ones_leave_what_one_reads_at_the_same_pixel() -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        with shown_view(source) as view:
            marks: list[Position] = []
            view.visibleUpTo.connect(marks.append)
            view.open(conversation())
            view.offer_earlier(None)
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            view.canvas.scroll_by(700)
            view.read_tracker.note_seen()
            before, marks_before = places(view), list(marks)
            top = min(before, key=lambda key: before[key])
            for number in range(MANY):
                view.add(message(number * 10, "Jonas", f"fetched {number}", late=True))
                if number % 500 == 0:
                    view.updates.show_changes()
                    assert places(view)[top] == before[top]
            view.updates.show_changes()
            assert {key: places(view)[key] for key in before} == before
            view.read_tracker.note_seen()
            assert marks == marks_before
            assert len(view.scene.loaded) <= MAX_LOADED
            assert view.scene.loaded.total == MANY + 60
            assert view.canvas.late_chip.text() == "5000 earlier messages arrived"

    run(scenario)


def test_the_chip_leads_to_the_first_of_many_and_has_said_its_news_then() -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        async with opened_view(source) as view:
            await active(view)
            view.read_tracker.note_seen()
            view.canvas.scroll_by(300)
            fetched = [message(n * 10, "Jonas", f"fetched {n}", late=True) for n in range(1500)]
            for each in fetched:
                source.messages.insert(len(source.messages) - 60, each)
                view.add(each)
            view.updates.show_changes()
            assert view.canvas.late_chip.count == 1500
            view.canvas.late_chip.click()
            await settled(view)
            assert fetched[0].message_id in places(view)
            assert view.canvas.late_chip.count == 0

    run(scenario)


def test_at_the_beginning_earlier_ones_come_in_above_the_first() -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        async with with_earlier(source) as (view, _):
            view.navigation.go_to_beginning()
            view.canvas.scroll_by(10_000)
            assert isinstance(view.scene.placed[0].row, EarlierRow)
            before = places(view)
            for number in range(100):
                view.add(message(number * 10, "Jonas", f"earlier {number}", late=True))
            view.updates.show_changes()
            assert {key: places(view)[key] for key in before} == before
            assert not isinstance(view.scene.placed[0].row, EarlierRow)

    run(scenario)


def test_what_could_not_be_read_is_said_once_and_never_fetched() -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        async with with_earlier(source) as (view, asked):
            view.withhold_earlier(Withheld(by="", since_ms=None))
            view.navigation.go_to_beginning()
            view.canvas.scroll_by(10_000)
            box = view.scene.placed[0]
            assert isinstance(box.row, EarlierRow)
            said = "What was written before you came cannot be read here: whoever let you in chose"
            assert spoken_rows(view)[0] == f"{said} that."
            for _ in range(3):
                view.canvas.scroll_by(1_000)
            assert not asked
            view.withhold_earlier(None)
            view.updates.show_changes()
            assert "Fetch earlier messages" in spoken_rows(view)[0]

    run(scenario)


def test_who_was_let_in_with_a_part_is_told_and_offered_the_rest_of_that_part() -> None:
    source = MemoryPages(local())
    since = UnixMs(NOW - 40 * 86_400_000)

    async def scenario() -> None:
        async with with_earlier(source) as (view, asked):
            view.withhold_earlier(Withheld(by="Olga", since_ms=since))
            view.navigation.go_to_beginning()
            view.canvas.scroll_by(10_000)
            said = spoken_rows(view)[0]
            day = date_words(moment(since))
            told = f"You were let in with what was written from about {day} on."
            assert said.startswith(told)
            assert "cannot be read here: Olga chose that." in said
            assert said.endswith("Fetch earlier messages")
            view.canvas.scroll_by(1_000)
            assert asked
            done = HistoryView(
                conversation_id=CONVERSATION,
                reason=HistoryReason.EARLIER,
                state=HistoryState.DONE,
                since_ms=since,
                arrived=5,
            )
            view.offer_earlier(done)
            view.updates.show_changes()
            assert "Fetch earlier messages" not in spoken_rows(view)[0]
            assert told in spoken_rows(view)[0]
            asked.clear()
            view.canvas.scroll_by(-500)
            view.canvas.scroll_by(10_000)
            view.canvas.scroll_by(1_000)
            assert not asked, "all that could be read is here"

    run(scenario)


def test_who_scrolls_on_past_the_beginning_asks_once_there_is_a_chance() -> None:
    source = MemoryPages(local())
    over = HistoryView(
        conversation_id=CONVERSATION,
        reason=HistoryReason.EARLIER,
        state=HistoryState.DONE,
        since_ms=None,
    )

    async def scenario() -> None:
        async with with_earlier(source) as (view, asked):
            view.canvas.scroll_by(100)
            assert asked == []
            view.navigation.go_to_beginning()
            assert asked == []
            view.canvas.scroll_by(100)
            assert len(asked) == 1
            view.offer_earlier(replace(over, state=HistoryState.RUNNING))
            view.canvas.scroll_by(100)
            view.offer_earlier(over)
            view.canvas.scroll_by(100)
            assert len(asked) == 1
            view.canvas.scroll_by(-100)
            assert len(asked) == 1

    run(scenario)


def test_a_conversation_that_fits_is_not_scrolled_past_by_chance() -> None:
    source = MemoryPages(local(2))

    async def scenario() -> None:
        async with with_earlier(source) as (view, asked):
            view.canvas.scroll_by(100)
            assert asked == []
            view.setFocus()
            for _ in range(3):
                QTest.keyClick(view, Qt.Key.Key_Up)
            assert view.scene.focus_key == "earlier"
            QTest.keyClick(view, Qt.Key.Key_Return)
            assert len(asked) == 1

    run(scenario)


@pytest.mark.parametrize("many", [300, MAX_LOADED + 100])
def test_a_night_of_messages_stops_at_the_first_that_nobody_saw(many: int) -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        with shown_view(source) as view:
            marks: list[Position] = []
            view.visibleUpTo.connect(marks.append)
            view.open(conversation())
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            first = message(2 * LAMPORT_BASE, "Jonas", "the first of the night")
            view.add(first)
            for number in range(1, many):
                view.add(message(2 * LAMPORT_BASE + number, "Jonas", f"night {number}"))
            view.updates.show_changes()
            assert first.message_id in places(view)
            assert places(view)[first.message_id] >= 0
            view.read_tracker.note_seen()
            last = MessageId(f"m{2 * LAMPORT_BASE + many - 1:07d}")
            assert last not in places(view)
            assert marks[-1] < Position(lamport_timestamp=2 * LAMPORT_BASE + 250, message_id=last)
            assert view.canvas.jump_button.unread > 200

    run(scenario)


def test_more_than_can_wait_for_a_page_is_read_again_where_one_is() -> None:
    source = MemoryPages(chatter(2000))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(5_000)
            await settled(view)
            before = places(view)
            top = min(before, key=lambda key: before[key])
            source.hold()
            anchor = view.scene.loaded.get(top)
            assert anchor is not None
            view.canvas.scroll_by(3_000)
            view.canvas.scroll_by(-3_000)
            assert view.navigation.loading
            for number in range(MANY + 2):
                view.add(message(10**7 + number, "Maya", "meanwhile"))
            source.release()
            await settled(view)
            assert places(view)[top] == before[top]

    run(scenario)


def test_a_bar_that_comes_above_leaves_what_one_reads_on_the_screen_where_it_is() -> None:
    source = MemoryPages(local())

    async def scenario() -> None:
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        bar = QWidget()
        bar.setFixedHeight(50)
        bar.hide()
        view = TimelineView(lambda: source, names=name_of, now_ms=lambda: NOW, parent=whole)
        column.addWidget(bar)
        column.addWidget(view, 1)
        whole.resize(900, 600)
        whole.show()
        view.open(conversation())
        await settled(view)
        view.canvas.scroll_by(600)

        def on_screen() -> dict[MessageId, float]:
            return {key: y + view.y() for key, y in places(view).items()}

        before = on_screen()
        for visible in (True, False):
            bar.setVisible(visible)
            column.activate()
            after = on_screen()
            common = before.keys() & after.keys()
            assert len(common) >= len(before) - 2
            assert {key: after[key] for key in common} == {key: before[key] for key in common}
        whole.close()
        whole.deleteLater()

    run(scenario)
