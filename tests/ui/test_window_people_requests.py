"""A request to talk: who asks, who answers, and what the bar above the conversation offers.

The first step of a contact (engine.core.contacts): accepted, declined, withdrawn, blocked, given
up and sent again, each by its button or with the keys alone, and what that does to the list and
to the box one writes in.  How a link becomes a request is said in test_window_people_adding.
"""

from PySide6.QtCore import Qt

from engine.core.contacts import ContactState
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import DeliveryState
from engine.core.problems import FailureReason
from engine.events import DeliveryView, MessageKind
from tests.ui.driving import Key, pair_stage, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_people import PERSON_FINGERPRINT
from tests.ui.seeing import sheet_of
from ui.dialogs.confirm import Confirm
from ui.people import Answer

CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_a_request_is_answered_with_the_keys_alone() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.press(Key.Key_F, CTRL | SHIFT)
            it.write("bob")
            it.press(Key.Key_Return)
            pane = it.window.pane
            assert pane.is_open(bob)
            assert pane.contact_bar.hasFocus(), "no button: Enter must not accept by accident"
            it.press(Key.Key_Return)
            await turn()
            assert engine.called("accept_contact") == []
            said = pane.contact_bar.accessibleName()
            assert said.startswith("Bob wants to talk to you.")
            assert PERSON_FINGERPRINT in said
            assert not pane.composer.box.isEnabled()
            assert pane.composer.box.placeholderText() == "Accept Bob to write to them"
            accept = pane.contact_bar.buttons[Answer.ACCEPT]
            for _ in range(5):
                if not accept.hasFocus():
                    it.press(Key.Key_Tab)
            assert accept.hasFocus()
            it.press(Key.Key_Return)
            await until(pane.composer.box.isEnabled)
            assert engine.called("accept_contact") == [bob]
            assert not pane.contact_bar.isVisible()
            assert pane.composer.box.hasFocus(), "now one wants to write"
            await it.send("Hello Bob")

    play(scenario)


def test_declining_tells_and_leaves_a_way_to_ask() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKING) as (it, engine, bob):
            bar = it.window.pane.contact_bar
            bar.buttons[Answer.DECLINE].click()
            await until(lambda: bar.title.text() == "You declined Bob")
            assert [a for a, b in bar.buttons.items() if b.isVisible()] == [Answer.ASK_AGAIN]
            bar.buttons[Answer.ASK_AGAIN].click()
            await until(lambda: bar.title.text() == "Waiting for Bob to accept")
            assert [a for a, b in bar.buttons.items() if b.isVisible()] == [Answer.WITHDRAW]
            composer = it.window.pane.composer.box
            assert composer.placeholderText() == "You can write once Bob accepts"
            engine.set_state(bob, ContactState.ACCEPTED)
            assert composer.isEnabled()
            assert composer.placeholderText() == "Message Bob"

    play(scenario)


def test_a_request_is_withdrawn_and_can_be_made_again() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKED) as (it, engine, bob):
            bar = it.window.pane.contact_bar
            button = bar.buttons[Answer.WITHDRAW]
            assert button.isVisible()
            assert button.text() == "Withdraw request"
            button.click()
            await until(lambda: bar.title.text() == "You withdrew your request to Bob")
            assert engine.called("withdraw_contact") == [bob]
            assert [a for a, b in bar.buttons.items() if b.isVisible()] == [Answer.ASK_AGAIN]

    play(scenario)


def test_a_request_that_was_given_up_says_so_and_is_sent_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKED)
        (request,) = engine.rows[bob]
        lost = DeliveryView(state=DeliveryState.FAILED, of=1, failure=FailureReason.NOT_REACHED)
        async with stage(engine, opening=bob) as it:
            bar = it.window.pane.contact_bar
            assert bar.title.text() == "Waiting for Bob to accept"
            engine.deliver(bob, request, lost)
            assert bar.title.text() == "Your request did not reach Bob"
            said = it.window.model.index_of(bob).data(Qt.ItemDataRole.AccessibleTextRole)
            assert "Not delivered: You asked to talk" in str(said)
            bar.buttons[Answer.SEND_AGAIN].click()
            await until(lambda: bar.title.text() == "Waiting for Bob to accept")
            assert engine.called("resend") == [request]

    play(scenario)


def test_blocking_asks_first_and_can_be_taken_back() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKING) as (it, engine, _):
            bar = it.window.pane.contact_bar
            bar.buttons[Answer.BLOCK].click()
            sheet = await sheet_of(it.window, Confirm)
            assert sheet.cancel.hasFocus()
            sheet.confirm.click()
            await until(lambda: bar.title.text() == "You blocked Bob")
            assert engine.called("set_blocked") == [True]
            bar.buttons[Answer.UNBLOCK].click()
            await until(lambda: not bar.isVisible())
            assert engine.called("set_blocked") == [True, False]

    play(scenario)


def test_a_refused_answer_is_told_and_can_be_given_again() -> None:
    async def scenario() -> None:
        async with pair_stage("Bob", ContactState.ASKING) as (it, engine, bob):
            engine.fail("accept_contact", StorageError("full", StorageFault.DISK_FULL))
            accept = it.window.pane.contact_bar.buttons[Answer.ACCEPT]
            accept.click()
            await until(lambda: bool(it.window.notices.rows))
            (row,) = it.window.notices.rows
            assert "accept the request" in row.words.text()
            row.acts[0].click()
            await until(lambda: engine.called("accept_contact") == [bob])

    play(scenario)


def test_a_draft_outlives_a_time_in_which_one_cannot_write() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, engine, luc):
            box = it.window.pane.composer.box
            it.write("half a thou", on=box)
            engine.set_state(luc, ContactState.BLOCKED)
            assert not box.isEnabled()
            assert not it.window.pane.composer.send.isEnabled()
            engine.set_state(luc, ContactState.ACCEPTED)
            assert box.toPlainText() == "half a thou"
            assert it.window.pane.composer.send.isEnabled()

    play(scenario)


def test_a_group_after_a_request_has_no_bar() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob, group = engine.add_person("Bob", ContactState.ASKING), engine.add_group("Tide")
        async with stage(engine, opening=bob) as it:
            assert it.window.pane.contact_bar.isVisible()
            it.window.open_conversation(group)
            assert not it.window.pane.contact_bar.isVisible()
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_a_request_that_arrives_is_a_new_row_and_a_notification_away() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide")
        async with stage(engine) as it:
            bob = engine.add_person("Bob", ContactState.ASKING)
            index = it.window.model.index_of(bob)
            said = str(index.data(Qt.ItemDataRole.AccessibleTextRole))
            assert said.startswith("Bob, new request, Wants to talk to you")
            assert "wants to talk to you" in str(index.data(Qt.ItemDataRole.ToolTipRole))
            engine.narrate(bob, MessageKind.DECLINED, own=False)
            engine.set_state(bob, ContactState.DECLINED)
            said = str(it.window.model.index_of(bob).data(Qt.ItemDataRole.AccessibleTextRole))
            assert said.startswith("Bob, Declined")

    play(scenario)
