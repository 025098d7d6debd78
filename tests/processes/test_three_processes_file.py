"""A large file between real processes on real sockets: killed in the middle, whole in the end."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes.conftest import AppProcess, Line

MIB = 1024 * 1024
RESETS = "reset=0.2,seed=5"
"""A fifth of all requests for chunks breaks off."""


def random_file(place: Path, size: int) -> Path:
    path = place / "film.bin"
    path.write_bytes(random.Random(size).randbytes(size))
    return path


def about(message_id: str, *states: str) -> Callable[[Line], bool]:
    return lambda line: (
        line.get("event") == "file" and line.get("id") == message_id and line["state"] in states
    )


def until_complete(app: AppProcess, group: str, message_id: str) -> None:
    seen = len(app.heard)
    answer = app.ask("file", do="file", group=group, id=message_id)
    is_complete = about(message_id, "complete")
    if answer["state"] != "complete" and not any(map(is_complete, app.heard[seen:])):
        app.wait(is_complete)


def sent_by_alice(
    start_app: Callable[..., AppProcess], path: Path
) -> tuple[AppProcess, AppProcess, AppProcess, str, str]:
    alice, *others = (start_app(name, RESETS) for name in ("alice", "bob", "carol"))
    created = alice.ask("created", do="create", name="Tide")
    for other in others:
        other.ask("joined", do="join", link=created["link"])
        alice.wait(lambda line: line.get("kind") == "joined")
    group = created["group"]
    message_id = alice.ask("sent_file", do="send_file", group=group, path=str(path))["id"]
    for other in others:
        other.wait(about(message_id, "offered"))
    bob, carol = others
    return alice, bob, carol, group, message_id


def killed_and_complete(
    start_app: Callable[..., AppProcess], place: Path, size: int, kills: int
) -> None:
    path = random_file(place, size)
    alice, bob, carol, group, message_id = sent_by_alice(start_app, path)
    for other in (bob, carol):
        other.ask("fetching", do="fetch", group=group, id=message_id)
    bob.wait(lambda line: line.get("event") == "file" and line["done"] > 0)
    for _ in range(kills):
        for app in (bob, alice, carol):
            app.kill()
            app.start()
    for other in (bob, carol):
        until_complete(other, group, message_id)
        saved = place / f"{other.name}.bin"
        other.ask("saved_file", do="save_file", group=group, id=message_id, path=str(saved))
        assert saved.read_bytes() == path.read_bytes()
    for app in (alice, bob, carol):
        assert app.stop() == 0


def test_a_file_survives_kills_and_resets(
    start_app: Callable[..., AppProcess], tmp_path: Path
) -> None:
    killed_and_complete(start_app, tmp_path, MIB + MIB // 2, kills=1)


@pytest.mark.long
def test_a_file_of_20_mib_survives_kills_and_resets(
    start_app: Callable[..., AppProcess], tmp_path: Path
) -> None:
    killed_and_complete(start_app, tmp_path, 20 * MIB, kills=2)
