"""The forge's workflows: our own rules hold, and each of them notices who breaks it."""

import re
from pathlib import Path

import pytest

from scripts import workflows

ROOT = Path(__file__).resolve().parents[2]
TEXTS = workflows.read(ROOT)
PIN = "actions/checkout@" + "0123456789abcdef0123" * 2


def test_the_workflows_keep_the_rules() -> None:
    assert set(TEXTS) == {"check.yml", "packages.yml", "release.yml"}
    assert list(workflows.complaints(TEXTS)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("permissions: {}\n- uses: some/action@v4\n", "not pinned by a commit"),
        ("permissions: {}\n- uses: some/action@0123abcd # v1.0.0\n", "not pinned by a commit"),
        (f"permissions: {{}}\n- uses: {PIN}\n  persist-credentials: false\n", "which version"),
        (f"permissions: {{}}\n- uses: {PIN} # v1.0.0\n", "leaves its token behind"),
        ("jobs:\n", "says nothing of its rights"),
        ("permissions: write-all\n", "asks for all rights"),
        ('permissions: {}\n  - run: echo "${{ github.head_ref }}"\n', "gets into a shell"),
        ("permissions: {}\n  - run: |\n      a\n      b ${{ github.actor }}\n", "into a shell"),
        ("permissions: {}\non:\n  pull_request_target:\n", "code of others"),
    ],
)
def test_who_breaks_a_rule_is_named(text: str, said: str) -> None:
    (found,) = workflows.complaints({"x.yml": text})
    assert found.startswith("x.yml: ")
    assert said in found


def test_one_action_has_one_version_everywhere() -> None:
    used = {
        tuple(re.split("@| # ", line))
        for text in TEXTS.values()
        for line in re.findall(r"uses: (actions/\S+ # \S+)", text)
    }
    assert len({name for name, *_ in used}) == len(used)


def test_what_workflows_run_of_ours_exists() -> None:
    text = "\n".join(TEXTS.values())
    modules = set(re.findall(r"python -m (scripts\.\w+)", text))
    assert {"scripts.package", "scripts.smoke", "scripts.release"} <= modules
    for module in modules:
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module
    for path in re.findall(r"-r (requirements/\S+)", text):
        assert (ROOT / path).exists()
    targets = set(re.findall(r"\bmake ([a-z-]+)", text))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets <= set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
