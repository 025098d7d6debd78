"""Messages come in while one reads: below, above, late, in thousands; and what counts as seen."""

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QWidget

from engine.core.ids import ConversationId, DeliveryState, MessageId, Position, UnixMs
from engine.events import ConversationView, MessageKind, MessageView
from tests.ui.timeline.timeline_stage import (
    MINUTE_MS,
    NOW,
    MemoryPages,
    active,
    chatter,
    conversation,
    delivery,
    gap,
    message,
    opened_view,
    places,
    run,
    settled,
    shown_view,
)
from ui.timeline.loaded import MAX_LOADED
from ui.timeline.rows import GapRow, UnreadRow, message_of
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def test_the_newest_stays_in_view_only_while_one_is_there() -> None:
    source = MemoryPages(chatter(50))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.add(message(9000, "Maya", "new"))
            assert MessageId("m0009000") in places(view)
            await active(view)
            view.read_tracker.note_seen()
            view.canvas.scroll_by(400)
            before = places(view)
            view.add(message(9001, "Maya", "newer"))
            view.updates.show_changes()
            assert places(view) == before
            assert view.canvas.jump_button.isVisible()
            assert view.canvas.jump_button.unread == 1
            view.canvas.jump_button.click()
            assert MessageId("m0009001") in places(view)
            assert not view.canvas.jump_button.isVisible()

    run(scenario)


def test_what_one_sends_oneself_is_shown_wherever_one_was() -> None:
    source = MemoryPages(chatter(1000))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.navigation.go_to_beginning()
            await settled(view)
            assert source.messages[0].message_id in places(view)
            own = message(99_999, "Ines", "mine", delivery=delivery(DeliveryState.SAVED))
            source.messages.append(own)
            view.add(own)
            await settled(view)
            assert own.message_id in places(view)

    run(scenario)


def test_late_messages_slide_in_above_without_moving_what_one_reads() -> None:
    source = MemoryPages(chatter(80))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(900)
            before = places(view)
            first = min(before, key=lambda key: before[key])
            oldest = view.scene.loaded.get(first)
            assert oldest is not None
            for number in range(1, 4):
                late = message(oldest.position.lamport_timestamp - 100 + number, late=True)
                view.add(late)
                view.updates.show_changes()
                after = places(view)
                assert {key: after[key] for key in before} == before
            assert view.canvas.late_chip.isVisible()
            assert view.canvas.late_chip.text() == "3 earlier messages arrived"
            view.canvas.late_chip.click()
            assert MessageId(f"m{oldest.position.lamport_timestamp - 99:07d}") in places(view)
            await active(view)
            view.read_tracker.note_seen()
            assert view.canvas.late_chip.count == 0
            assert not view.canvas.late_chip.isVisible()

    run(scenario)


def test_a_late_message_is_ringed_until_somebody_has_looked_at_it() -> None:
    source = MemoryPages([message(10), message(20, late=True), message(30)])

    def violet(view: TimelineView) -> bool:
        picture = view.viewport().grab().toImage()
        wanted = view.scene.theme.late.rgb()
        column = range(int(view.scene.geometry.thread_x) + 20)
        return any(picture.pixel(x, y) == wanted for x in column for y in range(picture.height()))

    async def scenario() -> None:
        with shown_view(source) as view:
            other = await left_for_another_window()
            view.open(conversation())
            await settled(view)
            assert violet(view)
            view.read_tracker.end_rings()
            assert violet(view)
            other.close()
            view.activateWindow()
            await active(view)
            view.read_tracker.note_seen()
            assert violet(view)
            view.read_tracker.end_rings()
            assert not violet(view)

    run(scenario)


def test_late_messages_that_one_sees_anyway_are_not_announced() -> None:
    source = MemoryPages([message(10), message(30)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.add(message(20, late=True))
            view.updates.show_changes()
            assert MessageId("m0000020") in places(view)
            assert not view.canvas.late_chip.isVisible()

    run(scenario)


def test_what_comes_in_below_while_one_reads_above_is_unread_and_not_late() -> None:
    source = MemoryPages(chatter(80))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(2500)
            view.add(message(9010))
            view.add(message(9000))
            view.updates.show_changes()
            assert view.canvas.late_chip.count == 0
            assert view.canvas.jump_button.unread == 2

    run(scenario)


def test_the_unread_line_is_drawn_where_one_left_off() -> None:
    source = MemoryPages([message(10), message(20)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            await active(view)
            view.read_tracker.note_seen()
            view.add(message(30))
            view.update_conversation(unread_from(1, message(30)))
            assert line(view) is None, "one is there to see it"
            view.read_tracker.note_seen()
            other = await left_for_another_window()
            view.add(message(35, kind=MessageKind.JOINED))
            assert line(view) is None, "nobody wrote that"
            first_missed = message(40)
            for number, each in enumerate((first_missed, message(50)), start=1):
                view.add(each)
                view.update_conversation(unread_from(number, first_missed))
            view.updates.show_changes()
            other.close()
            assert line(view) == first_missed.position
            assert lines(view) == [first_missed.message_id]

    run(scenario)


def test_what_arrives_later_does_not_take_the_line_past_what_is_unread() -> None:
    """40 unread, 18 looked at, the window left, one more arrives: the line is above the 19th."""
    messages = [message(n * 10, sent_ms=UnixMs(NOW + n * MINUTE_MS)) for n in range(1, 101)]
    source = MemoryPages(messages)

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(unread_from(40, messages[60]))
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            while not view.read_tracker.state.was_seen(messages[77].position):
                view.canvas.scroll_by(-20)
                view.read_tracker.note_seen()
            view.read_tracker.note_seen()  # As its timer does, if the other window comes slowly.
            view.update_conversation(unread_from(22, messages[78]))
            assert line(view) == messages[60].position, "it stays while one reads"
            assert view.canvas.jump_button.unread == 22
            other = await left_for_another_window()
            view.add(message(2000))
            view.update_conversation(unread_from(23, messages[78]))
            view.updates.show_changes()
            other.close()
            assert lines(view) == [messages[78].message_id]
            assert view.canvas.jump_button.unread == 23

    run(scenario)


def test_what_comes_in_below_while_one_reads_above_gets_a_line_of_its_own() -> None:
    source = MemoryPages(chatter(80))

    async def scenario() -> None:
        async with opened_view(source) as view:
            await active(view)
            view.read_tracker.note_seen()
            view.canvas.scroll_by(2500)
            for number in (1, 2):
                view.add(message(9000 + number))
                view.update_conversation(unread_from(number, message(9001)))
            view.updates.show_changes()
            assert lines(view) == [message(9001).message_id]
            assert view.canvas.jump_button.unread == 2
            view.update_conversation(unread_from(1, message(9002)))
            assert lines(view) == [message(9001).message_id], "it stays while one reads"

    run(scenario)


def test_the_jump_button_counts_as_the_list_does() -> None:
    """Also after a jump past messages that were never loaded, and after some were deleted."""
    source = MemoryPages(chatter(1000))
    first = source.messages[100]

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(unread_from(900, first))
            await settled(view)
            view.navigation.go_to_ordinal(600)
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            view.update_conversation(unread_from(390, source.messages[610]))
            assert view.canvas.jump_button.unread == 390
            view.add(message(99_999))
            view.update_conversation(unread_from(391, source.messages[610]))
            assert view.canvas.jump_button.unread == 391
            view.update_conversation(conversation())
            assert view.canvas.jump_button.unread == 0

    run(scenario)


def unread_from(count: int, first: MessageView) -> ConversationView:
    return conversation(unread=count, first_unread=first.position)


def lines(view: TimelineView) -> list[MessageId]:
    """The messages below an unread line."""
    rows = view.scene.loaded.rows
    below = (message_of(rows[n + 1]) for n, row in enumerate(rows) if isinstance(row, UnreadRow))
    return [found.message_id for found in below if found is not None]


async def left_for_another_window() -> QWidget:
    other = QWidget()
    other.show()
    other.activateWindow()
    await active(other)
    return other


def test_what_was_sent_while_one_was_away_has_its_line_although_one_looks_when_it_comes() -> None:
    source = MemoryPages([message(10)])
    missed = [message(n, sent_ms=UnixMs(NOW - 60 * MINUTE_MS + n)) for n in (20, 30, 40)]
    live = message(50)

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            view.add(*missed[:2])
            view.update_conversation(unread_from(2, missed[0]))
            await settled(view)
            assert lines(view) == [missed[0].message_id]
            view.read_tracker.note_seen()
            view.update_conversation(conversation())
            for each in (missed[2], live):
                view.add(each)
                view.update_conversation(unread_from(1, each))
                await settled(view)
                assert lines(view) == [missed[0].message_id], "it stays where the new began"
                view.read_tracker.note_seen()
                view.update_conversation(conversation())
            view.add(message(60, "Ines"))
            await settled(view)
            assert lines(view) == []

    run(scenario)


def test_what_comes_in_before_ones_eyes_has_no_line() -> None:
    async def scenario() -> None:
        with shown_view(MemoryPages([message(10)])) as view:
            view.open(conversation())
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            view.add(message(20, sent_ms=UnixMs(NOW - MINUTE_MS)))
            view.update_conversation(unread_from(1, message(20)))
            await settled(view)
            assert lines(view) == []

    run(scenario)


def test_five_thousand_messages_in_a_row_end_where_they_belong() -> None:
    source = MemoryPages([])

    async def scenario() -> None:
        async with opened_view(source) as view:
            for number in range(5000):
                view.add(message(number * 7919 % 5000 + 1, "Maya", f"number {number}"))
            view.updates.show_changes()
            loaded = view.scene.loaded
            assert len(loaded) == MAX_LOADED
            assert loaded.total == 5000
            order = [m.position for m in loaded.messages]
            assert order == sorted(order)
            assert loaded.older_count + len(loaded) == 5000 or loaded.has_newer

    run(scenario)


def test_only_what_was_wholly_seen_in_an_active_window_counts_as_read() -> None:
    source = MemoryPages(chatter(300))
    first = source.messages[200]

    async def scenario() -> None:
        with shown_view(source) as view:
            markers: list[Position] = []
            view.visibleUpTo.connect(markers.append)
            other = await left_for_another_window()  # Before anything can be seen.
            view.open(conversation(unread=100, first_unread=first.position))
            await settled(view)
            view.read_tracker.note_seen()
            assert markers == []
            other.close()
            view.activateWindow()
            await active(view)
            view.read_tracker.note_seen()
            wholly = [p for p in view.scene.placed if p.bottom <= view.height()]
            last = message_of(wholly[-1].row)
            assert last is not None
            assert markers == [last.position]
            view.canvas.scroll_by(2000)
            view.read_tracker.note_seen()
            assert markers == [last.position]
            view.go_to_newest()
            await settled(view)
            view.read_tracker.note_seen()
            assert markers[-1] == source.messages[-1].position
            assert view.canvas.jump_button.unread == 0

    run(scenario)


def test_rows_that_wait_do_not_move_the_marker() -> None:
    source = MemoryPages([message(10), message(20)])

    async def scenario() -> None:
        with shown_view(source) as view:
            markers: list[Position] = []
            view.visibleUpTo.connect(markers.append)
            view.open(conversation())
            await settled(view)
            view.add(message(90, waiting=True))
            await active(view)
            view.read_tracker.note_seen()
            assert [m.lamport_timestamp for m in markers] == [20]

    run(scenario)


def test_a_new_width_keeps_what_one_reads() -> None:
    source = MemoryPages(chatter(200))

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.canvas.scroll_by(2500)
            await settled(view)
            anchor = view.scene.layout.anchor
            assert anchor is not None
            for width in (420, 1500, 700, 968):
                view.resize(width, 640)
                view.grab()
                assert abs(places(view)[anchor[0]] - anchor[1]) < 1

    run(scenario)


def test_the_gap_closes_itself_when_all_arrived() -> None:
    source = MemoryPages([message(10), message(40, "Luc", "after", waiting=True)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.set_gap(gap(missing=1, waiting=1))
            kinds = [type(row).__name__ for row in view.scene.loaded.rows]
            assert kinds == ["DayRow", "MessageRow", "GapRow", "MessageRow"]
            view.add(message(20, "Maya", "missing"))
            view.change(message(40, "Luc", "after"))
            view.set_gap(None)
            assert not any(isinstance(row, GapRow) for row in view.scene.loaded.rows)
            order = [m.position.lamport_timestamp for m in view.scene.loaded.messages]
            assert order == [10, 20, 40]

    run(scenario)


def test_events_of_other_conversations_are_not_shown() -> None:
    async def scenario() -> None:
        async with opened_view(MemoryPages([])) as view:
            view.add(replace(message(10), conversation_id=ConversationId("elsewhere")))
            assert len(view.scene.loaded) == 0
            view.add(message(10))
            assert len(view.scene.loaded) == 1

    run(scenario)


def test_the_unread_line_stays_while_one_reads_and_goes_with_an_own_message() -> None:
    source = MemoryPages([message(10), message(20), message(30)])
    unread = conversation(unread=2, first_unread=message(20).position)

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(unread)
            await settled(view)
            await active(view)
            view.read_tracker.note_seen()
            view.update_conversation(conversation())
            view.add(message(40))
            view.read_tracker.note_seen()
            view.change(message(40, text="changed"))
            assert line(view) == message(20).position, "all of it was read"
            view.add(message(50, "Ines", kind=MessageKind.JOINED))
            assert line(view) == message(20).position, "nobody wrote that"
            view.add(message(60, "Ines"))
            assert line(view) is None
            assert not any(isinstance(row, UnreadRow) for row in view.scene.loaded.rows)
            view.open(conversation())
            await settled(view)
            assert line(view) is None

    run(scenario)


def line(view: TimelineView) -> Position | None:
    return view.scene.loaded.first_unread


def test_rows_that_are_shown_follow_a_new_name() -> None:
    source = MemoryPages([message(10), message(20, "Jonas")])

    async def scenario() -> None:
        async with opened_view(source) as view:
            was = conversation()
            members = tuple(
                replace(m, name="Margaret") if m.name == "Maya" else m for m in was.members
            )
            view.update_conversation(replace(was, members=members))
            view.updates.show_changes()
            assert [m.sender_name for m in view.scene.loaded.messages] == ["Margaret", "Jonas"]
            shown = map(message_of, view.scene.loaded.rows)
            said = [shown_one.sender_name for shown_one in shown if shown_one is not None]
            assert said == ["Margaret", "Jonas"]

    run(scenario)
