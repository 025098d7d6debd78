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
from engine.core.types import UnixMs
from engine.network.memory import MemoryNetwork
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine, EngineParts
from engine.session.chance import Chance


def engine_at(place: Path, network: MemoryNetwork) -> Engine:
    directory = open_profile_directory(place)
    return Engine(
        EngineParts(
            open_store=lambda: open_store(directory, force_key_file=True),
            make_transport=lambda _seed: network.attach(place.name),
            port_of=lambda _transport: None,
            chance=Chance(random_bytes=os.urandom, random_unit=SystemRandom().random),
            now_ms=lambda: UnixMs(time.time_ns() // 1_000_000),
        )
    )


def test_people_and_groups_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        network = MemoryNetwork()
        ines, bob = (engine_at(tmp_path / name, network) for name in ("ines", "bob"))
        for engine, name in ((ines, "Ines"), (bob, "Bob")):
            await engine.start()
            await engine.create_identity(name)
        await ines.create_group("Tide")
        await ines.add_contact(await bob.make_contact_link())
        await ines.stop()
        await bob.stop()

    asyncio.run(scenario())
    assert main(["--profile-dir", str(tmp_path / "ines"), "doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["conversations"]["groups"] == 1
    assert said["conversations"]["people"] == 1
