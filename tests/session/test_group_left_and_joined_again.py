"""Leaving forgets everything, numbers included: what comes after must not look like what was."""

from engine.core.content import Leave, Text
from engine.core.ids import DeliveryState, HolderSource, UnixMs
from engine.core.ports import RemoveGroup
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)


def give(receiver: SessionParticipant, sent: list[Outgoing], at_ms: UnixMs) -> list[Outgoing]:
    return [out for item in sent for out in receiver.receive(item.payload, now_ms=at_ms)]


def meet(one: SessionParticipant, other: SessionParticipant, start_ms: int, seconds: int) -> UnixMs:
    """Both live without loss for a while; returns the time then."""
    for now_ms in range(start_ms, start_ms + seconds * 1000, 250):
        for sender, receiver in ((one, other), (other, one)):
            deadline = sender.next_deadline()
            if deadline is not None and deadline <= now_ms:
                at_ms = UnixMs(now_ms)
                give(sender, give(receiver, list(sender.advance(now_ms=at_ms)), at_ms), at_ms)
    return UnixMs(start_ms + seconds * 1000)


def test_who_comes_back_is_not_told_that_new_words_are_held_because_old_ones_were() -> None:
    alice = SessionParticipant("Alice", seed=3, now_ms=NOW)
    bob = SessionParticipant("Bob", seed=3, now_ms=NOW)
    alice.create_group("Tide", now_ms=NOW)
    give(alice, bob.join_group(alice.invite_link(), now_ms=NOW), NOW)
    for number in range(5):
        give(alice, bob.say(Text(text=f"old {number}"), now_ms=NOW), NOW)
    now_ms = meet(alice, bob, NOW, 30)
    conversation_id = bob.store.groups()[0].conversation_id
    give(alice, bob.say(Leave(), now_ms=now_ms), now_ms)
    bob.store.apply([RemoveGroup(conversation_id=conversation_id)])

    now_ms = UnixMs(now_ms + 60_000)
    lost = bob.join_group(alice.invite_link(), now_ms=now_ms)
    lost += bob.say(Text(text="nobody hears this"), now_ms=now_ms)
    assert lost
    own = [entry.author for entry in bob.session.channel.snapshot().log]
    give(bob, list(alice.set_online(False, now_ms=now_ms)), now_ms)
    alice.set_online(True, now_ms=now_ms)
    for later_ms in range(now_ms, now_ms + 60_000, 250):
        deadline = alice.next_deadline()
        if deadline is not None and deadline <= later_ms:
            give(bob, list(alice.advance(now_ms=UnixMs(later_ms))), UnixMs(later_ms))

    holders = bob.session.channel.snapshot().holders
    assert [h for h in holders if h.source is not HolderSource.BLOOM] == []
    theirs = {entry.author for entry in alice.session.channel.snapshot().log}
    assert theirs.isdisjoint(own)


def test_own_words_that_come_back_do_not_wait_to_be_sent() -> None:
    alice = SessionParticipant("Alice", seed=3, now_ms=NOW)
    bob = SessionParticipant("Bob", seed=3, now_ms=NOW)
    alice.create_group("Tide", now_ms=NOW)
    away = SessionParticipant("Carol", seed=3, now_ms=NOW)
    for other in (away, bob):
        give(alice, other.join_group(alice.invite_link(), now_ms=NOW), NOW)
    for number in range(4):
        give(alice, bob.say(Text(text=f"old {number}"), now_ms=NOW), NOW)
    old = bob.seen.sent[-4:]
    now_ms = meet(alice, bob, NOW, 30)
    conversation_id = bob.store.groups()[0].conversation_id
    give(alice, bob.say(Leave(), now_ms=now_ms), now_ms)
    bob.store.apply([RemoveGroup(conversation_id=conversation_id)])

    now_ms = UnixMs(now_ms + 60_000)
    joining = bob.join_group(alice.invite_link(), now_ms=now_ms)
    give(bob, give(alice, joining, now_ms), now_ms)
    meet(alice, bob, now_ms, 120)

    returned = [bob.store.message(conversation_id, message_id) for message_id in old]
    states = [each.delivery and each.delivery.state for each in returned if each is not None]
    assert len(states) == 4
    assert DeliveryState.SENT in states, "not all of them are known to be held by everybody"
    assert DeliveryState.SAVED not in states
    assert bob.store.summary(conversation_id).waiting_to_send == 0
