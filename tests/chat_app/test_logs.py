"""The log: useful, bounded, private, and silent about what people write."""

import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.logs import FIELDS, JsonLines, PlainWords, logging_to, start_logging
from chat_app.settings import LogSettings
from engine.core.errors import ConfigError, OwnWords, RemoteProtocolError
from engine.core.ids import DeliveryState

WRITTEN = "meet me at the harbour"
log = logging.getLogger("engine.test_logs")
foreign = logging.getLogger("asyncio")


def lines_of(directory: Path) -> list[dict[str, object]]:
    text = (directory / "causerie.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_says_when_how_bad_who_and_what(tmp_path: Path) -> None:
    with logging_to(LogSettings(), tmp_path):
        log.info("Dropped %d of %d.", 2, 5, extra={"reason": "bad_signature", "count": 2})
    (line,) = lines_of(tmp_path)
    assert str(line.pop("time")).endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "engine.test_logs",
        "event": "Dropped 2 of 5.",
        "reason": "bad_signature",
        "count": 2,
    }


def raise_with_the_secret() -> None:
    try:
        int(WRITTEN)
    except ValueError as inner:
        raise RemoteProtocolError("broken", WRITTEN) from inner


def say_as_argument() -> None:
    log.error("Got %s.", WRITTEN)


def say_as_named_argument() -> None:
    log.error("Got %(text)s.", {"text": WRITTEN})


def say_as_bytes() -> None:
    log.error("Got %r.", WRITTEN.encode())


def say_as_unknown_field() -> None:
    log.error("Got it.", extra={"text": WRITTEN})


def say_as_known_field() -> None:
    log.error("Got it.", extra=dict.fromkeys(FIELDS, WRITTEN))


def say_as_exception() -> None:
    try:
        raise_with_the_secret()
    except RemoteProtocolError:
        log.exception("It failed.")


def say_exception_as_message() -> None:
    log.error(ValueError(WRITTEN))


def say_by_another_library() -> None:
    foreign.error("Task failed: %s", WRITTEN)
    foreign.error(WRITTEN)
    foreign.error("x", stack_info=True, extra={"secret": WRITTEN})


WAYS = [
    say_as_argument,
    say_as_named_argument,
    say_as_bytes,
    say_as_unknown_field,
    say_as_known_field,
    pytest.param(say_as_exception, marks=pytest.mark.logs_a_traceback),
    say_exception_as_message,
    say_by_another_library,
]


@pytest.mark.parametrize("say", WAYS, ids=lambda say: say.__name__)
def test_what_people_write_reaches_neither_file_nor_terminal(
    say: Callable[[], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogSettings(level="debug"), tmp_path):
        say()
    assert lines_of(tmp_path), "it must have been logged"
    kept = (tmp_path / "causerie.log").read_text(encoding="utf-8")
    said = capsys.readouterr().err
    assert said.count("causerie: error: ") == len(lines_of(tmp_path))
    for text in (kept, said):
        assert WRITTEN not in text
        assert "harbour" not in text


@pytest.mark.parametrize("arguments", [(WRITTEN,), (1, WRITTEN), ({"text": WRITTEN},)])
def test_a_message_that_does_not_fit_its_arguments_is_kept_unfilled(
    arguments: tuple[object, ...],
) -> None:
    record = log.makeRecord("engine", logging.ERROR, "f", 1, "Got %d.", arguments, None)
    assert json.loads(JsonLines().format(record))["event"] == "Got %d."
    assert WRITTEN not in PlainWords().format(record)


@pytest.mark.logs_a_traceback
def test_an_exception_is_told_by_its_types_and_places(tmp_path: Path) -> None:
    with logging_to(LogSettings(), tmp_path):
        say_as_exception()
    (line,) = lines_of(tmp_path)
    causes = line["causes"]
    assert isinstance(causes, list)
    assert [cause["type"] for cause in causes] == [
        "engine.core.errors.RemoteProtocolError",
        "builtins.ValueError",
    ]
    assert causes[0]["at"][-1].startswith("chat_app/test_logs.py:")
    assert causes[0]["at"][-1].endswith(" raise_with_the_secret")


def test_our_own_constants_are_shown_by_name(tmp_path: Path) -> None:
    with logging_to(LogSettings(), tmp_path):
        log.info("Now %s after %s.", DeliveryState.SENT, None)
    assert lines_of(tmp_path)[0]["event"] == "Now SENT after None."


def test_a_terminal_gets_warnings_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to(LogSettings(), tmp_path):
        log.info("Quiet.")
        log.warning("The port is taken.", extra={"port": 60000})
    assert capsys.readouterr().err == "causerie: warning: The port is taken. (port 60000)\n"


def test_what_is_wrong_with_an_address_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = "192.0.2.1:60000 cannot be used (it is in cluster 16, this node in cluster 42)"
    with logging_to(LogSettings(), tmp_path):
        log.warning("A node gives trouble.", extra={"problem": OwnWords(problem)})
        log.warning("A node gives trouble.", extra={"problem": OwnWords("two\nlines")})
        log.warning("A node gives trouble.", extra={"problem": problem})
    first, second, third = lines_of(tmp_path)
    assert first["problem"] == problem
    assert second["problem"] == "<OwnWords>", "a line stays one line"
    assert third["problem"] == "<str>", "somebody must have said that the words are ours"
    assert problem in capsys.readouterr().err


@given(value=st.text(), name=st.sampled_from(sorted(FIELDS)))
def test_whatever_a_field_holds_a_line_stays_one_line(value: str, name: str) -> None:
    record = log.makeRecord("engine", logging.INFO, "f", 1, "x", (), None, extra={name: value})
    for formatter in (JsonLines(), PlainWords()):
        assert "\n" not in formatter.format(record)
    assert json.loads(JsonLines().format(record))["event"] == "x"


def test_files_turn_over_and_their_number_is_bounded(tmp_path: Path) -> None:
    with logging_to(LogSettings(max_bytes=10_000, keep_files=2), tmp_path):
        for number in range(1000):
            log.info("Line %d.", number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["causerie.log", "causerie.log.1", "causerie.log.2"]
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert lines_of(tmp_path)[-1]["event"] == "Line 999."


def test_log_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with logging_to(LogSettings(max_bytes=10_000), tmp_path / "logs"):
        for number in range(200):
            log.info("Line %d.", number)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "logs").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700


def test_an_old_log_is_continued(tmp_path: Path) -> None:
    for number in (1, 2):
        with logging_to(LogSettings(), tmp_path):
            log.info("Start %d.", number)
    assert [line["event"] for line in lines_of(tmp_path)] == ["Start 1.", "Start 2."]


def test_a_level_in_the_settings_is_kept_to(tmp_path: Path) -> None:
    with logging_to(LogSettings(level="warning"), tmp_path):
        log.info("Quiet.")
        log.warning("Loud.")
    assert [line["event"] for line in lines_of(tmp_path)] == ["Loud."]


def test_stopping_leaves_no_handler_behind(tmp_path: Path) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    start_logging(LogSettings(), tmp_path)()
    assert list(root.handlers) == before
    assert root.level == level


def test_where_no_log_can_be_written_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="the log cannot be written"):
        start_logging(LogSettings(), tmp_path / "file" / "logs")


def test_a_disk_that_fills_up_is_mentioned_once_and_harms_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "causerie.log").symlink_to("/dev/full")
    with logging_to(LogSettings(), tmp_path):
        for number in range(3):
            log.info("Line %d.", number)
    assert capsys.readouterr().err == "causerie: warning: the log cannot be written\n"
