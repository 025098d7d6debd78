"""What the documents say is what the project does."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from chat_app.settings_file import page

ROOT = Path(__file__).resolve().parents[2]
MAX_COLUMNS = 120
GENERATED = ("docs/settings.md", "docs/delivery-contract.md", "docs/study/")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"```(?:sh)?\n(.*?)```", README, flags=re.DOTALL))
CODE += "\n" + "\n".join(re.findall(r"`([^`\n]+)`", README))


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))


def test_the_readme_starts_with_the_two_commands() -> None:
    first = re.search(r"```(?:sh)?\n(.*?)```", README, flags=re.DOTALL)
    assert first
    assert "make run" in first[1]
    assert "make test" in first[1]


def test_the_readme_leads_in_with_one_picture_packages_figures_and_limits() -> None:
    before, _, after = README.partition("```sh")
    assert before.count("![") == 1
    assert "![" not in after
    places = [
        after.index(f"## {name}\n") for name in ("Install it", "Read on", "Figures", "Limits")
    ]
    assert places == sorted(places)
    rows = re.findall(
        r"^\|.*\|$", after.partition("## Figures")[2].partition("## ")[0], re.MULTILINE
    )
    assert len(rows) > 6
    assert all("`make bench ARGS=" in row for row in rows[2:]), "a figure has its command"


def test_every_guide_is_one_that_the_readme_leads_to() -> None:
    guides = {path.name for path in (ROOT / "docs" / "guide").glob("*.md")} - {"README.md"}
    assert guides == set(re.findall(r"\(docs/guide/([a-z]+\.md)\)", README))


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


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def prose(document: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a document, without its blocks of code."""
    is_code = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def anchors(document: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = [line.lstrip("# ") for _, line in prose(document) if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (document, target, anchor)
        for document in documents()
        for _, line in prose(document)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", line)
        if "://" not in target
    ]
    assert any(anchor for _, _, anchor in links)
    broken = []
    for document, target, anchor in links:
        found = document.parent / target if target else document
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(f"{document.name}: {target}#{anchor}")
    assert broken == []


def test_modules_that_documents_name_exist() -> None:
    modules = ["/" + str(path.relative_to(ROOT)) for path in ROOT.glob("[a-z]*/**/*.py")]
    gone = [
        f"{document.name}:{number}: {name}"
        for document in documents()
        for number, line in prose(document)
        for name in re.findall(r"`([\w/]+\.py)`", line)
        if not any(module.endswith("/" + name) for module in modules)
    ]
    assert gone == []


def test_functions_that_the_architecture_page_names_are_in_the_module_beside_them() -> None:
    gone, found = [], 0
    for number, line in prose(ROOT / "docs" / "architecture.md"):
        spans = re.findall(r"`([^`]+)`", line)
        paths = [Path(span) for span in spans if span.endswith(".py")]
        if not line.startswith("|") or not paths:
            continue
        # A name without a folder is a neighbour of the one before it.
        modules = [path if len(path.parts) > 1 else paths[0].parent / path for path in paths]
        source = "\n".join((ROOT / module).read_text(encoding="utf-8") for module in modules)
        names = {name for span in spans if not span.endswith(".py") for name in span.split(".")}
        for name in names:
            if re.fullmatch(r"[A-Za-z]?[a-z_]\w*", name):
                found += 1
                if not re.search(rf"\b{name}\b", source):
                    gone.append(f"{number}: {name}")
    assert found > 100
    assert gone == []


def test_prose_is_wrapped() -> None:
    long = [
        f"{document.name}:{number}"
        for document in documents()
        if not str(document.relative_to(ROOT)).startswith(GENERATED)
        for number, line in prose(document)
        if len(line) > MAX_COLUMNS and not line.startswith("|")
    ]
    assert long == []


def test_the_glossary_has_each_term_once_in_order() -> None:
    entries = [line for _, line in prose(ROOT / "docs" / "glossary.md") if line.startswith("**")]
    first = [re.sub(r"\W", "", line.split("**")[1]).lower() for line in entries]
    terms = [
        term
        for line in entries
        for term in re.findall(r"\*\*([^*]+)\*\*", line.split(": ", maxsplit=1)[0])
    ]
    assert first == sorted(first)
    assert len(terms) == len(set(terms))


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


def test_both_licences_are_there_and_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT OR Apache-2.0"
    assert (ROOT / "LICENSE-MIT").read_text(encoding="utf-8").startswith("MIT License")
    assert "Apache License" in (ROOT / "LICENSE-APACHE").read_text(encoding="utf-8")
