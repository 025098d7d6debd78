"""The inspector beside a conversation: what it says, and how keys, clicks and events lead it."""

import json

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.answers import Arrival
from engine.core.ids import ConversationId, DeliveryState, HolderSource, MessageId, UnixMs
from engine.events import (
    ConversationRemoved,
    DeliveryView,
    MessageChanged,
    MessageRemoved,
)
from engine.inspection_views import MessageInspection, MvdsView, Seal, Whereabouts
from tests.ui.driving import NOW, Key, Stage, heard, stage, turn, until
from tests.ui.driving import play as played
from tests.ui.inspector_stage import TEXT, looking, opened
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_inspection import SENT_MS, inspection, link
from tests.ui.scripted_network import a_network, person
from tests.ui.seeing import choose, seen_words
from ui.inspector.life import life_of, time_to_the_second
from ui.inspector.panel import InspectorPanel
from ui.inspector.parts import StepRow
from ui.languages import speak
from ui.side.group import GroupPanel
from ui.timeline.boxes import BubbleBox

pytestmark = pytest.mark.usefixtures("qapp")
CtrlShift = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
Ctrl = Qt.KeyboardModifier.ControlModifier


def about_group(it: Stage) -> bool:
    return isinstance(it.window.dock.side, GroupPanel)


def words(panel: InspectorPanel) -> str:
    return "\n".join(seen_words(panel)).replace("\u200b", "")


def test_it_tells_the_life_the_holders_the_fields_and_the_size() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group, own):
            said = words(await opened(it))
            for expected in (
                f"You: {TEXT}",
                "Held by 1 of 3 others, maybe 1 more.",
                "Saved on this device",
                "Signed for group key 7",
                "Sent to 6 peers by relay",
                "No acknowledgement yet, sent again to 5 peers by relay",
                "First holder: Luc",
                "Maybe held by Jonas",
                "Sent again, unless somebody acknowledges it",
                "names it in e41a",
                "0.1 % chance it is wrong",
                "no sign",
                "Which Stores keep it: not recorded.",
                "An acknowledgement from any of: Jonas, Tomas",
                "It names 2 messages; 1 names it.",
                "lamport_timestamp",
                "4171",
                own.message_id,
                "71 bytes",
                "131 bytes",
                "164 bytes",
            ):
                assert expected in said, expected

    played(scenario)


def test_of_a_member_without_a_sign_it_says_when_it_was_last_heard() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            heard_ms = UnixMs(SENT_MS + 42_000)
            tomas = replace(person("Tomas", None), heard_ms=heard_ms)
            engine.network_view = a_network(tomas, person("Jonas", None))
            panel = await opened(it)
            assert f"last heard {time_to_the_second(heard_ms, NOW)}" in words(panel)
            assert "not heard since" not in words(panel), "of Jonas a filter is known"
            engine.network_view = a_network(person("Tomas", None))
            shown = heard(it.window.inspector.shown)
            it.window.inspector.refresh.regularly.timeout.emit()
            await shown
            assert "not heard since the start" in words(panel)

    played(scenario)


def test_it_is_read_regularly_while_it_is_open_since_claims_come_without_an_event() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            assert not it.window.inspector.refresh.regularly.isActive()
            await opened(it)
            assert it.window.inspector.refresh.regularly.isActive()
            shown = heard(it.window.inspector.shown)
            it.window.inspector.refresh.regularly.timeout.emit()
            await shown
            assert engine.inspected.asked == [own.message_id] * 2
            it.window.inspector.close()
            assert not it.window.inspector.refresh.regularly.isActive()

    played(scenario)


def test_of_a_late_message_it_says_how_long_after_it_was_signed_it_came() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):

            def late(found: MessageInspection) -> MessageInspection:
                assert found.message is not None
                assert found.sds is not None
                return replace(
                    found,
                    is_own=False,
                    arrival=Arrival.LIVE,
                    message=replace(found.message, late=True),
                    saved_ms=UnixMs(SENT_MS + 30_000),
                    sds=replace(found.sds, signed_ms=SENT_MS),
                )

            engine.inspected.change = late
            said = words(await opened(it))
            assert "Came directly, late: 30 s after it was signed" in said

    played(scenario)


def test_of_a_message_placed_together_with_what_it_depends_on_it_names_that() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            saved_ms = UnixMs(SENT_MS + 240_000)
            earlier = replace(link("Maya", "before", sender="maya"), saved_ms=SENT_MS)
            with_it = replace(link("Jonas", "needed", sender="jonas"), saved_ms=saved_ms)
            arrival = Arrival.LIVE

            def placed(found: MessageInspection) -> MessageInspection:
                assert found.sds is not None
                return replace(
                    found,
                    is_own=False,
                    arrival=arrival,
                    saved_ms=saved_ms,
                    sds=replace(found.sds, signed_ms=SENT_MS),
                    names=(with_it, earlier),
                )

            engine.inspected.change = placed
            why = "In its place 4 min after it was signed, together with Jonas needed"
            assert f"Came directly. {why}, on which it depends" in words(await opened(it))
            it.window.inspector.close()
            arrival = Arrival.STORE  # It brings many at once, and none of them waited for that.
            assert "on which it depends" not in words(await opened(it))

    played(scenario)


def test_keys_open_it_go_through_it_and_close_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            timeline = it.window.pane.timeline
            timeline.setFocus(Qt.FocusReason.TabFocusReason)
            it.press(Key.Key_I, Ctrl)
            await until(lambda: engine.inspected.asked == [own.message_id])
            panel = it.window.inspector.panel
            assert panel is not None
            assert panel.close_button.hasFocus()
            await until(lambda: bool(panel.graph.nodes))
            stops = []
            panel.copy_button.setFocus()
            for _ in range(8):
                focused = it.window.focusWidget()
                assert focused is not None
                stops.append(focused.accessibleName())
                it.press(Key.Key_Tab)
            assert "Priya priya…: here. Look into it" in stops
            assert "Luc gone: missing. Look into it" in stops
            panel.close_button.setFocus()
            it.press(Key.Key_Escape)
            assert it.window.inspector.panel is None
            assert timeline.hasFocus()

    played(scenario)


def test_it_follows_the_message_that_is_chosen_and_the_links_of_the_graph() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            panel = await opened(it)
            timeline = it.window.pane.timeline
            timeline.setFocus(Qt.FocusReason.TabFocusReason)
            shown = heard(it.window.inspector.shown)
            it.press(Key.Key_Up)
            await shown
            assert panel.found is not None
            assert panel.found.message is not None
            assert panel.found.message.text == "It talks!"
            gone = replace(
                inspection(own),
                message_id=MessageId("gone"),
                whereabouts=Whereabouts.MISSING,
                message=None,
                sds=None,
                copies=(),
                holders=(),
            )
            engine.inspected.unshown[MessageId("gone")] = gone
            node = next(n for n in panel.graph.nodes if n.link.message_id == "gone")
            shown = heard(it.window.inspector.shown)
            node.setFocus()
            it.press(Key.Key_Return)
            await shown
            assert panel.found.message_id == "gone"
            assert "Not here; it is looked for" in words(panel)
            assert f"from {gone.sender_name}, as is claimed" in panel.excerpt.whole_text()

    played(scenario)


def test_a_click_on_the_ticks_or_the_bead_opens_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            view = it.window.pane.timeline
            placed = view.scene.placed[-1]
            box = view.scene.box(placed.row)
            assert isinstance(box, BubbleBox)
            at = box.meta.rect.center().toPoint() + QPoint(0, int(placed.y))
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
            await until(lambda: engine.inspected.asked == [own.message_id])
            view.interaction.open_menu(own, QPoint(0, 0), link=None)
            shown = heard(it.window.inspector.shown)
            choose(view.interaction.menu, "Inspect")
            await shown

    played(scenario)


def test_what_is_copied_is_json_without_what_anybody_wrote() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, group, own):
            panel = await opened(it)
            panel.copy_button.click()
            text = QGuiApplication.clipboard().text()
            assert TEXT not in text
            copied = json.loads(text)
            assert copied["message_id"] == own.message_id
            assert copied["conversation_id"] == group
            assert copied["sds"]["lamport_timestamp"] == 4171
            assert copied["copies"][1]["occasion"] == "unacknowledged"
            assert copied["holders"][1]["false_probability"] == 0.001
            assert copied["row"]["kind"] == "text"

    played(scenario)


def test_of_what_is_not_here_it_says_who_names_it_and_not_that_it_names_nothing() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):

            def missing(found: MessageInspection) -> MessageInspection:
                return replace(
                    found,
                    whereabouts=Whereabouts.MISSING,
                    sds=None,
                    names=(),
                    named_by_complete=False,
                )

            engine.inspected.change = missing
            panel = await opened(it)
            said = words(panel)
            expected = "What it names is not known here; 1 names it; others may name it, too."
            assert expected in said
            engine.inspected.change = lambda found: replace(missing(found), sds=found.sds)
            shown = heard(it.window.inspector.shown)
            it.window.inspector.show_message(own.message_id)
            await shown
            assert "It names 0 messages; 1 names it" in words(panel)

    played(scenario)


def test_that_nobody_is_known_to_hold_what_somebody_else_said_is_no_count() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            engine.inspected.change = lambda found: replace(
                found, is_own=False, holders=(found.holders[2],)
            )
            said = words(await opened(it))
            assert "Who else holds it is not recorded" in said
            assert "Held by 0" not in said

    played(scenario)


def test_between_two_nobody_is_counted_and_the_record_is_shown() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        pair = engine.add_person("Maya")
        sent = DeliveryView(state=DeliveryState.SENT, of=1)
        row = engine.row(pair, member("Ines", is_self=True), TEXT, 5)
        own = replace(row, delivery=sent)
        engine.rows[pair][own.message_id] = own

        def between_two(found: MessageInspection) -> MessageInspection:
            mvds = MvdsView(
                message_id=own.message_id,
                group_id=pair,
                record="message",
                send_count=2,
                send_epoch=1_795_000_004,
                timestamp=1_795_000_000,
                body_size=71,
                seal=Seal.OLM,
                olm_since_ms=UnixMs(1_795_000_000_000),
            )
            alone = (replace(found.holders[2], name="Maya"),)
            return replace(found, sds=None, mvds=mvds, holders=alone, names=(), named_by=())

        engine.inspected.change = between_two
        async with stage(engine, opening=pair) as it:
            await until(lambda: it.window.pane.timeline.scene.loaded.total == 1)
            panel = await opened(it)
            said = words(panel)
            assert "Sent. Their device has not said yet that it has it." in said
            assert "of 1 other" not in said
            assert "Sealed by Olm with a key of its own; you both speak it since" in said
            for expected in ("MESSAGE", "send_count", "1795000004", "71 bytes"):
                assert expected in said, expected
            assert not panel.graph.isVisible()

    played(scenario)


@pytest.mark.parametrize(
    ("seal", "words"),
    [
        (Seal.OLM, "nothing came back by Olm yet"),
        (Seal.SIGNED, "sealed by HPKE: not forward secret"),
        (Seal.BOTH, "First signed and sealed by HPKE, not forward secret; later copies by Olm"),
        (Seal.NOT_NOTED, "How it was sealed is not recorded"),
        (None, ""),
    ],
)
def test_it_says_how_a_message_between_two_was_sealed(seal: Seal | None, words: str) -> None:
    found = MessageInspection(
        conversation_id=ConversationId("pair"),
        message_id=MessageId("one"),
        whereabouts=Whereabouts.LOGGED,
        is_open=False,
        looked_ms=UnixMs(2_000),
        message=None,
        sender_id=None,
        sender_name="Maya",
        is_own=False,
        saved_ms=UnixMs(1_000),
        arrival=Arrival.LIVE,
        mvds=MvdsView(message_id=MessageId("one"), group_id="pair", seal=seal),
    )
    told = [step.words for step in life_of(found) if "ealed" in step.words]
    assert len(told) == (seal is not None)
    assert words in "".join(told)


def test_names_and_ids_of_strangers_stay_on_their_line() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, _own):
            evil = "\u202eLuc\n<b>bold</b> " + "x" * 500

            def hostile(found: MessageInspection) -> MessageInspection:
                holders = tuple(replace(each, name=evil) for each in found.holders)
                links = tuple(replace(each, sender_name=evil) for each in found.named_by)
                assert found.sds is not None
                sds = replace(found.sds, channel_id=evil * 20)
                return replace(
                    found,
                    holders=holders,
                    named_by=links,
                    sds=sds,
                    is_own=False,
                    arrival=Arrival.REPAIR,
                    repaired_by="W" * 500,
                )

            engine.inspected.change = hostile
            panel = await opened(it)
            for line in seen_words(panel):
                assert "\u202e" not in line
                assert len(line) < 400, line
            steps = panel.life.findChildren(StepRow)
            await until(
                lambda: all(each.heightForWidth(each.width()) <= each.height() for each in steps)
            )
            for row in steps:
                assert not row.is_cut, row.accessibleName()
                assert "\u200b" not in row.accessibleName()
            for node in panel.graph.nodes:
                assert "\n" not in node.accessibleName()
                assert len(node.accessibleName()) < 120
            assert panel.width() == it.window.dock.width() - it.window.pane.width()

    played(scenario)


def test_a_screen_reader_finds_steps_and_fields_as_words() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group, _own):
            panel = await opened(it)
            names = []
            for widget in panel.findChildren(QWidget):
                interface = QAccessible.queryAccessibleInterface(widget)
                if widget.isVisible() and interface is not None:
                    names.append(interface.text(QAccessible.Text.Name))
            assert any(name.startswith("Saved on this device, ") for name in names)
            assert "lamport_timestamp: 4171" in names
            assert any(name.startswith("Held by 1 of 3") for name in names)
            assert panel.accessibleName() == "Delivery of a message"

    played(scenario)


def test_a_message_or_conversation_removed_meanwhile_is_said_or_closes_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group, own):
            panel = await opened(it)
            del engine.rows[group][own.message_id]
            shown = heard(it.window.inspector.shown)
            engine.tell(MessageRemoved(conversation_id=group, message_id=own.message_id))
            await shown
            assert "This message is not on this device any more." in words(panel)
            engine.tell(ConversationRemoved(conversation_id=group))
            await until(lambda: it.window.inspector.panel is None)

    played(scenario)


def test_nothing_is_read_while_it_is_closed_and_little_while_it_is_open() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group, _own):
            for minute in range(6, 30):
                engine.receive(group, "Maya", "more", minute=minute)
            await turn()
            assert engine.inspected.asked == []
            await opened(it)
            assert len(engine.inspected.asked) == 1
            for minute in range(30, 60):
                engine.receive(group, "Maya", "more", minute=minute)
            await until(lambda: len(engine.inspected.asked) > 1)
            assert len(engine.inspected.asked) == 2

    played(scenario)


def test_the_keys_stay_on_what_they_are_on_while_more_becomes_known() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, _group, own):
            panel = await opened(it)
            node = next(n for n in panel.graph.nodes if n.link.message_id == "e41a")
            steps = panel.life.findChildren(StepRow)
            node.setFocus()

            def more(found: MessageInspection) -> MessageInspection:
                named_by = (*found.named_by, link("Jonas", "90c7", sender="jonas"))
                jonas = replace(found.holders[1], source=HolderSource.CAUSAL, certain=True)
                return replace(
                    found,
                    named_by=named_by,
                    holders=(found.holders[0], jonas, found.holders[2]),
                )

            engine.inspected.change = more
            shown = heard(it.window.inspector.shown)
            engine.tell(MessageChanged(message=own))
            await shown
            assert node.hasFocus()
            assert [n.link.message_id for n in panel.graph.nodes][-2:] == ["e41a", "90c7"]
            assert "Held by 2 of 3 others." in words(panel)
            assert "names it in 90c7" in words(panel)
            assert "Maybe held by Jonas" not in words(panel)
            kept = [row for row in panel.life.findChildren(StepRow) if row in steps]
            assert len(kept) > 1

    played(scenario)


def test_in_a_narrow_window_it_is_a_sheet_that_leads_back() -> None:
    async def scenario() -> None:
        async with looking(size=(480, 720)) as (it, _engine, _group, _own):
            panel = await opened(it)
            assert it.window.dock.covers
            assert not it.window.pane.isVisible()
            panel.go.click()
            await until(it.window.pane.isVisible)
            assert it.window.dock.side is None

    played(scenario)


def test_it_and_the_panel_about_the_group_take_turns() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group, _own):
            it.window.side.toggle()
            assert about_group(it)
            await opened(it)
            assert not about_group(it)
            it.window.side.toggle()
            assert about_group(it)
            await turn()

    played(scenario)


def test_it_speaks_french() -> None:
    async def scenario() -> None:
        async with looking() as (it, _engine, _group, _own):
            speak("fr")
            try:
                said = words(await opened(it))
            finally:
                speak("en")
            assert "Enregistré sur cet appareil" in said
            assert f"Vous : {TEXT}" in said
            assert "Il nomme 2 messages\N{NARROW NO-BREAK SPACE}; 1 le nomme." in said
            assert "0,1\N{NO-BREAK SPACE}% de risque" in said
            assert "Saved on this device" not in said

    played(scenario)
