"""What ``ProfileStore`` promises, on the memory store and on SQLite alike."""

from dataclasses import replace

import pytest

from engine.core.errors import LocalProtocolError, StorageError
from engine.core.history.kept import (
    HistoryKept,
    KeptWrite,
    SaveCovered,
    SaveReach,
    StoreRecord,
)
from engine.core.history.progress import DropProgress, Progress, Purpose, SaveProgress
from engine.core.history.types import StoreRef
from engine.core.ports import (
    AddCounters,
    ApplyHistory,
    HideMessage,
    OwnSequence,
    ProfileStore,
    PutContact,
    PutGroup,
    PutMember,
    PutMessage,
    PutNodeAddress,
    PutStore,
    RemoveGroup,
    RemoveStore,
    SaveDraft,
    SaveMuted,
    SaveOwnSequence,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    SpanRecord,
    StoredPage,
    StoreWrite,
)
from engine.core.sds.types import (
    ChannelState,
    HistoryEntry,
    IncomingEntry,
    MarkAccepted,
    Message,
    MissingEntry,
    MissingState,
    PutIncoming,
    PutMissing,
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    SaveClock,
    SaveRetrievalHint,
    StoresSaid,
)
from engine.core.types import (
    AuthorSequence,
    ChannelId,
    DeliveryState,
    HolderSource,
    InstanceId,
    MessageId,
    UnixMs,
)
from engine.persistence.rules import MAX_COVERED_STORES
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    ME,
    NOW,
    OTHER_GROUP,
    PROFILE,
    at,
    channel,
    contact,
    delivery,
    group,
    held,
    logged,
    member,
    outgoing,
    row,
)


@pytest.fixture
def with_group(store: ProfileStore) -> ProfileStore:
    store.apply([PutGroup(group=group())])
    return store


@pytest.fixture(params=["group", "pair"])
def with_conversation(request: pytest.FixtureRequest, store: ProfileStore) -> ProfileStore:
    """A timeline is the same of a group and of a pair; the id is GROUP in any case."""
    about: StoreWrite = (
        PutGroup(group=group()) if request.param == "group" else PutContact(contact=contact(GROUP))
    )
    store.apply([about])
    return store


def names(page: StoredPage) -> list[str]:
    return [stored.record.position.message_id for stored in page.messages]


# --- profile, groups, members, small things -----------------------------------------------------


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
    renamed = replace(group(name="Family"), epoch_id=b"new", epoch_key=b"k" * 32)
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


def test_own_sequences_are_kept_per_instance(with_conversation: ProfileStore) -> None:
    second = InstanceId(b"\x08" * 16)
    newest = {
        instance: OwnSequence(instance_id=instance, sequence=n, previous_id=MessageId(f"m{n}"))
        for instance, n in ((INSTANCE, 4), (second, 1))
    }
    with_conversation.apply(
        [SaveOwnSequence(conversation_id=GROUP, own_sequence=own) for own in newest.values()]
    )
    assert with_conversation.own_sequence(GROUP, INSTANCE) == newest[INSTANCE]
    assert with_conversation.own_sequence(GROUP, second) == newest[second]
    assert with_conversation.own_sequence(GROUP, InstanceId(b"\x09" * 16)) is None
    assert with_conversation.own_sequence(OTHER_GROUP, INSTANCE) is None


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


# --- all or nothing -----------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "write",
    [
        row(1, "a"),
        member(ALICE),
        channel(SaveClock(lamport_timestamp=1)),
        delivery("a", DeliveryState.SENT),
        SaveOwnSequence(
            conversation_id=GROUP,
            own_sequence=OwnSequence(instance_id=INSTANCE, sequence=1, previous_id=MessageId("a")),
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
            own_sequence=OwnSequence(instance_id=INSTANCE, sequence=1, previous_id=MessageId("a")),
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


# --- the channel --------------------------------------------------------------------------------

HISTORY = (
    HistoryEntry(message_id=MessageId("plain")),
    HistoryEntry(message_id=MessageId('"quoted",\n'), retrieval_hint=b"\x00\xff", sender_id=ALICE),
    HistoryEntry(message_id=MessageId("ünï"), retrieval_hint=b""),
)
WAITING = IncomingEntry(
    message=Message(
        sender_id=BOB,
        message_id=MessageId("in-1"),
        channel_id=ChannelId("0"),
        lamport_timestamp=2**53 - 1,
        causal_history=HISTORY,
        bloom_filter=b"\x00" * 40,
        repair_request=HISTORY[1:],
        content=b"\xff\x00",
    ),
    raw=b"\x00raw",
    author=AuthorSequence(instance_id=INSTANCE, sequence=12),
    retrieval_hint=b"hint",
    received_ms=NOW,
)
BARE = IncomingEntry(
    message=Message(sender_id=ALICE, message_id=MessageId("in-2"), channel_id=ChannelId("")),
    raw=b"",
    author=None,
    retrieval_hint=None,
    received_ms=NOW,
)
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


WANTED = MissingEntry(
    entry=HISTORY[1],
    state=MissingState.WANTED,
    since_ms=NOW,
    online_ms=10,
    request_at_ms=NOW,
    requests=0,
)
LOST = replace(
    WANTED,
    entry=HISTORY[0],
    state=MissingState.LOST,
    requests=9,
    stores=StoresSaid(at_ms=NOW, lacked=2, silent=("/dns4/one", "/dns4/two"), kept_back=True),
)


def test_a_new_group_starts_with_the_clock_it_is_given(store: ProfileStore) -> None:
    store.apply([PutGroup(group=group(), initial_state=ChannelState(lamport_timestamp=77))])
    assert store.channel_state(GROUP) == ChannelState(lamport_timestamp=77)
    store.apply([PutGroup(group=group(), initial_state=ChannelState(lamport_timestamp=1))])
    assert store.channel_state(GROUP).lamport_timestamp == 77, "only a new group takes it"


def test_a_new_group_cannot_smuggle_in_messages(store: ProfileStore) -> None:
    state = ChannelState(lamport_timestamp=1, log=(logged(1, "a").entry,))
    with pytest.raises(LocalProtocolError):
        store.apply([PutGroup(group=group(), initial_state=state)])
    assert store.groups() == []


def test_a_channel_comes_back_exactly(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            channel(
                SaveClock(lamport_timestamp=2**53 - 1),
                *(logged(5, name) for name in ("é", "a", "Z", "_", "-")),
                logged(4, "zz"),
                outgoing("o2"),
                outgoing("o1"),
                PutIncoming(entry=WAITING),
                PutIncoming(entry=BARE),
                PutMissing(entry=WANTED),
                PutMissing(entry=LOST),
                held("o1", BOB, HolderSource.BLOOM),
                held("o1", ALICE, HolderSource.CAUSAL),
            )
        ]
    )
    state = with_group.channel_state(GROUP)
    by_byte = ("zz", "-", "Z", "_", "a", "é")
    assert state == ChannelState(
        lamport_timestamp=2**53 - 1,
        log=tuple(logged(4 if name == "zz" else 5, name).entry for name in by_byte),
        outgoing=(outgoing("o2").entry, outgoing("o1").entry),
        incoming=(WAITING, BARE),
        missing=(WANTED, LOST),
        holders=(
            held("o1", BOB, HolderSource.BLOOM).entry,
            held("o1", ALICE, HolderSource.CAUSAL).entry,
        ),
    )


def test_buffers_replace_in_place_and_forget_what_is_removed(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            channel(
                *(outgoing(name) for name in ("a", "b", "c")),
                PutIncoming(entry=WAITING),
                PutMissing(entry=WANTED),
                outgoing("a", attempts=3, raw=b"other"),
                RemoveOutgoing(message_id=MessageId("b")),
                PutIncoming(entry=replace(WAITING, shown=True)),
                PutMissing(entry=replace(WANTED, requests=1)),
            )
        ]
    )
    state = with_group.channel_state(GROUP)
    assert state.outgoing == (outgoing("a", attempts=3, raw=b"other").entry, outgoing("c").entry)

    assert state.incoming == (replace(WAITING, shown=True),)
    assert state.missing == (replace(WANTED, requests=1),)
    gone = MessageId("never there")
    with_group.apply(
        [
            channel(
                RemoveIncoming(message_id=WAITING.message.message_id),
                RemoveMissing(message_id=WANTED.entry.message_id),
                RemoveOutgoing(message_id=gone),
                RemoveIncoming(message_id=gone),
                RemoveMissing(message_id=gone),
            )
        ]
    )
    state = with_group.channel_state(GROUP)
    assert (state.incoming, state.missing) == ((), ())


def test_that_a_copy_was_accepted_changes_nothing_else(with_group: ProfileStore) -> None:
    put = outgoing("a", attempts=3, raw=b"bytes")
    with_group.apply([channel(put, outgoing("b"), MarkAccepted(MessageId("a")))])
    with_group.apply([channel(MarkAccepted(MessageId("of nobody")))])
    assert with_group.channel_state(GROUP).outgoing == (
        replace(put.entry, accepted=True),
        outgoing("b").entry,
    )


def test_raw_bytes_are_those_of_the_log(with_group: ProfileStore) -> None:
    with_group.apply([channel(logged(1, "a", raw=b"\x00\xff"), outgoing("b"))])
    assert with_group.raw(GROUP, MessageId("a")) == b"\x00\xff"
    assert with_group.raw(GROUP, MessageId("b")) is None


def test_a_retrieval_hint_reaches_the_log(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            channel(
                logged(1, "a"),
                SaveRetrievalHint(message_id=MessageId("a"), retrieval_hint=b"new"),
                SaveRetrievalHint(message_id=MessageId("unknown"), retrieval_hint=b"new"),
            )
        ]
    )
    assert [entry.retrieval_hint for entry in with_group.channel_state(GROUP).log] == [b"new"]


@pytest.mark.parametrize(
    ("sources", "kept", "since_ms"),
    [
        (("bloom", "causal"), "causal", 9),
        (("causal", "bloom"), "causal", 7),
        (("repair", "holdings"), "repair", 7),
        (("bloom", "bloom"), "bloom", 7),
    ],
)
def test_a_certain_holder_never_becomes_uncertain_and_a_source_keeps_its_own_time(
    with_group: ProfileStore, sources: tuple[str, str], kept: str, since_ms: int
) -> None:
    first, second = (HolderSource(source) for source in sources)
    with_group.apply([channel(held("a", BOB, first, 7), held("a", BOB, second, 9))])
    entry = held("a", BOB, HolderSource(kept), since_ms).entry
    assert with_group.holders(GROUP, MessageId("a")) == [entry]
    assert with_group.channel_state(GROUP).holders == (entry,)
    with_group.apply([channel(held("a", BOB, HolderSource.BLOOM, 3))])
    assert with_group.holders(GROUP, MessageId("a")) == [entry]


def test_what_everybody_holds_is_not_loaded_again(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            *(member(participant_id) for participant_id in (ME, ALICE, BOB)),
            channel(
                held("all", ALICE, HolderSource.CAUSAL),
                held("all", BOB, HolderSource.REPAIR),
                held("one", ALICE, HolderSource.CAUSAL),
                held("maybe", ALICE, HolderSource.CAUSAL),
                held("maybe", BOB, HolderSource.BLOOM),
            ),
        ]
    )

    def still_open() -> list[str]:
        return [entry.message_id for entry in with_group.channel_state(GROUP).holders]

    assert still_open() == ["one", "maybe", "maybe"]
    with_group.apply([member(BOB, left_ms=NOW)])
    assert still_open() == [], "who left is not waited for"
    assert len(with_group.holders(GROUP, MessageId("all"))) == 2, "but remains on record"


# --- the timeline -------------------------------------------------------------------------------


@pytest.mark.parametrize("chance", [0.0, 5e-324, 1e-17, 0.001, 0.1 + 0.2, 1.0, None])
def test_the_chance_that_a_maybe_is_wrong_comes_back_exactly(
    with_group: ProfileStore, chance: float | None
) -> None:
    maybe = held("a", BOB, HolderSource.BLOOM, 3, chance)
    with_group.apply(
        [
            row(1, "a", is_own=True),
            channel(maybe, held("a", BOB, HolderSource.BLOOM, 4, 0.5)),
        ]
    )
    assert with_group.holders(GROUP, MessageId("a")) == [maybe.entry]
    assert with_group.channel_state(GROUP).holders == (maybe.entry,)
    stored = with_group.message(GROUP, MessageId("a"))
    assert stored is not None
    assert stored.holders == (maybe.entry,)
    certain = held("a", BOB, HolderSource.CAUSAL, 9)
    with_group.apply([channel(certain)])
    assert with_group.holders(GROUP, MessageId("a")) == [certain.entry]
    assert certain.entry != held("a", BOB, HolderSource.CAUSAL, 9, 0.5).entry


def test_a_row_comes_back_with_delivery_and_holders(with_group: ProfileStore) -> None:
    spans = (SpanRecord(kind="link", start=0, length=3, target='https://ä.example/?a="b"'),)
    record = replace(row(1, "a", is_own=True).message, spans=spans, late=True, text="é\0\n")
    with_group.apply(
        [
            PutMessage(message=record),
            delivery("a", DeliveryState.FAILED, failure="nobody took it"),
            channel(held("a", BOB, HolderSource.BLOOM), held("a", ALICE, HolderSource.CAUSAL)),
        ]
    )
    stored = with_group.message(GROUP, MessageId("a"))
    assert stored is not None
    assert stored.record == record
    assert stored.delivery == delivery("a", DeliveryState.FAILED, failure="nobody took it").delivery
    assert [h.participant_id for h in stored.holders] == [BOB, ALICE]
    assert with_group.latest_page(GROUP, limit=1).messages == (stored,)


def test_only_own_messages_have_a_delivery_and_holders(with_group: ProfileStore) -> None:
    told: list[StoreWrite] = [
        write
        for name in ("a", "b")
        for write in (
            delivery(name, DeliveryState.SENT),
            channel(held(name, BOB, HolderSource.CAUSAL)),
        )
    ]
    with_group.apply([*told, row(1, "a"), row(2, "b", is_own=True), row(3, "c", is_own=True)])
    others, own, untold = with_group.latest_page(GROUP, limit=9).messages
    assert (others.delivery, others.holders) == (None, ())
    assert own.delivery == delivery("b", DeliveryState.SENT).delivery
    assert own.holders == (held("b", BOB, HolderSource.CAUSAL).entry,)
    assert (untold.delivery, untold.holders) == (None, ())
    assert len(with_group.holders(GROUP, MessageId("a"))) == 1, "but it can be asked for"


def test_rows_are_ordered_by_lamport_then_id_by_byte_and_waiting_rows_stand_last(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply(
        [
            row(3, "early", waiting=True),
            row(9, "é"),
            row(9, "a"),
            row(9, "Z"),
            row(1, "later", waiting=True),
            row(4, "x"),
        ]
    )
    page = with_conversation.latest_page(GROUP, limit=10)
    assert names(page) == ["x", "Z", "a", "é", "later", "early"]
    assert (page.has_older, page.has_newer, page.older_count, page.total) == (False, False, 0, 6)
    with_conversation.apply([row(3, "early")])
    assert names(with_conversation.latest_page(GROUP, limit=10)) == [
        "early",
        "x",
        "Z",
        "a",
        "é",
        "later",
    ]


def test_pages_meet_without_overlap_and_know_their_ordinals(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply([row(n // 3, f"m{n:02}") for n in range(20)])
    with_conversation.apply([row(2, "w0", waiting=True), row(3, "w1", waiting=True)])
    every = [f"m{n:02}" for n in range(20)] + ["w0", "w1"]
    page = with_conversation.latest_page(GROUP, limit=6)
    seen = names(page)
    assert (page.older_count, page.total, page.has_newer) == (16, 22, False)
    while page.has_older:
        page = with_conversation.page_before(GROUP, page.messages[0].record.position, limit=6)
        seen = names(page) + seen
        assert page.older_count == every.index(names(page)[0])
        assert page.has_newer
    assert seen == every
    seen = names(page)
    while page.has_newer:
        page = with_conversation.page_after(GROUP, page.messages[-1].record.position, limit=4)
        seen += names(page)
        assert page.older_count == every.index(names(page)[0])
        assert page.has_older
    assert seen == every


def test_a_page_may_start_where_no_row_is(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(2, "b"), row(4, "d"), row(1, "w", waiting=True)])
    before = with_conversation.page_before(GROUP, at(3, "x"), limit=5)
    after = with_conversation.page_after(GROUP, at(3, "x"), limit=5)
    assert (names(before), before.older_count, before.has_newer) == (["b"], 0, True)
    assert (names(after), after.older_count, after.has_older) == (["d", "w"], 1, True)
    beyond = with_conversation.page_after(GROUP, at(1, "w"), limit=5)
    assert (names(beyond), beyond.older_count, beyond.has_older) == ([], 3, True)
    nothing = with_conversation.page_before(GROUP, at(0, ""), limit=5)
    assert (names(nothing), nothing.older_count, nothing.has_newer) == ([], 0, True)


def test_a_hidden_row_leaves_every_page_and_count_and_stays_hidden(
    with_group: ProfileStore,
) -> None:
    with_group.apply(
        [
            *(row(n, f"m{n}") for n in range(3)),
            row(3, "mine", is_own=True),
            delivery("mine", DeliveryState.FAILED),
            channel(logged(3, "mine")),
        ]
    )
    hide: list[StoreWrite] = [
        HideMessage(conversation_id=GROUP, message_id=MessageId(name)) for name in ("m1", "mine")
    ]
    with_group.apply(hide + hide)
    with_group.apply([row(1, "m1", text="edited"), delivery("mine", DeliveryState.FAILED)])
    page = with_group.latest_page(GROUP, limit=9)
    assert (names(page), page.total) == (["m0", "m2"], 2)
    assert with_group.message(GROUP, MessageId("m1")) is None
    summary = with_group.summary(GROUP)
    assert (summary.unread, summary.failed) == (2, 0)
    assert summary.last_message == page.messages[-1]
    assert with_group.raw(GROUP, MessageId("mine")) == b"raw", "others may still ask for it"
    around = with_group.page_after(GROUP, at(1, "m1"), limit=9)
    assert (names(around), around.older_count) == (["m2"], 1)


def test_hiding_what_is_not_there_yet_changes_nothing(with_conversation: ProfileStore) -> None:
    with_conversation.apply(
        [HideMessage(conversation_id=GROUP, message_id=MessageId("a")), row(1, "a")]
    )
    assert names(with_conversation.latest_page(GROUP, limit=9)) == ["a"]


def test_a_page_is_bounded_and_never_empty_by_request(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(n, f"m{n:04}") for n in range(1005)])
    page = with_conversation.latest_page(GROUP, limit=10**9)
    assert (len(page.messages), page.older_count, page.has_older) == (1000, 5, True)
    with pytest.raises(LocalProtocolError):
        with_conversation.latest_page(GROUP, limit=0)


def test_unread_are_visible_texts_of_others_after_the_mark(with_conversation: ProfileStore) -> None:
    with_conversation.apply(
        [
            row(1, "a"),
            row(2, "joined", kind="joined"),
            row(3, "mine", is_own=True),
            row(4, "b"),
            row(5, "c"),
            row(2, "w", waiting=True),
        ]
    )
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (4, at(1, "a"))
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(3, "mine"))])
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (2, at(4, "b"))
    with_conversation.apply([row(2, "w"), row(3, "later than the mark's id", text="late")])
    assert with_conversation.summary(GROUP).unread == 2, (
        "what is placed before the mark counts as read"
    )
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(1, "a"))])
    assert with_conversation.summary(GROUP).unread == 2, "the mark never moves backwards"
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(5, "c"))])
    summary = with_conversation.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (0, None)
    marks = [about.read_up_to for about in with_conversation.groups()]
    marks += [about.read_up_to for about in with_conversation.contacts()]
    assert marks == [at(5, "c")]


def test_the_first_unread_is_the_first_on_screen(with_conversation: ProfileStore) -> None:
    with_conversation.apply([row(1, "waiting", waiting=True), row(9, "placed")])
    assert with_conversation.summary(GROUP).first_unread == at(9, "placed")
    with_conversation.apply([SaveReadMark(conversation_id=GROUP, up_to=at(0))])
    with_conversation.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("placed"))])
    assert with_conversation.summary(GROUP).first_unread == at(1, "waiting")


def test_the_summary_counts_what_is_only_saved_and_what_failed(
    with_conversation: ProfileStore,
) -> None:
    with_conversation.apply(
        [
            *(row(n, name, is_own=True) for n, name in enumerate("abcd")),
            row(0, "created", is_own=True, kind="created"),
            row(1, "joined", is_own=True, kind="joined"),
            delivery("created", DeliveryState.SAVED),
            delivery("joined", DeliveryState.FAILED),
            delivery("a", DeliveryState.SAVED),
            delivery("b", DeliveryState.SAVED),
            delivery("c", DeliveryState.FAILED, failure="nobody took it"),
            delivery("d", DeliveryState.HELD),
            delivery("not in the timeline", DeliveryState.SAVED),
        ]
    )
    summary = with_conversation.summary(GROUP)
    assert (summary.waiting_to_send, summary.failed) == (2, 1)
    with_conversation.apply([delivery("a", DeliveryState.SENT), delivery("c", DeliveryState.SAVED)])
    summary = with_conversation.summary(GROUP)
    assert (summary.waiting_to_send, summary.failed) == (2, 0)
    last = summary.last_message
    assert last is not None
    assert last.record.position == at(3, "d")


def test_when_a_member_took_their_name_is_kept(with_group: ProfileStore) -> None:
    named = replace(member(ALICE).member, name="Alicia", named_ms=77)
    with_group.apply([member(ALICE), PutMember(member=named)])
    assert with_group.members(GROUP) == [named]
