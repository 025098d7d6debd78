"""Two people whose profiles are of a version without Olm open them with this one, and go on.

The version of schema 12 made both: Ines and Maya agreed to talk, wrote, and each wrote once more
while the other could not be reached.  The profiles are never made anew.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId
from engine.events import ContactView
from engine.inspection_views import Seal
from engine.network.memory import MemoryNetwork
from scripts.profile_fixture import KEPT, MADE_MS, Person, SceneClock, until
from tests.unpacking import unpack

OLD = {"Tea on Saturday?", "Gladly."}
UNSENT = {"Written while you were away.", "I wrote too, alone."}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[tuple[Person, Person]]:
    unpack(KEPT / "pair-of-schema-12.tar.xz", tmp_path)
    network, clock = MemoryNetwork(), SceneClock(MADE_MS + 60_000)
    ines, maya = (Person(name, tmp_path, network, clock) for name in ("Ines", "Maya"))
    for person in (ines, maya):
        await person.engine.start()
        await person.engine.loaded()
    yield ines, maya
    for person in (ines, maya):
        await person.engine.stop()


async def pair_of(person: Person) -> tuple[ConversationId, ContactView]:
    (view,) = await person.engine.conversations()
    assert view.contact is not None
    return view.conversation_id, view.contact


async def texts(person: Person, pair: ConversationId) -> set[str]:
    return {row.text for row in await person.rows(pair) if row.kind == "text"}


async def test_they_talk_reach_an_olm_session_and_read_what_was_there(
    both: tuple[Person, Person],
) -> None:
    ines, maya = both
    pair, contact = await pair_of(ines)
    assert (await pair_of(maya))[0] == pair
    assert contact.state is ContactState.ACCEPTED
    for person in both:
        assert await texts(person, pair) >= OLD

    async def is_all_here() -> bool:
        return all([await texts(person, pair) == OLD | UNSENT for person in both])

    await until(is_all_here)

    async def by_olm() -> bool:
        return all([(await pair_of(person))[1].forward_secret_ms for person in both])

    await ines.engine.timeline.send_text(pair, "Is the kettle on?")
    await maya.hears(pair, "Is the kettle on?")
    await maya.engine.timeline.send_text(pair, "It is.")
    await ines.hears(pair, "It is.")
    await until(by_olm)
    for person in both:
        await person.are_held(pair)
    said = OLD | UNSENT | {"Is the kettle on?", "It is."}
    assert [await texts(person, pair) for person in both] == [said, said]
    for text, seal in (("Gladly.", Seal.NOT_NOTED), ("It is.", Seal.OLM)):
        row = await ines.hears(pair, text)
        found = await ines.engine.inspection.message(pair, row.message_id)
        assert found.mvds is not None
        assert found.mvds.seal is seal
