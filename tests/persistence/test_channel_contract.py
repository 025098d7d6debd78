"""What ``ProfileStore`` promises about the SDS channel of a group, of both stores alike.

Clock, log, both buffers, what is missing, and who holds what come back exactly as they were put;
nothing here looks at the timeline that people read.
"""

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError, StorageError
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    ConversationId,
    DeliveryState,
    HolderSource,
    InstanceId,
    MessageId,
)
from engine.core.ports import HideMessage, ProfileStore, PutGroup, StoreWrite
from engine.core.records import KeptAside
from engine.core.sds.floods import ForgetSetAside, RemoveSetAside, SetAside
from engine.core.sds.vocabulary import (
    ChannelState,
    HistoryEntry,
    IncomingEntry,
    MarkAccepted,
    Message,
    MissingEntry,
    MissingState,
    NewestClaim,
    PutIncoming,
    PutMissing,
    PutNewestClaims,
    RemoveFromLog,
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    ReplaceRaw,
    SaveClock,
    SaveRetrievalHint,
    StoresSaid,
)
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    ME,
    NOW,
    OTHER_GROUP,
    at,
    channel,
    delivery,
    fork,
    group,
    held,
    logged,
    member,
    outgoing,
    replacement,
    row,
    set_aside,
    spent,
)

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
    previous_id=MessageId("in-0"),
    replaces=MessageId("ünï"),
)
BARE = IncomingEntry(
    message=Message(sender_id=ALICE, message_id=MessageId("in-2"), channel_id=ChannelId("")),
    raw=b"",
    author=None,
    retrieval_hint=None,
    received_ms=NOW,
)


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
                logged(4, "zz", previous="é"),
                outgoing("o2"),
                outgoing("o1"),
                PutIncoming(entry=WAITING),
                PutIncoming(entry=BARE),
                PutMissing(entry=WANTED),
                PutMissing(entry=LOST),
                held("o1", BOB, HolderSource.BLOOM),
                held("o1", ALICE, HolderSource.CAUSAL),
                replacement("r2"),
                replacement("r1"),
                fork(InstanceId(b"2")),
                fork(InstanceId(b"1")),
                set_aside("s2", b"raw"),
                set_aside("s1", b""),
                spent(2),
                spent(1, fetched=True),
            )
        ]
    )
    state = with_group.channel_state(GROUP)
    by_byte = ("-", "Z", "_", "a", "é")
    assert state == ChannelState(
        lamport_timestamp=2**53 - 1,
        log=(
            logged(4, "zz", previous="é").entry,
            *(logged(5, name).entry for name in by_byte),
        ),
        outgoing=(outgoing("o2").entry, outgoing("o1").entry),
        incoming=(WAITING, BARE),
        missing=(WANTED, LOST),
        holders=(
            held("o1", BOB, HolderSource.BLOOM).entry,
            held("o1", ALICE, HolderSource.CAUSAL).entry,
        ),
        replaced=(replacement("r2").replacement, replacement("r1").replacement),
        forks=(fork(InstanceId(b"2")).fork, fork(InstanceId(b"1")).fork),
        set_aside=(
            SetAside(message_id=MessageId("s2"), sender_id=BOB, lamport_timestamp=1, size=3),
            SetAside(message_id=MessageId("s1"), sender_id=BOB, lamport_timestamp=1),
        ),
        spent=(spent(1, fetched=True).spent, spent(2).spent),
    )


def test_buffers_replace_in_place_and_forget_what_is_removed(with_group: ProfileStore) -> None:
    changed = replace(WAITING, shown=True, previous_id=None, replaces=MessageId("other"))
    with_group.apply(
        [
            channel(
                *(outgoing(name) for name in ("a", "b", "c")),
                PutIncoming(entry=WAITING),
                PutMissing(entry=WANTED),
                outgoing("a", attempts=3, raw=b"other"),
                RemoveOutgoing(message_id=MessageId("b")),
                PutIncoming(entry=changed),
                PutMissing(entry=replace(WANTED, requests=1)),
            )
        ]
    )
    state = with_group.channel_state(GROUP)
    assert state.outgoing == (outgoing("a", attempts=3, raw=b"other").entry, outgoing("c").entry)

    assert state.incoming == (changed,)
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


def test_what_was_signed_anew_replaces_what_was_signed_before(with_group: ProfileStore) -> None:
    with_group.apply([channel(logged(1, "a", raw=b"old"), logged(2, "b", raw=b"other"))])
    writes = (ReplaceRaw(MessageId("a"), b"new"), ReplaceRaw(MessageId("unknown"), b"new"))
    with_group.apply([channel(*writes, logged(3, "c", raw=b"later"))])
    with_group.apply([channel(ReplaceRaw(MessageId("c"), b"anew"))])
    raws = {name: with_group.raw(GROUP, MessageId(name)) for name in ("a", "b", "c", "unknown")}
    assert raws == {"a": b"new", "b": b"other", "c": b"anew", "unknown": None}
    ids = [one.position.message_id for one in with_group.channel_state(GROUP).log]
    assert ids == ["a", "b", "c"]


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


def test_holders_of_what_is_old_can_be_left_out(with_group: ProfileStore) -> None:
    names = ("old", "border", "new")
    with_group.apply(
        [
            channel(*(logged(number, name) for number, name in enumerate(names, 9))),
            channel(*(held(name, ALICE, HolderSource.CAUSAL) for name in names)),
        ]
    )
    found = with_group.channel_state(GROUP, held_since=10).holders
    assert [entry.message_id for entry in found] == ["border", "new"]


def test_a_clock_that_was_put_right_stays_right(with_group: ProfileStore) -> None:
    """Also behind what is in the log: the store does not know better."""
    with_group.apply([channel(SaveClock(lamport_timestamp=2**53 - 1), logged(9, "a"))])
    with_group.apply([channel(SaveClock(lamport_timestamp=5))])
    assert with_group.channel_state(GROUP).lamport_timestamp == 5
    with_group.apply([channel(logged(7, "b"))])
    assert with_group.channel_state(GROUP).lamport_timestamp == 5


def test_what_somebody_else_says_of_a_message_does_not_hide_what_its_sender_says(
    with_group: ProfileStore,
) -> None:
    of_bob, of_alice = (replacement("a", who, 5) for who in (BOB, ALICE))
    with_group.apply([channel(of_bob, replacement("b"), of_alice)])
    with_group.apply([channel(replacement("a", BOB, 4), of_bob)])
    assert with_group.channel_state(GROUP).replaced == (
        of_bob.replacement,
        replacement("b").replacement,
        of_alice.replacement,
        replacement("a", BOB, 4).replacement,
    )


def test_the_first_proof_against_an_instance_stays(with_group: ProfileStore) -> None:
    with_group.apply([channel(fork(sequence=3), fork(InstanceId(b"other")), fork(sequence=2))])
    assert with_group.channel_state(GROUP).forks == (
        fork(sequence=3).fork,
        fork(InstanceId(b"other")).fork,
    )


def test_what_is_set_aside_is_read_in_the_order_of_the_log(with_group: ProfileStore) -> None:
    with_group.apply(
        [
            channel(
                set_aside("b", b"second", lamport=2),
                set_aside("c", b"third", lamport=2),
                set_aside("a", b"first", lamport=1),
                set_aside("bare", b"", lamport=1),
                set_aside("other", b"of Alice", sender_id=ALICE),
            )
        ]
    )
    kept = with_group.set_aside(GROUP, BOB, limit=2)
    assert kept == [KeptAside(b"first", b"f"), KeptAside(b"second", b"s")]
    with_group.apply([channel(RemoveSetAside(message_id=MessageId("a")), set_aside("b", b""))])
    assert [one.raw for one in with_group.set_aside(GROUP, BOB, limit=9)] == [b"third"]
    with_group.apply([channel(ForgetSetAside(sender_id=BOB))])
    aside = with_group.channel_state(GROUP).set_aside
    assert [entry.message_id for entry in aside] == ["c", "other"]
    assert with_group.set_aside(OTHER_GROUP, BOB, limit=9) == []


def test_of_each_member_the_claim_that_was_put_last_is_kept(with_group: ProfileStore) -> None:
    alices, bobs, bobs_next = NewestClaim(ALICE, 7), NewestClaim(BOB, 5), NewestClaim(BOB, 4)
    with_group.apply([channel(PutNewestClaims((bobs, alices)))])
    with_group.apply([channel(PutNewestClaims((bobs_next,)))])
    assert with_group.channel_state(GROUP).newest_claims == (bobs_next, alices)


# --- what leaves the log ------------------------------------------------------------------------


def said(
    lamport_timestamp: int, name: str, conversation_id: ConversationId = GROUP
) -> list[StoreWrite]:
    """An own message that failed, and another's of the same time."""
    writes = (
        logged(lamport_timestamp, name),
        logged(lamport_timestamp, f"{name} of Alice"),
        outgoing(name),
        held(name, BOB, HolderSource.CAUSAL),
        held(name, ALICE, HolderSource.BLOOM),
    )
    return [
        channel(*writes, conversation_id=conversation_id),
        row(lamport_timestamp, name, is_own=True, conversation_id=conversation_id),
        row(lamport_timestamp, f"{name} of Alice", conversation_id=conversation_id),
        delivery(name, DeliveryState.FAILED),
    ]


def left_over(store: ProfileStore, conversation_id: ConversationId = GROUP) -> object:
    """All that can be read of a conversation."""
    return (
        store.channel_state(conversation_id),
        store.summary(conversation_id),
        store.latest_page(conversation_id, limit=9),
        [store.page_before(conversation_id, at(lamport), limit=9) for lamport in range(5)],
        [store.page_after(conversation_id, at(lamport), limit=9) for lamport in range(5)],
        store.logged(conversation_id, None, limit=9),
        [
            (store.raw(conversation_id, each), store.holders(conversation_id, each))
            for each in (MessageId("a"), MessageId("a of Alice"))
        ],
    )


def remove(*names: str) -> list[StoreWrite]:
    return [channel(RemoveFromLog(message_id=MessageId(name))) for name in names]


@pytest.mark.parametrize("in_one", [True, False], ids=["one transaction", "several"])
@pytest.mark.parametrize("hidden", [False, True])
def test_what_is_removed_from_the_log_was_never_there(
    with_group: ProfileStore, hidden: bool, in_one: bool
) -> None:
    with_group.apply([PutGroup(group=group(OTHER_GROUP)), *said(1, "z"), *said(3, "b")])
    with_group.apply(said(2, "a", OTHER_GROUP)[:-1])
    before, other = left_over(with_group), left_over(with_group, OTHER_GROUP)
    hide: list[StoreWrite] = [HideMessage(conversation_id=GROUP, message_id=MessageId("a"))]
    writes = [*said(2, "a"), *(hide if hidden else []), *remove("a", "a of Alice")]
    for batch in [writes] if in_one else [[write] for write in writes]:
        with_group.apply(batch)
    assert left_over(with_group) == before
    assert left_over(with_group, OTHER_GROUP) == other
    with_group.apply(remove("a", "never there"))
    assert left_over(with_group) == before


def test_what_is_removed_with_nothing_in_between_is_gone(with_group: ProfileStore) -> None:
    before = left_over(with_group)
    gone = RemoveFromLog(message_id=MessageId("a"))
    with_group.apply([channel(logged(2, "a"), gone)])
    assert left_over(with_group) == before
    with_group.apply([channel(logged(2, "a")), row(2, "a"), channel(gone)])
    assert left_over(with_group) == before


def test_what_was_removed_may_come_again_and_is_seen(with_group: ProfileStore) -> None:
    with_group.apply(said(2, "a"))
    before = left_over(with_group)
    hide = HideMessage(conversation_id=GROUP, message_id=MessageId("a"))
    with_group.apply([hide, *remove("a", "a of Alice"), *said(2, "a")])
    assert left_over(with_group) == before
    with pytest.raises(StorageError):
        with_group.apply([*remove("a"), channel(logged(2, "a"), logged(2, "a"))])
    assert left_over(with_group) == before
    with_group.apply([*remove("a"), row(2, "a", is_own=True)])
    assert with_group.summary(GROUP).failed == 0, "it is not known to have failed this time"
    stored = with_group.message(GROUP, MessageId("a"))
    assert stored is not None
    assert (stored.delivery, stored.holders) == (None, ())


def test_removing_takes_it_out_of_every_count(with_group: ProfileStore) -> None:
    with_group.apply([*said(1, "a"), *said(2, "b"), row(1, "waits", waiting=True)])
    summary = with_group.summary(GROUP)
    assert (summary.unread, summary.failed) == (3, 2)
    with_group.apply(remove("a", "b of Alice", "waits"))
    summary = with_group.summary(GROUP)
    assert (summary.unread, summary.failed) == (1, 1)
    page = with_group.page_before(GROUP, at(2, "b"), limit=9)
    assert [stored.record.position.message_id for stored in page.messages] == ["a of Alice"]
    assert (page.older_count, page.total) == (0, 2)
    assert with_group.page_after(GROUP, at(1, "a"), limit=9).older_count == 0
