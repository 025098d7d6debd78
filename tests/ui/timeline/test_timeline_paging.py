"""Pages come and go in both directions, fail, and come late; one keeps one's place."""

import asyncio

import pytest

from engine.core.ids import MessageId
from tests.ui.timeline.timeline_stage import (
    MemoryPages,
    chatter,
    conversation,
    emitted,
    message,
    opened_view,
    places,
    run,
    settled,
    shown_view,
)
from ui.timeline.loaded import MAX_LOADED

pytestmark = pytest.mark.usefixtures("qapp")


def test_ten_thousand_rows_are_paged_both_ways_within_bounds() -> None:
    source = MemoryPages(chatter(10_000))

    async def scenario() -> None:
        async with opened_view(source) as view:
            seen: set[MessageId] = set()
            while source.messages[9000].message_id not in seen:
                view.canvas.scroll_by(view.height() * 0.8)
                await settled(view)
                seen |= places(view).keys()
                assert len(view.scene.loaded) <= MAX_LOADED
            assert {m.message_id for m in source.messages[9000:9980]} <= seen
            seen.clear()
            while not view.scene.layout.sticks:
                view.canvas.scroll_by(-view.height() * 0.8)
                await settled(view)
                seen |= places(view).keys()
                assert len(view.scene.loaded) <= MAX_LOADED
            assert {m.message_id for m in source.messages[9010:]} <= seen
            assert len(view.scene.bodies) <= 2000

    run(scenario)


def test_pages_put_in_above_move_nothing() -> None:
    source = MemoryPages(chatter(500))

    async def scenario() -> None:
        async with opened_view(source) as view:
            source.hold()
            view.canvas.scroll_by(3000)
            assert view.navigation.loading
            before = places(view)
            source.release()
            await settled(view)
            after = places(view)
            assert {key: after[key] for key in before} == before

    run(scenario)


def test_the_scrollbar_leads_anywhere() -> None:
    source = MemoryPages(chatter(10_000))

    async def scenario() -> None:
        async with opened_view(source) as view:
            bar = view.verticalScrollBar()
            assert bar.value() == bar.maximum()
            for share in (0.5, 0.03, 0.0, 0.77, 1.0):
                bar.setSliderDown(True)
                bar.setSliderPosition(round(bar.maximum() * share))
                await settled(view)
                bar.setSliderDown(False)
                view.canvas.refresh()
                top, end = view.scene.shown_ordinals()
                assert abs(top - (10_000 - (end - top)) * share) < 2, share

    run(scenario)


def test_uneven_clocks_do_not_mislead_the_scrollbar() -> None:
    steps = [3 ** min(index // 50, 12) for index in range(1200)]
    lamport = [sum(steps[: index + 1]) for index in range(len(steps))]
    source = MemoryPages([message(timestamp) for timestamp in lamport])

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.navigation.go_to_ordinal(640)
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
            assert view.canvas.jump_button.isVisible()
            seen = sum(top >= shown[first.message_id] for top in shown.values())
            # A slow machine has shown these long enough to count as read.
            assert 100 - seen <= view.canvas.jump_button.unread <= 100

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
            assert not view.navigation.loading
            assert len(view.scene.loaded) == 0
            view.add(message(9000))
            assert len(view.scene.loaded) == 0
            view.grab()

    run(scenario)


def test_a_disk_that_fails_is_told_and_the_view_goes_on() -> None:
    source = MemoryPages(chatter(300))

    async def scenario() -> None:
        async with opened_view(source) as view:
            source.broken = True
            view.navigation.go_to_beginning()
            assert await emitted(view.loadFailed) == ("The disk is full; nothing was saved.",)
            source.broken = False
            view.add(message(9000))
            assert view.scene.loaded.get(MessageId("m0009000")) is not None
            view.navigation.go_to_beginning()
            await settled(view)
            assert source.messages[0].message_id in places(view)

    run(scenario)
