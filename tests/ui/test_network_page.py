"""The network's page: what is wrong is named while one types, and Save changes it once."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from chat_app.network_control import NetworkControl
from chat_app.settings import NetworkSettings, load_settings
from chat_app.window_network import WindowNetwork
from engine.core.errors import ConfigError, TransportError, TransportFault
from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionRole, ConnectionView
from tests.ui.driving import play, until
from tests.ui.seeing import words_of
from ui.connection_words import connection_line, connection_reason, shown_level
from ui.controls import ElidedText
from ui.dialogs.network import ROLES, Network
from ui.network_choice import NetworkChoice
from ui.tasks import Tasks
from ui.window.strip import StatusStrip

NODE = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("nonsense", 'must start with "/"'),
        ("/ip4/192.0.2.7/udp/60000/quic-v1", '"/udp" is unsupported'),
        ("/ip4/192.0.2.7/tcp/60000", "/p2p/"),
        ("/ip4/192.0.2.7/tcp/60000/p2p/whoever", '"whoever" is no peer id'),
        ("\n".join([NODE] * 99), "at most"),
    ],
)
def test_a_wrong_address_is_named_while_one_types(typed: str, named: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        port = WindowNetwork(NetworkControl(NetworkSettings()), tmp_path / "settings.toml")
        sheet = Network(port, Tasks())
        assert sheet.confirm.isEnabled()
        sheet.nodes.setPlainText(typed)
        assert named in sheet.problem.text()
        assert not sheet.confirm.isEnabled()
        sheet.nodes.setPlainText(f"  {NODE}\n\n")
        assert sheet.problem.text() == ""
        assert sheet.confirm.isEnabled()
        sheet.deleteLater()

    play(scenario)


def test_save_puts_it_into_force_and_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[network]\nservice_nodes = [  # mine\n\n]\nport = 5\n", encoding="utf-8")

    async def scenario() -> None:
        control = NetworkControl(load_settings(file).network)
        sheet = Network(WindowNetwork(control, file), Tasks())
        answered = asyncio.ensure_future(sheet.answered())
        await asyncio.sleep(0)
        sheet.roles.choose(ROLES.index("edge"))
        assert "nothing can be sent or received" in words_of(sheet)
        sheet.nodes.setPlainText(NODE)
        sheet.confirm.click()
        assert await answered
        assert (control.settings.role, control.settings.service_nodes) == ("edge", (NODE,))

    play(scenario)
    network = load_settings(file).network
    assert (network.role, network.service_nodes, network.port) == ("edge", (NODE,), 5)


def test_what_cannot_be_is_said_in_place_and_nothing_is_closed() -> None:
    class Stubborn:
        def chosen(self) -> NetworkChoice:
            return NetworkChoice(role="edge", service_nodes=(NODE,))

        def problem(self, choice: NetworkChoice, /) -> ConfigError | None:
            del choice
            return None

        async def change(self, choice: NetworkChoice, /) -> None:
            fault = TransportFault.CANNOT_LISTEN
            raise TransportError("not shown", fault, f"{choice.role}: in use")

    async def scenario() -> None:
        sheet = Network(Stubborn(), Tasks())
        sheet.open()
        sheet.roles.choose(1)
        sheet.confirm.click()
        await until(lambda: sheet.problem.text() == "This device cannot listen on relay: in use.")
        assert sheet.isVisible()
        assert sheet.confirm.isEnabled()
        sheet.reject()

    play(scenario)


def test_the_strip_names_service_nodes_and_why_it_is_not_well(qapp: QApplication) -> None:
    del qapp
    poor = ConnectionView(
        level=ConnectionLevel.MINIMAL,
        peers=1,
        reason=ConnectionReason.ONE_SERVICE_NODE,
        bytes_in=0,
        bytes_out=0,
        role=ConnectionRole.EDGE,
    )
    assert shown_level(poor) is ConnectionLevel.MINIMAL
    assert connection_line(poor) == "Limited, 1 service node"
    assert connection_reason(poor) == "Everything depends on one service node."
    strip = StatusStrip()
    strip.resize(1_000, 30)
    strip.show_connection(poor)
    (reason,) = strip.findChildren(ElidedText)
    assert reason.whole_text() == "Everything depends on one service node."
    assert not reason.isHidden()
    strip.resize(500, 30)
    strip.show_connection(poor)
    assert reason.isHidden()
