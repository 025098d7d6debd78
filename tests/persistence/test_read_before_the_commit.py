"""What is read in a transaction, before its commit, is what is read after it.

A store may answer from what was just written.  Whatever else the transaction did to a row, and
whatever had been said of it before, must show.
"""

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.errors import StorageError
from engine.core.ids import ConversationId, DeliveryState, HolderSource, MessageId
from engine.core.ports import HideMessage, ProfileStore, PutGroup, SaveMemberMuted, StoreWrite
from engine.core.sds.vocabulary import RemoveFromLog
from engine.core.stored import StoredMessage
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    OTHER_GROUP,
    annotation,
    channel,
    delivery,
    group,
    held,
    logged,
    row,
)

NAMES = [f"m{number}" for number in range(6)]
CONVERSATIONS = (GROUP, OTHER_GROUP)

names = st.sampled_from(NAMES)
conversations = st.sampled_from(CONVERSATIONS)
senders = st.sampled_from([ALICE, BOB, ME])
writes: st.SearchStrategy[StoreWrite] = st.one_of(
    st.builds(
        row,
        st.integers(0, 6),
        names,
        is_own=st.booleans(),
        kind=st.sampled_from(["text", "text", "text", "file", "joined"]),
        waiting=st.booleans(),
        data=st.binary(min_size=1, max_size=3),
        conversation_id=conversations,
        sender_id=senders,
        reply_to=st.none() | names,
        mentions_me=st.booleans(),
    ),
    st.builds(
        annotation,
        st.integers(0, 6),
        names,
        names,
        kind=st.sampled_from(["reaction", "edit", "retraction"]),
        sender_id=senders,
        emoji=st.sampled_from(["👍", "🎉"]),
        conversation_id=conversations,
    ),
    st.builds(delivery, names, st.sampled_from(DeliveryState)),
    st.builds(
        lambda name, who, source: channel(held(name, who, source)),
        names,
        senders,
        st.sampled_from(HolderSource),
    ),
    st.builds(HideMessage, conversation_id=conversations, message_id=names.map(MessageId)),
    st.builds(
        SaveMemberMuted,
        conversation_id=conversations,
        participant_id=senders,
        muted=st.booleans(),
    ),
    st.builds(
        lambda lamport, name, where: channel(logged(lamport, name), conversation_id=where),
        st.integers(0, 6),
        names,
        conversations,
    ),
    st.builds(
        lambda name, where: channel(
            RemoveFromLog(message_id=MessageId(name)), conversation_id=where
        ),
        names,
        conversations,
    ),
)


def every_row(store: ProfileStore) -> dict[ConversationId, dict[MessageId, StoredMessage]]:
    asked = [MessageId(name) for name in NAMES]
    return {each: dict(store.messages(each, asked)) for each in CONVERSATIONS}


@example([[row(1, "m0", sender_id=ALICE), row(1, "m0", sender_id=ALICE, is_own=True)]])
@example([[row(1, "m0"), annotation(2, "m1", "m0", kind="edit", sender_id=ALICE)]])
@example([[annotation(2, "m1", "m0", kind="reaction")], [row(1, "m0")]])
@example([[row(1, "m0"), HideMessage(conversation_id=GROUP, message_id=MessageId("m0"))]])
@example(
    [
        [SaveMemberMuted(conversation_id=GROUP, participant_id=ALICE, muted=True)],
        [row(1, "m0", sender_id=ALICE)],
    ]
)
@given(batches=st.lists(st.lists(writes, min_size=1, max_size=12), min_size=1, max_size=4))
@settings(deadline=None)
def test_before_the_commit_rows_are_read_as_they_are_after_it(
    batches: list[list[StoreWrite]],
) -> None:
    store = SqliteProfileStore.in_memory()
    store.apply([PutGroup(group=group()), PutGroup(group=group(OTHER_GROUP))])
    for batch in batches:
        before: list[object] = []
        with suppress(StorageError):  # What contradicts what is there is refused as a whole.
            store.apply(batch, lambda: before.append(every_row(store)))  # noqa: B023
            assert before == [every_row(store)]
    store.close()
