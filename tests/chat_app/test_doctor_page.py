"""The page of ``causerie doctor``: people count as groups do, in what is open and what is stuck."""

import asyncio
import json
import os
import time
from pathlib import Path
from random import SystemRandom

import pytest

from chat_app.__main__ import main
from chat_app.compose import open_store
from engine.core.entropy import Entropy
from engine.core.ids import ChannelId, ContentTopic, UnixMs
from engine.core.records import ChannelName
from engine.events import ClockJudged, EngineEvent, MessageAdded
from engine.network.memory import MemoryNetwork
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine, EngineDependencies
from tests.patience import PATIENCE_S

HOUR_MS = 3_600_000


def engine_at(place: Path, network: MemoryNetwork, *, ahead_ms: int = 0) -> Engine:
    directory = open_profile_directory(place)
    return Engine(
        EngineDependencies(
            open_store=lambda: open_store(directory, force_key_file=True),
            make_transport=lambda _seed: network.attach(place.name),
            port_of=lambda _transport: None,
            entropy=Entropy(random_bytes=os.urandom, random_unit=SystemRandom().random),
            now_ms=lambda: UnixMs(time.time_ns() // 1_000_000 + ahead_ms),
        )
    )


async def test_people_and_groups_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = MemoryNetwork()
    ines, bob = (engine_at(tmp_path / name, network) for name in ("ines", "bob"))
    for engine, name in ((ines, "Ines"), (bob, "Bob")):
        await engine.start()
        await engine.create_identity(name)
    await ines.groups.create("Tide")
    await ines.people.add(await bob.people.make_contact_link())
    await ines.stop()
    await bob.stop()
    assert main(["--profile-dir", str(tmp_path / "ines"), "doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["conversations"]["groups"] == 1
    assert said["conversations"]["people"] == 1


async def test_open_channels_are_named_and_said_if_they_cannot_be_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ines = engine_at(tmp_path / "ines", MemoryNetwork())
    await ines.start()
    await ines.create_identity("Ines")
    name = ChannelName(
        channel_id=ChannelId("general"),
        content_topic=ContentTopic("/toy-chat/2/huilong/proto"),
        cluster_id=ines.open_channels.cluster_id(),
    )
    await ines.open_channels.join(name, label="Toy chat", nick="Ines")
    await ines.stop()
    _, page = told(tmp_path / "ines", capsys)
    assert "open channel 1" in page
    assert "/toy-chat/2/huilong/proto" in page
    assert "nothing of it is sent or received" not in page
    settings = tmp_path / "ines" / "settings.toml"
    settings.write_text("[network]\ncluster = 7\n")
    status, page = told(tmp_path / "ines", capsys)
    assert status == 1
    assert "An open channel is on cluster 42, and this device is on 7" in page


def is_asked(event: EngineEvent) -> bool:
    return isinstance(event, MessageAdded) and event.message.text == "what time is it?"


def told(place: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["--profile-dir", str(place), "doctor", *arguments])
    return status, capsys.readouterr().out


async def test_what_a_person_set_and_what_is_said_of_the_clock_are_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = MemoryNetwork()
    ines = engine_at(tmp_path / "ines", network, ahead_ms=-HOUR_MS)
    bob = engine_at(tmp_path / "bob", network)
    judged, shown = asyncio.Event(), asyncio.Event()
    ines.subscribe(lambda event: judged.set() if isinstance(event, ClockJudged) else None)
    bob.subscribe(lambda event: shown.set() if is_asked(event) else None)
    for engine, name in ((ines, "Ines"), (bob, "Bob")):
        await engine.start()
        await engine.create_identity(name)
    group = await ines.groups.create("Tide")
    await bob.groups.join(await ines.groups.make_invite_link(group))
    await ines.timeline.send_text(group, "what time is it?")
    async with asyncio.timeout(PATIENCE_S):
        await shown.wait()
        await bob.timeline.send_text(group, "mine is an hour later")
        await judged.wait()
    await ines.stop()
    await bob.stop()
    status, text = told(tmp_path / "ines", capsys, "--json")
    said = json.loads(text)
    clock = said["clock"]
    assert status == 1
    assert abs(clock["behind_ms"] - HOUR_MS) < 10_000
    assert (clock["says_who"], clock["says_how_many"], clock["of_how_many_heard"]) == ("Bob", 1, 1)
    assert (clock["known_for_a_day"], clock["offset_ms"]) == (False, 0)
    assert said["attention"][-1].endswith(
        "Only Bob says so, whom you have known for less than a day."
    )
    assert any("from the future by this device's clock" in words for words in said["refused"])
    _, page = told(tmp_path / "ines", capsys)
    assert "what was refused or set aside" in page
    assert "messages from the future" in page or "message from the future" in page


async def test_the_offset_in_force_is_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ines = engine_at(tmp_path / "ines", MemoryNetwork())
    await ines.start()
    await ines.create_identity("Ines")
    await ines.set_clock_offset(-HOUR_MS)
    await ines.stop()
    status, text = told(tmp_path / "ines", capsys, "--json")
    clock = json.loads(text)["clock"]
    assert (status, clock["offset_ms"], clock["behind_ms"]) == (0, -HOUR_MS, 0)
    assert clock["in_force"] == "the others' time, 1 h behind this device's, set by hand"
    _, page = told(tmp_path / "ines", capsys)
    assert "the others' time, 1 h behind this device's, set by hand" in page


async def test_a_profile_that_may_only_be_read_is_examined_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "ines"
    ines = engine_at(place, MemoryNetwork())
    await ines.start()
    await ines.create_identity("Ines")
    await ines.stop()

    def seen() -> dict[str, tuple[int, int, int]]:
        found = {str(path): path.stat() for path in place.rglob("*")}
        return {name: (one.st_mode, one.st_size, one.st_mtime_ns) for name, one in found.items()}

    for path in (*place.rglob("*"), place):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = seen()
    status, text = told(place, capsys, "--json")
    after = seen()
    assert {name: after[name] for name in before} == before
    assert status == 0
    assert json.loads(text)["database"]["damaged_pages"] == 0
    for path in (place, *place.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
