"""The inspector open beside a conversation of a scripted engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.core.ids import ConversationId
from engine.events import (
    MessageView,
)
from tests.ui.driving import Stage, heard, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from ui.dialogs.holders import HolderRow
from ui.inspector.panel import InspectorPanel

TEXT = "Yes, it's charged"


@asynccontextmanager
async def looking(
    *, size: tuple[int, int] = (1280, 820)
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId, MessageView]]:
    """A group with three messages, the last of them ours."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", ("Maya", "Luc"))
    for minute, words in enumerate(("Lovely", "It talks!")):
        engine.receive(group, "Maya", words, minute=minute)
    own = engine.row(group, member("Ines", is_self=True), TEXT, 5)
    engine.arrive(own, notify=False)
    async with stage(engine, opening=group, size=size) as it:
        timeline = it.window.pane.timeline
        await until(lambda: timeline.scene.loaded.total == 3)
        yield it, engine, group, own


async def opened(it: Stage) -> InspectorPanel:
    """As by Ctrl+Shift+I, once it is filled."""
    shown = heard(it.window.inspector.shown)
    it.window.inspector.toggle()
    await shown
    panel = it.window.inspector.panel
    assert panel is not None
    return panel


def holders_named(panel: InspectorPanel, words: str) -> list[HolderRow]:
    rows = panel.holders.findChildren(HolderRow)
    return [row for row in rows if row.accessibleName().startswith(words)]
