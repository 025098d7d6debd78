"""A profile restored from a backup goes on: no fork, and what was said since comes back."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, UnixMs
from engine.events import EngineEvent, ForksFound, MessageAdded
from engine.network.memory import MemoryNetwork
from engine.persistence.backup import BackupSource, new_secret, write_backup
from engine.persistence.profile_directory import ProfileDirectory, write_private_file
from engine.persistence.restore import RestorePlace, restore_backup
from tests.patience import PATIENCE_S
from tests.persistence.backup_examples import CHEAP, WORDS
from tests.runtime.conftest import KEY, Person
from tests.runtime.test_engine_contacts import state_is, texts
from tests.runtime.test_engine_governed import added, governed, id_of, invited, let_in, view_of


def shows(text: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, MessageAdded) and event.message.text == text


class Place:
    """The directory of one person's profile, as the application keeps it."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.directory = ProfileDirectory(path)
        write_private_file(self.directory.key_file, KEY.hex() + "\n")

    def person(self, name: str, network: MemoryNetwork) -> Person:
        made = Person(name, self.directory.path, network)
        made.database = self.directory.database
        return made

    def back_up(self, file: Path) -> None:
        nothing = self.directory.path / "nothing"
        source = BackupSource(
            directory=self.directory, key=KEY, settings=nothing, window=nothing, app_version="1"
        )
        write_backup(source, file, new_secret(WORDS, CHEAP), created_ms=UnixMs(1))

    def restore(self, file: Path) -> None:
        nothing = self.directory.path / "nothing"
        place = RestorePlace(directory=self.directory, settings=nothing, window=nothing)
        restore_backup(file, WORDS, place)


async def group_of(alice: Person, bob: Person) -> ConversationId:
    group = await alice.engine.groups.create("Tide")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await bob.engine.timeline.send_text(group, "before")
    await alice.until(shows("before"))
    return group


def forks_told(*people: Person) -> list[EngineEvent]:
    return [
        event
        for person in people
        for event in person.told
        if isinstance(event, ForksFound) and event.forks
    ]


async def test_what_was_written_after_the_backup_comes_back_and_nobody_sees_a_fork(
    tmp_path: Path,
) -> None:
    network, place, file = MemoryNetwork(), Place(tmp_path / "bob"), tmp_path / "file"
    alice = await Person("Alice", tmp_path, network).start()
    bob = await place.person("Bob", network).start()
    group = await group_of(alice, bob)
    await asyncio.to_thread(place.back_up, file)
    await bob.engine.timeline.send_text(group, "my own, later")
    await alice.until(shows("my own, later"))
    await alice.engine.timeline.send_text(group, "hers, later")
    await bob.until(shows("hers, later"))
    await bob.engine.stop()

    later = Place(tmp_path / "later")
    later.restore(file)
    again = await later.person("Bob", network).start()
    async with asyncio.timeout(PATIENCE_S):
        await again.engine.timeline.send_text(group, "back again")
        await alice.until(shows("back again"))
        await alice.engine.timeline.send_text(group, "welcome")
        await again.until(shows("welcome"))
        await again.engine.timeline.fetch_missing(group)
        own = await again.until(shows("my own, later"))
        await again.until(shows("hers, later"))
        assert isinstance(own, MessageAdded)
        assert own.message.is_own
        await again.engine.timeline.send_text(group, "and on")
        await alice.until(shows("and on"))
    assert forks_told(alice, again) == []
    assert await alice.engine.timeline.forks(group) == ()
    for one in (alice, again):
        await one.engine.stop()


async def test_two_devices_restored_from_one_file_harm_nobody(tmp_path: Path) -> None:
    network, place, file = MemoryNetwork(), Place(tmp_path / "bob"), tmp_path / "file"
    alice = await Person("Alice", tmp_path, network).start()
    bob = await place.person("Bob", network).start()
    group = await group_of(alice, bob)
    await bob.engine.stop()
    place.back_up(file)
    devices: list[Person] = []
    for name in ("desk", "lap"):
        there = Place(tmp_path / name)
        there.restore(file)
        devices.append(await there.person(f"Bob {name}", network).start())
    desk, lap = devices
    async with asyncio.timeout(PATIENCE_S):
        for sender, other, text in ((desk, lap, "from the desk"), (lap, desk, "from the lap")):
            await sender.engine.timeline.send_text(group, text)
            await alice.until(shows(text))
            seen = await other.until(shows(text))
            assert isinstance(seen, MessageAdded)
            assert seen.message.is_own
        for each in devices:
            await alice.engine.timeline.send_text(group, f"to {each.name}")
            await each.until(shows(f"to {each.name}"))
    assert forks_told(alice, *devices) == []
    for one in (alice, *devices):
        await one.engine.stop()


async def test_two_people_go_on_talking(tmp_path: Path) -> None:
    """What was written to one person after the backup is sealed for them: it does not come back."""
    network, place, file = MemoryNetwork(), Place(tmp_path / "bob"), tmp_path / "file"
    alice = await Person("Alice", tmp_path, network).start()
    bob = await place.person("Bob", network).start()
    async with asyncio.timeout(PATIENCE_S):
        pair = await alice.engine.people.add(await bob.engine.people.make_contact_link())
        await bob.until(state_is(ContactState.ASKING))
        await bob.engine.people.accept(pair)
        await alice.until(state_is(ContactState.ACCEPTED))
        await asyncio.to_thread(place.back_up, file)
        await bob.engine.timeline.send_text(pair, "own, later")
        await alice.until(shows("own, later"))
        await bob.engine.stop()
        await alice.engine.timeline.send_text(pair, "while you were away")
        later = Place(tmp_path / "later")
        later.restore(file)
        again = await later.person("Bob", network).start()
        await again.until(shows("while you were away"))
        await again.engine.timeline.send_text(pair, "back again")
        await alice.until(shows("back again"))
    assert await texts(alice, pair) == ["own, later", "while you were away", "back again"]
    assert await texts(again, pair) == ["while you were away", "back again"]
    for one in (alice, again):
        await one.engine.stop()


async def test_an_inviter_restored_from_before_the_last_place_was_taken(tmp_path: Path) -> None:
    """Two were let in by one place, and all agree on who is in: the first by the log's order."""
    network, place, file = MemoryNetwork(), Place(tmp_path / "olga"), tmp_path / "file"
    olga = await place.person("Olga", network).start()
    anna, ben, cleo = [Person(name, tmp_path, network) for name in ("Anna", "Ben", "Cleo")]
    for one in (anna, ben, cleo):
        await one.start()
    group = await olga.engine.governing.create("Walks")
    await let_in(ben, olga, group)
    link = await invited(olga, group)
    await olga.engine.stop()
    place.back_up(file)
    await olga.restart()
    await olga.engine.governing.set_topic(group, "so that this comes later than what is restored")
    await anna.engine.groups.join(link)
    await anna.until(added(group))
    await olga.engine.timeline.send_text(group, "with Anna")
    await ben.until(shows("with Anna"))
    await olga.engine.stop()

    for one in (anna, ben):
        one.transport.set_online(False)
    later = Place(tmp_path / "later")
    later.restore(file)
    again = await later.person("Olga", network).start()
    await again.engine.loaded()
    await cleo.engine.groups.join(link)
    await cleo.until(added(group))
    people = (again, anna, ben, cleo)
    inside = {id_of(one) for one in (again, ben, cleo)}
    for one in (anna, ben):
        one.told.clear()
        one.transport.set_online(True)
    await again.engine.timeline.send_text(group, "back again")
    for one in (anna, ben):
        others = [each for each in people if each is not one]
        agrees = governed(lambda view: view.roles.keys() == inside)
        await one.until_in_time(agrees, group, *others)
    await ben.engine.timeline.send_text(group, "among us")
    for one in (again, cleo):
        await one.until_in_time(shows("among us"), group, *people)
        assert view_of(one, group).roles.keys() == inside
    assert not any(shows("among us")(event) for event in anna.told)
    assert forks_told(*people) == []
    for one in people:
        await one.engine.stop()
