"""Every command in the documents is one that the program, make or Python really has.

Those of ``causerie`` are read by the program's own parser, with their values; what they do is
tested elsewhere.
"""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from chat_app.__main__ import command_line
from engine.core.links import OWN_SCHEME
from engine.delivery.pseudonym import key_text
from pipeline.cli import parser as pipeline_command_line

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`(causerie(?:-pipeline)? [a-z-][^`…|]*)`(?!`)")
_SPAN_OF = r"(?<!`)`(?:xvfb-run -a )?{program} ([^`…]+)`(?!`)"
_WHERE = r"(?:^ *|&& |sudo |\| )(?:\.venv/bin/)?"
LOOKED_AT = ("causerie", "causerie-pipeline", "make", "python -m")
OF_OTHERS = {
    "git clone … && cd causerie": "README.md",
    ".venv/bin/pytest -q tests/core tests/session": "pyproject.toml",
    "sudo systemctl": "tests/scripts/test_node_service.py",
    "journalctl": "tests/scripts/test_node_service.py",
    "sudo sqlite3": "tests/persistence/test_waku_archive.py",
    "sudo apt remove causerie": "tests/scripts/test_clean_root.py",
    "SPARK=": "tests/pipeline/test_spark_elsewhere.py",
    "$SPARK/bin/spark-class": "tests/pipeline/test_spark_elsewhere.py",
    "export AWS_": "tests/pipeline/test_tables_elsewhere.py",
    "docker": "packaging/k8s/Dockerfile",
    "kubectl": "packaging/k8s/pipeline.yaml",
    "export PYSPARK_PYTHON=": "docs/operations.md",
    "spark-submit --master yarn": "docs/operations.md",
}
"""How a line begins that calls another program, and what looks after it or says that it is
unverified."""
PARSERS = {"causerie": command_line, "causerie-pipeline": pipeline_command_line}


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def blocks() -> Iterator[tuple[str, str]]:
    """Document and text of each block of commands; a command that goes on is one line."""
    for path in documents():
        for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
            yield path.name, block.replace("\\\n", " ")


def commands(program: str) -> list[tuple[str, str]]:
    """Document and arguments of each call in a block; with an ellipsis it is no call."""
    pattern = re.compile(rf"{_WHERE}{re.escape(program)}(?= |$)([^|&#\n]*)", re.MULTILINE)
    found: set[tuple[str, str]] = set()
    for name, block in blocks():
        found.update((name, words.strip()) for words in pattern.findall(block) if "…" not in words)
    return sorted(found)


def calls(program: str) -> list[tuple[str, str]]:
    """In blocks, and those between backticks."""
    pattern = re.compile(_SPAN_OF.format(program=re.escape(program)))
    found = set(commands(program))
    for path in documents():
        found.update(
            (path.name, span) for span in pattern.findall(path.read_text(encoding="utf-8"))
        )
    return sorted(found)


def mentions() -> list[str]:
    """What stands between backticks: a command and options of it, but not all that it needs."""
    return sorted(
        {
            span
            for path in documents()
            for span in _SPAN.findall(path.read_text(encoding="utf-8"))
            if OWN_SCHEME not in span
        }
    )


def test_there_are_commands_to_look_at() -> None:
    assert len(commands("causerie")) > 15
    assert len(commands("causerie-pipeline")) > 2
    assert len(calls("make")) > 20
    assert len(calls("python -m")) > 10
    assert len(mentions()) > 20


def test_every_line_of_a_block_is_looked_at() -> None:
    lines = {
        (name, line.strip())
        for name, block in blocks()
        for line in block.splitlines()
        if line.strip()
    }
    begins = (*LOOKED_AT, *OF_OTHERS)
    assert {line for line in lines if not line[1].startswith(begins)} == set()
    for begin, place in OF_OTHERS.items():
        assert any(line.startswith(begin) for _, line in lines), f"{begin} is in no document"
        assert (ROOT / place).is_file()


@pytest.mark.parametrize(
    ("program", "words"),
    sorted({(program, words) for program in PARSERS for _, words in commands(program)}),
)
def test_the_program_takes_what_documents_tell_it(
    program: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "KEYFILE").write_text(key_text(bytes(32)), encoding="utf-8")
    PARSERS[program]().parse_args(shlex.split(words))


@pytest.mark.parametrize("span", mentions())
def test_the_program_has_what_documents_mention(
    span: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = span.split()
    command = [word for word in words[:1] if not word.startswith("-")]
    with pytest.raises(SystemExit) as ended:
        PARSERS[program]().parse_args([*command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for word in words:
        if word.startswith("--"):
            option = re.escape(word.partition("=")[0])
            assert re.search(rf"{option}\b", shown), f"{program} {command} has no {word}"


@pytest.mark.parametrize(("document", "words"), calls("make"))
def test_make_has_the_targets_that_documents_name(document: str, words: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    asked = [word for word in shlex.split(words) if "=" not in word]
    assert set(asked) <= targets, document


def test_the_benchmarks_that_documents_name_are_there() -> None:
    asked = {
        name
        for path in documents()
        for name in re.findall(r"make bench ARGS=\"?([a-z_0-9]+)", path.read_text(encoding="utf-8"))
    }
    assert len(asked) > 8
    assert asked <= set(BENCHMARKS)


@pytest.mark.parametrize(("document", "words"), calls("python -m"))
def test_python_has_the_modules_that_documents_name(document: str, words: str) -> None:
    module, *arguments = shlex.split(words)
    assert find_spec(module) is not None, document
    if module == "benchmarks":
        assert set(arguments) <= set(BENCHMARKS), document
