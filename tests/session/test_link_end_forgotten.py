"""Who would have it forgotten that a link ended."""

import pytest

from engine.core.admin_log.acts import Promote
from engine.session.group import governed, link_end
from tests.session.link_circle import LinkCircle
from tests.session.test_link_end import ROLES, link_end_by


@pytest.fixture
def circle() -> LinkCircle:
    return LinkCircle()


def test_the_end_that_names_the_members_is_waited_for(
    circle: LinkCircle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had only one that names people who had left was nobody, and silent, for ever."""
    monkeypatch.setattr(link_end, "ROOM_BYTES", 100)
    for name in ("Dora", "Eve"):
        circle.join(name)
        circle.say(name, f"bye from {name}")
        circle.leave(name)
    circle.live(30)
    circle.unheard = frozenset({"Dora", "Eve", "Ben"})
    circle.sent.clear()
    circle.remove("Cem", by="Olga")
    sent = [payload for sender, payload in circle.sent if sender == "Olga"]
    circle.unheard, circle.apart = frozenset({"Dora", "Eve"}), frozenset({"Ben"})
    for payload in sent[1:]:
        circle.replay("Ben", payload)
    circle.live(900)
    assert not circle.is_governed("Ben")
    circle.apart = frozenset()
    circle.say("Ben", "anybody there?")
    circle.live(120)
    assert circle.roles("Ben") == ROLES
    assert circle.shown("Anna")[-1] == "anybody there?"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_forged_end_is_not_what_strangers_are_told(
    circle: LinkCircle, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came after the true one, and much else since."""
    monkeypatch.setattr(governed, "MAX_TOLD", 1)
    circle.is_lost = lambda name, _payload: name == "Cem"
    circle.remove("Cem", by="Olga")
    circle.live(30)
    forged = link_end_by(circle, "Cem")
    circle.send("Cem", circle["Cem"].say(forged, now_ms=circle.now))
    circle.govern("Olga", Promote(member=circle.id("Anna")))
    circle.live(60)
    circle.unheard = frozenset({"Olga", "Ben", "Cem"})
    if restarts:
        circle["Anna"].restart(now_ms=circle.now)
    circle.join("Dora")
    circle.live(120)
    assert circle.is_governed("Dora")
    assert circle.part("Dora").now().is_link_over
