"""Settings while the program runs: one change is one line, and one that is refused is none."""

import os
from pathlib import Path

import pytest

from chat_app.network_control import NetworkControl
from chat_app.settings import DEFAULTS
from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from engine.core.errors import (
    AddressError,
    ConfigError,
    SettingsError,
    SettingsUnwritableError,
    TransportError,
    TransportFault,
)
from engine.network.node.roles import Role, RoleSettings, RoleTransport
from engine.network.node.settings import NodeSettings
from ui.settings_port import SettingName

NODE = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


def made(tmp_path: Path, text: str = "") -> tuple[SettingsControl, NetworkControl, Path]:
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    network = NetworkControl(load_settings(path).network)
    return SettingsControl(path, load_settings(path), network), network, path


async def test_role_and_service_nodes_are_in_force_and_written(tmp_path: Path) -> None:
    control, network, path = made(tmp_path, "[network]\nport = 5\n")
    await control.change(("network", "service_nodes"), (NODE,))
    await control.change(("network", "role"), "edge")
    assert (network.settings.role, network.settings.service_nodes) == ("edge", (NODE,))
    written = load_settings(path).network
    assert (written.role, written.service_nodes, written.port) == ("edge", (NODE,), 5)
    assert control.waiting() == ()


async def test_discovery_and_proxy_hold_for_a_transport_that_is_made_later(tmp_path: Path) -> None:
    control, network, _ = made(tmp_path)
    await control.change(("network", "discovery"), False)
    await control.change(("network", "proxy"), "socks5://127.0.0.1:9050")
    assert not network.settings.discovery
    assert network.settings.proxy == "socks5://127.0.0.1:9050"
    assert control.waiting() == (("network", "discovery"), ("network", "proxy"))
    await control.change(("network", "discovery"), True)
    assert control.waiting() == (("network", "proxy"),)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        (("network", "port"), "80", SettingsError),
        (("network", "port"), 70_000, SettingsError),
        (("network", "port"), True, SettingsError),
        (("network", "service_nodes"), ("/ip4/192.0.2.7/tcp/60000",), AddressError),
        (("appearance", "theme"), "mauve", SettingsError),
        (("nothing", "there"), 1, ConfigError),
    ],
)
async def test_what_is_not_allowed_changes_nothing(
    tmp_path: Path, name: SettingName, value: bool | int | str, kind: type[ConfigError]
) -> None:
    control, _, path = made(tmp_path, "# mine\n")
    with pytest.raises(kind):
        await control.change(name, value)
    assert control.settings == DEFAULTS
    assert path.read_text(encoding="utf-8") == "# mine\n"


def _full(*arguments: object, **named: object) -> int:
    del arguments, named
    raise OSError(28, "No space left on device")


async def test_a_full_disk_leaves_the_network_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, network, path = made(tmp_path, "# mine\n")
    heard: list[SettingName] = []
    control.listen(heard.append)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", _full)
        with pytest.raises(SettingsUnwritableError):
            await control.change(("network", "role"), "edge")
    assert (network.settings.role, control.value(("network", "role"))) == ("auto", "auto")
    assert heard == []
    assert path.read_text(encoding="utf-8") == "# mine\n"
    await control.change(("network", "role"), "edge")
    assert heard == [("network", "role")]


class _NoRelay(RoleTransport):
    async def set_role(self, role: Role) -> None:
        if role is Role.RELAY:
            raise TransportError("in use", TransportFault.CANNOT_LISTEN)


async def test_a_role_that_cannot_be_had_is_not_written(tmp_path: Path) -> None:
    control, network, path = made(tmp_path)
    node = NodeSettings(network_key=bytes(range(32)), listen_host=None)
    network.attach(_NoRelay(RoleSettings(relay=node)))
    with pytest.raises(TransportError):
        await control.change(("network", "role"), "relay")
    assert load_settings(path).network.role == "auto"
    assert control.value(("network", "role")) == "auto"


def test_what_is_not_known_here_stays_in_the_file(tmp_path: Path) -> None:
    """A newer version may know it."""
    text = "[appearance]\nblur = 3  # of a newer version\n\n[sounds]\nloud = true\n"
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    control = SettingsControl(path, DEFAULTS)
    control.write(("appearance", "text_size"), 120)
    after = path.read_text(encoding="utf-8")
    assert after == text.replace("[appearance]\n", "[appearance]\ntext_size = 120\n")
    assert control.trouble is not None


def test_a_comment_behind_a_value_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(
        "[delivery]\nkey = ''  # none # yet\n[log]\nlevel='info'# quiet\n", encoding="utf-8"
    )
    control = SettingsControl(path, DEFAULTS)
    control.write(("delivery", "key"), "A" * 42 + "A")
    control.write(("log", "level"), "debug")
    assert path.read_text(encoding="utf-8") == (
        f'[delivery]\nkey = "{"A" * 43}" # none # yet\n[log]\nlevel = "debug" # quiet\n'
    )


def test_a_listener_hears_of_every_change_until_it_is_called_off(tmp_path: Path) -> None:
    control, _, path = made(tmp_path)
    heard: list[SettingName] = []
    call_off = control.listen(heard.append)
    path.write_text("[privacy]\ntyping = false\n[log]\nkeep_files = 2\n", encoding="utf-8")
    control.reread()
    assert heard == [("privacy", "typing"), ("log", "keep_files")]
    path.write_text("nonsense", encoding="utf-8")
    control.reread()
    assert control.trouble is not None
    assert not control.settings.privacy.typing, "what counted still counts"
    call_off()
    path.write_text("", encoding="utf-8")
    control.reread()
    assert len(heard) == 2


def test_a_key_that_somebody_put_in_the_file_meanwhile_is_the_one_recorded_under(
    tmp_path: Path,
) -> None:
    control, _, path = made(tmp_path)
    path.write_text(f'[delivery]\nkey = "{"A" * 43}"\n', encoding="utf-8")
    path.chmod(0o600)
    control.write(("delivery", "record"), value=True)
    assert load_settings(path).delivery.key == "A" * 43
    assert control.value(("delivery", "key")) == "A" * 43
