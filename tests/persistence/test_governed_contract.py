"""What both stores promise about governed groups: admin log, epoch keys, prekeys, void messages."""

import pytest
from msgspec.structs import replace

from engine.core.admin_log.acts import EntryId
from engine.core.admin_log.log import Deletion
from engine.core.governed import (
    AddEpochKey,
    BecomeGoverned,
    DeedPlace,
    GovernedState,
    NameGroup,
    PutDeed,
    PutDeletion,
    PutEntry,
    PutPrekey,
    RemoveRow,
    SaveOwnPrekeys,
)
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.ports import ProfileStore, PutGroup, RemoveGroup, StoreWrite
from engine.core.prekeys import OwnPrekey
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    NOW,
    annotation,
    at,
    channel,
    group,
    logged,
    row,
)

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
    deeds = (
        DeedPlace(entry_id=EntryId("B" * 43), position=at(5, "m"), is_shown=False),
        DeedPlace(entry_id=EntryId("C" * 43), position=at(6, "n"), is_shown=True),
    )
    shown = replace(deeds[0], is_shown=True)
    writes = [PutDeed(conversation_id=GROUP, deed=deed) for deed in (*reversed(deeds), shown)]
    store.apply([*writes, NameGroup(conversation_id=GROUP, name="Strolls")])
    state = store.governed(GROUP)
    assert state.deeds == (shown, deeds[1])
    assert store.groups()[0].name == "Strolls"
    assert state.entries == (b"two", b"one")
    assert state.known_ms == {**dict.fromkeys(keys, NOW), b"k" * 32: LATER}
    assert state.own_prekeys == (OLD, NEW)
    assert sorted(state.prekeys) == [b"of Alice", b"of Bob"]
    assert store.groups()[0].epoch_keys == (*keys, b"k" * 32)
    store.apply([SaveOwnPrekeys(conversation_id=GROUP, prekeys=(NEW,))])
    assert store.governed(GROUP).own_prekeys == (NEW,)


def test_a_group_whose_link_ended_is_governed_and_stays_at_its_topic(store: ProfileStore) -> None:
    open_ = group()
    store.apply([PutGroup(group=open_), PutEntry(conversation_id=GROUP, data=b"before")])
    assert store.groups() == [open_]
    first, name = FIRST, bytes(range(16))
    store.apply([BecomeGoverned(conversation_id=GROUP, first_entry=first, topic_name=name)])
    ended = replace(open_, first_entry=first, topic_name=name)
    assert store.groups() == [ended]
    assert store.governed(GROUP).entries == (b"before",)
    store.apply([PutGroup(group=ended)])
    assert store.groups() == [ended]


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


def deleted(message: str, author: ParticipantId, by: ParticipantId | None) -> PutDeletion:
    return PutDeletion(
        conversation_id=GROUP, deletion=Deletion(MessageId(message), author), deleted_by=by
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_a_deleted_message_shows_nothing_and_comes_back(
    store: ProfileStore, *, is_first: bool
) -> None:
    """Also if the deletion came first, and if somebody else is named as its author."""
    said = row(5, "m", text="rude", sender_id=BOB, kind="file")
    writes: list[StoreWrite] = [
        said,
        row(6, "n", reply_to=MessageId("m")),
        deleted("m", BOB, ALICE),
    ]
    ids = [MessageId("m"), MessageId("n")]
    store.apply([PutGroup(group=group())])
    before = None
    if not is_first:
        store.apply(writes[:2])
        before = store.messages(GROUP, ids)
    store.apply([*reversed(writes)] if is_first else writes)
    gone = store.messages(GROUP, ids)
    assert gone[ids[0]].retracted
    assert gone[ids[0]].deleted_by == ALICE
    assert (gone[ids[0]].record.text, gone[ids[0]].record.file) == ("", None)
    quote = gone[ids[1]].quote
    assert quote is not None
    assert (quote.text, quote.retracted) == ("", True)
    assert [one.text for one in store.versions(GROUP, ids[0])] == [""]
    assert store.with_files(GROUP, None, limit=5) == []
    assert store.file_data(GROUP, ids[0]) is None
    assert store.governed(GROUP).deleted == {Deletion(ids[0], BOB): ALICE}
    store.apply([deleted("m", BOB, None), deleted("n", BOB, ALICE)])
    again = store.messages(GROUP, ids)
    assert again[ids[0]].record.text == "rude"
    assert not again[ids[0]].retracted
    assert not again[ids[1]].retracted
    if before is not None:
        assert again == before
    assert store.governed(GROUP).deleted == {Deletion(ids[1], BOB): ALICE}


def test_what_its_author_retracted_stays_retracted_and_an_edit_stays_hidden(
    store: ProfileStore,
) -> None:
    edit = annotation(7, "e", "m", kind="edit", text="kinder", sender_id=BOB)
    store.apply([PutGroup(group=group()), row(5, "m", text="rude", sender_id=BOB)])
    store.apply([deleted("m", BOB, ALICE), edit])
    message_id = MessageId("m")
    assert store.messages(GROUP, [message_id])[message_id].record.text == ""
    store.apply([deleted("m", BOB, None)])
    assert store.messages(GROUP, [message_id])[message_id].record.text == "kinder"
    store.apply([deleted("m", BOB, ALICE)])
    store.apply([annotation(8, "r", "m", kind="retraction", sender_id=BOB)])
    assert store.messages(GROUP, [message_id])[message_id].deleted_by is None
    store.apply([deleted("m", BOB, None)])
    assert store.messages(GROUP, [message_id])[message_id].retracted
