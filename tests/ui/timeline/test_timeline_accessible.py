"""A screen reader hears "sender, text, time, state", and nothing it does can crash the program."""

import gc

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow

from engine.core.ids import DeliveryState
from engine.core.problems import FailureReason
from engine.events import MessageKind
from tests.ui.scripted_annotations import quote_of
from tests.ui.timeline.timeline_stage import (
    NOW,
    MemoryPages,
    active,
    at,
    chatter,
    conversation,
    delivery,
    gap,
    gap_place,
    message,
    name_of,
    opened_view,
    run,
    settled,
)
from ui.timeline.row_words import gap_details
from ui.timeline.rows import RowKey, message_key
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")

NAME = QAccessible.Text.Name


def names(view: TimelineView) -> list[str]:
    interface = QAccessible.queryAccessibleInterface(view)
    return [interface.child(index).text(NAME) for index in range(interface.childCount())]


def test_each_row_is_read_as_sender_text_time_state() -> None:
    rows = [
        message(10, "Ines", "", sent_ms=at(13, 0), kind=MessageKind.CREATED),
        message(20, "Maya", "hello there", sent_ms=at(13, 1), late=True),
        message(30, "Ines", "hi", sent_ms=at(13, 2), delivery=delivery(DeliveryState.HELD, 3, 1)),
        message(
            40,
            "Ines",
            "bad",
            sent_ms=at(13, 3),
            delivery=delivery(DeliveryState.FAILED, failure=FailureReason.NOBODY_TOOK_IT),
        ),
        message(50, "Luc", "what", sent_ms=at(13, 4), waiting=True),
    ]

    async def scenario() -> None:
        async with opened_view(MemoryPages(rows)) as view:
            view.set_gap(gap(waiting=1))
            assert names(view) == [
                "Today",
                "You started this group, 13:00",
                "Maya, hello there, 13:01, arrived late",
                "You, hi, 13:02, Held by 3 of 5, maybe 1 more. Not yet: Tomas",
                "You, bad, 13:03, Not sent: 5 tries, nobody took it",
                f"3 messages missing since 14:02. {gap_details(gap_place(waiting=1), NOW)}",
                "Luc, what, 13:04, waiting for earlier messages",
            ]

    run(scenario)


def test_a_reader_finds_its_way_between_list_and_rows() -> None:
    source = MemoryPages(chatter(60))

    async def scenario() -> None:
        async with opened_view(source) as view:
            interface = QAccessible.queryAccessibleInterface(view)
            assert interface.role() is QAccessible.Role.List
            assert interface.text(NAME) == "Messages"
            for index in range(interface.childCount()):
                child = interface.child(index)
                assert child.isValid()
                assert child.role() is QAccessible.Role.ListItem
                assert interface.indexOfChild(child) == index
                assert child.parent() == interface
                assert child.childCount() == 0
            newest, oldest = interface.child(interface.childCount() - 1), interface.child(0)
            assert not newest.state().offscreen
            assert oldest.state().offscreen
            rect = newest.rect()
            found = interface.childAt(rect.center().x(), rect.center().y())
            assert found.text(NAME) == newest.text(NAME)

    run(scenario)


def test_what_floats_above_is_read_too() -> None:
    source = MemoryPages(chatter(60))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(600)
            view.add(message(15, late=True))
            view.updates.show_changes()
            assert names(view)[-2:] == ["1 earlier message arrived", "To the newest message"]
            interface = QAccessible.queryAccessibleInterface(view)
            chip = interface.child(interface.childCount() - 2)
            assert interface.indexOfChild(chip) == interface.childCount() - 2

    run(scenario)


def test_the_state_that_is_read_is_the_state_now() -> None:
    saved = message(10, "Ines", "hi", delivery=delivery(DeliveryState.SAVED))

    async def scenario() -> None:
        async with opened_view(MemoryPages([saved])) as view:
            child = QAccessible.queryAccessibleInterface(view).child(1)
            assert child.text(NAME).endswith("Saved on this device, waiting for the network")
            view.change(message(10, "Ines", "hi", delivery=delivery(DeliveryState.HELD, 5)))
            assert child.text(NAME).endswith("Held by 5 of 5")

    run(scenario)


def test_the_focused_row_is_the_focused_child() -> None:
    source = MemoryPages(chatter(30))

    async def scenario() -> None:
        async with opened_view(source) as view:
            interface = QAccessible.queryAccessibleInterface(view)
            await active(view)
            view.setFocus()
            view.scene.focus_key = message_key(source.messages[-2].message_id)
            child = interface.focusChild()
            assert child.text(NAME).startswith(f"{source.messages[-2].sender_name}, ")
            assert child.state().focused
            view.clearFocus()
            assert not child.state().focused

    run(scenario)


def test_who_goes_to_a_row_hears_of_it_also_if_it_is_read_from_the_disk_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = chatter(900)
    far, near = rows[0], rows[-3]
    rows[-2:] = [
        replace(row, quote=quote_of(quoted))
        for row, quoted in zip(rows[-2:], (near, far), strict=True)
    ]

    async def scenario() -> None:
        async with opened_view(MemoryPages(rows)) as view:
            await active(view)
            view.setFocus()
            told: list[RowKey] = []
            monkeypatch.setattr(view.announcer, "focus_moved", told.append)
            for asking, quoted in ((rows[-2], near), (rows[-1], far)):
                view.go_to_newest()
                await settled(view)
                view.scene.focus_key = message_key(asking.message_id)
                QTest.keyClick(view, Qt.Key.Key_Q)
                await settled(view)
                assert told[-1:] == [message_key(quoted.message_id)]
                assert view.scene.focus_key == message_key(quoted.message_id)
            view.clearFocus()
            view.go_to_newest()
            await settled(view)
            view.enter_at(far.position)  # As from a search.
            await settled(view)
            assert told[-1:] == [message_key(far.message_id)]

    run(scenario)


def test_where_the_row_of_the_keys_goes_they_are_about_the_one_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = MemoryPages(chatter(30))
    before, gone, last = source.messages[-3:]

    async def scenario() -> None:
        async with opened_view(source) as view:
            await active(view)
            view.setFocus()
            told: list[RowKey] = []
            monkeypatch.setattr(view.announcer, "focus_moved", told.append)
            view.scene.focus_key = message_key(gone.message_id)
            view.remove(source.messages[0].message_id)
            assert told == []
            view.remove(gone.message_id)
            assert told == [message_key(last.message_id)]
            view.remove(last.message_id)
            assert told[1:] == [message_key(before.message_id)]
            assert view.scene.focus_key == message_key(before.message_id)

    run(scenario)


def test_a_row_that_is_gone_is_invalid_and_silent() -> None:
    source = MemoryPages(chatter(5))

    async def scenario() -> None:
        QAccessible.setActive(True)
        try:
            async with opened_view(source) as view:
                interface = QAccessible.queryAccessibleInterface(view)
                count = interface.childCount()
                _kept = [interface.child(index) for index in range(count)]
                view.remove(source.messages[2].message_id)
                assert interface.childCount() == count - 1
                assert source.messages[2].text not in " ".join(names(view))
                gone = message_key(source.messages[2].message_id)
                assert view.scene.loaded.row_index(gone) is None
        finally:
            QAccessible.setActive(False)

    run(scenario)


def a_child(view: TimelineView, number: int) -> QAccessibleInterface:
    interface = QAccessible.queryAccessibleInterface(view)
    return interface.child(number % interface.childCount())


def test_a_reader_that_follows_everything_survives_a_thousand_changes() -> None:
    """Interfaces are kept by Qt, deleted by us and outlived by the reader's references."""
    source = MemoryPages(chatter(900))
    held: list[QAccessibleInterface] = []

    async def scenario() -> None:
        QAccessible.setActive(True)
        try:
            for _round in range(5):
                window = QMainWindow()
                view = TimelineView(
                    lambda: source, names=name_of, now_ms=lambda: NOW, parent=window
                )
                window.setCentralWidget(view)
                window.resize(700, 500)
                window.show()
                view.open(conversation())
                await settled(view)
                for step in range(40):
                    held.append(a_child(view, step))
                    view.add(message(10_000 + step, "Maya", f"live {step}"))
                    view.canvas.scroll_by(150)
                    if step % 7 == 0:
                        view.remove(source.messages[890 - step].message_id)
                        gc.collect()
                window.close()
                window.deleteLater()
                del view, window
                QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
                gc.collect()
        finally:
            QAccessible.setActive(False)
        held.clear()
        gc.collect()

    run(scenario)


def test_a_reader_that_asks_again_after_a_new_connection_survives_the_end_of_the_view() -> None:
    """A connected method changes the view's meta-object, at which Qt asks for another interface."""
    source = MemoryPages(chatter(20))

    async def scenario() -> None:
        window = QMainWindow()
        view = TimelineView(lambda: source, names=name_of, now_ms=lambda: NOW, parent=window)
        window.setCentralWidget(view)
        view.open(conversation())
        await settled(view)
        read = names(view)
        clock = QTimer(window)
        clock.timeout.connect(view.clear)
        assert names(view) == read
        window.deleteLater()
        del view, window, clock
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()

    run(scenario)
