"""Two real processes one to one: loss both ways, each killed once, nothing lost, one order."""

import random
from collections.abc import Callable

from tests.processes.conftest import AppProcess, Line

FAULTS = "loss=0.3,delay=1..20ms,seed=11"
IN_FLIGHT = 40
"""Said and not yet told to be saved, when a process is killed."""


def contact_is(state: str) -> Callable[[Line], bool]:
    return lambda line: line.get("event") == "contact" and line.get("state") == state


def shown(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("own") is False


def held(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("state") == "held"


def friends(
    start_app: Callable[..., AppProcess], faults: str = ""
) -> tuple[AppProcess, AppProcess, str]:
    alice, bob = start_app("alice", faults), start_app("bob", faults)
    link = bob.ask("link", do="link")["link"]
    pair = alice.ask("asked", do="ask", link=link)["group"]
    bob.wait(contact_is("asking"))
    bob.ask("accepted", do="accept", group=pair)
    alice.wait(contact_is("accepted"))
    return alice, bob, pair


def saved_in(lines: list[Line]) -> list[str]:
    return [line["text"] for line in lines if line.get("answer") == "saved"]


def say_all(
    apps: dict[str, AppProcess], pair: str, count: int, kill_at: dict[str, int]
) -> dict[str, list[str]]:
    """Everybody says ``count`` texts, in turns, and is killed once; gives back what was saved."""
    saved: dict[str, list[str]] = {name: [] for name in apps}
    number = dict.fromkeys(apps, 0)
    while any(len(saved[name]) < count for name in apps):
        for name, app in apps.items():
            for _ in range(min(IN_FLIGHT, count - len(saved[name]))):
                app.tell(do="say", group=pair, text=f"{name} {number[name]}")
                number[name] += 1
            wanted = min(IN_FLIGHT, count - len(saved[name]))
            if 0 <= kill_at[name] <= len(saved[name]):
                kill_at[name] = -1
                for _ in range(wanted // 2):
                    line = app.wait(lambda said: said.get("answer") == "saved")
                    saved[name].append(line["text"])
                saved[name] += saved_in(app.kill())
                app.start()
                continue
            for _ in range(wanted):
                line = app.wait(lambda said: said.get("answer") == "saved")
                saved[name].append(line["text"])
    return saved


def all_arrive_once_and_in_order(start_app: Callable[..., AppProcess], count: int) -> None:
    alice, bob, pair = friends(start_app, FAULTS)
    apps = {"alice": alice, "bob": bob}
    rng = random.Random(count)
    kill_at = {name: rng.randrange(count // 4, count // 2) for name in apps}
    saved = say_all(apps, pair, count, kill_at)
    assert set(kill_at.values()) == {-1}, "each was killed"
    for app in apps.values():
        app.ask("saved", do="say", group=pair, text=f"{app.name} ends")
    for app, other in ((alice, "bob ends"), (bob, "alice ends")):
        if not any(shown(other)(line) for line in app.heard):
            app.wait(shown(other))
    logs = {name: app.ask("log", do="log", group=pair)["texts"] for name, app in apps.items()}
    assert logs["alice"] == logs["bob"]
    assert len(logs["alice"]) == len(set(logs["alice"]))
    for name in apps:
        known = set(saved[name])
        assert [text for text in logs["alice"] if text in known] == saved[name]
        own = [
            int(text.split()[1])
            for text in logs["alice"]
            if text.startswith(f"{name} ") and not text.endswith("ends")
        ]
        assert own == sorted(own)


def test_they_meet_by_a_link_and_know_what_was_delivered(
    start_app: Callable[..., AppProcess],
) -> None:
    alice, bob, pair = friends(start_app)
    alice.ask("saved", do="say", group=pair, text="hello Bob")
    bob.wait(shown("hello Bob"))
    bob.ask("saved", do="say", group=pair, text="hello Alice")
    alice.wait(shown("hello Alice"))
    line = bob.wait(held("hello Alice"))
    assert (line["held"], line["of"]) == (1, 1)
    assert alice.stop() == 0
    assert bob.stop() == 0


def test_a_thousand_each_way_with_loss_and_each_killed_once(
    start_app: Callable[..., AppProcess],
) -> None:
    all_arrive_once_and_in_order(start_app, 1_000)
