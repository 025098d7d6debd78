"""What ``ProfileStore`` promises about open channels, of both stores alike."""

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError, StorageError
from engine.core.ids import ChannelId, ConversationId
from engine.core.ports import (
    ProfileStore,
    PutContact,
    PutGroup,
    PutMember,
    PutOpenChannel,
    RemoveGroup,
    SaveDraft,
    SaveMuted,
    SaveReadMark,
)
from engine.core.records import OpenFormat, OpenPace
from engine.core.sds.vocabulary import ChannelState
from tests.persistence.store_examples import (
    ALICE,
    GROUP,
    NOW,
    OPEN,
    PAIR,
    at,
    channel,
    contact,
    group,
    logged,
    member,
    open_channel,
    row,
)


def test_a_channel_comes_back_exactly_and_is_no_group(store: ProfileStore) -> None:
    whole = replace(
        open_channel(),
        shard=7,
        format=OpenFormat.TOY_CHAT,
        pace=OpenPace.CAUSERIE,
        muted=True,
        draft="well…",
        read_up_to=at(7, "x"),
    )
    bare = replace(open_channel(ConversationId("V" * 43), name=""), channel_id=ChannelId("0"))
    store.apply([PutOpenChannel(channel=whole), PutOpenChannel(channel=bare)])
    store.apply([PutGroup(group=group())])
    assert store.open_channels() == [whole, bare]
    assert [each.conversation_id for each in store.groups()] == [GROUP]


def test_a_new_channel_has_only_a_clock(store: ProfileStore) -> None:
    store.apply(
        [PutOpenChannel(channel=open_channel(), initial_state=ChannelState(lamport_timestamp=5))]
    )
    assert store.channel_state(OPEN) == ChannelState(lamport_timestamp=5)
    filled = PutOpenChannel(
        channel=open_channel(ConversationId("V" * 43)),
        initial_state=ChannelState(lamport_timestamp=5, store_queried_ms=NOW),
    )
    with pytest.raises(LocalProtocolError):
        store.apply([filled])


def test_what_belongs_to_the_user_stays(store: ProfileStore) -> None:
    store.apply(
        [
            PutOpenChannel(channel=open_channel()),
            SaveMuted(conversation_id=OPEN, muted=True),
            SaveDraft(conversation_id=OPEN, text="not yet"),
            SaveReadMark(conversation_id=OPEN, up_to=at(3, "c")),
        ]
    )
    store.apply([PutOpenChannel(channel=open_channel(name="Another label"))])
    (kept,) = store.open_channels()
    assert (kept.name, kept.muted, kept.draft) == ("Another label", True, "not yet")
    assert kept.read_up_to == at(3, "c")


def test_a_channel_has_a_log_and_rows_and_no_members(store: ProfileStore) -> None:
    store.apply([PutOpenChannel(channel=open_channel())])
    store.apply(
        [
            channel(logged(1, "a"), conversation_id=OPEN),
            row(1, "a", conversation_id=OPEN),
        ]
    )
    assert [entry.position for entry in store.channel_state(OPEN).log] == [at(1, "a")]
    assert len(store.latest_page(OPEN, limit=10).messages) == 1
    assert [entry.position for entry in store.logged(OPEN, None, limit=10)] == [at(1, "a")]
    with pytest.raises(StorageError):
        store.apply([PutMember(member=replace(member(ALICE).member, conversation_id=OPEN))])


def test_a_shared_key_is_kept_with_its_channel(store: ProfileStore) -> None:
    keyed = replace(open_channel(), key=bytes(range(32)))
    store.apply([PutOpenChannel(channel=keyed)])
    store.apply([PutOpenChannel(channel=replace(keyed, name="Another label"))])
    (kept,) = store.open_channels()
    assert (kept.key, kept.name) == (keyed.key, "Another label")


def test_a_conversation_stays_of_its_kind(store: ProfileStore) -> None:
    store.apply([PutOpenChannel(channel=open_channel()), PutGroup(group=group())])
    store.apply([PutContact(contact=contact())])
    for wrong in (
        PutGroup(group=group(OPEN)),
        PutContact(contact=contact(OPEN)),
        PutOpenChannel(channel=open_channel(GROUP)),
        PutOpenChannel(channel=open_channel(PAIR)),
    ):
        with pytest.raises(StorageError):
            store.apply([wrong])


def test_a_channel_that_was_left_can_be_joined_again_empty(store: ProfileStore) -> None:
    store.apply(
        [PutOpenChannel(channel=open_channel(), initial_state=ChannelState(lamport_timestamp=5))]
    )
    store.apply([channel(logged(1, "a"), conversation_id=OPEN)])
    store.apply([RemoveGroup(conversation_id=OPEN)])
    assert store.open_channels() == []
    store.apply(
        [PutOpenChannel(channel=open_channel(), initial_state=ChannelState(lamport_timestamp=9))]
    )
    assert store.channel_state(OPEN) == ChannelState(lamport_timestamp=9)
