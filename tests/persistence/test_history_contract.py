"""What ``ProfileStore`` remembers of asking Store nodes, both stores alike.

How far which Store was asked, for how many it is remembered, and the list of Stores itself.
"""

from msgspec.structs import replace

from engine.core.history.progress import (
    DropProgress,
    HistoryKept,
    KeptWrite,
    Progress,
    Purpose,
    SaveCovered,
    SaveProgress,
    SaveReach,
    StoreRecord,
    StoreRef,
)
from engine.core.ids import UnixMs
from engine.core.ports import (
    ApplyHistory,
    ProfileStore,
    PutGroup,
    PutStore,
    RemoveGroup,
    RemoveStore,
)
from engine.persistence.rules import MAX_COVERED_STORES
from tests.persistence.store_examples import GROUP, group

PROGRESS = Progress(
    conversation_id=GROUP,
    purpose=Purpose.CONNECT,
    start_ns=10**18,
    end_ns=2 * 10**18,
    through_ns=2 * 10**18 - 5,
    reached_ns=10**18 + 7,
)
FIRST_STORE, SECOND_STORE = StoreRef("/dns4/a/tcp/1/p2p/A"), StoreRef("/dns4/b/tcp/1/p2p/B")


def history(*writes: KeptWrite) -> ApplyHistory:
    return ApplyHistory(conversation_id=GROUP, writes=writes)


def test_how_far_stores_were_asked_is_kept_until_it_is_dropped(with_group: ProfileStore) -> None:
    assert with_group.history(GROUP) == HistoryKept()
    further = replace(PROGRESS, reached_ns=PROGRESS.end_ns - 1)
    asked = replace(PROGRESS, purpose=Purpose.USER, start_ns=0)
    with_group.apply(
        [
            history(SaveProgress(PROGRESS), SaveProgress(asked)),
            history(SaveReach(since_ms=UnixMs(7))),
            history(SaveProgress(further), SaveReach(through_ms=UnixMs(9))),
            history(SaveCovered(store=SECOND_STORE, through_ms=UnixMs(3))),
            history(SaveCovered(store=FIRST_STORE, through_ms=UnixMs(2))),
            history(SaveCovered(store=SECOND_STORE, through_ms=UnixMs(4))),
        ]
    )
    assert with_group.history(GROUP) == HistoryKept(
        progress=(further, asked),
        since_ms=UnixMs(7),
        through_ms=UnixMs(9),
        covered={FIRST_STORE: UnixMs(2), SECOND_STORE: UnixMs(4)},
    )
    with_group.apply([history(DropProgress(GROUP, Purpose.CONNECT))])
    assert with_group.history(GROUP).progress == (asked,)


def test_only_the_latest_of_many_stores_that_come_and_go_are_remembered(
    with_group: ProfileStore,
) -> None:
    stores = [StoreRef(f"/p2p/{number:03}") for number in range(MAX_COVERED_STORES + 5)]
    for at_ms, store in enumerate(stores):
        with_group.apply([history(SaveCovered(store=store, through_ms=UnixMs(at_ms)))])
    assert list(with_group.history(GROUP).covered) == stores[5:]


def test_of_a_conversation_that_was_left_nothing_is_kept_or_taken(with_group: ProfileStore) -> None:
    with_group.apply([history(SaveProgress(PROGRESS), SaveReach(since_ms=UnixMs(7)))])
    with_group.apply([RemoveGroup(conversation_id=GROUP)])
    with_group.apply([history(SaveProgress(PROGRESS))])
    assert with_group.history(GROUP) == HistoryKept()
    with_group.apply([PutGroup(group=group())])
    assert with_group.history(GROUP) == HistoryKept()


def test_stores_are_kept_in_their_order(store: ProfileStore) -> None:
    first = StoreRecord(store=SECOND_STORE, place=0, queries=3, asked_ms=UnixMs(5))
    second = StoreRecord(store=FIRST_STORE, place=1, enabled=False)
    store.apply([PutStore(record=second), PutStore(record=first)])
    assert store.stores() == [first, second]
    moved = replace(second, place=-1, omitted=4)
    store.apply([PutStore(record=moved), RemoveStore(store=SECOND_STORE)])
    assert store.stores() == [moved]
    store.apply([RemoveStore(store=SECOND_STORE)])
    assert store.stores() == [moved]
