"""The list of Stores outlives a restart; one that speaks only 2.0.0-beta4 is enough; going back."""

from itertools import pairwise
from pathlib import Path

import pytest

from engine.core.counters import Counters
from engine.core.errors import ConfigError
from engine.history_views import HistoryReason, StoreHealth, StoreOrigin
from engine.network.libp2p.ports import Host
from engine.network.waku.service.server import serve_requests
from engine.network.waku.store import server as store_server
from tests.runtime.history.history_stage import Person, StoreNode, say_in_a_group

MANY = 250
"""More than two pages."""
DAY_MS = 24 * 3_600_000
PEER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
FIRST, SECOND, THIRD = (f"/ip4/127.0.0.1/tcp/{port}/p2p/{PEER}" for port in (1, 2, 3))


def _listed(person: Person) -> list[tuple[str, bool]]:
    stores = person.engine.history.stores()
    assert {view.origin for view in stores} <= {StoreOrigin.USER}
    return [(view.multiaddr, view.enabled) for view in stores]


async def test_the_list_and_its_order_outlive_a_restart(tmp_path: Path) -> None:
    ann = await Person("Ann", tmp_path).start()
    for address in (FIRST, SECOND, THIRD):
        await ann.engine.history.add_store(address)
    await ann.engine.history.move_store(THIRD, place=0)
    await ann.engine.history.enable_store(FIRST, enabled=False)
    await ann.engine.history.remove_store(SECOND)
    for address, problem in [
        (FIRST, "store_listed"),
        ("/ip4/127.0.0.1/tcp/9", "peer_not_named"),
        ("http://example.org", "address"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            await ann.engine.history.add_store(address)
    with pytest.raises(ConfigError, match="store_unknown"):
        await ann.engine.history.remove_store(SECOND)
    assert _listed(ann) == [(THIRD, True), (FIRST, False)]
    await ann.stop()
    await ann.start_again()
    assert _listed(ann) == [(THIRD, True), (FIRST, False)]
    await ann.stop()


async def test_a_store_of_the_older_version_alone_fills_everything_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve_older(
        host: Host,
        query: store_server.QueryArchive,
        settings: store_server.StoreSettings,
        counters: Counters,
    ) -> None:
        server = store_server.LegacyStoreServer(query, settings, counters)
        serve_requests(host, server, counters)

    monkeypatch.setattr(store_server, "serve_store", serve_older)

    node = StoreNode(tmp_path, "store")
    address = await node.start()
    past = await say_in_a_group(tmp_path, MANY, node)
    bob = await Person("Bob", tmp_path).start()
    await bob.engine.history.add_store(address)
    await bob.engine.groups.join(past.link)
    await bob.until_told(past.group, MANY)
    assert await bob.has_once(past.group, past.said)
    assert await bob.log_of(past.group, past.said) == past.logged
    await bob.until_fetched()
    (store,) = bob.engine.history.stores()
    assert (store.health, store.version) == (StoreHealth.GOOD, "2.0.0-beta4")
    tested = await bob.engine.history.test_store(address)
    assert (tested.problem, tested.versions) == (None, ("2.0.0-beta4",))
    await bob.stop()
    await bob.start_again()
    (kept,) = bob.engine.history.stores()
    assert kept.messages >= MANY, "what it brought is remembered"
    await bob.stop()
    await node.stop()


async def test_scrolling_past_the_beginning_asks_for_a_stretch_further_back_each_time(
    tmp_path: Path,
) -> None:
    node = StoreNode(tmp_path, "store")
    ann = await Person("Ann", tmp_path, peers=(await node.start(),)).start()
    group = await ann.engine.groups.create("Friends")
    await ann.until_online()
    since: list[int] = []
    for _ in range(3):
        ann.told.clear()
        await ann.engine.history.fetch_earlier(group)  # Whatever else is being fetched.
        await ann.until_fetched(HistoryReason.EARLIER)
        views = [view for view in ann.histories() if view.reason is HistoryReason.EARLIER]
        since.append(views[-1].since_ms or 0)
    # From as far back as was wanted by then, which what goes on by itself may have moved a bit.
    stretches = [later - earlier for later, earlier in pairwise(since)]
    assert all(30 * DAY_MS <= stretch < 31 * DAY_MS for stretch in stretches)
    (before,) = ann.engine.network().stores
    assert before.is_listed
    assert before.results
    await node.stop()
    await ann.until(lambda: not ann.engine.history.stores())
    (past,) = ann.engine.network().stores
    assert not past.is_listed
    assert past.store.multiaddr == before.store.multiaddr
    assert past.results[: len(before.results)] == before.results
    await ann.stop()
