"""The machine that puts a blob at nodes: at most four of them, each what it lacks."""

from engine.core.blobs.download import (
    HoldingsCame,
    HoldingsFailed,
    SourceId,
    SourcesChanged,
    TimePassed,
    WantHoldings,
)
from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import Holdings, PutStatus
from engine.core.blobs.upload import BlobUpload, PutEnded, UploadConfig, UploadWant, WantPut

NAMES = tuple(ChunkName(b"%d" % number) for number in range(6))
CONFIG = UploadConfig()
PEERS = tuple(SourceId(f"peer {number}") for number in range(9))


def keeper(peer: SourceId, *held: ChunkName, is_keeper: bool = True) -> HoldingsCame:
    found = tuple(name in held for name in NAMES)
    return HoldingsCame(WantHoldings(peer, NAMES), Holdings(held=found, is_keeper=is_keeper))


def puts(wants: tuple[UploadWant, ...]) -> list[WantPut]:
    return [want for want in wants if isinstance(want, WantPut)]


def test_all_are_asked_and_only_keepers_get_it() -> None:
    machine = BlobUpload(NAMES)
    assert machine.handle(SourcesChanged(PEERS[:2]), now_ms=0) == (
        WantHoldings(PEERS[0], NAMES),
        WantHoldings(PEERS[1], NAMES),
    )
    assert machine.is_asking
    assert machine.handle(keeper(PEERS[0], is_keeper=False), now_ms=0) == ()
    assert (machine.nodes(), machine.is_complete) == (0, False)
    wants = list(puts(machine.handle(keeper(PEERS[1], *NAMES[:2]), now_ms=0)))
    assert len(wants) == CONFIG.puts_per_node
    assert machine.done == 2
    while wants:
        ended = PutEnded(wants.pop(), PutStatus.TAKEN)
        wants += puts(machine.handle(ended, now_ms=0))
    assert (machine.is_complete, machine.done, machine.is_running) == (True, len(NAMES), False)
    assert machine.next_deadline() is None


def test_at_most_four_nodes_get_it() -> None:
    machine = BlobUpload(NAMES)
    machine.handle(SourcesChanged(PEERS), now_ms=0)
    served = {
        want.source for peer in PEERS for want in puts(machine.handle(keeper(peer), now_ms=0))
    }
    assert len(served) == machine.nodes() == CONFIG.max_nodes


def test_a_node_without_room_is_left_alone_and_the_next_gets_it() -> None:
    machine = BlobUpload(NAMES, UploadConfig(max_nodes=1))
    machine.handle(SourcesChanged(PEERS[:2]), now_ms=0)
    [first, _] = puts(machine.handle(keeper(PEERS[0]), now_ms=0))
    assert puts(machine.handle(keeper(PEERS[1]), now_ms=0)) == []
    wants = puts(machine.handle(PutEnded(first, PutStatus.FULL), now_ms=0))
    assert {want.source for want in wants} == {PEERS[1]}


def test_what_breaks_off_is_tried_again_later_and_not_for_ever() -> None:
    machine, now_ms = BlobUpload(NAMES), 0
    machine.handle(SourcesChanged(PEERS[:1]), now_ms=0)
    wants = list(puts(machine.handle(keeper(PEERS[0]), now_ms=0)))
    failures = 0
    while wants or machine.next_deadline() is not None:
        if wants:
            failures += 1
            wants += puts(machine.handle(PutEnded(wants.pop(), None), now_ms=now_ms))
        else:
            due_ms = machine.next_deadline()
            assert due_ms is not None
            assert due_ms > now_ms
            now_ms = due_ms
            wants += puts(machine.handle(TimePassed(), now_ms=now_ms))
    assert failures >= CONFIG.most_failures
    assert (machine.nodes(), machine.is_running) == (0, False)
    [again] = machine.handle(SourcesChanged(()), now_ms=now_ms) or (None,)
    assert again is None
    assert machine.handle(SourcesChanged(PEERS[:1]), now_ms=now_ms) == (
        WantHoldings(PEERS[0], NAMES),
    )


def test_how_far_it_is_is_that_of_the_node_that_has_most() -> None:
    machine = BlobUpload(NAMES)
    machine.handle(SourcesChanged(PEERS[:2]), now_ms=0)
    machine.handle(keeper(PEERS[0], *NAMES[:1]), now_ms=0)
    assert (machine.is_asking, machine.is_running) == (True, True)
    machine.handle(keeper(PEERS[1], *NAMES[:4]), now_ms=0)
    assert (machine.done, machine.is_running, machine.is_complete) == (4, True, False)


def test_a_node_that_takes_one_again_is_trusted_again() -> None:
    machine = BlobUpload(NAMES, UploadConfig(puts_per_node=1))
    machine.handle(SourcesChanged(PEERS[:1]), now_ms=0)
    [want] = puts(machine.handle(keeper(PEERS[0]), now_ms=0))
    now_ms = waited_ms = 0
    for status in (PutStatus.BUSY, PutStatus.FAILED, PutStatus.TAKEN, PutStatus.TOO_MUCH):
        wants = puts(machine.handle(PutEnded(want, status), now_ms=now_ms))
        if not wants:
            due_ms = machine.next_deadline()
            assert due_ms is not None
            waited_ms, now_ms = due_ms - now_ms, due_ms
            wants = puts(machine.handle(TimePassed(), now_ms=now_ms))
        [want] = wants
    assert waited_ms == CONFIG.rest_first_ms


def test_the_numbers_are_those_of_the_document() -> None:
    assert (
        UploadConfig(
            max_peers=64,
            max_nodes=4,
            puts_per_node=2,
            rest_first_ms=500,
            rest_cap_ms=60_000,
            most_failures=8,
        )
        == CONFIG
    )


def test_one_that_says_nothing_is_asked_again() -> None:
    machine = BlobUpload(NAMES)
    [want] = machine.handle(SourcesChanged(PEERS[:1]), now_ms=0)
    assert isinstance(want, WantHoldings)
    assert machine.handle(HoldingsFailed(want), now_ms=0) == ()
    due_ms = machine.next_deadline()
    assert due_ms == CONFIG.rest_first_ms
    assert machine.handle(TimePassed(), now_ms=due_ms) == (want,)
