"""The delivery view of a conversation: how it opens, what it reads, and what leads out of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.delivery_views import DeliveryMark, DeliveryMessage
from engine.events import ConversationRemoved
from tests.ui.driving import Stage, heard, stage, turn, until
from tests.ui.driving import play as played
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_inspection import SENT_MS, page_of, part_of
from ui.delivery.loaded import LoadedMessages

pytestmark = pytest.mark.usefixtures("qapp")
CtrlShift = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


def message(number: int, *, sender: str = "Maya", **changes: object) -> DeliveryMessage:
    message_id = MessageId(f"m-{number:05}")
    found = DeliveryMessage(
        message_id=message_id,
        mark=DeliveryMark.HERE,
        sender_id=ParticipantId(sender.lower()),
        sender_name=sender,
        is_own=sender == "Ines",
        lamport_timestamp=number,
        position=Position(number, message_id),
        received_ms=UnixMs(SENT_MS + number * 1_000),
        is_shown=True,
        names=(MessageId(f"m-{number - 1:05}"),),
        of=2,
    )
    return replace(found, **changes)


@asynccontextmanager
async def looking(
    count: int = 12, *, size: tuple[int, int] = (1280, 820)
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId]]:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", ("Maya", "Luc"))
    engine.receive(group, "Maya", "Lovely", minute=0)
    names = ("Maya", "Luc", "Ines")
    messages = [message(number, sender=names[number % 3]) for number in range(1, count + 1)]
    engine.inspected.pages[group] = page_of(group, messages)
    async with stage(engine, opening=group, size=size) as it:
        await until(lambda: it.window.pane.timeline.scene.loaded.total == 1)
        yield it, engine, group


async def opened(it: Stage) -> None:
    shown = heard(it.window.delivery.shown)
    it.window.pane.header.views.choose(1)
    await shown


def test_the_segment_opens_and_closes_it_and_nothing_is_read_while_it_is_closed() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            engine.receive(group, "Maya", "more", minute=1)
            await turn()
            assert engine.inspected.pages_read == []
            await opened(it)
            assert engine.inspected.pages_read == [(group, None)]
            assert not it.window.pane.timeline.isVisible()
            assert len(it.window.delivery.loaded.messages) == 12
            it.window.pane.header.views.choose(0)
            assert it.window.delivery.page is None
            assert it.window.pane.timeline.isVisible()
            engine.receive(group, "Maya", "and more", minute=2)
            await turn()
            assert len(engine.inspected.pages_read) == 1

    played(scenario)


def test_a_conversation_removed_meanwhile_closes_it() -> None:
    async def scenario() -> None:
        async with looking() as (it, engine, group):
            await opened(it)
            del engine.rows[group]
            engine.tell(ConversationRemoved(conversation_id=group))
            await until(lambda: it.window.delivery.page is None)

    played(scenario)


def test_pages_that_overlap_are_joined_and_what_left_the_log_is_gone() -> None:
    whole = page_of(ConversationId("c"), [message(number) for number in range(1, 901)])
    loaded = LoadedMessages()
    loaded.take_newest(part_of(whole, None, 400))
    assert [each.lamport_timestamp for each in loaded.messages] == [*range(501, 901)]
    assert loaded.take_older(part_of(whole, loaded.first, 400))
    assert len(loaded.messages) == 800
    fewer = replace(whole, messages=(*whole.messages[:-2], message(901)))
    changed = loaded.take_newest(part_of(fewer, None, 300))
    assert changed == 499
    assert [each.lamport_timestamp for each in loaded.messages][-3:] == [897, 898, 901]
    assert loaded.find(MessageId("m-00900")) is None
    far = page_of(ConversationId("c"), [message(number) for number in range(1, 2_001)])
    assert loaded.take_newest(part_of(far, None, 400)) == 0
    assert len(loaded.messages) == 400, "what does not join is let go"
    assert loaded.take_older(part_of(far, loaded.first, 400))
    assert not loaded.take_older(part_of(far, None, 400)), "it is no older one"
