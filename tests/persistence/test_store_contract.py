"""What ``ProfileStore`` promises about a profile and its groups, of both stores alike.

Here: the profile itself, groups, members, small values, and that a batch is applied as a whole or
not at all.  Channels, timelines, what is known of Store nodes, and pairs have modules of their own.
"""

import pytest
from msgspec.structs import replace

from engine.core.errors import StorageError
from engine.core.ids import DeliveryState, HolderSource, InstanceId, MessageId, UnixMs
from engine.core.ports import (
    AddCounters,
    HideMessage,
    ProfileStore,
    PutGroup,
    PutMember,
    PutNodeAddress,
    RemoveGroup,
    SaveDraft,
    SaveMuted,
    SaveOwnSequence,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    StoreWrite,
)
from engine.core.sds.vocabulary import ChannelState, SaveClock
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    NOW,
    OTHER_GROUP,
    PROFILE,
    at,
    channel,
    delivery,
    group,
    held,
    logged,
    member,
    outgoing,
    own_sequence,
    row,
)


def test_a_new_profile_is_empty(store: ProfileStore) -> None:
    assert store.profile() is None
    assert store.groups() == []
    assert store.node_addresses() == []
    assert store.counters() == {}
    assert store.value("port") is None


def test_the_profile_is_replaced_as_a_whole(store: ProfileStore) -> None:
    store.apply([SaveProfile(profile=PROFILE)])
    assert store.profile() == PROFILE
    renamed = replace(PROFILE, name="Mira", instance_id=InstanceId(b"\xff" * 16))
    store.apply([SaveProfile(profile=renamed)])
    assert store.profile() == renamed


def test_a_new_group_brings_everything_even_what_belongs_to_the_user(store: ProfileStore) -> None:
    whole = replace(group(), muted=True, draft="well…", read_up_to=at(7, "x"))
    store.apply([PutGroup(group=whole)])
    assert store.groups() == [whole]


def test_replacing_a_group_keeps_what_belongs_to_the_user(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            SaveMuted(conversation_id=GROUP, muted=True),
            SaveDraft(conversation_id=GROUP, text="half a thought"),
            SaveReadMark(conversation_id=GROUP, up_to=at(3, "c")),
        ]
    )
    renamed = replace(group(name="Family"), epoch_keys=(b"k" * 32, b"n" * 32, b"e" * 32))
    with_group.apply([PutGroup(group=renamed)])
    assert with_group.groups() == [
        replace(renamed, muted=True, draft="half a thought", read_up_to=at(3, "c"))
    ]


def test_groups_come_in_the_order_in_which_they_were_added(store: ProfileStore) -> None:
    store.apply([PutGroup(group=group(OTHER_GROUP)), PutGroup(group=group())])
    store.apply([PutGroup(group=group(OTHER_GROUP, name="renamed"))])
    assert [g.conversation_id for g in store.groups()] == [OTHER_GROUP, GROUP]


def test_a_member_is_replaced_and_keeps_the_place(with_group: ProfileStore) -> None:
    with_group.apply([member(BOB), member(ALICE), member(BOB, left_ms=UnixMs(9))])
    assert with_group.members(GROUP) == [
        member(BOB, left_ms=UnixMs(9)).member,
        member(ALICE).member,
    ]
    assert with_group.members(OTHER_GROUP) == []


def test_when_a_member_took_their_name_is_kept(with_group: ProfileStore) -> None:
    named = replace(member(ALICE).member, name="Alicia", named_ms=77)
    with_group.apply([member(ALICE), PutMember(member=named)])
    assert with_group.members(GROUP) == [named]


def test_since_when_a_member_is_known_is_what_was_said_first(with_group: ProfileStore) -> None:
    """Whatever is put later: whose word counts goes by it."""
    with_group.apply([member(ALICE, known_ms=UnixMs(5)), member(BOB)])
    for later in (UnixMs(0), UnixMs(4), UnixMs(9)):
        with_group.apply([member(ALICE, left_ms=NOW, known_ms=later)])
        assert with_group.members(GROUP) == [
            member(ALICE, left_ms=NOW, known_ms=UnixMs(5)).member,
            member(BOB).member,
        ]
    with_group.apply([RemoveGroup(conversation_id=GROUP), PutGroup(group=group())])
    with_group.apply([member(ALICE, known_ms=UnixMs(9))])
    assert with_group.members(GROUP) == [member(ALICE, known_ms=UnixMs(9)).member]


def test_own_sequences_are_kept_per_stay(with_conversation: ProfileStore) -> None:
    second = InstanceId(b"\x08" * 16)
    newest = {
        stay: own_sequence(n, f"m{n}", stay=stay, instance_id=stay)
        for stay, n in ((INSTANCE, 4), (second, 1))
    }
    with_conversation.apply(
        [SaveOwnSequence(conversation_id=GROUP, own_sequence=own) for own in newest.values()]
    )
    assert with_conversation.own_sequence(GROUP, INSTANCE) == newest[INSTANCE]
    assert with_conversation.own_sequence(GROUP, second) == newest[second]
    assert with_conversation.own_sequence(GROUP, InstanceId(b"\x09" * 16)) is None
    assert with_conversation.own_sequence(OTHER_GROUP, INSTANCE) is None


def test_a_stay_goes_on_with_another_instance(with_conversation: ProfileStore) -> None:
    fresh = InstanceId(b"\x09" * 16)
    advanced = own_sequence(1, "again", instance_id=fresh)
    with_conversation.apply(
        [
            SaveOwnSequence(conversation_id=GROUP, own_sequence=own_sequence(4, "m4")),
            SaveOwnSequence(conversation_id=GROUP, own_sequence=advanced),
        ]
    )
    assert with_conversation.own_sequence(GROUP, INSTANCE) == advanced
    assert with_conversation.own_sequence(GROUP, fresh) is None, "an instance is no stay"


def test_the_50_newest_addresses_are_kept(store: ProfileStore) -> None:
    store.apply([PutNodeAddress(multiaddr=f"/{n:02}", seen_ms=UnixMs(n)) for n in range(60)])
    assert store.node_addresses() == [f"/{n:02}" for n in range(59, 9, -1)]
    store.apply([PutNodeAddress(multiaddr="/10", seen_ms=UnixMs(99))])
    assert store.node_addresses()[0] == "/10"
    store.apply([PutNodeAddress(multiaddr="/10", seen_ms=UnixMs(1))])
    assert store.node_addresses()[0] == "/10", "an older sighting changes nothing"


def test_values_are_replaced_and_counters_add_up(store: ProfileStore) -> None:
    store.apply([SaveValue(key="port", value="1"), SaveValue(key="port", value="2")])
    store.apply([AddCounters(amounts={"b.x": 2, "a.y": 1})])
    store.apply([AddCounters(amounts={"b.x": 40})])
    assert store.value("port") == "2"
    assert list(store.counters().items()) == [("a.y", 1), ("b.x", 42)]


def test_a_batch_that_fails_leaves_nothing_behind(with_group: ProfileStore) -> None:
    with_group.apply([channel(logged(1, "a"))])
    before = with_group.channel_state(GROUP)
    batch: list[StoreWrite] = [
        SaveValue(key="port", value="1"),
        row(2, "b"),
        channel(SaveClock(lamport_timestamp=9), logged(2, "b"), logged(3, "a")),
    ]
    with pytest.raises(StorageError):
        with_group.apply(batch)
    assert with_group.channel_state(GROUP) == before
    assert with_group.latest_page(GROUP, limit=10).total == 0
    assert with_group.value("port") is None
    with_group.apply([channel(logged(2, "b"))])


def test_what_a_batch_changed_is_read_before_its_commit(with_group: ProfileStore) -> None:
    read: list[tuple[int, str | None]] = []

    def look() -> None:
        read.append((with_group.latest_page(GROUP, limit=10).total, with_group.value("port")))

    with_group.apply([SaveValue(key="port", value="1"), row(1, "a")], look)
    assert read == [(1, "1")]


def test_a_batch_whose_reading_fails_leaves_nothing_behind(with_group: ProfileStore) -> None:
    def fail() -> None:
        raise StorageError("The row cannot be read.")

    with pytest.raises(StorageError, match="cannot be read"):
        with_group.apply([SaveValue(key="port", value="1"), row(1, "a")], fail)
    assert with_group.latest_page(GROUP, limit=10).total == 0
    assert with_group.value("port") is None
    with_group.apply([row(1, "a")])
    assert with_group.latest_page(GROUP, limit=10).total == 1


@pytest.mark.parametrize(
    "write",
    [
        row(1, "a"),
        member(ALICE),
        channel(SaveClock(lamport_timestamp=1)),
        delivery("a", DeliveryState.SENT),
        SaveOwnSequence(
            conversation_id=GROUP,
            own_sequence=own_sequence(1, "a"),
        ),
    ],
    ids=lambda write: type(write).__name__,
)
def test_data_of_an_unknown_conversation_is_refused(store: ProfileStore, write: StoreWrite) -> None:
    with pytest.raises(StorageError):
        store.apply([SaveValue(key="port", value="1"), write])
    assert store.value("port") is None


def test_the_window_may_speak_of_a_conversation_that_was_just_left(store: ProfileStore) -> None:
    store.apply(
        [
            SaveDraft(conversation_id=GROUP, text="late"),
            SaveMuted(conversation_id=GROUP, muted=True),
            SaveReadMark(conversation_id=GROUP, up_to=at(1)),
            HideMessage(conversation_id=GROUP, message_id=MessageId("m")),
            RemoveGroup(conversation_id=GROUP),
        ]
    )
    assert store.groups() == []


def test_an_unknown_conversation_is_empty_but_has_no_channel(store: ProfileStore) -> None:
    with pytest.raises(StorageError):
        store.channel_state(GROUP)
    assert store.latest_page(GROUP, limit=5).messages == ()
    assert store.page_before(GROUP, at(1), limit=5).total == 0
    assert store.page_after(GROUP, at(1), limit=5).total == 0
    assert store.message(GROUP, MessageId("m")) is None
    assert store.raw(GROUP, MessageId("m")) is None
    assert store.holders(GROUP, MessageId("m")) == []
    assert store.summary(GROUP).unread == 0


def test_a_removed_group_is_forgotten_and_can_be_joined_again(with_group: ProfileStore) -> None:
    with_group.apply([PutGroup(group=group(OTHER_GROUP)), row(1, "z", conversation_id=OTHER_GROUP)])
    everything: list[StoreWrite] = [
        member(ALICE),
        channel(logged(1, "a"), outgoing("a"), held("a", ALICE, HolderSource.CAUSAL)),
        row(1, "a", is_own=True),
        delivery("a", DeliveryState.FAILED),
        SaveOwnSequence(
            conversation_id=GROUP,
            own_sequence=own_sequence(1, "a"),
        ),
    ]
    with_group.apply(everything)
    with_group.apply([RemoveGroup(conversation_id=GROUP), PutGroup(group=group())])
    assert with_group.members(GROUP) == []
    assert with_group.channel_state(GROUP) == ChannelState(lamport_timestamp=0)
    assert with_group.latest_page(GROUP, limit=5).total == 0
    assert with_group.summary(GROUP).failed == 0
    assert with_group.raw(GROUP, MessageId("a")) is None
    assert with_group.holders(GROUP, MessageId("a")) == []
    assert with_group.own_sequence(GROUP, INSTANCE) is None
    assert with_group.latest_page(OTHER_GROUP, limit=5).total == 1
    with_group.apply(everything)
    assert with_group.latest_page(GROUP, limit=5).total == 1
