"""Files of messages: kept beside them, read without their bytes, gone when they are retracted."""

import sqlite3

from msgspec import structs

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.ids import ConversationId, DeliveryState, MessageId, ParticipantId, Position
from engine.core.ports import (
    HideMessage,
    ProfileStore,
    PutFileHolder,
    PutGroup,
    PutMessage,
    PutTransfer,
    RemoveGroup,
    SaveReadMark,
)
from engine.core.records import FileRecord, TransferRecord, TransferState
from engine.core.sds.vocabulary import RemoveFromLog
from engine.core.stored import StoredMessage
from engine.persistence import annotation_reads, file_tables, timeline_reads
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    at,
    channel,
    delivery,
    edit,
    group,
    logged,
    retraction,
    row,
)

LARGE = bytes(range(256)) * 384
M = MessageId("m")


def shown(store: ProfileStore) -> StoredMessage:
    stored = store.message(GROUP, M)
    assert stored is not None
    return stored


def test_a_file_comes_back_with_its_bytes(with_conversation: ProfileStore) -> None:
    put = row(1, "m", kind="file", text="Look", data=LARGE)
    with_conversation.apply([put, row(2, "n")])
    assert with_conversation.file_data(GROUP, M) == LARGE
    assert with_conversation.file_data(GROUP, MessageId("n")) is None
    assert with_conversation.file_data(GROUP, MessageId("unknown")) is None
    page = with_conversation.latest_page(GROUP, limit=9)
    assert [one.record for one in page.messages] == [put.message, row(2, "n").message]


def test_files_count_as_texts_do(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(n, f"m{n}", kind="file", mentions_me=n == 2) for n in (1, 2, 3)])
    store.apply([row(4, "own", kind="file", is_own=True), delivery("own", DeliveryState.FAILED)])
    summary = store.summary(GROUP)
    assert (summary.unread, summary.first_unread) == (3, at(1, "m1"))
    assert (summary.mentions, summary.first_mention) == (1, at(2, "m2"))
    assert (summary.failed, summary.waiting_to_send) == (1, 0)
    store.apply([SaveReadMark(conversation_id=GROUP, up_to=at(2, "m2"))])
    assert store.summary(GROUP).unread == 1


def test_a_quote_has_the_file_with_its_caption_or_else_its_name(
    with_conversation: ProfileStore,
) -> None:
    store = with_conversation
    store.apply([row(1, "m", kind="file", text=""), row(2, "a", reply_to="m")])
    file = shown(store).record.file
    assert file is not None

    def quoted() -> tuple[str, FileRecord | None]:
        answer = store.message(GROUP, MessageId("a"))
        assert answer is not None
        assert answer.quote is not None
        return answer.quote.text, answer.quote.file

    assert quoted() == ("m.png", file)
    store.apply([edit(3, "e", "m", "A caption")])
    assert quoted() == ("A caption", file)
    store.apply([retraction(4, "r", "m")])
    assert quoted() == ("", None)
    store.apply([row(5, "n", kind="file", text=""), row(6, "b", reply_to="n")])
    store.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("n"))])
    answer = store.message(GROUP, MessageId("b"))
    assert answer is not None
    assert answer.quote is not None
    assert (answer.quote.text, answer.quote.file) == ("", None)


def test_only_its_author_gives_it_another_caption(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([row(1, "m", kind="file", text="one"), edit(2, "e", "m", "two", sender_id=BOB)])
    assert shown(store).record.text == "one"
    store.apply([edit(3, "f", "m", "three")])
    assert (shown(store).record.text, shown(store).record.file is None) == ("three", False)
    assert [version.text for version in store.versions(GROUP, M)] == ["one", "three"]
    assert store.file_data(GROUP, M) == b"bytes"


def test_a_retraction_removes_the_bytes_whichever_comes_first(
    with_conversation: ProfileStore,
) -> None:
    store = with_conversation
    store.apply([row(1, "m", kind="file", data=LARGE), retraction(2, "r", "m", sender_id=BOB)])
    assert store.file_data(GROUP, M) == LARGE
    store.apply([retraction(3, "s", "m")])
    assert (shown(store).retracted, shown(store).record.file) == (True, None)
    assert store.file_data(GROUP, M) is None
    store.apply([retraction(3, "t", "late"), row(1, "late", kind="file", data=LARGE)])
    assert store.file_data(GROUP, MessageId("late")) is None


def test_nothing_of_a_file_is_left_in_the_tables(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    def files() -> int:
        found: tuple[int] = connection.execute("SELECT count(*) FROM file").fetchone()
        return found[0]

    store = sqlite_store
    store.apply([PutGroup(group=group()), channel(logged(2, "n"))])
    store.apply([row(n, name, kind="file", data=LARGE) for n, name in enumerate("mnop")])
    assert files() == 4
    store.apply([retraction(3, "r", "m")])
    assert files() == 3
    store.apply([channel(RemoveFromLog(message_id=MessageId("n")))])
    assert files() == 2
    store.apply([row(2, "o", kind="text")])
    assert files() == 1
    store.apply([RemoveGroup(conversation_id=GROUP)])
    while store.clear_removed():
        pass
    assert files() == 0


def test_files_are_listed_without_the_rest_the_newest_first(
    with_conversation: ProfileStore,
) -> None:
    store = with_conversation
    store.apply([row(n, f"f{n}", kind="file" if n % 2 else "text") for n in range(1, 10)])
    store.apply([row(20, "wait", kind="file", waiting=True), row(0, "own", kind="file")])
    store.apply(
        [
            retraction(30, "r", "f3"),
            HideMessage(conversation_id=GROUP, message_id=MessageId("f7")),
            blob("large", 15),
        ]
    )

    def files(before: Position | None, limit: int = 9) -> list[str]:
        found = store.with_files(GROUP, before, limit=limit)
        assert all(one.record.file is not None for one in found)
        return [one.record.position.message_id for one in found]

    assert files(None) == ["wait", "large", "f9", "f5", "f1", "own"]
    assert files(None, 2) == ["wait", "large"]
    assert files(at(15, "large")) == ["f9", "f5", "f1", "own"]
    assert files(at(15, "large"), 1) == ["f9"]
    assert files(at(0, "own")) == []
    assert store.with_files(ConversationId("unknown"), None, limit=9) == []


def blob(name: str = "m", lamport_timestamp: int = 1, *, is_own: bool = False) -> PutMessage:
    put = row(lamport_timestamp, name, kind="file", data=b"", is_own=is_own)
    file = put.message.file
    assert file is not None
    manifest = Manifest(
        key=b"k" * 32, root=ChunkName(b"r" * 32), size=10**6, thumbnail=b"\xff\xd8\xffsmall"
    )
    state = TransferState.OFFERING if put.message.is_own else TransferState.OFFERED
    transfer = TransferRecord(manifest=manifest, state=state)
    record = structs.replace(file, size=10**6, transfer=transfer)
    return structs.replace(put, message=structs.replace(put.message, file=record))


def told(store: ProfileStore) -> dict[str, tuple[str, str]]:
    return {one.message_id: (one.transfer.state, one.transfer.fault) for one in store.transfers()}


def test_a_blob_says_how_to_find_it_and_what_became_of_it(with_conversation: ProfileStore) -> None:
    store, put = with_conversation, blob()
    store.apply([put, blob("own", 2, is_own=True), row(3, "n", kind="file")])
    assert shown(store).record == put.message
    assert store.file_data(GROUP, M) == b""
    assert told(store) == {"m": ("offered", ""), "own": ("offering", "")}
    [one] = [each for each in store.transfers() if each.message_id == "m"]
    assert (one.conversation_id, one.is_own) == (GROUP, False)
    assert one.transfer.manifest == Manifest(key=b"k" * 32, root=ChunkName(b"r" * 32), size=10**6)
    failed = PutTransfer(
        conversation_id=GROUP, message_id=M, state=TransferState.FAILED, fault="not_as_said"
    )
    store.apply([failed, structs.replace(failed, message_id=MessageId("n"))])
    store.apply([structs.replace(failed, message_id=MessageId("unknown"))])
    store.apply([put])
    file = shown(store).record.file
    assert file is not None
    assert file.transfer is not None
    assert (file.transfer.state, file.transfer.fault) == ("failed", "not_as_said")
    assert told(store)["m"] == ("failed", "not_as_said")


def test_who_says_to_have_all_of_a_blob_is_remembered(with_conversation: ProfileStore) -> None:
    store = with_conversation
    holder = PutFileHolder(conversation_id=GROUP, message_id=M, participant_id=BOB)
    store.apply([holder, blob(), row(2, "n", kind="file")])

    def holders() -> tuple[ParticipantId, ...]:
        file = shown(store).record.file
        assert file is not None
        assert file.transfer is not None
        return file.transfer.holders

    assert holders() == (), "it came before the message"
    store.apply([holder, holder, structs.replace(holder, participant_id=ALICE)])
    store.apply([structs.replace(holder, message_id=MessageId("n"))])
    assert holders() == tuple(sorted((ALICE, BOB)))
    store.apply([blob()])
    assert holders() == tuple(sorted((ALICE, BOB)))
    store.apply([retraction(4, "r", "m"), holder])
    assert shown(store).record.file is None


def test_of_one_members_statements_about_a_blob_the_newest_counts(
    with_conversation: ProfileStore,
) -> None:
    store = with_conversation
    holder = PutFileHolder(conversation_id=GROUP, message_id=M, participant_id=BOB)
    gone = structs.replace(holder, held=False, as_of=5)
    again = structs.replace(holder, as_of=6)
    store.apply([blob()])
    for said, held in ((gone, ()), (holder, ()), (again, (BOB,)), (gone, (BOB,)), (holder, (BOB,)),
                       (structs.replace(again, held=False), ()), (again, ())):  # fmt: skip
        store.apply([said, said])
        file = shown(store).record.file
        assert file is not None
        assert file.transfer is not None
        assert file.transfer.holders == held


def test_a_blob_goes_with_its_message(with_conversation: ProfileStore) -> None:
    store = with_conversation
    store.apply([blob(), blob("o", 3)])
    store.apply([retraction(4, "r", "m")])
    assert told(store).keys() == {"o"}
    store.apply([HideMessage(conversation_id=GROUP, message_id=MessageId("o"))])
    assert not told(store)
    store.apply([blob("p", 5)])
    store.apply([RemoveGroup(conversation_id=GROUP)])
    assert not told(store)
    store.apply([PutTransfer(conversation_id=GROUP, message_id=M, state=TransferState.PAUSED)])


def test_a_page_does_not_read_the_bytes(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    """No statement of a page names the column, and each finds its rows by an index."""
    sqlite_store.apply([PutGroup(group=group()), row(1, "m", kind="file")])
    for sql in (timeline_reads.LATEST_ROWS, annotation_reads.QUOTES[1], file_tables.FILES[1]):
        assert "data" not in sql
    plan = connection.execute(f"EXPLAIN QUERY PLAN {file_tables.FILES[1]}", (1, "m")).fetchall()
    assert "sqlite_autoindex_file" in plan[0][3]
