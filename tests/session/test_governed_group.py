"""Governed groups as whole sealed sessions: one membership and one set of void messages for all."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.admin_log.acts import (
    Act,
    Add,
    Demote,
    LastMessage,
    Promote,
    Remove,
    Rename,
    Role,
)
from engine.core.content import AdminEntry, Text
from engine.core.errors import LocalProtocolError
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.session.group.governed import GovernedPart
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)
NAMES = ("Olga", "Anna", "Ben", "Cem")


class Circle:
    """Olga's group; whatever somebody sends reaches those who are not cut off from them."""

    def __init__(self, seed: int = 5) -> None:
        self.now = NOW
        self.people = {name: SessionParticipant(name, seed=seed, now_ms=NOW) for name in NAMES}
        self.apart: frozenset[str] = frozenset()
        """Cut off from the others, and together."""
        self.inside = {"Olga"}
        self.mail: list[tuple[str, Outgoing]] = []
        self.send("Olga", self["Olga"].create_governed_group("Walks", now_ms=self.now))
        for name in NAMES[1:]:
            self.admit(name)
        self.govern("Olga", Promote(member=self.id("Anna")))
        self.govern("Olga", Promote(member=self.id("Ben")))
        self.live(90)

    def __getitem__(self, name: str) -> SessionParticipant:
        return self.people[name]

    def id(self, name: str) -> ParticipantId:
        return self[name].participant_id

    def part(self, name: str) -> GovernedPart:
        part = self[name].session.governed
        assert part is not None
        return part

    def admit(self, name: str, by: str = "Olga") -> None:
        self.govern(by, Add(member=self.id(name), reads_from=1))
        self.inside.add(name)
        self.send(name, self[name].let_in(self.part(by).admission(), now_ms=self.now))

    def govern(self, who: str, act: Act) -> None:
        self.send(who, self[who].govern(act, now_ms=self.now))

    def say(self, who: str, text: str) -> MessageId:
        self.send(who, self[who].say(Text(text=text), now_ms=self.now))
        return self[who].seen.sent[-1]

    def last_of(self, who: str, known_to: str) -> tuple[LastMessage, ...]:
        entries = self[known_to].session.channel.snapshot().log
        own = [(e.author, e.position) for e in entries if e.author and e.sender_id == self.id(who)]
        if not own:
            return ()
        author, position = max(own, key=lambda each: each[0].sequence)
        return (LastMessage(author.instance_id, author.sequence, position.message_id),)

    def remove(self, who: str, by: str) -> None:
        last = self.last_of(who, by)
        self.govern(by, Remove(member=self.id(who), last_messages=last))

    def send(self, sender: str, sent: Sequence[Outgoing]) -> None:
        self.mail += [(sender, out) for out in sent]
        self.deliver()

    def deliver(self) -> None:
        while self.mail:
            sender, out = self.mail.pop(0)
            for name, person in self.people.items():
                hears = (name in self.apart) == (sender in self.apart)
                if name != sender and hears and name in self.inside:
                    self.mail += [
                        (name, answer) for answer in person.receive(out.payload, now_ms=self.now)
                    ]

    def live(self, seconds: int) -> None:
        end = UnixMs(self.now + seconds * 1000)
        while self.now < end:
            self.now = UnixMs(self.now + 250)
            for name, person in self.people.items():
                deadline = person.next_deadline()
                if deadline is not None and deadline <= self.now:
                    self.send(name, person.advance(now_ms=self.now))

    def shown(self, name: str) -> list[str]:
        return [one.text for one in self[name].observation().shown]

    def roles(self, name: str) -> dict[str, Role]:
        by_id = {self.id(each): each for each in NAMES}
        return {by_id[who]: role for who, role in self.part(name).governance.state.roles.items()}

    def counted(self, name: str) -> set[str]:
        """Who is counted in "held by k of n", and named in the list of members."""
        members = self[name].session.members().values()
        return {one.name for one in members if one.left_ms is None}


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
    with pytest.raises(LocalProtocolError, match="not a member"):
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
    assert circle.part("Ben").voids(circle.id("Cem")) == 1


def test_what_was_void_is_shown_again_where_the_removal_does_not_count(circle: Circle) -> None:
    """Ben removed Cem on one branch; on another, Olga had removed Ben."""
    circle.say("Cem", "before")
    circle.apart = frozenset({"Olga", "Cem"})
    circle.remove("Cem", by="Ben")
    circle.remove("Ben", by="Olga")
    circle.say("Cem", "after")
    circle.apart = frozenset()
    circle.live(150)
    for name in NAMES:
        assert circle.roles(name).keys() == {"Olga", "Anna", "Cem"}
        assert circle.shown(name) == ["before", "after"]


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
    with pytest.raises(LocalProtocolError, match="would not count"):
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


@settings(max_examples=8, deadline=None)
@given(steps)
def test_everybody_ends_with_one_membership_and_one_timeline(
    plan: list[tuple[str, str, str]],
) -> None:
    circle = Circle()
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
    circle.live(240)
    for name in NAMES[1:]:
        assert circle.roles(name) == circle.roles("Olga")
        assert circle.counted(name) == circle.counted("Olga")
        assert circle.shown(name) == circle.shown("Olga")
