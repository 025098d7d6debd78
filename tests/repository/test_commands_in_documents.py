"""Every command in the documents is one that the program, make or Python really has.

Those of ``causerie`` are read by the program's own parser, with their values; what they do is
tested elsewhere.
"""

import re
import shlex
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
_WHERE = r"(?:^ *|&& |sudo |\| )(?:\.venv/bin/)?"
PARSERS = {"causerie": command_line, "causerie-pipeline": pipeline_command_line}


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def commands(program: str) -> list[tuple[str, str]]:
    """Document and arguments of each call in a block; with an ellipsis it is no call."""
    pattern = re.compile(rf"{_WHERE}{re.escape(program)}(?= |$)([^|&#\n]*)", re.MULTILINE)
    found: set[tuple[str, str]] = set()
    for path in documents():
        for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
            calls = pattern.findall(block.replace("\\\n", " "))
            found.update((path.name, words.strip()) for words in calls if "…" not in words)
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
    assert len(commands("make")) > 10
    assert len(commands("python")) > 2
    assert len(mentions()) > 20


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


@pytest.mark.parametrize(("document", "words"), commands("make"))
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


@pytest.mark.parametrize(("document", "words"), commands("python"))
def test_python_has_the_modules_that_documents_name(document: str, words: str) -> None:
    flag, module, *_ = shlex.split(words)
    assert flag == "-m", document
    assert find_spec(module) is not None, document
