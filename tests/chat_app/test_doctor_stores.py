"""What the doctor says of a profile's Stores: each that is on is asked, real ones on loopback."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chat_app.__main__ import main
from chat_app.compose import build_engine
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.persistence.profile_directory import open_profile_directory
from tests.runtime.history.history_stage import StoreNode, until, until_stored

PEER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
NOBODY, OFF = (f"/ip4/127.0.0.1/tcp/{port}/p2p/{PEER}" for port in (1, 2))
SETTINGS = '[storage]\nkey = "file"\n'


async def _profile_with(place: Path, *stores: str, said: int = 0) -> None:
    """``said``: messages that the first Store has of a group."""
    (place / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    engine = build_engine(
        open_profile_directory(place),
        Settings(
            network=NetworkSettings(
                listen_host="127.0.0.1", discovery=False, peers=stores[:1] if said else ()
            ),
            storage=StorageSettings(key="file"),
        ),
    )
    await engine.start()
    await engine.create_identity("Ann")
    for store in stores:
        await engine.history.add_store(store)
    if said:
        await engine.groups.create("Friends")  # Which says that it was created.
        group = (await engine.conversations())[0].conversation_id
        await until(lambda: engine.connection().peers > 0)
        for number in range(said):
            await engine.timeline.send_text(group, f"m {number}")
    if OFF in stores:
        await engine.history.enable_store(OFF, enabled=False)
    await engine.stop()


async def test_each_store_that_is_on_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun, node = datetime.now(tz=UTC), StoreNode(tmp_path, "node")
    good = await node.start()
    await _profile_with(tmp_path, good, NOBODY, OFF, said=3)
    await until_stored(node, 3)
    command = ["--profile-dir", str(tmp_path), "doctor", "--json"]
    assert await asyncio.to_thread(main, command) == 1
    said = json.loads(capsys.readouterr().out)
    first, second, third = (said[f"store_{number}"] for number in (1, 2, 3))
    assert (first["address"], first["reachable"], first["problem"]) == (good, True, "none")
    assert (first["versions"], first["cluster"]) == ("3.0.0, 2.0.0-beta4", 42)
    assert isinstance(first["round_trip_ms"], int)
    assert abs(first["clock_ahead_ms"]) < 15_000
    years = (begun.year, datetime.now(tz=UTC).year)
    assert first["oldest_message"].startswith(tuple(f"{year}-" for year in years))
    assert (second["reachable"], second["problem"]) == (False, "Connection refused")
    assert (third["address"], third["on"]) == (OFF, False)
    assert "reachable" not in third
    assert said["attention"] == [f"Store {NOBODY}: Connection refused."]
    await node.stop()


def test_without_a_usable_store_it_says_what_that_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(_profile_with(tmp_path, NOBODY))
    assert main(["--profile-dir", str(tmp_path), "doctor"]) == 1
    page = capsys.readouterr().out
    assert "No Store that is on can be used" in page
    assert "store 1\n" in page
