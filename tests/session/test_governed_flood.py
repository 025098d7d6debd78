"""An admin and accomplices write more entries than the log has room for: all others agree."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.codec import admin_entry
from engine.core.admin_log import waiting
from engine.core.admin_log.acts import Act, Add, EntryId, Promote, Remove, Rename, SetTopic
from engine.core.content import AdminEntry
from engine.core.epochs import FRESH_AFTER_MS, FRESH_SPREAD_MS
from engine.core.errors import CommandError, LocalProtocolError
from engine.core.ids import ParticipantId, UnixMs
from engine.core.invite import group_id_of
from engine.crypto.admin_entry import read_entry, sign_entry
from engine.session.group import epoch_keys, governance
from engine.session.group.epoch_keys import TRY_AGAIN_MS
from engine.sim.session_participant import SessionParticipant
from tests.session.governed_circle import NAMES, NOW, Circle
from tests.session.test_governed_rows import told

ROOM = 32
LIARS = ("Ben", "Xena", "Yves")
HONEST = ("Olga", "Anna", "Cem")


@pytest.fixture(autouse=True)
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governance, "MAX_ENTRIES", ROOM)


def crowded(seed: int = 5) -> Circle:
    """Ben let two friends in."""
    circle = Circle(seed)
    for name in LIARS[1:]:
        circle.people[name] = SessionParticipant(name, seed=seed, now_ms=NOW)
        circle.admit(name, by="Ben")
    circle.live(5)
    return circle


def lie(circle: Circle, who: str, random: Random) -> None:
    """``who`` writes an entry that may name any others, whatever they knew."""
    session = circle[who].session
    group_id = group_id_of(session.record.conversation_id)
    known = [read_entry(each, group_id=group_id) for each in circle.part(who).governance.entries()]
    heads = random.sample(known, min(len(known), random.randint(1, 3)))
    invented = ParticipantId(f"{random.getrandbits(120):022x}"[:22])
    acts: list[Act] = [
        Rename(name="ours"),
        Add(member=invented),
        Add(member=circle.id(random.choice(NAMES))),
        Promote(member=circle.id(random.choice(LIARS))),
        Remove(member=circle.id(random.choice(HONEST))),
    ]
    lamport = max(each.lamport_timestamp for each in heads) + random.randint(1, 9)
    write(circle, who, random.choice(acts), [each.entry_id for each in heads], lamport)


def write(circle: Circle, who: str, act: Act, heads: list[EntryId], lamport: int) -> EntryId:
    signed = sign_entry(
        circle[who].identity,
        act,
        group_id=group_id_of(circle[who].session.record.conversation_id),
        lamport_timestamp=lamport,
        sent_ms=circle.now,
        heads=sorted(heads),
    )
    circle.send(who, circle[who].say(AdminEntry(signed.data), now_ms=circle.now))
    return signed.entry.entry_id


def test_what_had_no_room_is_read_again_when_an_honest_entry_names_it() -> None:
    """Anna had heard of nothing that takes its room, and names it."""
    circle = Circle()
    promoted = circle.part("Ben").governance.entries()[-1]
    group_id = group_id_of(circle["Ben"].session.record.conversation_id)
    start = [read_entry(promoted, group_id=group_id).entry_id]
    circle.is_lost = lambda name, _payload: name == "Anna"
    for number in range(ROOM):
        write(circle, "Ben", Rename(name="ours"), start, lamport=50 + number)
    circle.is_lost = lambda _name, _payload: False
    late = write(circle, "Ben", Rename(name="ours"), start, lamport=900)
    assert circle.part("Anna").governance.find(late) is not None
    assert circle.part("Olga").governance.find(late) is None
    circle.govern("Anna", Rename(name="Hikes"))
    for name in ("Olga", "Cem"):
        assert circle.part(name).governance.state.name == "Hikes"
        circle[name].restart(now_ms=circle.now)
        assert circle.part(name).governance.state.name == "Hikes"
    circle.live(100)
    for name in ("Anna", "Olga", "Cem"):
        assert circle.part(name).governance.find(late) is None
        assert circle.part(name).governance.state == circle.part("Ben").governance.state


def test_those_beyond_the_number_that_may_wait_come_again_and_have_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "MAX_WAITING", 2)
    circle = Circle()
    promoted = circle.part("Ben").governance.entries()[-1]
    group_id = group_id_of(circle["Ben"].session.record.conversation_id)
    start = read_entry(promoted, group_id=group_id).entry_id
    circle.is_lost = lambda name, _payload: name == "Anna"
    base = write(circle, "Ben", SetTopic(topic="Topic"), [start], lamport=50)
    circle.is_lost = lambda _name, _payload: False
    for number in range(6):
        write(circle, "Ben", Rename(name=f"Name {number}"), [base], lamport=60 + number)
    assert circle["Anna"].session.counted()["group.too_many_entries"] >= 4
    assert circle.part("Anna").governance.state.name == "Walks"
    circle.live(90)
    for name in ("Anna", "Olga"):
        assert circle.part(name).governance.state.name == "Name 5"
        assert told(circle, name) == told(circle, "Ben")


def test_who_has_no_room_for_a_fresh_key_goes_on_and_tries_again_later() -> None:
    """Olga fills the log, and is away when a week has passed."""
    circle = Circle()
    with suppress(CommandError):
        for number in range(ROOM):
            circle.govern("Olga", Rename(name=f"Name {number}"))
    circle.apart = frozenset({"Olga"})
    circle.now = UnixMs(circle.now + FRESH_AFTER_MS + FRESH_SPREAD_MS)
    circle.live(2)
    circle.say("Cem", "in the key of before")
    circle.live(150)
    counted = circle["Cem"].session.counted()
    assert counted["group.no_room_for_a_key"] == 1
    assert circle.shown("Anna") == ["in the key of before"]
    circle.now = UnixMs(circle.now + TRY_AGAIN_MS)
    circle.live(150)
    assert circle["Cem"].session.counted()["group.no_room_for_a_key"] == 2


def test_a_key_is_for_more_members_than_one_entry_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """An admin admits as many as they like, and nobody could write any more."""
    circle = Circle()
    monkeypatch.setattr(admin_entry, "MAX_RECIPIENTS", 2)
    monkeypatch.setattr(epoch_keys, "MAX_RECIPIENTS", 2)
    circle.remove("Cem", by="Olga")
    circle.say("Ben", "for three")
    circle.admit("Cem", reads_from=None)
    circle.say("Cem", "for four")
    for name in ("Olga", "Anna", "Ben"):
        assert circle.shown(name) == ["for three", "for four"]
    assert circle.shown("Cem") == ["for four"]


def do(circle: Circle, what: str, liar: str, honest: str, random: Random) -> None:
    match what:
        case "lie":
            for _ in range(8):
                lie(circle, liar, random)
        case "say":
            circle.say(liar, f"{liar} {len(circle[liar].seen.sent)}")
            circle.say(honest, f"{honest} {len(circle[honest].seen.sent)}")
        case "split":
            circle.apart = frozenset({liar, honest})
        case "restart":
            circle[honest].restart(now_ms=circle.now)
        case "remove" if honest != "Cem":
            circle.remove(liar, by=honest)
        case _:
            circle.live(5)


steps = st.lists(
    st.tuples(
        st.sampled_from(("lie", "lie", "lie", "say", "split", "restart", "remove", "live")),
        st.sampled_from(LIARS),
        st.sampled_from(HONEST),
    ),
    min_size=3,
    max_size=7,
)


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps, st.integers(0, 999))
def test_everybody_else_has_one_membership_and_can_write(
    plan: list[tuple[str, str, str]], seed: int
) -> None:
    """On a network that loses a tenth of what is sent, so entries come in many orders."""
    circle, random = crowded(), Random(seed)
    begin = [("split", "Yves", "Cem"), *(("lie", who, "") for who in LIARS)]
    circle.is_lost = lambda _name, _payload: random.random() < 0.1
    for what, liar, honest in [*begin, *plan]:
        try:
            do(circle, what, liar, honest, random)
        except LocalProtocolError:
            continue  # They may not, as far as they know.
    circle.apart = frozenset()
    circle.live(100)
    circle["Anna"].restart(now_ms=circle.now)
    for liar in LIARS:
        circle.remove(liar, by="Olga")
    circle.live(40)
    staying = [name for name in HONEST if circle.id(name) in circle.part("Olga").now().state.roles]
    for name in staying:
        circle.say(name, f"the end, says {name}")
    circle.live(40)
    expected = circle.part("Olga").now()
    for name in staying:
        seen = circle.part(name).now()
        assert seen.state == expected.state
        assert seen.voids == expected.voids
        assert circle.shown(name) == circle.shown("Olga")
        assert {f"the end, says {each}" for each in staying} <= set(circle.shown(name))
