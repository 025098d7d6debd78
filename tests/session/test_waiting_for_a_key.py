"""In a large group nobody makes a key right after a removal: it is that of whoever removed.

What is written meanwhile stands in the timeline, waits, and is never sealed for the removed.
"""

from collections.abc import Iterator

import pytest

from engine.core.admin_log.acts import Add, Remove
from engine.core.epochs import SMALL_GROUP, YIELD_MS
from engine.core.invite import group_id_of
from engine.crypto.identity import participant_id_of
from tests.session.governed_circle import Circle
from tests.session.reading import say_nothing


@pytest.fixture
def circle() -> Circle:
    """With so many others, whose devices are off, that it is a large group without Cem, too."""
    circle = Circle()
    for number in range(SMALL_GROUP):
        absent = participant_id_of(bytes([number]) * 32)
        circle.govern("Olga", Add(member=absent, reads_from=1))
    return circle


def remove_unheard(circle: Circle, *, by: str = "Olga") -> Iterator[bytes]:
    """Cem is removed; what says so, and then the fresh key, comes to nobody yet."""
    begin = len(circle.sent)
    heard, circle.inside = circle.inside, set[str]()
    circle.remove("Cem", by=by)
    circle.inside = heard
    return iter([payload for _, payload in circle.sent[begin:]])


def sent_by(circle: Circle, name: str, begin: int) -> list[bytes]:
    return [payload for sender, payload in circle.sent[begin:] if sender == name]


def is_kept_from_cem(circle: Circle, begin: int) -> bool:
    """All that Anna sent."""
    record = circle["Cem"].session.record
    payloads = sent_by(circle, "Anna", begin)
    group_id = group_id_of(record.conversation_id)
    return say_nothing(group_id, record.epoch_keys, payloads, since_ms=circle.removed_ms)


def epochs(circle: Circle, name: str) -> int:
    return len(circle.part(name).governance.state.epochs)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_written_waits_for_the_key_of_whoever_removed(
    circle: Circle, *, restarts: bool
) -> None:
    removal, *rest = remove_unheard(circle)
    circle.replay("Anna", removal)
    circle.apart = frozenset({"Anna"})
    begin, made = len(circle.sent), epochs(circle, "Anna")
    said = circle.say("Anna", "not for Cem")
    if restarts:
        circle["Anna"].restart(now_ms=circle.now)
    circle.live(1)
    circle.send("Anna", circle["Anna"].send_again(said, now_ms=circle.now))
    assert circle.shown("Anna") == ["not for Cem"]
    assert not sent_by(circle, "Anna", begin)
    circle.apart = frozenset()
    for payload in rest:
        circle.replay("Anna", payload)
    circle.live(1)
    assert circle.shown("Ben") == circle.shown("Olga") == ["not for Cem"]
    assert epochs(circle, "Anna") == made + 1
    assert is_kept_from_cem(circle, begin)


@pytest.mark.parametrize("restarts", [False, True])
def test_whoever_waited_in_vain_makes_a_key_of_their_own(circle: Circle, *, restarts: bool) -> None:
    """After 2.5 s at the earliest and 5 s at the latest; nothing is lost."""
    removal, *rest = remove_unheard(circle)
    for name in ("Anna", "Ben"):
        circle.replay(name, removal)
    circle.apart = frozenset({"Olga"})
    began, begin, made = circle.now, len(circle.sent), epochs(circle, "Anna")
    said = [circle.say("Anna", "one"), circle.say("Anna", "two")]
    if restarts:
        circle["Anna"].restart(now_ms=circle.now)
    while not circle.shown("Ben") and circle.now < began + 2 * YIELD_MS:
        circle.live(1)
    assert YIELD_MS / 2 <= circle.now - began <= YIELD_MS + 1_000
    circle.live(1)
    assert epochs(circle, "Anna") == made + 1
    assert circle.shown("Ben") == ["one", "two"]
    circle.apart = frozenset()
    for payload in rest:
        circle.replay("Anna", payload)
    circle.live(60)
    for name in ("Olga", "Anna", "Ben"):
        assert circle.shown(name) == ["one", "two"]
    assert circle["Anna"].seen.sent == said
    assert is_kept_from_cem(circle, begin)


def test_whoever_removed_never_waits_and_nobody_is_waited_for_who_left(circle: Circle) -> None:
    circle.remove("Cem", by="Olga")
    circle.say("Olga", "after a removal")
    assert circle.shown("Anna") == ["after a removal"]
    circle.govern("Ben", Remove(member=circle.id("Ben")))
    circle.say("Anna", "Ben left")
    assert circle.shown("Olga") == ["after a removal", "Ben left"]


def test_a_small_group_does_not_wait() -> None:
    circle = Circle()
    removal, *_ = remove_unheard(circle)
    for name in ("Anna", "Ben"):
        circle.replay(name, removal)
    circle.say("Anna", "at once")
    assert circle.shown("Ben") == ["at once"]


def test_what_an_admin_does_meanwhile_is_not_put_off(circle: Circle) -> None:
    """The key that is made for it carries what waited, too."""
    removal, *_ = remove_unheard(circle)
    for name in ("Anna", "Ben"):
        circle.replay(name, removal)
    begin = len(circle.sent)
    circle.say("Anna", "waits")
    assert not circle.shown("Ben")
    circle.remove("Ben", by="Anna")
    circle.live(1)
    assert circle.shown("Olga") == ["waits"]
    assert not circle.shown("Ben")
    assert is_kept_from_cem(circle, begin)
