"""All that people do in a conversation every day, by keyboard, as a screen reader reads it.

Two real programs on a real desktop, as in ``test_keyboard_session``.  What is done by mouse is in
``tests/ui``; here every step ends in the words that a reader has for it, on both sides.
"""

import pytest

from tests.screen_reader.desk import Desk
from tests.screen_reader.person import (
    COMPOSER,
    TIME,
    Person,
    choose,
    row,
    say,
    turn_to,
    two_in_a_group,
    walk_to,
)
from tests.screen_reader.reader import screen_reader

HELD = "Held by 1 of 1"


async def words_and_marks(alice: Person, bob: Person) -> None:
    """Completed names and emoji, what is marked, links and code."""
    await turn_to(bob)
    await bob.press_until("F6", COMPOSER, "text")
    await bob.desk.type("hey @Al")
    await bob.reader.until_announced("Alice, 1 of 1")
    await bob.press("Tab")
    await bob.desk.type("come :anch")
    await bob.reader.until_announced(":anchor:, anchor, 1 of .*")
    await bob.press("Tab", "Return")
    await row(bob, f"You, hey @Alice come ⚓, {TIME}, {HELD}")
    await row(alice, f"Bob, hey @Alice come ⚓, {TIME}, mentions you")
    await say(bob, "*low* **water**: https://tides.example.org/today")
    linked = f"Bob, low water: https://tides.example.org/today, {TIME}"
    await walk_to(alice, linked)
    await alice.press("Return")
    await alice.reader.until_shown(alice.program, "Open this address\\?", "dialog")
    await alice.listen_through()
    await alice.press("Escape")
    await alice.reader.until_focus(linked, "list item")
    await turn_to(bob)
    await bob.desk.type("```")
    await bob.press("shift+Return")
    await bob.desk.type("low = 10")
    await bob.press("shift+Return")
    await bob.desk.type("```")
    await bob.press("Return")
    await walk_to(alice, f"Bob, code: low = 10, end of code, {TIME}")
    await choose(alice, "Copy code")
    await alice.reader.until_announced("Code copied")


async def answer_and_quote(alice: Person) -> None:
    """The keys go to what is quoted, and it is read."""
    mention = f"Bob, hey @Alice come ⚓, {TIME}, mentions you"
    await walk_to(alice, mention)
    await alice.press("r")
    await alice.reader.until_focus(COMPOSER, "text")
    await alice.reader.until_shown(alice.program, "Reply to Bob", "label")
    await alice.listen_through()
    await alice.desk.type("on my way")
    await alice.press("Return")
    answer = f"You, answers Bob: hey @Alice come ⚓, on my way, {TIME}, {HELD}"
    await walk_to(alice, answer)
    await alice.press("q")
    await alice.reader.until_focus(mention, "list item")


async def edit_and_versions(alice: Person, bob: Person) -> None:
    said = "answers {}: hey @Alice come ⚓, on my way now"
    await alice.press_until("F6", COMPOSER, "text")
    await alice.press("Up")
    await alice.reader.until_shown(alice.program, "Edit message", "label")
    await alice.desk.type(" now")
    await alice.press("Return")
    edited = f"Alice, {said.format('you')}, {TIME}, edited"
    await row(bob, edited)
    await walk_to(bob, edited)
    await choose(bob, "Earlier versions…")
    await bob.reader.until_shown(bob.program, "Versions of this message", "dialog")
    await bob.reader.until_shown(bob.program, ".*shown now: on my way now", "panel")
    await bob.reader.until_shown(bob.program, ".*: on my way", "panel")
    await bob.listen_through()
    await bob.press("Escape")
    await bob.reader.until_focus(edited, "list item")


async def react_and_who(alice: Person, bob: Person) -> None:
    mine = f"You, answers Bob: hey @Alice come ⚓, on my way now, {TIME}, edited"
    await bob.press("plus")
    await bob.reader.until_focus("Search emoji by name", "text")
    await bob.desk.type("rocket")
    await bob.press("Return")
    await row(alice, f"{mine}, 🚀 from Bob, {HELD}")
    await walk_to(alice, f"{mine}, 🚀 from Bob, {HELD}")
    await choose(alice, "Who reacted…")
    await alice.reader.until_shown(alice.program, "Who reacted", "dialog")
    await alice.reader.until_shown(alice.program, f"Bob: 🚀, .*{TIME}", "panel|filler")
    await alice.listen_through()
    await alice.press("Escape")
    await turn_to(bob)
    await bob.press("Menu")
    await bob.press_until("Down", "👍")
    await bob.press("Escape")


async def forward(alice: Person) -> None:
    """To another group, where it says so."""
    reader = alice.reader
    await turn_to(alice)
    await alice.press("ctrl+n")
    await reader.until_focus("Name of the group", "text")
    await alice.desk.type("Kitchen")
    await alice.press("Return")
    await reader.until_focus("Message to Kitchen", "text")
    await alice.press_until("F6", "Kitchen, .*", "list item")
    await alice.press_until("Down", "Tide Gauge, .*", "list item")
    await alice.press("Return")
    await reader.until_shown(alice.program, COMPOSER, "text")
    await walk_to(alice, f"Bob, code: low = 10, end of code, {TIME}")
    await choose(alice, "Forward…")
    await reader.until_shown(alice.program, "Forward to", "dialog")
    await reader.until_focus("Conversations", "text")
    await alice.listen_through()
    await alice.press_until("Tab", "Kitchen", "check box")
    await alice.press("space")
    await alice.press_until("Tab", "Forward", "push button")
    await alice.press("Return")
    await reader.until_announced("Forwarded to Kitchen.")
    await alice.press_until("F6", "Tide Gauge, .*", "list item")
    await alice.press_until("Up", "Kitchen, .*", "list item")
    await alice.press("Return")
    await row(alice, f"You, Forwarded, code: low = 10, end of code, {TIME}, .*")
    await alice.press_until("F6", "Kitchen, .*", "list item")
    await alice.press_until("Down", "Tide Gauge, .*", "list item")
    await alice.press("Return")
    await reader.until_shown(alice.program, COMPOSER, "text")


async def delete(alice: Person, bob: Person) -> None:
    """For everybody, undone and then not."""
    reader, oops = alice.reader, f"You, oops, {TIME}, {HELD}"
    await say(alice, "oops")
    await row(alice, oops)
    for undo in (True, False):
        await walk_to(alice, oops)
        await alice.press("Delete")
        await reader.until_shown(alice.program, "Delete this message\\?", "dialog")
        await reader.until_focus("Cancel", "push button")
        await alice.listen_through()
        await alice.press_until("Tab", "Delete for everybody", "push button")
        await alice.press("Return")
        await reader.until_announced("1 message will be deleted for everybody")
        await reader.until_focus(f"{oops}, being deleted for everybody", "list item")
        if undo:
            await alice.press("Return")
            await row(alice, oops)
    await row(bob, f"Alice deleted this message, {TIME}")


@pytest.mark.slow
async def test_what_is_said_about_messages_by_keyboard_and_screen_reader(at: Desk) -> None:
    async with screen_reader(at.bus) as reader:
        alice, bob = await two_in_a_group(at, reader, again=True)
        await words_and_marks(alice, bob)
        await answer_and_quote(alice)
        await edit_and_versions(alice, bob)
        await react_and_who(alice, bob)
        await forward(alice)
        await delete(alice, bob)
