"""First start, groups, invitations, and every sheet that asks before something happens."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QScrollBar

from engine.answers import HolderView
from engine.core.errors import (
    InputError,
    InputFlaw,
    InviteError,
    LinkFlaw,
    LinkKind,
    StorageError,
    StorageFault,
)
from engine.core.ids import DeliveryState, MessageId, ParticipantId, UnixMs
from engine.events import DeliveryView
from tests.ui.driving import Key, Stage, group_stage, play, stage, turn, until
from tests.ui.scripted_engine import FINGERPRINT, GOOD_LINK, START_MS, ScriptedEngine, member
from tests.ui.seeing import join, sheet_of, words_of
from ui.controls import Button
from ui.dialogs.about import HowItWorks
from ui.dialogs.confirm import Confirm, OpenLinkConfirm, RefusedLink, openable
from ui.dialogs.group import CreateGroup, InviteLink
from ui.dialogs.holders import Holders
from ui.dialogs.join import Join


def open_name(it: Stage) -> str | None:
    conversation = it.window.pane.conversation
    return None if conversation is None else conversation.name


def test_a_first_start_makes_an_identity_and_leads_to_a_group() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            page = it.window.first_page.page
            assert it.window.pages.currentWidget() is page
            assert not page.name_step.next.isEnabled()
            assert page.name_step.name.hasFocus()
            it.write("Ines")
            it.press(Key.Key_Return)
            await until(page.stores_step.isVisible)
            page.stores_step.next.click()
            await until(page.conversation_step.isVisible)
            assert engine.called("create_identity") == ["Ines"]
            assert page.conversation_step.fingerprint.text() == FINGERPRINT
            assert "system keyring" in page.conversation_step.kept.words.text()
            page.conversation_step.new_group.click()
            sheet = await sheet_of(it.window, CreateGroup)
            it.write("Tide Gauge", on=sheet.name)
            it.press(Key.Key_Return, on=sheet.name)
            await until(lambda: it.window.pane.conversation is not None)
            assert it.window.pages.currentWidget() is it.window.body
            assert it.window.pane.composer.box.isEnabled()

    play(scenario)


def test_a_refused_name_is_explained_in_place_and_can_be_corrected() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            step = it.window.first_page.page.name_step
            engine.fail("create_identity", InputError(InputFlaw.NAME_EMPTY))
            it.write("!!", on=step.name)
            it.press(Key.Key_Return, on=step.name)
            await until(step.problem.isVisible)
            assert step.problem.text() == "This name cannot be used: nothing is left of the name."
            it.write("a", on=step.name)
            assert not step.problem.isVisible()
            assert step.next.isEnabled()

    play(scenario)


def test_nothing_can_be_started_before_there_is_an_identity() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            for key in (Key.Key_N, Key.Key_J, Key.Key_K):
                it.press(key, Qt.KeyboardModifier.ControlModifier)
            await turn()
            assert it.window.flows.sheet is None
            assert it.window.pages.currentWidget() is it.window.first_page.page

    play(scenario)


def test_later_leads_to_the_empty_page_with_both_ways_to_begin() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            it.write("Ines")
            it.press(Key.Key_Return)
            page = it.window.first_page.page
            await until(page.stores_step.isVisible)
            page.stores_step.next.click()
            await until(page.conversation_step.isVisible)
            page.conversation_step.later.click()
            assert it.window.empty.isVisible()
            it.window.empty.join.click()
            await sheet_of(it.window, Join)

    play(scenario)


def test_joining_shows_whom_and_where_before_consent() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            assert not sheet.confirm.isEnabled()
            assert not sheet.form.problem.isVisible()
            sheet.form.field.setPlainText("hello")
            assert sheet.form.problem.text().startswith("This is not a Causerie invitation")
            assert not sheet.confirm.isEnabled()
            sheet.form.field.setPlainText("causerie:join/go")
            assert sheet.form.problem.text() == "This link is cut off. Copy the whole link."
            sheet.form.field.setPlainText(f"  {GOOD_LINK[:9]}\n{GOOD_LINK[9:]} ")
            assert not sheet.form.problem.isVisible()
            shown = words_of(sheet)
            for piece in ("Tide Gauge", "From Maya.", FINGERPRINT, "quay.harbour.example"):
                assert piece in shown
            assert engine.called("join_group") == []
            assert sheet.confirm.accessibleName() == "Join Tide Gauge"
            sheet.confirm.click()
            await until(lambda: open_name(it) == "Tide Gauge")
            assert engine.called("join_group") == [GOOD_LINK]

    play(scenario)


def test_a_join_that_fails_says_why_in_place_and_may_be_tried_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            sheet.form.field.setPlainText(GOOD_LINK)
            engine.fail("join_group", InviteError(LinkFlaw.BAD_KEY, LinkKind.INVITATION))
            sheet.confirm.click()
            await until(sheet.form.problem.isVisible)
            assert sheet.form.problem.text().startswith("This invitation names an admin key")
            assert sheet.isVisible()
            sheet.confirm.click()
            await until(lambda: open_name(it) == "Tide Gauge")

    play(scenario)


def test_a_link_into_a_group_one_is_in_opens_it_without_joining_again() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        await engine.groups.join(GOOD_LINK)
        async with stage(engine) as it:
            sheet = await join(it.window)
            sheet.form.field.setPlainText(GOOD_LINK)
            assert sheet.confirm.accessibleName() == "Open Tide Gauge"
            sheet.confirm.click()
            await until(lambda: open_name(it) == "Tide Gauge")
            assert engine.called("join_group") == [GOOD_LINK]

    play(scenario)


def test_a_monstrous_link_is_refused_without_being_parsed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            sheet.form.field.setPlainText(GOOD_LINK + "x" * 20_000)
            assert sheet.form.problem.text() == "This is far too long for an invitation."
            assert sheet.form.found is None

    play(scenario)


def test_a_group_name_that_is_refused_stays_in_the_field() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.window.flows.new_group()
            sheet = await sheet_of(it.window, CreateGroup)
            engine.fail("create_governed", StorageError("full", StorageFault.DISK_FULL))
            sheet.name.setText("  Tide & Time ")
            sheet.confirm.click()
            await until(sheet.problem.isVisible)
            assert sheet.problem.text() == "The disk is full; nothing was saved."
            sheet.confirm.click()
            await until(lambda: engine.called("create_governed") == ["Tide & Time"])

    play(scenario)


def test_the_invitation_is_copied_with_its_warning() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", others=())
        async with stage(engine, opening=group) as it:
            assert it.window.pane.header.invite.isVisible()
            it.window.pane.header.invite.click()
            sheet = await sheet_of(it.window, InviteLink)
            assert "Anyone with this link can read this group" in words_of(sheet)
            assert FINGERPRINT in words_of(sheet)
            sheet.copy_button.click()
            assert QGuiApplication.clipboard().text() == f"{GOOD_LINK}/{group}"
            assert sheet.copy_button.accessibleName() == "Copied"

    play(scenario)


def test_the_invitation_has_no_scroll_bar_where_there_is_room_for_all_of_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, InviteLink)
            await turn()
            bars = [
                bar for bar in sheet.findChildren(QScrollBar) if not sheet.link.isAncestorOf(bar)
            ]
            assert sheet.height() == sheet.needed_height()
            assert [bar for bar in bars if bar.isVisible()] == []
            it.window.resize(1280, 420)
            await until(lambda: any(bar.isVisible() for bar in bars))
            it.window.resize(1280, 820)
            await until(lambda: sheet.height() == sheet.needed_height())
            await until(lambda: not any(bar.isVisible() for bar in bars))

    play(scenario)


def test_after_the_first_invitation_one_writes_though_its_button_is_gone() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", others=())
        async with stage(engine, opening=group) as it:
            pane = it.window.pane
            pane.alone_hint.invite.setFocus()
            it.press(Key.Key_Return)
            await sheet_of(it.window, InviteLink)
            engine.change(group, members=(*engine.views[group].members, member("Luc")))
            await until(lambda: not pane.alone_hint.isVisible())
            it.press(Key.Key_Escape)
            await until(lambda: it.window.flows.sheet is None)
            it.write("Welcome, Luc")
            assert pane.composer.box.toPlainText() == "Welcome, Luc"

    play(scenario)


def test_leaving_asks_first_and_then_forgets_the_group() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.change(group, failed=1)
            it.window.pane.header.leave_requested.emit()
            sheet = await sheet_of(it.window, Confirm)
            assert "1 message of yours never got out" in words_of(sheet)
            sheet.cancel.click()
            await until(lambda: it.window.flows.sheet is None)
            assert group in engine.views
            await turn()
            it.window.pane.header.leave_requested.emit()
            (await sheet_of(it.window, Confirm)).confirm.click()
            await until(lambda: it.window.pane.conversation is None)
            assert it.window.empty.isVisible()
            assert engine.called("save_draft") == []

    play(scenario)


def test_deleting_asks_and_tells_a_sent_message_from_an_unsent_one() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        message = engine.receive(group, "Maya", "hello")
        async with stage(engine, opening=group) as it:
            it.window.pane.timeline.discardRequested.emit(message.message_id)
            sheet = await sheet_of(it.window, Confirm)
            assert "has not reached anybody yet" in words_of(sheet)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            it.window.pane.timeline.deleteRequested.emit(message)
            sheet = await sheet_of(it.window, Confirm)
            assert "The others keep it" in words_of(sheet)
            sheet.confirm.click()
            await until(lambda: engine.called("delete_locally") == [message.message_id])

    play(scenario)


def test_who_holds_it_counts_the_certain_and_names_the_uncertain() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.holder_views = tuple(
            HolderView(
                participant_id=ParticipantId(name * 8),
                name=name,
                certain=certain,
                source=source,
                since_ms=None if source is None else UnixMs(START_MS),
                false_probability=chance,
            )
            for name, certain, source, chance in (
                ("Maya", True, "causal", None),
                ("Jona", False, "bloom", 0.000976),
                ("Nils", False, "bloom", None),
                ("Luca", False, None, None),
            )
        )
        async with stage(engine, opening=group) as it:
            it.window.pane.timeline.holdersRequested.emit(MessageId("m"))
            shown = words_of(await sheet_of(it.window, Holders))
            assert "Held by 1 of 4 others, maybe 2 more." in shown
            assert "0.098 % chance it is wrong" in shown
            assert "its filter says so, which can err" in shown
            for mark in ("holds it", "maybe", "no sign"):
                assert mark in shown

    play(scenario)


def test_a_link_opens_only_after_its_whole_address_was_shown() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            target = "https://g\u0430uge.example/log?x=1&y=2"  # The second letter is Cyrillic.
            it.window.pane.timeline.linkActivated.emit(target)
            sheet = await sheet_of(it.window, OpenLinkConfirm)
            assert sheet.address.text() == "https://xn--guge-53d.example/log?x=1&y=2"
            assert "not encrypted" not in words_of(sheet)
            assert it.opened_urls == []
            sheet.confirm.click()
            await until(lambda: len(it.opened_urls) == 1)
            await turn()
            it.window.pane.timeline.linkActivated.emit("http://gauge.example/")
            sheet = await sheet_of(it.window, OpenLinkConfirm)
            assert "not encrypted" in words_of(sheet)
            sheet.reject()
            await turn()
            it.window.pane.timeline.linkActivated.emit("file:///etc/passwd")
            await sheet_of(it.window, RefusedLink)
            assert len(it.opened_urls) == 1

    play(scenario)


@pytest.mark.parametrize(
    ("target", "opens"),
    [
        ("https://a.example/b", True),
        ("HTTPS://a.example", True),
        ("mailto:maya@a.example", True),
        ("http://a.example", True),
        ("ftp://a.example", False),
        ("https:", False),
        ("https:///path", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("smb://host/share", False),
        ("//a.example", False),
        ("", False),
        ("https://a.example/" + "x" * 5000, False),
    ],
)
def test_only_secure_web_and_mail_addresses_open(target: str, opens: bool) -> None:
    assert (openable(target) is not None) is opens


def test_one_sheet_at_a_time() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            it.window.flows.new_group()
            await turn()
            assert it.window.flows.sheet is sheet

    play(scenario)


def test_no_key_gets_past_a_sheet_although_the_window_wants_the_keys() -> None:
    """As when a notification is clicked, or the open conversation goes away."""

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            sheet = await join(it.window)
            it.window.open_conversation(group)
            it.write("not for all")
            it.press(Key.Key_Return)
            await turn()
            assert it.window.pane.composer.text() == ""
            assert not engine.called("send_text")
            assert sheet.isVisible()
            it.press(Key.Key_Escape)
            await until(lambda: it.window.flows.sheet is None)
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_a_sheet_that_is_higher_than_its_window_begins_with_its_title() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            it.window.resize(640, 420)
            it.window.flows.how_it_works("0.1.0")
            sheet = await sheet_of(it.window, HowItWorks)
            assert it.window.rect().contains(sheet.geometry())
            assert sheet.title.visibleRegion().boundingRect() == sheet.title.rect()
            bars = [b for b in sheet.findChildren(QScrollBar) if b.isVisible() and b.maximum()]
            assert len(bars) == 1, "one bar inside another"
            it.window.resize(640, 900)
            await until(lambda: sheet.height() > 500)
            it.window.resize(640, 420)
            await until(lambda: sheet.height() < 420)
            assert [b for b in sheet.findChildren(QScrollBar) if b.isVisible()] == bars
            it.press(Key.Key_Backtab)
            close = QApplication.focusWidget()
            assert isinstance(close, Button)
            assert close.visibleRegion().boundingRect() == close.rect()

    play(scenario)


def test_the_engine_goes_on_while_a_sheet_is_open() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            it.window.flows.how_it_works("0.1.0")
            sheet = await sheet_of(it.window, HowItWorks)
            assert "Causerie 0.1.0" in words_of(sheet)
            engine.receive(group, "Maya", "hello")
            await turn()
            assert it.listed(group).unread == 1

    play(scenario)


def test_quitting_with_messages_on_the_way_asks_and_otherwise_does_not() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            closed: list[bool] = []
            it.window.closed.connect(lambda: closed.append(True))
            engine.change(group, waiting_to_send=2)
            it.window.close()
            sheet = await sheet_of(it.window, Confirm)
            assert "2 messages could not be sent yet" in words_of(sheet)
            assert it.window.isVisible()
            assert closed == []
            sheet.confirm.click()
            await until(lambda: closed == [True])
            assert not it.window.isVisible()
            assert "geometry" in it.stored

    play(scenario)


def test_delivery_reaches_the_row_in_the_list() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            await it.send("hello")
            message_id = next(iter(engine.rows[group]))
            held = DeliveryView(state=DeliveryState.HELD, held_by=(ParticipantId("x" * 32),), of=1)
            engine.deliver(group, message_id, held)
            last = it.listed(group).last_message
            assert last is not None
            assert last.delivery == held

    play(scenario)
