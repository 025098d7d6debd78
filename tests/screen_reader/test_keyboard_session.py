"""An evening with Causerie by keyboard and screen reader: two real programs on a real desktop.

Each step presses keys and then asserts what is read: where the keys are, by role and name, and what
was announced.  What is in view is searched for things without a name, for markup that is read out,
and for what Tab does not reach.
"""

from collections.abc import AsyncIterator

import pytest
from PySide6.QtGui import QImage

from tests.screen_reader.desk import Desk
from tests.screen_reader.person import COMPOSER, TIME, Person, attach, say, two_in_a_group
from tests.screen_reader.reader import screen_reader
from tests.ui.desktop.private_bus import NotificationServer


@pytest.fixture
async def server(at: Desk) -> AsyncIterator[NotificationServer]:
    server = await NotificationServer.start(at.bus)
    yield server
    await server.stop()


async def talk(alice: Person, bob: Person) -> None:
    reader = alice.reader
    await bob.desk.type("hello Alice")
    await bob.press("Return")
    await reader.until_shown(alice.program, f"Bob, hello Alice, {TIME}", "list item")
    await alice.desk.give_keys_to(alice.process)
    await alice.press_until("F6", COMPOSER, "text")
    await alice.press_until("F6", f"Tide Gauge, Bob: hello Alice, {TIME}", "list item")
    await alice.press("F6")
    await reader.until_focus(f"You started this group, {TIME}", "list item")
    await alice.press_until("Down", f"Bob, hello Alice, {TIME}", "list item")
    await alice.press("Menu")
    await alice.press_until("Down", "Reply.*", "menu item")
    await alice.press("Escape")
    await reader.until_focus(f"Bob, hello Alice, {TIME}", "list item")
    await alice.press("r")
    await reader.until_focus(COMPOSER, "text")
    await alice.desk.type("hello Bob")
    await alice.press("Return")
    answer = f"You, answers Bob: hello Alice, hello Bob, {TIME}, Held by 1 of 1"
    await reader.until_shown(alice.program, answer, "list item")
    await alice.listen_through()


async def search(alice: Person) -> None:
    reader = alice.reader
    await alice.press("ctrl+f")
    await reader.until_focus("Search this conversation", "text")
    await alice.desk.type("hello")
    await reader.until_announced("1 of 2, You, hello Bob")
    await alice.press("Return")
    await reader.until_announced("2 of 2, Bob, hello Alice")
    await alice.press("Escape")
    await reader.until_focus(COMPOSER, "text")
    await alice.press("ctrl+k")
    await reader.until_focus("Search people, groups, messages and commands", "text")
    await alice.desk.type("hello")
    found = f"Message in Tide Gauge from {{}}, {TIME}: hello {{}}, {{}} of 2"
    await reader.until_announced("2 messages. " + found.format("You", "Bob", 1))
    await alice.press("Down")
    await reader.until_announced(found.format("Bob", "Alice", 2))
    await alice.listen_through()
    await alice.press("Return")
    await reader.until_focus(f"Bob, hello Alice, {TIME}", "list item")


async def panels(alice: Person) -> None:
    reader = alice.reader
    await alice.press("ctrl+slash")
    await reader.until_shown(alice.program, "Keys", "dialog")
    await alice.listen_through()
    await alice.press("Escape")
    await reader.until_focus(f"Bob, hello Alice, {TIME}", "list item")
    await alice.press("alt+Return")
    await reader.until_focus("Close the panel", "push button")
    await alice.listen_through()
    await alice.press_until("Tab", "Bob, .*", "push button")
    await alice.press("Return")
    await reader.until_shown(alice.program, "Their fingerprint", "label")
    await alice.listen_through()
    await alice.press("alt+Return")


async def click_on_notification(alice: Person, bob: Person, server: NotificationServer) -> None:
    await say(bob, "low water at ten")
    await server.until(lambda: any("low water" in one.body for one in server.on_screen.values()))
    (number,) = server.on_screen
    await server.say("ActionInvoked", "us", number, "default")
    await server.until(lambda: not server.on_screen)
    await alice.desk.give_keys_to(alice.process)
    await alice.press_until("F6", f"Bob, hello Alice, {TIME}", "list item")
    await alice.press_until("Down", f"Bob, low water at ten, {TIME}", "list item")


async def a_picture(alice: Person, bob: Person) -> None:
    """With a file; chosen in a dialog, read as rows on both sides, and looked at."""
    reader = alice.reader
    picture = QImage(64, 48, QImage.Format.Format_RGB32)
    picture.fill(0x2F5B56)
    path, table = alice.desk.place / "harbour.png", alice.desk.place / "tides.txt"
    assert picture.save(str(path))
    table.write_text("high water at noon", encoding="utf-8")
    await attach(alice, path, table)
    await alice.press("Return")
    await reader.until_shown(bob.program, f"Alice, File tides.txt, 18 bytes, {TIME}", "list item")
    await reader.until_shown(bob.program, f"Alice, Photo, {TIME}", "list item")
    photo = f"You, Photo, {TIME}, Held by 1 of 1"
    await reader.until_shown(alice.program, photo, "list item")
    await alice.press_until("F6", ".+", "list item")
    await alice.press_until("F6", ".+", "list item")
    await alice.press_until("Up", photo, "list item")  # From the newest, which is the other file.
    await alice.press("Return")
    await reader.until_shown(alice.program, f"Your photo, .*{TIME}", "dialog")
    await reader.until_shown(alice.program, f"Your photo, .*{TIME}", "graphic")
    await alice.listen_through()
    await alice.press("Escape")
    await reader.until_focus(photo, "list item")


async def a_request(alice: Person, bob: Person) -> None:
    """Bob asks by Alice's contact link, and she accepts: both hear where that stands."""
    reader = alice.reader
    await alice.press("ctrl+p")
    await alice.press_until("shift+Tab", "Their link or code", "radio button")
    await alice.press("Right")
    link = await reader.until_shown(alice.program, "Your contact link", "text")
    await alice.listen_through()
    await alice.press("Escape")
    await bob.desk.causerie(bob.desk.place / "Bob", link.text)
    await bob.reader.until_shown(bob.program, "Add a person", "dialog")
    await bob.desk.give_keys_to(bob.process)
    await bob.listen_through()
    await bob.press_until("Tab", "Ask Alice", "push button")
    await bob.press("Return")
    await reader.until_shown(bob.program, "Waiting for Alice to accept\\. .*", "panel")
    await bob.listen_through()
    await reader.until_shown(alice.program, "Bob, new request, Wants to talk to you.*", "list item")
    await alice.desk.give_keys_to(alice.process)
    await alice.press_until("F6", "Bob, new request, Wants to talk to you.*", "list item")
    await alice.press("Return")
    await alice.press_until("Tab", "Bob wants to talk to you\\. .*", "panel")
    await alice.listen_through()
    await alice.press_until("Tab", "Accept", "push button")
    await alice.press("Return")
    await reader.until_focus("Message to Bob", "text")
    await reader.until_shown(bob.program, "Message to Alice", "text")


async def another_language(alice: Person) -> None:
    """The window is made anew, and is read in French at once."""
    reader = alice.reader
    await alice.press("ctrl+comma")
    await reader.until_focus("Advanced", "list item")  # Where one was.
    await alice.press_until("Up", "Appearance", "list item")
    await alice.press("Return")
    await reader.until_focus("As the desktop", "combo box")  # The colours; below is the language.
    await alice.press_until("Tab", "As the desktop", "combo box")
    await alice.press("alt+Down", "End", "Return")
    await reader.until_shown(alice.program, "Apparence", "list item")
    await alice.desk.give_keys_to(alice.process)
    await alice.listen_through()
    await alice.press("Escape")
    await reader.until_shown(alice.program, "Rechercher.*", "text")
    await alice.listen_through()


async def about_a_message(alice: Person) -> None:
    """Reactions, one of the quick ones and one that is searched for, and what is known of it."""
    reader, message = alice.reader, f"Bob, low water at ten, {TIME}"
    await alice.press("Menu")
    await alice.press_until("Down", "👍")
    await alice.press_until("Right", "❤️")
    await alice.press("Return")
    liked = f"{message}, ❤️ from you"
    await reader.until_shown(alice.program, f"{liked}.*", "list item")
    await alice.press("plus")
    await reader.until_focus("Search emoji by name", "text")
    await alice.desk.type("anchor")
    await alice.press("Return")
    both = f"{liked}, ⚓ from you.*"
    await reader.until_shown(alice.program, both, "list item")
    await reader.until_focus(both, "list item")
    await alice.press("i")
    await reader.until_shown(alice.program, "Message info", "dialog")
    await alice.listen_through()
    await alice.press("Escape")
    await reader.until_focus(both, "list item")


async def deliveries(alice: Person) -> None:
    """What testers look at: a message's life, who holds what, as graph and as table, the peers."""
    reader = alice.reader
    await alice.press("ctrl+i")
    await reader.until_shown(alice.program, "Delivery of a message", "panel")
    await reader.until_shown(alice.program, "message_id: .*", "label")
    await alice.listen_through()
    await alice.press("Escape")
    await alice.press_until("shift+Tab", "Chat", "radio button")
    await alice.press("Right")
    await reader.until_shown(alice.program, "Filter fill: .*", "chart")
    await alice.listen_through()
    await alice.press_until("Tab", "Show as table", "check box")
    await alice.press("space")
    await alice.press_until("Tab", "Causal order as a table", "table")
    await reader.until_shown(alice.program, "State: here", "cell")
    await reader.until_shown(alice.program, "Held by: Held by 1 of 1", "cell")
    await alice.listen_through()
    await alice.press("ctrl+shift+n")
    await reader.until_focus("Connected peers", "table")
    await reader.until_shown(alice.program, "in the mesh", "cell")
    await alice.listen_through()
    await alice.press("Escape")
    await alice.press_until("shift+Tab", "Delivery", "radio button")
    await alice.press("Left")
    await reader.until_shown(alice.program, COMPOSER, "text")


async def pin_and_archive(alice: Person) -> None:
    reader = alice.reader
    await alice.press_until("F6", "Tide Gauge, .*", "list item")
    await alice.press("Menu")
    await alice.press_until("Down", "Pin to the top", "menu item")
    await alice.press("Return")
    await reader.until_shown(alice.program, "Tide Gauge, .*pinned.*", "list item")
    await alice.press("Menu")
    await alice.press_until("Down", "Archive", "menu item")
    await alice.press("Return")
    await reader.until_shown(alice.program, "Archived.*", "push button")
    await alice.listen_through()


async def settings(alice: Person) -> None:
    """Each section is walked to, read, and entered."""
    reader = alice.reader
    await alice.press("ctrl+comma")
    await reader.until_focus("Profile", "list item")
    await alice.listen_through()
    await alice.press_until("Down", "Appearance", "list item")
    await alice.listen_through()
    await alice.press("Return")
    await reader.until_focus("As the desktop", "combo box")  # Its label says of what.
    await alice.press_until("shift+Tab", "Appearance", "list item")
    await alice.press_until("Down", "Advanced", "list item")
    await reader.until_shown(alice.program, "Start with these numbers", "push button")
    await alice.listen_through()
    await alice.press("Escape")
    await reader.until_shown(alice.program, "Conversations", "list")


@pytest.mark.slow
async def test_an_evening_by_keyboard_and_screen_reader(
    at: Desk, server: NotificationServer
) -> None:
    async with screen_reader(at.bus) as reader:
        alice, bob = await two_in_a_group(at, reader)
        await talk(alice, bob)
        await search(alice)
        await panels(alice)
        await click_on_notification(alice, bob, server)
        await about_a_message(alice)
        await a_picture(alice, bob)
        await deliveries(alice)
        await pin_and_archive(alice)
        await a_request(alice, bob)
        await settings(alice)
        await another_language(alice)
