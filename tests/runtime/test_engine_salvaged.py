"""A damaged database is repaired: what it lost comes back from members, and nobody sees a fork."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.core.errors import StorageError
from engine.core.ids import ConversationId, Position, UnixMs
from engine.events import DatabaseDamaged, EngineEvent, MessageKind, NoticeRaised
from engine.network.memory import MemoryNetwork
from engine.persistence.database import open_readonly
from engine.persistence.database_files import DatabaseFiles
from engine.persistence.page_trees import page_owners
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.salvage import Salvaged, salvage
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.patience import PATIENCE_S
from tests.persistence.damage import PAGE_BYTES, ruin
from tests.runtime.conftest import KEY, Person
from tests.runtime.test_engine_restored import forks_told, shows
from ui.window.notices import notice_words

NOW = UnixMs(1_790_000_000_000)


class Damaged:
    """One person's profile, as the application keeps it."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.directory = ProfileDirectory(place)

    def person(self, name: str, network: MemoryNetwork) -> Person:
        made = Person(name, self.directory.path, network)
        made.database = self.directory.database
        return made

    def ruin(self, table: str) -> int:
        """One of its pages, while nobody has it open; returns the number."""
        database = self.directory.database
        every = range(1, DatabaseFiles(database).size() // PAGE_BYTES + 1)
        connection = open_readonly(database, KEY)
        owners = page_owners(connection, database, KEY, every)
        connection.close()
        pages = [number for number, owner in owners.items() if owner == table]
        ruin(database, pages[len(pages) // 2])
        return pages[len(pages) // 2]

    def page(self, number: int) -> bytes:
        return DatabaseFiles(self.directory.database).page(number)

    def salvage(self) -> Salvaged:
        return salvage(self.directory, KEY, day="2026-11-26", now_ms=NOW)


async def missing(one: Person, group: ConversationId) -> bool:
    with one.disk() as store:
        return bool(store.channel_state(group).missing)


def log_of(store: SqliteProfileStore, group: ConversationId) -> list[tuple[Position, bytes | None]]:
    """Every message with its signed bytes."""
    return [
        (entry.position, store.raw(group, entry.position.message_id))
        for entry in store.channel_state(group).log
    ]


def tells_something_new(one: Person) -> Callable[[EngineEvent], bool]:
    known = {id(event) for event in one.told}
    return lambda event: id(event) not in known


async def texts(one: Person, group: ConversationId) -> list[str]:
    page = await one.engine.timeline.latest_page(group)
    found = [*page.messages]
    while page.older_count:
        page = await one.engine.timeline.page_before(group, page.messages[0].position)
        found = [*page.messages, *found]
    return [message.text for message in found if message.kind is MessageKind.TEXT]


async def test_what_the_damage_took_comes_back_from_members(tmp_path: Path) -> None:
    network, place = MemoryNetwork(), Damaged(tmp_path / "bob")
    alice = await Person("Alice", tmp_path, network).start()
    bob = await place.person("Bob", network).start()
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    said = [f"number {n} " * 20 for n in range(120)]
    async with asyncio.timeout(PATIENCE_S):
        for n, text in enumerate(said):
            await (bob if n % 3 == 0 else alice).engine.timeline.send_text(group, text)
            await (alice if n % 3 == 0 else bob).until(shows(text))
    before = await texts(alice, group)
    await bob.engine.stop()

    for table in ("message", "log_entry", "log_raw", "raw_block"):
        place.ruin(table)
    made = place.salvage()
    assert made.found.unreadable > 0
    assert made.found.asked_for > 0
    again = await place.person("Bob", network).start()
    assert len(await texts(again, group)) < len(said)
    async with asyncio.timeout(PATIENCE_S):
        await again.engine.timeline.send_text(group, "back again")
        await alice.until(shows("back again"))
        while len(await texts(again, group)) < len(said) + 1 or await missing(again, group):
            new = tells_something_new(again)
            await again.engine.timeline.fetch_missing(group)
            await again.until_in_time(new, group, alice)
    assert await texts(again, group) == [*before, "back again"]
    assert forks_told(alice, again) == []
    assert await alice.engine.timeline.forks(group) == ()
    with alice.disk() as hers, again.disk() as his:
        assert log_of(his, group) == log_of(hers, group)
    for one in (alice, again):
        await one.engine.stop()


async def test_a_group_that_lost_its_key_can_be_read_left_and_joined_anew(tmp_path: Path) -> None:
    network, place = MemoryNetwork(), Damaged(tmp_path / "bob")
    alice = await Person("Alice", tmp_path, network).start()
    bob = await place.person("Bob", network).start()
    group = await alice.engine.groups.create("Tide")
    link = await alice.engine.groups.make_invite_link(group)
    await bob.engine.groups.join(link)
    async with asyncio.timeout(PATIENCE_S):
        await bob.engine.timeline.send_text(group, "before")
        await alice.until(shows("before"))
    await bob.engine.stop()
    place.ruin("epoch")
    made = place.salvage()
    assert made.found.keyless == 1
    assert "groups whose key is gone: 1" in made.report.read_text("ascii")
    again = await place.person("Bob", network).start()
    assert await texts(again, group) == ["before"]
    assert [view.key_is_lost for view in await again.engine.conversations()] == [True]
    async with asyncio.timeout(PATIENCE_S):
        await again.engine.groups.leave(group)
        await again.engine.groups.join(link)
        assert [view.key_is_lost for view in await again.engine.conversations()] == [False]
        await again.engine.timeline.send_text(group, "after")
        await alice.until(shows("after"))
    assert forks_told(alice, again) == []
    for one in (alice, again):
        await one.engine.stop()


async def test_damage_met_while_it_runs_is_told_and_nothing_is_written_over_it(
    tmp_path: Path,
) -> None:
    place = Damaged(tmp_path / "bob")
    bob = await place.person("Bob", MemoryNetwork()).start()
    group = await bob.engine.groups.create("Tide")
    for n in range(60):
        await bob.engine.timeline.send_text(group, f"number {n} " * 100)
    await bob.engine.stop()
    ruined = place.ruin("message")
    damaged = place.page(ruined)
    again = await place.person("Bob", MemoryNetwork()).start()
    with suppress(StorageError):
        await texts(again, group)
    told = await again.until(lambda event: isinstance(event, NoticeRaised))
    assert isinstance(told, NoticeRaised)
    assert told.content == DatabaseDamaged()
    assert "Nothing is written over it" in notice_words(told.content)
    await again.engine.stop()
    assert place.page(ruined) == damaged
