"""What the doctor says of service nodes: real ones, on loopback, in a thread of their own."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.compose import build_engine
from chat_app.doctor_network import asked_nodes, node_complaints
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.problems import NoAnswer
from engine.network.edge.check import Checked
from engine.persistence.profile_directory import open_profile_directory
from tests.network.edge.edge_net import EdgeNet
from tests.network.edge.faulty_nodes import peerless
from tests.patience import PATIENCE_S

NOBODY = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


@contextmanager
def serving(clusters: list[int]) -> Iterator[list[str]]:
    """The addresses of a service node in each cluster, while it lasts."""
    loop = asyncio.new_event_loop()
    addresses: list[str] = []
    done, ready = asyncio.Event(), threading.Event()

    async def serve() -> None:
        async with EdgeNet() as net:
            for cluster in clusters:
                node = await net.service_node(cluster=cluster)
                addresses.extend(node.addresses())
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield addresses
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


Doctor = Callable[[str], dict[str, dict[str, object]]]


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    def examine(settings: str) -> dict[str, dict[str, object]]:
        (tmp_path / "settings.toml").write_text(settings, encoding="utf-8")
        main(["--profile-dir", str(tmp_path), "doctor", "--json"])
        said: dict[str, dict[str, object]] = json.loads(capsys.readouterr().out)
        return said

    return examine


def test_each_service_node_is_asked_how_it_is(doctor: Doctor) -> None:
    with serving([42, 43]) as (good, foreign):
        stranger = f"{peerless([good])[0]}/p2p/{foreign.rpartition('/')[2]}"
        nobody = good.replace(good.split("/")[4], "1", 1)
        nodes = json.dumps([good, foreign, stranger, nobody])
        said = doctor(f'[network]\nrole = "edge"\nservice_nodes = {nodes}\n')
    assert said["network"]["role"] == "edge"
    first = said["service_node_1"]
    assert (first["reachable"], first["problem"], first["cluster"]) == (True, "none", 42)
    assert first["protocols"] == "filter, lightpush, relay"
    assert isinstance(first["round_trip_ms"], float)
    assert said["service_node_2"]["problem"] == "it is in cluster 43, this device in cluster 42"
    assert "expected was" in str(said["service_node_3"]["problem"])
    assert said["service_node_4"]["problem"] == "Connection refused"
    attention = "\n".join(said["attention"])
    assert attention.count("Service node /ip4/127.0.0.1/tcp/") == 3
    assert "everything depends on it" in attention


def test_an_edge_device_without_service_nodes_is_told_so(doctor: Doctor) -> None:
    said = doctor('[network]\nrole = "edge"\n')
    assert any("no service node is set" in line for line in said["attention"])
    assert not any("service node" in line for line in doctor("")["attention"])


def test_the_service_nodes_of_groups_are_asked_too(tmp_path: Path, doctor: Doctor) -> None:
    nobody = f"/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}"

    async def scenario() -> None:
        engine = build_engine(
            open_profile_directory(tmp_path),
            Settings(
                network=NetworkSettings(
                    listen_host="127.0.0.1", discovery=False, service_nodes=(nobody,)
                ),
                storage=StorageSettings(key="file"),
            ),
        )
        await engine.start()
        await engine.create_identity("Ann")
        await engine.groups.create("Tide")
        await engine.stop()

    asyncio.run(scenario())
    said = doctor('[storage]\nkey = "file"\n')
    assert said["service_node_1"]["address"] == nobody
    assert said["service_node_1"]["problem"] == "Connection refused"


def test_a_frozen_node_is_waited_for_no_longer_than_said() -> None:
    async def scenario() -> list[Checked]:
        async with EdgeNet() as net:
            node = await net.service_node()
            wire, wired = await net.wire(node)
            wire.freeze()
            settings = Settings(network=NetworkSettings(service_nodes=(wired,)))
            return await asyncio.to_thread(asked_nodes, settings, [wired], timeout_s=0.3)

    (checked,) = asyncio.run(scenario())
    assert (checked.reachable, checked.problem) == (False, NoAnswer(0.3))
    assert len(list(node_complaints(Settings(), [checked]))) == 1
