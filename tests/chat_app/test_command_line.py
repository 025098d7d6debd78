"""What the command line says to bad input: one line that names it, and exit status 2."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.display import require_display
from chat_app.window import WindowOptions, require_free_port
from engine.codec.invite import read_invite
from engine.core.errors import InviteError, TransportError
from engine.core.invite import MAX_LINK_CHARACTERS
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from scripts import release

BAD: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    (["bogus"], ["bogus", "demo", "doctor", "node"]),
    (["--prot", "1"], ["'--prot'", "did you mean --port?"]),
    (["doctor", "--xyzzy=3"], ["'--xyzzy'", "--json"]),
    (["--foo"], ["'--foo'", "--faults", "--port", "--profile"]),
    (["doctor", "--jsno"], ["did you mean --json?"]),
    (["-x"], ["-x"]),
    (["--port"], ["--port", "expected one argument"]),
    (["--port", "abc"], ["--port", "'abc'", "0 to 65535"]),
    (["--port", "65536"], ["--port", "65536", "0 to 65535"]),
    (["--faults", ""], ["--faults", "loss=0.3"]),
    (["--faults", "loss=2"], ["--faults", "loss=2.0", "0 to 1"]),
    (["--faults", "rain"], ["--faults", "'rain'", "allowed"]),
    (["--profile", "../x"], ["'../x'", "A-Z"]),
    (["--profile", ""], ["''", "1 to 40"]),
    (["--profile-dir", ""], ["--profile-dir", "directory"]),
    (["--profile", "a", "--profile-dir", "b", "doctor"], ["--profile-dir", "not both"]),
    (["demo", "--participants", "1"], ["--participants", "2 to 64"]),
    (["demo", "--loss", "nan"], ["--loss", "0 to 0.9"]),
    (["demo", "--json"], ["--json", "--headless"]),
    (["node", "--listen", "foo"], ["--listen", "'foo'", "127.0.0.1"]),
    (["doctor", "more"], ["more"]),
    (["watch", "--profile-dir", "/nowhere"], ["watch: no window", "start causerie first"]),
    (["causerie:join/a", "causerie:join/b"], ["one link"]),
    (["doctor", "causerie:join/a"], ["doctor", "opens no link"]),
)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("causerie: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(("arguments", "pieces"), BAD)
def test_bad_arguments_are_one_line_that_names_them(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], pieces: Sequence[str]
) -> None:
    said = complaint(capsys, *arguments)
    for piece in pieces:
        assert piece in said


@pytest.mark.parametrize(
    "order", [("--profile-dir", "{}", "doctor"), ("doctor", "--profile-dir", "{}")]
)
def test_a_profile_counts_before_a_command_and_after_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, order: Sequence[str]
) -> None:
    place = tmp_path / "nobody"
    said = complaint(capsys, *(word.format(place) for word in order))
    assert str(place) in said


def test_a_file_in_place_of_the_profile_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert str(place) in complaint(capsys, "--profile-dir", str(place))
        assert str(place) in complaint(capsys, "node", "--profile-dir", str(place))


def test_a_profile_in_use_and_a_bad_setting_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    place = tmp_path / "ines"
    with ProfileLock(open_profile_directory(place)):
        assert "in use" in complaint(capsys, "--profile-dir", str(place))
    (place / "settings.toml").write_text("[network]\nprot = 1\n")
    said = complaint(capsys, "--profile-dir", str(place))
    assert f"{place / 'settings.toml'}:2" in said
    assert "did you mean port?" in said


def test_a_taken_port_is_found_out_before_there_is_a_window() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"port {port}"):
            asyncio.run(require_free_port("127.0.0.1", port))
    asyncio.run(require_free_port("127.0.0.1", port))
    asyncio.run(require_free_port("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("display", "wayland"), [("", ""), (":4242", ""), ("", "wayland-4242"), ("not a display", "")]
)
def test_a_display_that_is_not_there_is_said_and_not_tried(
    monkeypatch: pytest.MonkeyPatch, display: str, wayland: str
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("WAYLAND_DISPLAY", wayland)
    with pytest.raises(TransportError):
        require_display()


def test_a_platform_that_was_chosen_needs_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    require_display()


def test_a_link_that_is_far_too_long_is_cut_where_the_window_still_sees_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[str] = []

    def open_window(paths: object, options: WindowOptions) -> int:
        del paths
        given.append(options.link)
        return 0

    monkeypatch.setattr("chat_app.starting.open_window", open_window)
    assert main(["causerie:join/" + "x" * 1_000_000, "--profile-dir", str(tmp_path)]) == 0
    with pytest.raises(InviteError):
        read_invite(given[0])
    assert len(given[0]) == MAX_LINK_CHARACTERS + 1


def test_its_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"causerie {release.version()}\n"
