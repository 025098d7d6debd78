"""The first removal in a group that anyone with the link is in makes it a governed group."""

import pytest

from engine.core.admin_log.acts import Role
from tests.session.link_circle import NAMES, LinkCircle


@pytest.fixture
def circle() -> LinkCircle:
    return LinkCircle()


def test_the_first_removal_ends_the_link_for_everybody(circle: LinkCircle) -> None:
    circle.say("Cem", "before")
    circle.remove("Cem", by="Olga")
    circle.live(60)
    for name in NAMES:
        assert circle.roles(name) == {"Olga": Role.OWNER, "Anna": Role.MEMBER, "Ben": Role.MEMBER}
        assert circle.counted(name) == {"Olga", "Anna", "Ben"}
    for name in ("Anna", "Ben", "Olga"):
        circle.say(name, name)
    for name in ("Anna", "Ben", "Olga"):
        assert circle.shown(name) == ["before", "Anna", "Ben", "Olga"]
    assert circle.shown("Cem") == ["before"]
    for name in NAMES:
        before = circle.roles(name), circle.shown(name)
        circle[name].restart(now_ms=circle.now)
        assert (circle.roles(name), circle.shown(name)) == before
    circle.say("Anna", "again")
    assert circle.shown("Ben")[-1] == "again"
    assert circle.shown("Cem") == ["before"]
