"""Stores that omit, disorder, repeat, never end, lie or are not there: the others go on."""

from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from engine.core.history.queries import End
from engine.core.problems import QueryFailed
from engine.core.waku_archive import ArchivePage, ArchiveQuery
from engine.events import NoticeRaised
from engine.history_views import StoreHealth, StoreOrigin
from engine.network.waku.store import server as store_server
from tests.runtime.history.bad_stores import Garbled, Honest, Silent, serving
from tests.runtime.history.history_stage import QUICK, Person, StoreNode, say_in_a_group
from ui.problem_words import store_problem_words

MANY = 300
NOBODY = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


class Drops(Honest):
    """Nearly a third of what it has, always the same ones."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        page = await super().query(query)
        kept = tuple(row for row in page.rows if row.message_hash[0] % 10 > 2)
        return replace(page, rows=kept or page.rows[-1:])


class Shuffles(Honest):
    """Each page in another order, with some twice; the last stays, for it is the cursor.

    Its pages are half as long as was asked, so that the double ones leave none out.
    """

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        page = await super().query(replace(query, limit=max(1, query.limit // 2)))
        rows = [*page.rows[:-1], *page.rows[: len(page.rows) // 4]]
        Random(len(rows)).shuffle(rows)
        return replace(page, rows=(*rows, *page.rows[-1:]))


class NeverEnds(Honest):
    """There is always more, and it is always the same."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        page = await super().query(replace(query, cursor=None))
        return replace(page, more=bool(page.rows))


class Forges(Honest):
    """Hashes are those of other messages."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        page = await super().query(query)
        hashes = [row.message_hash for row in page.rows]
        turned = zip(page.rows, hashes[1:] + hashes[:1], strict=True)
        return replace(page, rows=tuple(replace(row, message_hash=h) for row, h in turned))


async def test_one_drops_one_shuffles_one_never_ends_and_nothing_is_missing(tmp_path: Path) -> None:
    nodes = [StoreNode(tmp_path, name) for name in ("drops", "shuffles", "endless")]
    for node, wrap in zip(nodes, (Drops, Shuffles, NeverEnds), strict=True):
        await node.start(wrap)
    addresses = tuple(node.address for node in nodes)
    past = await say_in_a_group(tmp_path, MANY, *nodes)
    bob = await Person("Bob", tmp_path, peers=addresses).start()
    for address in addresses:
        await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, MANY)
    assert await bob.log_of(past.group, past.said) == past.logged
    await bob.until(lambda: any(view.is_over for view in bob.histories()))
    assert sorted(bob.texts(past.group)) == sorted(past.said), "each once"
    assert await bob.engine.timeline.gap(past.group) is None
    health = [view.health for view in bob.engine.history.stores()]
    assert health[0] is StoreHealth.DOUBTFUL
    assert health[2] is StoreHealth.FAILED
    await bob.stop()
    for node in nodes:
        await node.stop()


async def test_a_store_that_is_not_there_and_one_that_forges_are_marked_and_the_third_goes_on(
    tmp_path: Path,
) -> None:
    forging, honest = StoreNode(tmp_path, "forging"), StoreNode(tmp_path, "honest")
    await forging.start(Forges)
    await honest.start()
    past = await say_in_a_group(tmp_path, 50, forging, honest)
    bob = await Person("Bob", tmp_path).start()
    for address in (NOBODY, forging.address, honest.address):
        await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, 50)
    assert await bob.has_once(past.group, past.said)
    judged = [StoreHealth.FAILED, StoreHealth.FAILED, StoreHealth.GOOD]
    await bob.until(lambda: [view.health for view in bob.engine.history.stores()] == judged)
    nobody, liar, good = bob.engine.history.stores()
    assert {view.origin for view in (nobody, liar, good)} == {StoreOrigin.USER}
    assert nobody.problem == QueryFailed(End.FAULTED, "unreachable")
    assert liar.problem == QueryFailed(End.FAULTED, "store_hash_mismatch")
    assert good.problem is None
    tested = await bob.engine.history.test_store(honest.address)
    assert (tested.problem, tested.versions, tested.cluster) == (
        None,
        ("3.0.0", "2.0.0-beta4"),
        42,
    )
    assert tested.oldest_ms is not None
    await bob.stop()
    await forging.stop()
    await honest.stop()


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (None, "it keeps no messages for others"),
        (Garbled, "its answer cannot be read"),
        (Silent, "it does not answer in time"),
    ],
)
async def test_whatever_a_store_does_wrong_it_is_marked_the_other_goes_on_and_nobody_is_disturbed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bad: type[store_server.StoreServer] | None,
    problem: str,
) -> None:
    honest, wrong = StoreNode(tmp_path, "honest"), StoreNode(tmp_path, "wrong")
    await honest.start()
    with serving(bad, monkeypatch):
        await wrong.start()
    past = await say_in_a_group(tmp_path, 20, honest)
    impatient = replace(QUICK, first_byte_timeout_ms=1_000)
    bob = await Person("Bob", tmp_path, config=impatient).start()
    for address in (wrong.address, honest.address):
        await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, 20)
    assert await bob.has_once(past.group, past.said)
    await bob.until(lambda: bob.engine.history.stores()[0].health is StoreHealth.FAILED)
    assert store_problem_words(bob.engine.history.stores()[0].problem).startswith(problem)
    await bob.until(lambda: bob.engine.history.stores()[1].health is StoreHealth.GOOD)
    assert not any(isinstance(event, NoticeRaised) for event in bob.told)
    await bob.stop()
    await honest.stop()
    await wrong.stop()
