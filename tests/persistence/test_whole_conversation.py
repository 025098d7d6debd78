"""A whole conversation in its order, as audits read it: the same from both stores."""

from engine.core.ids import ConversationId, MessageId, Position
from engine.core.ports import HideMessage, ProfileStore, PutContact, PutGroup
from engine.core.records import LoggedMessage
from engine.core.sds.vocabulary import ChannelState
from tests.persistence.store_examples import (
    GROUP,
    PAIR,
    at,
    channel,
    contact,
    group,
    logged,
    row,
)


def _all(store: ProfileStore, conversation_id: ConversationId, limit: int) -> list[LoggedMessage]:
    found: list[LoggedMessage] = []
    after: Position | None = None
    while page := store.logged(conversation_id, after, limit=limit):
        assert len(page) <= limit
        found += page
        after = page[-1].position
    return found


def test_of_a_group_it_is_the_log_hidden_rows_and_all(store: ProfileStore) -> None:
    store.apply([PutGroup(group=group(), initial_state=ChannelState(lamport_timestamp=0))])
    store.apply(
        [
            channel(logged(2, "b"), logged(1, "z"), logged(2, "a"), logged(7, "é")),
            *(row(lamport, name) for lamport, name in ((2, "b"), (1, "z"), (7, "é"))),
            row(3, "waits", waiting=True),
            HideMessage(conversation_id=GROUP, message_id=MessageId("b")),
        ]
    )
    found, by_ones, by_twos = (_all(store, GROUP, limit) for limit in (100, 1, 2))
    assert [one.position for one in found] == [at(1, "z"), at(2, "a"), at(2, "b"), at(7, "é")]
    assert found == by_ones == by_twos
    without_row = found[1]
    assert without_row.sent_ms == without_row.position.lamport_timestamp, "about the time"
    assert all(one.sent_ms > 7 for one in found if one is not without_row), "of rows it is known"


def test_of_a_pair_it_is_the_rows_that_have_their_place(store: ProfileStore) -> None:
    store.apply([PutContact(contact=contact())])
    store.apply(
        [
            row(9, "late", conversation_id=PAIR),
            row(3, "early", conversation_id=PAIR),
            row(4, "waits", waiting=True, conversation_id=PAIR),
            HideMessage(conversation_id=PAIR, message_id=MessageId("early")),
        ]
    )
    assert [one.position for one in _all(store, PAIR, 1)] == [at(3, "early"), at(9, "late")]
