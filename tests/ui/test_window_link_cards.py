"""Invitations and contact links in messages: cards with a button, unless they are damaged."""

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from engine.core.ids import ConversationId
from tests.ui.driving import Key, Stage, group_stage, play, turn, until
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine
from tests.ui.seeing import sheet_of, spoken_rows
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.timeline.boxes import BubbleBox
from ui.timeline.buttons import RowButton
from ui.timeline.link_card import LinkCard
from ui.timeline.rows import MessageRow

pytestmark = pytest.mark.usefixtures("qapp")
NARROW = (360, 700)


async def said(it: Stage, engine: ScriptedEngine, group: ConversationId, text: str) -> BubbleBox:
    engine.receive(group, "Maya", text)
    scene = it.window.pane.timeline.scene
    await until(lambda: scene.loaded.total == 1 and bool(scene.placed))
    placed = next(p for p in scene.placed if isinstance(p.row, MessageRow))
    box = scene.box(placed.row)
    assert isinstance(box, BubbleBox)
    return box


def card_of(box: BubbleBox) -> LinkCard:
    assert box.link is not None
    return box.link


def test_an_invitation_is_a_card_that_leads_to_its_sheet() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            box = await said(it, engine, group, f"Come: {GOOD_LINK}")
            view, card = it.window.pane.timeline, card_of(box)
            assert (card.name, card.words) == ("Tide Gauge", "Invitation from Maya")
            assert box.bubble.contains(card.rect)
            assert not card.rect.intersects(box.meta.rect)
            assert spoken_rows(view)[-1].endswith("Invitation to Tide Gauge")
            placed = next(p for p in view.scene.placed if isinstance(p.row, MessageRow))
            (button,) = (rect for which, rect in box.buttons if which is RowButton.JOIN_GROUP)
            at = (button.center() + QPointF(0, placed.y)).toPoint()
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
            sheet = await sheet_of(it.window, Join)
            assert sheet.form.link() == GOOD_LINK
            sheet.reject()
            assert engine.called("join_group") == []

    play(scenario)


def test_a_contact_link_is_a_card_that_enter_opens() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            box = await said(it, engine, group, "causerie:contact/Jonas")
            assert (card_of(box).name, card_of(box).words) == ("Jonas", "Contact link")
            view = it.window.pane.timeline
            view.setFocus(Qt.FocusReason.TabFocusReason)
            it.press(Key.Key_Return, on=view)
            sheet = await sheet_of(it.window, AddPerson)
            assert sheet.theirs.link() == "causerie:contact/Jonas"
            sheet.reject()

    play(scenario)


@pytest.mark.parametrize("link", ["causerie:join/cut", "causerie:nonsense", "https://example.org"])
def test_what_is_damaged_or_foreign_stays_text(link: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            assert (await said(it, engine, group, link)).link is None
            it.window.grab()

    play(scenario)


def test_a_card_fits_a_narrow_window() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            it.window.resize(*NARROW)
            await turn()
            box = await said(it, engine, group, GOOD_LINK)
            assert card_of(box).rect.right() <= box.bubble.right()
            assert card_of(box).button[1].left() > card_of(box).rect.left()
            it.window.grab()

    play(scenario)
