"""Room, keys, colours and what is remembered."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit

from engine.core.errors import StorageError, StorageFault
from engine.core.problems import ConnectionReason
from engine.events import MessageView, NoticeCleared, NoticeLevel, NoticeRaised, NotSaved
from tests.ui.driving import Key, group_stage, play, stage, turn, until
from tests.ui.on_messages import bubble, in_view, own_held
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import seen_words
from ui.settings import Appearance
from ui.theme import ThemeMode, current_theme
from ui.window.layout import Mode, mode_for
from ui.window.notices import MAX_KEPT, MAX_SHOWN

pytestmark = pytest.mark.usefixtures("qapp")
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
ALT = Qt.KeyboardModifier.AltModifier


@pytest.mark.parametrize(
    ("width", "percent", "mode"),
    [
        (1280, 100, Mode.WIDE),
        (980, 100, Mode.WIDE),
        (979, 100, Mode.RAIL),
        (720, 100, Mode.RAIL),
        (719, 100, Mode.NARROW),
        (1280, 150, Mode.RAIL),
        (1280, 200, Mode.NARROW),
    ],
)
def test_larger_text_needs_more_room_for_the_same_thing(
    width: int, percent: int, mode: Mode
) -> None:
    assert mode_for(width, percent / 100) is mode


def test_a_narrow_window_shows_one_thing_and_a_way_back_with_the_unread() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, size=(420, 700)) as it:
            assert it.window.panel.isVisible()
            assert not it.window.pane.isVisible()
            it.window.open_conversation(group)
            assert not it.window.panel.isVisible()
            back = it.window.pane.header.back
            assert back.isVisible()
            engine.receive(other, "Maya", "hello")
            assert back.accessibleName() == "Back to the conversations, 1 unread"
            back.click()
            assert it.window.panel.isVisible()
            assert not it.window.pane.isVisible()

    play(scenario)


def test_the_rail_keeps_everything_reachable() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, size=(860, 700)) as it:
            assert it.window.panel.width() == 68
            it.press(Key.Key_F, CTRL | SHIFT)
            assert it.window.panel.width() == 312
            assert it.window.panel.search.hasFocus()
            it.write("tide")
            it.press(Key.Key_Return)
            assert it.window.pane.is_open(group)
            assert it.window.panel.width() == 68
            it.window.resize(1200, 700)
            await until(lambda: it.window.panel.width() == 312)

    play(scenario)


def test_the_rail_leads_into_the_archive_and_back() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, size=(860, 700)) as it:
            panel, model = it.window.panel, it.window.model
            assert not panel.archive_in_rail.isVisible()
            panel.archive_requested.emit(group, True)
            assert panel.is_rail
            assert panel.archive_in_rail.accessibleName() == "Archived: 1"
            it.press(Key.Key_Return, on=panel.archive_in_rail)
            assert [model.at(row) for row in range(model.rowCount())] == [engine.views[group]]
            assert panel.archive_in_rail.accessibleName() == "Back from the archive"
            it.press(Key.Key_Return, on=panel.archive_in_rail)
            assert [model.at(row) for row in range(model.rowCount())] == [engine.views[other]]
            it.window.resize(1200, 700)
            await until(lambda: not panel.is_rail)
            assert not panel.archive_in_rail.isVisible()

    play(scenario)


def test_everything_from_the_first_key_to_a_sent_message_without_a_mouse() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.press(Key.Key_N, CTRL)
            await until(lambda: it.window.flows.sheet is not None)
            await until(lambda: isinstance(QApplication.focusWidget(), QLineEdit))
            it.write("Tide Gauge")
            it.press(Key.Key_Return)
            await until(lambda: it.window.pane.conversation is not None)
            await until(it.window.pane.composer.box.hasFocus)
            it.write("hello")
            it.press(Key.Key_Return)
            await until(lambda: engine.called("send_text") == ["hello"])
            it.press(Key.Key_F1)
            await until(lambda: it.window.flows.sheet is not None)
            it.press(Key.Key_Escape, on=it.window.flows.sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_letters_typed_beside_the_box_are_written_in_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            pane = it.window.pane
            pane.header.more.setFocus()
            it.write("hello")
            assert pane.composer.box.hasFocus()
            assert pane.composer.text() == "hello"
            pane.timeline.setFocus()
            it.press(Key.Key_B, CTRL)
            it.write("!")
            it.press(Key.Key_Return)
            await until(lambda: engine.called("send_text") == ["hello!"])

    play(scenario)


def test_conversations_are_walked_with_alt_and_arrows_and_found_by_name() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        groups = [engine.add_group(name) for name in ("Oldest", "Middle", "Newest")]
        async with stage(engine) as it:
            it.press(Key.Key_Down, ALT)
            assert it.window.pane.is_open(groups[2])
            it.press(Key.Key_Down, ALT)
            assert it.window.pane.is_open(groups[1])
            it.press(Key.Key_Up, ALT)
            it.press(Key.Key_Up, ALT)
            assert it.window.pane.is_open(groups[2])
            it.press(Key.Key_F, CTRL | SHIFT)
            it.write("OLD")
            assert it.window.model.rowCount() == 1
            it.press(Key.Key_Down)
            assert it.window.pane.is_open(groups[0])
            assert it.window.panel.rows.hasFocus()
            it.press(Key.Key_Return)
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_a_search_without_a_match_says_so_and_escape_ends_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, group):
            it.press(Key.Key_F, CTRL | SHIFT)
            it.write("zzz")
            assert "Nobody and no group is called “zzz”." in seen_words(it.window.panel)
            assert it.window.pane.is_open(group)
            it.press(Key.Key_Escape)
            assert it.window.model.rowCount() == 1
            selected = it.window.panel.rows.selectionModel().selectedIndexes()
            assert [index.row() for index in selected] == [0]

    play(scenario)


def test_f6_goes_round_the_areas() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            seen = []
            for _ in range(3):
                it.press(Key.Key_F6)
                focused = QApplication.focusWidget()
                assert focused is not None
                seen.append(focused)
            pane = it.window.pane
            assert seen == [it.window.panel.rows, pane.timeline, pane.composer.box]
            it.press(Key.Key_F6, SHIFT)
            assert pane.timeline.hasFocus(), "and back"
            it.press(Key.Key_F6, SHIFT)
            it.press(Key.Key_F6, SHIFT)
            assert pane.composer.box.hasFocus()

    play(scenario)


def test_an_arriving_message_moves_its_row_up_and_leaves_the_selection_alone() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        first, second = engine.add_group("First"), engine.add_group("Second")
        async with stage(engine, opening=second) as it:
            engine.receive(first, "Maya", "hello", minute=5)
            assert it.window.model.index_of(first).row() == 0
            assert it.window.pane.is_open(second)
            selected = it.window.panel.rows.selectionModel().selectedIndexes()
            assert [index.row() for index in selected] == [1]

    play(scenario)


def test_colours_and_text_size_change_at_once_and_are_remembered() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        stored: dict[str, str] = {}
        async with stage(engine, opening=group, stored=stored) as it:
            it.window.looks.choose(Appearance.HIGH_CONTRAST)
            assert current_theme().mode is ThemeMode.HIGH_CONTRAST
            it.window.looks.choose(Appearance.DARK)
            assert current_theme().mode is ThemeMode.DARK
            low = it.window.pane.header.height()
            for _ in range(3):
                it.press(Key.Key_Plus, CTRL)
            assert current_theme().metrics.text_percent == 130
            assert it.window.pane.header.height() > low
            it.press(Key.Key_Minus, CTRL)
        assert (stored["appearance"], stored["text_percent"]) == ("dark", "120")
        async with stage(engine, stored=stored) as it:
            assert current_theme().mode is ThemeMode.DARK
            it.press(Key.Key_0, CTRL)
            assert current_theme().metrics.text_percent == 100

    play(scenario)


def test_the_window_comes_back_where_it_was_and_survives_damaged_settings() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        stored: dict[str, str] = {}
        async with stage(engine, opening=group, stored=stored) as it:
            it.window.body.setSizes([380, 900])
            it.window.body.splitterMoved.emit(380, 1)
            it.window.close()
        assert stored["list_width"] == "380"
        async with stage(engine, stored=stored) as it:
            assert it.window.pane.is_open(group)
            await until(lambda: it.window.panel.width() == 380)
        for key in ("geometry", "list_width", "text_percent", "appearance", "conversation"):
            stored[key] = "\x00 damaged"
        async with stage(engine, stored=stored) as it:
            assert it.window.panel.width() == 312
            assert it.window.pane.conversation is None

    play(scenario)


def test_notices_replace_by_key_show_the_gravest_and_can_be_closed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            bar = it.window.notices
            assert not bar.isVisible()
            for key, level in (
                ("a", NoticeLevel.INFO),
                ("b", NoticeLevel.WARNING),
                ("c", NoticeLevel.ERROR),
                ("a", NoticeLevel.INFO),
                ("d", NoticeLevel.INFO),
            ):
                engine.tell(
                    NoticeRaised(
                        key=key, level=level, content=NotSaved(error=StorageError(f"<b>{key}</b>"))
                    )
                )
            assert [notice.key for notice in bar.notices()] == ["c", "b", "d", "a"]
            assert len(bar.rows) == MAX_SHOWN
            assert "and 1 more" in seen_words(bar)
            assert bar.rows[0].words.textFormat() is Qt.TextFormat.PlainText
            bar.rows[0].close_button.click()
            engine.tell(NoticeCleared(key="b"))
            engine.tell(NoticeCleared(key="unknown"))
            assert [notice.key for notice in bar.notices()] == ["d", "a"]
            for number in range(MAX_KEPT + 10):
                content = NotSaved(error=StorageError("x"))
                engine.tell(NoticeRaised(key=f"n{number}", level=NoticeLevel.INFO, content=content))
            assert len(bar.notices()) == MAX_KEPT

    play(scenario)


def test_a_page_that_cannot_be_read_is_said_and_read_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            engine.fail("latest_page", StorageError("disk trouble"))
            engine.fail("latest_page", StorageError("disk trouble"))
            it.window.open_conversation(group)
            await until(lambda: len(it.window.notices.notices()) == 2)
            page = next(row for row in it.window.notices.rows if "messages" in row.words.text())
            page.acts[0].click()
            await until(lambda: it.window.notices.notices() == ())
            await turn()
            assert it.window.notices.notices() == ()

    play(scenario)


def test_the_strip_speaks_of_network_and_of_all_conversations() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine) as it:
            strip = it.window.strip
            assert "Waiting for network" in seen_words(strip)
            engine.connect(peers=1)
            online, traffic = "Online, 1 peer", "↑ 1.2 MB   ↓ 3.7 MB"
            assert {online, traffic} <= set(seen_words(strip))
            engine.change(group, missing=2, waiting_to_send=1)
            engine.change(other, missing=1, failed=1)
            totals = ["Asking for 3 messages", "1 waiting to send", "1 not sent"]
            await until(lambda: [words for words in seen_words(strip) if words in totals] == totals)

    play(scenario)


def test_a_first_window_fits_on_its_screen() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            screen = it.window.screen().availableSize()
            assert it.first_size.width() <= screen.width()
            assert it.first_size.height() < screen.height()

    play(scenario)


def test_before_the_first_start_nobody_waits_for_a_network() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        engine.link_view = replace(engine.link_view, reason=ConnectionReason.NOT_STARTED)
        async with stage(engine) as it:
            assert seen_words(it.window.strip)[0] == "Not connected yet"
            assert not any("start" in words for words in seen_words(it.window.strip))

    play(scenario)


@pytest.mark.parametrize("percent", [100, 200])
def test_the_magnifier_grows_with_the_text_that_begins_beside_it(percent: int) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), stored={"text_percent": str(percent)}) as it:
            field = it.window.panel.search
            sign = field.magnifier()
            shown = field.grab().toImage()
            ground = shown.pixelColor(int(sign.left()) - 3, field.height() // 2)
            inked = [
                (x, y)
                for x in range(int(sign.left()) - 2, int(sign.right()) + 2)
                for y in range(field.height() // 4, field.height() * 3 // 4)
                if shown.pixelColor(x, y) != ground
            ]
            wide = max(x for x, _ in inked) - min(x for x, _ in inked)
            assert wide >= 0.6 * 16 * percent / 100
            it.write("x", on=field)
            assert field.cursorRect().left() > sign.right()

    play(scenario)


@pytest.mark.parametrize(("size", "percent"), [((1280, 820), 100), ((900, 600), 200)])
def test_the_way_to_the_newest_is_in_view_while_notices_stand(
    size: tuple[int, int], percent: int
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        for number in range(60):
            engine.receive(group, "Maya", f"number {number}", minute=number)
        kept = {"text_percent": str(percent)}
        async with stage(engine, opening=group, size=size, stored=kept) as it:
            timeline = it.window.pane.timeline
            jump = timeline.canvas.jump_button
            await until(jump.isVisible)
            for key in ("a", "b"):
                words = NotSaved(error=StorageError("full", StorageFault.DISK_FULL))
                engine.tell(NoticeRaised(key=key, level=NoticeLevel.ERROR, content=words))
            await until(lambda: len(it.window.notices.rows) > 1)
            await until(lambda: timeline.viewport().geometry().contains(jump.geometry()))
            edge = jump.mapTo(it.window, jump.rect().bottomLeft()).y()
            composer = it.window.pane.composer
            assert edge < composer.mapTo(it.window, composer.rect().topLeft()).y()

    play(scenario)


def test_a_button_with_long_words_leaves_room_for_the_name() -> None:
    """As in French; the empty conversation has it, too."""

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Les amis", ())
        async with stage(engine, opening=group, size=(600, 720)) as it:
            header = it.window.pane.header
            await until(header.invite.isVisible)
            header.invite.rename("Inviter des personnes")
            it.window.resize(420, 720)
            await until(lambda: header.width() == 420)
            assert not header.invite.isVisible()

    play(scenario)


@pytest.mark.parametrize("width", [420, 1280])
def test_no_row_moves_sideways_when_the_scroll_bar_comes(width: int) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, size=(width, 640)) as it:
            timeline = it.window.pane.timeline

            def right(row: MessageView) -> int:
                box, _y = bubble(it, row)
                edge = timeline.scene.geometry.seen(box.bubble).topRight().toPoint()
                return timeline.viewport().mapToGlobal(edge).x()

            first = own_held(engine, group, "high water at noon")
            await until(lambda: in_view(it, first))
            before = right(first)
            assert timeline.verticalScrollBar().maximum() == 0
            rows = [own_held(engine, group, f"reading {number}") for number in range(40)]
            last = rows[-1]
            await until(lambda: in_view(it, last))
            assert timeline.verticalScrollBar().maximum() > 0
            assert right(last) == before

    play(scenario)


def test_the_way_back_takes_no_room_for_a_badge_that_is_not_there() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Harbour")
        async with stage(engine, opening=group, size=(420, 640)) as it:
            back = it.window.pane.header.back
            await until(back.isVisible)
            assert back.width() == back.height()
            engine.receive(other, "Maya", "hello")
            await until(lambda: back.width() > back.height())
            engine.change(other, unread=0, first_unread=None)
            await until(lambda: back.width() == back.height())

    play(scenario)
