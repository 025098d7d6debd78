"""What the network settings mean together, up to the node that is made of them."""

import asyncio
from dataclasses import replace

import pytest

from chat_app.compose import Overrides, make_transport, node_settings
from chat_app.effective_network import discovers, listen_host, proxy_of
from chat_app.network_control import NetworkControl
from chat_app.settings import NetworkSettings, Settings
from engine.core.errors import ConfigError, TransportError
from engine.network.discovery.discovery import DiscoveringTransport
from engine.network.node.embedded import tcp_host
from engine.network.transport import TransportRole
from engine.runtime.engine import SavedTransport

PROXY = "socks5://ann:secret@127.0.0.1:9050"
NODE = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
SEED = SavedTransport(network_key=b"k" * 32, remembered_port=None)


@pytest.mark.parametrize(
    ("network", "host", "found"),
    [
        (NetworkSettings(), "0.0.0.0", True),  # noqa: S104 - the point of it
        (NetworkSettings(discovery=False), "0.0.0.0", False),  # noqa: S104 - the point of it
        (NetworkSettings(listen_host="127.0.0.1"), "127.0.0.1", True),
        (NetworkSettings(proxy=PROXY), None, False),
        (NetworkSettings(proxy=PROXY, listen_host="127.0.0.1"), "127.0.0.1", False),
    ],
)
def test_where_one_is_found(network: NetworkSettings, host: str | None, found: bool) -> None:
    settings = Settings(network=network)
    assert listen_host(settings) == host
    assert discovers(settings) == found
    assert (proxy_of(settings) is None) == (not network.proxy)
    transport = make_transport(settings, Overrides(), "ann", SEED)
    assert isinstance(transport, DiscoveringTransport) == found


async def test_behind_a_proxy_a_node_has_no_address_and_dials_nothing_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connections: list[object] = []

    async def noted(_: object, __: object, host: object, *___: object) -> object:
        connections.append(host)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", noted)
    made = node_settings(Settings(network=NetworkSettings(proxy=PROXY)), Overrides(), SEED)
    host = tcp_host(made, made.listen_multiaddr(0))
    await host.start()
    assert not host.addresses()
    for address in ("/dns4/a.example/tcp/1", "/ip4/192.0.2.1/tcp/1/ws", "/dns/b/tcp/1/wss"):
        with pytest.raises(TransportError, match=r"the proxy socks5://127\.0\.0\.1:9050 cannot"):
            await host.connect(address)
    await host.stop()
    assert connections == ["127.0.0.1"] * 3


async def test_another_role_and_other_nodes_are_judged_first_and_hold_from_then_on() -> None:
    control = NetworkControl(NetworkSettings(listen_host="127.0.0.1"))
    await control.change("edge", [NODE])
    assert (control.settings.role, control.settings.service_nodes) == ("edge", (NODE,))
    settings = Settings(network=replace(control.settings, discovery=False))
    transport = make_transport(settings, Overrides(), "ann", SEED, control)
    await transport.start()
    assert transport.status().role is TransportRole.EDGE
    for role, nodes, problem in (
        ("center", [NODE], "must be"),
        ("relay", ["/ip4/192.0.2.1/udp/1"], "no_tcp"),
        ("relay", [NODE.partition("/p2p/")[0]], "peer_not_named"),
        ("relay", [NODE] * 99, "at most"),
    ):
        with pytest.raises(ConfigError, match=problem):
            await control.change(role, nodes)
    assert transport.status().role is TransportRole.EDGE
    changing = asyncio.create_task(control.change("relay", []))
    while not transport.addresses():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    await transport.stop()
    await changing
    assert control.settings.service_nodes == ()


def test_a_password_in_the_settings_is_not_told() -> None:
    settings = Settings(network=NetworkSettings(proxy=PROXY))
    made = node_settings(settings, Overrides(), SEED)
    assert "secret" not in repr(made)
