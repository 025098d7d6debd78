"""``causerie node``: what it can be told, and a real process that does it."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from chat_app.__main__ import main

BAD: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    (["--services", "filter,relay"], ["--services", "'relay'", "filter, lightpush, store", "none"]),
    (["--services", ""], ["--services", "''"]),
    (["--ws-port", "70000"], ["--ws-port", "'70000'", "0 to 65535"]),
    (["--metrics-port", "x"], ["--metrics-port", "'x'"]),
    (["--archive-days", "-1"], ["--archive-days"]),
    (["--archive-mib", "1e9"], ["--archive-mib", "'1e9'"]),
    (["--ws-port", "9000", "--metrics-port", "9000"], ["--metrics-port 9000", "--ws-port"]),
)


@pytest.mark.parametrize(("arguments", "pieces"), BAD)
def test_bad_options_are_one_line_that_names_them(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], pieces: Sequence[str]
) -> None:
    assert main(["node", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    for piece in pieces:
        assert piece in said.err


@pytest.mark.parametrize(
    ("arguments", "services"),
    [
        ((), {"filter", "lightpush", "store"}),
        (("--services", "store,filter"), {"filter", "store"}),
        (("--services", "none"), set()),
    ],
)
def test_a_node_says_where_it_listens_and_serves_what_it_was_told(
    tmp_path: Path, arguments: Sequence[str], services: set[str]
) -> None:
    place = tmp_path / "node"
    settings = place / "settings.toml"
    place.mkdir(mode=0o700)
    settings.write_text('[network]\nlisten_host = "127.0.0.1"\ndiscovery = false\n')
    command = [sys.executable, "-m", "chat_app", "node", "--profile-dir", str(place)]
    more = ["--ws-port", "0", "--metrics-port", "0"]
    with subprocess.Popen(
        [*command, *more, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            metrics = re.fullmatch(
                r"metrics on (http://127\.0\.0\.1:\d+/metrics)\n", process.stdout.readline()
            )
            plain, websocket = process.stdout.readline(), process.stdout.readline()
            assert re.fullmatch(r"listening on /ip4/127\.0\.0\.1/tcp/\d+/p2p/\w+\n", plain)
            assert re.fullmatch(r"listening on /ip4/127\.0\.0\.1/tcp/\d+/ws/p2p/\w+\n", websocket)
            assert metrics is not None
            with urllib.request.urlopen(metrics[1], timeout=60) as page:  # noqa: S310 - our own
                text = page.read().decode()
            assert "causerie_connected_peers 0\n" in text
            assert ("causerie_archive_messages" in text) == ("store" in services)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert (place / "archive.db").exists() == ("store" in services)
