"""The scene of the pictures: six people's real engines, groups and conversations.

The engines have encrypted stores on disk, sealed sessions, and a network in memory.  Their clock
can be set forward, so that a morning passes in a minute.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

from engine.api import Mention
from engine.core.contacts import ContactState
from engine.core.entropy import Entropy
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.network.memory import MemoryNetwork, MemoryTransport
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore
from scripts.painted_pictures import lighthouse, pier_photo

KEY = bytes(32)
READINGS = """\
13:54:30  level=2.41 m  batt=3.92 V  seq=118
13:55:00  level=2.40 m  batt=3.92 V  seq=119"""


class Clock:
    """Real time, moved to a morning and set forward by hand."""

    def __init__(self) -> None:
        start = datetime(2026, 11, 20, 13, 41, tzinfo=UTC)
        self._offset_ms = int(start.timestamp() * 1000) - time.time_ns() // 1_000_000

    def now_ms(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self._offset_ms)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms() / 1000, tz=UTC)

    def forward(self, minutes: float) -> None:
        self._offset_ms += int(minutes * 60_000)


class Cast:
    """The people of the scene."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = Clock()
        self.network = MemoryNetwork()
        self.engines: dict[str, Engine] = {}
        self._transports: dict[str, MemoryTransport] = {}

    def transport(self, name: str) -> MemoryTransport:
        """By which somebody takes part."""
        return self.network.attach(name)

    async def enter(self, name: str, *, is_new: bool = False) -> Engine:
        """``is_new``: they start the program for the first time, and have no name yet."""
        transport = self.transport(name)
        path = self.place / f"{name}.db"
        engine = Engine(
            EngineDependencies(
                open_store=lambda: OpenedStore(
                    store=SqliteProfileStore.open(path, KEY), key_storage="key file"
                ),
                make_transport=lambda _seed: transport,
                port_of=lambda _transport: None,
                entropy=Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random),
                now_ms=self.clock.now_ms,
                counted_ms=self.clock.now_ms,
            )
        )
        await engine.start()
        if not is_new:
            await engine.create_identity(name)
        self.engines[name] = engine
        self._transports[name] = transport
        return engine

    def online(self, name: str, *, online: bool) -> None:
        self._transports[name].set_online(online)

    async def group(self, name: str, founder: str, *others: str) -> ConversationId:
        made = await self.engines[founder].groups.create(name)
        link = await self.engines[founder].groups.make_invite_link(made)
        for other in others:
            await self.engines[other].groups.join(link)
        everybody = (founder, *others)
        await until(lambda: self._all_know(made, everybody))
        return made

    async def _all_know(self, group: ConversationId, names: tuple[str, ...]) -> bool:
        for name in names:
            views = await self.engines[name].conversations()
            view = next(v for v in views if v.conversation_id == group)
            if len(view.members) < len(names) or view.missing:
                return False
        return True

    async def befriend(self, asker: str, other: str) -> ConversationId:
        pair = await self.ask(asker, other)
        await self.engines[other].people.accept(pair)
        await until(lambda: self._stands(asker, pair, ContactState.ACCEPTED))
        return pair

    async def ask(self, asker: str, other: str) -> ConversationId:
        link = await self.engines[other].people.make_contact_link()
        pair = await self.engines[asker].people.add(link)
        await until(lambda: self._stands(other, pair, ContactState.ASKING))
        return pair

    async def _stands(self, name: str, pair: ConversationId, state: ContactState) -> bool:
        views = await self.engines[name].conversations()
        contacts = (view.contact for view in views if view.conversation_id == pair)
        return any(contact is not None and contact.state is state for contact in contacts)

    async def say(  # noqa: PLR0913 - what a message is made of
        self,
        name: str,
        group: ConversationId,
        text: str,
        *,
        after: float = 1,
        reply_to: MessageId | None = None,
        mentions: tuple[Mention, ...] = (),
    ) -> MessageId:
        self.clock.forward(after)
        said = await self.engines[name].timeline.send_text(
            group, text, reply_to=reply_to, mentions=mentions
        )
        await asyncio.sleep(0.15)
        return said

    async def send_file(  # noqa: PLR0913 - what a file is made of
        self,
        name: str,
        group: ConversationId,
        file_name: str,
        data: bytes,
        *,
        caption: str = "",
        media_type: str = "text/csv",
        size: tuple[int, int] = (0, 0),
    ) -> MessageId:
        self.clock.forward(1)
        sent = await self.engines[name].timeline.send_file(
            group,
            name=file_name,
            media_type=media_type,
            data=data,
            caption=caption,
            width=size[0],
            height=size[1],
        )
        await asyncio.sleep(0.15)
        return sent

    def id_of(self, name: str) -> ParticipantId:
        identity = self.engines[name].identity()
        if identity is None:
            raise RuntimeError(f"{name} has no identity")
        return identity.participant_id


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - a condition over several engines
            await asyncio.sleep(0.1)


async def play(cast: Cast) -> ConversationId:
    """The scene; afterwards Ines and Tomas alone are online, and both lack something."""
    for name in ("Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas"):
        await cast.enter(name)
    kitchen = await cast.group("Sunday Kitchen", "Ines", "Luc", "Maya")
    books = await cast.group("Book Circle", "Maya", "Ines", "Tomas")
    notes = await cast.group("Field Notes", "Priya", "Ines", "Jonas")
    tide = await cast.group("Tide Gauge", "Ines", "Maya", "Jonas", "Priya", "Luc", "Tomas")
    await cast.say("Luc", kitchen, "Who brings the big pot?")
    await cast.say("Ines", kitchen, "I can bring it, and the ladle.")
    await cast.say("Tomas", books, "Chapter nine broke me.", after=2)
    await cast.say("Maya", books, "Same time on Thursday?")
    await cast.engines["Ines"].set_muted(books, muted=True)
    await cast.say("Priya", notes, "Two kingfishers at the lower bridge!", after=2)
    await cast.engines["Ines"].timeline.save_draft(kitchen, "And napkins, if somebody")
    await people_scene(cast)
    await tide_scene(cast, tide)
    return tide


async def people_scene(cast: Cast) -> None:
    """Friends, somebody who asks, and somebody who was asked."""
    await cast.engines["Luc"].set_profile(name="Luc", picture=lighthouse("#3b6ea5", "#f2c9a0"))
    await cast.engines["Ines"].set_profile(name="Ines", picture=lighthouse("#0b6b66", "#bfe3dd"))
    maya = await cast.befriend("Maya", "Ines")
    await cast.send_file(
        "Maya",
        maya,
        "mark.jpg",
        pier_photo(),
        caption="The low water mark",
        media_type="image/jpeg",
        size=(560, 250),
    )
    await cast.enter("Nell")
    await cast.ask("Ines", "Nell")
    await cast.enter("Bob")
    cast.clock.forward(1)
    await cast.ask("Bob", "Ines")


async def luc_scene(cast: Cast) -> ConversationId:
    luc = await cast.befriend("Luc", "Ines")
    await cast.say("Luc", luc, "Are you at the slip on Saturday?", after=0)
    await cast.say("Ines", luc, "Yes, nine sharp. I'll bring the ladder.")
    await cast.say("Luc", luc, "Lovely. Mind that it is Tomas's.")
    await cast.say("Ines", luc, "I'll be careful. Tea afterwards?")
    await asyncio.sleep(1)
    cast.online("Luc", online=False)
    await cast.say("Ines", luc, "And could you print the tide table?")
    await asyncio.sleep(1)
    return luc


async def tide_scene(cast: Cast, tide: ConversationId) -> None:
    pier = await cast.say("Maya", tide, "New sensor is on the pier. Bracket fits, cable is *long*.")
    await cast.say("Luc", tide, "Does it talk?")
    await asyncio.sleep(1)
    for name, emoji in (("Ines", "🎉"), ("Jonas", "🎉"), ("Luc", "🎉"), ("Tomas", "👏")):
        await cast.engines[name].timeline.react(tide, pier, emoji, active=True)
    await cast.say("Jonas", tide, f"It talks! A reading every 30 seconds:\n```\n{READINGS}\n```")
    await cast.send_file(
        "Maya",
        tide,
        "pier.jpg",
        pier_photo(),
        caption="The bracket, at low water. https://example.org/tide-gauge",
        media_type="image/jpeg",
        size=(560, 250),
    )
    await cast.send_file("Jonas", tide, "first-hour.csv", READINGS.encode() * 120)
    await cast.say("Ines", tide, "Lovely. I'll put the level on the club page tonight.", after=2)
    await asyncio.sleep(4)
    for name in ("Ines", "Tomas"):
        cast.online(name, online=False)
    for text in ("Battery is at 3.92 V.", "Who has the spare?", "It might be in the shed."):
        await cast.say("Jonas", tide, text)
    await asyncio.sleep(3)
    for name in ("Maya", "Jonas", "Luc"):
        cast.online(name, online=False)
    cast.online("Ines", online=True)
    ines = Mention(participant_id=cast.id_of("Ines"), start=0, length=5)
    words = "@Ines can you bring the spare battery on Saturday? I can drive."
    await cast.say("Priya", tide, words, reply_to=pier, mentions=(ines,))
    cast.online("Priya", online=False)
    cast.online("Tomas", online=True)
    await asyncio.sleep(0.5)
    cast.clock.forward(2)
    await asyncio.sleep(1)
    await cast.say("Ines", tide, "Yes, it's charged. I'll pick you up at half past eight.", after=0)
    await cast.say("Ines", tide, "Low water is 10:52, so we have an hour before it's tight.")
