"""What the documents say is what the project does."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chat_app.settings_file import page

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"```(?:sh)?\n(.*?)```", README, flags=re.DOTALL))
CODE += "\n" + "\n".join(re.findall(r"`([^`\n]+)`", README))


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))


def commands_in_readme() -> list[tuple[str, tuple[str, ...]]]:
    """Subcommand (or nothing) and options of each ``causerie`` line."""
    found = set()
    for line in re.findall(
        r"(?:^|\s|/)causerie((?: [^\n#|&]*)?)(?:#.*)?$", CODE, flags=re.MULTILINE
    ):
        words = line.split()
        subcommand = words[0] if words and not words[0].startswith("-") else ""
        options = tuple(sorted(word.split("=")[0] for word in words if word.startswith("--")))
        found.add((subcommand, options))
    return sorted(found)


def test_the_readme_starts_with_the_two_commands() -> None:
    first = re.search(r"```(?:sh)?\n(.*?)```", README, flags=re.DOTALL)
    assert first
    assert "make run" in first[1]
    assert "make test" in first[1]


def test_every_make_target_in_the_readme_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", CODE))
    assert {"run", "test", "check", "bench", "package"} <= named
    assert named <= make_targets()


def test_every_make_target_is_one_of_the_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == make_targets()
    explained = set(re.findall(r"make ([a-z-]+)", makefile))
    assert make_targets() - {"help"} <= explained


def test_the_readme_names_commands() -> None:
    assert {"", "demo", "doctor", "node"} <= {name for name, _ in commands_in_readme()}


@pytest.mark.parametrize(("subcommand", "options"), commands_in_readme())
def test_every_command_in_the_readme_exists(subcommand: str, options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chat_app", *([subcommand] if subcommand else []), "--help"],
        cwd=ROOT,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    for option in options:
        assert re.search(rf"{option}\b", done.stdout), f"causerie {subcommand} has no {option}"


def test_links_between_documents_lead_somewhere() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        (document, target)
        for document in documents
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert links
    assert [(str(d), link) for d, link in links if not (d.parent / link).exists()] == []


def test_the_settings_page_is_up_to_date() -> None:
    """Else run `make docs`."""
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page()


def test_decisions_are_numbered_without_gaps_and_short() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:4] for path in records] == [f"{n + 1:04}" for n in range(len(records))]
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# "), path
        assert text.count("\n") <= 70, f"{path.name}: a decision fits a page"


def test_one_version_everywhere() -> None:
    metainfo = ROOT / "packaging" / "linux" / "chat.causerie.Causerie.metainfo.xml"
    releases = ET.parse(metainfo).getroot().iter("release")  # noqa: S314 -- our own file
    assert next(releases).get("version") == version()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)
    assert headings[0] in {"Unreleased", version()}


def test_both_licences_are_there_and_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT OR Apache-2.0"
    assert (ROOT / "LICENSE-MIT").read_text(encoding="utf-8").startswith("MIT License")
    assert "Apache License" in (ROOT / "LICENSE-APACHE").read_text(encoding="utf-8")
