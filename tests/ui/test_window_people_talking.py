"""The conversation with a person: its header, its rows, and what its menu can do.

Of two there is no need to say who speaks, and a message is delivered or not; the menu renames,
mutes, removes and shows the safety number.  Requests have a file of their own.
"""

from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication

from engine.core.errors import InputError, InputFlaw
from engine.core.ids import DeliveryState, UnixMs
from engine.core.problems import FailureReason
from engine.events import DeliveryView
from tests.ui.driving import Key, pair_stage, play, stage, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.scripted_people import SAFETY_NUMBER, person_id
from tests.ui.seeing import choose, entries, seen_words, sheet_of, spoken_rows, words_of
from ui.controls import ElidedText
from ui.dialogs.confirm import Confirm
from ui.dialogs.contact import RenamePerson, SafetyNumber


def test_the_header_of_a_person_says_whether_they_are_there() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        seen = UnixMs(START_MS - 3_600_000)
        luc = engine.add_person("Luc", last_seen_ms=seen)
        async with stage(engine, opening=luc) as it:
            header = it.window.pane.header
            assert any(words.startswith("Last seen ") for words in seen_words(header))
            assert header.accessibleName() == "Luc, person"
            engine.set_contact(luc, replace(engine.contact(luc), is_online=True))
            assert "Online" in seen_words(header)
            header.show_typing(("Luc",))
            assert "Luc is typing…" in seen_words(header)
            assert entries(header.more.menu()) == [
                "About this person",
                "Safety number…",
                "Rename…",
                "Search this conversation",
                "Go to date…",
                "Delivery view",
                "Fetch history",
                "Mute",
                "Export…",
                "Block…",
                "Remove…",
            ]
            group = engine.add_group("Tide")
            it.window.open_conversation(group)
            assert "Leave group…" in entries(header.more.menu())
            assert header.more.accessibleName() == "Group menu"

    play(scenario)


def test_the_lock_stands_right_beside_a_name_however_short() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, opening=engine.add_person("Li")) as it:
            header = it.window.pane.header
            await until(header.lock.isVisible)
            name = next(part for part in header.findChildren(ElidedText) if part.text() == "Li")
            end = name.geometry().left() + name.fontMetrics().horizontalAdvance("Li")
            assert header.lock.geometry().left() - end <= 12

    play(scenario)


def test_of_two_a_message_is_said_to_be_delivered_and_nobody_is_named_above_bubbles() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, engine, luc):
            timeline = it.window.pane.timeline
            engine.receive(luc, "Luc", "Are you there?")
            await it.send("Yes")
            (sent,) = [row for row in engine.rows[luc].values() if row.is_own]
            await until(lambda: any("Saved on this device" in row for row in spoken_rows(timeline)))
            held = DeliveryView(state=DeliveryState.HELD, held_by=(person_id("Luc"),), of=1)
            engine.deliver(luc, sent.message_id, held)
            await until(lambda: any(row.endswith(", Delivered") for row in spoken_rows(timeline)))
            failed = DeliveryView(
                state=DeliveryState.FAILED, of=1, failure=FailureReason.NOT_REACHED
            )
            engine.deliver(luc, sent.message_id, failed)
            unsent = "Not delivered: They could not be reached"
            await until(lambda: any(unsent in row for row in spoken_rows(timeline)))
            names = [getattr(timeline.scene.box(p.row), "name", "") for p in timeline.scene.placed]
            assert set(names) == {""}
            assert any(row.startswith("Luc, Are you there?") for row in spoken_rows(timeline))

    play(scenario)


def test_a_group_opened_after_a_pair_names_its_senders_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc, group = engine.add_person("Luc"), engine.add_group("Tide")
        engine.receive(group, "Maya", "hello")
        async with stage(engine, opening=luc) as it:
            it.window.open_conversation(group)
            scene = it.window.pane.timeline.scene
            await until(lambda: bool(scene.placed))
            names = [getattr(scene.box(placed.row), "name", "") for placed in scene.placed]
            assert "Maya" in names

    play(scenario)


def test_renaming_is_for_this_device_and_empty_takes_it_back() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, engine, _):
            menu = it.window.pane.header.more.menu()
            choose(menu, "Rename…")
            sheet = await sheet_of(it.window, RenamePerson)
            assert sheet.name.hasFocus()
            engine.fail("rename_contact", InputError(InputFlaw.NAME_EMPTY))
            it.write("Lucky", on=sheet.name)
            it.press(Key.Key_Return, on=sheet.name)
            await until(sheet.problem.isVisible)
            assert sheet.problem.text() == "This name cannot be used: nothing is left of the name."
            it.press(Key.Key_Return, on=sheet.name)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("rename_contact") == ["Lucky"]
            assert it.window.pane.composer.box.placeholderText() == "Message Lucky"
            header = it.window.pane.header
            assert any("calls themselves Luc" in words for words in seen_words(header))
            choose(menu, "Rename…")
            sheet = await sheet_of(it.window, RenamePerson)
            assert sheet.name.text() == "Lucky"
            assert sheet.name.placeholderText() == "Luc"
            sheet.name.clear()
            sheet.confirm.click()
            await until(lambda: engine.called("rename_contact") == ["Lucky", ""])

    play(scenario)


def test_the_safety_number_can_be_read_heard_copied_and_scanned() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, _, _):
            choose(it.window.pane.header.more.menu(), "Safety number…")
            sheet = await sheet_of(it.window, SafetyNumber)
            assert " ".join(sheet.groups) == SAFETY_NUMBER
            for group in sheet.groups:
                assert group in words_of(sheet)
            assert not sheet.code.sizeHint().isEmpty()
            assert sheet.code.accessibleName() == "Code of the safety number with Luc"
            sheet.copy_button.click()
            assert QGuiApplication.clipboard().text() == SAFETY_NUMBER
            assert sheet.copy_button.accessibleName() == "Copied"

    play(scenario)


def test_removing_warns_of_what_is_lost_and_leads_to_the_list() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, engine, luc):
            engine.change(luc, failed=1, waiting_to_send=1)
            choose(it.window.pane.header.more.menu(), "Remove…")
            sheet = await sheet_of(it.window, Confirm)
            assert "2 messages of yours never got out" in words_of(sheet)
            sheet.confirm.click()
            await until(lambda: it.window.pane.conversation is None)
            assert engine.called("remove_contact") == [luc]
            assert it.window.model.rowCount() == 0

    play(scenario)


def test_muting_a_person_is_muting_a_conversation() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, engine, luc):
            choose(it.window.pane.header.mutes[1].durations, "Until switched on")
            await until(lambda: engine.views[luc].muted)
            assert "Unmute" in entries(it.window.pane.header.more.menu())

    play(scenario)
