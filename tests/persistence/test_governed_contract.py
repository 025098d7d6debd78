"""What both stores promise about governed groups: admin log, epoch keys, prekeys, void messages."""

from msgspec.structs import replace

from engine.core.admin_log.acts import EntryId
from engine.core.governed import (
    AddEpochKey,
    GovernedState,
    PutEntry,
    PutPrekey,
    RemoveRow,
    SaveOwnPrekeys,
)
from engine.core.ids import UnixMs
from engine.core.ports import ProfileStore, PutGroup, RemoveGroup
from engine.core.prekeys import OwnPrekey
from tests.persistence.store_examples import ALICE, BOB, GROUP, NOW, at, channel, group, logged, row

FIRST = EntryId("A" * 43)
LATER = UnixMs(NOW + 5)
OLD = OwnPrekey(number=1, private_key=b"1" * 32, made_ms=NOW)
NEW = OwnPrekey(number=2, private_key=b"2" * 32, made_ms=LATER)


def test_all_that_a_governed_group_keeps_comes_back(store: ProfileStore) -> None:
    governed = replace(group(), first_entry=FIRST)
    keys = governed.epoch_keys
    store.apply([PutGroup(group=governed)])
    assert store.groups() == [governed]
    assert store.governed(GROUP) == GovernedState(known_ms=dict.fromkeys(keys, NOW))
    store.apply(
        [
            PutEntry(conversation_id=GROUP, data=b"two"),
            PutEntry(conversation_id=GROUP, data=b"one"),
            AddEpochKey(conversation_id=GROUP, key=b"k" * 32, known_ms=LATER),
            AddEpochKey(conversation_id=GROUP, key=b"k" * 32, known_ms=NOW),
            SaveOwnPrekeys(conversation_id=GROUP, prekeys=(OLD, NEW)),
            PutPrekey(conversation_id=GROUP, participant_id=BOB, data=b"older"),
            PutPrekey(conversation_id=GROUP, participant_id=BOB, data=b"of Bob"),
            PutPrekey(conversation_id=GROUP, participant_id=ALICE, data=b"of Alice"),
        ]
    )
    state = store.governed(GROUP)
    assert state.entries == (b"two", b"one")
    assert state.known_ms == {**dict.fromkeys(keys, NOW), b"k" * 32: LATER}
    assert state.own_prekeys == (OLD, NEW)
    assert sorted(state.prekeys) == [b"of Alice", b"of Bob"]
    assert store.groups()[0].epoch_keys == (*keys, b"k" * 32)
    store.apply([SaveOwnPrekeys(conversation_id=GROUP, prekeys=(NEW,))])
    assert store.governed(GROUP).own_prekeys == (NEW,)


def test_nothing_of_it_outlives_the_group(store: ProfileStore) -> None:
    governed = replace(group(), first_entry=FIRST)
    store.apply([PutGroup(group=governed), PutEntry(conversation_id=GROUP, data=b"one")])
    store.apply([RemoveGroup(conversation_id=GROUP)])
    assert store.governed(GROUP) == GovernedState()
    store.apply([PutGroup(group=group())])
    assert store.groups()[0].first_entry is None
    assert store.governed(GROUP).entries == ()


def test_a_row_that_is_taken_out_leaves_the_log_and_can_come_back(store: ProfileStore) -> None:
    position = at(5, "m")
    store.apply([PutGroup(group=group())])
    store.apply([channel(logged(5, "m")), row(5, "m")])
    store.apply([RemoveRow(conversation_id=GROUP, position=position)])
    assert store.latest_page(GROUP, limit=5).messages == ()
    assert [one.position for one in store.logged(GROUP, None, limit=5)] == [position]
    store.apply([row(5, "m")])
    assert len(store.latest_page(GROUP, limit=5).messages) == 1
