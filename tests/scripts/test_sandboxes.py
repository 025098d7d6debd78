"""AppImage and Flatpak, as far as they can be looked at without their tools and their servers.

No AppImage and no Flatpak was ever started: docs/packages.md says so.  Looked at are what the
manifest asks for, the layout with a start from it, and the commands.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import linux_packages, sandboxes
from scripts.release import version
from tests.unpacking import unpack

MANIFEST = json.loads(sandboxes.MANIFEST.read_text(encoding="utf-8"))
PROGRAM = '#!/bin/sh\nprintf "%s|" "$0" "$@"\n'
APP = linux_packages.APPLICATION_ID


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is built here is not the project's."""
    monkeypatch.setattr(linux_packages, "BUILD", tmp_path / "build")
    monkeypatch.setattr(sandboxes, "BUILD", tmp_path / "build")
    monkeypatch.setattr(linux_packages, "DIST", tmp_path / "dist")
    monkeypatch.setattr(sandboxes, "DIST", tmp_path / "dist")
    (tmp_path / "dist").mkdir()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "causerie").write_text(PROGRAM)
    (folder / "causerie").chmod(0o755)
    return folder


# --- Flatpak --------------------------------------------------------------------------------------


def test_the_manifest_has_what_a_manifest_needs_and_is_of_our_application() -> None:
    assert MANIFEST["app-id"] == APP
    assert MANIFEST["runtime"] == "org.freedesktop.Platform"
    assert MANIFEST["sdk"] == "org.freedesktop.Sdk"
    assert MANIFEST["command"] == "causerie"
    (module,) = MANIFEST["modules"]
    assert module["buildsystem"] == "simple"
    (source,) = module["sources"]
    assert source["type"] == "archive"
    assert version() not in sandboxes.MANIFEST.read_text(encoding="utf-8")


def test_the_sandbox_has_the_network_and_a_window_and_sees_no_files() -> None:
    asked = set(MANIFEST["finish-args"])
    assert {"--share=network", "--socket=wayland", "--socket=fallback-x11"} <= asked
    kinds = {argument.partition("=")[0] for argument in asked}
    assert kinds == {"--share", "--socket", "--device", "--talk-name"}
    assert "--device=all" not in asked


def test_the_names_on_the_bus_are_those_that_the_program_speaks_to() -> None:
    told = [a.partition("=")[2] for a in MANIFEST["finish-args"] if a.startswith("--talk-name")]
    assert "org.freedesktop.Notifications" in told
    assert "org.freedesktop.secrets" in told
    assert not any("*" in name for name in told)


def test_the_tarball_is_named_by_its_place_and_its_digest(tmp_path: Path) -> None:
    tarball = tmp_path / 'a "tarball" of today.tar.xz'
    tarball.write_bytes(b"packed")
    written = json.loads(sandboxes.write_manifest(tarball).read_text(encoding="utf-8"))
    (source,) = written["modules"][0]["sources"]
    assert source["path"] == str(tarball)
    assert source["sha256"] == hashlib.sha256(b"packed").hexdigest()


def test_its_commands_take_what_the_tarball_has(program: Path, tmp_path: Path) -> None:
    """Run as flatpak-builder runs them: in the unpacked folder, into its prefix."""
    tarball = linux_packages.build_tarball(linux_packages.Program(program, 1_700_000_000, 0))
    source = tmp_path / "source"
    unpack(tarball, source)
    prefix = tmp_path / "app"
    prefix.mkdir()
    for command in MANIFEST["modules"][0]["build-commands"]:
        subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=source / f"causerie-{version()}",
            env={**os.environ, "FLATPAK_DEST": str(prefix)},
            check=True,
        )
    started = subprocess.run(
        [prefix / "bin" / "causerie", "--version"], text=True, capture_output=True, check=True
    )
    assert started.stdout.endswith("|--version|")
    for place in (
        f"applications/{APP}.desktop",
        f"metainfo/{APP}.metainfo.xml",
        f"icons/hicolor/256x256/apps/{APP}.png",
    ):
        assert (prefix / "share" / place).is_file()


# --- AppImage -------------------------------------------------------------------------------------


def test_the_layout_has_entry_icon_and_start_on_top(program: Path) -> None:
    tree = sandboxes.lay_out_app_dir(program)
    top = {path.name for path in tree.iterdir()}
    assert top == {"AppRun", f"{APP}.desktop", f"{APP}.png", ".DirIcon", "usr"}
    assert (tree / ".DirIcon").resolve() == (tree / f"{APP}.png").resolve()
    entry = (tree / f"{APP}.desktop").read_text(encoding="utf-8")
    assert f"Icon={APP}\n" in entry
    metainfo = tree / "usr" / "share" / "metainfo"
    assert (metainfo / f"{APP}.appdata.xml").resolve() == metainfo / f"{APP}.metainfo.xml"


def test_it_starts_wherever_it_is_mounted_with_what_it_was_given(
    program: Path, tmp_path: Path
) -> None:
    tree = sandboxes.lay_out_app_dir(program)
    moved = tmp_path / "some where"
    tree.rename(moved)
    (tmp_path / "link").symlink_to(moved / "AppRun")
    started = subprocess.run(
        [tmp_path / "link", "--profile", "two words", ""],
        text=True,
        capture_output=True,
        check=True,
        cwd="/",
    )
    given = started.stdout.split("|")
    assert given == [f"{moved}/usr/lib/causerie/causerie", "--profile", "two words", "", ""]


def test_without_its_tool_the_layout_is_there_and_that_is_said(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert sandboxes.build_app_image(program) is None
    assert "appimagetool is not here" in capsys.readouterr().out


def test_with_its_tool_it_is_packed_with_the_runtime_that_is_named(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "appimagetool").write_text(
        '#!/bin/sh\nfor target in "$@"; do :; done\n'
        'printf "%s|" "$SOURCE_DATE_EPOCH" "$@" > "$target"\n'
    )
    (tools / "appimagetool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("CAUSERIE_APPIMAGE_RUNTIME", "/a/runtime")
    made = sandboxes.build_app_image(program)
    assert made is not None
    assert made.name.endswith(".AppImage")
    assert version() in made.name
    epoch, *words = made.read_text().rstrip("|").split("|")
    assert int(epoch) > 0
    assert words[:3] == ["--no-appstream", "--runtime-file", "/a/runtime"]
    assert words[-1] == str(made)
