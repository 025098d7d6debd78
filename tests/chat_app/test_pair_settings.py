"""How one-to-one conversations go out is what the settings file says: seen in what was sent.

Two whole programs talk over a node that keeps everything; afterwards what it kept is opened.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from chat_app.compose import build_engine, open_store
from chat_app.settings import Settings
from chat_app.settings_reading import parse_settings
from engine.codec.mvds import decode_payload
from engine.codec.waku import decode_waku_message
from engine.core.contacts import ContactState
from engine.core.errors import CryptoError
from engine.core.ids import ConversationId
from engine.core.mvds.vocabulary import Payload, WireGeneration
from engine.core.waku_archive import ArchiveQuery
from engine.crypto.identity import Identity
from engine.crypto.pair import MvdsPart, PairSeal
from engine.events import MessageKind
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.dependencies import EngineDependencies
from tests.patience import PATIENCE_S
from tests.runtime.history.history_stage import StoreNode


class Program:
    """An engine as the program makes it of a settings file."""

    def __init__(self, place: Path, settings: Settings) -> None:
        self.directory = open_profile_directory(place)
        self.engine = build_engine(self.directory, settings)
        self._news = asyncio.Event()
        self.engine.subscribe(lambda _event: self._news.set())

    async def until(self, wanted: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await wanted():
                self._news.clear()
                await self._news.wait()

    async def is_in(self, pair: ConversationId, state: ContactState) -> bool:
        for view in await self.engine.conversations():
            if view.conversation_id == pair and view.contact is not None:
                return view.contact.state is state
        return False

    async def has(self, pair: ConversationId, text: str) -> bool:
        page = await self.engine.timeline.latest_page(pair)
        return text in [row.text for row in page.messages if row.kind is MessageKind.TEXT]

    def identity(self) -> Identity:
        """Once it has stopped."""
        store = open_store(self.directory, force_key_file=True).store
        profile = store.profile()
        store.close()
        assert profile is not None
        return Identity(signing_key=profile.signing_key, encryption_key=profile.encryption_key)


def settings(address: str, network: str) -> Settings:
    text = f'[network]\nlisten_host = "127.0.0.1"\ndiscovery = false\npeers = ["{address}"]\n'
    return parse_settings(f'{text}{network}\n[storage]\nkey = "file"\n', Path("settings.toml"))


async def talk(stack: AsyncExitStack, address: str, place: Path, network: str) -> list[Identity]:
    """Ann says something to Bob, who has the same settings, and then they are gone."""
    ann = Program(place / "ann", settings(address, network))
    bob = Program(place / "bob", settings(address, network))
    for program, name in ((ann, "Ann"), (bob, "Bob")):
        await program.engine.start()
        stack.push_async_callback(program.engine.stop)
        await program.engine.create_identity(name)
    pair = await ann.engine.people.add(await bob.engine.people.make_contact_link())
    await bob.until(lambda: bob.is_in(pair, ContactState.ASKING))
    await bob.engine.people.accept(pair)
    await ann.until(lambda: ann.is_in(pair, ContactState.ACCEPTED))
    await ann.engine.timeline.send_text(pair, "hello")
    await bob.until(lambda: bob.has(pair, "hello"))
    await ann.engine.stop()
    await bob.engine.stop()
    return [ann.identity(), bob.identity()]


async def sent_to(
    bob: Identity, ann: Identity, node: StoreNode
) -> list[tuple[Payload, WireGeneration]]:
    seal = PairSeal(
        bob, peer_public_key=ann.public_key, peer_encryption_key=ann.encryption_public_key
    )
    assert node.archive is not None
    page = await node.archive.query(ArchiveQuery(forward=True, limit=1_000, max_bytes=10**7))
    sent: list[tuple[Payload, WireGeneration]] = []
    for row in page.rows:
        message = decode_waku_message(row.data)
        if message.content_topic != seal.content_topic:
            continue
        try:
            body = seal.open(message.payload).body
        except CryptoError:
            continue  # His own.
        if isinstance(body, MvdsPart):  # What she says is whole until he has accepted her.
            sent.append(decode_payload(body.payload))
    return sent


@pytest.mark.parametrize(
    ("network", "offers", "generation"),
    [
        ("", False, WireGeneration.RFC),
        ('mvds_mode = "interactive"\nmvds_wire = "draft"', True, WireGeneration.DRAFT),
    ],
)
async def test_a_program_sends_as_its_settings_say(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    network: str,
    offers: bool,
    generation: WireGeneration,
) -> None:
    """Without Olm, of which nothing kept can be opened."""
    monkeypatch.setattr(
        "chat_app.compose.EngineDependencies", partial(EngineDependencies, pairs_by_olm=False)
    )
    node = StoreNode(tmp_path, "node")
    async with AsyncExitStack() as stack:
        address = await node.start(shards=tuple(range(8)))
        stack.push_async_callback(node.stop)
        ann, bob = await talk(stack, address, tmp_path, network)
        sent = await sent_to(bob, ann, node)
    assert any(payload.offers for payload, _ in sent) is offers
    assert {sent_in for _, sent_in in sent} == {generation}
