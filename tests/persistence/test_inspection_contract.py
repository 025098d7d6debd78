"""What a store says of one message: found by id and place, and nothing of any other."""

import pytest

from engine.core.ids import ConversationId, MessageId, Position
from engine.core.inspection import LoggedRaw, WaitingMessage
from engine.core.ports import ProfileStore
from engine.core.sds.vocabulary import AppendToLog, LogEntry, PutIncoming, PutMissing
from engine.persistence.raw_blocks import BLOCK_ROWS
from tests.persistence.store_examples import ALICE, BOB, GROUP, OTHER_GROUP, channel, outgoing
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
        WaitingMessage(each.message.message_id, each.message.sender_id, each.message.causal_history)
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
