"""Delta tables, in a directory and in an object store, by the real commands.

They need jars and, for the store, moto's server: ``make test-long`` fetches both.  Where they are
not there these tests fail and say so; they are never left out.
"""

import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from scripts import object_store
from tests.pipeline.test_tables import five_logs

SECRET = "secret-word-of-the-store"  # noqa: S105 - so it is looked for
ROOT = Path(__file__).resolve().parents[2]


def run(
    *words: str | Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *map(str, words), "--master", "local[2]"],
        cwd=ROOT,
        check=False,
        text=True,
        capture_output=True,
        timeout=900,
        env={**os.environ, **(environment or {})},
    )


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 with one bucket, ``there``; what the environment says of it."""
    object_store.ensure_jars()
    object_store.ENVIRONMENT.ensure()
    command: list[str | Path] = [
        object_store.ENVIRONMENT.python,
        "-u",
        "-m",
        "moto.server",
        "-H",
        "127.0.0.1",
        "-p",
        "0",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True) as server:
        try:
            endpoint = _endpoint(server)
            bucket = urllib.request.Request(f"{endpoint}/there", method="PUT")  # noqa: S310 - ours
            urllib.request.urlopen(bucket).close()  # noqa: S310 - likewise
            yield {
                "AWS_ACCESS_KEY_ID": "key-of-the-store",
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": endpoint,
            }
        finally:
            server.terminate()


def _endpoint(server: "subprocess.Popen[str]") -> str:
    """As it says once it listens; what it says later is read and not kept."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        for word in line.split():
            if word.startswith("http://127.0.0.1:"):
                threading.Thread(target=list, args=[server.stdout], daemon=True).start()
                return word
    pytest.fail("".join(said))


@pytest.mark.long
def test_an_object_store_grows_by_a_log_and_says_what_is_wrong(
    store: Mapping[str, str], tmp_path: Path
) -> None:
    logs = five_logs(tmp_path / "logs")
    place = "s3a://there/tables"
    first = run("audit", *logs[:4], "--out", place, environment=store)
    assert first.returncode == 1, first.stderr
    assert "read 4 files: 10 delivery_event" in first.stdout
    second = run("audit", *logs, "--out", place, environment=store)
    assert "read 5 files: 1 delivery_event" in second.stdout, second.stderr
    here = run("audit", *logs, "--out", tmp_path / "out")
    assert verdicts(second.stdout) == verdicts(here.stdout)
    again = run("audit", *logs, "--out", place, environment=store)
    assert "nothing new" in again.stdout

    refused = {
        "s3a://absent/tables": "s3a://absent/tables: there is no such bucket",
        "s3a://there": "s3a://there holds something else (tables): name an empty place",
    }
    for url, line in refused.items():
        done = run("ingest", *logs, "--out", url, environment=store)
        assert (done.returncode, line in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr
    assert SECRET not in "".join(done.stdout + done.stderr for done in (first, second, again))


@pytest.mark.long
def test_delta_in_a_directory_says_the_same_as_parquet(tmp_path: Path) -> None:
    object_store.ensure_jars()
    logs = five_logs(tmp_path / "logs")
    run("ingest", *logs[1:], "--out", tmp_path / "delta", "--tables", "delta")
    grown = run("audit", *logs, "--out", tmp_path / "delta", "--tables", "delta")
    plain = run("audit", *logs, "--out", tmp_path / "plain")
    assert verdicts(grown.stdout) == verdicts(plain.stdout)
    assert (tmp_path / "delta" / "silver" / "entry" / "_delta_log").is_dir()
    other = run("audit", *logs, "--out", tmp_path / "plain", "--tables", "delta")
    assert other.returncode == 2
    assert "are of the format parquet: name another place, or --tables parquet" in other.stderr


def verdicts(told: str) -> str:
    """All that is said of logs, after the line on what was read."""
    read, _, rest = told.partition("\n")
    assert read.startswith("read ")
    assert " logs of channels: " in rest
    return rest
