"""Send Message: clock, history, filter, one transaction, and what goes out when."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.bloom import ReceivedBloom, base_hashes
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import CopyAccepted, MessageReceived, SendContent
from engine.core.sds.vocabulary import (
    AppendToLog,
    ChannelState,
    HistoryEntry,
    Message,
    MessageDelivered,
    OutgoingChanged,
    PutOutgoing,
    SaveClock,
)
from engine.sim.channel_participant import CHANNEL, text_of
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    after,
    content,
    id_of,
    log_of,
    member,
    opened,
    run_until,
    said,
)


def test_lamport_is_the_clock_or_one_more_than_before() -> None:
    alice = member()
    lamports = [
        opened(alice.send(text, now_ms=now_ms))[0].message.lamport_timestamp
        for text, now_ms in (("a", NOW), ("b", NOW), ("c", after(50)), ("d", after(10)))
    ]
    assert lamports == [NOW, NOW + 1, NOW + 50, NOW + 51]


def test_each_message_names_its_sender_itself_and_the_channel() -> None:
    alice = member()
    sent = [*alice.send("a", now_ms=NOW), *alice.send_ephemeral("b", now_ms=NOW)]
    sent += [item for _, item in run_until(alice, after(2_500))]
    messages = [received.message for received in opened(sent)]
    assert any(message.is_sync for message in messages)
    assert {(message.sender_id, message.channel_id) for message in messages} == {(ALICE, CHANNEL)}
    assert len({message.message_id for message in messages}) == len(messages)


def test_log_filter_and_outgoing_buffer_change_in_the_step_that_sends() -> None:
    alice = member()
    transition = alice.channel.handle(SendContent(content=b"hello"), now_ms=NOW)
    kinds = [type(write) for write in transition.writes]
    assert {AppendToLog, PutOutgoing} <= set(kinds)
    assert len(transition.sends) == 1
    delivered = next(e for e in transition.events if isinstance(e, MessageDelivered))
    assert delivered.is_own
    assert not delivered.late


def test_history_is_the_newest_ten_oldest_first_with_sender_and_hint() -> None:
    alice = member()
    first = content(BOB, "from bob")
    alice.handle(first, now_ms=NOW)
    (own,) = opened(alice.send("0", now_ms=after(1)))
    copy = CopyAccepted(message_id=id_of(own), peers=1, retrieval_hint=b"h" * 32)
    alice.handle(copy, now_ms=after(2))
    (sent,) = opened(alice.send("1", now_ms=after(3)))
    assert sent.message.causal_history == (
        HistoryEntry(message_id=id_of(first), retrieval_hint=first.retrieval_hint, sender_id=BOB),
        HistoryEntry(message_id=id_of(own), retrieval_hint=b"h" * 32, sender_id=ALICE),
    )
    for number in range(12):
        alice.send(str(number), now_ms=after(number + 4))
    (sent,) = opened(alice.send("last", now_ms=after(20)))
    assert len(sent.message.causal_history) == 10
    assert [e.message_id for e in sent.message.causal_history] == log_of(alice)[-11:-1]


def test_consecutive_offline_messages_list_each_other_and_go_out_in_order() -> None:
    alice = member()
    alice.set_online(False, now_ms=NOW)
    assert alice.send("one", now_ms=after(1)) == []
    assert alice.send("two", now_ms=after(2)) == []
    alice.set_online(True, now_ms=after(1_000))
    sent: list[MessageReceived] = []
    while len(sent) < 2:
        deadline = alice.next_deadline()
        assert deadline is not None
        assert deadline <= after(1_000 + SMALL.online_jitter_ms)
        sent += opened(alice.advance(now_ms=deadline))
    assert [text_of(item.message.content or b"") for item in sent] == [b"one", b"two"]
    assert [e.message_id for e in sent[1].message.causal_history] == [id_of(sent[0])]


def test_the_filter_excludes_the_message_itself_and_includes_the_ones_before() -> None:
    alice = member()
    (first,) = opened(alice.send("one", now_ms=NOW))
    (second,) = opened(alice.send("two", now_ms=NOW))
    assert second.message.bloom_filter is not None
    bloom = ReceivedBloom(second.message.bloom_filter)
    assert bloom.may_contain(base_hashes(id_of(first)))
    assert not bloom.may_contain(base_hashes(id_of(second)))


def test_holdings_go_with_the_first_and_every_twentieth_content_message() -> None:
    alice = member()
    with_holdings = [
        number
        for number in range(45)
        if opened(alice.send(str(number), now_ms=after(number)))[0].holdings is not None
    ]
    assert with_holdings == [0, 20, 40]


def test_an_accepted_copy_is_told_once_and_its_hint_kept_for_the_latest() -> None:
    alice = member()
    (sent,) = opened(alice.send("one", now_ms=NOW))
    for number, hint in enumerate((b"1" * 32, b"2" * 32)):
        copy = CopyAccepted(message_id=id_of(sent), peers=2, retrieval_hint=hint)
        alice.handle(copy, now_ms=after(number))
        assert len(said(alice, OutgoingChanged)) == (1 if number == 0 else 0)
    assert alice.channel.snapshot().log[0].retrieval_hint == b"2" * 32
    assert alice.channel.snapshot().outgoing[0].accepted


def test_nobody_reachable_is_not_accepted() -> None:
    alice = member()
    (sent,) = opened(alice.send("one", now_ms=NOW))
    alice.handle(CopyAccepted(message_id=id_of(sent), peers=0), now_ms=NOW)
    assert not alice.channel.snapshot().outgoing[0].accepted


def test_ephemeral_messages_are_bare_and_leave_no_trace() -> None:
    alice = member()
    before = alice.channel.snapshot()
    (sent,) = opened(alice.send_ephemeral("typing", now_ms=NOW))
    message = sent.message
    assert message.is_ephemeral
    assert (message.causal_history, message.bloom_filter) == ((), None)
    assert alice.channel.snapshot() == before
    alice.set_online(False, now_ms=NOW)
    assert alice.send_ephemeral("typing", now_ms=NOW) == []


def test_our_own_mistakes_are_local_errors() -> None:
    alice = member(members=frozenset({ALICE, CAROL}))
    with pytest.raises(LocalProtocolError):
        alice.handle(SendContent(content=b""), now_ms=NOW)
    with pytest.raises(LocalProtocolError):
        alice.send_ephemeral("", now_ms=NOW)


def test_content_that_no_receiver_would_take_is_our_own_mistake_and_changes_nothing() -> None:
    alice = member()
    before = alice.channel.snapshot()
    with pytest.raises(LocalProtocolError, match="larger"):
        alice.channel.handle(SendContent(content=bytes(100 * 1024 + 1)), now_ms=NOW)
    assert alice.channel.snapshot() == before


def test_the_same_words_as_a_message_that_waits_are_not_sent_under_its_id() -> None:
    """In an open channel the id is a hash of the words: two entries of one id would split logs."""
    alice = open_member(ALICE)
    words = b"ok"
    waiting = Message(
        sender_id=BOB,
        message_id=words_id(BOB, CHANNEL, NOW, (), words),
        channel_id=CHANNEL,
        lamport_timestamp=NOW,
        causal_history=(HistoryEntry(message_id=MessageId("missing")),),
        content=words,
    )
    alice.handle(MessageReceived(message=waiting, raw=b"raw", verified=False), now_ms=NOW)
    with pytest.raises(LocalProtocolError, match="already"):
        alice.handle(SendContent(content=words), now_ms=after(1))
    assert len(alice.snapshot().log) == 0


def words_id(
    _sender: ParticipantId,
    _channel: ChannelId,
    _lamport: int,
    _history: Sequence[MessageId],
    words: bytes,
) -> MessageId:
    return MessageId(sha256(words).hexdigest())


def test_after_a_restart_the_log_tells_the_lamport_timestamp() -> None:
    alice = open_member(ALICE)
    ahead = replace(content(BOB, "from a clock ahead", lamport=NOW + 200_000), verified=False)
    alice.handle(ahead, now_ms=NOW)
    saved = alice.snapshot()
    assert saved.log[-1].position.lamport_timestamp == NOW + 200_000
    # No write says so but the log's own.
    again = open_member(ALICE, replace(saved, lamport_timestamp=0))
    sent = again.handle(SendContent(content=b"on"), now_ms=NOW)
    assert not [write for write in sent.writes if isinstance(write, SaveClock)]
    assert again.snapshot().log[-1].position.lamport_timestamp == NOW + 200_001


def open_member(name: ParticipantId, state: ChannelState | None = None) -> SdsChannel:
    return SdsChannel(
        CHANNEL,
        name,
        config=SdsConfig.for_open_channel(),
        message_id_of=words_id,
        sign=lambda _message, _holdings, _now_ms: b"raw",
        random_unit=lambda: 0.5,
        hash64=lambda _text: 0,
        state=state or ChannelState(lamport_timestamp=NOW),
        members=frozenset(),
        online=True,
        now_ms=NOW,
    )
