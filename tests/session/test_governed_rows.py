"""What was done in a governed group, as rows: the same ones in the same order for everybody."""

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.core.admin_log.acts import (
    Act,
    Add,
    DeleteMessage,
    Demote,
    Promote,
    Remove,
    Rename,
    Role,
    SetInviters,
    SetPicture,
    SetTopic,
)
from engine.core.errors import LocalProtocolError
from engine.core.ids import MessageId, UnixMs
from engine.core.stored import StoredMessage
from engine.governance_views import DeedKind
from engine.session.group.deeds import DEED, deed_in
from engine.session.inputs import Govern
from engine.session.transitions import RowAdded, RowRemoved
from engine.sim.session_participant import SessionParticipant
from tests.session.governed_circle import NAMES, Circle

BEGINNING = ["Olga added Anna", "Olga added Ben", "Olga added Cem",
             "Olga promoted Anna", "Olga promoted Ben"]  # fmt: skip


@pytest.fixture
def circle() -> Circle:
    return Circle()


def rows(circle: Circle, name: str) -> list[StoredMessage]:
    conversation_id = circle[name].session.record.conversation_id
    return list(circle[name].store.latest_page(conversation_id, limit=100).messages)


def told(circle: Circle, name: str) -> list[str]:
    """The timeline, in words."""
    names = {circle.id(each): each for each in circle.people}
    said = []
    for row in rows(circle, name):
        who, record = names[row.record.sender_id], row.record
        if record.kind != DEED:
            said.append(f"{who}: {'(deleted)' if row.retracted else record.text}")
            continue
        deed = deed_in(record.text)
        about = names[deed.about] if deed.about else deed.text
        said.append(f"{who} {deed.kind} {about}".strip())
    return said


def test_each_deed_that_counts_has_a_row_and_nobody_is_told_twice_who_came(circle: Circle) -> None:
    cem = circle.id("Cem")
    acts: tuple[Act, ...] = (
        Rename(name="Strolls"), SetTopic(topic="Sundays"), SetPicture(picture=b""),
        SetInviters(least=Role.MEMBER), Promote(member=cem), Demote(member=cem),
    )  # fmt: skip
    for act in acts:
        circle.govern("Olga", act)
    circle.govern("Ben", Demote(member=circle.id("Ben")))
    circle.say("Cem", "hello")
    circle.govern("Cem", Remove(member=cem))
    circle.remove("Ben", by="Anna")
    expected = [
        "Olga renamed Strolls", "Olga topic_set Sundays", "Olga picture_set",
        "Olga inviters_set member", "Olga promoted Cem", "Olga demoted Cem",
        "Ben stepped_down Ben", "Cem: hello", "Cem left Cem",
    ]  # fmt: skip
    for name in NAMES:
        end = ["Anna removed Ben"] if name != "Cem" else []
        assert told(circle, name) == ["Olga: Walks", *BEGINNING, *expected, *end]
    for name in ("Olga", "Anna"):
        assert circle[name].session.record.name == "Strolls"
        assert circle[name].store.groups()[0].name == "Strolls"


def test_a_row_goes_with_the_entry_that_it_is_about_and_comes_back(circle: Circle) -> None:
    """Ben, on another branch, named the group when Anna had removed him."""
    circle.apart = frozenset({"Ben", "Cem"})
    circle.govern("Ben", Rename(name="Bens"))
    assert told(circle, "Cem")[-1] == "Ben renamed Bens"
    assert circle["Cem"].session.record.name == "Bens"
    circle.remove("Ben", by="Anna")
    circle.apart = frozenset()
    circle.live(90)
    for name in ("Olga", "Anna", "Cem"):
        assert [one for one in told(circle, name) if "Ben" in one][-1] == "Anna removed Ben"
        assert circle[name].session.record.name == "Walks"


def test_rows_are_there_once_after_a_restart_at_any_time(circle: Circle) -> None:
    circle.apart = frozenset({"Ben", "Cem"})
    circle.govern("Ben", Rename(name="Bens"))
    circle.remove("Ben", by="Anna")
    circle["Cem"].restart(now_ms=circle.now)
    circle["Olga"].restart(now_ms=circle.now)
    circle.apart = frozenset()
    circle.live(90)
    before = told(circle, "Cem")
    for name in NAMES:
        circle[name].restart(now_ms=circle.now)
    circle.live(30)
    assert told(circle, "Cem") == before
    assert before.count("Anna removed Ben") == 1
    assert "Ben renamed Bens" not in before


def test_whoever_is_let_in_again_is_told_once_by_whom(circle: Circle) -> None:
    circle.remove("Cem", by="Anna")
    circle.say("Olga", "without Cem")
    circle.admit("Cem", by="Ben", reads_from=None)
    assert told(circle, "Cem")[-1] == "Ben added Cem"
    circle.live(5)
    circle.say("Cem", "back")
    again = circle.part("Ben").admission(circle.id("Cem"))
    circle.send("Cem", circle["Cem"].let_in(again, now_ms=circle.now))
    circle["Cem"].restart(now_ms=circle.now)
    circle.live(90)
    assert told(circle, "Cem")[-2:] == ["Ben added Cem", "Cem: back"]
    assert told(circle, "Anna")[-3:] == ["Olga: without Cem", "Ben added Cem", "Cem: back"]
    assert circle["Cem"].session.gap() is None


@pytest.mark.parametrize("clock_behind_ms", [0, 60_000])
def test_a_newcomer_is_told_once_who_let_them_in(circle: Circle, clock_behind_ms: int) -> None:
    """In place of the message that says so to the others, where that may not be read here."""
    circle.say("Olga", "before")
    circle.remove("Cem", by="Anna")
    fresh = {"reads nothing": None, "reads all": 1}
    for name, reads_from in fresh.items():
        circle.people[name] = SessionParticipant(name, seed=len(name), now_ms=circle.now)
        circle.govern("Olga", Add(member=circle.id(name), reads_from=reads_from))
        circle.inside.add(name)
        admission = circle.part("Olga").admission(circle.id(name))
        behind = UnixMs(circle.now - clock_behind_ms)
        circle.send(name, circle[name].let_in(admission, now_ms=behind))
        assert told(circle, name) == [f"Olga added {name}"]
    circle["reads nothing"].restart(now_ms=circle.now)
    circle.say("Anna", "after")
    circle.live(120)
    for name in fresh:
        circle[name].restart(now_ms=circle.now)
        circle.say(name, "hello")
    every = told(circle, "Anna")
    assert told(circle, "reads all") == every
    assert told(circle, "reads nothing") == every[-5:] == [
        "Olga added reads nothing", "Olga added reads all", "Anna: after",
        "reads nothing: hello", "reads all: hello",
    ]  # fmt: skip


def test_notes_name_the_row_that_comes_and_the_one_that_goes(circle: Circle) -> None:
    done = circle["Olga"].session.handle(Govern(Rename(name="Strolls")), now_ms=circle.now)
    assert done.message_id is not None
    (added,) = (note for note in done.notes if isinstance(note, RowAdded))
    assert added == RowAdded(message_id=done.message_id, is_own=True, notify=False)
    assert not any(isinstance(note, RowRemoved) for note in done.notes)


def test_an_admin_hides_a_message_from_everybody_and_nobody_elses(circle: Circle) -> None:
    rude = circle.say("Cem", "rude")
    fine = circle.say("Olga", "fine")
    circle.govern("Ben", DeleteMessage(message_id=rude, author=circle.id("Cem")))
    circle.govern("Ben", DeleteMessage(message_id=fine, author=circle.id("Cem")))
    for name in NAMES:
        assert told(circle, name)[-2:] == ["Cem: (deleted)", "Olga: fine"]
        by_id = {row.record.position.message_id: row for row in rows(circle, name)}
        assert by_id[rude].deleted_by == circle.id("Ben")
    with pytest.raises(LocalProtocolError, match="outranked"):
        circle.govern("Ben", DeleteMessage(message_id=fine, author=circle.id("Olga")))


def test_a_deleted_message_is_shown_again_where_the_deletion_does_not_count(
    circle: Circle,
) -> None:
    rude = circle.say("Cem", "rude")
    circle.apart = frozenset({"Ben", "Cem"})
    circle.govern("Ben", DeleteMessage(message_id=rude, author=circle.id("Cem")))
    assert told(circle, "Cem")[-1] == "Cem: (deleted)"
    circle.remove("Ben", by="Olga")
    circle.apart = frozenset()
    circle.live(90)
    for name in ("Olga", "Anna", "Cem"):
        assert "Cem: rude" in told(circle, name)
    circle["Cem"].restart(now_ms=circle.now)
    assert "Cem: rude" in told(circle, "Cem")


def test_whoever_was_no_member_any_more_did_not_leave(circle: Circle) -> None:
    circle.apart = frozenset({"Cem"})
    circle.remove("Cem", by="Anna")
    circle.live(5)
    circle.govern("Cem", Remove(member=circle.id("Cem")))
    circle.apart = frozenset()
    circle.live(90)
    for name in ("Olga", "Anna", "Ben"):
        assert [one for one in told(circle, name) if "Cem" in one][1:] in (
            ["Anna removed Cem"], ["Anna removed Cem", "Cem left Cem"],
        )  # fmt: skip
        assert told(circle, name) == told(circle, "Anna")
    circle.govern("Olga", Add(member=circle.id("Cem")))
    assert told(circle, "Anna")[-1] == "Olga added Cem"


plans = st.lists(
    st.tuples(
        st.sampled_from(("say", "remove", "promote", "demote", "rename", "delete", "split")),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    min_size=4,
    max_size=12,
)


@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(plans, st.integers(0, 999))
def test_all_end_with_the_same_rows_whatever_came_first(
    plan: list[tuple[str, str, str]], seed: int
) -> None:
    circle, random = Circle(), Random(seed)
    circle.is_lost = lambda _name, _payload: random.random() < 0.1
    last = dict[str, MessageId]()
    for what, who, whom in plan:
        acts: dict[str, Act] = {
            "remove": Remove(member=circle.id(whom)),
            "promote": Promote(member=circle.id(whom)),
            "demote": Demote(member=circle.id(whom)),
            "rename": Rename(name=f"by {who}"),
        }
        if whom in last:
            acts["delete"] = DeleteMessage(message_id=last[whom], author=circle.id(whom))
        try:
            if what in acts:
                circle.govern(who, acts[what])
            elif what == "split":
                circle.apart = frozenset({who, whom})
            else:
                last[who] = circle.say(who, f"{who} {len(circle[who].seen.sent)}")
        except LocalProtocolError:
            continue
        if random.random() < 0.2:
            circle[who].restart(now_ms=circle.now)
    circle.apart = frozenset()
    circle.live(400)
    staying = [name for name in NAMES if name in circle.roles(name)]
    for name in staying:
        assert told(circle, name) == told(circle, staying[0])
        shown = {one for one in told(circle, name) if DeedKind.REMOVED in one}
        assert len(shown) == sum(DeedKind.REMOVED in one for one in told(circle, name))


def names_told(person: SessionParticipant) -> list[str]:
    page = person.store.latest_page(person.session.record.conversation_id, limit=100)
    return [one.record.text for one in page.messages if one.record.kind == "renamed"]


@pytest.mark.parametrize("restarts", [True, False])
def test_who_was_renamed_says_it_to_a_newcomer_before_they_say_anything(
    circle: Circle, *, restarts: bool
) -> None:
    """Once; those who know it get no row of it, and the newcomer does."""
    circle["Ben"].rename("Benedict")
    circle.live(2)
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.live(1)
    circle.admit("Dora", reads_from=None)
    if restarts:
        circle["Ben"].restart(now_ms=circle.now)
    dora, ben = circle["Dora"], circle.id("Ben")
    assert dora.session.members()[ben].name == "Ben"
    circle.live(1)
    circle.say("Ben", "hello")
    assert dora.session.members()[ben].name == "Benedict"
    for name in ("Anna", "Ben", "Dora"):
        assert names_told(circle[name]) == ["Ben\nBenedict"]
        assert circle.shown(name)[-1:] == ["hello"]
    if restarts:
        circle["Ben"].restart(now_ms=circle.now)
    begin = len(circle.sent)
    circle.say("Ben", "again")
    assert [who for who, _ in circle.sent[begin:]].count("Ben") == 1
