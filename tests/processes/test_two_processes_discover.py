"""Two real processes that were told of nobody find each other on the network, and chat."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.crypto.links import encode_invite, parse_invite
from engine.network.discovery.interfaces import local_network_addresses
from tests.network.discovery.multicast import require_multicast
from tests.processes.conftest import AppProcess, Line

# On loopback, and as it is out of the box where this machine is on a network.
HOSTS = ["127.0.0.1", *(["auto"] if local_network_addresses() else [])]


def shown(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("own") is False


@pytest.mark.parametrize("listen_host", HOSTS)
def test_they_meet_without_an_address(
    start_app: Callable[..., AppProcess], listen_host: str
) -> None:
    """As two machines with nothing configured do; the invitation names no node."""
    require_multicast("127.0.0.1" if listen_host != "auto" else local_network_addresses()[0])
    alice = start_app("alice", discover_on=listen_host)
    bob = start_app("bob", discover_on=listen_host)
    created = alice.ask("created", do="create", name="Tide")
    invite = parse_invite(created["link"])
    assert invite.node_addresses
    link = encode_invite(replace(invite, node_addresses=()))
    bob.ask("joined", do="join", link=link)
    alice.wait(lambda line: line.get("kind") == "joined")
    alice.ask("saved", do="say", group=created["group"], text="hello Bob")
    bob.wait(shown("hello Bob"))
    bob.ask("saved", do="say", group=created["group"], text="hello Alice")
    alice.wait(shown("hello Alice"))
    counters = [each.ask("counters", do="counters")["counters"] for each in (alice, bob)]
    assert sum(each.get("discovery.heard", 0) for each in counters) >= 1  # one is enough to meet
    assert alice.stop() == 0
    assert bob.stop() == 0
