"""One version from one place, and what a release says of itself."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from scripts import man_page, release
from scripts.linux_packages import metainfo

ROOT = Path(__file__).resolve().parents[2]
PLACES = (Path("pyproject.toml"), Path("CHANGELOG.md"), release.METAINFO)
SCHEMA = Path("engine") / "persistence" / "schema.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree that may be released: the real files, with a date."""
    for place in (*PLACES, SCHEMA):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    dated(tmp_path, "2026-12-01")
    kept = tmp_path / "tests" / "profiles" / f"schema-{release.schema_of(tmp_path)}.tar.xz"
    kept.parent.mkdir(parents=True)
    kept.touch()
    return tmp_path


def dated(root: Path, date: str) -> None:
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace(release.NOT_YET, date), encoding="utf-8")
    tree = ET.parse(root / release.METAINFO)  # noqa: S314 -- our own file
    newest = next(tree.getroot().iter("release"))
    newest.set("date", date)
    tree.write(root / release.METAINFO)


def test_the_version_stands_in_one_place_and_the_texts_follow() -> None:
    ours = release.version()
    changes = release.sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    first = next(iter(changes))
    assert first == ours
    releases = ET.parse(ROOT / release.METAINFO).getroot().iter("release")  # noqa: S314 -- ours
    assert next(releases).get("version") == ours
    images = [
        image
        for name in (
            "packaging/k8s/Dockerfile",
            "packaging/k8s/pipeline.yaml",
            "docs/operations.md",
        )
        for image in re.findall(
            r"causerie-pipeline:(\S+)", (ROOT / name).read_text(encoding="utf-8")
        )
    ]
    assert set(images) == {ours}


def test_what_agrees_may_be_released(root: Path) -> None:
    ours = release.version(root)
    assert release.complaints(f"v{ours}", root) == []
    assert release.complaints("v9.9.9", root) == [
        f"the tag is 'v9.9.9', and pyproject.toml says {ours}"
    ]


def test_a_release_without_a_date_is_refused(root: Path) -> None:
    ours = release.version(root)
    for place in PLACES[1:]:
        shutil.copy(ROOT / place, root / place)
    dated(root, release.NOT_YET)
    (said,) = release.complaints(f"v{ours}", root)
    assert release.NOT_YET in said


def test_metadata_of_another_day_are_refused(root: Path) -> None:
    text = (root / release.METAINFO).read_text(encoding="utf-8")
    (root / release.METAINFO).write_text(text.replace("2026-12-01", "2026-12-02"), encoding="utf-8")
    (said,) = release.complaints(f"v{release.version(root)}", root)
    assert "different dates" in said


def test_a_schema_of_which_no_profile_is_kept_is_refused(root: Path) -> None:
    text = (root / SCHEMA).read_text(encoding="utf-8")
    (root / SCHEMA).write_text(
        re.sub(r"(VERSION: Final = )\d+", r"\g<1>99", text), encoding="utf-8"
    )
    (said,) = release.complaints(f"v{release.version(root)}", root)
    assert "no profile of schema 99" in said


def test_notes_are_the_section_and_lead_nowhere_that_is_not_there(root: Path) -> None:
    (root / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [{release.version(root)}] - 2026-12-01\n\n### Added\n\n"
        "- A [page](docs/page.md), and [a site](https://example.org/).\n\n"
        "## [0.0.1] - 2026-01-01\n\n- Old.\n",
        encoding="utf-8",
    )
    assert release.notes(root) == "### Added\n\n- A page, and [a site](https://example.org/).\n"


def test_pictures_are_named_only_where_they_can_be_fetched() -> None:
    assert "<screenshots>" not in metainfo("")
    at = "https://forge.example/owner/causerie/raw/0123abcd/docs/images"
    images = [element.text or "" for element in ET.fromstring(metainfo(at)).iter("image")]  # noqa: S314 -- ours
    assert images
    for address in images:
        assert (ROOT / "docs" / "images" / address.removeprefix(at + "/")).exists()
    for bad in ("http://forge.example/x", 'https://forge.example/"><x', "https://", "file:///x"):
        with pytest.raises(SystemExit):
            metainfo(bad)


def test_the_manual_page_is_up_to_date() -> None:
    """Else run `make docs`."""
    assert man_page.PAGE.read_text(encoding="utf-8") == man_page.page()
    for command in ("demo", "doctor", "node", "backup", "salvage"):
        assert f".SS causerie {command}\n" in man_page.page()
    assert "open\\-history" not in man_page.page()
