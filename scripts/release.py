"""The version, which stands in pyproject.toml and nowhere else, and what a release says of itself.

``python -m scripts.release notes`` prints what the changelog has of this version; ``check v0.2.0``
fails unless the tag, pyproject.toml, the changelog and the AppStream metadata agree and the release
has a date, which is the last thing that a release needs.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
METAINFO = Path("packaging") / "linux" / "chat.causerie.Causerie.metainfo.xml"
HEADING = re.compile(r"^## \[([^\]]+)\](?: - (.+))?$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
NOT_YET = "not released yet"


def version(root: Path = ROOT) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def date_of(root: Path = ROOT) -> int:
    """Unix seconds of what is built: as the builder says, else of the commit."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return int(told)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607 -- a build needs git, wherever it is
        cwd=root,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    return int(done.stdout)


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """Date and text by version, newest first."""
    found = list(HEADING.finditer(changelog))
    ends = [match.start() for match in found[1:]] + [len(changelog)]
    return {
        match[1]: (match[2] or "", changelog[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    }


def notes(root: Path = ROOT) -> str:
    """What the changelog says of this version, for the page of its release."""
    changes = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if version(root) not in changes:
        raise SystemExit(f"CHANGELOG.md has no section [{version(root)}]")
    text = changes[version(root)][1]
    # Links to documents lead nowhere on that page, so only their words remain.
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text) + "\n"


def complaints(tag: str, root: Path = ROOT) -> list[str]:
    """Why this may not be released as ``tag``; nothing if it may."""
    ours = version(root)
    found = []
    if tag != f"v{ours}":
        found.append(f"the tag is {tag!r}, and pyproject.toml says {ours}")
    changes = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    date = changes.get(ours, ("", ""))[0]
    if next(iter(changes), "") != ours:
        found.append(f"the first section of CHANGELOG.md is not [{ours}]")
    elif not DATE.fullmatch(date):
        found.append(f"CHANGELOG.md has no date of {ours}: {date or 'nothing'}")
    releases = ET.parse(root / METAINFO).getroot().iter("release")  # noqa: S314 -- our own file
    newest = next(releases)
    if newest.get("version") != ours:
        found.append(f"{METAINFO.name} has {newest.get('version')} first")
    elif newest.get("date") != date:
        found.append(f"{METAINFO.name} and CHANGELOG.md have different dates")
    schema = schema_of(root)
    if not (root / "tests" / "profiles" / f"schema-{schema}.tar.xz").exists():
        found.append(f"no profile of schema {schema} is kept: python -m scripts.profile_fixture")
    return found


def schema_of(root: Path) -> str:
    """The version of the database, read and not imported: this runs without any packages."""
    source = (root / "engine" / "persistence" / "schema.py").read_text(encoding="utf-8")
    found = re.search(r"^SCHEMA_VERSION: Final = (\d+)$", source, re.MULTILINE)
    if found is None:
        raise SystemExit("engine/persistence/schema.py names no SCHEMA_VERSION")
    return found[1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.release", description="version and notes")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the version")
    commands.add_parser("notes", help="print what changed in it")
    commands.add_parser("check", help="whether it may be released").add_argument("tag")
    asked = parser.parse_args(arguments)
    match asked.command:
        case "version":
            print(version())
        case "notes":
            print(notes(), end="")
        case _:
            wrong = complaints(asked.tag)
            for line in wrong:
                print(f"not to be released: {line}", file=sys.stderr)
            return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
