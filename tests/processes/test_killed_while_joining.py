"""Joining a governed group by an invitation, in real processes that are killed meanwhile.

Whoever is killed, and whenever: the newcomer is in once, at the price of one place.
"""

import random
from collections.abc import Callable

import pytest

from tests.processes.conftest import AppProcess, Line

NEWCOMERS = 12
KILLS_EACH = 3
KILLED_WITHIN_S = 0.8
"""By then a join is over, as a rule, if nobody is killed."""


def shown(text: str) -> Callable[[Line], bool]:
    return lambda line: line.get("text") == text


def until_in(newcomer: AppProcess, group: str) -> None:
    now = newcomer.ask("governing", do="governing", group=group)
    if now["role"] != "MEMBER":
        newcomer.wait(
            lambda line: line.get("event") == "governing" and line.get("role") == "MEMBER"
        )


def join_among_kills(
    newcomer: AppProcess, inviter: AppProcess, link: str, kills: int, rng: random.Random
) -> None:
    """Until the newcomer's wish to join is on disk, the link is entered again."""
    asked = False
    for _ in range(kills):
        if not asked:
            newcomer.tell(do="join", link=link)
        killed = rng.choice([[newcomer], [inviter], [newcomer, inviter]])
        for one in killed:
            said = one.until_killed(within_s=KILLED_WITHIN_S * rng.random())
            asked |= any(line.get("answer") == "joined" for line in said)
        if newcomer not in killed and not asked:
            newcomer.wait(lambda line: line.get("answer") == "joined")
            asked = True
        for one in killed:
            one.start()
    if not asked:
        newcomer.ask("joined", do="join", link=link)


def all_are_in_once(inviter: AppProcess, newcomers: list[AppProcess], group: str) -> None:
    view = inviter.ask("governing", do="governing", group=group)
    (came,) = view["came"]
    assert view["open"] == [False]
    assert len(came) == len(set(came)) == len(newcomers)
    assert len(view["members"]) == 1 + len(newcomers)
    deeds = inviter.ask("deeds", do="deeds", group=group)["deeds"]
    assert sorted(deeds) == sorted(["added", who] for who in came)


@pytest.mark.long
def test_killed_at_random_moments_each_newcomer_is_in_once(
    start_app: Callable[..., AppProcess],
) -> None:
    rng = random.Random(24)
    olga = start_app("olga")
    group = olga.ask("governed", do="govern", name="Walks")["group"]
    link = olga.ask("invited", do="invite", group=group, uses=str(NEWCOMERS))["link"]
    came: list[AppProcess] = []
    for number in range(NEWCOMERS):
        newcomer = start_app(f"newcomer {number}")
        join_among_kills(newcomer, olga, link, KILLS_EACH, rng)
        until_in(newcomer, group)
        now = newcomer.ask("governing", do="governing", group=group)
        assert now["joins"] == 0, "it asks no more"
        said = f"by {newcomer.name}"
        newcomer.ask("saved", do="say", group=group, text=said)
        olga.wait(shown(said))
        texts = newcomer.ask("log", do="log", group=group)["texts"]
        assert texts == [f"by {one.name}" for one in (*came, newcomer)]
        came.append(newcomer)
        newcomer.kill()
    all_are_in_once(olga, came, group)
    assert olga.stop() == 0
