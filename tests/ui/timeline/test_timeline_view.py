"""What the real widget shows: bubbles, states, themes, widths; and scrolling by wheel."""

from functools import partial

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication

from engine.core.ids import DeliveryState, MessageId
from engine.core.problems import FailureReason
from tests.ui.timeline.timeline_stage import (
    IDS,
    MemoryPages,
    application,
    chatter,
    colours,
    delivery,
    gap,
    message,
    opened_view,
    places,
    run,
    settled,
)
from ui.theme import ThemeMode, current_theme, set_theme
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import message_key, message_of
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def test_it_opens_at_the_newest_and_draws_ones_own_on_the_right() -> None:
    source = MemoryPages(
        [
            message(10, "Maya", "a question"),
            message(20, "Ines", "an answer", delivery=delivery(DeliveryState.HELD, 5)),
        ]
    )

    async def scenario() -> None:
        async with opened_view(source) as view:
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
        message(
            30,
            "Ines",
            "bad",
            delivery=delivery(DeliveryState.FAILED, failure=FailureReason.NOBODY_TOOK_IT),
        ),
        message(40, "Maya", "late", late=True),
        message(50, "Luc", "early", waiting=True),
    ]
    app = application()

    async def scenario() -> None:
        async with opened_view(MemoryPages(states)) as view:
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


def test_a_narrow_view_cuts_nothing_off() -> None:
    long_word = "x" * 400
    rows = [
        message(10, "Maya", long_word),
        message(
            20,
            "Ines",
            long_word,
            delivery=delivery(DeliveryState.FAILED, failure=FailureReason.NOT_REACHED),
        ),
        message(30, "Luc", "behind", waiting=True),
    ]

    async def scenario() -> None:
        async with opened_view(MemoryPages(rows), width=330) as view:
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


def test_words_beside_ones_own_message_leave_the_thread_free() -> None:
    """That it is being deleted, or why it did not go: beside the bubble or below it."""
    held = delivery(DeliveryState.HELD, 5)
    failed = delivery(DeliveryState.FAILED, failure=FailureReason.NOT_REACHED)
    rows = [
        message(10 * n, "Ines", "x" * n, delivery=failed if n % 2 else held) for n in range(1, 30)
    ]

    async def scenario(width: int) -> None:
        async with opened_view(MemoryPages(rows), width=width, height=4_000) as view:
            view.show_leaving(frozenset(row.message_id for row in rows[1::2]))
            boxes = [view.scene.box(placed.row) for placed in view.scene.placed]
            told = [box for box in boxes if isinstance(box, BubbleBox) and box.reason]
            assert len(told) == len(rows)
            begins = view.scene.geometry.bubble_left
            assert min(box.reason_rect.left() for box in told) >= begins

    for width in (330, 480, 640, 968):
        run(partial(scenario, width))


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
        async with opened_view(source) as view:
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
        async with opened_view(MemoryPages([endless])) as view:
            folded = view.scene.box(view.scene.loaded.rows[-1]).height
            assert folded < 1000
            view.scene.unfold(endless.message_id)
            view.canvas.refresh()
            view.grab()
            assert view.scene.box(view.scene.loaded.rows[-1]).height < 60_000

    run(scenario)


def test_highlight_of_a_found_message_is_the_bands_colour() -> None:
    source = MemoryPages(chatter(400))
    target = source.messages[20]

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.navigation.go_to(target.position)
            await settled(view)
            assert target.message_id in places(view)
            view.navigation.go_to(target.position)
            y = round(places(view)[target.message_id]) + 12
            shown = view.grab().toImage().pixelColor(3, y)
            assert shown == QColor(current_theme().band)

    run(scenario)


def test_piled_up_marks_stay_in_their_own_bubble() -> None:
    pile = "".join(chr(0x300 + number % 0x6F) for number in range(60))

    def above_bubble(text: str) -> QImage:
        taken: list[QImage] = []

        async def scenario() -> None:
            async with opened_view(MemoryPages([message(10, text=text)])) as view:
                placed = view.scene.placed[-1]
                box = view.scene.box(placed.row)
                assert isinstance(box, BubbleBox)
                assert box.body.stacked is (len(text) > 1)
                top = int(placed.y + box.bubble.top())
                taken.append(view.viewport().grab().toImage().copy(0, 0, view.width(), top))

        run(scenario)
        return taken[0]

    assert above_bubble("Z" + pile) == above_bubble("Z")


def test_a_tab_is_as_wide_as_four_spaces() -> None:
    async def scenario() -> None:
        async with opened_view(
            MemoryPages([message(10, text="\tx"), message(20, text="    x")])
        ) as view:
            boxes = [view.scene.box(placed.row) for placed in view.scene.placed]
            widths = [box.body.width for box in boxes if isinstance(box, BubbleBox)]
            assert len(widths) == 2
            assert abs(widths[0] - widths[1]) < 1

    run(scenario)


def test_ones_own_time_is_drawn_and_takes_room_only_where_it_changes() -> None:
    held = delivery(DeliveryState.HELD, 5)
    source = MemoryPages([message(n, "Ines", "yes", delivery=held) for n in (10, 20)])

    async def scenario() -> None:
        async with opened_view(source) as view:
            first, second = (
                view.scene.box(p.row) for p in view.scene.placed if message_of(p.row) is not None
            )
            assert isinstance(first, BubbleBox)
            assert isinstance(second, BubbleBox)
            assert first.meta.time == "14:09"
            assert second.meta.time == ""
            assert second.meta.count == first.meta.count == "5/5"
            assert second.bubble.width() < first.bubble.width()

    run(scenario)


def test_the_senders_avatar_stays_in_view_during_a_long_run() -> None:
    source = MemoryPages(
        [message(n, "Maya", f"number {n}") for n in range(10, 40)]
        + [message(n, "Luc", f"number {n}") for n in range(40, 60)]
    )

    first_of_luc = message_key(MessageId("m0000040"))

    def is_drawn(view: TimelineView, y: float, who: str) -> bool:
        geometry = view.scene.geometry
        at = QPoint(int(geometry.left + geometry.avatar / 2), int(y + 4))
        fill = current_theme().avatar_fill(IDS[who])
        return view.viewport().grab().toImage().pixelColor(at) == fill

    async def scenario() -> None:
        async with opened_view(source, height=400) as view:
            top = view.scene.theme.metrics.gap(8)
            kept = view.scene.kept_sender()
            assert kept is not None
            assert kept.message.sender_name == "Luc"
            assert kept.y == top
            assert is_drawn(view, top, "Luc")
            while kept is not None and kept.message.sender_name == "Luc":
                view.canvas.scroll_by(10)
                kept = view.scene.kept_sender()
            luc = view.scene.rect(first_of_luc)
            assert luc is not None
            assert is_drawn(view, luc.top(), "Luc"), "at its beginning it stands where it belongs"
            view.canvas.scroll_by(-luc.top() + 60)
            kept, luc = (
                view.scene.kept_sender(),
                view.scene.rect(message_key(MessageId("m0000040"))),
            )
            assert kept is not None
            assert luc is not None
            assert kept.message.sender_name == "Maya"
            view.canvas.scroll_by(-luc.top() + 30)
            kept, luc = (
                view.scene.kept_sender(),
                view.scene.rect(message_key(MessageId("m0000040"))),
            )
            assert kept is not None
            assert luc is not None
            assert kept.y + view.scene.geometry.avatar < luc.top(), "it leaves with its run"
            assert kept.y < top
            view.navigation.go_to_beginning()
            assert view.scene.kept_sender() is None

    run(scenario)
