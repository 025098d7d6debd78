"""The panel beside a conversation: about a group or a person, by mouse and by keys."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, DeliveryState, UnixMs
from engine.events import DeliveryView, MessageChanged, MessageKind, MessageView
from engine.file_views import FileView
from tests.ui.driving import Key, Stage, group_stage, pair_stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_people import PERSON_FINGERPRINT, SAFETY_NUMBER, picture_bytes
from tests.ui.seeing import choose, seen_words, sheet_of, words_of
from ui.controls import ElidedText
from ui.dialogs.contact import SafetyNumber
from ui.dialogs.group import InviteLink
from ui.dialogs.picture_viewer import PictureViewer
from ui.people import digit_groups
from ui.side.group import GroupPanel
from ui.side.person import PersonPanel, Somebody
from ui.side.shared import PAGE, FileRow, PictureTile
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import MessageRow

pytestmark = pytest.mark.usefixtures("qapp")
Alt = Qt.KeyboardModifier.AltModifier
_MOST_STEPS = 20
MAYA, JONAS = (member(name).participant_id for name in ("Maya", "Jonas"))


def opened(it: Stage) -> bool:
    return it.window.side.panel is not None


def group_panel(it: Stage) -> GroupPanel:
    panel = it.window.side.panel
    assert isinstance(panel, GroupPanel)
    return panel


def person_panel(it: Stage) -> PersonPanel:
    panel = it.window.side.panel
    assert isinstance(panel, PersonPanel)
    return panel


def shown(it: Stage) -> Somebody:
    somebody = person_panel(it).somebody
    assert somebody is not None
    return somebody


def said(it: Stage) -> list[str]:
    """What a screen reader reads of the rows."""
    rows = group_panel(it).rows.values()
    names = (QAccessible.queryAccessibleInterface(row) for row in rows)
    return [interface.text(QAccessible.Text.Name) for interface in names]


def shared(
    engine: ScriptedEngine, place: ConversationId, number: int, *, picture: bool = False
) -> MessageView:
    kind = ("image/png", 64, 48) if picture else ("application/pdf", 0, 0)
    file = FileView(
        name=f"plate {number}", media_type=kind[0], size=2048, width=kind[1], height=kind[2]
    )
    row = replace(engine.row(place, member("Maya"), ""), kind=MessageKind.FILE, file=file)
    engine.file_bytes[row.message_id] = picture_bytes()
    engine.rows[place][row.message_id] = row
    engine.blobs.listed.append(row)
    return row


def test_the_header_opens_the_panel_of_a_group_and_escape_gives_the_keys_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            box = it.window.pane.composer.box
            box.setFocus()
            it.press(Key.Key_Return, Alt)
            assert group_panel(it).close_button.hasFocus()
            assert not it.window.dock.covers
            assert it.window.pane.isVisible()
            it.press(Key.Key_Escape)
            assert not opened(it)
            assert box.hasFocus()
            header = it.window.pane.header
            for widget in (header.about, *header.findChildren(ElidedText)):
                QTest.mouseClick(widget, Qt.MouseButton.LeftButton)
                assert opened(it)
                QTest.mouseClick(group_panel(it).close_button, Qt.MouseButton.LeftButton)
                assert not opened(it)
            between = QPoint(header.width() // 2, 2)
            assert header.childAt(between) is None
            QTest.mouseClick(header, Qt.MouseButton.LeftButton, pos=between)
            assert opened(it)
            QTest.mouseClick(group_panel(it).close_button, Qt.MouseButton.LeftButton)
            assert header.about.accessibleName() == "About Tide Gauge"
            choose(header.more.menu(), "About this group")
            assert opened(it)

    play(scenario)


def test_members_are_there_with_what_they_have_and_who_was_compared() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ("Maya", "Jonas", "Luc"))
        engine.add_person("Maya", online=True)
        engine.compared = frozenset({MAYA})
        engine.receive(group, "Jonas", "It talks!", minute=1)
        held = DeliveryView(state=DeliveryState.POSSIBLY_HELD, held_by=(MAYA,), of=3)
        own = engine.row(group, member("Ines", is_self=True), "Lovely", 2)
        async with stage(engine, opening=group) as it:
            engine.arrive(replace(own, delivery=held))
            it.window.side.toggle()
            maya = "Maya, verified, Online · has your newest message"
            await until(lambda: maya in said(it))
            assert said(it)[0] == "Ines, you", "nobody has a role where all have the link"
            assert said(it)[2].startswith("Jonas, Wrote ")
            assert said(it)[3] == "Luc, No sign of them so far"
            joined = replace(engine.row(group, member("Luc"), "", 3), kind=MessageKind.JOINED)
            engine.arrive(joined, notify=False)
            await until(lambda: said(it)[3].startswith("Luc, Joined "))
            everybody = replace(held, held_by=(MAYA, JONAS))
            engine.rows[group][own.message_id] = replace(own, delivery=everybody)
            engine.tell(MessageChanged(message=engine.rows[group][own.message_id]))
            await until(lambda: "has your newest message" in said(it)[2])

    play(scenario)


def test_a_member_is_chosen_by_keys_and_compared_and_there_is_a_way_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            it.window.side.toggle()
            row = group_panel(it).rows[MAYA]
            await until(row.isVisible)
            row.setFocus()
            it.press(Key.Key_Return)
            panel = person_panel(it)
            assert "Maya" in seen_words(panel)
            assert not panel.verified_pill.isVisible()
            assert [group.name.whole_text() for group in panel.rows.values()] == ["Tide Gauge"]
            panel.compare.setFocus()
            it.press(Key.Key_Space)
            sheet = await sheet_of(it.window, SafetyNumber)
            assert "4fd1 90ab 77c2 1e05" in words_of(sheet)
            assert sheet.groups == digit_groups(SAFETY_NUMBER)
            sheet.verify.click()
            await until(panel.verified_pill.isVisible)
            assert engine.compared == {MAYA}
            panel.compare.click()
            await until(lambda: not panel.verified_pill.isVisible())
            assert engine.compared == frozenset()
            panel.mute_member.click()
            await until(lambda: ("set_member_muted", (MAYA, True)) in engine.calls)
            panel.back_button.click()
            assert group_panel(it).isVisible()

    play(scenario)


@pytest.mark.parametrize("by_mouse", [False, True])
def test_whom_one_talks_to_is_written_to_from_the_panel_of_a_group(by_mouse: bool) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ("Maya", "Jonas"))
        pair = engine.add_person("Maya")
        async with stage(engine, opening=group) as it:

            def press(button: QWidget) -> None:
                if by_mouse:
                    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
                    return
                for _step in range(_MOST_STEPS):
                    if not button.hasFocus():
                        it.press(Key.Key_Tab)
                it.press(Key.Key_Return, on=button)

            it.window.side.toggle()
            await until(group_panel(it).rows[JONAS].isVisible)
            press(group_panel(it).rows[JONAS])
            panel = person_panel(it)
            assert panel.write.accessibleName() == "Write to them…", "they are asked first"
            assert not panel.how.isVisible()
            assert not panel.link.isVisible()
            press(panel.back_button)
            press(group_panel(it).rows[MAYA])
            assert person_panel(it).write.accessibleName() == "Write to them"
            press(person_panel(it).write)
            await until(lambda: it.window.pane.is_open(pair))
            assert it.window.pane.composer.box.hasFocus()
            await it.send("Hello Maya")
            assert [row.text for row in engine.rows[pair].values()] == ["Hello Maya"]
            assert not person_panel(it).write.isVisible(), "one writes to them already"

    play(scenario)


@pytest.mark.parametrize(
    ("since_ms", "below_ms", "words"),
    [
        (UnixMs(1_795_000_000_000), None, "Forward secret since 18 November 2026"),
        (UnixMs(0), None, "not forward secret yet: they have an earlier version"),
        (
            UnixMs(1_795_000_000_000),
            UnixMs(1_795_000_000_000),
            "as by a version of Causerie without Olm. It is not read",
        ),
    ],
)
def test_the_panel_says_how_far_what_two_write_is_protected(
    since_ms: UnixMs, below_ms: UnixMs | None, words: str
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        pair = engine.add_person("Maya", forward_secret_ms=since_ms, below_olm_ms=below_ms)
        async with stage(engine, opening=pair) as it:
            it.window.side.toggle()
            panel = person_panel(it)
            assert words in panel.seal.text()
            assert panel.seal.isVisibleTo(panel)

    play(scenario)


def test_a_compared_person_is_marked_in_the_list_the_header_and_the_timeline() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        pair = engine.add_person("Maya")
        group = engine.add_group("Tide Gauge", ("Maya", "Jonas"))
        for number, name in enumerate(("Maya", "Jonas")):
            engine.receive(group, name, f"I am {name}", minute=number)
        async with stage(engine, opening=group) as it:
            await until(lambda: marked_names(it) == {"Maya": False, "Jonas": False})
            await engine.people.set_verified(MAYA, verified=True)
            it.window.people.verified_changed.emit()
            await until(lambda: marked_names(it) == {"Maya": True, "Jonas": False})
            assert not it.window.pane.header.verified.isVisible(), "a group is nobody"
            row = it.window.model.index_of(pair).data(Qt.ItemDataRole.AccessibleTextRole)
            assert row.endswith(", verified")
            it.window.open_conversation(pair)
            header = it.window.pane.header
            assert header.verified.isVisible()
            assert header.accessibleName() == "Maya, person, verified"
            await engine.people.set_verified(MAYA, verified=False)
            it.window.people.verified_changed.emit()
            assert not header.verified.isVisible()

    play(scenario)


def marked_names(it: Stage) -> dict[str, bool]:
    """Names above messages, and whether the mark of a compared key follows within the bubble."""
    scene, marked = it.window.pane.timeline.scene, dict[str, bool]()
    for placed in scene.placed:
        box = scene.box(placed.row)
        if isinstance(box, BubbleBox) and box.name:
            marked[box.name] = not box.verified_rect.isEmpty()
            assert box.verified_rect.isEmpty() or box.bubble.contains(box.verified_rect)
    return marked


def test_closing_the_number_compares_nobody() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, _pair):
            it.window.side.toggle()
            panel = person_panel(it)
            assert PERSON_FINGERPRINT in words_of(panel)
            panel.compare.click()
            sheet = await sheet_of(it.window, SafetyNumber)
            it.press(Key.Key_Escape, on=sheet)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.compared == frozenset()
            panel.compare.click()
            (await sheet_of(it.window, SafetyNumber)).verify.click()
            await until(panel.verified_pill.isVisible)
            panel.block.click()
            await until(lambda: it.window.flows.sheet is not None)

    play(scenario)


def test_a_click_on_a_picture_or_a_name_in_the_timeline_tells_who_it_is() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "Low water is 10:52")
            view = it.window.pane.timeline
            await until(lambda: bool(view.scene.placed) and view.scene.loaded.total == 1)
            message, g = view.scene.loaded.messages[0], view.scene.geometry

            async def click(inside: Callable[[BubbleBox], QPointF]) -> None:
                await until(lambda: view.scene.geometry.width == view.viewport().width())
                placed = next(p for p in view.scene.placed if isinstance(p.row, MessageRow))
                box = view.scene.box(placed.row)
                assert isinstance(box, BubbleBox)
                at = (inside(box) + QPointF(0, placed.y)).toPoint()
                QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)

            await click(lambda box: QPointF(g.thread_x, box.bubble.top() + g.avatar / 2))
            assert shown(it).participant_id == message.sender_id
            it.window.side.close()
            await until(lambda: view.width() == it.window.pane.width() == it.window.dock.width())
            await click(lambda box: box.name_rect.center())
            assert shown(it).participant_id == message.sender_id
            it.window.side.close()
            view.interaction.open_menu(message, QPoint(0, 0), link=None)
            choose(view.interaction.menu, "About Maya")
            assert shown(it).name == "Maya"

    play(scenario)


def test_ticks_and_beads_open_what_they_mean() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            await it.send("Lovely")
            view = it.window.pane.timeline
            await until(lambda: view.scene.loaded.total == 1)
            placed = view.scene.placed[-1]
            box = view.scene.box(placed.row)
            assert isinstance(box, BubbleBox)
            at = box.meta.rect.center().toPoint() + QPoint(0, int(placed.y))
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
            await until(lambda: it.window.inspector.panel is not None)
            it.window.inspector.close()
            bead = QPoint(int(view.scene.geometry.thread_x), at.y())
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=bead)
            await until(lambda: it.window.inspector.panel is not None)
            it.window.inspector.close()
            strip = it.window.pane.header.beads
            await until(strip.has_any)
            strip.setFocus()
            it.press(Key.Key_Left)
            assert strip.accessibleName().startswith("Look into “You: Lovely")
            it.press(Key.Key_Return)
            await until(lambda: it.window.inspector.panel is not None)
            it.window.inspector.close()
            engine.set_gap(group, 2)
            await until(lambda: strip.accessibleName() == "Messages: You lack 2")
            QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(strip.width() - 14, 16))
            assert view.hasFocus()

    play(scenario)


def test_what_was_shared_is_listed_and_opened() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        files = [shared(engine, group, n, picture=n == PAGE) for n in range(PAGE + 1)]
        async with stage(engine, opening=group) as it:
            it.window.side.toggle()
            box = group_panel(it).shared
            await until(lambda: len(box.messages) == PAGE)
            (tile,) = box.findChildren(PictureTile)
            assert tile.accessibleName().startswith(f"Picture plate {PAGE}, Maya · ")
            assert len(box.findChildren(FileRow)) == PAGE - 1
            box.more.click()
            await until(lambda: len(box.messages) == PAGE + 1)
            assert box.messages[-1] == files[0]
            assert not box.more.isVisible()
            tile.setFocus()
            it.press(Key.Key_Return)
            await until(lambda: bool(it.window.findChildren(PictureViewer)))
            (viewer,) = it.window.findChildren(PictureViewer)
            viewer.reject()

    play(scenario)


def test_a_narrow_window_shows_the_panel_instead_and_the_next_conversation_instead_of_it() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, books = engine.add_group("Tide Gauge"), engine.add_group("Books")
        async with stage(engine, opening=group, size=(640, 700)) as it:
            it.window.side.toggle()
            assert it.window.dock.covers
            assert not it.window.pane.isVisible()
            it.window.resize(1280, 800)
            await until(lambda: not it.window.dock.covers)
            assert it.window.pane.isVisible()
            it.window.open_conversation(books)
            await until(lambda: "Books" in seen_words(group_panel(it)))
            it.window.resize(640, 700)
            await until(lambda: it.window.dock.covers)
            it.window.open_conversation(group)
            assert it.window.side.panel is None
            assert it.window.pane.isVisible()

    play(scenario)


def test_it_mutes_the_group_and_goes_with_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "Bye")
            it.window.side.toggle()
            await until(lambda: "Maya, Wrote " in said(it)[1])
            choose(group_panel(it).mute_menu, "For 1 hour")
            await until(lambda: group_panel(it).mute.text().strip().startswith("Unmute"))
            group_panel(it).mute.click()
            await until(lambda: not engine.views[group].muted)
            await until(lambda: not engine.views[group].unread)  # Nothing is read of what is gone.
            await engine.leave(group)
            await until(lambda: it.window.side.panel is None)

    play(scenario)


def test_a_request_says_which_groups_one_shares() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide Gauge", ("Maya",))
        engine.add_group("Books", ("Jonas",))
        pair = engine.add_person("Maya", ContactState.ASKING)
        stranger = engine.add_person("Ada", ContactState.ASKING)
        async with stage(engine, opening=pair) as it:
            bar = it.window.pane.contact_bar
            assert bar.words.text().startswith("They are in Tide Gauge, as you are. Anyone")
            it.window.open_conversation(stranger)
            assert bar.words.text().startswith("You share no group with them. Anyone")

    play(scenario)


def test_an_invitation_can_be_scanned() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.side.toggle()
            group_panel(it).invite.click()
            sheet = await sheet_of(it.window, InviteLink)
            assert sheet.code.accessibleName().startswith("Code of the invitation to Tide Gauge")
            assert sheet.code.sizeHint().width() > 0

    play(scenario)


def test_tab_leads_through_the_panel_and_f6_to_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.side.toggle()
            panel = group_panel(it)
            await until(panel.rows[MAYA].isVisible)
            reached = []
            for _ in range(5):
                it.press(Key.Key_Tab)
                focused = QApplication.focusWidget()
                assert focused is not None
                reached.append(focused.accessibleName())
            assert reached[:2] == ["Invite people", "Mute"]
            assert reached[2].startswith("Ines")
            assert reached[3].startswith("Maya")
            assert reached[4] == "Leave group…"
            it.press(Key.Key_Tab)
            assert not panel.isAncestorOf(QApplication.focusWidget() or panel)
            it.window.pane.composer.box.setFocus()
            it.press(Key.Key_F6)
            assert panel.close_button.hasFocus()

    play(scenario)
