"""What Windows and macOS build of, as far as it can be looked at here.

Nothing of it was ever run on those systems: docs/packages.md says so.  Looked at are the syntax,
what the files name, and the commands that the forge would run.
"""

import configparser
import plistlib
import re
import tomllib
from pathlib import Path

import pytest

from chat_app.autostart import APPLICATION_ID, RUN_KEY
from engine.core.links import OWN_SCHEME
from engine.network.discovery.announcement import SERVICE_TYPE
from scripts import macos_package, windows_package
from scripts.release import ROOT, version

SCRIPT = windows_package.SCRIPT.read_text(encoding="utf-8")
MACOS = ROOT / "packaging" / "macos"
SCHEME = OWN_SCHEME.rstrip(":")
SPEC = (ROOT / "packaging" / "causerie.spec").read_text(encoding="utf-8")


# --- Windows ------------------------------------------------------------------------------------


def unquoted(value: str) -> str:
    return value[1:-1].replace('""', '"') if value.startswith('"') else value


def lines_of(section: str) -> list[dict[str, str]]:
    """The entries of a section of the script: ``Name: value; Name: value``."""
    text = re.split(r"^\[\w+\]$", SCRIPT.partition(f"[{section}]\n")[2], flags=re.MULTILINE)[0]
    entries = [line for line in text.splitlines() if line and not line.startswith(";")]
    made = []
    for entry in entries:
        parts = re.findall(r'(\w+): ("(?:[^"]|"")*"|[^;"]+)(?:; |$)', entry)
        assert "; ".join(f"{name}: {value}" for name, value in parts) == entry, entry
        made.append({name: unquoted(value) for name, value in parts})
    return made


def setup_section() -> configparser.SectionProxy:
    text = SCRIPT[SCRIPT.index("[Setup]") : SCRIPT.index("[Languages]")]
    parser = configparser.RawConfigParser(comment_prefixes=(";", "#"), strict=True)
    parser.read_string(text)
    return parser["Setup"]


def test_the_installer_needs_no_administrator_and_takes_its_version_from_outside() -> None:
    setup = setup_section()
    assert setup["PrivilegesRequired"] == "lowest"
    assert setup["DefaultDirName"].startswith("{localappdata}\\")
    assert {setup[key] for key in ("AppVersion", "VersionInfoVersion")} == {"{#Version}"}
    assert version() not in SCRIPT
    assert re.fullmatch(r"\d+\.\d+\.\d+", version())  # what VersionInfoVersion takes
    assert setup["OutputBaseFilename"] + ".exe" == windows_package.INSTALLER.replace(
        "{version}", "{#Version}"
    )
    assert re.fullmatch(r"\{\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}", setup["AppId"])


def test_what_the_installer_takes_is_there() -> None:
    names = [entry["Source"] for entry in lines_of("Files")] + [setup_section()["SetupIconFile"]]
    for name in names:
        path = (windows_package.SCRIPT.parent / name.replace("\\", "/")).resolve()
        if path.name == "*":
            assert path.parent == ROOT / "dist" / "causerie"
        else:
            assert path.exists(), name


def test_only_the_users_part_of_the_registry_is_written_and_all_of_it_goes() -> None:
    entries = lines_of("Registry")
    assert {entry["Root"] for entry in entries} == {"HKCU"}
    classes = [entry for entry in entries if entry["Subkey"].startswith(r"Software\Classes")]
    top = rf"Software\Classes\{SCHEME}"
    assert classes[0]["Subkey"] == top
    assert classes[0]["Flags"] == "uninsdeletekey"
    assert all(entry["Subkey"].startswith(top) for entry in classes)
    assert any(entry["ValueName"] == "URL Protocol" for entry in classes)
    (command,) = (e["ValueData"] for e in classes if e["Subkey"].endswith(r"\open\command"))
    assert command == r'"{app}\causerie.exe" "%1"'
    (run,) = (entry for entry in entries if entry not in classes)
    assert (run["Subkey"], run["ValueName"]) == (RUN_KEY, APPLICATION_ID)
    assert run["Flags"].split() == ["dontcreatekey", "uninsdeletevalue"]


def test_the_installer_never_touches_profiles() -> None:
    """They are in causerie of LOCALAPPDATA, the program is in Programs there."""
    assert "[UninstallDelete]" not in SCRIPT
    assert [entry["Name"] for entry in lines_of("InstallDelete")] == [r"{app}\_internal"]
    assert r"{localappdata}\causerie" not in SCRIPT.lower()


def test_a_console_that_was_opened_for_the_window_is_hidden() -> None:
    assert 'hide_console="hide-early" if sys.platform == "win32" else None' in SPEC


def test_the_installer_is_signed_where_a_signer_is_named() -> None:
    bare = windows_package.command("iscc", {})
    assert bare == ["iscc", "/Qp", f"/DVersion={version()}", str(windows_package.SCRIPT)]
    signed = windows_package.command("iscc", {"CAUSERIE_SIGNTOOL": "signtool sign /fd sha256 $f"})
    assert "/DSigned" in signed
    assert "/Scauserie=signtool sign /fd sha256 $f" in signed
    assert setup_section()["SignTool"] == "causerie"


def test_without_inno_setup_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(windows_package.NoInnoSetup, match="Inno Setup 6"):
        windows_package.build(Path("dist"))


# --- macOS --------------------------------------------------------------------------------------


def test_the_bundle_takes_our_links_and_may_use_the_local_network() -> None:
    plist = plistlib.loads((MACOS / "Info.plist").read_bytes())
    (kind,) = plist["CFBundleURLTypes"]
    assert kind["CFBundleURLSchemes"] == [SCHEME]
    assert plist["NSBonjourServices"] == [SERVICE_TYPE.removesuffix(".local.")]
    assert plist["NSLocalNetworkUsageDescription"]
    assert plist["LSBackgroundOnly"] is False
    assert set(plist["CFBundleLocalizations"]) == {"en", "fr"}
    # What stands in one place only.
    assert not {"CFBundleShortVersionString", "CFBundleVersion", "CFBundleIdentifier"} & set(plist)
    assert 'version=project["version"]' in SPEC
    assert f'bundle_identifier="{APPLICATION_ID}"' in SPEC


def test_the_hardened_runtime_is_loosened_in_one_thing_only() -> None:
    entitlements = plistlib.loads(macos_package.ENTITLEMENTS.read_bytes())
    assert entitlements == {"com.apple.security.cs.allow-unsigned-executable-memory": True}


def names(words: list[list[str]]) -> list[str]:
    return [" ".join(one[:2]) if one[0] == "xcrun" else one[0] for one in words]


def test_the_image_is_made_signed_and_notarised_as_far_as_credentials_go() -> None:
    dist, folder = Path("dist"), Path("folder")
    bare = list(macos_package.commands(dist, folder, {}))
    assert names(bare) == ["codesign", "codesign", "hdiutil"]
    assert bare[0][bare[0].index("--sign") + 1] == "-"
    assert "runtime" not in bare[0]
    identity = {"CAUSERIE_CODESIGN_IDENTITY": "Developer ID Application: X"}
    signed = list(macos_package.commands(dist, folder, identity))
    assert names(signed) == ["codesign", "codesign", "hdiutil", "codesign"]
    assert {"runtime", "--timestamp", str(macos_package.ENTITLEMENTS)} <= set(signed[0])
    noted = list(
        macos_package.commands(dist, folder, identity | {"CAUSERIE_NOTARY_PROFILE": "causerie"})
    )
    assert names(noted)[4:] == ["xcrun notarytool", "xcrun stapler"]
    assert noted[-1][-1] == str(macos_package.image(dist))
    assert version() in macos_package.image(dist).name


# --- both ---------------------------------------------------------------------------------------


def test_the_forge_names_no_secret_that_the_scripts_do_not_take() -> None:
    text = (ROOT / ".github" / "workflows" / "packages.yml").read_text(encoding="utf-8")
    taken = set(re.findall(r"CAUSERIE_\w+", text))
    known = set(
        re.findall(
            r"CAUSERIE_\w+",
            "".join(path.read_text(encoding="utf-8") for path in (ROOT / "scripts").glob("*.py")),
        )
    )
    assert taken <= known


def test_the_project_is_the_only_one_that_says_which_version_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for path in (ROOT / "packaging").rglob("*"):
        if path.is_file() and path.suffix in {".spec", ".iss", ".plist", ".sh", ".desktop", ".yml"}:
            assert project["version"] not in path.read_text(encoding="utf-8"), path
