"""A backfill that is killed goes on; a pair gets what was said in the night; a wish is durable."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from engine.core.ids import ConversationId
from engine.core.problems import NoStoreToAsk
from engine.events import NoticeRaised
from engine.history_views import HistoryReason, HistoryState
from engine.network.waku.store.intake import Archive
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import (
    QUICK,
    GroupPast,
    Person,
    RationedArchive,
    StoreNode,
    connected_friends,
    say_in_a_group,
)

MANY = 600
MANY_IN_A_PAIR = 18
PAGE = 5
"""How many messages those ask for at once who are to be found in the middle of a group."""
MARGIN = 50
"""Of what a Store gives out, so much may be something else than texts."""
UNLIMITED = 10**9
ROOT = Path(__file__).resolve().parents[3]


class RationedNode:
    """A Store whose answers last until a ration is used up."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.node = StoreNode(place, "store")
        self._archives: list[RationedArchive] = []

    async def start(self) -> str:
        return await self.node.start(wrap=self._wrap)

    def _wrap(self, archive: Archive) -> Archive:
        self._archives.append(RationedArchive(archive))
        return self.archive

    @property
    def archive(self) -> RationedArchive:
        return self._archives[-1]

    async def kill_at(self, messages: int, link: str = "") -> None:
        """Somebody is killed who got so many, in whole pages, and asks for the next one."""
        self.archive.give_out(messages)
        victim = await self._victim(link, PAGE)
        async with asyncio.timeout(PATIENCE_S):
            await self.archive.used_up.wait()
        victim.kill()
        await victim.wait()
        self.archive.give_out(UNLIMITED)

    async def kill_after_some(self, more: int, link: str = "", page: int = PAGE) -> None:
        """Somebody is killed who was told something; so many more came since.

        Nothing is given out afterwards: whoever looks at the profile then may find the Store, too.
        """
        self.archive.give_out(page)
        victim = await self._victim(link, page)
        assert victim.stdout is not None
        told = asyncio.create_task(victim.stdout.readline())
        async with asyncio.timeout(PATIENCE_S):
            while not told.done():
                used_up = asyncio.create_task(self.archive.used_up.wait())
                await asyncio.wait([told, used_up], return_when=asyncio.FIRST_COMPLETED)
                used_up.cancel()
                self.archive.give_out(page)
            assert await told == b"some came\n", "it ended by itself"
            self.archive.give_out(more)
            await self.archive.used_up.wait()
        victim.kill()
        await victim.wait()

    async def _victim(self, link: str, page: int) -> asyncio.subprocess.Process:
        arguments = [str(self._place), self.node.address, link, str(page)]
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.runtime.history.filling_process", *arguments),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )


async def get_the_rest(bob: Person, past: GroupPast) -> int:
    """Each once, and nothing is missed; gives back how many were durable before."""
    before = len(await bob.log_of(past.group, past.said))
    await bob.until_told(past.group, MANY - before)
    assert len(bob.texts(past.group)) == MANY - before, "what was durable is not told again"
    assert await bob.log_of(past.group, past.said) == past.logged
    assert await bob.engine.timeline.gap(past.group) is None
    return before


async def test_killed_in_the_middle_it_goes_on_with_nothing_twice_and_nothing_missed(
    tmp_path: Path,
) -> None:
    store = RationedNode(tmp_path)
    address = await store.start()
    store.archive.give_out(UNLIMITED)
    past = await say_in_a_group(tmp_path, MANY, store.node)
    await store.kill_after_some(MANY // 2, past.link)
    store.archive.give_out(UNLIMITED)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    before = await get_the_rest(bob, past)
    assert 0 < before < MANY, "killed in the middle"
    await bob.stop()
    await store.node.stop()


async def test_killed_again_and_again_at_any_moment_it_still_gets_everything_once(
    tmp_path: Path,
) -> None:
    """Whatever it was doing: asking, writing, saying how far it came, or loading."""
    kills, chance = 3, Random(7)

    store = RationedNode(tmp_path)
    address = await store.start()
    store.archive.give_out(UNLIMITED)
    past = await say_in_a_group(tmp_path, MANY, store.node)
    for _ in range(kills):
        await store.kill_at(chance.randrange(1, MANY // kills), past.link)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await get_the_rest(bob, past)
    await bob.stop()
    await store.node.stop()


async def test_a_store_that_is_switched_off_in_the_middle_and_comes_back(tmp_path: Path) -> None:
    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Person("Bob", tmp_path).start()
    await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, 1)
    await node.off_and_on()
    await bob.until_told(past.group, MANY)
    assert await bob.log_of(past.group, past.said) == past.logged
    assert sorted(bob.texts(past.group)) == sorted(past.said), "each once"
    await bob.stop()
    await node.stop()


@pytest.mark.parametrize(
    "after",
    [100, pytest.param(1, marks=pytest.mark.long), pytest.param(250, marks=pytest.mark.long)],
)
async def test_a_disk_that_is_full_in_the_middle_and_has_room_again(
    tmp_path: Path, after: int
) -> None:
    store = RationedNode(tmp_path)
    address = await store.start()
    store.archive.give_out(UNLIMITED)
    past = await say_in_a_group(tmp_path, MANY, store.node)
    store.archive.give_out(after + MARGIN)
    config = replace(QUICK, page_messages=PAGE)
    bob = await Person("Bob", tmp_path, peers=(address,), config=config).start()
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, after)
    assert bob.store is not None
    bob.store.broken = True
    store.archive.give_out(UNLIMITED)
    await bob.until(lambda: any(isinstance(event, NoticeRaised) for event in bob.told))
    told = len(bob.texts(past.group))
    assert told < MANY, "in the middle"
    bob.store.broken = False
    await bob.until_told(past.group, MANY)
    assert sorted(bob.texts(past.group)) == sorted(past.said), "each once"
    assert await bob.log_of(past.group, past.said) == past.logged
    assert await bob.engine.timeline.gap(past.group) is None
    await bob.stop()
    await store.node.stop()


async def test_a_pair_gets_what_was_said_in_the_night_from_a_store_alone(tmp_path: Path) -> None:
    node = StoreNode(tmp_path, "store")
    await node.start()
    pair, said = await say_in_the_night(tmp_path, node, 5)
    bob = await Person("Bob", tmp_path, peers=(node.address,)).start()
    await bob.until_told(pair, len(said))
    assert bob.texts(pair) == said
    await bob.stop()
    await node.stop()


async def say_in_the_night(
    place: Path, node: StoreNode, count: int
) -> tuple[ConversationId, list[str]]:
    """By Ann, to Bob, who is not there; in the morning she is gone as well."""
    ann, bob, pair = await connected_friends(place, node)
    await bob.stop()
    said = [f"night {number}" for number in range(count)]
    for text in said:
        await ann.engine.timeline.send_text(pair, text)
        await ann.until_out(pair)  # Each in an envelope of its own.
    await ann.stop()
    return pair, said


async def test_a_pair_killed_again_and_again_while_it_fetches_gets_everything_once(
    tmp_path: Path,
) -> None:
    """Whatever it was doing: asking, acknowledging, writing, or waiting for what comes before."""
    kills, chance = 3, Random(11)

    store = RationedNode(tmp_path)
    address = await store.start()
    store.archive.give_out(UNLIMITED)
    pair, said = await say_in_the_night(tmp_path, store.node, MANY_IN_A_PAIR)
    come = [0]
    for _ in range(kills):
        await store.kill_after_some(chance.randrange(3), page=1)
        bob = await Person("Bob", tmp_path).start()
        log = [text for _, _, text in await bob.log_of(pair, said)]
        assert log == said[: len(log)], "in a row, each once"
        come.append(len(log))
        await bob.stop()
    assert sorted({*come}) == come, "further each time"
    assert come[-1] < MANY_IN_A_PAIR, "killed in the middle"
    store.archive.give_out(UNLIMITED)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await bob.until_told(pair, MANY_IN_A_PAIR - come[-1])
    assert await bob.engine.timeline.gap(pair) is None
    assert [text for _, _, text in await bob.log_of(pair, said)] == said
    assert bob.texts(pair) == said[come[-1] :], "what was durable is not told again"
    await bob.stop()
    await store.node.stop()


async def test_what_was_wanted_is_fetched_after_a_restart(tmp_path: Path) -> None:
    ann = await Person("Ann", tmp_path).start()
    group = await ann.engine.groups.create("Alone")
    await ann.engine.history.fetch(group, days=365)
    view = ann.engine.history.view(group)
    assert view is not None
    assert (view.reason, view.state) == (HistoryReason.USER, HistoryState.WAITING)
    assert view.problem == NoStoreToAsk()
    await ann.stop()
    node = StoreNode(tmp_path, "store")
    await ann.start_again(await node.start())
    await ann.until_fetched(HistoryReason.USER)
    running = [view for view in ann.histories() if view.state is HistoryState.RUNNING]
    assert {view.problem for view in running} == {None}
    await ann.engine.history.fetch(group, days=None)
    await ann.engine.history.cancel(group)
    await ann.stop()
    await node.stop()
