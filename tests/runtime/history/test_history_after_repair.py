"""What a repaired database lost comes back over real nodes, in its place, from whoever has it.

Nobody asks for it: that it is missing was saved, and the first connection is enough.
"""

import asyncio
from pathlib import Path

import pytest

from engine.core.ids import ConversationId
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import Person, Row, StoreNode, say_in_a_group
from tests.runtime.test_engine_salvaged import Damaged

MANY = 80
"""More than a block of signed bytes takes."""


class Bob(Person):
    """His profile is a directory, as the application has it."""

    def __init__(self, profile: Damaged, *peers: str) -> None:
        self.profile = profile
        super().__init__("Bob", profile.directory.path, peers=peers)

    @property
    def database(self) -> Path:
        return self.profile.directory.database


def repair(profile: Damaged) -> None:
    for table in ("message", "log_entry", "log_raw", "raw_block"):
        profile.ruin(table)
    made = profile.salvage()
    report = made.report.read_text("ascii")
    assert made.found.unreadable > 0
    assert f"asked for again: {made.found.asked_for}" in report
    assert made.found.asked_for > 0


async def until_back(one: Person, group: ConversationId, logged: list[Row]) -> None:
    said = [text for _, _, text in logged]
    async with asyncio.timeout(PATIENCE_S):
        while await one.log_of(group, said) != logged:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        while await one.engine.timeline.gap(group) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("source", ["a Store", "a member"])
async def test_what_the_damage_took_is_back(tmp_path: Path, source: str) -> None:
    node, profile = StoreNode(tmp_path, "store"), Damaged(tmp_path / "bob")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Bob(profile, address).start()
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, MANY)
    await until_back(bob, past.group, past.logged)
    await bob.stop()
    repair(profile)
    ann: Person | None = None
    if source == "a member":  # The Store lost everything, and only leads the two to each other.
        await node.stop()
        node = StoreNode(tmp_path, "empty")
        address = await node.start()
        ann = await Person("Ann", tmp_path, peers=(address,)).start()
        await ann.until_online()
        bob = Bob(profile, address)
        await bob.start()
    else:
        await bob.start_again()
    assert len(await bob.log_of(past.group, past.said)) < MANY
    await until_back(bob, past.group, past.logged)
    await bob.stop()
    if ann is not None:
        await ann.stop()
    await node.stop()
