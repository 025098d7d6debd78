"""The first removal in a group that anyone with the link is in makes it a governed group."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.admin_log.acts import ANYONE, Act, EndLink, MakeEpoch, Promote, Remove, Role
from engine.core.content import AdminEntry
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.invite import group_id_of
from engine.crypto.admin_entry import link_create_id, sign_entry, sign_link_create
from engine.crypto.identity import Identity
from engine.crypto.sealed import SealedGroup, epoch_commitment
from engine.governance_views import DeedKind
from engine.session.group import link_end
from engine.sim.session_participant import SessionParticipant
from tests.session.link_circle import NAMES, LinkCircle

REST = ("Olga", "Anna", "Ben")
ROLES = {"Olga": Role.OWNER, "Anna": Role.MEMBER, "Ben": Role.MEMBER}


@pytest.fixture
def circle() -> LinkCircle:
    return LinkCircle()


def opens(circle: LinkCircle, reader: str, payloads: list[bytes]) -> list[bytes]:
    """What somebody can open with all keys that they ever had."""
    record = circle[reader].session.record
    wire = SealedGroup(group_id=group_id_of(record.conversation_id), epoch_keys=record.epoch_keys)
    found = []
    for payload in payloads:
        try:
            wire.open(payload)
        except RemoteProtocolError:
            continue
        found.append(payload)
    return found


# --- what everybody has -------------------------------------------------------------------------


def test_the_first_removal_ends_the_link_for_everybody(circle: LinkCircle) -> None:
    circle.say("Cem", "before")
    topic = circle["Anna"].session.content_topic
    circle.remove("Cem", by="Olga")
    circle.live(60)
    for name in NAMES:
        assert circle.roles(name) == ROLES
        assert circle.counted(name) == set(REST)
    for name in REST:
        circle.say(name, name)
    for name in REST:
        assert circle.shown(name) == ["before", "Olga", "Anna", "Ben"]
    assert circle.shown("Cem") == ["before"]
    for name in NAMES:
        before = circle.roles(name), circle.shown(name), circle.part(name).now()
        circle[name].restart(now_ms=circle.now)
        assert (circle.roles(name), circle.shown(name), circle.part(name).now()) == before
        assert circle[name].session.content_topic == topic
    circle.say("Anna", "again")
    assert circle.shown("Ben")[-1] == "again"
    assert circle.shown("Cem") == ["before"]
    with pytest.raises(LocalProtocolError, match="not_in_group"):
        circle.say("Cem", "after")


def test_it_is_told_who_ended_the_link_and_who_was_removed(circle: LinkCircle) -> None:
    circle.remove("Cem", by="Olga")
    circle.live(60)
    for name in NAMES:
        assert circle.deeds(name) == [DeedKind.LINK_ENDED, DeedKind.REMOVED]


def test_all_that_a_governed_group_can_works_afterwards(circle: LinkCircle) -> None:
    circle.remove("Cem", by="Olga")
    circle.govern("Olga", Promote(member=circle.id("Anna")))
    circle.remove("Ben", by="Anna")
    circle.live(60)
    circle.say("Anna", "we two")
    for name in ("Olga", "Anna"):
        assert circle.roles(name) == {"Olga": Role.OWNER, "Anna": Role.ADMIN}
        assert circle.shown(name) == ["we two"]
    assert circle.shown("Ben") == []


def test_only_the_creator_ends_it_and_only_by_removing_a_member(circle: LinkCircle) -> None:
    refused: list[tuple[str, Act]] = [
        ("Anna", Remove(member=circle.id("Cem"))),
        ("Olga", Remove(member=circle.id("Olga"))),
        ("Olga", Remove(member=circle.id("Dora"))),
        ("Olga", Promote(member=circle.id("Anna"))),
    ]
    for who, act in refused:
        sent = len(circle.sent)
        with pytest.raises(LocalProtocolError, match=r"not_governed|not_in_group"):
            circle.govern(who, act)
        assert len(circle.sent) == sent
    assert not any(map(circle.is_governed, NAMES))


# --- keys ---------------------------------------------------------------------------------------


def test_who_was_removed_reads_nothing_that_those_who_heard_say(circle: LinkCircle) -> None:
    """With the link, and with every key that they ever had."""
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.sent.clear()
    for name in REST:
        circle.say(name, "secret")
    circle.live(20)
    said = [payload for sender, payload in circle.sent if sender in REST]
    assert said
    assert opens(circle, "Cem", said) == []
    assert len(opens(circle, "Anna", said)) == len(said)


def test_the_key_of_the_link_is_never_good_again(circle: LinkCircle) -> None:
    """Not even when all who had it as members are members again."""
    circle.remove("Cem", by="Olga")
    circle.live(30)
    circle.admit("Cem")
    circle.live(60)
    circle.say("Cem", "I am back")
    circle.say("Olga", "welcome")
    for name in NAMES:
        assert circle.shown(name) == ["I am back", "welcome"]
        state = circle.part(name).governance.state
        link = next(one for one in state.epochs if ANYONE in one.given)
        assert not link.is_good
    record = circle["Anna"].session.record
    wire = SealedGroup(
        group_id=group_id_of(record.conversation_id), epoch_keys=record.epoch_keys[:1]
    )
    last = [payload for sender, payload in circle.sent if sender == "Olga"][-1]
    with pytest.raises(RemoteProtocolError, match="unknown_epoch"):
        wire.open(last)


def test_no_member_makes_the_key_of_the_link_good_for_who_has_heard_of_its_end_alone(
    circle: LinkCircle,
) -> None:
    record = circle["Olga"].session.record
    group_id = group_id_of(record.conversation_id)
    commitment = epoch_commitment(group_id, record.epoch_keys[0])
    circle.apart = frozenset({"Anna", "Ben"})
    circle.sent.clear()
    circle.remove("Cem", by="Olga")
    end = next(payload for sender, payload in circle.sent if sender == "Olga")
    for name in ("Anna", "Ben"):
        circle.replay(name, end)
        assert circle.roles(name) == {**ROLES, "Cem": Role.MEMBER}
    verdicts = circle.part("Anna").governance.state.verdicts
    found = map(circle.part("Anna").governance.find, verdicts)
    (heads,) = ((one.entry_id,) for one in found if one and isinstance(one.act, EndLink))
    act = MakeEpoch(commitment=commitment, recipients=frozenset(map(circle.id, NAMES)))
    lie = sign_entry(
        identity_of(circle, "Anna"), act, group_id=group_id, lamport_timestamp=100,
        sent_ms=circle.now, heads=heads,
    ).data  # fmt: skip
    circle.send("Anna", circle["Anna"].say(AdminEntry(lie), now_ms=circle.now))
    circle.live(60)
    circle.sent.clear()
    circle.say("Ben", "secret")
    said = [payload for sender, payload in circle.sent if sender == "Ben"]
    assert said
    wire = SealedGroup(group_id=group_id, epoch_keys=record.epoch_keys[:1])
    for payload in said:
        with pytest.raises(RemoteProtocolError, match="unknown_epoch"):
            wire.open(payload)
    assert circle.shown("Ben") == ["secret"]


def test_what_was_written_offline_in_the_old_key_is_signed_anew(circle: LinkCircle) -> None:
    circle.unheard = frozenset({"Ben"})
    circle.send("Ben", circle["Ben"].set_online(False, now_ms=circle.now))
    circle.say("Ben", "while I was away")
    circle.remove("Cem", by="Olga")
    circle.unheard = frozenset()
    for payload in [payload for sender, payload in circle.sent if sender == "Olga"][-12:]:
        circle.replay("Ben", payload)
    circle.sent.clear()
    circle.send("Ben", circle["Ben"].set_online(True, now_ms=circle.now))
    circle.live(60)
    assert circle.shown("Anna") == ["while I was away"]
    assert circle.shown("Cem") == []


def test_members_make_no_keys_of_their_own_while_the_creators_is_on_its_way(
    circle: LinkCircle,
) -> None:
    circle.remove("Cem", by="Olga")
    circle.live(120)
    for name in REST:
        assert len(circle.part(name).governance.state.epochs) == 2
        assert circle.part(name).now().without_prekey == frozenset()


# --- who was somewhere else ---------------------------------------------------------------------


def test_members_who_went_on_in_the_old_key_count_and_the_removed_does_not(
    circle: LinkCircle,
) -> None:
    circle.say("Cem", "before")
    circle.apart = frozenset({"Ben", "Cem"})
    circle.remove("Cem", by="Olga")
    circle.say("Cem", "after")
    circle.say("Ben", "an answer")
    circle.say("Anna", "new")
    assert circle.shown("Ben") == ["before", "after", "an answer"]
    circle.apart = frozenset()
    circle.live(200)
    for name in REST:
        assert sorted(circle.shown(name)) == ["an answer", "before", "new"]
        assert circle[name].session.gap() is None
        assert circle.part(name).now().voids == {circle.id("Cem"): 1}
        circle[name].restart(now_ms=circle.now)
        circle.live(5)
        assert circle.part(name).now().voids == {circle.id("Cem"): 1}
    assert sorted(circle.shown("Cem")) == ["an answer", "before"]


def test_who_left_before_keeps_what_they_said_and_says_no_more(circle: LinkCircle) -> None:
    circle.say("Ben", "bye")
    circle.leave("Ben")
    circle.live(10)
    circle.unheard = frozenset({"Ben"})
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.unheard = frozenset()
    circle.say("Ben", "and another thing")
    circle.live(60)
    for name in ("Olga", "Anna"):
        assert circle.shown(name) == ["bye"]
        assert circle.roles(name) == {"Olga": Role.OWNER, "Anna": Role.MEMBER}
    circle[name].restart(now_ms=circle.now)
    circle.live(10)
    assert circle.shown(name) == ["bye"]


def test_more_who_left_than_one_entry_can_name_keep_what_they_said(
    circle: LinkCircle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_end, "ROOM_BYTES", 100)
    for name in ("Anna", "Ben"):
        circle.say(name, f"bye from {name}")
        circle.leave(name)
    circle.join("Dora")
    circle.unheard = frozenset({"Anna", "Ben"})
    circle.remove("Cem", by="Olga")
    circle.live(60)
    for name in ("Olga", "Dora"):
        verdicts = circle.part(name).governance.state.verdicts
        found = map(circle.part(name).governance.find, verdicts)
        ends = [len(one.act.left) for one in found if one and isinstance(one.act, EndLink)]
        assert sorted(ends) == [0, 1, 1]
        assert circle.shown(name) == ["bye from Anna", "bye from Ben"]
        assert circle.roles(name) == {"Olga": Role.OWNER, "Dora": Role.MEMBER}


def test_who_left_can_be_let_in_again(circle: LinkCircle) -> None:
    circle.say("Ben", "bye")
    circle.leave("Ben")
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.admit("Ben")
    circle.live(60)
    circle.say("Ben", "hello again")
    for name in REST:
        assert circle.shown(name) == ["bye", "hello again"]


def test_strangers_with_the_old_link_get_nowhere(circle: LinkCircle) -> None:
    """And learn that the link ended."""
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.join("Dora")
    circle.say("Dora", "let me in")
    circle.live(120)
    for name in REST:
        assert circle.shown(name) == []
        assert circle.counted(name) == set(REST)
    assert circle.part("Dora").now().is_link_over
    assert circle.part("Dora").now().own_role is Role.NOBODY
    with pytest.raises(LocalProtocolError, match="not_in_group"):
        circle.say("Dora", "again")
    circle.sent.clear()
    circle.say("Anna", "secret")
    assert opens(circle, "Dora", [payload for _, payload in circle.sent]) == []


def test_whom_the_creator_had_not_heard_of_is_nobody_anywhere(circle: LinkCircle) -> None:
    """Dora came while Anna was cut off with her; nobody waits for what she wrote."""
    circle.apart = frozenset({"Anna", "Dora"})
    circle.join("Dora")
    circle.say("Dora", "hello")
    circle.say("Anna", "hello, Dora")
    circle.remove("Cem", by="Olga")
    circle.apart = frozenset()
    circle.live(300)
    for name in REST:
        assert circle.counted(name) == set(REST)
        assert circle.shown(name) == ["hello, Dora"]
        assert circle[name].session.gap() is None
    circle["Anna"].restart(now_ms=circle.now)
    circle.live(5)
    assert circle.shown("Anna") == ["hello, Dora"]
    assert circle.part("Dora").now().is_link_over
    circle.admit("Dora")
    circle.live(60)
    for name in REST:
        assert circle.shown(name) == ["hello", "hello, Dora"]


def test_whom_nobody_knew_can_be_let_in_afterwards(circle: LinkCircle) -> None:
    """Whether they heard that the link ended or not."""
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.join("Dora")
    circle.live(60)
    circle.admit("Dora")
    circle.inside.add("Eve")
    circle.unheard = frozenset({"Eve"})
    circle.join("Eve")
    circle.unheard = frozenset()
    assert not circle.is_governed("Eve")
    circle.admit("Eve", reads_from=None)
    circle.live(60)
    for name in ("Dora", "Eve"):
        circle.say(name, name)
    for name in (*REST, "Dora", "Eve"):
        assert circle.shown(name)[-2:] == ["Dora", "Eve"]
        assert circle.counted(name) == {*REST, "Dora", "Eve"}


@pytest.mark.parametrize("reads_from", [None, 1])
def test_a_newcomer_comes_into_a_group_that_had_a_link(
    circle: LinkCircle, reads_from: int | None
) -> None:
    """And reads back as far as the inviter chose, also what was said in the key of the link."""
    circle.say("Anna", "of before")
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.admit("Dora", reads_from=reads_from)
    circle.live(30)
    assert circle["Dora"].session.content_topic == circle["Olga"].session.content_topic
    circle.say("Dora", "hello")
    circle.say("Anna", "welcome")
    circle.live(60)
    for name in (*REST, "Dora"):
        assert circle.shown(name)[-2:] == ["hello", "welcome"]
    circle["Dora"].restart(now_ms=circle.now)
    circle.say("Ben", "still there?")
    assert circle.shown("Dora")[-1] == "still there?"
    link = circle["Olga"].session.record.epoch_keys[0]
    assert (link in circle["Dora"].session.record.epoch_keys) is (reads_from == 1)


# --- lies ---------------------------------------------------------------------------------------


def link_end_by(
    circle: LinkCircle, author: str, *, signer: str | None = None, without: str = ""
) -> AdminEntry:
    record = circle["Olga"].session.record
    group_id = group_id_of(record.conversation_id)
    identity, beginner = identity_of(circle, author), identity_of(circle, signer or author)
    members = frozenset(circle.id(name) for name in NAMES if name != without)
    act = EndLink(
        name="Mine",
        members=members,
        topic_name=bytes(16),
        create_signature=sign_link_create(beginner, group_id=group_id),
        key_commitment=epoch_commitment(group_id, record.epoch_keys[0]),
    )
    first = link_create_id(record.admin_public_key, group_id=group_id)
    return AdminEntry(
        sign_entry(
            identity, act, group_id=group_id, lamport_timestamp=2, sent_ms=circle.now,
            heads=(first,),
        ).data
    )  # fmt: skip


def identity_of(circle: LinkCircle, name: str) -> Identity:
    return circle[name].identity


@pytest.mark.parametrize(("author", "signer"), [("Anna", "Anna"), ("Olga", "Anna")])
def test_a_forged_end_does_nothing(circle: LinkCircle, author: str, signer: str) -> None:
    circle.send(
        author, circle[author].say(link_end_by(circle, author, signer=signer), now_ms=circle.now)
    )
    circle.live(10)
    assert not any(map(circle.is_governed, NAMES))
    circle.say("Cem", "as before")
    assert all(circle.shown(name) == ["as before"] for name in NAMES)
    circle.remove("Cem", by="Olga")
    circle.live(60)
    assert all(circle.roles(name) == ROLES for name in NAMES)


def test_somebody_elses_entry_is_taken_from_nobody(circle: LinkCircle) -> None:
    circle.send("Anna", circle["Anna"].say(link_end_by(circle, "Olga"), now_ms=circle.now))
    assert not any(map(circle.is_governed, NAMES))


def test_two_devices_of_the_creator_that_end_the_link_apart_have_one_group(
    circle: LinkCircle,
) -> None:
    """A profile was restored, or the creator lies; both ends count, wherever one is heard first."""
    other = circle.people["Other"] = SessionParticipant("Olga", seed=5, now_ms=circle.now)
    circle.apart = frozenset({"Other", "Anna"})
    circle.join("Other")
    circle.say("Anna", "hello")
    circle.remove("Anna", by="Other")
    assert circle.is_governed("Anna")
    circle.remove("Cem", by="Olga")
    circle.apart = frozenset()
    circle.live(300)
    for name in (*NAMES, "Other"):
        roles = circle.part(name).governance.state.roles
        assert roles == {other.participant_id: Role.OWNER, circle.id("Ben"): Role.MEMBER}
    circle.say("Ben", "one group")
    circle.live(30)
    for name in ("Olga", "Ben"):
        assert circle.shown(name)[-1] == "one group"


def test_a_second_end_undoes_no_removal(circle: LinkCircle) -> None:
    """The creator's profile was restored, and did not know of the first one."""
    circle.remove("Cem", by="Olga")
    circle.live(60)
    circle.send("Olga", circle["Olga"].say(link_end_by(circle, "Olga"), now_ms=circle.now))
    circle.live(60)
    for name in NAMES:
        assert circle.roles(name) == ROLES


# --- losses, orders and crashes -----------------------------------------------------------------


def test_what_comes_before_the_end_of_the_link_is_not_lost(circle: LinkCircle) -> None:
    """In every order of what is sent then, and with a restart after each."""
    circle.unheard = frozenset({"Ben"})
    circle.sent.clear()
    circle.remove("Cem", by="Olga")
    sent = [payload for sender, payload in circle.sent if sender == "Olga"]
    circle.unheard = frozenset()
    for payload in sent[::-1]:
        circle.replay("Ben", payload)
        circle["Ben"].restart(now_ms=circle.now)
    circle.live(60)
    assert circle.roles("Ben") == ROLES
    circle.say("Ben", "here")
    assert circle.shown("Anna") == ["here"]
    assert len(circle.part("Ben").governance.state.epochs) == 2


def test_an_entry_that_came_before_the_end_counts_once_that_comes(circle: LinkCircle) -> None:
    """Its message was delivered without the one before it, which was given up."""
    circle.sent.clear()
    circle.unheard = frozenset({"Ben"})
    circle.remove("Cem", by="Olga")
    sent = [payload for sender, payload in circle.sent if sender == "Olga"]
    circle.live_but("Ben", 5)
    circle.unheard = frozenset()
    circle.apart = frozenset({"Ben"})
    for payload in sent[1:]:
        circle.replay("Ben", payload)
    circle.live(900)
    assert not circle.is_governed("Ben")
    circle["Ben"].restart(now_ms=circle.now)
    circle.replay("Ben", sent[0])
    circle.live(5)
    assert circle.roles("Ben") == ROLES


def test_what_anybody_wrote_before_takes_no_room_of_the_creators(
    circle: LinkCircle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many entries somebody with the link writes, the end is there after a restart."""
    monkeypatch.setattr(link_end, "MAX_KEPT", 4)
    for _ in range(5):
        forged = link_end_by(circle, "Cem")
        circle.send("Cem", circle["Cem"].say(forged, now_ms=circle.now))
        circle.live(1)
    circle.unheard = frozenset({"Ben"})
    circle.sent.clear()
    circle.remove("Cem", by="Olga")
    sent = [payload for sender, payload in circle.sent if sender == "Olga"]
    circle.unheard = frozenset()
    for payload in sent[::-1]:
        circle.replay("Ben", payload)
    for name in NAMES:
        circle[name].restart(now_ms=circle.now)
        assert circle.roles(name) == ROLES
    circle.live(60)
    circle.say("Ben", "here")
    assert circle.shown("Anna") == ["here"]


def test_who_lost_all_of_it_hears_of_it_as_soon_as_they_say_something(
    circle: LinkCircle,
) -> None:
    circle.is_lost = lambda name, _payload: name == "Ben"
    circle.remove("Cem", by="Olga")
    circle.live(3)
    circle.is_lost = lambda _name, _payload: False
    circle.say("Anna", "secret")
    circle.say("Ben", "anybody there?")
    circle.live(60)
    assert circle.roles("Ben") == ROLES
    assert sorted(circle.shown("Ben")) == ["anybody there?", "secret"]


Step = Callable[[LinkCircle, Random], None]


def _partition(circle: LinkCircle, random: Random) -> None:
    circle.apart = frozenset(name for name in NAMES if random.random() < 0.4)


def _say(circle: LinkCircle, random: Random) -> None:
    name = random.choice(NAMES)
    role = circle.part(name).now().own_role if circle.is_governed(name) else Role.MEMBER
    if role is not Role.NOBODY:
        circle.say(name, f"{name} {circle.now}")


def _restart(circle: LinkCircle, random: Random) -> None:
    circle[random.choice(NAMES)].restart(now_ms=circle.now)


def _wait(circle: LinkCircle, random: Random) -> None:
    circle.live(random.randint(1, 20))


def _end(circle: LinkCircle, _random: Random) -> None:
    if not circle.is_governed("Olga"):
        circle.remove("Cem", by="Olga")


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from([_partition, _say, _say, _restart, _wait, _end]), max_size=14),
    st.integers(0, 2**32),
)
def test_any_plan_ends_with_one_group(steps: list[Step], seed: int) -> None:
    circle, random = LinkCircle(), Random(seed)
    circle.is_lost = lambda _name, _payload: random.random() < 0.15
    for step in steps:
        step(circle, random)
    _end(circle, random)
    circle.apart = frozenset()
    circle.is_lost = lambda _name, _payload: False
    circle.live(400)
    assert all(circle.roles(name) == ROLES for name in REST)
    circle.say("Ben", "the end")
    circle.live(60)
    shown = circle.shown("Olga")
    assert shown[-1] == "the end"
    for name in REST:
        assert circle.shown(name) == shown
        assert circle.counted(name) == set(REST)
        assert circle[name].session.gap() is None
    assert "the end" not in circle.shown("Cem")
