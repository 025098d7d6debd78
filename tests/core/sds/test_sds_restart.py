"""Restart at any point: what was written is all that the machine is, and it goes on alike."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.inputs import (
    CopyAccepted,
    DeadlineReached,
    MembersChanged,
    MessageReceived,
    ResendRequested,
    RetrieveRequested,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
)
from engine.core.sds.vocabulary import Broadcast, ChannelState, OutgoingEntry
from engine.sim.channel_participant import ChannelParticipant, frame, open_payload
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    SMALL,
    content,
    dep,
    entries,
    holds,
    member,
    opened,
    sync,
)

# Small bounds, so that short runs reach them; no jitter, so that two runs can be compared.
TIGHT = replace(
    SMALL,
    resend_jitter=0.0,
    online_jitter_ms=0,
    max_waiting_per_sender=3,
    lost_after_ms=60_000,
    show_waiting_ms=5_000,
    fail_after_attempts=3,
)
# A restart forgets the online time since a dependency was last asked for, so it may be given up
# later (never earlier): not while two runs are compared.
PATIENT = replace(TIGHT, lost_after_ms=86_400_000)


def _chain(length: int) -> list[MessageReceived]:
    messages: list[MessageReceived] = []
    for number in range(length):
        sender = BOB if number % 3 else CAROL
        messages.append(
            content(
                sender,
                str(number),
                lamport=NOW + number,
                history=[e for m in messages[-2:] for e in dep(m)],
                sequence=number + 1,
            )
        )
    return messages


CHAIN = _chain(12)


def _bloom(ids: list[MessageId]) -> bytes:
    bloom = BloomFilter(capacity=64, fixed=False)
    for message_id in ids:
        bloom.add(message_id)
    return bytes(bloom)


# One step of the surroundings: (participant, number, now) -> None.
Act = Callable[[ChannelParticipant, int, UnixMs], None]


def _receive(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    alice.handle(CHAIN[number % len(CHAIN)], now_ms=now_ms)


def _send(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    alice.send(str(number), now_ms=now_ms)


def _reply(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    history = entries(*alice.seen.sent[-(number % 4) :])
    alice.handle(content(BOB, f"r{number}", lamport=now_ms, history=history), now_ms=now_ms)


def _claim(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    sender = BOB if number % 2 else CAROL
    claim = holds((ALICE, 1, number + 1), (BOB, 1, number + 1))
    alice.handle(sync(sender, lamport=now_ms, holdings=claim), now_ms=now_ms)


def _hint(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    received = sync(CAROL, lamport=now_ms, bloom=_bloom(alice.seen.sent[: number % 5]))
    alice.handle(received, now_ms=now_ms)


def _phantom(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    history = entries(f"phantom-{number % 4}")
    alice.handle(content(CAROL, f"p{number}", lamport=now_ms, history=history), now_ms=now_ms)


def _ahead(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    """From the future, by a fixed clock, so that it comes again; some of it waits for more."""
    history = entries(f"phantom-{number % 4}") if number % 3 else dep(CHAIN[0])
    lamport = NOW + 250_000 + 10_000 * number
    alice.handle(content(BOB, f"a{number}", lamport=lamport, history=history), now_ms=now_ms)


def _ask(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    asked = sync(BOB, lamport=now_ms, requests=dep(CHAIN[number % len(CHAIN)]))
    alice.handle(asked, now_ms=now_ms)


def _own(alice: ChannelParticipant, number: int) -> MessageId | None:
    return alice.seen.sent[number % len(alice.seen.sent)] if alice.seen.sent else None


def _accept(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    if (message_id := _own(alice, number)) is not None:
        hint = bytes([number]) * 32
        copy = CopyAccepted(message_id=message_id, peers=1, retrieval_hint=hint)
        alice.handle(copy, now_ms=now_ms)


def _resend(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    if (message_id := _own(alice, number)) is not None:
        alice.handle(ResendRequested(message_id=message_id), now_ms=now_ms)


def _retrieve(alice: ChannelParticipant, _number: int, now_ms: UnixMs) -> None:
    alice.handle(RetrieveRequested(), now_ms=now_ms)


def _connect(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    alice.set_online(number % 3 != 0, now_ms=now_ms)


def _store(alice: ChannelParticipant, number: int, now_ms: UnixMs) -> None:
    alice.handle(StoreChanged(reachable=number % 2 == 0), now_ms=now_ms)
    if number % 3 == 0:
        alice.handle(StoreAnswered(through_ms=now_ms), now_ms=now_ms)
    if number % 5 == 0:
        lacks = (MessageId(f"phantom-{number % 4}"), CHAIN[number % len(CHAIN)].message.message_id)
        alice.handle(StoresMissing(message_ids=lacks), now_ms=now_ms)


ACTS: list[Act] = [
    _receive, _receive, _receive, _send, _send, _reply, _claim, _hint, _phantom, _ahead, _ask,
    _accept, _resend, _retrieve, _connect, _store,
]  # fmt: skip
Steps = list[tuple[Act, int, int]]


def _steps(acts: list[Act]) -> st.SearchStrategy[Steps]:
    """Acts with their number and the time since the one before, in ms."""
    return st.lists(
        st.tuples(st.sampled_from(acts), st.integers(0, 40), st.integers(0, 20_000)), max_size=40
    )


def _canonical(state: ChannelState) -> ChannelState:
    """The same whatever order its tables are listed in."""
    return replace(
        state,
        outgoing=tuple(sorted(state.outgoing, key=lambda e: e.message_id)),
        incoming=tuple(sorted(state.incoming, key=lambda e: e.message.message_id)),
        missing=tuple(sorted(state.missing, key=lambda e: e.entry.message_id)),
        holders=tuple(sorted(state.holders, key=lambda e: (e.message_id, e.participant_id))),
    )


def _reviewed(alice: ChannelParticipant) -> ChannelState:
    """What the store holds, without holders of messages whose review has ended."""
    state, known = alice.store.state(), alice.channel.snapshot()
    reviewed = {entry.message_id for entry in known.holders}
    holders = tuple(entry for entry in state.holders if entry.message_id in reviewed)
    return _canonical(replace(state, holders=holders))


def _let_time_pass(alice: ChannelParticipant, now_ms: UnixMs) -> None:
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= now_ms:
        alice.advance(now_ms=deadline_ms)
    alice.advance(now_ms=now_ms)


@settings(max_examples=150, deadline=None)
@given(_steps(ACTS))
def test_memory_is_exactly_what_was_written_after_every_step(
    steps: Steps,
) -> None:
    alice, now_ms = member(config=TIGHT), NOW
    for act, number, delay_ms in steps:
        now_ms = UnixMs(now_ms + delay_ms)
        _let_time_pass(alice, now_ms)
        act(alice, number, now_ms)
        assert _canonical(alice.channel.snapshot()) == _reviewed(alice)


def _durable(alice: ChannelParticipant) -> tuple[object, ...]:
    """What users and peers depend on.

    Left out is what only spaces things in time: when a request or a rebroadcast is due may differ
    by what sync messages carried meanwhile, and holders keep the time of the first evidence.
    """
    state = alice.store.state()

    def outgoing(entry: OutgoingEntry) -> tuple[object, ...]:
        return entry.message_id, entry.raw

    return (
        [(entry.position.message_id, entry.sender_id, entry.author) for entry in state.log],
        sorted(map(outgoing, state.outgoing), key=str),
        sorted(entry.message.message_id for entry in state.incoming),
        sorted((entry.entry.message_id, entry.state) for entry in state.missing),
        sorted((e.message_id, e.participant_id, e.source) for e in state.holders),
        state.store_queried_ms,
        alice.seen.deliveries,
    )


@settings(max_examples=150, deadline=None)
@given(_steps([act for act in ACTS if act is not _send]), st.data())
def test_a_receiver_restarted_anywhere_ends_with_the_same_log_buffers_and_holders(
    steps: Steps, data: st.DataObject
) -> None:
    steady, restarted = member(config=PATIENT), member(config=PATIENT)
    for alice in (steady, restarted):
        for number in range(3):
            alice.send(str(number), now_ms=NOW)
    now_ms = NOW
    for act, number, delay_ms in steps:
        now_ms = UnixMs(now_ms + delay_ms)
        for alice in (steady, restarted):
            _let_time_pass(alice, now_ms)
            act(alice, number, now_ms)
        if data.draw(st.booleans()):
            restarted.restart(now_ms=now_ms)
    assert _durable(restarted) == _durable(steady)


def test_the_filter_of_a_restarted_member_is_the_same_bit_for_bit() -> None:
    alice = member()
    for message in CHAIN[:-1]:
        alice.handle(message, now_ms=NOW)
    alice.handle(content(BOB, "waits", lamport=NOW + 99, history=entries("x")), now_ms=NOW)
    twin = member()
    twin.store = alice.store
    twin.restart(now_ms=NOW)
    assert _filter(alice) == _filter(twin)


def test_so_it_is_after_any_number_of_messages() -> None:
    alice = member(config=replace(SMALL, bloom_capacity=40))
    for number in range(130):
        alice.handle(content(BOB, str(number), lamport=NOW + number), now_ms=NOW)
        twin = member(config=replace(SMALL, bloom_capacity=40))
        twin.store = alice.store
        twin.restart(now_ms=NOW)
        assert _own_filter(alice) == _own_filter(twin)


def _own_filter(participant: ChannelParticipant) -> bytes | None:
    """What a sync message would carry."""
    participant.channel.handle(MembersChanged(members=frozenset({ALICE, BOB})), now_ms=NOW)
    participant.channel.handle(MembersChanged(members=MEMBERS), now_ms=NOW)
    later = UnixMs(NOW + 60_000)
    sends = participant.channel.handle(DeadlineReached(), now_ms=later).sends
    (raw,) = [send.raw for send in sends if isinstance(send, Broadcast)]
    return open_payload(frame(raw, None)).message.bloom_filter


def _filter(participant: ChannelParticipant) -> bytes | None:
    (sent,) = opened(participant.send("x", now_ms=NOW))
    return sent.message.bloom_filter
