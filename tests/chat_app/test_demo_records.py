"""The demo without a window records as the application does, or says that it does not."""

from pathlib import Path

import pytest

from chat_app.__main__ import main
from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, MEMBERSHIP, MESSAGE, Kind, Table
from engine.delivery.pseudonym import key_text, parse_key
from engine.delivery.sqlite_log import LogReader, find_logs

DEMO = ("demo", "--headless", "--participants", "3", "--messages", "8", "--loss", "0.3")


def column(path: Path, table: Table, name: str) -> list[object]:
    with LogReader(path) as log:
        return [value for rows in log.batches(table, [name]) for (value,) in rows]


def test_each_participant_has_a_log_of_the_same_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DEMO, "--record-delivery", str(tmp_path / "logs")]) == 0
    assert f"deliveries are recorded in {tmp_path / 'logs'}" in capsys.readouterr().err
    paths = find_logs(tmp_path / "logs")
    assert len(paths) == 3
    orders = [column(path, LOG_SNAPSHOT, "message_id") for path in paths]
    assert orders[0] == orders[1] == orders[2]
    for path, order in zip(paths, orders, strict=True):
        kinds = column(path, DELIVERY_EVENT, "kind")
        delivered = kinds.count(Kind.DELIVERED.value)
        assert delivered == len(order)
        assert {Kind.STARTED.value, Kind.SENT.value, Kind.RECEIVED.value} <= set(kinds)
        assert set(column(path, MESSAGE, "message_id")) == set(order)
        assert len(set(column(path, MEMBERSHIP, "member"))) == 3
    sent = [value for path in paths for value in column(path, DELIVERY_EVENT, "kind")]
    assert sent.count(Kind.SENT.value) == len(orders[0])


def test_before_or_after_the_command_with_the_key_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(key_text(bytes(range(1, 33))))
    assert main(["--record-delivery-key-file", "key", *DEMO]) == 0
    assert main([*DEMO, "--record-delivery", "plain"]) == 0
    keyed, plain = find_logs(tmp_path / "causerie-demo-logs"), find_logs(tmp_path / "plain")
    assert len(keyed) == len(plain) == 3
    key_ids = []
    for path in (keyed[0], plain[0]):
        with LogReader(path) as log:
            key_ids.append(log.header.key_id)
    assert key_ids[0] != key_ids[1]
    assert parse_key((tmp_path / "key").read_text())


@pytest.mark.parametrize(
    "words", [["demo", "--record-delivery"], ["--record-delivery", "logs", "doctor"]]
)
def test_what_records_nothing_says_so(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("causerie: --record-delivery: ")
    assert said.count("\n") == 1


def test_a_place_that_takes_no_logs_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").touch()
    assert main([*DEMO, "--record-delivery", str(tmp_path / "logs")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
