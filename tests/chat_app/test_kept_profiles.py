"""Profiles as released versions left them on disk: each is opened, read whole, and goes on.

They were made by scripts/profile_fixture.py of their version and are never made anew.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chat_app.settings_reading import load_settings
from engine.core.admin_log.acts import Role
from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, DeliveryState
from engine.events import ConversationView, MessageKind, MessageView
from engine.network.memory import MemoryNetwork
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.restore import RestorePlace, restore_backup
from engine.persistence.schema import SCHEMA_VERSION
from scripts.profile_fixture import KEPT, LARGE, MADE_MS, PASSPHRASE, Person, SceneClock
from tests.unpacking import unpack

PROFILES = sorted(KEPT.glob("schema-*.tar.xz"))

BEGINNING = [
    ("Ines", "Tide Gauge", "created"),
    ("Maya", "Maya", "joined"),
    ("Luc", "Luc", "joined"),
]
BY_ONE_CLOCK = 17
"""The schema from which on all have one clock.  Before, who came last seemed to join first."""
GROUP = [
    ("Ines", "The gauge is up.", "text", "👏1"),
    ("Maya", "Does it *talk*? See https://example.org/tide", "text", "> The gauge is up.", "🎉1"),
    ("Ines", "It talks every 30 seconds.", "text", "edited"),
    ("Ines", "", "text", "retracted"),
    ("Ines", "Table", "file", "first-hour.csv 11 inline"),
    ("Ines", "Written while nobody was there.", "text", "not sent"),
]
MAYA = "Maya from the pier"
GOVERNED = "Night Watch"
FIRST_GOVERNED = 17
"""The schema from which on there is one."""
PAIR = [
    (MAYA, "Maya", "asked"),
    ("Ines", "Ines", "accepted"),
    (MAYA, "Tea on Saturday?", "text", "👍1"),
    ("Ines", "Gladly.", "text", "> Tea on Saturday?"),
    ("Ines", "", "file", f"tide-tables.bin {len(LARGE)} complete", "not sent"),
]


def number_of(profile: Path) -> int:
    return int(profile.name.split("-")[1].partition(".")[0])


def kept_profile(place: Path, *, oldest: bool) -> Path:
    """That of the oldest schema of which one is kept, or of the newest, unpacked."""
    kept = sorted(PROFILES, key=number_of)
    unpack(kept[0 if oldest else -1], place)
    return place / "Ines"


def told(row: MessageView) -> tuple[str, ...]:
    """Who, what, and all that is peculiar about a message."""
    more = []
    if row.quote is not None:
        more.append(f"> {row.quote.text}")
    if row.file is not None:
        more.append(f"{row.file.name} {row.file.size} {row.file.state}")
    more += [f"{each.emoji}{each.count}" for each in row.reactions]
    peculiar = {
        "edited": row.edited_ms is not None,
        "retracted": row.retracted,
        "not sent": row.delivery is not None and row.delivery.state is DeliveryState.SAVED,
    }
    more += [word for word, is_so in peculiar.items() if is_so]
    return (row.sender_name, row.text, row.kind.value, *more)


@pytest.fixture(params=PROFILES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """With ``Ines``, the profile, and ``Ines.backup``."""
    unpack(request.param, tmp_path)
    (tmp_path / "schema").write_text(str(number_of(request.param)), encoding="ascii")
    return tmp_path


def schema_of(place: Path) -> int:
    return int((place / "schema").read_text(encoding="ascii"))


def group_of(place: Path) -> list[tuple[str, ...]]:
    """What the group of the profile holds."""
    by_one_clock = schema_of(place) >= BY_ONE_CLOCK
    return [*(BEGINNING if by_one_clock else reversed(BEGINNING)), *GROUP]


def at_the_next_start(name: str, place: Path, network: MemoryNetwork | None = None) -> Person:
    return Person(name, place, network or MemoryNetwork(), SceneClock(MADE_MS + 60_000))


@pytest.fixture
async def ines(place: Path) -> AsyncIterator[Person]:
    person = at_the_next_start("Ines", place)
    await person.engine.start()
    await person.engine.loaded()
    yield person
    await person.engine.stop()


async def named(person: Person) -> dict[str, ConversationView]:
    return {view.name: view for view in await person.engine.conversations()}


async def read(person: Person, where: ConversationId) -> list[tuple[str, ...]]:
    """But for what waits for others, which is shown only after a minute."""
    return [told(row) for row in await person.rows(where) if not row.waiting]


def test_there_is_one_of_the_first_released_schema() -> None:
    """And scripts/release.py refuses to release a schema of which there is none."""
    kept = [number_of(path) for path in PROFILES]
    assert min(kept) == 12
    assert max(kept) <= SCHEMA_VERSION


async def test_every_conversation_is_there_as_it_was(ines: Person, place: Path) -> None:
    views = await named(ines)
    assert set(views) - {GOVERNED} == {"Tide Gauge", MAYA, "Everybody", "Boat crew"}
    group, pair = views["Tide Gauge"], views[MAYA]
    assert await read(ines, group.conversation_id) == group_of(place)
    assert await read(ines, pair.conversation_id) == PAIR
    assert {member.name for member in group.members} == {"Ines", "Maya", "Luc"}
    assert (group.draft, group.waiting_to_send) == ("And the ladder, if", 1)
    assert (pair.muted, pair.unread, pair.waiting_to_send) == (True, 1, 1)
    assert pair.contact is not None
    assert (pair.contact.state, pair.contact.name) == (ContactState.ACCEPTED, "Maya")
    for label, has_key in (("Everybody", False), ("Boat crew", True)):
        view = views[label]
        assert view.open_channel is not None
        assert view.open_channel.has_key is has_key
        said = [row.text for row in await ines.rows(view.conversation_id)]
        assert said == [f"Hello, {label}.", "Hello, Ines."]
    assert len(await ines.engine.open_channels.shared_key(views["Boat crew"].conversation_id)) == 32


async def test_a_governed_group_is_there_with_who_asks_and_where_ines_asked(
    ines: Person, place: Path
) -> None:
    """In a profile of a schema that knows such groups."""
    view = (await named(ines)).get(GOVERNED)
    is_expected = schema_of(place) >= FIRST_GOVERNED
    assert (view is not None) is is_expected
    assert [one.group_name for one in ines.engine.governing.joins()] == ["Boathouse"] * is_expected
    if view is None:
        return
    group = view.conversation_id
    governed = ines.engine.governing.view(group)
    assert governed is not None
    assert (governed.own_role, governed.topic) == (Role.OWNER, "Who is awake")
    assert sorted(governed.roles.values()) == [Role.ADMIN, Role.OWNER]
    assert [one.name for one in governed.asking] == ["Luc"]
    assert [one.link is not None for one in governed.invitations] == [True, True]
    *done, said = [(row.kind, row.text) for row in await ines.rows(group)]
    assert [kind for kind, _ in done] == [MessageKind.CREATED, *[MessageKind.DEED] * 3]
    assert said == (MessageKind.TEXT, "I take the first hours.")
    await ines.engine.timeline.send_text(group, "Good night.")
    await ines.engine.governing.refuse(group, governed.asking[0].participant_id)


async def test_what_is_known_of_delivery_is_there_as_it_was(ines: Person) -> None:
    views = await named(ines)
    group = views["Tide Gauge"].conversation_id
    gap = await ines.engine.timeline.gap(group)
    assert gap is not None
    assert (gap.missing, gap.waiting, gap.lost_total) == (1, 1, 0)
    for row in await ines.rows(group):
        if row.delivery is not None and row.delivery.state is DeliveryState.HELD:
            assert (len(row.delivery.held_by), row.delivery.of) == (2, 2)


async def test_files_identity_and_search_are_there_as_they_were(ines: Person) -> None:
    engine, views = ines.engine, await named(ines)
    group, pair = views["Tide Gauge"].conversation_id, views[MAYA].conversation_id
    (small,) = (row for row in await ines.rows(group) if row.file is not None)
    (large,) = (row for row in await ines.rows(pair) if row.file is not None)
    assert await engine.timeline.file_data(group, small.message_id) == b"13:54;2.41\n"
    assert await engine.files.read(pair, large.message_id) == LARGE
    identity = engine.identity()
    assert identity is not None
    assert (identity.name, identity.picture[:4]) == ("Ines", b"\x89PNG")
    assert len(engine.people.verified()) == 1
    (store,) = engine.history.stores()
    assert store.multiaddr.startswith("/ip4/192.0.2.12/")
    found = await engine.search.find("talks")
    assert [hit.excerpt.text for hit in found.found] == ["It talks every 30 seconds."]
    edited = next(row for row in await ines.rows(group) if row.edited_ms is not None)
    versions = await engine.timeline.versions(group, edited.message_id)
    assert versions[0].text == "It tals every 30 seconds."


async def test_it_goes_on_with_somebody_new(place: Path) -> None:
    """Its keys are right: whoever joins today by a link that it makes is understood."""
    network = MemoryNetwork()
    ines = at_the_next_start("Ines", place, network)
    await ines.engine.start()
    nell = await at_the_next_start("Nell", place, network).enter()
    views = await named(ines)
    group, crew = views["Tide Gauge"].conversation_id, views["Boat crew"].conversation_id
    link = await ines.engine.groups.make_invite_link(group)
    assert await nell.engine.groups.join(link) == group
    await nell.engine.timeline.send_text(group, "Good evening.")
    await ines.hears(group, "Good evening.")
    channels = nell.engine.open_channels
    name = channels.preview_link(await ines.engine.open_channels.make_link(crew))
    assert await channels.join(name, label="Boat crew", nick="Nell") == crew
    await nell.engine.timeline.send_text(crew, "Cast off at nine?")
    await ines.hears(crew, "Cast off at nine?")
    for person in (ines, nell):
        await person.engine.stop()


async def test_its_backup_can_be_restored(place: Path) -> None:
    directory = open_profile_directory(place / "Anew")
    restore_backup(
        place / "Ines.backup",
        PASSPHRASE,
        RestorePlace(
            directory=directory,
            settings=directory.path / "settings.toml",
            window=directory.path / "window.json",
            force_key_file=True,
        ),
    )
    person = at_the_next_start("Anew", place)
    await person.engine.start()
    await person.engine.loaded()
    views = await named(person)
    assert await read(person, views["Tide Gauge"].conversation_id) == group_of(place)
    large = (await person.rows(views[MAYA].conversation_id))[-1]
    pair = views[MAYA].conversation_id
    assert await person.engine.files.read(pair, large.message_id) == LARGE
    await person.engine.stop()
    settings = load_settings(directory.path / "settings.toml")
    assert settings.appearance.text_size == 110


def test_its_settings_and_what_the_window_remembers_are_read(place: Path) -> None:
    settings = load_settings(place / "Ines" / "settings.toml")
    assert settings.appearance.text_size == 110
    assert (place / "Ines" / "window.json").read_text(encoding="utf-8") == '{"skin_tone": "2"}\n'
