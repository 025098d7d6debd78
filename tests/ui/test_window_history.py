"""History in the window: wished in the menu, followed in the bar, and its end said in words."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QProgressBar

from engine.core.errors import StorageError, StorageFault
from engine.core.history.queries import End
from engine.core.ids import ConversationId, DeliveryState, MessageId, UnixMs
from engine.core.problems import NoStoreToAsk, QueryFailed
from engine.events import (
    ClocksAhead,
    ConversationView,
    DeliveryView,
    GapUpdated,
    GapView,
    MessageView,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
)
from engine.history_views import HistoryChanged, HistoryReason, HistoryState, HistoryView, LostView
from tests.ui.driving import Key, Stage, group_stage, play, stage, turn, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine, member
from tests.ui.seeing import seen_words
from ui.history_words import choices as history_choices
from ui.timeline.cards import CardBox
from ui.timeline.rows import LostRow
from ui.window.history_bar import HistoryBar

pytestmark = pytest.mark.usefixtures("qapp")
DAY_MS = 86_400_000
SENT = DeliveryView(
    state=DeliveryState.SENT, held_by=(), maybe_held_by=(), of=1, attempts=1, failure=None
)


def running(conversation_id: ConversationId) -> HistoryView:
    return HistoryView(
        conversation_id=conversation_id,
        reason=HistoryReason.USER,
        state=HistoryState.RUNNING,
        since_ms=UnixMs(START_MS - 30 * DAY_MS),
        fetched=12_340,
        arrived=312,
        per_second=1_419.6,
        fraction=0.4,
        stores=2,
    )


def choices_of(menu: QMenu) -> dict[str, QAction]:
    entry = next(action for action in menu.actions() if action.text() == "Fetch history")
    submenu = entry.menu()
    assert isinstance(submenu, QMenu)
    return {action.text(): action for action in submenu.actions()}


async def tell_gap(it: Stage, gap: GapView) -> None:
    """Once the rows of its conversation, which is open, have their places."""
    await until(lambda: bool(it.window.pane.timeline.scene.placed))
    it.engine.tell(GapUpdated(conversation_id=gap.conversation_id, gap=gap))


def try_again(it: Stage, after: MessageView) -> None:
    """At what was lost before this message."""
    timeline = it.window.pane.timeline
    timeline.scene.focus_key = f"lost {after.message_id}"
    it.press(Key.Key_Return, on=timeline)


def bar_of(it: Stage) -> HistoryBar:
    bar = it.window.pane.history.bar
    assert isinstance(bar, HistoryBar)
    return bar


def test_the_menu_asks_for_as_much_as_one_wants() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, person = engine.add_group("Tide Gauge"), engine.add_person("Luc")
        async with stage(engine) as it:
            for conversation in (group, person):
                it.window.open_conversation(conversation)
                choices = choices_of(it.window.pane.header.more.menu())
                assert list(choices) == [words for words, _ in history_choices()]
                engine.calls.clear()
                for action in choices.values():
                    action.trigger()
                await until(lambda: len(engine.called("fetch_history")) == len(history_choices()))
                wanted = [(conversation, days) for _, days in history_choices()]
                assert engine.called("fetch_history") == wanted

    play(scenario)


def test_the_bar_says_count_and_rate_and_can_be_stopped() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            assert it.window.pane.history.bar is None
            engine.tell(HistoryChanged(history=running(group)))
            bar = bar_of(it)
            assert bar.isVisible()
            assert bar.title.text().startswith("Fetching history, back to ")
            said = "12,340 looked at · 312 new · 1,420 a second · 2 Stores"
            assert bar.details.text() == said
            assert bar.percent.text() == "40 %"
            assert said in bar.accessibleName()
            line = bar.findChild(QProgressBar)
            assert isinstance(line, QProgressBar)
            assert line.value() == 0.4 * line.maximum()
            assert QAccessible.queryAccessibleInterface(line).role() == QAccessible.Role.ProgressBar
            unknown = replace(running(group), fraction=None, per_second=0.2)
            engine.tell(HistoryChanged(history=unknown))
            assert bar.percent.text() == ""
            assert "a second" not in bar.details.text()
            bar.cancel.setFocus()
            it.press(Key.Key_Return, on=bar.cancel)
            await until(lambda: engine.called("cancel_history") == [group])
            engine.tell(
                HistoryChanged(history=replace(running(group), state=HistoryState.CANCELLED))
            )
            assert bar.title.text() == "Stopped. 312 new messages stay here"
            assert not bar.cancel.isVisible()
            assert bar.close_button.hasFocus()
            it.press(Key.Key_Space, on=bar.close_button)
            assert not bar.isVisible()

    play(scenario)


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        (0, "History fetched: nothing new"),
        (1, "History fetched: 1 new message"),
        (5_000, "History fetched: 5,000 new messages"),
    ],
)
def test_its_end_is_said_in_words_and_stays_until_one_closes_it(arrived: int, said: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.tell(HistoryChanged(history=running(group)))
            done = replace(running(group), state=HistoryState.DONE, arrived=arrived)
            engine.tell(HistoryChanged(history=done))
            assert bar_of(it).title.text() == said
            assert bar_of(it).isVisible()
            QTest.mouseClick(bar_of(it).close_button, Qt.MouseButton.LeftButton)
            assert not bar_of(it).isVisible()

    play(scenario)


def test_where_there_is_no_store_the_bar_says_so_and_leads_to_them() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            alone = replace(running(group), state=HistoryState.WAITING, problem=NoStoreToAsk())
            engine.tell(HistoryChanged(history=alone))
            bar = bar_of(it)
            assert (
                bar.details.text()
                == "There is no Store to ask; it is fetched as soon as there is one."
            )
            assert bar.stores.isVisible()
            assert bar.cancel.isVisible()
            engine.tell(HistoryChanged(history=running(group)))
            assert not bar.stores.isVisible()

    play(scenario)


def test_trying_again_for_what_is_lost_asks_the_engine_for_just_that() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        row = engine.row(group, member("Maya"), "heard")
        engine.rows[group][row.message_id] = row
        lost = LostView(
            message_id=MessageId("lost"),
            sender_id=None,
            sender_name="",
            before=row.position,
            since_ms=UnixMs(START_MS),
        )
        gap = GapView(conversation_id=group, missing=0, waiting=0, lost=(lost,), lost_total=1)
        async with stage(engine, opening=group) as it:
            await tell_gap(it, gap)
            try_again(it, row)
            await until(lambda: engine.called("fetch_lost") == [(group, ("lost",))])

    play(scenario)


def test_of_two_what_is_lost_is_marked_asked_for_again_and_closes() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        other = next(each for each in engine.views[luc].members if not each.is_self)
        row = engine.row(luc, other, "heard")
        engine.rows[luc][row.message_id] = row
        lost = LostView(
            message_id=None,
            sender_id=other.participant_id,
            sender_name=other.name,
            before=row.position,
            since_ms=UnixMs(START_MS),
            count=2,
            numbers=(7, 8),
            given_up_ms=UnixMs(START_MS + DAY_MS),
        )
        gap = GapView(conversation_id=luc, missing=0, waiting=0, lost=(lost,), lost_total=2)
        async with stage(engine, opening=luc) as it:
            await tell_gap(it, gap)
            timeline = it.window.pane.timeline
            (marker,) = [r for r in timeline.scene.loaded.rows if isinstance(r, LostRow)]
            box = timeline.scene.box(marker)
            assert isinstance(box, CardBox)
            assert box.title == "2 messages lost"
            assert box.details.startswith("From Luc · They never arrived")
            try_again(it, row)
            await until(lambda: engine.called("fetch_lost") == [(luc, (row.message_id,))])
            engine.tell(GapUpdated(conversation_id=luc, gap=None))
            assert not any(isinstance(r, LostRow) for r in timeline.scene.loaded.rows)

    play(scenario)


def test_a_failure_names_the_reason_and_leads_to_the_stores() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            failed = replace(
                running(group),
                state=HistoryState.FAILED,
                problem=QueryFailed(End.FAULTED, "unreachable"),
            )
            engine.tell(HistoryChanged(history=failed))
            bar = bar_of(it)
            assert "came furthest: it cannot be reached." in bar.details.text()
            assert "312 new messages came." in bar.details.text()
            bar.stores.click()
            await until(lambda: it.window.flows.sheet is not None)
            sheet = it.window.flows.sheet
            assert sheet is not None
            assert sheet.windowTitle() == "Stores"

    play(scenario)


@pytest.mark.parametrize("reason", [HistoryReason.CONNECT, HistoryReason.DEPENDENCY])
def test_what_goes_on_by_itself_is_one_quiet_line_without_a_bar(reason: HistoryReason) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.connect()
            header = it.window.pane.header
            before = seen_words(header)
            engine.tell(HistoryChanged(history=replace(running(group), reason=reason)))
            assert it.window.pane.history.bar is None
            assert any(words.endswith(", 312 new") for words in seen_words(header))
            failed = replace(running(group), reason=reason, state=HistoryState.FAILED)
            failed = replace(failed, problem=QueryFailed(End.TIMEOUT))
            engine.tell(HistoryChanged(history=failed))
            assert it.window.pane.history.bar is None
            assert seen_words(header) == before
            assert it.window.notices.notices() == ()

    play(scenario)


def test_while_nobody_is_connected_the_header_does_not_speak_of_fetching() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "hello")
            engine.connect()
            header = it.window.pane.header
            before = seen_words(header)
            engine.tell(
                HistoryChanged(history=replace(running(group), reason=HistoryReason.CONNECT))
            )
            assert "Catching up, 312 new" in seen_words(header)
            assert header.beads.accessibleName() == "Messages: You lack nothing"
            engine.disconnect()
            assert seen_words(header) == before
            assert header.beads.accessibleName() == "Messages: Offline"

    play(scenario)


def test_only_the_open_conversation_shows_its_history_and_finds_it_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=group) as it:
            engine.tell(HistoryChanged(history=running(other)))
            assert it.window.pane.history.bar is None
            engine.history_view = running(other)
            it.window.open_conversation(other)
            assert bar_of(it).isVisible()
            engine.history_view = None
            it.window.open_conversation(group)
            assert not bar_of(it).isVisible()

    play(scenario)


def test_earlier_messages_are_asked_for_above_the_first_one() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        row = engine.row(group, member("Maya"), "the first here")
        engine.rows[group][row.message_id] = row
        async with stage(engine, opening=group) as it:
            await until(lambda: bool(it.window.pane.timeline.scene.placed))
            timeline = it.window.pane.timeline
            timeline.setFocus()
            for _ in range(3):
                it.press(Key.Key_Up, on=timeline)
            it.press(Key.Key_Return, on=timeline)
            it.press(Key.Key_Return, on=timeline)
            await until(lambda: engine.called("fetch_earlier") == [group])
            await turn()
            assert engine.called("fetch_earlier") == [group]
            engine.fail("fetch_earlier", StorageError("full", StorageFault.DISK_FULL))
            it.press(Key.Key_Return, on=timeline)
            await until(lambda: bool(it.window.notices.notices()))
            assert "The disk is full" in it.window.notices.notices()[0].text

    play(scenario)


def test_a_wrong_clock_is_a_notice_as_others_are() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            content = ClocksAhead(
                conversation_name="Tide", messages=2, names=("Bob", "Eve"), ahead_ms=3 * 3_600_000
            )
            words = (
                "Tide: 2 messages are held, because the clock of Bob, Eve is 3 h ahead. "
                "They take their place when their time has come, or when the clocks agree."
            )
            engine.tell(
                NoticeRaised(key="clock/network", level=NoticeLevel.WARNING, content=content)
            )
            (row,) = it.window.notices.rows
            assert row.words.text() == words
            assert row.accessibleName() == f"warning: {words}"
            engine.tell(NoticeCleared(key="clock/network"))
            assert it.window.notices.rows == []

    play(scenario)


def test_thousands_that_come_at_once_do_not_draw_the_header_thousands_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            header = it.window.pane.header
            drawn: list[str] = []
            show = header.show_conversation

            def draw(view: ConversationView, messages: Sequence[MessageView]) -> None:
                drawn.append(messages[-1].text)
                show(view, messages)

            monkeypatch.setattr(header, "show_conversation", draw)
            for number in range(1_000):
                engine.receive(group, "Maya", f"number {number}", notify=False)
            await until(lambda: drawn[-1:] == ["number 999"])
            assert len(drawn) <= 20
            view = it.window.model.conversation(group)
            assert view is not None
            assert it.window.pane.conversation == view

    play(scenario)


def test_what_one_sends_draws_the_header_once_and_nowhere_says_that_it_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waits for some milliseconds: words about that would flash by."""

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            header, strip = it.window.pane.header, it.window.strip
            drawn: list[int] = []
            show = header.show_conversation

            def draw(view: ConversationView, messages: Sequence[MessageView]) -> None:
                drawn.append(view.waiting_to_send)
                show(view, messages)

            await turn()  # What opening the conversation draws is drawn by then.
            monkeypatch.setattr(header, "show_conversation", draw)
            own = engine.row(group, member("Ines", is_self=True), "Lovely")
            engine.arrive(own)
            engine.change(group, waiting_to_send=1)
            engine.deliver(group, own.message_id, SENT)
            engine.change(group, waiting_to_send=0)
            assert drawn == []
            await until(lambda: bool(drawn))
            assert drawn == [0]
            engine.change(group, waiting_to_send=1)
            await until(lambda: drawn == [0, 1] and "1 waiting to send" in seen_words(strip))

    play(scenario)
