"""Channels open to strangers: no sender is proved, and still one of them costs only the channel."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import encode_message
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs
from engine.core.sds.config import DAY_MS, FloodLimits, SdsConfig
from engine.core.sds.inputs import ShowSetAside
from engine.core.sds.shared_state import ANYBODY
from engine.core.sds.vocabulary import (
    HeldByChanged,
    HistoryEntry,
    Message,
    MessageDelivered,
    OutgoingState,
)
from engine.sim.open_participant import OpenParticipant

NOW = UnixMs(1_760_000_000_000)
MINUTE = 60_000
GENERAL = ChannelId("general")


def participant(name: str = "we", config: SdsConfig | None = None) -> OpenParticipant:
    return OpenParticipant(
        ParticipantId(name),
        members=frozenset(),
        config=config or SdsConfig.as_js_in_open_channel(),
        seed=1,
        now_ms=NOW,
    )


def id_of(text: str) -> MessageId:
    return message_id_of_content(text.encode())


@dataclass
class Stranger:
    """Says what it likes, under any name."""

    name: str = "stranger"
    requests: Sequence[str] = field(default=())

    def say(self, text: str, *after: str, lamport: int = NOW) -> bytes:
        return self.message(id_of(text), text.encode(), after, lamport)

    def sync(self, *after: str, lamport: int = NOW) -> bytes:
        return self.message(MessageId(f"sync-{lamport}"), None, after, lamport)

    def message(
        self, message_id: MessageId, content: bytes | None, after: Sequence[str], lamport: int
    ) -> bytes:
        history = tuple(HistoryEntry(id_of(each), None, None) for each in after)
        requests = tuple(HistoryEntry(id_of(each), None, None) for each in self.requests)
        who = ParticipantId(self.name)
        message = Message(who, message_id, GENERAL, lamport, history, None, requests, content)
        return encode_message(message)


def said_in_order(we: OpenParticipant) -> list[MessageId]:
    return [message_id for message_id, _ in we.seen.deliveries]


# --- messages from the future ---------------------------------------------------------------------


def test_a_message_from_the_future_is_delivered_and_moves_no_clock() -> None:
    we = participant()
    we.receive(Stranger().say("2099", lamport=NOW + 70 * 365 * DAY_MS), now_ms=NOW)
    assert said_in_order(we) == [id_of("2099")]
    we.send("now", now_ms=UnixMs(NOW + 5))
    assert we.channel.snapshot().lamport_timestamp == NOW + 5
    we.restart(now_ms=UnixMs(NOW + 10))
    we.send("later", now_ms=UnixMs(NOW + 20))
    assert we.channel.snapshot().lamport_timestamp == NOW + 20


def test_our_clock_follows_as_far_as_five_minutes_ahead_and_no_further() -> None:
    latest = NOW + SdsConfig().max_ahead_ms
    for lamport, followed in ((latest, True), (latest + 1, False)):
        we = participant()
        we.receive(Stranger().say("ahead", lamport=lamport), now_ms=NOW)
        assert (we.channel.snapshot().lamport_timestamp == lamport) is followed


def test_a_jump_as_far_as_the_log_can_keep_is_delivered_and_beyond_is_refused() -> None:
    we = participant()
    we.receive(Stranger().say("far", lamport=2**63 - 1), now_ms=NOW)
    assert said_in_order(we) == [id_of("far")]
    with pytest.raises(RemoteProtocolError, match="lamport_too_large"):
        we.receive(Stranger().say("beyond", lamport=2**63), now_ms=NOW)


def test_messages_from_the_future_take_half_of_our_history_at_most() -> None:
    we = participant(config=replace(SdsConfig.for_open_channel(), causal_history_size=10))
    for number in range(20):
        ahead = NOW + DAY_MS + number
        we.receive(Stranger().say(f"ahead {number}", lamport=ahead), now_ms=NOW)
        we.receive(Stranger().say(f"on time {number}", lamport=NOW + number), now_ms=NOW)
    we.send("ours", now_ms=UnixMs(NOW + 100))
    _, history = we.seen.deliveries[-1]
    on_time = [id_of(f"on time {number}") for number in range(15, 20)]
    assert list(history) == on_time + [id_of(f"ahead {number}") for number in range(15, 20)]


def test_few_messages_from_the_future_leave_the_rest_of_the_history() -> None:
    we = participant(config=replace(SdsConfig.for_open_channel(), causal_history_size=4))
    we.receive(Stranger().say("ahead", lamport=NOW + DAY_MS), now_ms=NOW)
    for number in range(5):
        we.receive(Stranger().say(f"{number}", lamport=NOW + number), now_ms=NOW)
    we.send("ours", now_ms=UnixMs(NOW + 100))
    assert list(we.seen.deliveries[-1][1]) == [id_of(each) for each in ("2", "3", "4", "ahead")]


# --- forged senders -------------------------------------------------------------------------------


def test_what_a_stranger_says_under_our_name_is_delivered_as_not_ours() -> None:
    we = participant("we")
    we.receive(Stranger("we").say("not ours"), now_ms=NOW)
    delivered = [event for event in we.events if isinstance(event, MessageDelivered)]
    assert [event.is_own for event in delivered] == [False]
    we.receive(Stranger("other").say("after it", "not ours"), now_ms=NOW)
    assert said_in_order(we) == [id_of("not ours"), id_of("after it")]


def test_a_sync_under_our_name_acknowledges_nothing() -> None:
    we = participant("we")
    we.send("hello", now_ms=NOW)
    we.receive(Stranger("we").sync("hello"), now_ms=NOW)
    (waiting,) = we.store.state().outgoing
    assert waiting.state is OutgoingState.UNACKNOWLEDGED


def test_any_number_of_names_leaves_the_holders_bounded_and_none_certain() -> None:
    we = participant()
    we.send("hello", now_ms=NOW)
    told = []
    for number in range(400):
        we.receive(Stranger(f"name {number}").sync("hello"), now_ms=NOW)
        told += [event for event in we.events if isinstance(event, HeldByChanged)]
    assert all(not event.certain for event in told)
    assert len(told[-1].maybe) == 256


def test_all_names_together_have_one_quota_and_what_is_beyond_can_be_shown() -> None:
    flood = FloodLimits(messages_per_day=50)
    we = participant(config=replace(SdsConfig.for_open_channel(), flood=flood))
    for number in range(60):
        we.receive(Stranger(f"name {number}").say(f"{number}"), now_ms=NOW)
    assert len(said_in_order(we)) == 50
    (aside,) = we.channel.set_aside()
    assert (aside.sender_id, aside.waiting) == (ANYBODY, 10)
    we.handle(ShowSetAside(sender_id=ANYBODY), now_ms=NOW)
    we.receive(Stranger("name 60").say("60"), now_ms=NOW)
    assert said_in_order(we)[-1] == id_of("60")


def test_all_names_together_have_one_answer_budget() -> None:
    """3 MiB are asked for under a hundred names; 2 MiB a minute are sent."""
    we = participant()
    texts = [f"{number} " + "x" * 60_000 for number in range(50)]
    for text in texts:
        we.send(text, now_ms=NOW)
    for number, text in enumerate(texts * 2):
        asks = Stranger(f"name {number}", requests=[text])
        we.receive(asks.sync(lamport=NOW + number), now_ms=UnixMs(NOW + 30_000))
    at_ms, before = UnixMs(NOW + 30_000), we.sends.get("repair", 0)
    while at_ms < NOW + 80_000:
        we.advance(now_ms=at_ms)
        at_ms = UnixMs(at_ms + 500)
    assert 0 < we.sends["repair"] - before <= 2 * 1024 * 1024 // 60_000


# --- histories that a sealed group cannot have ----------------------------------------------------


def test_a_message_that_lists_itself_does_not_wait_for_itself() -> None:
    we = participant()
    we.receive(Stranger().say("me", "me"), now_ms=NOW)
    assert said_in_order(we) == [id_of("me")]


def test_messages_that_wait_for_each_other_are_delivered_after_a_minute() -> None:
    """The first was lost, and is wrapped again with a history that names what came after it."""
    we = participant()
    we.receive(Stranger().say("second", "first", lamport=NOW + 1), now_ms=NOW)
    we.receive(Stranger().say("third", "second", lamport=NOW + 2), now_ms=NOW)
    we.receive(Stranger().say("first", "second", "third", lamport=NOW + 9), now_ms=NOW)
    assert said_in_order(we) == []
    we.advance(now_ms=UnixMs(NOW + MINUTE))
    assert said_in_order(we) == [id_of("first"), id_of("second"), id_of("third")]
    assert we.channel.snapshot().incoming == ()


def test_a_cycle_behind_a_dead_end_is_found_and_what_is_missing_is_waited_for() -> None:
    we = participant()
    we.receive(Stranger().say("a", "b", "c", lamport=NOW + 1), now_ms=NOW)
    we.receive(Stranger().say("b", "lost", lamport=NOW + 2), now_ms=NOW)
    we.receive(Stranger().say("c", "a", lamport=NOW + 3), now_ms=NOW)
    we.advance(now_ms=UnixMs(NOW + MINUTE))
    assert said_in_order(we) == [id_of("c")]
    we.receive(Stranger().say("lost"), now_ms=UnixMs(NOW + MINUTE))
    assert said_in_order(we) == [id_of(each) for each in ("c", "lost", "b", "a")]


def test_a_chain_without_a_cycle_waits_on() -> None:
    we = participant()
    for number in range(300):
        text, before = f"{number}", f"{number - 1}"
        we.receive(Stranger(f"n{number}").say(text, before, lamport=NOW + number), now_ms=NOW)
    we.advance(now_ms=UnixMs(NOW + MINUTE))
    assert said_in_order(we) == []
    assert we.counters.snapshot().get("sds.cycle_left") is None


# --- retries --------------------------------------------------------------------------------------


def test_js_retries_every_thirty_seconds_ten_times_and_no_more() -> None:
    we = participant()
    (sent,) = we.send("hello", now_ms=NOW)
    assert sent.accepted is not None
    sent.accepted(1, NOW)
    times = []
    at_ms = NOW
    while at_ms < NOW + 20 * MINUTE:
        at_ms = UnixMs(at_ms + 1_000)
        before = we.seen.retransmissions
        we.advance(now_ms=at_ms)
        times += [(at_ms - NOW) // 1_000] * (we.seen.retransmissions - before)
    assert times == [30 * number for number in range(1, 11)]
    assert we.store.state().outgoing == ()


def test_many_messages_that_all_wait_for_each_other_are_delivered() -> None:
    we, texts = participant(), [f"{number}" for number in range(60)]
    for number, text in enumerate(texts):
        sender = Stranger(f"n{number}")
        we.receive(sender.say(text, *texts, text, lamport=NOW + number), now_ms=NOW)
    we.advance(now_ms=UnixMs(NOW + MINUTE))
    assert sorted(said_in_order(we)) == sorted(map(id_of, texts))
    assert we.channel.gaps() == ()
