"""``causerie node``: what it can be told, and a real process that does it."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from chat_app.__main__ import main
from chat_app.node import open_files
from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.core.ids import ContentTopic
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits, limits_for
from engine.network.waku.filter.client import FilterAnswer, FilterClient
from engine.network.waku.topics import Sharding
from tests.patience import PATIENCE_S

BAD: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    (
        ["--services", "filter,relay"],
        ["'relay'", "filter, lightpush, store, blobs", "none"],
    ),
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
        ((), {"filter", "lightpush", "store", "blobs"}),
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
            with urllib.request.urlopen(metrics[1], timeout=PATIENCE_S) as page:  # noqa: S310 - our own
                text = page.read().decode()
            assert "causerie_connected_peers 0\n" in text
            assert ("causerie_archive_messages" in text) == ("store" in services)
            assert ("causerie_kept_blob_chunks 0\n" in text) == ("blobs" in services)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
    assert (place / "archive.db").exists() == ("store" in services)
    assert (place / "kept").exists() == ("blobs" in services)


# --- how much room there is ---------------------------------------------------------------------


@contextmanager
def node_with(place: Path, section: str) -> Iterator[str]:
    """The address of a node whose settings hold this section."""
    place.mkdir(mode=0o700)
    network = '[network]\nlisten_host = "127.0.0.1"\ndiscovery = false\n'
    (place / "settings.toml").write_text(f"{network}[node]\n{section}\n")
    command = [sys.executable, "-m", "chat_app", "node", "--profile-dir", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.send_signal(signal.SIGINT)


async def subscription(host: TcpHost, address: str) -> FilterAnswer:
    client = FilterClient(
        host, new_request_id=lambda: "one", deliver=lambda _: None, counters=Counters()
    )
    client.start()
    await host.start()
    peer = await host.connect(address)
    topic = ContentTopic("/causerie/1/room/proto")
    return await client.subscribe(peer.peer_id, Sharding().pubsub_topic(topic), [topic])


def test_slots_for_devices_and_subscribers_are_settings(tmp_path: Path) -> None:
    async def come(address: str) -> None:
        hosts = [TcpHost(os.urandom(32), []) for _ in range(3)]
        try:
            assert (await subscription(hosts[0], address)).accepted
            second = await subscription(hosts[1], address)
            assert second.status_code == 503
            assert "as many subscribers as it can" in second.status_desc
            with pytest.raises(TransportError):
                await subscription(hosts[2], address)
        finally:
            for host in hosts:
                await host.stop()

    with node_with(tmp_path / "node", "devices = 2\nsubscribers = 1") as address:
        asyncio.run(come(address))


def test_limits_grow_with_the_devices_and_are_the_usual_ones_by_default() -> None:
    usual, thousand = HostLimits(), limits_for(1_000)
    assert limits_for(usual.max_inbound_connections) == usual
    assert thousand.max_inbound_connections == 1_000
    assert thousand.max_connections - 1_000 == 64  # our own dials keep theirs
    assert thousand.reserved_inbound == 500
    assert thousand.max_handshakes == 333
    assert limits_for(10).max_handshakes == usual.max_handshakes


def node_under(place: Path, soft: int, hard: int, *, devices: int) -> "subprocess.Popen[str]":
    place.mkdir(mode=0o700)
    (place / "settings.toml").write_text(
        f'[network]\nlisten_host = "127.0.0.1"\ndiscovery = false\n[node]\ndevices = {devices}\n'
    )
    script = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$0" "$@"'
    node = [sys.executable, "-m", "chat_app", "node", "--profile-dir", str(place)]
    return subprocess.Popen(
        ["/bin/sh", "-c", script, *node],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_too_few_open_files_for_so_many_devices_are_said_at_the_start(tmp_path: Path) -> None:
    with node_under(tmp_path / "node", 400, 500, devices=1_000) as process:
        watchdog = Timer(PATIENCE_S, process.kill)
        watchdog.start()
        out, said = process.communicate()
        watchdog.cancel()
    assert (process.returncode, out) == (2, "")
    needed = open_files(limits_for(1_000))
    assert said.count("\n") == 1
    for piece in (
        "[node] devices = 1000",
        f"needs {needed} open files",
        "LimitNOFILE",
        "ulimit -n",
    ):
        assert piece in said


def test_a_soft_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    with node_under(tmp_path / "node", 400, 2_000, devices=1_000) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
