"""``causerie demo``: people in one process, each with a window, talk over a network that loses.

Everything is real (profiles on disk, encrypted; nodes on loopback sockets; seals and SDS), except
for the people, who follow a script, and the losses, which are put in.  So a newcomer sees ticks, a
gap and its repair within a minute, two people who talk alone beside the group, and may join in by
typing.  The profiles are thrown away.
"""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QApplication

from chat_app.compose import Overrides, build_engine
from chat_app.interrupts import Interrupts, closed_or_interrupted
from chat_app.qt_loop import run_on_qt
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.contacts import ContactState
from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ConversationId
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    ConversationView,
    EngineEvent,
)
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine
from ui.app import build_window
from ui.settings import UiSettings
from ui.window.main_window import MainWindow

DEFAULT_PEOPLE = 2
MOST_WINDOWS = 6
NAMES = ("Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas")
DELAY_MS = (50, 400)
PAUSE_S = (1.0, 2.5)
GROUP = "Tide Gauge"
FRAME_EDGE, FRAME_TITLE = 2, 36
"""Room for what the desktop draws around a window, which nobody knows before it is there."""
LINES = (
    "The sensor is on the pier. Bracket fits.",
    "Lovely! Does it talk?",
    "It talks! A reading every 30 seconds.",
    "I'll put the level on the club page tonight.",
    "Can somebody bring the spare battery on Saturday?",
    "Yes, it's charged.",
    "Low water is 10:52, so we have an hour before it's tight.",
    "And the ladder? Tomas lent me his.",
    "Then we need the long bolts, M8, stainless.",
    "Have them. Also tape, and tea.",
    "Tea is the important part.",
    "Nine sharp at the slip, then.",
    "The forecast says light wind from the west.",
    "Good for the ladder, bad for sailing home.",
    "We can row.",
    "You can row. I'll hold the tea.",
)
LINES_ALONE = (
    "Just the two of us: shall we bring a cake?",
    "Yes! Lemon. Say nothing in the group.",
    "Not a word.",
)


class Person(Struct, frozen=True):
    name: str
    engine: Engine
    window: MainWindow


def show_demo(*, participants: int | None, loss: float, seed: int) -> int:
    """Run until the last window is closed.  Raises TransportError without a display."""
    count = min(participants or DEFAULT_PEOPLE, MOST_WINDOWS)
    faults = FaultSpec(loss=loss, delay_ms=DELAY_MS, seed=seed)

    async def main() -> int:
        with tempfile.TemporaryDirectory(prefix="causerie-demo-") as place:
            people = [await _person(Path(place), name, faults) for name in NAMES[:count]]
            with Interrupts() as interrupts:
                try:
                    await _talk_until_closed(people, SeededRandom(seed, "demo"), interrupts)
                finally:
                    for person in people:
                        await person.engine.stop()
        return interrupts.status

    return run_on_qt(main)


async def _person(place: Path, name: str, faults: FaultSpec) -> Person:
    directory = open_profile_directory(place / name)
    settings = Settings(
        network=NetworkSettings(listen_host="127.0.0.1", discovery=False),
        storage=StorageSettings(key="file"),
    )
    engine = build_engine(directory, settings, Overrides(port=0, faults=faults))
    await engine.start()
    await engine.create_identity(name)
    return Person(name, engine, build_window(engine, UiSettings()))


async def _talk_until_closed(
    people: Sequence[Person], random: SeededRandom, interrupts: Interrupts
) -> None:
    first, *others = people
    group = await first.engine.groups.create(GROUP)
    link = await first.engine.groups.make_invite_link(group)
    for person in others:
        await person.engine.groups.join(link)
    await _show(people, group)
    open_windows = {person.name for person in people}
    all_closed = asyncio.Event()

    def one_closed(name: str) -> None:
        open_windows.discard(name)
        if not open_windows:
            all_closed.set()

    for person in people:
        person.window.closed.connect(lambda name=person.name: one_closed(name))
    talks = [asyncio.create_task(_talk(people, group, random))]
    if others:
        talks.append(asyncio.create_task(_talk_alone(others[0].engine, first.engine)))
    await closed_or_interrupted(all_closed, interrupts)
    for talk in talks:
        talk.cancel()
    await asyncio.gather(*talks, return_exceptions=True)
    for person in people:
        person.window.close_at_once()
        await person.window.shutdown()


async def _show(people: Sequence[Person], group: ConversationId) -> None:
    for person, place in zip(people, _places(len(people)), strict=True):
        person.window.move(place.topLeft())  # Where the frame goes, with whose window it is.
        person.window.resize(place.width() - 2 * FRAME_EDGE, place.height() - FRAME_TITLE)
        person.window.show()
        await person.window.start()
        person.window.open_conversation(group)
        person.window.setWindowTitle(f"{person.name}, demo — Causerie")


def _places(count: int) -> list[QRect]:
    """Side by side, in two rows from three windows on."""
    screen = QApplication.primaryScreen().availableGeometry()
    rows = 1 if count <= 2 else 2  # noqa: PLR2004 - two windows fit beside one another
    columns = -(-count // rows)
    width, height = screen.width() // columns, screen.height() // rows
    return [
        QRect(
            screen.x() + (i % columns) * width, screen.y() + (i // columns) * height, width, height
        )
        for i in range(count)
    ]


async def _talk_alone(asker: Engine, other: Engine) -> None:
    """One asks, the other accepts, and they say a few things to nobody else."""
    pair = await asker.people.add(await other.people.make_contact_link())
    await _until_contact(other, pair, ContactState.ASKING)
    await asyncio.sleep(PAUSE_S[1])
    await other.people.accept(pair)
    await _until_contact(asker, pair, ContactState.ACCEPTED)
    for number, line in enumerate(LINES_ALONE):
        await asyncio.sleep(PAUSE_S[1])
        await (other if number % 2 else asker).timeline.send_text(pair, line)


async def _until_contact(engine: Engine, pair: ConversationId, state: ContactState) -> None:
    reached = asyncio.Event()

    def look(view: ConversationView) -> None:
        contact = view.contact
        if view.conversation_id == pair and contact is not None and contact.state is state:
            reached.set()

    def hear(event: EngineEvent) -> None:
        if isinstance(event, ConversationAdded | ConversationChanged):
            look(event.conversation)

    unsubscribe: Callable[[], None] = engine.subscribe(hear)
    try:
        for view in await engine.conversations():
            look(view)
        await reached.wait()
    finally:
        unsubscribe()


async def _talk(people: Sequence[Person], group: ConversationId, random: SeededRandom) -> None:
    """Say the lines once, in turn but not too regularly; then leave the floor to the user."""
    for number, line in enumerate(LINES):
        await asyncio.sleep(PAUSE_S[0] + random() * (PAUSE_S[1] - PAUSE_S[0]))
        speaker = people[number % len(people)]
        await speaker.engine.timeline.send_text(group, line)
