"""Asking to be let into a group with roles, and letting in, in the window.

By keyboard and mouse, on the scripted engine.
"""

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.core.admin_log.acts import Role
from engine.core.ids import ConversationId, UnixMs
from engine.events import ConversationAdded
from engine.governance_views import JoinState, JoinView
from tests.ui.driving import Key, play, stage, turn, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.scripted_governing import STRONG_LINK
from tests.ui.scripted_people import PERSON_FINGERPRINT, person_id
from tests.ui.seeing import join, sheet_of, spoken_rows, words_of
from tests.ui.test_window_governing import a_governed_group, group_panel, notices, spoken
from ui.dialogs.join import Join
from ui.dialogs.waiting import WaitingToBeLetIn
from ui.times import date_words, moment

HARBOUR = ConversationId("harbour")


def waiting(state: JoinState = JoinState.ASKED) -> JoinView:
    return JoinView(
        conversation_id=HARBOUR,
        group_name="Harbour Watch",
        inviter_name="Olga",
        asked_ms=UnixMs(START_MS),
        state=state,
    )


def test_a_group_one_asks_to_join_waits_in_the_list_and_opens_once_one_is_let_in() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            sheet.form.field.setPlainText(STRONG_LINK)
            shown = words_of(sheet)
            assert "Maya's device lets you in, and has to be online once." in shown
            assert "Fingerprint of who invites you" in shown
            assert sheet.confirm.accessibleName() == "Ask to join Tide Gauge"
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            engine.governing.wait(waiting())
            (row,) = it.window.panel.waiting.rows.values()
            assert row.isVisible()
            assert spoken(row) == "Harbour Watch: Waiting to be let in"
            row.setFocus()
            it.press(Key.Key_Return)
            about = await sheet_of(it.window, WaitingToBeLetIn)
            assert "This device keeps asking by itself" in words_of(about)
            assert about.another.isHidden()
            it.press(Key.Key_Escape)
            await until(lambda: it.window.flows.sheet is None)
            made = engine.add_group("Harbour Watch")
            engine.governing.wait()
            assert not it.window.panel.waiting.isVisible()
            view = replace(engine.views[made], conversation_id=HARBOUR)
            engine.views[view.conversation_id], engine.rows[view.conversation_id] = view, {}
            engine.tell(ConversationAdded(conversation=view))
            await until(lambda: it.window.pane.is_open(view.conversation_id))

    play(scenario)


def test_who_looks_elsewhere_when_they_are_let_in_is_told_and_led_there() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        engine.governing.wait(waiting())
        async with stage(engine, opening=group) as it:
            made = engine.add_group("Harbour Watch")
            view = replace(engine.views[made], conversation_id=HARBOUR)
            engine.views[view.conversation_id], engine.rows[view.conversation_id] = view, {}
            engine.tell(ConversationAdded(conversation=view))
            assert it.window.pane.is_open(group)
            assert "Olga let you into Harbour Watch." in notices(it)
            it.window.open_conversation(HARBOUR)
            assert "Olga let you into" not in notices(it), "they went there by themselves"

    play(scenario)


def test_each_way_not_to_be_let_in_is_said_with_what_one_can_do() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            panel = it.window.panel.waiting
            engine.governing.wait(waiting())
            for state, line in (
                (JoinState.WAITS, "Olga has to decide"),
                (JoinState.REFUSED, "Olga did not let you in"),
                (JoinState.EXPIRED, "The invitation has expired"),
                (JoinState.REVOKED, "The invitation was revoked"),
                (JoinState.FULL, "Nobody is let in any more"),
                (JoinState.SPENT, "The invitation is used up"),
            ):
                engine.governing.wait(waiting(state))
                assert spoken(panel.rows[HARBOUR]) == f"Harbour Watch: {line}"
                assert (f"Harbour Watch: {line}." in notices(it)) is (state is not JoinState.WAITS)
                if state is not JoinState.WAITS:
                    engine.governing.wait(waiting())
                    assert "Harbour Watch" not in notices(it), "asked anew"
            engine.governing.wait(waiting(JoinState.SPENT))
            row = panel.rows[HARBOUR]
            QTest.mouseClick(row, Qt.MouseButton.LeftButton)
            sheet = await sheet_of(it.window, WaitingToBeLetIn)
            assert "Somebody else came in with it before you" in words_of(sheet)
            QTest.mouseClick(sheet.another, Qt.MouseButton.LeftButton)
            again = await sheet_of(it.window, Join)
            again.reject()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            QTest.mouseClick(row, Qt.MouseButton.LeftButton)
            sheet = await sheet_of(it.window, WaitingToBeLetIn)
            QTest.mouseClick(sheet.forget, Qt.MouseButton.LeftButton)
            await until(lambda: not panel.isVisible())
            assert engine.called("forget_join") == [HARBOUR]
            assert "Harbour Watch" not in notices(it)

    play(scenario)


def test_whoever_asks_stands_above_the_messages_and_beside_the_group_until_answered() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            bar = it.window.pane.governance.asking
            assert not bar.isVisible()
            engine.governing.ask(group, "Nora")
            assert bar.isVisible()
            assert spoken(bar).startswith("Nora asks to be let in")
            assert PERSON_FINGERPRINT in spoken(bar)
            index = it.window.model.index_of(group)
            said = index.data(Qt.ItemDataRole.AccessibleTextRole)
            assert "1 asks to be let in" in str(said)
            it.press(Key.Key_Return)  # In the composer: nobody is let in by accident.
            await turn()
            assert engine.called("approve") == []
            bar.setFocus()
            it.press(Key.Key_Tab)
            it.press(Key.Key_Tab)
            it.press(Key.Key_Tab)
            focused = QApplication.focusWidget()
            assert focused is not None
            assert focused.accessibleName() == "Let in"
            it.press(Key.Key_Return)
            await until(lambda: engine.called("approve") == [person_id("Nora")])
            await until(lambda: not bar.isVisible())
            engine.governing.ask(group, "Nora", "Tom")
            assert spoken(bar).startswith("2 people ask to be let in")
            QTest.mouseClick(bar.buttons[0], Qt.MouseButton.LeftButton)
            card = group_panel(it).governed.asking[person_id("Tom")]
            QTest.mouseClick(card.refuse, Qt.MouseButton.LeftButton)
            await until(lambda: engine.called("refuse") == [person_id("Tom")])
            await until(lambda: list(group_panel(it).governed.asking) == [person_id("Nora")])

    play(scenario)


def test_a_newcomer_who_may_read_nothing_of_before_is_not_offered_it() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        view = engine.governing.known[group]
        engine.governing.put(replace(view, is_history_withheld=True, withheld_by_name="Olga"))
        engine.receive(group, "Olga", "Welcome")
        async with stage(engine, opening=group) as it:
            await until(lambda: bool(spoken_rows(it.window.pane.timeline)))
            rows = spoken_rows(it.window.pane.timeline)
            said = "What was written before you came cannot be read here: Olga chose that."
            assert rows[0] == said
            assert not any("Fetch earlier" in row for row in rows)

    play(scenario)


def test_a_newcomer_who_may_read_a_part_is_told_since_when_and_by_whom() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        view = engine.governing.known[group]
        engine.receive(group, "Olga", "Welcome")
        async with stage(engine, opening=group) as it:
            timeline = it.window.pane.timeline
            await until(lambda: bool(spoken_rows(timeline)))
            assert "cannot be read here" not in spoken_rows(timeline)[0]
            since_ms = UnixMs(START_MS - 40 * 86_400_000)
            part = replace(view, reads_since_ms=since_ms, withheld_by_name="Olga")
            engine.governing.put(part)
            since = date_words(moment(since_ms))
            said = f"You were let in with what was written from about {since} on."
            await until(lambda: spoken_rows(timeline)[0].startswith(said))
            assert "cannot be read here: Olga chose that." in spoken_rows(timeline)[0]

    play(scenario)
