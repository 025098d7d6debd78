"""Reactions: given, taken back, picked among all emoji, and whose they are."""

import pytest
from msgspec.structs import replace

from engine.events import (
    ReactionView,
)
from tests.ui.driving import Key, group_stage, play, until
from tests.ui.on_messages import (
    ask_by_menu,
    bubble,
    click,
    focus,
    in_view,
    menu_of,
    spoken_rows_of,
)
from tests.ui.seeing import sheet_of, words_of
from ui.dialogs.message_info import Reactors
from ui.emoji.picker import EmojiPicker
from ui.timeline.reaction_row import ReactionButton

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_reaction_is_given_and_taken_back_by_its_chip() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            engine.alter(
                replace(row, reactions=(ReactionView(emoji="🎉", count=1, names=("Luc",)),))
            )
            await until(lambda: in_view(it, row) and bool(bubble(it, row)[0].chips))
            box, y = bubble(it, row)
            click(it, box.chips[0].rect.center(), y)
            await until(lambda: bool(engine.called("react")))
            assert engine.called("react") == [(row.message_id, "🎉", True)]
            assert "🎉 from you and Luc, not sent yet" in spoken_rows_of(it)[-1]
            await until(lambda: bubble(it, row)[0].chips[0].mine)
            click(it, bubble(it, row)[0].chips[0].rect.center(), y)
            await until(lambda: len(engine.called("react")) > 1)
            assert engine.called("react")[-1] == (row.message_id, "🎉", False)

    play(scenario)


def test_the_menu_reacts_and_says_who_did() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            await focus(it, row)
            it.press(Key.Key_Menu)
            menu = menu_of(it)
            buttons = menu.findChildren(ReactionButton)
            assert [b.emoji for b in buttons] == ["👍", "❤️", "😂", "😮", "😢", "🙏", ""]
            assert len({b.mapTo(menu, b.rect().center()).y() for b in buttons}) == 1, "a row"
            it.press(Key.Key_Down, on=menu)
            assert buttons[0].hasFocus()
            it.press(Key.Key_Left)
            assert buttons[-1].hasFocus()
            it.press(Key.Key_Right)
            it.press(Key.Key_Right)
            it.press(Key.Key_Down)
            assert menu.activeAction().text() == "Reply"
            assert not any(b.hasFocus() for b in buttons)
            it.press(Key.Key_Up, on=menu)
            it.press(Key.Key_Right)
            it.press(Key.Key_Right)
            it.press(Key.Key_Return)
            await until(lambda: engine.called("react") == [(row.message_id, "😂", True)])
            await until(lambda: bool(bubble(it, row)[0].chips))
            await until(lambda: it.window.pane.timeline.interaction.menu is None)
            await ask_by_menu(it, row, "Who reacted…")
            sheet = await sheet_of(it.window, Reactors)
            assert "You" in words_of(sheet)
            assert "not sent yet" in words_of(sheet)
            sheet.reject()

    play(scenario)


def test_the_way_to_all_emoji_ends_the_row_whatever_one_reacted_with() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            mine = [ReactionView(emoji=emoji, count=1, mine=True) for emoji in "🐙🎉"]
            engine.alter(replace(row, reactions=tuple(mine)))
            await focus(it, row)
            it.press(Key.Key_Menu)
            menu = menu_of(it)
            places = {
                button.emoji: button.mapTo(menu, button.rect().center()).y()
                for button in menu.findChildren(ReactionButton)
            }
            assert list(places) == ["👍", "❤️", "😂", "😮", "😢", "🙏", "", "🎉", "🐙"]
            assert places["👍"] == places[""] < places["🎉"] == places["🐙"]
            menu.close()

    play(scenario)


def test_a_heart_is_the_same_heart_however_others_write_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            black = ReactionView(emoji="\u2764", count=2, names=("Maya",), mine=True)
            engine.alter(replace(row, reactions=(black,)))
            await until(lambda: in_view(it, row) and bool(bubble(it, row)[0].chips))
            await focus(it, row)
            it.press(Key.Key_Menu)
            buttons = menu_of(it).findChildren(ReactionButton)
            assert [b.isChecked() for b in buttons] == [False, True, *[False] * 5]
            it.press(Key.Key_Down, on=menu_of(it))
            it.press(Key.Key_Right)
            it.press(Key.Key_Return)
            await until(lambda: engine.called("react") == [(row.message_id, "❤️", False)])

    play(scenario)


def test_any_emoji_is_picked_for_a_reaction() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            await focus(it, row)
            it.press(Key.Key_Plus)
            picker = it.window.findChild(EmojiPicker)
            assert picker is not None
            assert picker.isVisible()
            it.write("wave")
            it.press(Key.Key_Return)
            await until(lambda: bool(engine.called("react")))
            assert engine.called("react")[0][2] is True  # type: ignore[index]
            await until(lambda: bool(bubble(it, row)[0].chips))

    play(scenario)


def test_a_reaction_that_goes_for_a_newer_one_is_named() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            given = [ReactionView(emoji=chr(0x1F400 + n), count=1, mine=True) for n in range(16)]
            engine.alter(row := replace(row, reactions=tuple(given)))
            it.window.pane.about.react(row, "🎉")
            words = "Your 🐀 went: a message keeps the 16 newest reactions of each person."
            await until(lambda: words in words_of(it.window.notices))
            await until(lambda: in_view(it, row))
            await ask_by_menu(it, row, "Who reacted…")
            sheet = await sheet_of(it.window, Reactors)
            assert "Of each person the 16 newest reactions count." in words_of(sheet)
            sheet.reject()

    play(scenario)
