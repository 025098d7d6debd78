"""What is refused is refused at once, in a line and with exit code 2: Java is not even started."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline import cli
from pipeline.commands import bench
from pipeline.session import SessionSettings
from pipeline.tables.local import MANIFEST


@dataclass(frozen=True)
class Refusal:
    """``words`` of the command line, where ``{}`` is a directory; what is said, as it begins."""

    words: str
    said: str
    out: str = "{}/out"


def nothing_in(place: str) -> str:
    return f"{place}: there is no delivery log and no export of one"


REFUSALS = [
    Refusal("ingest {}/empty", nothing_in("{}/empty")),
    Refusal("audit {}/empty", nothing_in("{}/empty")),
    Refusal("audit {}/empty {}/hidden", nothing_in("{}/empty, {}/hidden")),
    Refusal("audit {}/empty --lake {}/lake", nothing_in("{}/empty")),
    Refusal("report {}/empty", nothing_in("{}/empty")),
    Refusal("report", "report: name the logs, or --compare A B"),
    Refusal("report --compare {}/logs {}/empty", nothing_in("{}/empty")),
    Refusal("stream {}/empty", "{}/file: Not a directory; choose another --out", "{}/file/out"),
    Refusal("stream {}/absent", "{}/absent: no such directory"),
    Refusal("stream {}/file", "{}/file: no such directory"),
    Refusal("simulate --study --loss 0.1", "simulate: --study has its own parameters"),
    Refusal("simulate --seeds 0", "simulate: --seeds is 1 or more"),
    Refusal("simulate --vary nonsense=1", "simulate: no parameter 'nonsense'; there are "),
    Refusal("simulate --loss much", "simulate: loss='much' is not of the kind float"),
    Refusal("simulate --loss 0.1 --vary loss=0.2", "simulate: loss is given twice"),
    Refusal("simulate --seeds 200000", "simulate: 200000 runs are more than 100000"),
    Refusal("bench --events 49999", f"bench: --events is {bench.FEWEST} to {bench.MOST}"),
    Refusal("bench", "bench: {}/measured/events is there already", "{}/measured"),
    Refusal("report {}/logs", "report: --out is a directory; --lake says", "s3a://bucket/place"),
    Refusal("audit {}/empty", "{}/file: Not a directory; choose another --out", "{}/file/out"),
    Refusal("audit {}/empty", "{}/broken/manifest.json cannot be read: ", "{}/broken"),
    Refusal("audit {}/empty", "{}/other/manifest.json is of another format than ", "{}/other"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("empty", "hidden", "logs", "measured/events", "broken", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "hidden" / ".unfinished.jsonl").touch()
    (tmp_path / "file").touch()
    (tmp_path / "logs" / "some.delivery.db").touch()
    (tmp_path / "broken" / MANIFEST).write_text("{", encoding="utf-8")
    (tmp_path / "other" / MANIFEST).write_text('{"format": 0}', encoding="utf-8")
    return tmp_path


def no_java(_: SessionSettings) -> None:
    pytest.fail("Spark is asked for, which takes seconds")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.words)
def test_it_is_said_before_java_starts(
    refusal: Refusal,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "session", no_java)
    words, out, said = (
        text.replace("{}", str(place)) for text in (refusal.words, refusal.out, refusal.said)
    )
    before = sorted(place.rglob("*"))
    assert cli.main([*words.split(), "--out", out]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"causerie-pipeline: {said}"), told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert sorted(place.rglob("*")) == before


USAGE: Sequence[tuple[str, str]] = [
    ("", "the following arguments are required: COMMAND"),
    ("nonsense", "invalid choice: 'nonsense'"),
    ("audit --out x", "the following arguments are required: inputs"),
    ("audit logs", "the following arguments are required: --out"),
    ("audit logs --out x --master a --remote b", "not allowed with argument --master"),
    ("audit logs --out x --grace-ms soon", "argument --grace-ms: invalid int value: 'soon'"),
    ("audit logs --out x --tables csv", "argument --tables: invalid choice: 'csv'"),
    ("report --compare one --out x", "argument --compare: expected 2 arguments"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=[words for words, _ in USAGE])
def test_wrong_words_are_wrong_use(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_nothing_is_an_object_too_where_one_was_asked_for(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "session", no_java)
    junit = place / "ci" / "audit.xml"
    words = ["audit", str(place / "empty"), "--out", str(place / "out"), "--json"]
    assert cli.main([*words, "--junit", str(junit)]) == 2
    assert '"exit_code": 2' in capsys.readouterr().out
    assert junit.exists()
