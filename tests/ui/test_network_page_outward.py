"""The network's page: discovery and the proxy, judged while one types, written down by Save."""

import asyncio
from pathlib import Path

import pytest

from chat_app.network_control import NetworkControl
from chat_app.settings import NetworkSettings, load_settings
from chat_app.window_network import WindowNetwork
from tests.ui.driving import play
from tests.ui.seeing import words_of
from ui.dialogs.network import Network
from ui.tasks import Tasks

TOR = "socks5://127.0.0.1:9050"


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("127.0.0.1:9050", 'Proxy "127.0.0.1:9050": it must look like socks5://127.0.0.1:9050'),
        ("http://127.0.0.1:1", '"http" is no kind of proxy known here'),
        ("socks5://tor.example:1", '"tor.example" is no IP address'),
        ("socks5://127.0.0.1", "the port is missing"),
        ("socks5://ann:hunter2@b:1", 'Proxy "socks5://***@b:1"'),
    ],
)
def test_a_wrong_proxy_is_named_while_one_types(typed: str, named: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        port = WindowNetwork(NetworkControl(NetworkSettings()), tmp_path / "settings.toml")
        sheet = Network(port, Tasks())
        sheet.outward.proxy.setText(typed)
        assert named in sheet.problem.text()
        assert "hunter2" not in sheet.problem.text()
        assert not sheet.confirm.isEnabled()
        sheet.outward.proxy.setText(f" {TOR} ")
        assert sheet.problem.text() == ""
        assert sheet.confirm.isEnabled()
        assert "Everything goes through the proxy" in words_of(sheet)
        sheet.deleteLater()

    play(scenario)


def test_save_writes_them_for_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[network]\nport = 5\n", encoding="utf-8")

    async def scenario() -> None:
        control = NetworkControl(load_settings(file).network)
        sheet = Network(WindowNetwork(control, file), Tasks())
        answered = asyncio.ensure_future(sheet.answered())
        await asyncio.sleep(0)
        sheet.outward.found.choose(1)
        sheet.outward.proxy.setText(TOR)
        sheet.confirm.click()
        assert await answered
        assert (control.settings.discovery, control.settings.proxy) == (False, TOR)

    play(scenario)
    network = load_settings(file).network
    assert (network.discovery, network.proxy, network.port) == (False, TOR, 5)
