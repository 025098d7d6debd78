"""Profile names become directories on three platforms, so little is allowed in them."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.paths import check_profile_name, profile_paths
from engine.core.errors import ConfigError


@pytest.mark.parametrize("name", ["default", "bob", "Bob-2", "a.b", "_", "x" * 40])
def test_ordinary_names_are_taken_as_they_are(name: str) -> None:
    paths = profile_paths(name)
    assert paths.name == paths.directory.name == paths.settings_directory.name == name


@pytest.mark.parametrize(
    "name",
    [
        *["", ".", "..", ".hidden", "-rf", "a.", "x" * 41, "a/b", "a\\b", "a b", "é", "a\n", "a\0"],
        *["con", "NUL", "nul.txt", "Com1", "lpt9.x"],
    ],
)
def test_other_names_are_refused_in_words(name: str) -> None:
    with pytest.raises(ConfigError, match="--profile") as caught:
        check_profile_name(name)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_whatever_is_accepted_is_one_plain_directory_name(name: str) -> None:
    try:
        accepted = check_profile_name(name)
    except ConfigError:
        return
    assert Path(accepted).name == accepted == name
    assert accepted.isascii()


def test_profiles_do_not_share_a_directory() -> None:
    alice, bob = profile_paths("alice"), profile_paths("bob")
    assert alice.directory != bob.directory
    assert alice.settings_file != bob.settings_file
    assert profile_paths() == profile_paths("default")


def test_a_profile_directory_holds_everything(tmp_path: Path) -> None:
    paths = profile_paths(directory=tmp_path / "stick")
    assert paths.name == "stick"
    for place in (paths.directory, paths.settings_file, paths.log_directory):
        assert place.is_relative_to(tmp_path / "stick")
    assert not (tmp_path / "stick").exists()


def test_a_relative_profile_directory_stays_the_same_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = profile_paths(directory=Path("here"))
    monkeypatch.chdir("/")
    assert paths.directory == tmp_path / "here"


def test_name_and_directory_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not both"):
        profile_paths("bob", tmp_path)


if sys.platform == "linux":

    def test_on_linux_the_desktop_standard_is_followed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        paths = profile_paths("bob")
        assert paths.directory == tmp_path / "data" / "causerie" / "profiles" / "bob"
        assert paths.settings_file == (
            tmp_path / "config" / "causerie" / "profiles" / "bob" / "settings.toml"
        )
