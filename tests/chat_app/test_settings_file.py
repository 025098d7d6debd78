"""The settings file's text: what a first start writes, what a change leaves alone."""

import re
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.settings import DEFAULTS, keys_of, sections_of
from chat_app.settings_control import SettingsControl
from chat_app.settings_file import change_setting, default_text, toml_value, write_default
from chat_app.settings_reading import load_settings, parse_settings
from chat_app.window_settings import WindowSettings
from engine.core.errors import ConfigError
from ui.settings import Appearance, UiSettings


def test_the_default_file_means_the_same_as_none_and_names_every_key(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.toml"
    write_default(path)
    assert load_settings(path) == DEFAULTS
    text = path.read_text(encoding="utf-8")
    for section, _ in sections_of(DEFAULTS):
        for key in keys_of(section):
            assert f"\n# {key.name} = {toml_value(key.default)}\n" in text
            assert key.text.split(".")[0].split(" ")[0] in text


def test_the_default_file_with_every_key_switched_on_still_means_the_defaults() -> None:
    switched_on = re.sub(r"(?m)^# ([a-z_]+ = )", r"\1", default_text())
    assert switched_on.count("\nport = ") == 1
    assert parse_settings(switched_on, Path("x")) == DEFAULTS


def test_an_existing_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n", encoding="utf-8")
    write_default(path)
    assert path.read_text(encoding="utf-8") == "# mine\n"


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    write_default(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_default(tmp_path / "file" / "settings.toml")


def test_a_change_takes_the_commented_line_and_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    write_default(path)
    change_setting(path, "appearance", "text_size", 120)
    before, after = default_text().splitlines(), path.read_text(encoding="utf-8").splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("# text_size = 100", "text_size = 120")]
    assert load_settings(path).appearance.text_size == 120


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_change_keeps_the_ends_of_the_lines(tmp_path: Path, ends: bytes) -> None:
    """An editor of Windows wrote it, or one of elsewhere; also where a line or section is new."""
    path = tmp_path / "settings.toml"
    lines = [b"# mine", b"[appearance]", b'theme = "dark"  # of course', b"[storage]", b""]
    path.write_bytes(ends.join(lines))
    change_setting(path, "appearance", "theme", "light")
    change_setting(path, "storage", "keep_days", 3)
    change_setting(path, "log", "keep_files", 7)
    written = path.read_bytes()
    assert written.count(b"\n") == written.count(ends) == 8
    assert b'theme = "light" # of course' in written or b'theme = "light"  # of course' in written
    assert load_settings(path).log.keep_files == 7


def test_a_change_goes_to_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    """Where people keep the settings of all their programs together."""
    kept = tmp_path / "kept" / "causerie.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n", encoding="utf-8")
    path = tmp_path / "settings.toml"
    path.symlink_to(kept)
    change_setting(path, "appearance", "text_size", 120)
    assert path.is_symlink()
    assert kept.read_text(encoding="utf-8") == "# mine\n\n[appearance]\ntext_size = 120\n"


def test_a_file_that_its_owner_made_read_only_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n", encoding="utf-8")
    path.chmod(0o400)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
        change_setting(path, "appearance", "text_size", 120)
    assert path.read_text(encoding="utf-8") == "# mine\n"
    assert [each.name for each in tmp_path.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_no_part_of_a_comment_becomes_a_setting(tmp_path: Path, mark: str) -> None:
    """Python takes these for the end of a line, TOML does not."""
    path = tmp_path / "settings.toml"
    path.write_text(f"[network]\n# once it was{mark}port = 5\n", encoding="utf-8")
    change_setting(path, "appearance", "text_size", 120)
    assert f"# once it was{mark}port = 5\n" in path.read_text(encoding="utf-8")
    assert load_settings(path).network.port == DEFAULTS.network.port


def test_a_second_change_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    for size in (120, 130):
        change_setting(path, "appearance", "text_size", size)
    assert path.read_text(encoding="utf-8").count("text_size = ") == 1
    assert load_settings(path).appearance.text_size == 130


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# only a comment",
        "[appearance]",
        "[ appearance ] # mine\ntheme = 'dark'\n[log]\nkeep_files = 2\n",
        "[log]\nkeep_files = 2\n[appearance]\n",
        "\ufeff[appearance]\r\ntheme = 'dark'\r\n",
    ],
)
def test_a_change_finds_its_place_in_files_that_people_wrote(tmp_path: Path, before: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(before.encode())
    old = load_settings(path)
    change_setting(path, "appearance", "text_size", 90)
    new = load_settings(path)
    assert new.appearance.text_size == 90
    assert new.appearance.theme == old.appearance.theme
    assert new.log == old.log


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [("appearance", "text_size", 300), ("appearance", "size", 100), ("other", "port", 1)],
)
def test_a_change_that_is_not_allowed_leaves_the_file(
    tmp_path: Path, section: str, name: str, value: int
) -> None:
    path = tmp_path / "settings.toml"
    write_default(path)
    with pytest.raises(ConfigError):
        change_setting(path, section, name, value)
    assert path.read_text(encoding="utf-8") == default_text()


def test_a_file_that_is_wrong_is_left_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[network]\nprot = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="prot"):
        change_setting(path, "appearance", "text_size", 90)
    assert path.read_text(encoding="utf-8") == "[network]\nprot = 1\n"


def test_a_spelling_that_cannot_be_changed_in_place_is_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("appearance.text_size = 110\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        change_setting(path, "appearance", "text_size", 90)
    assert path.read_text(encoding="utf-8") == "appearance.text_size = 110\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["settings.toml"]


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_text_survives_the_way_to_toml_and_back(text: str) -> None:
    assert tomllib.loads(f"x = {toml_value(text)}") == {"x": text}


def test_what_the_window_changes_is_there_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    kept = SettingsControl(path, load_settings(path))
    window = UiSettings(load=WindowSettings(kept).load, save=WindowSettings(kept).save)
    assert window.appearance is Appearance.SYSTEM
    window.appearance = Appearance.HIGH_CONTRAST
    window.text_percent = 150
    window.put("show_message_text", "no")
    assert window.notifications
    window.put("notifications", "no")
    assert window.tell_typing
    window.put("tell_typing", "no")
    window.put("tell_presence", "no")
    assert not kept.settings.privacy.presence, "at once"
    assert window.fetch_pictures_below_mb == 2
    window.put("fetch_pictures_below_mb", "0")
    assert kept.settings.privacy.fetch_pictures_below_mb == 0
    assert (window.lock_after_minutes, window.lock_with_screen) == (0, True)
    window.put("lock_after", "15")
    window.put("lock_with_screen", "no")

    settings = load_settings(path)
    assert settings.appearance.theme == "high-contrast"
    again = WindowSettings(SettingsControl(path, settings))
    window = UiSettings(load=again.load, save=again.save)
    assert window.appearance is Appearance.HIGH_CONTRAST
    assert window.text_percent == 150
    assert not window.show_message_text
    assert not window.notifications
    assert not window.tell_typing
    assert not settings.privacy.presence
    assert window.fetch_pictures_below_mb == 0
    assert (window.lock_after_minutes, window.lock_with_screen) == (15, False)


def test_a_window_change_that_cannot_be_kept_does_not_disturb_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    path = tmp_path / "file" / "settings.toml"
    window = UiSettings(save=WindowSettings(SettingsControl(path, DEFAULTS)).save)
    window.text_percent = 150
    assert window.text_percent == 150
