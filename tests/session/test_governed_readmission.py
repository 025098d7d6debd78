"""Who was removed comes back: under a new instance, with what they had, and is heard by all."""

import pytest

from engine.core.admin_log.acts import Remove, Role
from engine.core.errors import CommandError
from tests.session.governed_circle import NAMES, Circle


@pytest.fixture
def circle() -> Circle:
    return Circle()


@pytest.mark.parametrize("hears_of_it", [True, False])
def test_the_removed_come_back_and_write_on(circle: Circle, *, hears_of_it: bool) -> None:
    """Also if they hear of the removal only by the admission."""
    circle.say("Cem", "before")
    if not hears_of_it:
        circle.apart = frozenset({"Cem"})
    circle.remove("Cem", by="Anna")
    if hears_of_it:
        with pytest.raises(CommandError):
            circle.say("Cem", "not in")
    circle.say("Olga", "without Cem")
    circle.live(60)
    circle.apart = frozenset()
    circle.admit("Cem")
    circle.say("Cem", "back")
    circle.live(60)
    circle["Cem"].restart(now_ms=circle.now)
    circle.say("Cem", "and after a restart")
    circle.say("Anna", "welcome")
    circle.live(60)
    said = ["before", "without Cem", "back", "and after a restart", "welcome"]
    for name in NAMES:
        assert circle.roles(name)["Cem"] is Role.MEMBER
        assert circle.counted(name) == set(NAMES)
        assert circle.shown(name) == said
        assert not circle.part(name).now().voids


def test_the_same_admission_twice_changes_nothing(circle: Circle) -> None:
    circle.remove("Cem", by="Anna")
    circle.admit("Cem")
    state = circle["Cem"].store.governed(circle["Cem"].session.record.conversation_id)
    again = circle.part("Olga").admission(circle.id("Cem"))
    circle.send("Cem", circle["Cem"].let_in(again, now_ms=circle.now))
    after = circle["Cem"].store.governed(circle["Cem"].session.record.conversation_id)
    assert after.entries == state.entries
    assert after.known_ms == state.known_ms


def test_who_is_let_in_after_somebody_left_can_read_what_let_them_in(circle: Circle) -> None:
    """It is said in a fresh key, since the one before is also that of whoever left."""
    circle.govern("Cem", Remove(member=circle.id("Cem")))
    circle.admit("Cem")
    circle.say("Cem", "back")
    circle.say("Olga", "welcome")
    circle.live(60)
    for name in NAMES:
        assert circle.shown(name) == ["back", "welcome"]
        assert circle[name].session.gap() is None


def test_who_comes_back_again_and_again_can_be_removed_each_time(circle: Circle) -> None:
    """Each stay is another instance, and a removal names the last message of each."""
    for time in range(4):
        circle.say("Cem", f"stay {time}")
        circle.remove("Cem", by="Anna")
        assert "Cem" not in circle.roles("Olga")
        circle.admit("Cem", by="Anna", reads_from=None)
    assert circle.shown("Ben") == [f"stay {time}" for time in range(4)]
