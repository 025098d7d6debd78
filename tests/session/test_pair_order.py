"""The order of a pair: what arrives in any order is delivered once, and in its author's order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from engine.codec.content import decode_pair_content, encode_content
from engine.core.content import Body, ContactAnswer, Content, Text
from engine.core.counters import Counters
from engine.core.ids import (
    AuthorSequence,
    ConversationId,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.ports import (
    PutLost,
    PutWaiting,
    RemoveLost,
    RemoveWaiting,
    SavePairAuthor,
    SavePairClock,
    StoreWrite,
)
from engine.core.records import LostRange, PairState, WaitingContent
from engine.session.clock import SessionClock
from engine.session.pair.order import (
    LOST_AFTER_MS,
    MAX_INSTANCES,
    MAX_WAITING,
    ONLINE_AT_LEAST_MS,
    SHOW_AFTER_MS,
    PairOrder,
    Placed,
    Shown,
)

NOW = UnixMs(1_800_000_000_000)
PAIR = ConversationId("pair")
PEER = ParticipantId("p" * 32)
ONE, TWO = InstanceId(b"1" * 16), InstanceId(b"2" * 16)


def said(
    sequence: int, *, by: InstanceId = ONE, lamport: int = 0, body: Body | None = None
) -> tuple[MessageId, bytes]:
    content = Content(
        author=AuthorSequence(instance_id=by, sequence=sequence),
        previous_id=None if sequence == 1 else MessageId("before"),
        nonce=bytes(16),
        sent_ms=NOW,
        body=body or Text(text=f"{by[:1].decode()}-{sequence}"),
        lamport_timestamp=lamport or NOW + sequence,
    )
    return MessageId(f"{by.hex()}{sequence:08}"), encode_content(content)


@dataclass
class Stage:
    """A ``PairOrder`` whose writes are kept as a store keeps them."""

    online: bool = True
    now_ms: UnixMs = NOW
    counters: Counters = field(default_factory=Counters)
    placed: list[Placed] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    lamport: int = 0
    authors: dict[InstanceId, int] = field(default_factory=dict)
    waiting: dict[MessageId, WaitingContent] = field(default_factory=dict)
    lost: dict[tuple[InstanceId, int], LostRange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.order = PairOrder(
            PAIR,
            self.stored(),
            decode=decode_pair_content,
            online=self.online,
            now_ms=self.now_ms,
            clock=SessionClock(),
            counters=self.counters,
        )

    def stored(self) -> PairState:
        return PairState(
            lamport_timestamp=self.lamport,
            authors=dict(self.authors),
            waiting=tuple(self.waiting[key] for key in sorted(self.waiting)),
            lost=tuple(self.lost[key] for key in sorted(self.lost)),
        )

    def keep(self, writes: Sequence[StoreWrite]) -> None:
        for write in writes:
            match write:
                case SavePairClock():
                    self.lamport = max(self.lamport, write.lamport_timestamp)
                case SavePairAuthor():
                    self.authors[write.instance_id] = write.sequence
                case PutWaiting():
                    self.waiting[write.waiting.message_id] = write.waiting
                case RemoveWaiting():
                    del self.waiting[write.message_id]
                case PutLost():
                    self.lost[write.lost.instance_id, write.lost.first] = write.lost
                case RemoveLost():
                    del self.lost[write.instance_id, write.first]
                case _:
                    raise AssertionError(write)
        assert self.stored() == self.order.snapshot()

    def hear(self, one: tuple[MessageId, bytes]) -> None:
        message_id, content = one
        writes: list[StoreWrite] = []
        kept = WaitingContent(
            message_id=message_id, sender_id=PEER, content=content, received_ms=self.now_ms
        )
        self.placed += self.order.arrive(
            decode_pair_content(content), kept, writes, now_ms=self.now_ms
        )
        self.keep(writes)

    def advance(self, by_ms: int) -> None:
        self.now_ms = UnixMs(self.now_ms + by_ms)
        writes: list[StoreWrite] = []
        placed, shown = self.order.advance(writes, now_ms=self.now_ms)
        self.placed += placed
        self.shown += shown
        self.keep(writes)

    def sequences(self, by: InstanceId = ONE) -> list[int]:
        authors = (placed.content.author for placed in self.placed)
        return [author.sequence for author in authors if author.instance_id == by]


@given(
    order=st.permutations(range(1, 9)),
    second=st.permutations(range(1, 5)),
    restarts=st.sets(st.integers(0, 12)),
)
def test_any_order_of_arrival_with_restarts_is_put_right(
    order: list[int], second: list[int], restarts: set[int]
) -> None:
    stage = Stage()
    arrivals = [said(n) for n in order] + [said(n, by=TWO) for n in second]
    for number, one in enumerate(arrivals):
        if number in restarts:
            stage.restart()
        stage.hear(one)
    assert stage.sequences() == list(range(1, 9))
    assert stage.sequences(TWO) == list(range(1, 5))
    assert not any(placed.late for placed in stage.placed)
    assert stage.order.next_deadline() is None
    assert stage.waiting == {}


@given(
    steps=st.lists(
        st.tuples(
            st.integers(1, 12),
            st.sampled_from([ONE, TWO]),
            st.sampled_from([0, 1_000, SHOW_AFTER_MS, LOST_AFTER_MS]),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_everything_that_arrived_is_delivered_once_in_the_end(
    steps: list[tuple[int, InstanceId, int, bool]],
) -> None:
    stage = Stage()
    heard: set[tuple[InstanceId, int]] = set()
    for sequence, by, pause_ms, restart in steps:
        if (by, sequence) not in heard:
            heard.add((by, sequence))
            stage.hear(said(sequence, by=by))
        if restart:
            stage.restart()
        stage.advance(pause_ms)
    for _ in range(20):
        deadline = stage.order.next_deadline()
        if deadline is None:
            break
        stage.advance(max(deadline - stage.now_ms, 0))
    assert stage.waiting == {}
    delivered = [(p.content.author.instance_id, p.content.author.sequence) for p in stage.placed]
    assert sorted(delivered) == sorted(heard)
    check_lost(stage, heard)
    for by in (ONE, TWO):
        in_time = [p.content.author for p in stage.placed if not p.late]
        sequences = [author.sequence for author in in_time if author.instance_id == by]
        assert sequences == sorted(sequences)


def check_lost(stage: Stage, heard: set[tuple[InstanceId, int]]) -> None:
    """Nothing that came is lost, and all else between what came in its turn is."""
    numbers = [
        (lost.instance_id, number)
        for lost in stage.lost.values()
        for number in range(lost.first, lost.last + 1)
    ]
    assert len(numbers) == len(set(numbers))
    assert heard.isdisjoint(numbers)
    for by in (ONE, TWO):
        in_time = [
            p.content.author.sequence
            for p in stage.placed
            if not p.late and p.content.author.instance_id == by
        ]
        between = range(min(in_time), max(in_time)) if in_time else ()
        assert {number for each, number in numbers if each == by} == {
            number for number in between if (by, number) not in heard
        }


def test_a_gap_is_shown_after_a_minute_and_given_up_after_a_day_online() -> None:
    stage = Stage()
    stage.hear(said(1))
    stage.hear(said(3))
    assert stage.order.next_deadline() == NOW + SHOW_AFTER_MS
    stage.advance(SHOW_AFTER_MS - 1)
    assert stage.shown == []
    stage.advance(1)
    assert [one.content.author.sequence for one in stage.shown] == [3]
    assert stage.order.next_deadline() == NOW + LOST_AFTER_MS
    stage.restart()
    stage.advance(LOST_AFTER_MS)
    assert stage.sequences() == [1, 3]
    assert stage.placed[-1].was_shown
    assert stage.counters["pair.lost"] == 1
    stage.hear(said(2))
    assert stage.sequences() == [1, 3, 2]
    assert stage.placed[-1].late


def test_a_day_offline_is_no_day_in_which_it_could_have_come() -> None:
    stage = Stage(online=False)
    stage.hear(said(1))
    stage.hear(said(3))
    stage.advance(10 * LOST_AFTER_MS)
    assert stage.sequences() == [1]
    assert stage.order.next_deadline() is None
    stage.order.connectivity(online=True, now_ms=stage.now_ms)
    assert stage.order.next_deadline() == stage.now_ms + ONLINE_AT_LEAST_MS
    stage.advance(ONLINE_AT_LEAST_MS - 1)
    assert stage.sequences() == [1]
    stage.advance(1)
    assert stage.sequences() == [1, 3]


def test_of_an_instance_never_heard_the_lowest_that_waited_a_minute_is_the_start() -> None:
    stage = Stage()
    stage.hear(said(7))
    stage.advance(30_000)
    stage.hear(said(5))
    assert stage.sequences() == []
    stage.advance(30_000)
    assert stage.sequences() == [5, 7] or stage.sequences() == [5]
    stage.hear(said(6))
    assert sorted(stage.sequences()) == [5, 6, 7]


def test_an_answer_begins_an_instance_without_waiting() -> None:
    stage = Stage()
    stage.hear(said(41, body=ContactAnswer(accepted=False, round=1)))
    stage.hear(said(42))
    assert stage.sequences() == [41, 42]


def test_too_much_that_waits_is_delivered_with_a_gap_and_not_dropped() -> None:
    stage = Stage()
    stage.hear(said(1))
    for sequence in range(3, MAX_WAITING + 4):
        stage.hear(said(sequence))
    assert stage.sequences() == [1, *range(3, MAX_WAITING + 4)]
    assert stage.counters["pair.waiting_full"] == 1
    assert stage.waiting == {}


def test_instances_without_end_are_delivered_and_not_remembered() -> None:
    stage = Stage()
    for number in range(MAX_INSTANCES + 10):
        stage.hear(said(5 if number % 2 else 1, by=InstanceId(number.to_bytes(16, "big"))))
    stage.advance(SHOW_AFTER_MS)
    stage.hear(said(9))
    assert len(stage.placed) == MAX_INSTANCES + 11
    assert stage.counters["pair.too_many_instances"] > 0


def test_a_number_far_away_makes_no_astronomic_gap() -> None:
    stage = Stage()
    stage.hear(said(1))
    stage.hear(said(2**53 - 1, lamport=NOW))
    stage.advance(SHOW_AFTER_MS)
    gap = stage.order.gap()
    assert gap is not None
    assert gap.missing == 1_000_000


def test_our_clock_is_ahead_of_all_that_we_heard_and_never_goes_back() -> None:
    stage = Stage()
    writes: list[StoreWrite] = []
    stage.hear(said(1, lamport=NOW + 60_000))
    assert stage.order.stamp(writes, now_ms=NOW) == NOW + 60_001
    stage.keep(writes)
    stage.restart()
    assert stage.order.stamp(writes, now_ms=UnixMs(NOW - 10**9)) == NOW + 60_002
    assert stage.order.stamp(writes, now_ms=UnixMs(NOW + 10**9)) == NOW + 10**9


def test_what_claims_to_be_far_ahead_cannot_push_our_clock() -> None:
    stage = Stage()
    for sequence in range(1, 101):
        stage.hear(said(sequence, lamport=2**53 - 1))
    assert stage.sequences() == list(range(1, 101))
    lamports = [placed.lamport_timestamp for placed in stage.placed]
    assert lamports == sorted(set(lamports)), "in the order of their author"
    assert stage.lamport == NOW + 99
