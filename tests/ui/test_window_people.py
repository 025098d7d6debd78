"""People in the window: who asks, who answers, what one may do, all with the keys alone."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QImage
from PySide6.QtWidgets import QMenu, QWidget

from engine.core.contacts import CONTACT_PREFIX, MAX_PICTURE_BYTES, ContactState
from engine.core.errors import ConfigError, InviteError, StorageError
from engine.core.types import DeliveryState, UnixMs
from engine.events import DeliveryView, MessageKind
from tests.ui.driving import Key, Stage, play, stage, turn, until
from tests.ui.scripted_engine import FINGERPRINT, START_MS, ScriptedEngine
from tests.ui.scripted_people import (
    MY_LINK,
    PERSON_FINGERPRINT,
    SAFETY_NUMBER,
    pair_id,
    person_id,
    picture_bytes,
)
from ui.controls import Text
from ui.dialogs.confirm import Confirm
from ui.dialogs.contact import RenamePerson, SafetyNumber
from ui.dialogs.join import Join
from ui.dialogs.person import MINE, AddPerson
from ui.dialogs.profile import Profile
from ui.dialogs.sheet import Sheet
from ui.people import Answer

S = TypeVar("S", bound=Sheet)
CTRL = Qt.KeyboardModifier.ControlModifier


async def sheet_of(it: Stage, kind: type[S]) -> S:
    await until(
        lambda: isinstance(it.window.flows.sheet, kind) and it.window.flows.sheet.isVisible()
    )
    sheet = it.window.flows.sheet
    assert isinstance(sheet, kind)
    return sheet


def words_of(widget: QWidget) -> str:
    return "\n".join(text.text() for text in widget.findChildren(Text)).replace("\u200b", "")


def spoken_rows(it: Stage) -> list[str]:
    timeline = QAccessible.queryAccessibleInterface(it.window.pane.timeline)
    return [timeline.child(i).text(QAccessible.Text.Name) for i in range(timeline.childCount())]


def entries(menu: QMenu | None) -> list[str]:
    assert menu is not None
    return [action.text() for action in menu.actions() if not action.isSeparator()]


def choose(menu: QMenu | None, words: str) -> None:
    assert menu is not None
    next(action for action in menu.actions() if action.text() == words).trigger()


# --- a request ----------------------------------------------------------------------------------


def test_a_request_is_answered_with_the_keys_alone() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.press(Key.Key_K, CTRL)
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
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.window.open_conversation(bob)
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
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKED)
        async with stage(engine) as it:
            it.window.open_conversation(bob)
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
        lost = DeliveryView(state=DeliveryState.FAILED, of=1, failure="no answer in 30 days")
        async with stage(engine) as it:
            it.window.open_conversation(bob)
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
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.window.open_conversation(bob)
            bar = it.window.pane.contact_bar
            bar.buttons[Answer.BLOCK].click()
            sheet = await sheet_of(it, Confirm)
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
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.window.open_conversation(bob)
            engine.fail("accept_contact", StorageError("The disk is full."))
            accept = it.window.pane.contact_bar.buttons[Answer.ACCEPT]
            accept.click()
            await until(lambda: bool(it.window.notices.rows))
            (row,) = it.window.notices.rows
            assert "accept the request" in row.words.text()
            assert row.act is not None
            row.act.click()
            await until(lambda: engine.called("accept_contact") == [bob])

    play(scenario)


def test_a_draft_outlives_a_time_in_which_one_cannot_write() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
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
        async with stage(engine) as it:
            it.window.open_conversation(bob)
            assert it.window.pane.contact_bar.isVisible()
            it.window.open_conversation(group)
            assert not it.window.pane.contact_bar.isVisible()
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


# --- the conversation ---------------------------------------------------------------------------


def test_the_header_of_a_person_says_whether_they_are_there() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        seen = UnixMs(START_MS - 3_600_000)
        luc = engine.add_person("Luc", last_seen_ms=seen)
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            header = it.window.pane.header
            assert header._line.whole_text().startswith("Last seen ")
            assert header.accessibleName() == "Luc, person"
            engine.set_contact(luc, replace(engine.contact(luc), is_online=True))
            assert header._line.whole_text() == "Online"
            header.show_typing(("Luc",))
            assert header._line.whole_text() == "Luc is typing…"
            assert entries(header.more.menu()) == [
                "Safety number…",
                "Rename…",
                "Fetch history",
                "Mute",
                "Block…",
                "Remove…",
            ]
            group = engine.add_group("Tide")
            it.window.open_conversation(group)
            assert "Leave group…" in entries(header.more.menu())
            assert header.more.accessibleName() == "Group menu"

    play(scenario)


def test_of_two_a_message_is_said_to_be_delivered_and_nobody_is_named_above_bubbles() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            engine.receive(luc, "Luc", "Are you there?")
            await it.send("Yes")
            (sent,) = [row for row in engine.rows[luc].values() if row.is_own]
            await until(lambda: any("Saved on this device" in row for row in spoken_rows(it)))
            held = DeliveryView(state=DeliveryState.HELD, held_by=(person_id("Luc"),), of=1)
            engine.deliver(luc, sent.message_id, held)
            await until(lambda: any(row.endswith(", Delivered") for row in spoken_rows(it)))
            failed = DeliveryView(state=DeliveryState.FAILED, of=1, failure="no answer in 30 days")
            engine.deliver(luc, sent.message_id, failed)
            await until(lambda: any("Not delivered: No answer" in row for row in spoken_rows(it)))
            timeline = it.window.pane.timeline
            names = [getattr(timeline.scene.box(p.row), "name", "") for p in timeline.scene.placed]
            assert set(names) == {""}
            assert any(row.startswith("Luc, Are you there?") for row in spoken_rows(it))

    play(scenario)


def test_a_group_opened_after_a_pair_names_its_senders_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc, group = engine.add_person("Luc"), engine.add_group("Tide")
        engine.receive(group, "Maya", "hello")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            it.window.open_conversation(group)
            scene = it.window.pane.timeline.scene
            await until(lambda: bool(scene.placed))
            names = [getattr(scene.box(placed.row), "name", "") for placed in scene.placed]
            assert "Maya" in names

    play(scenario)


def test_renaming_is_for_this_device_and_empty_takes_it_back() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            menu = it.window.pane.header.more.menu()
            choose(menu, "Rename…")
            sheet = await sheet_of(it, RenamePerson)
            assert sheet.name.hasFocus()
            engine.fail("rename_contact", ConfigError("A name needs a letter."))
            it.write("Lucky", on=sheet.name)
            it.press(Key.Key_Return, on=sheet.name)
            await until(sheet.problem.isVisible)
            assert sheet.problem.text() == "A name needs a letter."
            it.press(Key.Key_Return, on=sheet.name)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("rename_contact") == ["Lucky"]
            assert it.window.pane.composer.box.placeholderText() == "Message Lucky"
            assert "calls themselves Luc" in it.window.pane.header._line.whole_text()
            choose(menu, "Rename…")
            sheet = await sheet_of(it, RenamePerson)
            assert sheet.name.text() == "Lucky"
            assert sheet.name.placeholderText() == "Luc"
            sheet.name.clear()
            sheet.confirm.click()
            await until(lambda: engine.called("rename_contact") == ["Lucky", ""])

    play(scenario)


def test_the_safety_number_can_be_read_heard_copied_and_scanned() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            choose(it.window.pane.header.more.menu(), "Safety number…")
            sheet = await sheet_of(it, SafetyNumber)
            assert " ".join(sheet.groups) == SAFETY_NUMBER
            for group in sheet.groups:
                assert group in words_of(sheet)
            assert sheet.code.has_code
            assert sheet.code.accessibleName() == "Code of the safety number with Luc"
            sheet.copy_button.click()
            assert QGuiApplication.clipboard().text() == SAFETY_NUMBER
            assert sheet.copy_button.accessibleName() == "Copied"

    play(scenario)


def test_removing_warns_of_what_is_lost_and_leads_to_the_list() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            engine.change(luc, failed=1, waiting_to_send=1)
            choose(it.window.pane.header.more.menu(), "Remove…")
            sheet = await sheet_of(it, Confirm)
            assert "2 messages of yours never got out" in words_of(sheet)
            sheet.confirm.click()
            await until(lambda: it.window.pane.conversation is None)
            assert engine.called("remove_contact") == [luc]
            assert it.window.model.rowCount() == 0

    play(scenario)


def test_muting_a_person_is_muting_a_conversation() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        async with stage(engine) as it:
            it.window.open_conversation(luc)
            choose(it.window.pane.header.more.menu(), "Mute")
            await until(lambda: engine.views[luc].muted)
            assert "Unmute" in entries(it.window.pane.header.more.menu())

    play(scenario)


# --- adding somebody ----------------------------------------------------------------------------


def test_a_pasted_link_is_explained_before_anybody_is_asked() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.press(Key.Key_P, CTRL)
            sheet = await sheet_of(it, AddPerson)
            form = sheet.theirs
            assert form.field.hasFocus()
            assert not sheet.confirm.isEnabled()
            for link, problem in (
                ("hello", "This is not a contact link"),
                (f"{CONTACT_PREFIX}go-", "This contact link is cut off"),
                (f"{CONTACT_PREFIX}old", "This contact link expired on 3 May 2026."),
                (MY_LINK, "This is your own contact link."),
                ("causerie:join/good", "This is an invitation to a group."),
                ("x" * 20_000, "This is far too long"),
            ):
                form.field.setPlainText(link)
                assert form.problem.text().startswith(problem)
                assert not sheet.confirm.isEnabled()
                assert not form.card.isVisible()
            form.field.setPlainText(f" {CONTACT_PREFIX[:9]}\n{CONTACT_PREFIX[9:]}Bob\n")
            assert not form.problem.isVisible()
            for piece in ("Bob", PERSON_FINGERPRINT, "contacts 1 address"):
                assert piece in words_of(form.card)
            assert engine.called("add_contact") == []
            assert sheet.confirm.accessibleName() == "Ask Bob"
            it.press(Key.Key_Return, on=form.field)
            await until(lambda: it.window.pane.is_open(pair_id("Bob")))
            assert engine.called("add_contact") == [f"{CONTACT_PREFIX}Bob"]
            assert it.window.pane.contact_bar.title.text() == "Waiting for Bob to accept"

    play(scenario)


def test_whoever_asked_already_is_accepted_by_their_link() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            it.window.people.add_person()
            sheet = await sheet_of(it, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.accessibleName() == "Accept Bob"
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(bob))
            assert it.window.pane.composer.box.isEnabled()

    play(scenario)


@pytest.mark.parametrize("state", [ContactState.ACCEPTED, ContactState.ASKED, ContactState.BLOCKED])
def test_somebody_who_is_there_is_opened_and_not_asked_again(state: ContactState) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", state)
        async with stage(engine) as it:
            it.window.people.add_person()
            sheet = await sheet_of(it, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.accessibleName() == "Open Bob"
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(bob))
            assert engine.called("add_contact") == []

    play(scenario)


def test_a_refusal_by_the_engine_stands_in_place() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.window.people.add_person()
            sheet = await sheet_of(it, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            engine.fail("add_contact", InviteError("Too many requests are open."))
            sheet.confirm.click()
            await until(sheet.theirs.problem.isVisible)
            assert sheet.theirs.problem.text() == "Too many requests are open."
            assert sheet.confirm.isEnabled()

    play(scenario)


def test_the_own_link_is_shown_as_a_code_copied_and_dated() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.window.people.add_person()
            sheet = await sheet_of(it, AddPerson)
            it.press(Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier, on=sheet.theirs.field)
            assert sheet.ways.buttons[0].hasFocus()
            it.press(Key.Key_Right)
            assert sheet.ways.buttons[MINE].isChecked()
            assert not sheet.theirs.isVisible()
            assert not sheet.confirm.isVisible()
            assert sheet.mine.code is not None
            assert sheet.mine.code.has_code
            assert sheet.mine.text.toPlainText() == MY_LINK
            assert "It expires on 16 February 2027." in words_of(sheet.mine)
            sheet.mine.copy_button.click()
            assert QGuiApplication.clipboard().text() == MY_LINK
            assert sheet.mine.copy_button.accessibleName() == "Copied"

    play(scenario)


def test_without_an_own_link_others_can_still_be_added() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.fail("make_contact_link", StorageError("the disk is full"))
        async with stage(engine) as it:
            it.window.people.add_person()
            sheet = await sheet_of(it, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.isEnabled()
            sheet.ways.choose(MINE)
            assert "Your link could not be made: the disk is full" in words_of(sheet.mine)
            assert not sheet.mine.copy_button.isVisible()

    play(scenario)


def test_a_contact_link_in_the_wrong_place_is_told_where_it_belongs() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            it.window.flows.join()
            sheet = await sheet_of(it, Join)
            sheet.form.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert "Choose “Add a person”" in sheet.form.problem.text()

    play(scenario)


def test_adding_a_person_is_reached_from_the_start_menu_and_the_empty_page() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            assert it.window.empty.add_person.hasFocus()
            it.press(Key.Key_Return)
            (await sheet_of(it, AddPerson)).reject()
            await until(lambda: it.window.flows.sheet is None)
            menu = it.window.panel.start.menu()
            assert [words.partition("\t")[0] for words in entries(menu)] == [
                "Add a person",
                "New group",
                "Join with an invitation",
            ]
            assert menu is not None
            menu.actions()[0].trigger()
            await sheet_of(it, AddPerson)

    play(scenario)


def test_the_first_start_offers_a_person_too() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            it.press(Key.Key_P, CTRL)
            await turn()
            assert it.window.flows.sheet is None, "nobody is there yet who could ask"
            it.write("Ines")
            it.press(Key.Key_Return)
            page = it.window.first_start
            await until(page.conversation_step.isVisible)
            page.conversation_step.add_person.click()
            sheet = await sheet_of(it, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(pair_id("Bob")))
            assert it.window.pages.currentWidget() is it.window.body

    play(scenario)


# --- the own profile ----------------------------------------------------------------------------


def test_a_profile_gets_a_name_and_a_picture_that_was_made_small(tmp_path: Path) -> None:
    file = tmp_path / "me.png"
    file.write_bytes(picture_bytes("#b5385b", side=900))

    async def choose_file(_parent: QWidget) -> Path | None:
        return file

    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, choose_picture=choose_file) as it:
            it.window.panel.avatar.setFocus()
            it.press(Key.Key_Return)
            sheet = await sheet_of(it, Profile)
            assert FINGERPRINT in words_of(sheet)
            assert not sheet.remove_button.isVisible()
            sheet.choose_button.click()
            await until(lambda: bool(sheet.picture))
            assert sheet.remove_button.isVisible()
            sheet.name.setText("Inès")
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            assert engine.own is not None
            assert engine.called("set_profile") == [("Inès", engine.own.picture)]
            assert len(engine.own.picture) <= MAX_PICTURE_BYTES
            assert QImage.fromData(engine.own.picture).width() == 256
            assert it.window.panel.avatar.accessibleName().startswith("You: Inès")
            assert it.window.panel._name.text() == "Inès"

    play(scenario)


def test_a_file_that_is_no_picture_is_refused_in_words_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "me.txt"
    file.write_text("hello", "utf-8")
    answers: list[Path | None] = [None, file]

    async def choose_file(_parent: QWidget) -> Path | None:
        return answers.pop(0)

    async def scenario() -> None:
        engine = ScriptedEngine()
        assert engine.own is not None
        engine.own = replace(engine.own, picture=picture_bytes())
        async with stage(engine, choose_picture=choose_file) as it:
            it.window.people.profile()
            sheet = await sheet_of(it, Profile)
            for problem in ("", "This is neither a PNG nor a JPEG picture."):
                sheet.choose_button.click()
                await until(sheet.choose_button.isEnabled)
                assert sheet.problem.text() == problem
                assert sheet.picture == picture_bytes()
            sheet.remove_button.click()
            engine.fail("set_profile", ConfigError("This name cannot be used."))
            sheet.confirm.click()
            await until(sheet.problem.isVisible)
            assert sheet.problem.text() == "This name cannot be used."
            sheet.confirm.click()
            await until(lambda: engine.called("set_profile") == [("Ines", b"")])

    play(scenario)


# --- the list -----------------------------------------------------------------------------------


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


def test_large_letters_in_a_narrow_window_leave_every_answer_in_sight() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine, stored={"text_percent": "200"}, size=(420, 720)) as it:
            it.window.open_conversation(bob)
            pane = it.window.pane
            await until(lambda: pane.contact_bar.is_column)
            await turn()
            assert not pane.composer.isVisible(), "it could only repeat what the bar says"
            for answer in (Answer.BLOCK, Answer.DECLINE, Answer.ACCEPT):
                button = pane.contact_bar.buttons[answer]
                assert button.width() >= button.sizeHint().width()
                corner = button.mapTo(pane, button.rect().bottomRight())
                assert pane.rect().contains(corner)
            engine.set_state(bob, ContactState.ACCEPTED)
            assert pane.composer.isVisible()

    play(scenario)


def test_a_bar_that_became_narrow_is_as_high_as_one_that_was_opened_so() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc, bob = engine.add_person("Luc"), engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine, size=(420, 720)) as it:
            it.window.open_conversation(bob)
            await turn()
            opened_narrow = it.window.pane.contact_bar.height()
            it.window.open_conversation(luc)
            it.window.resize(1280, 820)
            await turn()
            it.window.open_conversation(bob)
            await turn()
            it.window.resize(420, 720)
            await until(lambda: it.window.pane.contact_bar.height() == opened_narrow)

    play(scenario)


@pytest.mark.parametrize("appearance", ["light", "dark", "high_contrast"])
@pytest.mark.parametrize("size", [(1280, 820), (860, 700), (380, 640)])
def test_every_standing_fits_its_window_in_every_appearance(
    appearance: str, size: tuple[int, int]
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        people = [
            engine.add_person(
                f"Somebody with a long name {n}", state, online=True, picture=picture_bytes()
            )
            for n, state in enumerate(ContactState)
        ]
        async with stage(engine, stored={"appearance": appearance}, size=size) as it:
            for person in people:
                it.window.open_conversation(person)
                await turn()
                it.window.grab()
                bar = it.window.pane.contact_bar
                for button in bar.buttons.values():
                    if button.isVisible():
                        corner = button.mapTo(bar, button.rect().bottomRight())
                        assert bar.rect().contains(corner)
                assert it.window.width() == size[0]

    play(scenario)
