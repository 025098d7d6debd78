"""Two of our applications, whole but for their windows, that meet through real go-waku nodes only.

Put together as the program is (``chat_app.compose``): encrypted profiles on disk, real sockets.  Of
an invitation only the secrets are used: that nobody dials anybody but go-waku is the point.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from chat_app.compose import build_engine
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import ConversationId
from engine.crypto.links import encode_invite, parse_invite
from engine.events import EngineEvent, MessageView
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from tests.interop.go_waku import GoWaku, go_waku
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import shown_in

QUICK = "-requests=100"
"""go-waku's own limit is one push and one subscription a second: enough to chat, too slow here."""
PAGE = 200


class Person:
    """One application, the messages it showed, and how to wait for what it will show."""

    def __init__(self, place: Path, network: NetworkSettings) -> None:
        profile = open_profile_directory(place)
        self.lock = ProfileLock(profile)
        self.engine = build_engine(
            profile, Settings(network=network, storage=StorageSettings(key="file"))
        )
        self.engine.subscribe(self._hear)
        self._shown: list[MessageView] = []
        self._news = asyncio.Event()

    def _hear(self, event: EngineEvent) -> None:
        if rows := shown_in(event):
            self._shown += rows
            self._news.set()

    async def until(self, wanted: Callable[[MessageView], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not any(wanted(message) for message in self._shown):
                self._news.clear()
                await self._news.wait()

    async def until_shown(self, text: str) -> None:
        await self.until(lambda message: message.text == text and not message.waiting)

    async def until_sent(self, text: str) -> None:
        """A node has taken it."""
        await self.until(
            lambda message: (
                message.text == text
                and message.delivery is not None
                and message.delivery.state != "saved"
            )
        )

    async def until_held(self, text: str) -> None:
        """By everybody else."""
        await self.until(
            lambda message: (
                message.text == text
                and message.delivery is not None
                and message.delivery.state == "held"
                and len(message.delivery.held_by) == message.delivery.of == 1
            )
        )

    async def texts(self, group: ConversationId) -> list[str]:
        page = await self.engine.timeline.latest_page(group, limit=PAGE)
        return [m.text for m in page.messages if m.kind == "text" and not m.waiting]


@asynccontextmanager
async def person(place: Path, name: str, network: NetworkSettings) -> AsyncIterator[Person]:
    made = Person(place / name, network)
    with made.lock:
        await made.engine.start()
        try:
            if made.engine.identity() is None:
                await made.engine.create_identity(name)
            yield made
        finally:
            await made.engine.stop()


async def invite(host: Person, guest: Person) -> ConversationId:
    """The guest learns the secrets of a new group and nobody's address."""
    group = await host.engine.groups.create("Tide")
    whole = parse_invite(await host.engine.groups.make_invite_link(group))
    link = encode_invite(replace(whole, node_addresses=(), service_nodes=()))
    assert await guest.engine.groups.join(link) == group
    await host.until(lambda message: message.kind == "joined")
    return group


def through(role: str, nodes: list[GoWaku]) -> NetworkSettings:
    addresses = tuple(node.address for node in nodes)
    return NetworkSettings(
        listen_host="127.0.0.1",
        discovery=False,
        role=role,
        peers=addresses if role == "relay" else (),
        service_nodes=addresses if role == "edge" else (),
    )


@pytest.mark.parametrize(
    ("alices_role", "bobs_role", "node_count"),
    [("relay", "relay", 1), ("edge", "edge", 1), ("edge", "edge", 2), ("relay", "edge", 1)],
)
async def test_two_of_our_apps_converge_through_go(
    tmp_path: Path, alices_role: str, bobs_role: str, node_count: int
) -> None:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(go_waku(QUICK)) for _ in range(node_count)]
        for node in nodes[1:]:
            await node.ask("dial", address=nodes[0].address)
        alice = await stack.enter_async_context(
            person(tmp_path, "alice", through(alices_role, nodes))
        )
        bob = await stack.enter_async_context(person(tmp_path, "bob", through(bobs_role, nodes)))
        group = await invite(alice, bob)
        for number in range(5):
            await alice.engine.timeline.send_text(group, f"a{number}")
            await bob.engine.timeline.send_text(group, f"b{number}")
            await bob.until_shown(f"a{number}")
            await alice.until_shown(f"b{number}")
        await alice.until_held("a4")
        await bob.until_held("b4")
        texts = await alice.texts(group)
        assert sorted(texts) == sorted(f"{who}{number}" for who in "ab" for number in range(5))
        assert await bob.texts(group) == texts
        for one in (alice, bob):
            assert one.engine.connection().peers == node_count
