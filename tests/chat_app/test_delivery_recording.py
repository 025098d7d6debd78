"""Recording is off unless it is wanted; its key is made once, kept and told."""

from pathlib import Path

import pytest

from chat_app.delivery_recording import RecordOptions, make_recorder
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.settings import DEFAULTS, Settings
from chat_app.settings_control import SettingsControl
from chat_app.settings_file import change_setting, write_default
from chat_app.settings_reading import load_settings
from chat_app.window_settings import WindowSettings
from engine.core.errors import ConfigError
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.delivery.pseudonym import Pseudonyms, key_text, mid_of, parse_key


@pytest.fixture
def paths(tmp_path: Path) -> ProfilePaths:
    paths = profile_paths(directory=tmp_path)
    write_default(paths.settings_file)
    return paths


def _settings(paths: ProfilePaths) -> Settings:
    return load_settings(paths.settings_file)


def test_it_is_off_by_default(paths: ProfilePaths) -> None:
    assert make_recorder(paths, DEFAULTS, RecordOptions()) is None
    assert make_recorder(paths, _settings(paths), RecordOptions()) is None
    assert _settings(paths).delivery.key == ""


def test_a_key_is_made_once_kept_and_told(
    paths: ProfilePaths, capsys: pytest.CaptureFixture[str]
) -> None:
    change_setting(paths.settings_file, "delivery", "record", value=True)
    recorder = make_recorder(paths, _settings(paths), RecordOptions())
    assert recorder is not None
    assert recorder.directory == paths.directory / "delivery"
    key = _settings(paths).delivery.key
    parse_key(key)
    assert key in capsys.readouterr().err
    assert make_recorder(paths, _settings(paths), RecordOptions()) is not None
    assert _settings(paths).delivery.key == key
    assert capsys.readouterr().err == ""


def test_the_command_line_names_directory_and_key(
    paths: ProfilePaths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = key_text(bytes(32))
    wish = RecordOptions(wanted=True, directory=tmp_path / "elsewhere", key=key)
    recorder = make_recorder(paths, _settings(paths), wish)
    assert recorder is not None
    assert recorder.directory == tmp_path / "elsewhere"
    assert _settings(paths).delivery.key == ""
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "elsewhere").exists(), "nothing is written before there is an identity"


@pytest.mark.parametrize("text", ["", "short", "k" * 42 + "h", "ä" * 43, key_text(bytes(32)) + "A"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="43 characters"):
        parse_key(text)


def test_the_window_switches_it_on_and_makes_the_key(paths: ProfilePaths) -> None:
    window = WindowSettings(SettingsControl(paths.settings_file, _settings(paths)))
    assert (window.load("record_deliveries"), window.load("delivery_key")) == ("no", "")
    window.save("record_deliveries", "yes")
    key = window.load("delivery_key")
    assert key
    assert _settings(paths).delivery.record
    window.save("record_deliveries", "no")
    window.save("record_deliveries", "yes")
    assert _settings(paths).delivery.key == key


def test_pseudonyms_are_of_one_key_and_one_purpose() -> None:
    one, same, other = (Pseudonyms(bytes([number]) * 32) for number in (1, 1, 2))
    name = "f" * 32
    found = one.participant(ParticipantId(name))
    assert found == same.participant(ParticipantId(name))
    assert len({found, other.participant(ParticipantId(name))}) == 2
    assert one.channel(ConversationId(name)) != found
    assert {len(found), len(one.key_id)} == {16}
    assert int(found, 16) >= 0


def test_a_mid_is_the_head_of_a_sha256() -> None:
    assert mid_of(MessageId("abc")) == int.from_bytes(
        bytes.fromhex("ba7816bf8f01cfea"), signed=True
    )
