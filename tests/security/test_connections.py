"""Who takes the slots of a node: one address, a few, many, and those that never finish a handshake.

The node is as the application makes it, with its own bounds unless a test says otherwise; every
connection is a real one.  Honest nodes come from 127.0.0.1, all of them: they are the team behind
one NAT, and must not be punished for it.
"""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Self

import pytest

from engine.core.errors import TransportError
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.ports import PeerId
from engine.network.node.embedded import EmbeddedNode
from engine.network.waku.gossip.scoring import PeerScores
from engine.network.waku.gossip.vocabulary import HUB
from tests.network.node.loopback import message
from tests.patience import PATIENCE_S
from tests.security.crowd import Crowd, node_of, until_peers
from tests.security.stage import figure

SLOTS = HostLimits().max_inbound_connections
SHARE = HostLimits().max_inbound_per_address
TEAM = 50
PATIENT = HostLimits(ping_interval_ms=120_000)
"""A crowd could answer pings; ours does not, and must not leave by itself."""


class Town:
    """One node, the team that hangs on it, and strangers."""

    def __init__(self, *, limits: HostLimits | None = None) -> None:
        self.node = node_of(1, limits or PATIENT)
        self.team: list[EmbeddedNode] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.node.start()
        self._stack.push_async_callback(self.node.stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def address(self) -> str:
        return self.node.addresses()[0]

    def crowd(self) -> Crowd:
        made = Crowd(self.address)
        self._stack.push_async_callback(made.leave)
        return made

    async def comes(self, number: int) -> EmbeddedNode:
        """An honest node that keeps its connection to ours."""
        one = node_of(number)
        one.add_peers([self.address])
        await one.start()
        self._stack.push_async_callback(one.stop)
        self.team.append(one)
        return one

    async def team_comes(self, count: int = TEAM) -> None:
        for _ in range(count):
            await self.comes(2 + len(self.team))
        await until_peers(self.node, len(self.team))

    async def team_talks(self) -> None:
        """Everybody says one thing, which the node hears from them first."""
        for number, one in enumerate(self.team):
            await one.publish(message(number))

    def members_connected(self) -> int:
        here = {peer.peer_id for host in self.node.hosts() for peer in host.peers()}
        return sum(host.peer_id in here for one in self.team for host in one.hosts())

    async def until_taken(self, count: int) -> None:
        """So many, and all of them known by name."""
        (host,) = self.node.hosts()
        async with asyncio.timeout(PATIENCE_S):
            while self.taken() < count or len(host.peers()) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)

    def taken(self) -> int:
        (host,) = self.node.hosts()
        assert isinstance(host, TcpHost)
        return host.connection_count()

    def counted(self, name: str) -> int:
        return self.node.counters().get(f"libp2p.{name}", 0)

    async def until_counted(self, name: str, number: int) -> None:
        """A counter tells nobody: look again at every turn of the loop."""
        async with asyncio.timeout(PATIENCE_S):
            while self.counted(name) < number:  # noqa: ASYNC110
                await asyncio.sleep(0)


def play(scenario: Coroutine[object, object, None]) -> None:
    asyncio.run(scenario)


async def is_let_in(town: Town, number: int = 900) -> bool:
    """Whether an honest stranger can connect, at the first try."""
    host = TcpHost(number.to_bytes(32, "big"), [])
    await host.start()
    try:
        await host.connect(town.address)
    except TransportError:
        return False
    finally:
        await host.stop()
    return True


def strangers(first: int, count: int, each: int = 1) -> list[str]:
    """``each`` connections from so many addresses."""
    return [f"127.0.{(first + n) // 250}.{(first + n) % 250 + 2}" for n in range(count)] * each


def test_one_address_takes_its_share_and_no_more() -> None:
    async def scenario() -> None:
        async with Town() as town:
            await town.crowd().connect(["127.0.0.66"] * (SLOTS + 8))
            await town.until_counted("connections_per_address_limit", SLOTS + 8 - SHARE)
            await town.until_taken(SHARE)
            assert town.taken() == SHARE
            assert await is_let_in(town)
            figure(f"one address: {SHARE} of {SLOTS} slots (it took all of them)")

    play(scenario())


def test_a_few_addresses_that_fill_the_node_give_way_one_by_one() -> None:
    async def scenario() -> None:
        async with Town() as town:
            await town.crowd().connect(strangers(0, 3, SHARE))
            await town.until_taken(SLOTS)
            await town.team_comes(TEAM // 2)
            await town.team_talks()
            await town.team_comes(TEAM // 2)
            await town.team_talks()
            await town.crowd().connect(strangers(0, 3, SHARE))
            assert town.members_connected() == TEAM
            figure(
                f"three addresses that hold {SLOTS} of {SLOTS} slots: {TEAM} of {TEAM} behind one"
                f" address get in, {town.counted('connection_gave_way')} connections gave way"
            )

    play(scenario())


def test_a_team_behind_one_address_stays_whoever_comes_from_wherever() -> None:
    """Twice as many addresses as there are slots, one connection each: no crowd is as large."""

    async def scenario() -> None:
        async with Town() as town:
            await town.team_comes()
            await town.team_talks()
            await town.crowd().connect(strangers(0, 2 * SLOTS))
            assert town.taken() == SLOTS
            assert town.members_connected() == TEAM
            figure(f"{2 * SLOTS} addresses: {TEAM} of {TEAM} of the team stay")

    play(scenario())


def test_who_behaved_comes_back_to_a_node_that_is_full() -> None:
    async def scenario() -> None:
        async with Town() as town:
            await town.team_comes(20)
            await town.team_talks()
            for one in town.team:
                await one.stop()
            await until_peers(town.node, 0)
            await town.crowd().connect(strangers(0, SLOTS))
            await town.until_taken(SLOTS)
            assert not await is_let_in(town), "nobody is worse than a stranger"
            for one in town.team:
                await one.start()
            await until_peers(town.node, 20)
            figure(f"20 of 20 that behaved come back among {SLOTS} strangers at one address each")

    play(scenario())


def test_the_worst_scored_goes_first() -> None:
    limits = HostLimits(max_inbound_connections=3, reserved_inbound=1, behaved_ms=0)

    async def scenario() -> None:
        async with Town(limits=limits) as town:
            (host,) = town.node.hosts()
            scores: dict[PeerId, float] = {}
            host.judge_peers_by(lambda peer_id: scores.get(peer_id, 0.0))
            await town.team_comes(3)
            names = [each.peer_id for one in town.team for each in one.hosts()]
            scores |= {names[0]: -1.0, names[1]: -7.0, names[2]: 0.0}
            gone: list[PeerId] = []
            host.on_peer_disconnected(gone.append)
            assert await is_let_in(town)
            assert gone[0] == names[1]

    play(scenario())


@pytest.mark.parametrize("addresses", [2, 4])
def test_handshakes_that_never_end_give_way(addresses: int) -> None:
    """The slow loris: sockets that say nothing, all that there is room for."""

    async def scenario() -> None:
        async with Town() as town:
            crowd, limits = town.crowd(), HostLimits()
            for address in strangers(0, addresses, limits.max_handshakes // addresses):
                await crowd.socket(address)
            while town.taken() < limits.max_handshakes:  # noqa: ASYNC110 - the loop has to turn
                await asyncio.sleep(0)
            assert await is_let_in(town)
            assert town.counted("handshake_gave_way") == 1
            figure(f"{limits.max_handshakes} half-open sockets from {addresses}: let in at once")

    play(scenario())


def test_a_handshake_that_goes_on_by_drops_ends_by_its_deadline() -> None:
    async def scenario() -> None:
        async with Town(limits=HostLimits(handshake_timeout_ms=300)) as town:
            slow = await town.crowd().socket("127.0.0.66")
            closed = asyncio.ensure_future(slow.wait_closed())
            drops = iter(encode_message(HEADER) + encode_message("/noise") + b"\x00\xff")
            async with asyncio.timeout(PATIENCE_S):
                while not closed.done():
                    slow.write(bytes([next(drops, 0)]))
                    await asyncio.wait((closed,), timeout=0.02)
            assert town.counted("handshake_timeout") == 1
            assert town.taken() == 0

    play(scenario())


def test_a_mesh_on_one_address_is_whole() -> None:
    """Everybody dials everybody: nobody's share is a matter of who dialled whom."""

    async def scenario() -> None:
        async with Town() as town:
            for number in range(2, 14):
                one = await town.comes(number)
                one.add_peers([a for other in town.team for a in other.addresses()])
            for node in (town.node, *town.team):
                await until_peers(node, 12)
            assert town.counted("connections_per_address_limit") == 0

    play(scenario())


def test_a_team_at_one_global_address_is_not_held_against_anybody_in_it() -> None:
    """P6 of gossipsub 1.1 on a hub; loopback, where the tests above live, is exempt from it."""
    scores = PeerScores(HUB.score)
    team = [PeerId(os.urandom(8).hex()) for _ in range(SHARE)]
    for peer_id in team:
        scores.connected(peer_id, address="198.51.100.7")
    assert {scores.score(peer_id) for peer_id in team} == {0.0}
