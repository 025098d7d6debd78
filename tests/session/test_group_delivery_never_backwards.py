"""Who comes and who goes must not turn "held by everybody" into less."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.content import Leave, Text
from engine.core.ids import DeliveryState, MessageId, UnixMs
from engine.events import DeliveryView
from engine.runtime.views import delivery_view
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)
RANK = [
    DeliveryState.SAVED,
    DeliveryState.SENT,
    DeliveryState.POSSIBLY_HELD,
    DeliveryState.HELD,
]


def person(name: str) -> SessionParticipant:
    return SessionParticipant(name, seed=5, now_ms=NOW)


def give(receiver: SessionParticipant, sent: list[Outgoing], at_ms: int) -> list[Outgoing]:
    return [out for item in sent for out in receiver.receive(item.payload, now_ms=UnixMs(at_ms))]


def meet(people: list[SessionParticipant], start_ms: int, seconds: int) -> int:
    """All of them live without loss for a while; returns the time then."""
    for now_ms in range(start_ms, start_ms + seconds * 1000, 250):
        for sender in people:
            deadline = sender.next_deadline()
            if deadline is None or deadline > now_ms:
                continue
            talk(people, sender, list(sender.advance(now_ms=UnixMs(now_ms))), now_ms)
    return start_ms + seconds * 1000


def talk(
    people: list[SessionParticipant], sender: SessionParticipant, sent: list[Outgoing], at_ms: int
) -> None:
    """All the others hear it, and all hear what they answer at once."""
    for receiver in people:
        if receiver is not sender and sent:
            talk(people, receiver, give(receiver, sent, at_ms), at_ms)


def say(someone: SessionParticipant, text: str, at_ms: int) -> tuple[MessageId, list[Outgoing]]:
    sent = someone.say(Text(text=text), now_ms=UnixMs(at_ms))
    return someone.seen.sent[-1], sent


def delivery(someone: SessionParticipant, message_id: MessageId) -> DeliveryView:
    stored = someone.store.message(someone.store.groups()[0].conversation_id, message_id)
    assert stored is not None
    return delivery_view(
        stored.delivery,
        stored.holders,
        someone.session.members(),
        someone.participant_id,
        sent_ms=stored.record.sent_ms,
    )


def test_a_holder_who_leaves_held_it_all_the_same() -> None:
    alice, bob, carol = person("Alice"), person("Bob"), person("Carol")
    alice.create_group("Tide", now_ms=NOW)
    for other in (bob, carol):
        give(alice, other.join_group(alice.invite_link(), now_ms=NOW), NOW)
    message_id, sent = say(alice, "news", NOW + 1)
    give(bob, sent, NOW + 1)
    now_ms = meet([alice, bob], NOW + 1, 30)
    before = delivery(alice, message_id)
    assert (before.state, before.of) == (DeliveryState.POSSIBLY_HELD, 2)
    give(alice, bob.say(Leave(), now_ms=UnixMs(now_ms)), now_ms)
    after = delivery(alice, message_id)
    assert (after.state, after.of) == (DeliveryState.POSSIBLY_HELD, 2)
    assert after.held_by == (bob.participant_id,)
    meet([alice, carol], now_ms + 60_000, 60)
    assert delivery(alice, message_id).state is DeliveryState.HELD


def test_a_join_that_is_heard_of_late_does_not_take_back_that_everybody_held_it() -> None:
    alice, bob, carol = person("Alice"), person("Bob"), person("Carol")
    alice.create_group("Tide", now_ms=NOW)
    give(alice, bob.join_group(alice.invite_link(), now_ms=NOW), NOW)
    late = carol.join_group(alice.invite_link(), now_ms=NOW)
    message_id, sent = say(alice, "news", NOW + 1)
    give(bob, sent, NOW + 1)
    now_ms = meet([alice, bob], NOW + 1, 30)
    assert delivery(alice, message_id).state is DeliveryState.HELD
    give(alice, late, now_ms)
    assert len(alice.session.members()) == 3
    for _ in range(2):
        shown = delivery(alice, message_id)
        assert (shown.state, shown.of) == (DeliveryState.HELD, 1)
        alice.restart(now_ms=UnixMs(now_ms))
    give(alice, bob.say(Leave(), now_ms=UnixMs(now_ms)), now_ms)
    assert delivery(alice, message_id).state is DeliveryState.HELD


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["join", "leave", "meet", "restart"]), st.integers(0, 2)),
        max_size=8,
    )
)
def test_whatever_the_others_do_no_state_moves_backwards(steps: list[tuple[str, int]]) -> None:
    alice = person("Alice")
    alice.create_group("Tide", now_ms=NOW)
    others = [person(f"Other {n}") for n in range(3)]
    inside: set[int] = set()
    now_ms = NOW + 1_000
    message_id, sent = say(alice, "news", now_ms)
    worst = 0
    for step, who in steps:
        now_ms += 1_000
        other = others[who]
        if step == "join" and who not in inside:
            give(alice, other.join_group(alice.invite_link(), now_ms=UnixMs(now_ms)), now_ms)
            give(other, sent, now_ms)
            inside.add(who)
        elif step == "leave" and who in inside:
            give(alice, other.say(Leave(), now_ms=UnixMs(now_ms)), now_ms)
            inside.discard(who)
            others[who] = person(f"Other {who} {now_ms}")
        elif step == "meet":
            now_ms = meet([alice, *(others[n] for n in sorted(inside))], now_ms, 5)
        elif step == "restart":
            alice.restart(now_ms=UnixMs(now_ms))
        rank = RANK.index(delivery(alice, message_id).state)
        assert rank >= worst
        worst = rank
