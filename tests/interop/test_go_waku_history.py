"""A go-waku node's archive, 2.0.0-beta4, fills in what an application of ours was not there for."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from engine.crypto.links import encode_invite, parse_invite
from engine.history_views import StoreHealth
from tests.interop.go_waku import go_waku
from tests.interop.test_go_waku_app import QUICK, person, through

MANY = 120
"""More than a page."""


@pytest.mark.parametrize("role", ["relay", "edge"])
async def test_who_was_not_there_reads_everything_from_gos_archive(
    tmp_path: Path, role: str
) -> None:
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(go_waku(QUICK))
        async with person(tmp_path, "alice", through("relay", [node])) as alice:
            group = await alice.engine.groups.create("Tide")
            whole = parse_invite(await alice.engine.groups.make_invite_link(group))
            link = encode_invite(replace(whole, node_addresses=(), service_nodes=()))
            said = [f"a{number}" for number in range(MANY)]
            for text in said:
                await alice.engine.timeline.send_text(group, text)
            await node.seen("archived", MANY + 1)
            for text in said:
                await alice.until_sent(text)
        bob = await stack.enter_async_context(person(tmp_path, "bob", through(role, [node])))
        assert await bob.engine.groups.join(link) == group
        await bob.until_shown(said[-1])
        assert await bob.texts(group) == said
        assert await bob.engine.timeline.gap(group) is None
        (store,) = bob.engine.history.stores()
        assert (store.health, store.version) == (StoreHealth.GOOD, "2.0.0-beta4")
        assert store.messages >= MANY
