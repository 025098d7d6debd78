"""Where secrets of a user may stand: in files that only they can read, and on no command line."""

import os
import stat
import sys
from io import StringIO
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.settings_file import change_setting
from chat_app.settings_reading import load_settings
from engine.core.errors import ConfigError
from engine.delivery.pseudonym import KEY_BYTES, key_text
from tests.security.stage import figure

PROXY = "socks5://ines:hunter2@127.0.0.1:9050"
KEY = key_text(bytes(range(KEY_BYTES)))


def settings_file(place: Path, text: str, mode: int) -> Path:
    path = place / "settings.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
@pytest.mark.parametrize("command", ["doctor", "node"])
def test_a_password_that_others_can_read_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, mode: int
) -> None:
    path = settings_file(tmp_path, f'[network]\nproxy = "{PROXY}"\n', mode)
    said = complaint(capsys, "--profile-dir", str(tmp_path), command)
    for piece in (f"{path}:2", "[network] proxy", f"{mode:04o}", f"chmod 600 {path}"):
        assert piece in said
    assert "hunter2" not in said
    figure(said)


@pytest.mark.parametrize(
    ("proxy", "mode"), [(PROXY, 0o600), ("socks5://127.0.0.1:9050", 0o644), ("", 0o644)]
)
def test_without_a_password_or_readers_nothing_is_refused(
    tmp_path: Path, proxy: str, mode: int
) -> None:
    path = settings_file(tmp_path, f'[network]\nproxy = "{proxy}"\n', mode)
    assert load_settings(path).network.proxy == proxy


def test_the_key_of_recorded_deliveries_is_a_secret_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"settings\.toml:2: \[delivery\] key is a secret"):
        load_settings(settings_file(tmp_path, f'[delivery]\nkey = "{KEY}"\n', 0o644))


def test_what_we_write_only_its_owner_can_read(tmp_path: Path) -> None:
    path = settings_file(tmp_path, "", 0o666)
    left_behind = path.with_name(f"{path.name}.{os.getpid()}.new")
    left_behind.touch(mode=0o666)
    change_setting(path, "network", "proxy", PROXY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_settings(path).network.proxy == PROXY


def test_a_key_on_the_command_line_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("--record-delivery-key", KEY), (f"--record-delivery-key={KEY}",)):
        said = complaint(capsys, *arguments)
        assert "--record-delivery-key-file FILE" in said
        assert KEY not in said


@pytest.mark.parametrize("text", ["", "no key", "\N{SNOWMAN}", "A" * 100_000])
def test_a_file_without_a_key_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "key"
    path.write_text(text, encoding="utf-8")
    assert str(path) in complaint(capsys, "--record-delivery-key-file", str(path))
    assert "absent" in complaint(capsys, "--record-delivery-key-file", str(tmp_path / "absent"))


def test_a_key_comes_from_a_file_or_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are taken: what is wrong then is the next thing on the line."""
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n", encoding="ascii")
    monkeypatch.setattr(sys, "stdin", StringIO(f"{KEY}\n"))
    for source in (str(path), "-"):
        said = complaint(capsys, "--record-delivery-key-file", source, "--port", "x")
        assert "--port" in said
