"""One profile used in two places: everybody finds the fork, keeps it, and can prove it."""

import asyncio
import json
import shutil
from base64 import b64decode
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.codec.content import decode_content
from engine.codec.sds import decode_message
from engine.core.content import Text
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId
from engine.events import EngineEvent, ForksFound, MessageAdded
from engine.network.memory import MemoryNetwork
from tests.forging import sealed_group_of
from tests.patience import PATIENCE_S
from tests.runtime.conftest import Person


class Shown:
    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, event: EngineEvent) -> bool:
        return isinstance(event, MessageAdded) and event.message.text == self.text


def is_fork(event: EngineEvent) -> bool:
    return isinstance(event, ForksFound) and bool(event.forks)


async def two_bobs(place: Path, network: MemoryNetwork) -> tuple[Person, Person, ConversationId]:
    """Alice, and a second Bob who knows nothing of what the first one said to her."""
    alice = await Person("Alice", place, network).start()
    first = await Person("Bob", place, network).start()
    group = await alice.engine.groups.create("Tide")
    await first.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    await first.engine.timeline.send_text(group, "hello")
    await alice.until(Shown("hello"))
    await first.engine.stop()
    shutil.copy(place / "Bob.db", place / "copy.db")

    again = await Person("Bob", place, network).start()
    await again.engine.timeline.send_text(group, "meet at the quay")
    await alice.until(Shown("meet at the quay"))
    await again.engine.stop()

    shutil.copy(place / "copy.db", place / "Bob.db")
    for rest in ("Bob.db-wal", "Bob.db-shm"):
        (place / rest).unlink(missing_ok=True)
    second = Person("Bob", place, network)
    await second.engine.start()
    await second.engine.timeline.send_text(group, "meet at the station")
    return alice, second, group


async def test_a_fork_is_told_kept_and_proved(tmp_path: Path) -> None:
    network = MemoryNetwork()
    alice, bob, group = await two_bobs(tmp_path, network)
    async with asyncio.timeout(PATIENCE_S):
        event = await alice.until(is_fork)
    assert isinstance(event, ForksFound)
    (fork,) = event.forks
    assert (fork.sender_name, fork.is_self) == ("Bob", False)
    assert await alice.engine.timeline.forks(group) == (fork,)
    assert alice.engine.counters()["sds.fork"] == 1

    proof = await alice.engine.timeline.fork_proof(fork)
    assert {m.text for m in proof.messages if m is not None} == {
        "meet at the quay",
        "meet at the station",
    }
    said = json.loads(proof.text)
    assert (said["proves"], said["author"]) == ("equivocation", fork.sender_id)
    assert [part["message_id"] for part in said["messages"]] == [fork.first_id, fork.second_id]
    sealed = sealed_group_of(alice.group(group))
    signed = [sealed.read(b64decode(part["signed_part"])) for part in said["messages"]]
    assert {part.sender_id for part in signed} == {fork.sender_id}
    contents = [decode_message(part.sds_bytes).content or b"" for part in signed]
    bodies = [decode_content(content).body for content in contents]
    assert {body.text for body in bodies if isinstance(body, Text)} == {
        "meet at the quay",
        "meet at the station",
    }
    await bob.engine.stop()
    await alice.engine.stop()

    later = await Person("Alice", tmp_path, network).start()
    assert await later.engine.timeline.forks(group) == (fork,)
    await later.engine.stop()


async def test_a_proof_of_which_one_half_is_gone_is_none(tmp_path: Path) -> None:
    alice, bob, _group = await two_bobs(tmp_path, MemoryNetwork())
    async with asyncio.timeout(PATIENCE_S):
        event = await alice.until(is_fork)
    assert isinstance(event, ForksFound)
    (fork,) = event.forks
    unknown = replace(fork, first_id=MessageId("A" * 22))
    with pytest.raises(LocalProtocolError):
        await alice.engine.timeline.fork_proof(unknown)
    await bob.engine.stop()
    await alice.engine.stop()


async def test_who_is_used_in_two_places_is_told_so_as_well(tmp_path: Path) -> None:
    """The second Bob hears from Alice what the first one said, under a number of his own."""
    alice, bob, group = await two_bobs(tmp_path, MemoryNetwork())
    async with asyncio.timeout(PATIENCE_S):
        await alice.until(is_fork)
        await alice.engine.timeline.send_text(group, "which one?")
        await bob.until(Shown("which one?"))
        await bob.engine.timeline.fetch_missing(group)
        event = await bob.until(is_fork)
    assert isinstance(event, ForksFound)
    assert event.forks[0].is_self
    await bob.engine.stop()
    await alice.engine.stop()
