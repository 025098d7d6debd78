"""The machine that gets a blob: whatever sources do, it ends, and nothing is sent twice."""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.blobs.download import (
    Asked,
    BlobDownload,
    ChunkCame,
    ChunkForged,
    ChunkMissing,
    ChunksEnded,
    DownloadConfig,
    DownloadInput,
    HolderTold,
    HoldingsCame,
    HoldingsFailed,
    ListOpened,
    SourceId,
    SourcesChanged,
    TimePassed,
    Want,
    WantChunks,
    WantHoldings,
)
from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import Holdings

ROOT = ChunkName(b"root")
CONFIG = DownloadConfig()
A, B, C = (SourceId(name) for name in "ABC")


def names(count: int) -> tuple[ChunkName, ...]:
    return tuple(ChunkName(b"%d" % number) for number in range(count))


def download() -> BlobDownload:
    return BlobDownload(ROOT, shuffle=lambda _: None)


def having(want: Want, *held: ChunkName, is_keeper: bool = False) -> HoldingsCame:
    assert isinstance(want, WantHoldings)
    found = tuple(name in held for name in want.names)
    return HoldingsCame(want, Holdings(held=found, is_keeper=is_keeper))


def listed(machine: BlobDownload, all_names: tuple[ChunkName, ...], *sources: SourceId) -> None:
    """The list is here, and every source is asked what it holds."""
    machine.handle(SourcesChanged(sources), now_ms=0)
    wants = machine.handle(ListOpened(names=all_names), now_ms=0)
    assert all(isinstance(want, WantHoldings) for want in wants)


def test_the_list_comes_first() -> None:
    machine = download()
    assert machine.handle(SourcesChanged((A, B)), now_ms=0) == (
        WantHoldings(A, (ROOT,)),
        WantHoldings(B, (ROOT,)),
    )
    [get] = machine.handle(having(WantHoldings(A, (ROOT,)), ROOT), now_ms=1)
    assert get == WantChunks(A, (ROOT,))
    assert machine.handle(having(WantHoldings(B, (ROOT,)), ROOT), now_ms=1) == ()
    machine.handle(ChunkCame(A, ROOT), now_ms=2)
    machine.handle(ChunksEnded(want=get, failed=False), now_ms=2)
    assert not machine.is_complete
    assert machine.is_running, "nobody needs to have anything while the list is opened"
    machine.handle(ListOpened(names=names(0)), now_ms=2)
    assert (machine.is_complete, machine.is_running) == (True, False)


def test_what_is_here_already_is_not_asked_for() -> None:
    machine, all_names = download(), names(6)
    machine.handle(SourcesChanged((A,)), now_ms=0)
    machine.handle(HoldingsFailed(WantHoldings(A, (ROOT,))), now_ms=0)
    [want] = machine.handle(
        ListOpened(names=all_names, here=frozenset(all_names[:4])), now_ms=10_000
    )
    assert want == WantHoldings(A, (ROOT, *all_names[4:])), "the root tells which file it is about"
    assert machine.handle(having(want, *all_names[4:]), now_ms=10_000) == (
        WantChunks(A, all_names[4:]),
    )
    assert machine.here == frozenset(all_names[:4])


def test_several_sources_at_once_and_each_chunk_from_one() -> None:
    machine, all_names = download(), names(40)
    listed(machine, all_names, A, B)
    wants = [
        *machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=1),
        *machine.handle(having(WantHoldings(B, all_names), *all_names), now_ms=1),
    ]
    asked = [name for want in wants for name in want.names]
    assert len(asked) == len(set(asked))
    of = Counter(want.source for want in wants)
    assert of == {A: CONFIG.requests_per_source, B: CONFIG.requests_per_source}


def test_a_source_that_fails_rests_longer_each_time() -> None:
    machine, all_names = download(), names(1)
    listed(machine, all_names, A)
    [get] = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    now_ms, rests = 0, []
    for _ in range(4):
        assert isinstance(get, WantChunks)
        assert machine.handle(ChunksEnded(want=get, failed=True), now_ms=now_ms) == ()
        before_ms = now_ms
        wants: tuple[Want, ...] = ()
        while not any(isinstance(want, WantChunks) for want in wants):
            due_ms = machine.next_deadline()
            assert due_ms is not None
            assert due_ms > now_ms
            now_ms = due_ms
            wants = machine.handle(TimePassed(), now_ms=now_ms)
        rests.append(now_ms - before_ms)
        get = next(want for want in wants if isinstance(want, WantChunks))
    first_ms = CONFIG.rest_first_ms
    assert rests == [first_ms, 2 * first_ms, 4 * first_ms, 8 * first_ms]


def test_a_failure_is_asked_elsewhere_at_once() -> None:
    machine, all_names = download(), names(1)
    listed(machine, all_names, A, B)
    [get] = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    assert machine.handle(having(WantHoldings(B, all_names), *all_names), now_ms=0) == ()
    assert isinstance(get, WantChunks)
    assert machine.handle(ChunksEnded(want=get, failed=True), now_ms=5) == (
        WantChunks(B, all_names),
    )


def test_one_who_forges_is_asked_no_more() -> None:
    machine, all_names = download(), names(9)
    listed(machine, all_names, A)
    wants = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    gets = [want for want in wants if isinstance(want, WantChunks)]
    for get in gets[: CONFIG.most_forged]:
        machine.handle(ChunkForged(A, get.names[0]), now_ms=1)
    for get in gets:
        assert machine.handle(ChunksEnded(want=get, failed=True), now_ms=1) == ()
    assert machine.next_deadline() is None
    assert machine.asked() == Asked(peers=1)
    [want] = machine.handle(SourcesChanged((A, B)), now_ms=2)
    assert want.source == B


def test_who_has_nothing_is_counted_and_asked_again_more_seldom() -> None:
    machine = download()
    wants = machine.handle(SourcesChanged((A, B, C)), now_ms=0)
    assert machine.asked() == Asked(pending=3)
    machine.handle(having(wants[0]), now_ms=0)
    machine.handle(having(wants[1], is_keeper=True), now_ms=0)
    machine.handle(having(wants[2]), now_ms=0)
    assert machine.asked() == Asked(peers=2, keepers=1)
    waits, now_ms = [], 0
    for _ in range(8):
        due_ms = machine.next_deadline()
        assert due_ms is not None
        waits.append(due_ms - now_ms)
        now_ms = due_ms
        for want in machine.handle(TimePassed(), now_ms=now_ms):
            machine.handle(having(want), now_ms=now_ms)
    assert waits == [2_000, 4_000, 8_000, 16_000, *[CONFIG.holdings_again_cap_ms] * 4]


def test_who_is_told_of_another_holder_asks_again_within_a_second_however_often_they_are() -> None:
    machine = download()
    wants = machine.handle(SourcesChanged((A, B)), now_ms=0)
    for now_ms in (2_000, 6_000, 14_000, 30_000):
        for want in wants:
            machine.handle(having(want), now_ms=now_ms // 2 - 1_000)
        assert machine.next_deadline() == now_ms
        wants = machine.handle(TimePassed(), now_ms=now_ms)
    assert len(wants) == 2
    for want in wants:
        machine.handle(having(want), now_ms=30_000)
    for now_ms in (31_000, 31_500, 31_999):
        assert machine.handle(HolderTold(), now_ms=now_ms) == ()
        assert machine.next_deadline() == 32_000
    wants = machine.handle(TimePassed(), now_ms=32_000)
    assert wants == (WantHoldings(A, (ROOT,)), WantHoldings(B, (ROOT,)))
    assert machine.handle(HolderTold(), now_ms=32_000) == (), "they are being asked"
    [get] = machine.handle(having(wants[1], ROOT), now_ms=32_100)
    assert get == WantChunks(B, (ROOT,))


def test_a_busy_source_gets_its_time() -> None:
    machine, all_names = download(), names(1)
    listed(machine, all_names, A)
    [get] = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    assert isinstance(get, WantChunks)
    machine.handle(ChunksEnded(want=get, busy=True), now_ms=0)
    machine.handle(TimePassed(), now_ms=CONFIG.busy_ms - 1)
    assert not machine.is_running
    machine.handle(TimePassed(), now_ms=CONFIG.busy_ms)
    assert machine.is_running


def test_a_chunk_that_a_source_lacks_after_all_is_asked_elsewhere() -> None:
    machine, all_names = download(), names(1)
    listed(machine, all_names, A, B)
    machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    machine.handle(having(WantHoldings(B, all_names), *all_names), now_ms=0)
    assert machine.handle(ChunkMissing(A, all_names[0]), now_ms=1) == (WantChunks(B, all_names),)


@pytest.mark.parametrize("count", [0, 500])
def test_sources_are_bounded(count: int) -> None:
    machine = download()
    wants = machine.handle(
        SourcesChanged(tuple(SourceId(str(number)) for number in range(count))), now_ms=0
    )
    assert len(wants) == min(count, CONFIG.max_sources)


def test_each_asks_in_an_order_of_its_own() -> None:
    machine, all_names = BlobDownload(ROOT, shuffle=list.reverse), names(6)
    listed(machine, all_names, A)
    assert machine.asked() == Asked(pending=1)
    wants = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    assert [want.names for want in wants] == [all_names[:1:-1], all_names[1::-1]]


def test_only_so_many_requests_run_at_once() -> None:
    machine, all_names = download(), names(100)
    sources = tuple(SourceId(str(number)) for number in range(9))
    listed(machine, all_names, *sources)
    running = 0
    for source in sources:
        wants = machine.handle(having(WantHoldings(source, all_names), *all_names), now_ms=0)
        running += sum(isinstance(want, WantChunks) for want in wants)
    assert running == CONFIG.requests


def test_what_was_asked_of_one_who_is_gone_is_asked_elsewhere_and_nothing_else() -> None:
    machine, all_names = download(), names(8)
    listed(machine, all_names, A, B)
    of_a = machine.handle(having(WantHoldings(A, all_names), *all_names[:4]), now_ms=0)
    of_b = machine.handle(having(WantHoldings(B, all_names), *all_names), now_ms=0)
    assert [want.names for want in (*of_a, *of_b)] == [all_names[:4], all_names[4:]]
    wants = machine.handle(SourcesChanged((B,)), now_ms=0)
    assert wants == (WantChunks(B, all_names[:4]),)


def test_a_forged_chunk_is_not_asked_of_the_same_again() -> None:
    machine, all_names = download(), names(2)
    listed(machine, all_names, A)
    [get] = machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    assert isinstance(get, WantChunks)
    machine.handle(ChunkForged(A, all_names[0]), now_ms=0)
    machine.handle(ChunksEnded(want=get, failed=True), now_ms=0)
    wants = machine.handle(TimePassed(), now_ms=CONFIG.rest_first_ms)
    assert wants == (WantChunks(A, all_names[1:]),)


def test_who_has_sent_something_rests_shortly_again() -> None:
    machine, all_names = download(), names(9)
    listed(machine, all_names, A)
    gets = [
        want
        for want in machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
        if isinstance(want, WantChunks)
    ]
    machine.handle(ChunksEnded(want=gets[0], failed=True), now_ms=0)
    machine.handle(ChunkCame(A, gets[1].names[0]), now_ms=CONFIG.rest_first_ms)
    machine.handle(ChunksEnded(want=gets[1], failed=True), now_ms=CONFIG.rest_first_ms)
    assert machine.handle(TimePassed(), now_ms=2 * CONFIG.rest_first_ms - 1) == ()
    [again] = machine.handle(TimePassed(), now_ms=2 * CONFIG.rest_first_ms)
    assert isinstance(again, WantChunks)


def test_one_who_has_all_that_is_missing_is_not_asked_what_it_holds() -> None:
    machine, all_names = download(), names(9)
    listed(machine, all_names, A)
    machine.handle(having(WantHoldings(A, all_names), *all_names), now_ms=0)
    again_ms = CONFIG.holdings_again_ms
    assert machine.next_deadline() == again_ms
    assert machine.handle(TimePassed(), now_ms=again_ms) == ()
    assert machine.next_deadline() == again_ms + CONFIG.holdings_again_cap_ms


def test_a_request_that_ended_well_lets_nobody_rest() -> None:
    machine, all_names = download(), names(3)
    listed(machine, all_names, A)
    [get] = machine.handle(having(WantHoldings(A, all_names), *all_names[:1]), now_ms=0)
    assert isinstance(get, WantChunks)
    machine.handle(ChunkCame(A, all_names[0]), now_ms=0)
    assert not machine.is_running
    machine.handle(ChunksEnded(want=get), now_ms=0)
    [want] = machine.handle(TimePassed(), now_ms=CONFIG.holdings_again_ms)
    assert want == WantHoldings(A, (ROOT, *all_names[1:]))


def test_the_numbers_are_those_of_the_document() -> None:
    assert (
        DownloadConfig(
            max_sources=64,
            names_per_request=4,
            requests_per_source=2,
            requests=8,
            holdings_again_ms=1_000,
            holdings_again_cap_ms=30_000,
            rest_first_ms=250,
            rest_cap_ms=30_000,
            busy_ms=1_000,
            most_forged=2,
        )
        == CONFIG
    )


# --- a world of sources that fail, lie and are slow -----------------------------------------------


@dataclass(slots=True)
class World:
    """Answers what the machine asks, later and in another order, as ``chance`` has it."""

    machine: BlobDownload
    all_names: tuple[ChunkName, ...]
    chance: random.Random
    liars: set[SourceId]
    now_ms: int = 0
    in_flight: list[Want] = field(default_factory=list)
    sent: Counter[ChunkName] = field(default_factory=Counter)
    forged: Counter[SourceId] = field(default_factory=Counter)
    asked_after_lies: int = 0

    def feed(self, given: DownloadInput) -> None:
        for want in self.machine.handle(given, now_ms=self.now_ms):
            assert len(want.names) > 0
            if isinstance(want, WantChunks):
                assert len(want.names) <= CONFIG.names_per_request
                if self.forged[want.source] >= CONFIG.most_forged:
                    self.asked_after_lies += 1
            self.in_flight.append(want)
        running = Counter(want.source for want in self.in_flight if isinstance(want, WantChunks))
        assert running.total() <= CONFIG.requests
        assert all(count <= CONFIG.requests_per_source for count in running.values())
        asked = Counter(
            name for want in self.in_flight if isinstance(want, WantChunks) for name in want.names
        )
        assert not asked or max(asked.values()) == 1, "asked of two at the same time"

    def step(self, *, is_kind: bool) -> None:
        if not self.in_flight:
            due_ms = self.machine.next_deadline()
            assert due_ms is not None
            assert due_ms > self.now_ms
            self.now_ms = due_ms
            self.feed(TimePassed())
            return
        want = self.in_flight.pop(self.chance.randrange(len(self.in_flight)))
        self.now_ms += self.chance.randrange(200)
        fails = not is_kind and self.chance.random() < 0.3
        if isinstance(want, WantHoldings):
            held = (True,) * len(want.names)
            answer = HoldingsCame(want, Holdings(held=held, is_keeper=False))
            self.feed(HoldingsFailed(want) if fails else answer)
        else:
            self._answer(want, fails=fails)

    def _answer(self, want: WantChunks, *, fails: bool) -> None:
        for place, name in enumerate(want.names):
            if fails and place == len(want.names) // 2:
                break
            if want.source in self.liars:
                self.forged[want.source] += 1
                self.feed(ChunkForged(want.source, name))
                fails = True
                break
            self.sent[name] += 1
            self.feed(ChunkCame(want.source, name))
            if name == ROOT:
                self.feed(ListOpened(names=self.all_names))
        self.feed(ChunksEnded(want=want, failed=fails))


@given(
    st.integers(0, 40),
    st.sets(st.sampled_from((A, B, C)), max_size=2),
    st.randoms(use_true_random=False),
)
def test_it_ends_whatever_happens_and_nothing_is_sent_twice(
    count: int, liars: set[SourceId], chance: random.Random
) -> None:
    all_names = names(count)
    machine = BlobDownload(ROOT, shuffle=chance.shuffle)
    world = World(machine, all_names, chance, liars)
    world.feed(SourcesChanged((A, B, C, SourceId("D"), SourceId("E"))))
    for number in range(2_000):
        if machine.is_complete:
            break
        world.step(is_kind=number > 300)
    assert machine.is_complete
    assert machine.here == frozenset(all_names)
    assert max(world.sent.values()) == 1
    assert not world.asked_after_lies
