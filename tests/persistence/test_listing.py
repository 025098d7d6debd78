"""What a start reads of all conversations at once is what each of them says alone."""

from collections.abc import Sequence

import pytest

from engine.core.ids import ConversationId, DeliveryState, MessageId
from engine.core.ports import (
    ProfileStore,
    PutContact,
    PutDelivery,
    PutGroup,
    PutOpenChannel,
    RemoveGroup,
    SaveMemberMuted,
    SaveReadMark,
    StoreWrite,
)
from engine.core.records import DeliveryRecord
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    OPEN,
    PAIR,
    annotation,
    at,
    contact,
    group,
    member,
    open_channel,
    row,
)

COUNT = 2 * 32 + 5
"""More than one statement takes, and not a multiple."""
IDS = [ConversationId(f"{number:02}".ljust(43, "G")) for number in range(COUNT)]


def nothing_said(_group: ConversationId) -> Sequence[StoreWrite]:
    return ()


def some_unread(each: ConversationId) -> Sequence[StoreWrite]:
    return [
        *(row(number, f"m{number}", conversation_id=each) for number in range(4)),
        row(9, "later", conversation_id=each, waiting=True, mentions_me=True),
        SaveReadMark(conversation_id=each, up_to=at(1, "m1")),
    ]


def mention_beside_the_mark(each: ConversationId) -> Sequence[StoreWrite]:
    """Before it and after it, with its Lamport timestamp."""
    return [
        row(5, "a", conversation_id=each, mentions_me=True),
        row(5, "b", conversation_id=each),
        row(5, "c", conversation_id=each, mentions_me=True),
        SaveReadMark(conversation_id=each, up_to=at(5, "b")),
    ]


def all_read(each: ConversationId) -> Sequence[StoreWrite]:
    return [
        row(5, "a", conversation_id=each, mentions_me=True),
        row(5, "b", conversation_id=each, kind="file"),
        SaveReadMark(conversation_id=each, up_to=at(5, "b")),
    ]


def some_not_sent(each: ConversationId) -> Sequence[StoreWrite]:
    said = (
        ("text", DeliveryState.SAVED),
        ("text", DeliveryState.FAILED),
        ("file", DeliveryState.SAVED),
        ("joined", DeliveryState.SAVED),
        ("text", DeliveryState.HELD),
    )
    writes: list[StoreWrite] = []
    for number, (kind, state) in enumerate(said):
        message_id = MessageId(f"m{number}")
        writes += (
            row(number, message_id, conversation_id=each, is_own=True, kind=kind),
            PutDelivery(
                conversation_id=each, message_id=message_id, delivery=DeliveryRecord(state=state)
            ),
        )
    return writes


def reaction_after_the_newest(each: ConversationId) -> Sequence[StoreWrite]:
    return [
        row(1, "a", conversation_id=each),
        row(5, "b", conversation_id=each, reply_to="a"),
        annotation(5, "c", "a", conversation_id=each, sender_id=BOB, emoji="🎉"),
    ]


def edit_after_the_newest(each: ConversationId) -> Sequence[StoreWrite]:
    return [
        row(1, "a", conversation_id=each),
        row(5, "b", conversation_id=each),
        annotation(3, "before", "a", conversation_id=each, sender_id=BOB),
        annotation(9, "e", "a", kind="edit", conversation_id=each, mentions_me=True),
    ]


def one_of_two_muted(each: ConversationId) -> Sequence[StoreWrite]:
    return [
        SaveMemberMuted(conversation_id=each, participant_id=ALICE, muted=True),
        row(1, "a", conversation_id=each, sender_id=BOB),
        row(2, "b", conversation_id=each, sender_id=ALICE),
    ]


STORIES = (
    nothing_said,
    some_unread,
    mention_beside_the_mark,
    all_read,
    some_not_sent,
    reaction_after_the_newest,
    edit_after_the_newest,
    one_of_two_muted,
)


def fill(store: ProfileStore) -> None:
    for number, each in enumerate(IDS):
        store.apply([PutGroup(group=group(each))])
        store.apply(STORIES[number % len(STORIES)](each))
    store.apply(
        [
            PutGroup(group=group()), member(BOB), member(ALICE), row(1, "m"),
            PutContact(contact=contact(PAIR)), row(1, "m", conversation_id=PAIR, sender_id=BOB),
            PutOpenChannel(channel=open_channel()), row(7, "m", conversation_id=OPEN),
        ]
    )  # fmt: skip
    store.apply([RemoveGroup(conversation_id=IDS[1])])


@pytest.fixture
def both() -> tuple[ProfileStore, ProfileStore]:
    kept, model = SqliteProfileStore.in_memory(), MemoryProfileStore()
    fill(kept)
    fill(model)
    return kept, model


def test_many_are_read_as_the_model_has_them(both: tuple[ProfileStore, ProfileStore]) -> None:
    kept, model = both
    asked = [*IDS, GROUP, PAIR, OPEN]
    found = kept.listed(asked)
    assert list(found) == asked
    assert found == model.listed(asked)
    assert [each.participant_id for each in found[GROUP].members] == [BOB, ALICE]
    assert found[IDS[7]].muted == {ALICE}
    assert found[IDS[2]].summary.mentions == 1


def test_each_says_the_same_alone(both: tuple[ProfileStore, ProfileStore]) -> None:
    kept, _ = both
    asked = [*IDS, GROUP, PAIR, OPEN]
    assert {each: kept.summary(each) for each in asked} == {
        each: listed.summary for each, listed in kept.listed(asked).items()
    }
    assert all(kept.listed([each]) == {each: kept.listed(asked)[each]} for each in asked[:9])


def test_of_none_nothing_is_read(store: ProfileStore) -> None:
    assert store.listed(()) == {}
    assert store.listed((GROUP,))[GROUP].summary.last_message is None
