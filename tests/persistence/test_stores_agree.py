"""Random batches of writes leave the memory store and SQLite telling the same story.

Blocks are made tiny here, so that a few dozen rows split them as a million would.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine.core.errors import StorageError
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutGroup,
    RemoveGroup,
    SaveReadMark,
    StoreWrite,
)
from engine.core.sds.types import (
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    SaveClock,
    SaveRetrievalHint,
    Write,
)
from engine.core.types import (
    ConversationId,
    DeliveryState,
    HolderSource,
    MessageId,
    Position,
    UnixMs,
)
from engine.persistence import ordinals
from engine.persistence.memory_store import MemoryProfileStore
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    ME,
    OTHER_GROUP,
    at,
    channel,
    delivery,
    group,
    held,
    logged,
    member,
    outgoing,
    row,
)

NAMES = [f"{letter}{number}" for letter in ("A", "a", "é") for number in range(8)]

conversations = st.sampled_from([GROUP, GROUP, GROUP, OTHER_GROUP])
names = st.sampled_from(NAMES)
message_ids = names.map(MessageId)
lamports = st.integers(0, 6)
positions = st.builds(at, lamports, names)
participants = st.sampled_from([ME, ALICE, BOB])

channel_writes: st.SearchStrategy[Write] = st.one_of(
    st.builds(SaveClock, lamport_timestamp=st.integers(0, 2**53 - 1)),
    st.builds(logged, lamports, names, st.binary(max_size=3)),
    st.builds(SaveRetrievalHint, message_id=message_ids, retrieval_hint=st.binary(max_size=3)),
    st.builds(outgoing, names, attempts=st.integers(0, 3)),
    st.builds(RemoveOutgoing, message_id=message_ids),
    st.builds(RemoveIncoming, message_id=message_ids),
    st.builds(RemoveMissing, message_id=message_ids),
    st.builds(
        held,
        names,
        participants,
        st.sampled_from(HolderSource),
        st.integers(0, 9),
        st.none() | st.floats(0, 1),
    ),
)
rows = st.builds(
    row,
    lamports,
    names,
    is_own=st.booleans(),
    kind=st.sampled_from(["text", "text", "joined"]),
    waiting=st.booleans(),
    conversation_id=conversations,
)
writes: st.SearchStrategy[StoreWrite] = st.one_of(
    rows,
    rows,
    st.builds(
        lambda several, conversation_id: channel(*several, conversation_id=conversation_id),
        st.lists(channel_writes, max_size=3),
        conversations,
    ),
    st.builds(HideMessage, conversation_id=conversations, message_id=message_ids),
    st.builds(SaveReadMark, conversation_id=conversations, up_to=positions),
    st.builds(delivery, names, st.sampled_from(DeliveryState)),
    st.builds(member, participants, left_ms=st.sampled_from([None, UnixMs(1)])),
)
rare_writes: st.SearchStrategy[StoreWrite] = st.one_of(
    st.builds(PutGroup, group=st.builds(group, conversations, names)),
    st.builds(RemoveGroup, conversation_id=conversations),
)


def story(
    store: ProfileStore, conversation_id: ConversationId, position: Position, limit: int
) -> object:
    """All that can be read of a conversation."""
    by_message = [
        (
            store.raw(conversation_id, MessageId(name)),
            store.message(conversation_id, MessageId(name)),
            store.holders(conversation_id, MessageId(name)),
        )
        for name in (position.message_id, NAMES[0])
    ]
    return (
        store.groups(),
        store.members(conversation_id),
        store.channel_state(conversation_id),
        store.summary(conversation_id),
        store.latest_page(conversation_id, limit=limit),
        store.page_before(conversation_id, position, limit=limit),
        store.page_after(conversation_id, position, limit=limit),
        by_message,
    )


def refused(store: ProfileStore, batch: Sequence[StoreWrite]) -> bool:
    try:
        store.apply(batch)
    except StorageError:
        return True
    return False


class StoresAgree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "causerie.db"
        self.memory = MemoryProfileStore()
        self.sqlite = SqliteProfileStore.open(self.path, bytes(32))
        self.apply_everywhere([PutGroup(group=group()), PutGroup(group=group(OTHER_GROUP))])

    def apply_everywhere(self, batch: Sequence[StoreWrite]) -> None:
        assert refused(self.memory, batch) == refused(self.sqlite, batch)

    @rule(batch=st.lists(writes, min_size=1, max_size=30))
    def write(self, batch: list[StoreWrite]) -> None:
        self.apply_everywhere(batch)

    @rule(batch=st.lists(rows, min_size=10, max_size=30, unique_by=lambda r: r.message.position))
    def fill(self, batch: list[StoreWrite]) -> None:
        self.apply_everywhere(batch)

    @rule(batch=st.lists(st.one_of(rare_writes, writes), min_size=1, max_size=4))
    def write_rarely(self, batch: list[StoreWrite]) -> None:
        self.apply_everywhere(batch)

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = SqliteProfileStore.open(self.path, bytes(32))

    @rule(conversation_id=conversations, position=positions, limit=st.integers(1, 30))
    def read(self, conversation_id: ConversationId, position: Position, limit: int) -> None:
        known = {g.conversation_id for g in self.memory.groups()}
        if conversation_id in known:
            assert story(self.memory, conversation_id, position, limit) == story(
                self.sqlite, conversation_id, position, limit
            )

    @invariant()
    def counts_agree(self) -> None:
        for conversation_id in (GROUP, OTHER_GROUP):
            assert self.memory.summary(conversation_id) == self.sqlite.summary(conversation_id)
            for page in range(2):
                position = at(3, NAMES[8 * page])
                assert self.memory.page_after(
                    conversation_id, position, limit=3
                ) == self.sqlite.page_after(conversation_id, position, limit=3)

    def teardown(self) -> None:
        self.sqlite.close()
        self.directory.cleanup()


def test_the_stores_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordinals, "BLOCK_ROWS", 4)
    run_state_machine_as_test(
        StoresAgree, settings=settings(max_examples=60, stateful_step_count=25, deadline=None)
    )
