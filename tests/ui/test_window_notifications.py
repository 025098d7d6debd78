"""What the desktop is told: one notification per conversation, while it is unread, and no more."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QMenu

from chat_app.settings_control import SettingsControl
from engine.core.contacts import ContactState
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId
from engine.events import (
    AnnotationKind,
    AnnotationView,
    ConversationRemoved,
    MessageAdded,
    MessageView,
    ReactionReceived,
)
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import Stage, play, stage, turn, until
from tests.ui.heard_notifications import HeardPort, listen_to
from tests.ui.on_settings import turn_switch
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import choose, entries, words_of
from ui.desktop.notifications import MOST_SHOWN, Notifications
from ui.desktop.port import Dismissed, MarkedRead, Opened, Replied
from ui.desktop.quiet import DoNotDisturb
from ui.mute_entries import durations
from ui.settings import UiSettings

pytestmark = pytest.mark.usefixtures("qapp")


def an_hour_of_it(engine: ScriptedEngine, group: ConversationId, heard: Notifications) -> None:
    for minute in range(100):
        row = engine.row(group, member("Maya"), f"number {minute}", minute)
        heard.tell(engine.views[group], row, show_text=True)


def test_a_burst_is_one_notification_that_counts() -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    heard, notifications = HeardPort(), Notifications(pace_ms=3_600_000)
    notifications.use(heard)
    an_hour_of_it(engine, group, notifications)
    assert heard.bodies() == ["Maya: number 0"], "the rest waits"
    again = HeardPort()
    notifications.use(again)
    (shown,) = again.shown
    assert shown.title == "Tide Gauge (100 new)"
    assert shown.body == "Maya: number 97\nMaya: number 98\nMaya: number 99"
    assert shown.is_update


def test_what_waits_is_shown_after_the_pause_and_not_if_it_was_read_meanwhile() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        one, other, third = (engine.add_group(name) for name in ("One", "Other", "Third"))
        heard, notifications = HeardPort(), Notifications(pace_ms=50)
        notifications.use(heard)
        for group in (one, other, third):
            row = engine.row(group, member("Maya"), "hello", 1)
            notifications.tell(engine.views[group], row, show_text=True)
        notifications.changed(engine.views[other])  # It has no unread messages.
        await until(lambda: third in heard.on_screen)
        assert list(heard.on_screen) == [one, third]
        notifications.close()

    play(scenario)


def test_more_conversations_than_a_screen_takes_make_room() -> None:
    engine = ScriptedEngine()
    heard, notifications = HeardPort(), Notifications(pace_ms=3_600_000)
    for number in range(MOST_SHOWN + 5):
        group = engine.add_group(f"Group {number}")
        row = engine.row(group, member("Maya"), "hello", 1)
        notifications.tell(engine.views[group], row, show_text=True)
    notifications.use(heard)
    assert len(heard.on_screen) == MOST_SHOWN
    titles = [shown.title for shown in heard.on_screen.values()]
    assert titles[0] == "Group 5"


def test_only_what_is_not_in_view_is_told_and_what_is_read_is_withdrawn() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            it.window.open_conversation(group)
            engine.receive(group, "Maya", "seen as it comes")
            engine.receive(other, "Maya", "old news", notify=False)
            engine.change(other, muted=True)
            engine.receive(other, "Maya", "muted")
            assert heard.shown == []
            engine.change(other, muted=False)
            row = engine.receive(other, "Maya", "elsewhere")
            assert heard.bodies() == ["Maya: elsewhere"]
            await engine.timeline.mark_read(other, row.position)
            assert heard.on_screen == {}

    play(scenario)


def test_what_is_looked_at_or_muted_has_no_notification_even_if_it_is_not_read() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=group) as it:
            heard = listen_to(it.window)
            row = engine.receive(other, "Maya", "hello")
            await until(lambda: list(heard.on_screen) == [other])
            it.window.open_conversation(other)
            assert heard.on_screen == {}
            it.window.open_conversation(group)
            reaction = annotation(row)
            engine.tell(ReactionReceived(conversation_id=other, annotation=reaction))
            await until(lambda: list(heard.on_screen) == [other])
            engine.change(other, muted=True)
            assert heard.on_screen == {}
            mention = replace(engine.row(other, member("Maya"), "@Ines", 1), mentions_me=True)
            engine.tell(MessageAdded(message=mention, notify=True))
            await until(lambda: list(heard.on_screen) == [other])
            engine.change(other, unread=2)
            assert list(heard.on_screen) == [other], "a mention comes through"

    play(scenario)


def annotation(target: MessageView) -> AnnotationView:
    return AnnotationView(
        kind=AnnotationKind.REACTION,
        message_id=MessageId("reaction"),
        target_id=target.message_id,
        target_text=target.text,
        sender_id=target.sender_id,
        sender_name=target.sender_name,
        is_own=False,
        sent_ms=target.sent_ms,
        emoji="🎉",
    )


def test_a_conversation_that_is_gone_takes_its_notification_along() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            engine.receive(group, "Maya", "hello")
            assert list(heard.on_screen) == [group]
            engine.tell(ConversationRemoved(conversation_id=group))
            assert heard.on_screen == {}
            engine.receive(engine.add_group("Rowing"), "Maya", "hello")
            await until(lambda: len(heard.on_screen) == 1)
        assert heard.on_screen == {}, "nothing that leads nowhere stays"

    play(scenario)


def test_what_was_deleted_or_edited_is_not_read_in_its_notification(
    control: SettingsControl,
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, control=control) as it:
            heard = listen_to(it.window)
            first = engine.receive(group, "Maya", "a secret")
            second = engine.receive(group, "Maya", "a slip", minute=1)
            await until(lambda: "a slip" in heard.on_screen[group].body)
            await engine.edit(group, second.message_id, "a slip, mended")
            await engine.retract(group, first.message_id)
            mended = "Maya deleted this message\nMaya: a slip, mended"
            await until(lambda: heard.on_screen[group].body == mended)
            await turn_switch(it.window, "notifications", "Show text in notifications")
            await engine.edit(group, second.message_id, "said again")
            await until(lambda: heard.on_screen[group].is_update)
            assert heard.on_screen[group].body == "2 new messages"

    play(scenario)


def test_what_is_removed_here_leaves_the_notification() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            first = engine.receive(group, "Maya", "a secret")
            second = engine.receive(group, "Maya", "low water", minute=1)
            await until(lambda: "low water" in heard.on_screen[group].body)
            await engine.delete_locally(group, first.message_id)
            await until(lambda: heard.on_screen[group].body == "Maya: low water")
            await engine.delete_locally(group, second.message_id)
            assert heard.on_screen == {}

    play(scenario)


def test_a_blocked_person_has_no_notification() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        maya = engine.add_person("Maya")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            engine.receive(maya, "Maya", "answer me")
            assert list(heard.on_screen) == [maya]
            engine.set_state(maya, ContactState.BLOCKED)
            assert heard.on_screen == {}

    play(scenario)


def test_without_a_preview_nothing_of_the_text_is_left(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, control=control) as it:
            heard = listen_to(it.window)
            engine.receive(group, "Maya", "the first secret")
            await turn_switch(it.window, "notifications", "Show text in notifications")
            assert heard.on_screen[group].body == "1 new message"
            before = len(heard.shown)
            for number in range(3):
                engine.receive(group, "Maya", f"secret {number}")
            await until(lambda: "4 new" in heard.on_screen[group].title)
            assert not any("secret" in shown.body for shown in heard.shown[before - 1 :])
            assert heard.on_screen[group].body == "4 new messages"
            await turn_switch(it.window, "notifications", "Show text in notifications")
            engine.receive(group, "Maya", "open again")
            await until(lambda: "open again" in heard.on_screen[group].body)
            assert "secret" not in heard.on_screen[group].body

    play(scenario)


def test_what_was_shown_with_its_text_is_not_shown_again_beside_what_is_not() -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    heard, notifications = HeardPort(), Notifications(pace_ms=3_600_000)
    row = engine.row(group, member("Maya"), "a secret", 1)
    notifications.tell(engine.views[group], row, show_text=True)
    notifications.tell_reaction(engine.views[group], annotation(row), show_text=False)
    notifications.use(heard)
    assert heard.bodies() == ["New reaction from Maya"]


def test_who_asks_to_be_let_in_is_told_until_that_is_answered() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        engine.governing.govern(group)
        engine.governing.ask(group, "Zoe")
        async with stage(engine, opening=other) as it:
            heard = listen_to(it.window)
            engine.governing.ask(group, "Zoe", "Luc", "Olga")
            await until(lambda: group in heard.on_screen)
            shown = heard.on_screen[group]
            assert (shown.title, shown.can_mark_read) == ("Tide Gauge", False)
            assert shown.body == "Luc asks to be let in\nOlga asks to be let in"
            engine.governing.ask(group, "Zoe", "Olga")
            await until(lambda: heard.on_screen[group].body == "Olga asks to be let in")
            heard.do(Opened(group))
            assert it.window.pane.is_open(group)
            assert heard.on_screen == {}
            engine.governing.ask(group, "Zoe", "Olga", "Ben")
            it.window.open_conversation(other)
            engine.governing.ask(group, "Max")
            await until(lambda: group in heard.on_screen)
            engine.governing.ask(group)
            assert heard.on_screen == {}
            engine.change(group, muted=True)
            engine.governing.ask(group, "Max")
            await turn()
            assert heard.on_screen == {}
        assert not any("Ben" in body or "Zoe" in body for body in heard.bodies())

    play(scenario)


def test_a_click_opens_at_the_first_message_that_was_told_of() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=other) as it:
            heard = listen_to(it.window)
            wanted: list[object] = []
            it.window.desktop.opened.connect(lambda _group, at: wanted.append(at))
            first = engine.receive(group, "Maya", "first")
            engine.receive(group, "Maya", "second")
            it.window.hide()
            heard.do(Opened(group))
            assert it.window.pane.is_open(group)
            assert it.window.isVisible()
            assert wanted == [first.position]
            assert group not in heard.on_screen

    play(scenario)


def test_an_answer_is_sent_and_marks_read_what_was_told_of_and_nothing_before_it() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        engine.receive(other, "Maya", "long unread")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            engine.receive(group, "Maya", "coming?")
            assert heard.on_screen[group].can_reply
            heard.do(Replied(group, "on my way"))
            await until(lambda: engine.called("send_text") == ["on my way"])
            await until(lambda: engine.views[group].unread == 0)
            assert heard.on_screen == {}
            engine.receive(other, "Maya", "well?")
            heard.do(Replied(other, "  \n"))
            heard.do(Replied(other, "soon"))
            await until(lambda: engine.called("send_text") == ["on my way", "soon"])
            assert engine.views[other].unread == 2, "one of them was never shown to anybody"
            engine.receive(other, "Maya", "good")
            heard.do(MarkedRead(other))
            await until(lambda: engine.views[other].unread == 0)

    play(scenario)


def test_an_answer_that_cannot_be_sent_stands_before_the_draft() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.change(group, draft="half a thought")
        async with stage(engine) as it:
            heard = listen_to(it.window)
            engine.receive(group, "Maya", "coming?")
            engine.fail("send_text", StorageError("full", StorageFault.DISK_FULL))
            heard.do(Replied(group, "on my way"))
            await until(lambda: it.listed(group).draft == "on my way\nhalf a thought")
            await until(lambda: "Could not send the reply" in words_of(it.window.notices))

    play(scenario)


def test_what_is_done_with_a_notification_of_what_is_gone_is_said_and_harms_nothing() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group) as it:
            heard = listen_to(it.window)
            gone = ConversationId("gone")
            heard.do(MarkedRead(gone))
            heard.do(Dismissed(gone))
            heard.do(Opened(gone))
            await until(lambda: "not here any more" in words_of(it.window.notices))
            heard.do(Replied(gone, "see you <b>there</b>\nat ten"))
            said = "Your reply was not sent, because the conversation is not here any more:"
            await until(lambda: said in words_of(it.window.notices))
            assert "see you <b>there</b> at ten" in words_of(it.window.notices)
            await turn()
            assert engine.called("send_text") == engine.called("mark_read") == []
            assert it.window.pane.is_open(group)

    play(scenario)


def test_whoever_does_not_want_to_be_disturbed_is_not_until_that_ends() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        stored: dict[str, str] = {}
        async with stage(engine, stored=stored) as it:
            heard, quiet = listen_to(it.window), quiet_menu(it)
            engine.receive(group, "Maya", "before")
            choose(quiet, "For 1 hour")
            assert heard.on_screen == {}
            mention = replace(engine.row(group, member("Maya"), "@Ines", 1), mentions_me=True)
            engine.tell(MessageAdded(message=mention, notify=True))
            assert len(heard.shown) == 1
            assert stored["quiet_until"].isdecimal()
            (end,) = entries(quiet)
            assert end.startswith("Switch off (on until ")
            choose(quiet, end)
            engine.receive(group, "Maya", "after")
            await until(lambda: bool(heard.on_screen))
            choose(quiet, "Until switched off")
            assert entries(quiet) == ["Switch off"]
        async with stage(engine, stored=stored) as it:
            assert it.window.desktop.quiet.is_on(), "it is remembered"
        stored["quiet_until"] = "5"
        async with stage(engine, stored=stored) as it:
            assert not it.window.desktop.quiet.is_on(), "it is over"
        stored["quiet_until"] = "9" * 5_000
        async with stage(engine, stored=stored) as it:
            assert not it.window.desktop.quiet.is_on()

    play(scenario)


def test_a_clock_that_was_wrong_silences_nobody_for_years() -> None:
    clock = [datetime(2038, 1, 1, tzinfo=UTC)]
    stored: dict[str, str] = {}
    settings = UiSettings(load=stored.get, save=stored.__setitem__)
    quiet = DoNotDisturb(settings, lambda: clock[0])
    for _words, for_ms in durations():
        if for_ms is not None:
            quiet.begin(for_ms)
            assert quiet.is_on()
    clock[0] = datetime(2026, 11, 24, tzinfo=UTC)
    assert not quiet.is_on()
    DoNotDisturb(settings, lambda: clock[0])
    clock[0] = datetime(2038, 1, 1, tzinfo=UTC)
    assert not quiet.is_on(), "what ended stays ended"
    quiet.begin(None)
    clock[0] = datetime(2026, 11, 24, tzinfo=UTC)
    assert quiet.is_on()
    quiet.end()


def quiet_menu(it: Stage) -> QMenu:
    return it.window.desktop.quiet_menus[0]


def test_a_notification_shows_whose_it_is() -> None:
    engine = ScriptedEngine()
    heard, notifications = HeardPort(), Notifications()
    notifications.use(heard)
    for name in ("Tide Gauge", "Rowing"):
        group = engine.add_group(name)
        row = engine.row(group, member("Maya"), "hello", 1)
        notifications.tell(engine.views[group], row, show_text=True)
    notifications.use(again := HeardPort())
    one, other = (shown.picture for shown in again.shown)
    assert one != other
    blank = QImage(one.size(), one.format())
    blank.fill(0)
    assert one != blank


def test_with_real_engines_a_message_opens_the_window_at_itself(tmp_path: Path) -> None:
    async def scenario(ada: Desk, bob: Desk) -> None:
        group = await ada.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await ada.engine.groups.make_invite_link(group))
        await until(lambda: ada.window.model.conversation(group) is not None)
        await until(lambda: bob.window.model.conversation(group) is not None)
        heard = listen_to(bob.window)
        await ada.engine.timeline.send_text(group, "low water at ten")
        await until(lambda: group in heard.on_screen)
        assert "low water at ten" in heard.on_screen[group].body
        heard.do(Opened(group))
        await until(lambda: bob.has_row("low water at ten"))
        await ada.engine.timeline.send_text(group, "and at noon")
        await until(lambda: bob.has_row("and at noon"))

    at_desks(tmp_path, ("Ada", "Bob"), scenario)
