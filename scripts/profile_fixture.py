"""Make a profile of the present version, to be kept for the upgrade tests of all later ones.

``python -m scripts.profile_fixture`` plays a short scene with real engines (encrypted stores on
disk, a network in memory) and packs Ines's profile and a backup of it, as they lie on disk, into
``tests/profiles/schema-N.tar.xz``.  One that is there stays: a later version must read what an
earlier one wrote, and not what it would write itself.  tests/chat_app/test_kept_profiles.py says
what is in them.
"""

import asyncio
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import SystemRandom

from chat_app.backing_up import make_backup
from chat_app.compose import open_store
from chat_app.paths import profile_paths
from chat_app.settings_file import change_setting, write_default
from engine.core.admin_log.acts import Role
from engine.core.contacts import ContactState
from engine.core.entropy import Entropy
from engine.core.ids import ChannelId, ContentTopic, ConversationId, DeliveryState, UnixMs
from engine.core.records import ChannelName, OpenPace
from engine.events import EngineEvent, GapUpdated, MessageKind, MessageView
from engine.governance_views import EarlierMessages
from engine.network.memory import MemoryNetwork
from engine.persistence.profile_directory import (
    ProfileDirectory,
    open_profile_directory,
    write_private_file,
)
from engine.persistence.schema import SCHEMA_VERSION
from engine.runtime.engine import Engine, EngineDependencies
from engine.runtime.files.disk import FilesSettings
from scripts.painted_pictures import lighthouse

KEPT = Path(__file__).resolve().parent.parent / "tests" / "profiles"
MADE_MS = 1_795_780_800_000
"""27 November 2026, noon: the scene's clock starts there."""
PASSPHRASE = "a lamp in the window"  # noqa: S105 -- of a profile that everybody may open
LARGE = bytes(range(256)) * 392
"""A little more than fits into a message."""


class SceneClock:
    """Everybody's clock; it starts at the same moment, whenever the scene is played."""

    def __init__(self, starts_ms: int = MADE_MS) -> None:
        self._starts_ms = starts_ms
        self._began_ns = time.monotonic_ns()

    def now_ms(self) -> UnixMs:
        return UnixMs(self._starts_ms + (time.monotonic_ns() - self._began_ns) // 1_000_000)


class Person:
    def __init__(self, name: str, place: Path, network: MemoryNetwork, clock: SceneClock) -> None:
        self.name = name
        self.directory = open_profile_directory(place / name)
        self.transport = network.attach(name)
        self.engine = Engine(
            EngineDependencies(
                open_store=partial(open_store, self.directory, force_key_file=True),
                make_transport=lambda _seed: self.transport,
                port_of=lambda _transport: None,
                entropy=Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random),
                now_ms=clock.now_ms,
                files=FilesSettings(
                    chunks=self.directory.files, opened=self.directory.opened_files
                ),
            )
        )

    async def enter(self) -> "Person":
        await self.engine.start()
        await self.engine.create_identity(self.name)
        return self

    async def rows(self, where: ConversationId) -> list[MessageView]:
        return list((await self.engine.timeline.latest_page(where)).messages)

    async def hears(self, where: ConversationId, text: str) -> MessageView:
        """The message with this text, once it is here."""
        found: list[MessageView] = []

        async def is_here() -> bool:
            found[:] = [row for row in await self.rows(where) if row.text == text]
            return bool(found)

        await until(is_here)
        return found[0]

    async def sees_join(self, where: ConversationId, name: str) -> None:
        async def has_joined() -> bool:
            rows = await self.rows(where)
            return (MessageKind.JOINED, name) in {(row.kind, row.sender_name) for row in rows}

        await until(has_joined)

    async def are_held(self, where: ConversationId) -> None:
        """Until everybody else has all that is ours."""

        async def all_of_them() -> bool:
            ours = [row.delivery for row in await self.rows(where) if row.delivery is not None]
            return all(
                each.state is DeliveryState.HELD and len(each.held_by) == each.of for each in ours
            )

        await until(all_of_them)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - a condition over several engines
            await asyncio.sleep(0.05)


async def group_scene(ines: Person, maya: Person, luc: Person) -> ConversationId:
    """Everything that a group's messages can be, held by everybody."""
    group = await ines.engine.groups.create("Tide Gauge")
    link = await ines.engine.groups.make_invite_link(group)
    for other in (maya, luc):
        await other.engine.groups.join(link)
        await ines.sees_join(group, other.name)
    timeline = ines.engine.timeline
    await timeline.send_text(group, "The gauge is up.")
    asked = await maya.hears(group, "The gauge is up.")
    answer = "Does it *talk*? See https://example.org/tide"
    await maya.engine.timeline.send_text(group, answer, reply_to=asked.message_id)
    answered = await ines.hears(group, answer)
    await timeline.react(group, answered.message_id, "🎉", active=True)
    await maya.engine.timeline.react(group, asked.message_id, "👏", active=True)
    typo = await timeline.send_text(group, "It tals every 30 seconds.")
    await timeline.edit(group, typo, "It talks every 30 seconds.")
    oops = await timeline.send_text(group, "Wrong group, sorry.")
    await timeline.retract(group, oops)
    await timeline.send_file(
        group, name="first-hour.csv", media_type="text/csv", data=b"13:54;2.41\n", caption="Table"
    )
    await ines.are_held(group)
    return group


async def governed_scene(ines: Person, maya: Person, luc: Person) -> str:
    """Ines's group that people are let into: Maya is in, and Luc waits.  Luc's: Ines is invited.

    Returns the link of Luc's.
    """
    governing = ines.engine.governing
    group = await governing.create("Night Watch")
    await governing.set_topic(group, "Who is awake")

    async def invite(by: Person, where: ConversationId, *, needs_approval: bool) -> str:
        return await by.engine.governing.invite(
            where, uses=2, days=7, needs_approval=needs_approval, earlier=EarlierMessages.ALL
        )

    async def is_in() -> bool:
        view = maya.engine.governing.view(group)
        return view is not None and view.own_role is Role.ADMIN

    await maya.engine.groups.join(await invite(ines, group, needs_approval=False))
    maya_id = maya.engine.identity()
    if maya_id is None:
        raise RuntimeError("Maya has no identity")

    async def was_added() -> bool:
        view = governing.view(group)
        return view is not None and len(view.roles) == 2  # noqa: PLR2004 - Ines and Maya

    await until(was_added)
    await governing.promote(group, maya_id.participant_id)
    await until(is_in)
    await maya.engine.timeline.send_text(group, "I take the first hours.")
    await ines.hears(group, "I take the first hours.")
    await luc.engine.groups.join(await invite(ines, group, needs_approval=True))

    async def luc_waits() -> bool:
        view = governing.view(group)
        return view is not None and len(view.asking) == 1

    await until(luc_waits)
    return await invite(luc, await luc.engine.governing.create("Boathouse"), needs_approval=False)


async def gap_scene(ines: Person, maya: Person, luc: Person, group: ConversationId) -> None:
    """Ines has what Maya says, and lacks what Luc said before; then she is alone."""
    ines.transport.set_online(online=False)
    await luc.engine.timeline.send_text(group, "Never seen by Ines.")
    await maya.hears(group, "Never seen by Ines.")
    luc.transport.set_online(online=False)
    ines.transport.set_online(online=True)
    gap = asyncio.Event()

    def hear(event: EngineEvent) -> None:
        if isinstance(event, GapUpdated) and event.gap is not None and event.gap.missing:
            maya.transport.set_online(online=False)  # before she repairs it
            gap.set()

    unsubscribe = ines.engine.subscribe(hear)
    await maya.engine.timeline.send_text(group, "Waits for what Luc said.")
    async with asyncio.timeout(60):
        await gap.wait()
    unsubscribe()
    await ines.engine.timeline.send_text(group, "Written while nobody was there.")


async def pair_scene(ines: Person, maya: Person) -> ConversationId:
    link = await ines.engine.people.make_contact_link()
    pair = await maya.engine.people.add(link)

    async def state(person: Person, wanted: ContactState) -> bool:
        views = await person.engine.conversations()
        contacts = [view.contact for view in views if view.conversation_id == pair]
        return any(contact is not None and contact.state is wanted for contact in contacts)

    await until(partial(state, ines, ContactState.ASKING))
    await ines.engine.people.accept(pair)
    await until(partial(state, maya, ContactState.ACCEPTED))
    await maya.engine.timeline.send_text(pair, "Tea on Saturday?")
    asked = await ines.hears(pair, "Tea on Saturday?")
    await ines.engine.timeline.react(pair, asked.message_id, "👍", active=True)
    await ines.engine.timeline.send_text(pair, "Gladly.", reply_to=asked.message_id)
    await maya.hears(pair, "Gladly.")
    await ines.are_held(pair)
    await ines.engine.people.rename(pair, "Maya from the pier")
    identity = maya.engine.identity()
    if identity is None:
        raise RuntimeError("Maya has no identity")
    await ines.engine.people.set_verified(identity.participant_id, verified=True)
    return pair


async def channel_scene(ines: Person, luc: Person) -> None:
    channels = ines.engine.open_channels
    plain = ChannelName(
        channel_id=ChannelId("general"),
        content_topic=ContentTopic("/my-app/1/room/proto"),
        cluster_id=channels.cluster_id(),
    )
    for name, label in ((plain, "Everybody"), (channels.new_name(), "Boat crew")):
        joined = [
            await person.engine.open_channels.join(
                name, label=label, nick=person.name, pace=OpenPace.CAUSERIE
            )
            for person in (ines, luc)
        ]
        await ines.engine.timeline.send_text(joined[0], f"Hello, {label}.")
        await luc.hears(joined[1], f"Hello, {label}.")
        await luc.engine.timeline.send_text(joined[1], "Hello, Ines.")
        await ines.hears(joined[0], "Hello, Ines.")


async def finishing_scene(
    ines: Person, group: ConversationId, pair: ConversationId, asked: str
) -> None:
    """What belongs to the profile and not to a message.

    ``asked``: the link of a group that nobody lets Ines into, since Luc is away.
    """
    engine = ines.engine
    large = ines.directory.path.parent / "tide-tables.bin"
    large.write_bytes(LARGE)
    await engine.files.send(
        pair, str(large), name=large.name, media_type="application/octet-stream"
    )
    large.unlink()
    await engine.timeline.save_draft(group, "And the ladder, if")
    await engine.set_muted(pair, muted=True)
    rows = await ines.rows(group)
    await engine.timeline.mark_read(group, rows[0].position)
    await engine.groups.join(asked)
    await engine.set_profile(name="Ines", picture=lighthouse("#0b6b66", "#bfe3dd"))
    await engine.history.add_store(
        "/ip4/192.0.2.12/tcp/60000/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ"
    )


async def play(place: Path) -> ProfileDirectory:
    network, clock = MemoryNetwork(), SceneClock()
    people = [await Person(name, place, network, clock).enter() for name in ("Ines", "Maya", "Luc")]
    ines, maya, luc = people
    group = await group_scene(ines, maya, luc)
    pair = await pair_scene(ines, maya)
    await channel_scene(ines, luc)
    asked = await governed_scene(ines, maya, luc)
    await gap_scene(ines, maya, luc, group)
    await finishing_scene(ines, group, pair, asked)
    for person in people:
        await person.engine.stop()
    return ines.directory


def pack(place: Path, target: Path) -> None:
    """The profile and its backup; owners and modes are those of any user."""

    def anybody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = MADE_MS // 1000
        return entry

    with tarfile.open(target, "w:xz") as archive:
        for name in ("Ines", "Ines.backup"):
            archive.add(place / name, name, filter=anybody)


def main() -> int:
    target = KEPT / f"schema-{SCHEMA_VERSION}.tar.xz"
    if target.exists():
        print(f"{target} is there already, and stays: it is what later versions must read")
        return 1
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="causerie-kept-") as temporary:
        place = Path(temporary)
        directory = asyncio.run(play(place))
        settings = directory.path / "settings.toml"
        write_default(settings)
        change_setting(settings, "appearance", "text_size", 110)
        write_private_file(directory.path / "window.json", '{"skin_tone": "2"}\n')
        os.environ["CAUSERIE_KEY_FILE"] = "1"
        paths = profile_paths(directory=directory.path)
        make_backup(paths, place / "Ines.backup", PASSPHRASE)
        pack(place, target)
    print(f"{target}: {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
