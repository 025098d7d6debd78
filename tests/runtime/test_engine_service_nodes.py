"""Service nodes of a group: the founder's, in the invitation, kept, and given to the transport."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from engine.crypto.links import parse_invite
from engine.runtime.engine import Engine
from tests.runtime.conftest import MakePerson, Person

NODES = tuple(f"/dns4/node{number}.example/tcp/443/wss/p2p/16Uiu2HAx" for number in range(6))


def noted(person: Person, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What its transport is told of service nodes from now on."""
    told: list[str] = []
    monkeypatch.setattr(person.transport, "add_service_nodes", told.extend)
    return told


async def restart(person: Person, service_nodes: Sequence[str] = ()) -> None:
    await person.engine.stop()
    person.engine = Engine(replace(person.parts, service_nodes=lambda: service_nodes))
    await person.engine.start()


async def test_they_travel_are_asked_for_by_nobody_before_joining_and_stay(
    person: MakePerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await person("Alice"), await person("Bob")
    await restart(alice, NODES)
    of_alice, of_bob = noted(alice, monkeypatch), noted(bob, monkeypatch)
    group = await alice.engine.groups.create("Tide Gauge")
    assert alice.group(group).service_nodes == NODES[:4]
    assert of_alice == list(NODES[:4])
    link = await alice.engine.groups.make_invite_link(group)
    assert bob.engine.groups.preview_invite(link).service_nodes == NODES[:4]
    assert of_bob == []  # looking is not agreeing
    await bob.engine.groups.join(link)
    assert of_bob == list(NODES[:4])
    # Whom Bob invites is told of them too, and Bob himself again after a restart.
    again = parse_invite(await bob.engine.groups.make_invite_link(group))
    assert again.service_nodes == NODES[:4]
    of_bob.clear()
    await restart(bob)
    assert of_bob == list(NODES[:4])
