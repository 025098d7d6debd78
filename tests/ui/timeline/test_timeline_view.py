"""The real widget: pages come and go, events arrive at bad moments, and one keeps one's place."""

import asyncio

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.types import DeliveryState, MessageId, Position
from tests.ui.timeline.timeline_stage import (
    MemoryPages,
    active,
    application,
    chatter,
    conversation,
    delivery,
    emitted,
    gap,
    message,
    run,
    settled,
    shown_view,
)
from ui.theme import ThemeMode, current_theme, set_theme
from ui.timeline.loaded import MAX_LOADED
from ui.timeline.rows import GapRow, message_key, message_of
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def places(view: TimelineView) -> dict[MessageId, float]:
    """Where each visible message stands."""
    return {
        shown.message_id: placed.y
        for placed in view.scene.placed
        if (shown := message_of(placed.row)) is not None
    }


def colours(view: TimelineView) -> set[int]:
    """The colours of all pixels, as Qt's RGB values."""
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return set(memoryview(image.constBits()).cast("I"))


def test_it_opens_at_the_newest_and_draws_ones_own_on_the_right() -> None:
    source = MemoryPages(
        [
            message(10, "Maya", "a question"),
            message(20, "Ines", "an answer", delivery=delivery(DeliveryState.HELD, 5)),
        ]
    )

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            theme, image = current_theme(), view.grab().toImage()
            theirs, own = (
                view.scene.rect(message_key(source.messages[0].message_id)),
                (view.scene.rect(message_key(source.messages[1].message_id))),
            )
            assert theirs is not None
            assert own is not None
            assert theirs.right() < own.left()
            assert own.right() > view.width() * 0.9
            inside = QPointF(8, 8).toPoint()
            assert image.pixelColor(theirs.topLeft().toPoint() + inside) == theme.surface
            assert image.pixelColor(own.topLeft().toPoint() + inside) == theme.own
            assert own.bottom() > theirs.bottom()

    run(scenario)


def test_every_state_shows_its_colour_in_every_theme() -> None:
    states = [
        message(10, "Ines", "held", delivery=delivery(DeliveryState.HELD, 5)),
        message(20, "Ines", "saved", delivery=delivery(DeliveryState.SAVED)),
        message(30, "Ines", "bad", delivery=delivery(DeliveryState.FAILED, failure="no peer")),
        message(40, "Maya", "late", late=True),
        message(50, "Luc", "early", waiting=True),
    ]
    app = application()

    async def scenario() -> None:
        with shown_view(MemoryPages(states)) as view:
            view.open(conversation())
            await settled(view)
            view.set_gap(gap(waiting=1))
            for mode in ThemeMode:
                theme = set_theme(app, mode)
                seen = colours(view)
                for colour in (
                    theme.canvas, theme.thread, theme.own, theme.accent, theme.danger,
                    theme.dangerBg, theme.late, theme.warnDot, theme.warnBg, theme.ownMeta,
                ):  # fmt: skip
                    assert colour.rgb() in seen, (mode, colour.name())

    try:
        run(scenario)
    finally:
        set_theme(app, ThemeMode.LIGHT)


def test_the_newest_stays_in_view_only_while_one_is_there() -> None:
    source = MemoryPages(chatter(50))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.add(message(9000, "Maya", "new"))
            assert MessageId("m0009000") in places(view)
            await active(view)
            view.note_seen()
            view.scroll_by(400)
            before = places(view)
            view.add(message(9001, "Maya", "newer"))
            view.show_changes()
            assert places(view) == before
            assert view.jump_button.isVisible()
            assert view.jump_button.unread == 1
            view.jump_button.click()
            assert MessageId("m0009001") in places(view)
            assert not view.jump_button.isVisible()

    run(scenario)


def test_what_one_sends_oneself_is_shown_wherever_one_was() -> None:
    source = MemoryPages(chatter(1000))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.go_to_beginning()
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
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.scroll_by(900)
            before = places(view)
            first = min(before, key=lambda key: before[key])
            oldest = view.scene.loaded.get(first)
            assert oldest is not None
            for number in range(1, 4):
                late = message(oldest.position.lamport_timestamp - 100 + number, late=True)
                view.add(late)
                view.show_changes()
                after = places(view)
                assert {key: after[key] for key in before} == before
            assert view.late_chip.isVisible()
            assert view.late_chip.text() == "3 earlier messages arrived"
            view.late_chip.click()
            assert MessageId(f"m{oldest.position.lamport_timestamp - 99:07d}") in places(view)
            await active(view)
            view.note_seen()
            assert view.late_chip.count == 0
            assert not view.late_chip.isVisible()

    run(scenario)


def test_late_messages_that_one_sees_anyway_are_not_announced() -> None:
    source = MemoryPages([message(10), message(30)])

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.add(message(20, late=True))
            view.show_changes()
            assert MessageId("m0000020") in places(view)
            assert not view.late_chip.isVisible()

    run(scenario)


def test_what_comes_in_below_while_one_reads_above_is_unread_and_not_late() -> None:
    source = MemoryPages(chatter(80))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.scroll_by(2500)
            view.add(message(9010))
            view.add(message(9000))
            view.show_changes()
            assert view.late_chip.count == 0
            assert view.jump_button.unread == 2

    run(scenario)


def test_the_unread_line_is_drawn_where_one_left_off() -> None:
    source = MemoryPages([message(10), message(20)])

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            await active(view)
            view.note_seen()
            view.add(message(30))
            assert view.scene.loaded.first_unread is None
            view.note_seen()
            other = QWidget()
            other.show()
            other.activateWindow()
            await active(other)
            first_missed = message(40)
            view.add(first_missed)
            view.add(message(50))
            other.close()
            assert view.scene.loaded.first_unread == first_missed.position

    run(scenario)


def test_five_thousand_messages_in_a_row_end_where_they_belong() -> None:
    source = MemoryPages([])

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            for number in range(5000):
                view.add(message(number * 7919 % 5000 + 1, "Maya", f"number {number}"))
            view.show_changes()
            loaded = view.scene.loaded
            assert len(loaded) == MAX_LOADED
            assert loaded.total == 5000
            order = [m.position for m in loaded.messages]
            assert order == sorted(order)
            assert loaded.older_count + len(loaded) == 5000 or loaded.has_newer

    run(scenario)


def test_ten_thousand_rows_are_paged_both_ways_within_bounds() -> None:
    source = MemoryPages(chatter(10_000))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            seen: set[MessageId] = set()
            while source.messages[9000].message_id not in seen:
                view.scroll_by(view.height() * 0.8)
                await settled(view)
                seen |= places(view).keys()
                assert len(view.scene.loaded) <= MAX_LOADED
            assert {m.message_id for m in source.messages[9000:9980]} <= seen
            seen.clear()
            while not view.scene.placing.sticks:
                view.scroll_by(-view.height() * 0.8)
                await settled(view)
                seen |= places(view).keys()
                assert len(view.scene.loaded) <= MAX_LOADED
            assert {m.message_id for m in source.messages[9010:]} <= seen
            assert len(view.scene.bodies) <= 2000

    run(scenario)


def test_pages_put_in_above_move_nothing() -> None:
    source = MemoryPages(chatter(500))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            source.hold()
            view.scroll_by(3000)
            assert view.loading
            before = places(view)
            source.release()
            await settled(view)
            after = places(view)
            assert {key: after[key] for key in before} == before

    run(scenario)


def test_the_scrollbar_leads_anywhere() -> None:
    source = MemoryPages(chatter(10_000))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            bar = view.verticalScrollBar()
            assert bar.value() == bar.maximum()
            for share in (0.5, 0.03, 0.0, 0.77, 1.0):
                bar.setSliderDown(True)
                bar.setSliderPosition(round(bar.maximum() * share))
                await settled(view)
                bar.setSliderDown(False)
                view.refresh()
                top, end = view.scene.shown_ordinals()
                assert abs(top - (10_000 - (end - top)) * share) < 2, share

    run(scenario)


def test_uneven_clocks_do_not_mislead_the_scrollbar() -> None:
    steps = [3 ** min(index // 50, 12) for index in range(1200)]
    lamport = [sum(steps[: index + 1]) for index in range(len(steps))]
    source = MemoryPages([message(timestamp) for timestamp in lamport])

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.go_to_ordinal(640)
            await settled(view)
            assert abs(view.scene.shown_ordinals()[0] - 640) < 2

    run(scenario)


def test_it_opens_at_the_first_unread() -> None:
    source = MemoryPages(chatter(300))
    first = source.messages[200]

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation(unread=100, first_unread=first.position))
            await settled(view)
            shown = places(view)
            assert first.message_id in shown
            assert 0 < shown[first.message_id] < view.height() / 2
            line = view.scene.rect("unread")
            assert line is not None
            assert 0 < line.top() < shown[first.message_id]
            assert view.jump_button.isVisible()
            assert view.jump_button.unread == 100

    run(scenario)


def test_only_what_was_wholly_seen_in_an_active_window_counts_as_read() -> None:
    source = MemoryPages(chatter(300))
    first = source.messages[200]

    async def scenario() -> None:
        with shown_view(source) as view:
            markers: list[Position] = []
            view.visibleUpTo.connect(markers.append)
            view.open(conversation(unread=100, first_unread=first.position))
            await settled(view)
            other = QWidget()
            other.show()
            other.activateWindow()
            await active(other)
            view.note_seen()
            assert markers == []
            other.close()
            view.activateWindow()
            await active(view)
            view.note_seen()
            wholly = [p for p in view.scene.placed if p.bottom <= view.height()]
            last = message_of(wholly[-1].row)
            assert last is not None
            assert markers == [last.position]
            view.scroll_by(2000)
            view.note_seen()
            assert markers == [last.position]
            view.go_to_newest()
            await settled(view)
            view.note_seen()
            assert markers[-1] == source.messages[-1].position
            assert view.jump_button.unread == 0

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
            view.note_seen()
            assert [m.lamport_timestamp for m in markers] == [20]

    run(scenario)


def test_events_during_a_page_load_are_neither_lost_nor_doubled() -> None:
    source = MemoryPages(chatter(20))

    async def scenario() -> None:
        with shown_view(source) as view:
            source.hold()
            view.open(conversation())
            await asyncio.sleep(0)
            newest, first = message(9000, "Luc", "during"), source.messages[0]
            view.add(newest)
            view.add(source.messages[5])
            view.remove(first.message_id)
            view.change(message(20, source.messages[1].sender_name, "changed"))
            source.release()
            await settled(view)
            loaded = view.scene.loaded.messages
            assert [m.message_id for m in loaded] == [
                *(m.message_id for m in source.messages[1:]),
                newest.message_id,
            ]
            assert loaded[0].text == "changed"

    run(scenario)


def test_a_conversation_that_was_left_gets_no_late_page() -> None:
    source = MemoryPages(chatter(20))

    async def scenario() -> None:
        with shown_view(source) as view:
            source.hold()
            view.open(conversation())
            await asyncio.sleep(0)
            view.clear()
            source.release()
            await asyncio.sleep(0)
            assert not view.loading
            assert len(view.scene.loaded) == 0
            view.add(message(9000))
            assert len(view.scene.loaded) == 0
            view.grab()

    run(scenario)


def test_a_disk_that_fails_is_told_and_the_view_goes_on() -> None:
    source = MemoryPages(chatter(300))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            source.broken = True
            view.go_to_beginning()
            assert await emitted(view.loadFailed) == ("The disk is full.",)
            source.broken = False
            view.add(message(9000))
            assert view.scene.loaded.get(MessageId("m0009000")) is not None
            view.go_to_beginning()
            await settled(view)
            assert source.messages[0].message_id in places(view)

    run(scenario)


def test_a_new_width_keeps_what_one_reads() -> None:
    source = MemoryPages(chatter(200))

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.scroll_by(2500)
            await settled(view)
            anchor = view.scene.placing.anchor
            assert anchor is not None
            for width in (420, 1500, 700, 968):
                view.resize(width, 640)
                view.grab()
                assert abs(places(view)[anchor[0]] - anchor[1]) < 1

    run(scenario)


def test_a_narrow_view_cuts_nothing_off() -> None:
    long_word = "x" * 400
    rows = [
        message(10, "Maya", long_word),
        message(
            20, "Ines", long_word, delivery=delivery(DeliveryState.FAILED, failure="why " * 30)
        ),
        message(30, "Luc", "behind", waiting=True),
    ]

    async def scenario() -> None:
        with shown_view(MemoryPages(rows), width=330) as view:
            view.open(conversation())
            await settled(view)
            view.set_gap(gap(missing=120, waiting=1))
            for placed in view.scene.placed:
                box = view.scene.box(placed.row)
                rects = [rect for _part, rect in getattr(box, "parts", ())]
                rects += [getattr(box, "bubble", None) or getattr(box, "card", None) or box.rect]  # type: ignore[union-attr]
                for rect in rects:
                    assert rect.left() >= 0
                    assert rect.right() <= view.viewport().width()
                    assert rect.bottom() <= placed.height + 1

    run(scenario)


def test_the_gap_closes_itself_when_all_arrived() -> None:
    source = MemoryPages([message(10), message(40, "Luc", "after", waiting=True)])

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
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
        with shown_view(MemoryPages([])) as view:
            view.open(conversation())
            await settled(view)
            foreign = message(10)
            object.__setattr__(foreign, "conversation_id", "elsewhere")
            view.add(foreign)
            assert len(view.scene.loaded) == 0
            view.add(message(10))
            assert len(view.scene.loaded) == 1

    run(scenario)


def test_the_wheel_scrolls_by_pixels_and_lines() -> None:
    source = MemoryPages(chatter(80))

    def wheel(view: TimelineView, *, pixels: int = 0, angle: int = 0) -> None:
        event = QWheelEvent(
            QPointF(50, 50), view.mapToGlobal(QPointF(50, 50)), QPoint(0, pixels),
            QPoint(0, angle), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(view.viewport(), event)

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            last = source.messages[-1].message_id
            before = places(view)[last]
            wheel(view, pixels=37)
            assert places(view)[last] == before + 37
            wheel(view, angle=-120)
            assert places(view)[last] == before

    run(scenario)


def test_a_hostile_text_is_folded_and_bounded() -> None:
    endless = message(10, "Maya", "\n" * 60_000 + "\x00\x1b[31m\u202eend")

    async def scenario() -> None:
        with shown_view(MemoryPages([endless])) as view:
            view.open(conversation())
            await settled(view)
            folded = view.scene.box(view.scene.loaded.rows[-1]).height
            assert folded < 1000
            view.scene.unfold(endless.message_id)
            view.refresh()
            view.grab()
            assert view.scene.box(view.scene.loaded.rows[-1]).height < 60_000

    run(scenario)


def test_highlight_of_a_found_message_is_the_bands_colour() -> None:
    source = MemoryPages(chatter(400))
    target = source.messages[20]

    async def scenario() -> None:
        with shown_view(source) as view:
            view.open(conversation())
            await settled(view)
            view.go_to(target.position)
            await settled(view)
            assert target.message_id in places(view)
            view.go_to(target.position)
            y = round(places(view)[target.message_id]) + 12
            shown = view.grab().toImage().pixelColor(3, y)
            assert shown == QColor(current_theme().band)

    run(scenario)
