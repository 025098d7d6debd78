"""Files, albums, a missing quote, deleting here and what others are told, as they are read.

Two real programs on a real desktop, as in ``test_keyboard_session``.  A file is slow because the
disk of its sender is: a part of it is a pipe for a while, which gives its bytes when the test does.
"""

import asyncio
import os
import random
from contextlib import closing, suppress
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage

from engine.api import MAX_FILE_BYTES
from engine.core.blobs.manifest import CHUNK_BYTES
from tests.screen_reader.desk import Desk
from tests.screen_reader.person import (
    COMPOSER,
    TIME,
    Person,
    attach,
    choose,
    row,
    say,
    turn_to,
    two_in_a_group,
    walk_to,
)
from tests.screen_reader.reader import screen_reader, until

SIZE = r"1\.3 MB"
HELD = "Held by 1 of 1"
_DATA = random.Random(19).randbytes(5 * CHUNK_BYTES + 7)
assert len(_DATA) > MAX_FILE_BYTES


class SlowPart:
    """A part of the only large file of a profile: it is not read to its end until it is given."""

    def __init__(self, person: Person) -> None:
        parts = (person.desk.place / "Alice" / "blobs").iterdir()
        self._descriptors = Path("/proc", str(person.process.pid), "fd")
        self._place = next(each for each in parts if each.stat().st_size > CHUNK_BYTES)
        self._kept = self._place.with_name(f"{self._place.name}.kept")
        self._place.rename(self._kept)
        os.mkfifo(self._place)
        # Whoever reads waits for us; as we read it too, nobody has to be there before.
        self._pipe: int | None = os.open(self._place, os.O_RDWR)

    async def is_wanted(self) -> bool:
        """Their program has begun to read it."""

        def look() -> bool:
            return any(each.readlink() == self._place for each in self._descriptors.iterdir())

        with suppress(FileNotFoundError):  # One was closed meanwhile.
            return await asyncio.to_thread(look)
        return False

    async def give(self) -> None:
        assert self._pipe is not None
        await asyncio.to_thread(os.write, self._pipe, self._kept.read_bytes())
        self._kept.replace(self._place)
        self.close()

    def close(self) -> None:
        """Who waits reads no more than there was."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


async def a_missing_quote(alice: Person, bob: Person) -> None:
    """It says that it was written before he came; Q says why it does not come."""
    await walk_to(alice, f"You, low water is at ten, {TIME}, .*")
    await alice.press("r")
    await alice.reader.until_focus(COMPOSER, "text")
    await alice.desk.type("that is now")
    await alice.press("Return")
    before = "answers a message from before you came, you were not given its key"
    answer = f"Alice, {before}, that is now"
    await walk_to(bob, f"{answer}, {TIME}")
    await bob.press("q")
    await bob.reader.until_announced("You were not given its key")


async def a_large_file(alice: Person, bob: Person) -> None:
    """On its way, paused, given up, fetched after all, kept, and opened only once it was said."""
    path, kept = alice.desk.place / "gauge.bin", bob.desk.place / "kept.bin"
    path.write_bytes(_DATA)
    await attach(alice, path)
    await alice.press("Return")
    file = f"File gauge.bin, {SIZE}"
    nowhere = "No service node keeps it: .*"
    await row(alice, f"You, {file}, {nowhere}, {TIME}, {HELD}")
    with closing(SlowPart(alice)) as part:
        offered = f"Alice, {file}, not fetched yet, {TIME}"
        await walk_to(bob, offered)
        await bob.press("Return")
        done = rf"(.+ of )?{SIZE}( · .+)?, \d+ % done"
        await bob.reader.until_focus(f"Alice, File gauge.bin, {done}, {TIME}", "list item")
        await until(part.is_wanted)
        await bob.press("Return")
        paused = rf"Alice, File gauge.bin, Paused · (.+ of )?{SIZE}, {TIME}"
        await bob.reader.until_focus(paused, "list item")
        await choose(bob, "Cancel(: throws away the .+ that came)?")
        cancelled = rf"Cancelled; .+ of {SIZE} were thrown away|{SIZE}, not fetched yet"
        await bob.reader.until_focus(f"Alice, File gauge.bin, ({cancelled}), {TIME}", "list item")
        await part.give()
    await choose(bob, "Fetch")
    here = f"Alice, {file}, {TIME}"
    await bob.reader.until_focus(here, "list item")
    await row(alice, f"You, {file}, held as a whole by 1 of 1, {TIME}, {HELD}")
    await choose(bob, "Save as…")
    await bob.reader.until_focus("File name:", "text")
    await bob.desk.give_keys_to(bob.process)
    await bob.press("ctrl+a")
    await bob.desk.type(str(kept))
    await bob.press("Return")
    await until(lambda: _is_whole(kept))
    await bob.desk.give_keys_to(bob.process)
    await bob.reader.until_focus(here, "list item")
    await bob.press("Return")
    await bob.reader.until_shown(bob.program, "Open this file\\?", "dialog")
    await bob.reader.until_focus("Cancel", "push button")
    await bob.listen_through()
    await bob.press("Escape")
    await bob.reader.until_focus(here, "list item")


async def _is_whole(path: Path) -> bool:
    def look() -> bool:
        return path.exists() and path.read_bytes() == _DATA

    return await asyncio.to_thread(look)


async def an_album(alice: Person, bob: Person) -> None:
    """Each picture is a row, which says which of them it is; arrows lead on in the viewer."""
    paths = [alice.desk.place / f"{name}.png" for name in ("pier", "boat", "tide")]
    for number, path in enumerate(paths):
        picture = QImage(64, 48, QImage.Format.Format_RGB32)
        picture.fill(QColor.fromHsv(100 * number, 120, 140))
        assert picture.save(str(path))
    await attach(alice, *paths)
    await alice.press("Return")
    for number in (1, 2, 3):
        await row(alice, f"You, Photo, {number} of 3 in an album, {TIME}, {HELD}")
    await walk_to(bob, f"Alice, Photo, 2 of 3 in an album, {TIME}")
    await bob.press("Return")
    await bob.reader.until_shown(bob.program, f"Photo from Alice, .*{TIME}", "graphic")
    await bob.listen_through()
    await bob.press("Right", "Escape")
    await bob.reader.until_focus(f"Alice, Photo, 2 of 3 in an album, {TIME}", "list item")
    await bob.press("Down")
    await bob.reader.until_focus(f"Alice, Photo, 3 of 3 in an album, {TIME}", "list item")


async def delete_here(alice: Person, bob: Person) -> None:
    """The keys go to the row beside it, and what quotes it says that it is not shown here."""
    theirs, ours = f"Alice, so long, {TIME}", f"You, answers Alice: so long, stay, {TIME}, {HELD}"
    await say(alice, "so long")
    await walk_to(bob, theirs)
    await bob.press("r")
    await bob.reader.until_focus(COMPOSER, "text")
    await bob.desk.type("stay")
    await bob.press("Return")
    await row(bob, ours)
    await walk_to(bob, theirs)
    await bob.press("Delete")
    await bob.reader.until_shown(bob.program, "Delete for you\\?", "dialog")
    await bob.reader.until_focus("Cancel", "push button")
    await bob.listen_through()
    await bob.press_until("Tab", "Delete", "push button")
    await bob.press("Return")
    left = f"You, answers Alice: Not shown on this device, stay, {TIME}, {HELD}"
    await bob.reader.until_focus(left, "list item")
    await bob.press("q")
    await bob.reader.until_announced("Not shown on this device")
    await walk_to(alice, f"You, so long, {TIME}, {HELD}")
    await alice.press("Delete")
    await alice.reader.until_shown(alice.program, "Delete this message\\?", "dialog")
    await alice.listen_through()
    await alice.press_until("Tab", "Delete here", "push button")
    await alice.press("Return")
    hidden = f"Bob, answers you: Not shown on this device, stay, {TIME}"
    await alice.reader.until_focus(hidden, "list item")


async def what_others_are_told(alice: Person, bob: Person) -> None:
    """That one is typing is read, until it is switched off in the settings."""
    await turn_to(alice)
    await alice.press_until("F6", COMPOSER, "text")
    await alice.desk.type("hm")
    await alice.reader.until_shown(bob.program, "Alice is typing…", "label")
    await alice.press("ctrl+comma")
    await alice.reader.until_focus("Profile", "list item")
    await alice.press_until("Down", "Privacy", "list item")
    await alice.press("Return")
    for words in ("Tell others when I am typing", "Tell people when I am online"):
        await alice.reader.until_focus(words, "check box")
        assert await _is_checked(alice)
        await alice.press("space")
        await until(lambda: _is_not_checked(alice))
        await alice.press("Tab")
    await alice.listen_through()
    await alice.press("Escape")


async def _is_checked(person: Person) -> bool:
    read = await person.reader.read_focus()
    return read is not None and "checked" in read.states


async def _is_not_checked(person: Person) -> bool:
    return not await _is_checked(person)


@pytest.mark.slow
async def test_what_comes_and_goes_by_keyboard_and_screen_reader(at: Desk) -> None:
    async with screen_reader(at.bus) as reader:
        alice, bob = await two_in_a_group(at, reader, said="low water is at ten", again=True)
        await a_missing_quote(alice, bob)
        await a_large_file(alice, bob)
        await an_album(alice, bob)
        await delete_here(alice, bob)
        await what_others_are_told(alice, bob)
