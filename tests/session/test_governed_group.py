"""Governed groups as whole sealed sessions: one membership and one set of void messages for all."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.admin_log.acts import Add, Demote, Invite, Promote, Remove, Rename, Role
from engine.core.content import AdminEntry, Text
from engine.core.errors import CommandError, LocalProtocolError
from engine.core.ids import UnixMs
from engine.session.inputs import Govern, Say
from engine.session.transitions import GovernanceNoted
from tests.session.governed_circle import NAMES, Circle


@pytest.fixture
def circle() -> Circle:
    return Circle()


def test_members_follow_from_the_log_on_everybody(circle: Circle) -> None:
    circle.say("Cem", "hello")
    expected = {"Olga": Role.OWNER, "Anna": Role.ADMIN, "Ben": Role.ADMIN, "Cem": Role.MEMBER}
    for name in NAMES:
        assert circle.roles(name) == expected
        assert circle.counted(name) == set(NAMES)
        assert circle.shown(name) == ["hello"]


def test_who_is_removed_is_counted_and_heard_no_more(circle: Circle) -> None:
    circle.say("Cem", "before")
    circle.apart = frozenset({"Cem"})
    circle.remove("Cem", by="Anna")
    circle.say("Cem", "after")
    circle.apart = frozenset()
    circle.live(120)
    for name in NAMES:
        assert circle.counted(name) == {"Olga", "Anna", "Ben"}
        assert circle.shown(name) == ["before"]
    with pytest.raises(LocalProtocolError, match="not_in_group"):
        circle.say("Cem", "again")


def test_what_came_before_the_removal_was_heard_of_is_taken_out_and_waited_for_by_nobody(
    circle: Circle,
) -> None:
    """Ben read and answered what Cem wrote beyond Anna's cut."""
    circle.say("Cem", "before")
    circle.apart = frozenset({"Cem", "Ben"})
    circle.remove("Cem", by="Anna")
    circle.say("Cem", "after")
    circle.say("Ben", "an answer")
    assert circle.shown("Ben") == ["before", "after", "an answer"]
    circle.apart = frozenset()
    circle.live(120)
    for name in NAMES:
        assert circle.shown(name) == ["before", "an answer"]
        assert circle[name].session.gap() is None
        assert circle.part(name).now().voids == {circle.id("Cem"): 1}
        circle[name].restart(now_ms=circle.now)
    circle.live(5)
    for name in ("Olga", "Anna", "Ben"):
        assert circle.part(name).now().voids == {circle.id("Cem"): 1}


def test_what_was_void_is_shown_again_where_the_removal_does_not_count(circle: Circle) -> None:
    """Ben removed Cem on one branch; on another, Olga had removed Ben."""
    circle.say("Cem", "before")
    circle.apart = frozenset({"Olga", "Cem"})
    circle.remove("Cem", by="Ben")
    circle.remove("Ben", by="Olga")
    circle.say("Cem", "after")
    circle.apart = frozenset()
    circle.live(150)
    for name in ("Olga", "Anna", "Cem"):
        assert circle.roles(name).keys() == {"Olga", "Anna", "Cem"}
        assert circle.shown(name) == ["before", "after"]
    assert circle.shown("Ben") == ["before"]


def test_after_a_restart_all_is_as_it_was(circle: Circle) -> None:
    circle.apart = frozenset({"Cem", "Ben"})
    circle.remove("Cem", by="Anna")
    circle.say("Cem", "after")
    circle.apart = frozenset()
    circle.live(90)
    before = {name: (circle.roles(name), circle.shown(name)) for name in NAMES}
    for name in NAMES:
        circle[name].restart(now_ms=circle.now)
    circle.live(30)
    assert {name: (circle.roles(name), circle.shown(name)) for name in NAMES} == before
    circle.say("Ben", "still here")
    assert circle.shown("Anna")[-1] == "still here"


def test_entries_of_others_and_by_strangers_are_refused_and_counted(circle: Circle) -> None:
    before = circle.roles("Anna")
    stolen = AdminEntry(circle.part("Ben").governance.entries()[1])
    circle.send("Cem", circle["Cem"].say(stolen, now_ms=circle.now))
    circle.send("Cem", circle["Cem"].say(AdminEntry(b"nonsense"), now_ms=circle.now))
    counted = circle["Anna"].session.counted()
    assert counted["group.foreign_entry"] == 1
    assert counted["group.entry_malformed"] == 1
    assert circle.roles("Anna") == before
    with pytest.raises(LocalProtocolError, match="role_too_low"):
        circle.govern("Cem", Rename(name="mine"))


steps = st.lists(
    st.tuples(
        st.sampled_from(("say", "say", "remove", "promote", "demote", "add", "split", "live")),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=4, deadline=None)
@given(steps, st.integers(0, 999))
def test_everybody_ends_with_one_membership_and_one_timeline(
    plan: list[tuple[str, str, str]], seed: int
) -> None:
    """On a network that loses a fifth of what is sent."""
    circle, random = Circle(), Random(seed)
    circle.is_lost = lambda _name, _payload: random.random() < 0.2
    for what, who, whom in plan:
        try:
            match what:
                case "say":
                    circle.say(who, f"{who} {len(circle[who].seen.sent)}")
                case "remove" if who != whom:
                    circle.remove(whom, by=who)
                case "promote":
                    circle.govern(who, Promote(member=circle.id(whom)))
                case "demote":
                    circle.govern(who, Demote(member=circle.id(whom)))
                case "add":
                    circle.govern(who, Add(member=circle.id(whom), reads_from=1))
                case "split":
                    circle.apart = frozenset({who, whom})
                case _:
                    circle.live(5)
        except LocalProtocolError:
            continue  # They may not, as far as they know.
    circle.apart = frozenset()
    circle.live(400)
    staying = [
        name for name in NAMES if name in circle.roles(name) and not was_removed(circle, name)
    ]
    for name in staying:
        assert circle.roles(name) == circle.roles(staying[0])
        assert circle.counted(name) == circle.counted(staying[0])
        assert circle.shown(name) == circle.shown(staying[0])


def was_removed(circle: Circle, name: str) -> bool:
    """As far as they know; if they were let in again, nobody gave them what was said meanwhile."""
    return circle.id(name) in circle.part(name).governance.state.last_messages


def test_who_was_removed_is_quiet_and_still_reads_what_is_here(circle: Circle) -> None:
    """Whatever they are asked, and whatever they ask for; their sync messages stop, too."""
    circle.say("Cem", "before")
    circle.remove("Cem", by="Olga")
    begin = len(circle.sent)
    lost = circle.say("Anna", "without Cem")
    circle.send("Cem", circle["Cem"].set_online(False, now_ms=circle.now))
    circle.send("Cem", circle["Cem"].set_online(True, now_ms=circle.now))
    circle.send("Cem", circle["Cem"].hold_files((lost,), now_ms=circle.now))
    circle["Cem"].rename("Cemal")
    circle["Cem"].restart(now_ms=circle.now)
    circle.live(400)
    assert {sender for sender, _ in circle.sent[begin:]} == {"Olga", "Anna", "Ben"}
    assert circle.shown("Cem") == ["before"]
    for act in (Rename(name="mine"), Promote(member=circle.id("Cem"))):
        with pytest.raises(CommandError, match="not_in_group"):
            circle.govern("Cem", act)


def test_whoever_hears_that_the_removal_does_not_count_speaks_again(circle: Circle) -> None:
    circle.apart = frozenset({"Ben", "Cem"})
    circle.remove("Cem", by="Ben")
    circle.apart = frozenset({"Ben"})
    circle.remove("Ben", by="Olga")
    circle.apart = frozenset()
    circle.live(200)
    circle.say("Cem", "still here")
    circle.live(60)
    for name in ("Olga", "Anna", "Cem"):
        assert circle.shown(name) == ["still here"]


def test_what_a_window_is_told(circle: Circle) -> None:
    token_hash = bytes(32)
    expires_ms = UnixMs(circle.now + 1_000)
    circle.govern("Ben", Invite(token_hash=token_hash, uses=1, expires_ms=expires_ms))
    told = {name: circle[name].session.governance() for name in NAMES}
    outranked = {"Olga": {"Anna", "Ben", "Cem"}, "Anna": {"Ben", "Cem"}, "Ben": {"Cem"}, "Cem": ()}
    for name, one in told.items():
        assert one is not None
        assert one.outranked == {circle.id(other) for other in outranked[name]}
        assert one.may_invite == (name != "Cem")
        assert one.removed_by is None
        assert one.newest_key_ms is not None
        ((invitation_id, invitation),) = one.state.invitations.items()
        assert invitation.is_open
        assert invitation.made_by == circle.id("Ben")
        assert one.revocable == ({invitation_id} if name != "Cem" else frozenset())
    circle.remove("Ben", by="Anna")
    ben = circle["Ben"].session.governance()
    assert ben is not None
    assert (ben.own_role, ben.removed_by) == (Role.NOBODY, circle.id("Anna"))
    assert not ben.outranked
    assert not ben.revocable
    assert not ben.may_invite
    assert ben.newest_key_ms is None


def test_a_change_of_the_log_is_noted_and_nothing_else_is(circle: Circle) -> None:
    session = circle["Olga"].session
    said = session.handle(Say(Text(text="hello")), now_ms=circle.now)
    assert GovernanceNoted() not in said.notes
    done = session.handle(Govern(Rename(name="Strolls")), now_ms=circle.now)
    assert done.notes.count(GovernanceNoted()) == 1


def test_a_removal_names_the_last_message_of_each_instance_whatever_it_was_asked_to_name(
    circle: Circle,
) -> None:
    circle.say("Cem", "one")
    last = circle.say("Cem", "two")
    circle.govern("Olga", Remove(member=circle.id("Cem")))
    named = circle.part("Anna").governance.state.last_messages[circle.id("Cem")]
    assert [one.message_id for one in named.values()] == [last]
    assert circle.shown("Ben") == ["one", "two"]


def test_leaving_is_an_entry_and_voids_nothing(circle: Circle) -> None:
    circle.say("Cem", "goodbye")
    circle.govern("Cem", Remove(member=circle.id("Cem")))
    circle.say("Anna", "a pity")
    circle.live(60)
    for name in ("Olga", "Anna", "Ben"):
        assert circle.counted(name) == {"Olga", "Anna", "Ben"}
        assert circle.shown(name) == ["goodbye", "a pity"]
    left = circle["Cem"].session.governance()
    assert left is not None
    assert left.removed_by == circle.id("Cem")
    assert circle.shown("Cem") == ["goodbye"]
