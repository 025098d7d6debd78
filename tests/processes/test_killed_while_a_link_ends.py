"""The end of a group's link, in real processes that are killed around it.

Whoever is killed, and whenever: one membership everywhere, the removed reads nothing of what those
say who have heard of it, nothing that was saved is lost, and everybody who is left can send.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from tests.processes.conftest import AppProcess, Line

REST = ("olga", "anna", "ben")
GROUPS = 8
"""Each has a link that ends."""
KILLS_EACH = 3
KILLED_WITHIN_S = 0.6
"""The removal and what follows from it take less, as a rule, if nobody is killed."""
VICTIMS = (
    ("olga",), ("olga",), ("anna",), ("ben",), ("cem",),
    ("olga", "anna"), ("anna", "ben"), ("olga", "anna", "ben", "cem"),
)  # fmt: skip


@dataclass
class Walks:
    """One group, and what was said in it."""

    group: str
    ids: dict[str, str]
    saved: list[str] = field(default_factory=list)
    """Said by those who stay: it has to be in the end everywhere among them."""
    secret: set[str] = field(default_factory=set)
    """Said by somebody who had heard that Cem was removed."""


def until_shown(app: AppProcess, group: str, texts: Iterable[str]) -> list[str]:
    wanted = set(texts)
    while True:
        shown: list[str] = app.ask("log", do="log", group=group)["texts"]
        if wanted <= set(shown):
            return shown
        app.wait(lambda line: line.get("event") == "message" and line["text"] in wanted)


def until_governed(app: AppProcess, walks: Walks, *, role: str) -> Line:
    """Until it knows that Cem was removed."""
    rest = sorted(walks.ids[name] for name in REST)
    while True:
        now = app.ask("governing", do="governing", group=walks.group)
        if now["role"] == role and now["members"] == rest:
            return now
        app.wait(lambda line: line.get("event") == "governing" and line["group"] == walks.group)


def has_heard(app: AppProcess, walks: Walks) -> bool:
    now = app.ask("governing", do="governing", group=walks.group)
    return bool(now["role"]) and walks.ids["cem"] not in now["members"]


def begin(apps: dict[str, AppProcess], name: str) -> Walks:
    made = apps["olga"].ask("created", do="create", name=name)
    group = made["group"]
    for who in ("anna", "ben", "cem"):
        apps[who].ask("joined", do="join", link=made["link"])
    walks = Walks(group, {})
    for who, app in apps.items():
        walks.saved.append(app.ask("saved", do="say", group=group, text=f"{who} in {name}")["text"])
    for app in apps.values():
        until_shown(app, group, walks.saved)
    walks.ids = apps["olga"].ask("members", do="members", group=group)["names"]
    assert walks.ids.keys() == apps.keys()
    return walks


def say(app: AppProcess, walks: Walks, text: str) -> None:
    """Waits until it is saved, so that it must not be lost."""
    heard = has_heard(app, walks)
    app.ask("saved", do="say", group=walks.group, text=text)
    walks.saved.append(text)
    if heard:
        walks.secret.add(text)


def remove_among_kills(apps: dict[str, AppProcess], walks: Walks, rng: random.Random) -> None:
    """Until the removal is on disk, it is asked for again."""
    olga, removed = apps["olga"], False
    for kill in range(KILLS_EACH):
        if not removed and not has_heard(olga, walks):
            olga.tell(do="remove", group=walks.group, who=walks.ids["cem"])
        victims = rng.choice(VICTIMS)
        for name in victims:
            said = apps[name].until_killed(within_s=KILLED_WITHIN_S * rng.random())
            removed |= any(line.get("answer") == "removed" for line in said)
        for name in victims:
            apps[name].start()
        removed = removed or has_heard(olga, walks)
        speaker = rng.choice(REST)
        say(apps[speaker], walks, f"{speaker} {kill} in {walks.group[:6]}")
    if not has_heard(olga, walks):
        olga.ask("removed", do="remove", group=walks.group, who=walks.ids["cem"])


def all_is_well(apps: dict[str, AppProcess], walks: Walks, when: str) -> None:
    for name in REST:
        until_governed(apps[name], walks, role="OWNER" if name == "olga" else "MEMBER")
    until_governed(apps["cem"], walks, role="NOBODY")
    for name in REST:
        say(apps[name], walks, f"{name} {when}")
    for name in REST:
        shown = until_shown(apps[name], walks.group, walks.saved)
        assert sorted(shown) == sorted(walks.saved), "nothing lost, nothing doubled"
        now = apps[name].ask("deeds", do="deeds", group=walks.group)["deeds"]
        assert now == [["link_ended", None], ["removed", walks.ids["cem"]]]
    assert len(walks.secret) >= len(REST)
    read = apps["cem"].ask("log", do="log", group=walks.group)["texts"]
    assert not walks.secret & set(read)


@pytest.mark.long
def test_killed_around_the_end_of_a_link_all_agree_and_lose_nothing(
    start_app: Callable[..., AppProcess],
) -> None:
    rng = random.Random(24)
    apps = {name: start_app(name) for name in (*REST, "cem")}
    groups: list[Walks] = []
    for number in range(GROUPS):
        walks = begin(apps, f"Walks {number}")
        remove_among_kills(apps, walks, rng)
        all_is_well(apps, walks, "at the end")
        groups.append(walks)
    for app in apps.values():
        app.kill()
        app.start()
    for walks in groups:
        all_is_well(apps, walks, "after a start")
    for app in apps.values():
        assert app.stop() == 0
