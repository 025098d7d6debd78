"""Keys of a governed group through whole sessions: who reads what, whatever is lost or late."""

import pytest

from engine.core.admin_log.acts import (
    Act,
    Add,
    EntryId,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    SetTopic,
)
from engine.core.content import AdminEntry, KeysWanted
from engine.core.epochs import FRESH_AFTER_MS, FRESH_SPREAD_MS
from engine.core.ids import UnixMs
from engine.core.invite import group_id_of
from engine.crypto.admin_entry import sign_entry
from engine.crypto.sealed import SealedGroup, epoch_commitment
from engine.session.group import key_questions
from engine.session.group.epoch_keys import CLOCKS_DIFFER_MS
from engine.sim.session_participant import SessionParticipant
from proto import sds_pb2
from tests.session.governed_circle import NAMES, Circle
from tests.session.reading import say_nothing

DAY_MS = 86_400_000


@pytest.fixture
def circle() -> Circle:
    return Circle()


def test_the_removed_read_nothing_by_those_who_have_heard_of_it(circle: Circle) -> None:
    """But what makes the fresh key known, which says nothing, and what was said before."""
    circle.say("Anna", "before")
    circle.live(30)
    begin = len(circle.sent)
    circle.remove("Cem", by="Olga")
    for name in ("Olga", "Anna", "Ben"):
        circle.say(name, f"secret of {name}")
    circle.govern("Anna", Rename(name="Without Cem"))
    circle.live(60)
    record = circle["Cem"].session.record
    group_id = group_id_of(record.conversation_id)
    later = [payload for sender, payload in circle.sent[begin:] if sender != "Cem"]
    assert say_nothing(group_id, record.epoch_keys, later, since_ms=circle.removed_ms)
    ours = circle["Ben"].session.record.epoch_keys
    assert not say_nothing(group_id, ours, later, since_ms=circle.removed_ms)
    assert circle.shown("Cem") == ["before"]
    assert circle.shown("Ben") == ["before", *(f"secret of {n}" for n in ("Olga", "Anna", "Ben"))]


def test_two_removed_on_two_branches_read_nothing_with_the_keys_of_both(circle: Circle) -> None:
    circle.apart = frozenset({"Anna", "Ben"})
    circle.remove("Cem", by="Anna")
    circle.say("Anna", "without Cem")
    circle.govern("Olga", Rename(name="x"))
    circle.remove("Ben", by="Olga")
    circle.say("Olga", "without Ben")
    circle.apart = frozenset()
    circle.live(150)
    begin = len(circle.sent)
    circle.say("Olga", "without both")
    circle.say("Anna", "without both")
    pooled = circle["Cem"].session.record.epoch_keys + circle["Ben"].session.record.epoch_keys
    group_id = group_id_of(circle["Cem"].session.record.conversation_id)
    later = [payload for sender, payload in circle.sent[begin:] if sender in {"Olga", "Anna"}]
    assert say_nothing(group_id, tuple(dict.fromkeys(pooled)), later)
    assert circle.shown("Anna")[-2:] == circle.shown("Olga")[-2:] == ["without both"] * 2


def test_who_lost_their_wrap_asks_and_is_given_it_again(circle: Circle) -> None:
    circle["Ben"].restart(now_ms=circle.now)
    known = set(circle["Ben"].session.record.epoch_keys)
    circle.is_lost = lambda name, _payload: name == "Ben"
    circle.remove("Cem", by="Olga")
    circle.is_lost = lambda _name, _payload: False
    circle.say("Anna", "in a key that Ben lacks")
    assert circle.shown("Ben") == []
    circle.live(200)
    assert circle.shown("Ben") == ["in a key that Ben lacks"]
    assert set(circle["Ben"].session.record.epoch_keys) > known


def test_a_fresh_key_after_a_week_and_a_prekey_each_week(circle: Circle) -> None:
    before = dict.fromkeys(NAMES, circle["Olga"].session.record.epoch_keys)
    prekeys = {name: circle.prekeys(name) for name in NAMES}
    assert all(len(own) == 1 for own in prekeys.values())
    circle.now = UnixMs(circle.now + FRESH_AFTER_MS + FRESH_SPREAD_MS)
    circle.live(60)
    circle.say("Cem", "a week later")
    for name in NAMES:
        keys = circle[name].session.record.epoch_keys
        assert len(keys) > len(before[name])
        assert circle.shown(name) == ["a week later"]
        assert len(circle.prekeys(name)) == 2
    sending = {circle.part(name).keys.sending() for name in NAMES}
    assert len(sending) == 1


def test_who_was_away_when_a_key_was_due_looks_first_whether_another_made_one(
    circle: Circle,
) -> None:
    circle.inside.discard("Cem")
    circle.now = UnixMs(circle.now + FRESH_AFTER_MS + FRESH_SPREAD_MS)
    begin = len(circle.sent)
    circle.live_but("Cem", 150)
    made = circle.part("Olga").governance.state.epochs
    assert len(made) > 1
    circle.inside.add("Cem")
    circle["Cem"].restart(now_ms=circle.now)
    circle.send("Cem", circle["Cem"].advance(now_ms=circle.now))
    for _, payload in circle.sent[begin:]:
        circle.replay("Cem", payload)
    circle.live(150)
    assert circle.part("Cem").governance.state.epochs == made


def test_who_is_let_in_seals_keys_to_the_prekeys_of_those_who_were_there(circle: Circle) -> None:
    """Also who may read nothing of before, and so not the messages that told of them."""
    circle.people["Dora"] = dora = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.govern("Olga", Add(member=dora.participant_id, reads_from=None))
    circle.live(5)
    circle.inside.add("Dora")
    admission = circle.part("Olga").admission(dora.participant_id)
    circle.send("Dora", dora.let_in(admission, now_ms=circle.now))
    assert not circle.part("Dora").now().without_prekey
    circle.remove("Cem", by="Cem")
    circle.say("Dora", "in a key of Dora's")
    circle.live(5)
    assert "group.wrapped_without_prekey" not in dora.session.counted()
    assert {name: circle.shown(name)[-1] for name in NAMES[:3]} == dict.fromkeys(
        NAMES[:3], "in a key of Dora's"
    )
    dora.restart(now_ms=circle.now)
    assert not circle.part("Dora").now().without_prekey


def test_who_is_let_in_again_has_the_prekeys_that_are_the_newest(circle: Circle) -> None:
    before = circle.part("Cem").keys.prekeys()
    circle.inside.discard("Cem")
    circle.now = UnixMs(circle.now + FRESH_AFTER_MS + FRESH_SPREAD_MS)
    circle.live_but("Cem", 150)
    admission = circle.part("Olga").admission(circle.id("Cem"))
    made_since = set(admission.prekeys) - set(before)
    assert len(made_since) == len(NAMES) - 1
    circle["Cem"].let_in(admission, now_ms=circle.now)
    circle["Cem"].restart(now_ms=circle.now)
    assert made_since < set(circle.part("Cem").keys.prekeys())


def test_whose_prekey_never_came_is_given_the_key_by_that_of_their_join(circle: Circle) -> None:
    """And that is counted: it opens such wraps for as long as their profile lives."""
    circle.people["Dora"] = dora = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.govern("Olga", Add(member=dora.participant_id, reads_from=1))
    circle.inside.add("Dora")
    admission = circle.part("Olga").admission(dora.participant_id)
    (joined, *_) = dora.let_in(admission, now_ms=circle.now)
    circle.send("Dora", [joined])
    circle.remove("Cem", by="Olga")
    assert circle["Olga"].session.counted()["group.wrapped_without_prekey"] == 1
    assert circle.part("Olga").now().without_prekey == {dora.participant_id}
    circle.say("Olga", "in a fresh key")
    circle.live(5)
    assert circle.shown("Dora") == ["in a fresh key"]
    assert circle.part("Dora").keys.sending() == circle.part("Olga").keys.sending()
    assert not circle.part("Olga").now().without_prekey


def test_who_asks_for_key_after_key_keeps_nobody_else_from_an_answer(
    circle: Circle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_questions, "MAX_ANSWERS", 2)
    circle.remove("Ben", by="Olga")
    circle.admit("Ben")
    newer, older = (one.commitment for one in circle.part("Olga").governance.state.epochs)
    for name, wanted in (("Cem", (newer, older)), ("Ben", (newer,))):
        circle.send(name, circle[name].say(KeysWanted(wanted), now_ms=circle.now))
    assert "group.too_many_questions" not in circle["Olga"].session.counted()


def test_keys_outlive_a_restart_and_history_opens_in_any_order(circle: Circle) -> None:
    circle.is_lost = lambda name, _payload: name == "Ben"
    begin = len(circle.sent)
    circle.say("Anna", "one")
    circle.remove("Cem", by="Olga")
    circle.say("Anna", "two")
    circle.is_lost = lambda _name, _payload: False
    circle["Ben"].restart(now_ms=circle.now)
    for _, payload in reversed(circle.sent[begin:]):
        circle.replay("Ben", payload)
    circle.live(60)
    assert circle.shown("Ben") == ["one", "two"]
    circle["Ben"].restart(now_ms=circle.now)
    circle.say("Olga", "three")
    assert circle.shown("Ben") == ["one", "two", "three"]


def test_a_liar_who_is_removed_neither_stays_nor_spoils_more_than_one_epoch(
    circle: Circle,
) -> None:
    """Ben, an admin, writes entries that pretend to know of nothing, and gives keys away."""
    group_id = group_id_of(circle["Ben"].session.record.conversation_id)
    known = circle.part("Ben").governance.state
    (epoch, *_) = known.epochs
    outsider = SessionParticipant("Mallory", seed=9, now_ms=circle.now)
    friends = frozenset({circle.id("Ben"), outsider.participant_id})
    lies: tuple[Act, ...] = (
        Remove(member=circle.id("Olga")),
        Remove(member=circle.id("Anna")),
        Promote(member=circle.id("Cem")),
        Add(member=outsider.participant_id, reads_from=1),
        MakeEpoch(commitment=epoch.commitment, recipients=friends),
        MakeEpoch(commitment=bytes(32), recipients=friends),
    )
    circle.apart = frozenset({"Ben"})
    circle.remove("Ben", by="Olga")
    for number, act in enumerate(lies):
        entry = sign_entry(
            circle["Ben"].identity,
            act,
            group_id=group_id,
            lamport_timestamp=1_000 * (number + 1),
            sent_ms=circle.now,
            heads=(epoch.entry_id,),
        )
        circle.send("Ben", circle["Ben"].say(AdminEntry(entry.data), now_ms=circle.now))
    circle.apart = frozenset()
    circle.live(150)
    begin = len(circle.sent)
    for name in ("Olga", "Anna", "Cem"):
        circle.say(name, f"by {name}")
    circle.live(60)
    for name in ("Olga", "Anna", "Cem"):
        assert circle.part(name).governance.state.roles.keys() == {
            circle.id(each) for each in ("Olga", "Anna", "Cem")
        }
        assert sorted(circle.shown(name)) == ["by Anna", "by Cem", "by Olga"]
    keys = circle["Ben"].session.record.epoch_keys
    later = [payload for sender, payload in circle.sent[begin:] if sender != "Ben"]
    assert say_nothing(group_id, keys, later, since_ms=circle.now - 60_000)


def test_who_is_let_in_again_reads_on_but_not_what_was_said_meanwhile(circle: Circle) -> None:
    circle.remove("Cem", by="Olga")
    circle.say("Olga", "meanwhile")
    circle.live(30)
    circle.govern("Olga", Add(member=circle.id("Cem")))
    circle.say("Olga", "welcome back")
    given = circle.part("Olga").keys.keys_for(circle.id("Cem"))
    assert circle["Olga"].session.record.epoch_keys[-1] not in given


def lie(circle: Circle, name: str, act: Act, *, lamport: int, after: tuple[EntryId, ...]) -> None:
    """As a changed program can."""
    signed = sign_entry(
        circle[name].identity,
        act,
        group_id=group_id_of(circle[name].session.record.conversation_id),
        lamport_timestamp=lamport,
        sent_ms=circle.now,
        heads=after,
    )
    circle.send(name, circle[name].say(AdminEntry(signed.data), now_ms=circle.now))


@pytest.mark.parametrize("was_here_before", [True, False])
def test_nobody_gives_themselves_the_keys_that_their_inviter_kept_from_them(
    circle: Circle, *, was_here_before: bool
) -> None:
    name = "Cem" if was_here_before else "Dora"
    if was_here_before:
        circle.remove("Cem", by="Olga")
    else:
        circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.say("Ben", "not for them")
    withheld = circle.part("Olga").governance.state.epochs[0]
    circle.live(30)
    circle.admit(name, reads_from=None)
    circle.say("Ben", "welcome")
    (newest, *_) = circle.part(name).governance.state.epochs
    lie(
        circle,
        name,
        MakeEpoch(commitment=withheld.commitment, recipients=frozenset({circle.id(name)})),
        lamport=newest.lamport_timestamp + 1,
        after=(newest.entry_id,),
    )
    asked = KeysWanted((withheld.commitment,))
    circle.send(name, circle[name].say(asked, now_ms=circle.now))
    circle.live(120)
    assert circle.shown(name) == ["welcome"]
    group_id = group_id_of(circle["Olga"].session.record.conversation_id)
    held = {epoch_commitment(group_id, key) for key in circle[name].session.record.epoch_keys}
    assert withheld.commitment not in held


def test_thirty_days_back_is_the_epoch_of_then_also_for_a_newcomer(circle: Circle) -> None:
    """Who came today has all keys since today, and lets nobody read back further by that."""
    (begun,) = circle.part("Olga").governance.state.epochs
    circle.now = UnixMs(circle.now + 31 * DAY_MS)
    circle.live(30)
    fresh = circle.part("Olga").governance.state.epochs[0]
    assert fresh.commitment != begun.commitment
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora")
    for name in ("Olga", "Dora"):
        keys = circle.part(name).keys
        assert keys.written_in_at(UnixMs(circle.now - 30 * DAY_MS)) == begun.lamport_timestamp
        assert keys.written_in_at(circle.now) == fresh.lamport_timestamp
        assert keys.written_in_at(UnixMs(circle.now - 99 * DAY_MS)) == 1


@pytest.mark.parametrize("is_offline", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_nobody_took_before_a_removal_is_sealed_anew_for_those_who_stay(
    circle: Circle, *, is_offline: bool, restarts: bool
) -> None:
    """Ben wrote where nobody heard him, and then hears that Cem was removed meanwhile."""
    circle.say("Ben", "taken before")
    circle.unheard = frozenset({"Ben"})
    if is_offline:
        circle.send("Ben", circle["Ben"].set_online(False, now_ms=circle.now))
    said = circle.say("Ben", "not for Cem")
    circle.govern("Ben", SetTopic(topic="for all"))
    begin = len(circle.sent)
    circle.remove("Cem", by="Olga")
    missed = [payload for _, payload in circle.sent[begin:]]
    if restarts:
        circle["Ben"].restart(now_ms=circle.now)
    circle.unheard = frozenset()
    circle.send("Ben", circle["Ben"].set_online(True, now_ms=circle.now))
    for payload in missed:
        circle.replay("Ben", payload)
    if restarts:
        circle["Ben"].restart(now_ms=circle.now)
    circle.live(120)
    record = circle["Cem"].session.record
    group_id = group_id_of(record.conversation_id)
    by_ben = [payload for sender, payload in circle.sent[begin:] if sender == "Ben"]
    assert say_nothing(group_id, record.epoch_keys, by_ben, since_ms=circle.removed_ms)
    assert circle.shown("Cem") == ["taken before"]
    for name in ("Olga", "Anna", "Ben"):
        assert circle.shown(name) == ["taken before", "not for Cem"]
        assert circle.part(name).governance.state.topic == "for all"
    begin = len(circle.sent)
    circle.send("Ben", circle["Ben"].send_again(said, now_ms=circle.now))
    again = [payload for _, payload in circle.sent[begin:]]
    assert again
    assert say_nothing(group_id, record.epoch_keys, again)


def test_a_newcomer_waits_for_nothing_that_they_may_not_read(circle: Circle) -> None:
    """Whatever the first messages depend on, and also after a restart and when all is quiet."""
    for number in range(30):
        circle.say("Ben", f"before {number}")
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora", by="Anna", reads_from=None)
    circle.say("Ben", "welcome")
    circle.say("Cem", "hello")
    assert circle.shown("Dora") == ["welcome", "hello"]
    assert circle["Dora"].session.gap() is None
    circle.say("Dora", "thanks")
    circle["Dora"].restart(now_ms=circle.now)
    circle.live(120)
    for name in ("Dora", *NAMES):
        assert circle.shown(name)[-3:] == ["welcome", "hello", "thanks"]
        assert circle[name].session.gap() is None
    assert not circle["Dora"].session.buffers().missing


@pytest.mark.parametrize("restarts", [False, True])
def test_nobody_sends_a_newcomer_what_they_may_not_read(circle: Circle, *, restarts: bool) -> None:
    """The whole past went out again whenever the newcomer said what is there."""
    for number in range(30):
        circle.say("Ben", f"before {number}")
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora", by="Anna", reads_from=None)
    circle.say("Dora", "hello")
    for name in NAMES if restarts else ():
        circle[name].restart(now_ms=circle.now)
    circle.live(300)
    useless = circle["Dora"].counters["group.not_for_us"]
    assert useless < 30, "what made their key known is sealed in the one before"


def test_a_newcomer_is_sent_what_they_lack_of_what_they_may_read(circle: Circle) -> None:
    """Nothing names it any more: it is known only from what the newcomer says is there."""
    circle.say("Ben", "too early")
    circle.remove("Cem", by="Olga")
    circle.say("Ben", "since then")
    since = circle.part("Olga").governance.state.epochs[0].lamport_timestamp
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora", by="Anna", reads_from=since)
    circle.is_lost = lambda name, _payload: name == "Dora"
    for number in range(30):
        circle.say("Anna", f"after {number}")
    circle.is_lost = lambda _name, _payload: False
    circle.live(300)
    after = [f"after {number}" for number in range(30)]
    assert circle.shown("Dora") == ["since then", *after]


def test_who_may_read_nothing_of_before_knows_it_unless_they_were_here_before(
    circle: Circle,
) -> None:
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora", reads_from=None)
    circle.remove("Cem", by="Olga")
    circle.admit("Cem", reads_from=None)

    def is_withheld(name: str) -> bool:
        known = circle[name].session.governance()
        return known is not None and known.is_history_withheld

    assert {name for name in (*NAMES, "Dora") if is_withheld(name)} == {"Dora"}
    circle.remove("Dora", by="Olga")
    assert is_withheld("Dora"), "there is still nothing from before"
    circle.admit("Dora", reads_from=None)
    assert not is_withheld("Dora"), "of the first stay there is something"


def test_it_is_known_since_when_something_can_be_read(circle: Circle) -> None:
    """By the clocks of those who let us in and who made the keys, less than they may differ."""

    def since(name: str) -> UnixMs | None:
        known = circle[name].session.governance()
        return None if known is None else known.reads_since_ms

    circle.live(3600)
    before = circle.now
    circle.people["Dora"] = SessionParticipant("Dora", seed=5, now_ms=circle.now)
    circle.admit("Dora", by="Anna", reads_from=None)
    circle.say("Ben", "welcome")
    dora = since("Dora")
    assert dora is not None
    assert before - CLOCKS_DIFFER_MS <= dora <= circle.now - CLOCKS_DIFFER_MS
    circle["Dora"].restart(now_ms=UnixMs(circle.now + 3_600_000))
    assert since("Dora") == dora
    assert {name: since(name) for name in NAMES} == dict.fromkeys(NAMES)
    circle.people["Eva"] = SessionParticipant("Eva", seed=6, now_ms=circle.now)
    circle.admit("Eva", reads_from=1)
    assert since("Eva") is None
    circle.remove("Cem", by="Olga")
    circle.admit("Cem", reads_from=None)
    assert since("Cem") is None, "what was said in the first stay can be read"


def test_who_is_let_in_again_waits_for_nothing_that_was_said_meanwhile(circle: Circle) -> None:
    circle.say("Cem", "mine")
    circle.remove("Cem", by="Olga")
    circle.say("Anna", "meanwhile")
    circle.say("Ben", "meanwhile")
    circle.live(30)
    circle.admit("Cem", reads_from=None)
    circle.say("Anna", "welcome back")
    assert circle.shown("Cem") == ["mine", "welcome back"]
    assert circle["Cem"].session.gap() is None
    circle.say("Cem", "back")
    circle.live(120)
    assert circle["Cem"].session.gap() is None
    assert circle.shown("Ben")[-2:] == ["welcome back", "back"]


def test_who_may_read_everything_is_told_of_nothing_before(circle: Circle) -> None:
    circle.govern("Olga", Rename(name="Strolls"))
    assert circle.part("Olga").admission(circle.id("Cem")).before == ()


def test_two_parts_that_made_keys_apart_and_restarted_meet_again(circle: Circle) -> None:
    """Neither can read what the other says, until each says again what led to its key."""
    circle.apart = frozenset({"Anna", "Ben"})
    circle.now = UnixMs(circle.now + FRESH_AFTER_MS + FRESH_SPREAD_MS)
    circle.live(60)
    circle.say("Anna", "here")
    circle.say("Olga", "there")
    circle.live(60)
    assert circle.part("Anna").keys.sending() != circle.part("Olga").keys.sending()
    for name in NAMES:
        circle[name].restart(now_ms=circle.now)
    circle.apart = frozenset()
    circle.live(120)
    for name in NAMES:
        assert sorted(circle.shown(name)) == ["here", "there"]
    assert len({circle.part(name).keys.sending() for name in NAMES}) == 1


def test_a_forged_envelope_makes_the_members_say_each_thing_once_between_them(
    circle: Circle,
) -> None:
    """Not once each: anybody can name an epoch that there is not."""
    record = circle["Olga"].session.record
    group_id = group_id_of(record.conversation_id)
    outsiders = SealedGroup(group_id=group_id, epoch_keys=(bytes(32),))
    said = sds_pb2.Message(sender_id=circle.id("Cem"), message_id="x", content=b"x")
    signed = outsiders.sign(circle["Cem"].identity, said.SerializeToString(), None, circle.now)
    forged = outsiders.seal(signed, random_bytes=bytes)
    begin = len(circle.sent)
    for name in NAMES:
        circle.replay(name, forged)
    circle.live(20)
    told = [who for who, _ in circle.sent[begin:]]
    assert len(circle.part("Olga").governance.entries()) <= len(told) <= 20


def test_a_removal_makes_a_fresh_key_though_an_old_one_would_do(circle: Circle) -> None:
    circle.remove("Cem", by="Olga")
    circle.govern("Olga", Add(member=circle.id("Cem")))
    circle.say("Olga", "all four")
    before = {epoch.commitment for epoch in circle.part("Olga").governance.state.epochs}
    circle.remove("Cem", by="Olga")
    old = [e for e in circle.part("Olga").governance.state.epochs if e.commitment in before]
    assert any(epoch.is_good for epoch in old)
    circle.say("Anna", "three")
    sending = circle.part("Anna").keys.sending()
    assert sending is not None
    assert not any(commitment.startswith(sending) for commitment in before)
