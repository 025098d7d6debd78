"""What a store says of one message: found by id and place, and nothing of any other."""

import pytest
from msgspec.structs import replace

from engine.core.ids import (
    ConversationId,
    DeliveryState,
    HolderSource,
    MessageId,
    Position,
    UnixMs,
)
from engine.core.inspection import LoggedRaw, WaitingMessage
from engine.core.ports import HideMessage, ProfileStore, StoreWrite
from engine.core.sds.vocabulary import (
    AppendToLog,
    HistoryEntry,
    LogEntry,
    MissingEntry,
    PutIncoming,
    PutMissing,
)
from engine.persistence.raw_blocks import BLOCK_ROWS
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    NOW,
    OTHER_GROUP,
    at,
    channel,
    delivery,
    held,
    logged,
    outgoing,
    row,
)
from tests.persistence.test_channel_contract import BARE, LOST, WAITING, WANTED


def appended(number: int) -> AppendToLog:
    position = Position(lamport_timestamp=number, message_id=MessageId(f"m-{number:03}"))
    sender = ALICE if number % 2 else BOB
    return AppendToLog(LogEntry(position=position, sender_id=sender, size=9), b"raw %d" % number)


def test_each_is_found_by_its_id_among_others(with_group: ProfileStore) -> None:
    store, put = with_group, outgoing("own")
    store.apply([channel(PutIncoming(entry=WAITING), PutIncoming(entry=BARE))])
    store.apply([channel(PutMissing(entry=WANTED), PutMissing(entry=LOST), put, appended(7))])
    inspecting = store.inspecting
    assert inspecting.incoming(GROUP, MessageId("in-1")) == WAITING
    assert inspecting.incoming(GROUP, MessageId("in-2")) == BARE
    ids = [each.entry.message_id for each in (WANTED, LOST)]
    assert inspecting.waiting(GROUP, limit=9) == [
        WaitingMessage(
            each.message.message_id,
            each.message.sender_id,
            each.message.causal_history,
            each.message.lamport_timestamp,
            each.received_ms,
        )
        for each in (WAITING, BARE)
    ]
    assert len(inspecting.waiting(GROUP, limit=1)) == 1
    assert inspecting.missing(GROUP, [*ids, MessageId("other")]) == dict(
        zip(ids, (WANTED, LOST), strict=True)
    )
    assert inspecting.outgoing(GROUP, put.entry.message_id) == put.entry
    assert inspecting.log_entry(GROUP, MessageId("m-007")) == appended(7).entry


@pytest.mark.parametrize("conversation_id", [GROUP, OTHER_GROUP])
def test_nothing_is_known_of_what_is_not_here(
    with_group: ProfileStore, conversation_id: ConversationId
) -> None:
    inspecting, unknown = with_group.inspecting, MessageId("unknown")
    assert inspecting.log_entry(conversation_id, unknown) is None
    assert inspecting.incoming(conversation_id, unknown) is None
    assert inspecting.outgoing(conversation_id, unknown) is None
    assert not inspecting.waiting(conversation_id, limit=9)
    assert not inspecting.missing(conversation_id, [unknown])
    assert not inspecting.following(conversation_id, Position(0, unknown), limit=9)


def test_those_that_follow_come_in_order_with_their_bytes(with_group: ProfileStore) -> None:
    """Old ones lie packed together, new ones do not, and the last page is short."""
    numbers = range(1, 2 * BLOCK_ROWS + 9)
    for number in numbers:
        with_group.apply([channel(appended(number))])
    for after, limit in ((0, 3), (BLOCK_ROWS - 4, 9), (2 * BLOCK_ROWS - 4, 9), (numbers[-3], 9)):
        position = Position(after, MessageId("z"))
        found = with_group.inspecting.following(GROUP, position, limit=limit)
        wanted = [appended(number) for number in numbers if number > after][:limit]
        assert found == [
            LoggedRaw(each.entry.position, each.entry.sender_id, each.raw) for each in wanted
        ]


def test_a_page_of_the_log_says_what_its_rows_say(with_group: ProfileStore) -> None:
    mine = logged(3, "mine")
    writes: list[StoreWrite] = [
        channel(logged(1, "unshown"), logged(2, "theirs"), mine, logged(3, "other")),
        row(2, "theirs", sender_id=BOB),
        row(3, "mine", is_own=True),
        row(3, "other"),
        HideMessage(conversation_id=GROUP, message_id=MessageId("other")),
        delivery("mine", DeliveryState.SAVED),
        delivery("theirs", DeliveryState.SENT),  # Not ours: means nothing.
    ]
    with_group.apply(writes)
    page = with_group.inspecting.placed(GROUP, None, limit=9)
    assert [(each.position, each.row_sender_id, each.is_shown, each.delivery) for each in page] == [
        (at(1, "unshown"), None, False, None),
        (at(2, "theirs"), BOB, True, None),
        (at(3, "mine"), ME, True, "saved"),
        (at(3, "other"), None, False, None),
    ]
    assert [each.received_ms is None for each in page] == [True, False, False, False]
    assert with_group.inspecting.placed(GROUP, at(3, "mine"), limit=1) == [page[1]]
    assert not with_group.inspecting.placed(GROUP, at(1, "unshown"), limit=9)
    assert not with_group.inspecting.placed(OTHER_GROUP, None, limit=9)


def test_when_a_message_came_is_kept_until_it_has_its_place(with_group: ProfileStore) -> None:
    came_ms, ids = UnixMs(NOW - 4_000), [MessageId("waited"), MessageId("at_once")]
    with_group.apply(
        [
            channel(logged(1, "waited"), logged(2, "at_once")),
            row(1, "waited", came_ms=came_ms, waiting=True),
            row(2, "at_once"),
        ]
    )
    with_group.apply([row(1, "waited", came_ms=came_ms)])
    assert with_group.inspecting.came_ms(GROUP, ids) == {ids[0]: came_ms}
    assert with_group.inspecting.came_ms(OTHER_GROUP, ids) == {}
    page = with_group.inspecting.placed(GROUP, None, limit=9)
    assert [(each.came_ms, each.received_ms) for each in page] == [(came_ms, NOW), (None, NOW)]
    with_group.apply([row(1, "waited")])  # It came anew, and did not have to wait.
    assert with_group.inspecting.came_ms(GROUP, ids) == {}


def test_bytes_and_holders_of_many_are_found_at_once(with_group: ProfileStore) -> None:
    numbers = [*range(1, BLOCK_ROWS + 40)]
    with_group.apply([channel(*map(appended, numbers))])
    named = [appended(number).entry.position.message_id for number in numbers]
    put = held(named[3], BOB, HolderSource.CAUSAL)
    with_group.apply([channel(put, held(named[50], ALICE, HolderSource.BLOOM))])
    inspecting = with_group.inspecting
    asked = [*named[2:60], MessageId("unknown")]
    assert inspecting.raws(GROUP, asked) == {
        name: appended(number).raw
        for number, name in zip(numbers, named, strict=True)
        if name in asked
    }
    holders = inspecting.holders_of(GROUP, asked)
    assert holders.keys() == {named[3], named[50]}
    assert holders[named[3]] == [put.entry]
    assert not inspecting.raws(OTHER_GROUP, asked)
    assert not inspecting.holders_of(OTHER_GROUP, asked)


def test_what_is_missing_in_a_part_of_the_log_is_found_by_place(with_group: ProfileStore) -> None:
    def missing(number: int, before: Position | None) -> MissingEntry:
        entry = HistoryEntry(MessageId(f"gone-{number}"))
        return replace(WANTED, entry=entry, before=before)

    placed = [missing(number, at(number, "x")) for number in (5, 2, 9)]
    unplaced = missing(0, None)
    entries = [*placed, unplaced]
    with_group.apply([channel(*(PutMissing(entry=entry) for entry in entries))])
    find = with_group.inspecting.missing_between
    assert find(GROUP, None, None, limit=9) == entries
    assert find(GROUP, at(5, "x"), None, limit=9) == [placed[0], placed[2], unplaced]
    assert find(GROUP, None, at(5, "x"), limit=9) == [placed[1]]
    assert find(GROUP, at(2, "x"), at(9, "x"), limit=1) == [placed[0]]
    assert not find(OTHER_GROUP, None, None, limit=9)
