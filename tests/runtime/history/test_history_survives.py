"""A backfill that is killed goes on; a pair gets what was said in the night; a wish is durable."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from engine.core.ids import ConversationId
from engine.core.problems import NoStoreToAsk
from engine.core.waku_store import MAX_PAGE_MESSAGES
from engine.events import NoticeRaised
from engine.history_views import HistoryReason, HistoryState
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import (
    GroupPast,
    Person,
    StoreNode,
    connected_friends,
    say_in_a_group,
)

MANY = 600
ROOT = Path(__file__).resolve().parents[3]


async def fill_and_be_killed(
    *arguments: str, come: bool, after_s: float, page: int = MAX_PAGE_MESSAGES
) -> None:
    """So long after the first few came, or after it was up."""
    command = [sys.executable, "-m", "tests.runtime.history.filling_process", *arguments, str(page)]
    if come and not after_s:
        command.append("halt")
    victim = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    assert victim.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await victim.stdout.readline()
        if come:
            assert await victim.stdout.readline()
    try:
        await asyncio.wait_for(victim.wait(), after_s)
    except TimeoutError:
        victim.kill()
        await victim.wait()


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
    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    await fill_and_be_killed(str(tmp_path), address, past.link, come=True, after_s=0)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    before = await get_the_rest(bob, past)
    assert 0 < before < MANY, "killed in the middle"
    await bob.stop()
    await node.stop()


async def test_killed_again_and_again_at_any_moment_it_still_gets_everything_once(
    tmp_path: Path,
) -> None:
    """Whatever it was doing: asking, writing, saying how far it came, or loading."""
    kills, chance = 5, Random(7)

    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    for _ in range(kills):
        after_s = chance.uniform(0, 0.03)
        await fill_and_be_killed(str(tmp_path), address, past.link, come=True, after_s=after_s)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await get_the_rest(bob, past)
    await bob.stop()
    await node.stop()


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


@pytest.mark.parametrize("after", [1, 100, 250])
async def test_a_disk_that_is_full_in_the_middle_and_has_room_again(
    tmp_path: Path, after: int
) -> None:
    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, after)
    assert bob.store is not None
    bob.store.broken = True
    await bob.until(lambda: any(isinstance(event, NoticeRaised) for event in bob.told))
    told = len(bob.texts(past.group))
    assert told < MANY, "in the middle"
    bob.store.broken = False
    await bob.until_told(past.group, MANY)
    assert sorted(bob.texts(past.group)) == sorted(past.said), "each once"
    assert await bob.log_of(past.group, past.said) == past.logged
    assert await bob.engine.timeline.gap(past.group) is None
    await bob.stop()
    await node.stop()


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
    said = await ann.say(pair, count, "night")
    await ann.until_out(pair)
    await ann.stop()
    return pair, said


async def test_a_pair_killed_again_and_again_while_it_fetches_gets_everything_once(
    tmp_path: Path,
) -> None:
    """Whatever it was doing: asking, acknowledging, writing, or waiting for what comes before."""
    kills, chance = 5, Random(11)

    node = StoreNode(tmp_path, "store")
    address = await node.start()
    pair, said = await say_in_the_night(tmp_path, node, MANY)
    come = [0]
    for kill in range(kills):
        after_s = chance.uniform(0, 0.1) if kill else 0
        some_left = come[-1] < MANY // 2
        await fill_and_be_killed(
            str(tmp_path), address, "", come=some_left, after_s=after_s, page=1
        )
        bob = await Person("Bob", tmp_path).start()
        log = [text for _, _, text in await bob.log_of(pair, said)]
        assert log == said[: len(log)], "in a row, each once"
        come.append(len(log))
        await bob.stop()
    assert any(0 < count < MANY for count in come), "killed in the middle"
    bob = await Person("Bob", tmp_path, peers=(address,)).start()
    await bob.until_told(pair, MANY - come[-1])
    assert await bob.engine.timeline.gap(pair) is None
    assert [text for _, _, text in await bob.log_of(pair, said)] == said
    assert bob.texts(pair) == said[come[-1] :], "what was durable is not told again"
    await bob.stop()
    await node.stop()


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
