"""Starting with the session: what is written, read back and taken away, on three systems.

The registry is a dictionary here and the directories are a test's own: neither Windows nor macOS
is asked.
"""

import plistlib
import re
import sys
from pathlib import Path

import pytest

from chat_app.autostart import (
    AutostartEntry,
    LaunchAgent,
    RunValue,
    autostart_here,
    command_line,
    entry_name,
    start_command,
)
from engine.core.errors import SettingsUnwritableError
from ui.desktop.autostart import AutostartPort

COMMAND = ("/opt/Causerie 1/causerie", "--profile", 'o"dd$`\\%name', "--minimised")


class Registry:
    def __init__(self, *, refuses: bool = False) -> None:
        self.values: dict[str, str] = {}
        self._refuses = refuses

    def read(self, name: str, /) -> str | None:
        return self.values.get(name)

    def write(self, name: str, value: str, /) -> None:
        if self._refuses:
            raise PermissionError(13, "Access is denied")
        self.values[name] = value

    def remove(self, name: str, /) -> None:
        if self._refuses:
            raise PermissionError(13, "Access is denied")
        self.values.pop(name, None)


def words_of(entry: str) -> list[str]:
    """The words of Exec, taken apart as the specification of desktop entries says."""
    line = next(line for line in entry.splitlines() if line.startswith("Exec="))
    escapes = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
    text = re.sub(r"\\(.)", lambda one: escapes[one[1]], line.removeprefix("Exec="))
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in quoted]


@pytest.mark.parametrize("way", [AutostartEntry, LaunchAgent])
def test_it_is_switched_on_and_off_and_on_again(
    way: type[AutostartEntry] | type[LaunchAgent], tmp_path: Path
) -> None:
    start = way(tmp_path / "not" / "there", COMMAND)
    other = way(tmp_path / "not" / "there", ("causerie", "--minimised"))
    assert not start.is_on()
    start.switch(on=False)
    for _ in range(2):
        start.switch(on=True)
        assert start.is_on()
        assert not other.is_on(), "each profile has its own"
    assert [file.name for file in start.file.parent.iterdir()] == [start.file.name]
    start.switch(on=False)
    assert not start.is_on()
    assert list(start.file.parent.iterdir()) == []


def test_a_desktop_entry_starts_the_very_command(tmp_path: Path) -> None:
    start = AutostartEntry(tmp_path, COMMAND)
    start.switch(on=True)
    text = start.file.read_text("utf-8")
    assert text.startswith("[Desktop Entry]\nType=Application\n")
    assert words_of(text) == list(COMMAND)


@pytest.mark.parametrize("chosen", [(), ("--profile", "work"), ("--profile-dir", "/srv/maya/w")])
def test_a_program_that_was_moved_finds_the_entry_it_made(
    chosen: tuple[str, ...], tmp_path: Path
) -> None:
    before = AutostartEntry(tmp_path, ("/opt/causerie-0.1/causerie", *chosen, "--minimised"))
    before.switch(on=True)
    now = AutostartEntry(tmp_path, ("/opt/causerie-0.2/causerie", *chosen, "--minimised"))
    assert now.is_on()
    now.switch(on=False)
    assert list(tmp_path.iterdir()) == []


def test_no_name_of_a_directory_adds_a_line_to_the_entry(tmp_path: Path) -> None:
    command = ("causerie", "--profile-dir", "/srv/maya/a\nHidden=true\r\tb", "--minimised")
    start = AutostartEntry(tmp_path, command)
    start.switch(on=True)
    assert start.is_on()
    text = start.file.read_text("utf-8")
    keys = [line.partition("=")[0] for line in text.splitlines()[1:]]
    assert len(keys) == len(set(keys))
    assert words_of(text) == list(command)


def test_a_name_that_no_entry_can_say_is_refused(tmp_path: Path) -> None:
    start = AutostartEntry(tmp_path, ("causerie", "--profile-dir", "/srv/\udcff", "--minimised"))
    with pytest.raises(SettingsUnwritableError, match=re.escape(start.file.name)):
        start.switch(on=True)
    assert not start.is_on()


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled = false"])
def test_what_the_desktop_switched_off_is_off(line: str, tmp_path: Path) -> None:
    start = AutostartEntry(tmp_path, COMMAND)
    start.switch(on=True)
    text = start.file.read_text("utf-8").replace("X-GNOME-Autostart-enabled=true", line)
    start.file.write_text(text, "utf-8")
    assert not start.is_on()
    start.switch(on=True)
    assert start.is_on()


def test_an_agent_is_a_property_list_that_runs_at_login(tmp_path: Path) -> None:
    start = LaunchAgent(tmp_path, COMMAND)
    start.switch(on=True)
    written = plistlib.loads(start.file.read_bytes())
    assert written["ProgramArguments"] == list(COMMAND)
    assert written["RunAtLoad"] is True
    assert start.file.name == f"{written['Label']}.plist"
    start.file.write_bytes(b"\xff no property list")
    assert not start.is_on()


def test_a_run_value_is_one_line_of_which_windows_makes_the_same_words() -> None:
    registry = Registry()
    start = RunValue(registry, COMMAND)
    start.switch(on=True)
    assert start.is_on()
    assert registry.values == {entry_name(COMMAND): command_line(COMMAND)}
    assert command_line(("C:\\Program Files\\c.exe", "--minimised")) == (
        '"C:\\Program Files\\c.exe" --minimised'
    )
    start.switch(on=False)
    assert registry.values == {}


def refusing(tmp_path: Path) -> list[AutostartPort]:
    blocked = tmp_path / "a file"
    blocked.write_text("in the way", "utf-8")
    return [
        AutostartEntry(blocked / "autostart", COMMAND),
        LaunchAgent(blocked / "agents", COMMAND),
        RunValue(Registry(refuses=True), COMMAND),
    ]


def test_a_system_that_refuses_is_an_error_with_its_reason(tmp_path: Path) -> None:
    for start in refusing(tmp_path):
        with pytest.raises(SettingsUnwritableError) as refused:
            start.switch(on=True)
        assert refused.value.reason in {"Access is denied", "Not a directory"}
        assert not start.is_on()


def test_the_command_is_this_profile_minimised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = (sys.executable, "-m", "chat_app")
    assert start_command(None, None) == (*program, "--minimised")
    assert start_command("default", None) == (*program, "--minimised")
    assert start_command("bob", None) == (*program, "--profile", "bob", "--minimised")
    assert start_command(None, tmp_path)[3:] == ("--profile-dir", str(tmp_path), "--minimised")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert start_command("bob", None) == (sys.executable, "--profile", "bob", "--minimised")
    assert entry_name(start_command(None, None)) == "chat.causerie.Causerie"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    here = autostart_here(start_command(None, None))
    here.switch(on=True)
    assert (tmp_path / "autostart" / "chat.causerie.Causerie.desktop").is_file()
