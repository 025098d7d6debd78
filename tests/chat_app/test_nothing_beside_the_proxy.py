"""With a proxy set nothing leaves beside it, in any role of the program's own transport."""

import asyncio

import pytest

from chat_app.compose import Overrides, make_transport
from chat_app.settings import NetworkSettings, Settings
from engine.runtime.engine import SavedTransport
from tests.patience import PATIENCE_S

PEER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
PROXY = "socks5://ann:secret@127.0.0.1:9050"
SEED = SavedTransport(network_key=b"k" * 32, remembered_port=None)


@pytest.mark.parametrize("role", ["auto", "relay", "edge"])
async def test_behind_a_proxy_everything_that_leaves_goes_to_it(
    monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """The whole transport of the program, in each role, with everything that it may dial."""
    left: list[object] = []
    dialled = asyncio.Event()

    async def connect(_: object, __: object, host: object, *___: object, **____: object) -> None:
        left.append(host)
        if len(left) > 5:
            dialled.set()
        raise ConnectionRefusedError(111, "refused")

    async def other(_: object, *what: object, **___: object) -> None:
        left.append(what)
        raise OSError(1, "not allowed")

    loop = asyncio.BaseEventLoop
    monkeypatch.setattr(loop, "create_connection", connect)
    for name in ("getaddrinfo", "create_datagram_endpoint", "create_server"):
        monkeypatch.setattr(loop, name, other)
    node = f"/dns4/a.example/tcp/1/p2p/{PEER}"
    network = NetworkSettings(proxy=PROXY, role=role, service_nodes=(node,), cluster=42)
    transport = make_transport(Settings(network=network), Overrides(), "ann", SEED)
    await transport.start()
    transport.add_peers([node, f"/ip4/192.0.2.1/tcp/1/ws/p2p/{PEER}"])
    transport.try_peers([f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}"])
    transport.add_service_nodes([f"/dns/b.example/tcp/1/wss/p2p/{PEER}"])
    assert not transport.addresses()
    async with asyncio.timeout(PATIENCE_S):
        await dialled.wait()
    await transport.stop()
    assert set(left) == {"127.0.0.1"}
