"""Two real processes one to one: loss both ways, killed, nothing lost, one order.

And no message key of Olm is used twice, by whatever either handed to the network before it died.
"""

import random
from collections.abc import Callable

import pytest

from engine.codec.olm import UNHELD, decode_olm_envelope
from engine.codec.pair import OLM_VERSION, decode_any_pair_envelope
from engine.core.errors import RemoteProtocolError
from tests.processes.conftest import AppProcess, Line
from tests.session.olm_keys import key_used

FAULTS = "loss=0.3,delay=1..20ms,seed=11"
IN_FLIGHT = 40
"""Said and not yet told to be saved, when a process is killed."""
KILLS = 40
KILLED_WITHIN_S = 0.6


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


def sealed_by_olm(app: AppProcess) -> list[bytes]:
    """All that it ever sent with a key of the ratchet, before and after it was killed."""
    found = []
    for payload in app.sent():
        try:
            envelope = decode_any_pair_envelope(payload)
        except RemoteProtocolError:
            continue  # Something else than a pair's.
        if envelope.version == OLM_VERSION and decode_olm_envelope(envelope.sealed).kind != UNHELD:
            found.append(envelope.sealed)
    return found


def no_key_is_used_twice(app: AppProcess) -> bool:
    used = [key_used(sealed) for sealed in dict.fromkeys(sealed_by_olm(app))]
    return len(used) > 0 and len(used) == len(set(used))


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
    everything_came_once_and_in_order(apps, pair, saved)


def everything_came_once_and_in_order(
    apps: dict[str, AppProcess], pair: str, saved: dict[str, list[str]]
) -> None:
    """To both, with everything that either was told to be saved."""
    alice, bob = apps["alice"], apps["bob"]
    for app in apps.values():
        app.ask("saved", do="say", group=pair, text=f"{app.name} ends")
    for app, other in ((alice, "bob ends"), (bob, "alice ends")):
        if not any(shown(other)(line) for line in app.heard):
            app.wait(shown(other))
    logs = {name: app.ask("log", do="log", group=pair)["texts"] for name, app in apps.items()}
    assert logs["alice"] == logs["bob"]
    assert len(logs["alice"]) == len(set(logs["alice"]))
    for name, app in apps.items():
        known = set(saved[name])
        assert [text for text in logs["alice"] if text in known] == saved[name]
        own = [
            int(text.split()[1])
            for text in logs["alice"]
            if text.startswith(f"{name} ") and not text.endswith("ends")
        ]
        assert own == sorted(own)
        assert no_key_is_used_twice(app)


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


@pytest.mark.parametrize("count", [250, pytest.param(1_000, marks=pytest.mark.long)])
def test_many_each_way_with_loss_and_each_killed_once(
    start_app: Callable[..., AppProcess], count: int
) -> None:
    all_arrive_once_and_in_order(start_app, count)


@pytest.mark.long
def test_killed_forty_times_at_random_moments_while_both_speak(
    start_app: Callable[..., AppProcess],
) -> None:
    """One or the other or both, also while they start and while they fetch what they missed."""
    alice, bob, pair = friends(start_app, FAULTS)
    apps = {"alice": alice, "bob": bob}
    rng = random.Random(24)
    saved: dict[str, list[str]] = {name: [] for name in apps}
    for number in range(KILLS):
        for name, app in apps.items():
            for one in range(5):
                app.tell(do="say", group=pair, text=f"{name} {5 * number + one}")
        killed = rng.choice([["alice"], ["bob"], ["alice", "bob"]])
        for name in killed:
            said = apps[name].until_killed(within_s=KILLED_WITHIN_S * rng.random())
            saved[name] += saved_in(said)
        for name, app in apps.items():
            if name in killed:
                app.start()
                continue
            for _ in range(5):
                saved[name].append(app.wait(lambda said: said.get("answer") == "saved")["text"])
    assert all(KILLS < len(texts) < 5 * KILLS for texts in saved.values()), "before and after"
    everything_came_once_and_in_order(apps, pair, saved)
