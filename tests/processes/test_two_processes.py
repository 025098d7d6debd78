"""Two real processes on real sockets: they chat, one is killed while it sends, nothing is lost."""

import random
from collections.abc import Callable

from tests.processes.conftest import AppProcess, Line


def shown(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("own") is False


def held(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text and line.get("state") == "held"


def together(
    start_app: Callable[..., AppProcess], faults: str = ""
) -> tuple[AppProcess, AppProcess, str]:
    alice, bob = start_app("alice", faults), start_app("bob", faults)
    created = alice.ask("created", do="create", name="Tide")
    bob.ask("joined", do="join", link=created["link"])
    alice.wait(lambda line: line.get("kind") == "joined")
    return alice, bob, created["group"]


def test_they_chat_both_ways_and_know_who_holds_what(
    start_app: Callable[..., AppProcess],
) -> None:
    alice, bob, group = together(start_app)
    alice.ask("saved", do="say", group=group, text="hello Bob")
    bob.wait(shown("hello Bob"))
    bob.ask("saved", do="say", group=group, text="hello Alice")
    alice.wait(shown("hello Alice"))
    line = bob.wait(held("hello Alice"))
    assert (line["held"], line["of"]) == (1, 1)
    assert alice.stop() == 0
    assert bob.stop() == 0


def test_killed_while_sending_what_was_shown_as_saved_arrives_once_and_in_order(
    start_app: Callable[..., AppProcess],
) -> None:
    alice, bob, group = together(start_app)
    rng = random.Random(20)
    saved: list[str] = []
    number = 0
    for _ in range(3):
        for _ in range(60):
            alice.tell(do="say", group=group, text=f"message {number}")
            number += 1
        until = len(saved) + rng.randrange(5, 40)
        while len(saved) < until:
            saved.append(alice.wait(lambda line: line.get("answer") == "saved")["text"])
        saved += [line["text"] for line in alice.kill() if line.get("answer") == "saved"]
        number = int(saved[-1].split()[1]) + 60
        alice.start()
    alice.ask("saved", do="say", group=group, text="the end")
    bob.wait(shown("the end"))
    texts = bob.ask("log", do="log", group=group)["texts"]
    assert len(texts) == len(set(texts))
    assert [text for text in texts if text in set(saved)] == saved
    assert alice.ask("log", do="log", group=group)["texts"] == texts


def test_the_receiver_killed_and_away_gets_everything_when_it_is_back(
    start_app: Callable[..., AppProcess],
) -> None:
    alice, bob, group = together(start_app)
    bob.kill()
    expected = [f"while away {number}" for number in range(30)]
    for text in expected:
        alice.ask("saved", do="say", group=group, text=text)
    bob.start()
    bob.wait(shown(expected[-1]))
    assert bob.ask("log", do="log", group=group)["texts"] == expected


def test_loss_delay_duplicates_and_reordering_between_processes(
    start_app: Callable[..., AppProcess],
) -> None:
    faults = "loss=0.3,delay=5..60ms,dup=0.1,reorder=0.2,seed=3"
    alice, bob, group = together(start_app, faults)
    for number in range(15):
        alice.ask("saved", do="say", group=group, text=f"a{number}")
        bob.ask("saved", do="say", group=group, text=f"b{number}")
    alice.wait(held("a14"))
    bob.wait(held("b14"))
    texts = alice.ask("log", do="log", group=group)["texts"]
    assert sorted(texts) == sorted([f"{who}{n}" for who in "ab" for n in range(15)])
    assert bob.ask("log", do="log", group=group)["texts"] == texts
