"""Two whole programs, one in each role, through two service nodes of which one dies in a burst."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from chat_app.compose import build_engine
from chat_app.network_control import NetworkControl
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import ChannelId, ContentTopic, ConversationId
from engine.core.problems import ConnectionReason
from engine.core.records import ChannelName
from engine.events import ConnectionLevel, ConnectionRole, MessageKind
from engine.persistence.profile_directory import open_profile_directory
from tests.network.edge.edge_net import EdgeNet, addresses
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import StoreNode, until_stored

EACH = 40


class Program:
    """An engine as the program makes it, and how to wait for it."""

    def __init__(self, place: Path, network: NetworkSettings) -> None:
        self.control = NetworkControl(network)
        self.engine = build_engine(
            open_profile_directory(place),
            Settings(network=network, storage=StorageSettings(key="file")),
            control=self.control,
        )
        self._news = asyncio.Event()
        self.engine.subscribe(lambda _event: self._news.set())

    async def until_texts(self, group: ConversationId, expected: set[str]) -> list[str]:
        async with asyncio.timeout(PATIENCE_S):
            while not expected <= set(texts := await self.texts(group)):
                self._news.clear()
                await self._news.wait()
        return texts

    async def texts(self, group: ConversationId) -> list[str]:
        page = await self.engine.timeline.latest_page(group, limit=200)
        return [row.text for row in page.messages if row.kind is MessageKind.TEXT]

    async def until_level(self, level: ConnectionLevel) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.engine.connection().level is not level:
                self._news.clear()
                await self._news.wait()


def network(role: str, service_nodes: list[str]) -> NetworkSettings:
    return NetworkSettings(
        role=role,
        listen_host="127.0.0.1",
        discovery=False,
        service_nodes=tuple(service_nodes),
    )


async def test_an_edge_and_a_relay_program_converge_though_a_service_node_dies(
    tmp_path: Path,
) -> None:
    async with EdgeNet() as net, AsyncExitStack() as stack:
        first, second = await net.service_nodes(2)
        nodes = addresses(first, second)
        ann = Program(tmp_path / "ann", network("edge", nodes))
        bob = Program(tmp_path / "bob", network("relay", nodes))
        for program, name in ((ann, "Ann"), (bob, "Bob")):
            await program.engine.start()
            stack.push_async_callback(program.engine.stop)
            await program.engine.create_identity(name)
            await program.until_level(ConnectionLevel.GOOD)
        assert ann.engine.connection().role is ConnectionRole.EDGE
        assert bob.engine.connection().role is ConnectionRole.RELAY
        group = await ann.engine.groups.create("Tide")
        await bob.engine.groups.join(await ann.engine.groups.make_invite_link(group))

        async def burst(program: Program, name: str) -> None:
            for number in range(EACH):
                await program.engine.timeline.send_text(group, f"{name} {number}")
                if name == "Ann" and number == EACH // 3:
                    await first.stop()

        await asyncio.gather(burst(ann, "Ann"), burst(bob, "Bob"))
        everything = {f"{name} {number}" for name in ("Ann", "Bob") for number in range(EACH)}
        by_ann = await ann.until_texts(group, everything)
        by_bob = await bob.until_texts(group, everything)
        assert sorted(by_ann) == sorted(by_bob) == sorted(everything), "each once"
        await ann.until_level(ConnectionLevel.MINIMAL)
        assert ann.engine.connection().reason is ConnectionReason.ONE_SERVICE_NODE


async def test_a_program_changes_its_role_while_others_write(tmp_path: Path) -> None:
    async with EdgeNet() as net, AsyncExitStack() as stack:
        nodes = addresses(*await net.service_nodes(2))
        ann = Program(tmp_path / "ann", network("relay", nodes))
        bob = Program(tmp_path / "bob", network("edge", nodes))
        for program, name in ((ann, "Ann"), (bob, "Bob")):
            await program.engine.start()
            stack.push_async_callback(program.engine.stop)
            await program.engine.create_identity(name)
            await program.until_level(ConnectionLevel.GOOD)
        group = await ann.engine.groups.create("Tide")
        await bob.engine.groups.join(await ann.engine.groups.make_invite_link(group))
        changing = asyncio.create_task(ann.control.change("edge", nodes))
        sent: set[str] = set()
        while not changing.done():
            sent.add(text := f"Bob {len(sent)}")
            await bob.engine.timeline.send_text(group, text)
            await asyncio.sleep(0.05)
        await changing
        await ann.engine.timeline.send_text(group, "Ann is elsewhere")
        assert ann.engine.connection().role is ConnectionRole.EDGE
        assert sent <= set(await ann.until_texts(group, sent))
        await bob.until_texts(group, {"Ann is elsewhere"})


async def test_an_edge_and_a_relay_program_talk_in_an_open_channel(tmp_path: Path) -> None:
    """And what was said while the edge program was not there it gets from the service node."""
    name = ChannelName(
        channel_id=ChannelId("general"),
        content_topic=ContentTopic("/my-app/1/room/proto"),
        cluster_id=42,
        shard=None,
    )
    node = StoreNode(tmp_path, "node")
    async with AsyncExitStack() as stack:
        nodes = [await node.start(shards=tuple(range(8)))]
        stack.push_async_callback(node.stop)
        ann = Program(tmp_path / "ann", network("edge", nodes))
        bob = Program(tmp_path / "bob", network("relay", nodes))
        for program, who in ((ann, "Ann"), (bob, "Bob")):
            await program.engine.start()
            stack.push_async_callback(program.engine.stop)
            await program.engine.create_identity(who)
        await ann.until_level(ConnectionLevel.MINIMAL)
        assert ann.engine.connection().role is ConnectionRole.EDGE
        channel = await ann.engine.open_channels.join(name, label="", nick="Ann")
        await bob.engine.open_channels.join(name, label="", nick="Bob")
        for program, who in ((ann, "Ann"), (bob, "Bob")):
            await program.engine.timeline.send_text(channel, f"by {who}")
        both = {"by Ann", "by Bob"}
        assert sorted(await ann.until_texts(channel, both)) == sorted(both)
        assert sorted(await bob.until_texts(channel, both)) == sorted(both)
        await ann.engine.stop()
        await bob.engine.timeline.send_text(channel, "while Ann was away")
        await until_stored(node, 3)
        again = Program(tmp_path / "ann", network("edge", nodes))
        await again.engine.start()
        stack.push_async_callback(again.engine.stop)
        await again.until_texts(channel, both | {"while Ann was away"})
