"""What a Store brought comes by the hundred: many rows in one transaction, read again together."""

import pytest

from engine.core.errors import StorageError
from engine.core.ids import ConversationId, MessageId, WakuHash
from engine.core.ports import HideMessage, ProfileStore, PutGroup, StoreWrite
from engine.core.sds.vocabulary import SaveRetrievalHint
from engine.persistence import ordinals
from tests.persistence.store_examples import GROUP, OTHER_GROUP, at, channel, group, logged, row

COUNT = 6 * 32 + 5
"""More than one statement takes, and not a multiple."""


@pytest.fixture
def with_group(store: ProfileStore) -> ProfileStore:
    store.apply([PutGroup(group=group()), PutGroup(group=group(OTHER_GROUP))])
    return store


def arrivals(first: int, count: int) -> list[StoreWrite]:
    writes: list[StoreWrite] = []
    for number in range(first, first + count):
        writes += (channel(logged(number, f"m{number}")), row(number, f"m{number}"))
    return writes


def ids_of(store: ProfileStore) -> list[str]:
    page = store.latest_page(GROUP, limit=1_000)
    return [one.record.position.message_id for one in page.messages]


def test_many_come_back_together_and_only_those_that_are_there(with_group: ProfileStore) -> None:
    with_group.apply(arrivals(1, COUNT))
    with_group.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("m7"))])
    asked = [MessageId(f"m{number}") for number in range(COUNT + 3)]
    found = with_group.messages(GROUP, asked)
    assert set(found) == {f"m{number}" for number in range(1, COUNT + 1)} - {"m7"}
    assert all(found[each] == with_group.message(GROUP, each) for each in found)
    assert with_group.messages(OTHER_GROUP, asked) == {}
    assert with_group.messages(GROUP, ()) == {}


def test_a_row_that_is_put_twice_in_one_transaction_is_counted_once(
    with_group: ProfileStore,
) -> None:
    with_group.apply(
        [row(9, "a", waiting=True), row(4, "b"), row(9, "a"), row(5, "b"), *arrivals(1, 3)]
    )
    page = with_group.latest_page(GROUP, limit=10)
    assert [one.record.position for one in page.messages] == [
        at(1, "m1"), at(2, "m2"), at(3, "m3"), at(5, "b"), at(9, "a"),
    ]  # fmt: skip
    assert page.total == 5
    assert with_group.summary(GROUP).unread == 5
    assert with_group.page_before(GROUP, at(9, "a"), limit=1).older_count == 3


def test_what_another_write_looks_at_is_there_by_then(with_group: ProfileStore) -> None:
    hint = WakuHash(bytes(32))
    with_group.apply(
        [
            *arrivals(1, 3),
            HideMessage(conversation_id=GROUP, message_id=MessageId("m2")),
            channel(
                logged(4, "m4"),
                SaveRetrievalHint(message_id=MessageId("m4"), retrieval_hint=hint),
            ),
        ]
    )
    assert ids_of(with_group) == ["m1", "m3"]
    assert with_group.channel_state(GROUP).log[-1].retrieval_hint == hint


def test_two_conversations_in_one_transaction_stay_apart(with_group: ProfileStore) -> None:
    other = channel(logged(1, "m1"), conversation_id=OTHER_GROUP)
    with_group.apply([*arrivals(1, 2), other, *arrivals(3, 2)])
    assert len(with_group.channel_state(GROUP).log) == 4
    assert len(with_group.channel_state(OTHER_GROUP).log) == 1
    assert with_group.raw(OTHER_GROUP, MessageId("m1")) == b"raw"


def test_a_transaction_that_fails_leaves_nothing_for_the_next(with_group: ProfileStore) -> None:
    with_group.apply(arrivals(1, 1))
    unknown = channel(logged(8, "m8"), conversation_id=ConversationId("U" * 43))
    with pytest.raises(StorageError):
        with_group.apply([*arrivals(5, 2), unknown])
    with_group.apply(arrivals(2, 1))
    assert ids_of(with_group) == ["m1", "m2"]
    assert len(with_group.channel_state(GROUP).log) == 2


@pytest.mark.parametrize("size", [1, 7, 40])
def test_ordinals_are_exact_however_much_comes_at_once(
    with_group: ProfileStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(ordinals, "BLOCK_ROWS", 4)
    numbers = [*range(100, 140), *range(1, 41), *range(60, 100, 2), *range(61, 101, 2)]
    for first in range(0, len(numbers), size):
        with_group.apply([row(each, f"m{each}") for each in numbers[first : first + size]])
    page = with_group.latest_page(GROUP, limit=1_000)
    for place, one in enumerate(page.messages):
        before = with_group.page_before(GROUP, one.record.position, limit=1_000)
        assert before.older_count + len(before.messages) == place
