"""A person at a desk: their program, their keys, and what is read to them.

With the ways that tests of the screen reader go: first start, a group, the invitation; then to a
message, its menu, and the dialog that asks for files.  All that is in view on the way to a group is
read by the first of them, ``test_keyboard_session``; whoever goes it ``again`` only goes it.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import Popen
from typing import Final

from tests.screen_reader.desk import Desk
from tests.screen_reader.reader import ScreenReader, Thing, until

TIME: Final = r"\d\d?:\d\d( [AP]M)?"
COMPOSER: Final = "Message to Tide Gauge"
_MOST_STEPS: Final = 40


class Person:
    """A program, its user's keys, and what is read to them."""

    def __init__(self, at: Desk, reader: ScreenReader, process: Popen[bytes], it: Thing) -> None:
        self.desk = at
        self.reader = reader
        self.process = process
        self.program = it

    async def press(self, *keys: str) -> None:
        self.reader.announced.clear()
        await self.desk.press(*keys)

    async def press_until(self, key: str, name: str, role: str = "") -> None:
        """As somebody who goes on until they hear it."""
        pattern = re.compile(name)
        for _step in range(_MOST_STEPS):
            before = len(self.reader.focused)
            await self.desk.press(key)
            await until(_more(self.reader, before))
            read = await self.reader.read_focus()
            if role == "list item" and read and read.role == "list":
                read = await self.reader.until_focus(".+", role)  # Its row comes after it.
            if read and pattern.fullmatch(read.name) and role in {"", read.role}:
                return
        raise AssertionError(f"{key} does not lead to {name}")

    async def listen_through(self) -> None:
        """Nothing in view is read badly."""
        async for read in self.reader.tree(self.program):
            said = f"{read.name} {read.description}"
            assert not re.search(r"</?(qt|div|p|b|i|span|html)\b", said), said
            if "focusable" in read.states:
                assert read.name.strip(), f"{read.role} without a name"

    async def go_round(self, within: Thing | None = None) -> None:
        """Tab reaches all that one can use in view.

        Arrows lead to the rows of lists, and from the chosen one of radio buttons to the others.

        ``within``: the sheet that lies on the window.
        """
        wanted = {
            read.thing: str(read)
            async for read in self.reader.tree(within or self.program)
            if {"focusable", "enabled"} <= read.states
            and read.role != "list item"
            and (read.role != "radio button" or "checked" in read.states)
        }
        reached: set[Thing] = set()
        for _step in range(_MOST_STEPS):
            before = len(self.reader.focused)
            await self.desk.press("Tab")
            await until(_more(self.reader, before))
            reached.update(self.reader.focused[before:])
            if wanted.keys() <= reached:
                return
        raise AssertionError([wanted[thing] for thing in wanted.keys() - reached])


def _more(reader: ScreenReader, before: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return len(reader.focused) > before

    return look


async def first_start(at: Desk, reader: ScreenReader, name: str, *, again: bool = False) -> Person:
    there = {*await reader.programs()}
    process = await at.causerie(at.place / name)

    async def look() -> Thing | None:
        return next(iter({*await reader.programs()} - there), None)

    person = Person(at, reader, process, await until(look))
    await at.give_keys_to(process)
    await reader.until_focus("Name", "text")
    if again:
        await at.type(name)
    else:
        await person.listen_through()
        await at.type(name)
        await person.go_round()
        await person.press_until("Tab", "Name", "text")
    await person.press("Return")
    await reader.until_shown(person.program, "Step 2 of 3", "label")
    await reader.until_focus("Next", "push button")
    if not again:
        await person.listen_through()
    await person.press("Return")
    await reader.until_focus("Join with an invitation", "push button")
    if not again:
        await person.listen_through()
    return person


async def new_group(alice: Person, *, again: bool = False) -> str:
    """Its invitation, as it is read."""
    reader = alice.reader
    await alice.press("ctrl+n")
    await reader.until_shown(alice.program, "New group", "dialog")
    await reader.until_focus("Name of the group", "text")
    await alice.desk.type("Tide Gauge")
    await alice.press("Return")
    await reader.until_focus(COMPOSER, "text")
    if not again:
        await alice.listen_through()
        await alice.go_round()
    await alice.press_until("shift+Tab", "Invite people", "push button")
    await alice.press("Return")
    sheet = await reader.until_shown(alice.program, "Invite to Tide Gauge", "dialog")
    await reader.until_focus("Make invitation", "push button")
    if not again:
        await alice.go_round(sheet.thing)
    await alice.press("Return")
    link = await reader.until_shown(alice.program, "Invitation link", "text")
    await reader.until_focus("Copy link", "push button")
    if not again:
        await alice.go_round(sheet.thing)
        await alice.listen_through()
    await alice.press("Escape")
    await reader.until_focus("Invite people", "push button")
    return link.text


async def join_by_link(bob: Person, link: str, *, again: bool = False) -> None:
    await bob.desk.causerie(bob.desk.place / "Bob", link)
    sheet = await bob.reader.until_shown(bob.program, "Join with an invitation", "dialog")
    await bob.reader.until_shown(bob.program, "Invitation to Tide Gauge. From Alice.", "panel")
    await bob.reader.until_focus("Cancel", "push button")
    if not again:
        await bob.go_round(sheet.thing)
        await bob.listen_through()
    await bob.press_until("Tab", "Ask to join Tide Gauge", "push button")
    await bob.press("Return")
    await bob.reader.until_focus(COMPOSER, "text")


async def two_in_a_group(
    at: Desk, reader: ScreenReader, *, said: str = "", again: bool = False
) -> tuple[Person, Person]:
    """``said``: before Bob is let in."""
    alice = await first_start(at, reader, "Alice", again=again)
    link = await new_group(alice, again=again)
    if said:
        await say(alice, said)
    bob = await first_start(at, reader, "Bob", again=again)
    await join_by_link(bob, link, again=again)
    return alice, bob


async def turn_to(person: Person) -> None:
    """Unless they have the keys: a tip of theirs that is in view is a window, too."""
    if person.desk.keys_at is not person.process:
        await person.desk.give_keys_to(person.process)


async def say(person: Person, text: str) -> None:
    await turn_to(person)
    await person.press_until("F6", COMPOSER, "text")
    await person.desk.type(text)
    await person.press("Return")


async def row(person: Person, words: str) -> None:
    """It is in view."""
    await person.reader.until_shown(person.program, words, "list item")


async def walk_to(person: Person, words: str) -> None:
    """From wherever the keys are to a message: by F6, and up from the newest one."""
    await turn_to(person)
    await row(person, words)
    await person.press_until("F6", COMPOSER, "text")
    await person.press_until("F6", "Tide Gauge, .*", "list item")
    await person.press_until("F6", "(?!Tide Gauge, ).+", "list item")
    await person.press("Escape")
    await person.press_until("Up", words, "list item")


async def attach(person: Person, *paths: Path) -> None:
    """By the button and the dialog, until they are above the composer."""
    reader = person.reader
    await turn_to(person)
    await person.press_until("F6", COMPOSER, "text")
    await person.press_until("shift+Tab", "Send a picture or a file", "push button")
    await person.press("Return")
    await reader.until_focus("File name:", "text")
    await person.desk.give_keys_to(person.process)
    await person.desk.type(" ".join(f'"{path}"' for path in paths))
    await person.press("Return")
    names = ", ".join(f"{path.stem}.*" for path in paths)
    several = f"{len(paths)} files go out with the message: {names}"
    one = f"Goes out with the message: {names}"
    await reader.until_shown(person.program, f"{several}|{one}", "panel")
    await person.desk.give_keys_to(person.process)
    await person.listen_through()
    await person.press_until("F6", COMPOSER, "text")


async def choose(person: Person, entry: str) -> None:
    """Of the menu of the message that has the keys."""
    await person.press("Menu")
    await person.press_until("Down", entry, "menu item")
    await person.press("Return")
