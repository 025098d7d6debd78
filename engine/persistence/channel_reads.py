"""Reads an SDS channel back: the exact ``ChannelState`` that its writes left behind.

The log ascends by (Lamport timestamp, message id by byte).  The buffers keep the order in which
entries were first put, like those of the state machine.  Counterpart of ``channel_tables``.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.inspection import LoggedRaw, WaitingMessage
from engine.core.records import KeptAside
from engine.core.sds.floods import SetAside, Spent
from engine.core.sds.forks import Fork
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import (
    ChannelState,
    HistoryEntry,
    HolderEntry,
    IncomingEntry,
    LogEntry,
    Message,
    MissingEntry,
    MissingState,
    NewestClaim,
    OutgoingEntry,
    OutgoingState,
    Replacement,
    StoresSaid,
)
from engine.persistence.channel_tables import RAW_KEY
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.raw_blocks import read_raw_of_key, read_raws
from engine.persistence.saved_log import read_rows
from engine.persistence.stored_ids import (
    StoredId,
    message_id_of,
    position_of,
    stored_id,
    stored_place,
)

HolderRow: TypeAlias = tuple[StoredId, str, str, int, float | None]
_IncomingRow: TypeAlias = tuple[
    str, str, str, int | None, str, bytes | None, str, bytes | None, bytes, bytes | None,
    int | None, MessageId | None, MessageId | None, bytes | None, int, int,
]  # fmt: skip

MissingRow: TypeAlias = tuple[
    MessageId, bytes | None, ParticipantId | None, str, UnixMs, int, UnixMs, int, int | None,
    MessageId, UnixMs | None, int, str, int,
]  # fmt: skip
_LogRow: TypeAlias = tuple[int, str, bytes | None, bytes | None, int | None, MessageId | None, int]

# Held by all = by all current members but one, the author.  Without members, nothing is left out.
_OPEN_HOLDERS: Final = """
WITH
  current_member (participant_id) AS MATERIALIZED (
    SELECT participant_id FROM member WHERE conversation_key = :conversation AND left_ms IS NULL
  ),
  counting (participant_key) AS MATERIALIZED (
    SELECT participant_key FROM participant
    WHERE conversation_key = :conversation AND participant_id IN current_member
  ),
  held AS MATERIALIZED ({held}),
  settled (message_id) AS MATERIALIZED (
    SELECT message_id FROM held WHERE source <> 'bloom' AND participant_key IN counting
    GROUP BY message_id
    HAVING count(*) >= (SELECT count(*) FROM current_member) - 1
  )
SELECT message_id, participant_id, source, since_ms, false_probability
FROM held JOIN participant USING (participant_key)
WHERE message_id NOT IN settled
ORDER BY place
"""
_ALL_OPEN: Final = _OPEN_HOLDERS.format(
    held="SELECT * FROM holder WHERE conversation_key = :conversation"
)
# By message id, as the table of holders is clustered: each of its pages is decrypted once at most.
_OPEN_SINCE: Final = _OPEN_HOLDERS.format(
    held="""
    WITH recent (message_id) AS MATERIALIZED (
      SELECT message_id FROM log_entry
      WHERE conversation_key = :conversation AND lamport_timestamp >= :since ORDER BY message_id
    )
    SELECT holder.* FROM recent CROSS JOIN holder USING (message_id)
    WHERE holder.conversation_key = :conversation
    """
)
_HOLDERS_OF: Final = with_ids(
    """
SELECT message_id, participant_id, source, since_ms, false_probability
FROM holder CROSS JOIN participant USING (participant_key)
WHERE holder.conversation_key = ? AND message_id IN
    """,
    order="ORDER BY place",
)

_OUTGOING: Final = """
SELECT message_id, raw, state, attempts, next_send_ms, accepted, created_ms
FROM outgoing WHERE conversation_key = ? {one} ORDER BY outgoing_key
"""
_INCOMING: Final = """
SELECT message_id, sender_id, channel_id, lamport_timestamp, causal_history, bloom_filter,
  repair_request, content, raw, instance_id, sequence, previous_id, replaces, retrieval_hint,
  received_ms, shown
FROM incoming WHERE conversation_key = ? {one} ORDER BY incoming_key
"""
MISSING_COLUMNS: Final = """
SELECT message_id, retrieval_hint, sender_id, state, since_ms, online_ms, request_at_ms, requests,
  before_lamport, before_message_id, stores_ms, stores_lacked, stores_silent, stores_kept_back
FROM missing WHERE conversation_key = ?
"""
_MISSING: Final = f"{MISSING_COLUMNS} {{one}} ORDER BY missing_key"
_LOG_ENTRY: Final = """
SELECT lamport_timestamp, participant_id, retrieval_hint, instance_id, sequence, previous_id, size
FROM log_entry AS l CROSS JOIN participant ON participant_key = sender_key
LEFT JOIN instance USING (instance_key)
WHERE l.conversation_key = ? AND message_id = ?
"""
_FOLLOWING: Final = """
SELECT lamport_timestamp, message_id, participant_id, raw_key
FROM log_entry AS l CROSS JOIN participant ON participant_key = sender_key
WHERE l.conversation_key = ? AND (lamport_timestamp, message_id) > (?, ?)
ORDER BY lamport_timestamp, message_id LIMIT ?
"""


def read_channel_state(
    connection: sqlite3.Connection,
    conversation: int,
    log: LogTable | None = None,
    held_since: int | None = None,
) -> ChannelState:
    """``log``: the whole log, if ``read_log`` has read it already; ``held_since``: see the port."""
    if log is None:
        read_rows(connection, conversation, log := LogTable(), limit=-1)
    clock: tuple[int, UnixMs | None] = connection.execute(
        "SELECT lamport_timestamp, store_queried_ms FROM channel WHERE conversation_key = ?",
        (conversation,),
    ).fetchone()
    return ChannelState(
        lamport_timestamp=clock[0],
        log=log,
        outgoing=read_outgoing(connection, conversation),
        incoming=read_incoming(connection, conversation),
        missing=read_missing(connection, conversation),
        holders=tuple(
            _holder_of_row(row)
            for row in connection.execute(
                _ALL_OPEN if held_since is None else _OPEN_SINCE,
                {"conversation": conversation, "since": held_since},
            )
        ),
        store_queried_ms=clock[1],
        replaced=_read_replaced(connection, conversation),
        forks=_read_forks(connection, conversation),
        set_aside=_read_set_aside(connection, conversation),
        spent=_read_spent(connection, conversation),
        newest_claims=_read_newest_claims(connection, conversation),
    )


def read_raw(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> bytes | None:
    row: tuple[int] | None = connection.execute(
        RAW_KEY, (conversation, stored_id(message_id))
    ).fetchone()
    return read_raw_of_key(connection, conversation, row[0]) if row else None


def read_log_entry(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> LogEntry | None:
    row: _LogRow | None = connection.execute(
        _LOG_ENTRY, (conversation, stored_id(message_id))
    ).fetchone()
    if row is None:
        return None
    lamport, sender_id, hint, instance_id, sequence, previous_id, size = row
    return LogEntry(
        position=Position(lamport_timestamp=lamport, message_id=message_id),
        sender_id=ParticipantId(sender_id),
        retrieval_hint=hint,
        author=_author(instance_id, sequence),
        previous_id=previous_id,
        size=size,
    )


def read_following(
    connection: sqlite3.Connection, conversation: int, after: Position, limit: int
) -> list[LoggedRaw]:
    """The next messages of the log, with their bytes."""
    rows: list[tuple[int, StoredId, str, int]] = connection.execute(
        _FOLLOWING, (conversation, *stored_place(after), limit)
    ).fetchall()
    raws = read_raws(connection, conversation, [key for *_, key in rows])
    return [
        LoggedRaw(position_of(lamport, stored), ParticipantId(sender_id), raws[key])
        for lamport, stored, sender_id, key in rows
    ]


def read_kept_aside(
    connection: sqlite3.Connection, conversation: int, sender_id: ParticipantId, limit: int
) -> list[KeptAside]:
    cursor = connection.execute(
        "SELECT raw, retrieval_hint FROM set_aside "
        "WHERE conversation_key = ? AND sender_id = ? AND length(raw) > 0 "
        "ORDER BY lamport_timestamp, message_id LIMIT ?",
        (conversation, sender_id, limit),
    )
    return [KeptAside(raw, hint) for raw, hint in cursor]


def read_holders(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[StoredId]
) -> dict[StoredId, list[HolderEntry]]:
    """The holders of each message that has any, in the order in which they were put."""
    found: dict[StoredId, list[HolderEntry]] = {}
    for asked in by_the_dozen(message_ids):
        rows: list[HolderRow] = connection.execute(
            _HOLDERS_OF[len(asked)], (conversation, *asked)
        ).fetchall()
        for row in rows:
            found.setdefault(row[0], []).append(_holder_of_row(row))
    return found


def _holder_of_row(row: HolderRow) -> HolderEntry:
    stored, participant_id, source, since_ms, false_probability = row
    return HolderEntry(
        message_id=message_id_of(stored),
        participant_id=ParticipantId(participant_id),
        source=HolderSource(source),
        since_ms=UnixMs(since_ms),
        false_probability=false_probability,
    )


def read_outgoing(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId | None = None
) -> tuple[OutgoingEntry, ...]:
    """All, or only this one; so ``read_incoming`` and ``read_missing``, too."""
    cursor = connection.execute(
        _only(_OUTGOING, message_id),
        _whose(conversation, message_id),
    )
    return tuple(
        OutgoingEntry(
            message_id=own_id,
            raw=raw,
            state=OutgoingState(state),
            attempts=attempts,
            next_send_ms=next_send_ms,
            accepted=bool(accepted),
            created_ms=created_ms,
        )
        for own_id, raw, state, attempts, next_send_ms, accepted, created_ms in cursor
    )


def read_incoming(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId | None = None
) -> tuple[IncomingEntry, ...]:
    cursor = connection.execute(
        _only(_INCOMING, message_id),
        _whose(conversation, message_id),
    )
    return tuple(_incoming_of_row(row) for row in cursor)


def read_waiting(
    connection: sqlite3.Connection, conversation: int, limit: int
) -> list[WaitingMessage]:
    cursor = connection.execute(
        "SELECT message_id, sender_id, causal_history, lamport_timestamp, received_ms "
        "FROM incoming WHERE conversation_key = ? ORDER BY incoming_key LIMIT ?",
        (conversation, limit),
    )
    return [
        WaitingMessage(message_id, sender_id, _history(history), lamport, received_ms)
        for message_id, sender_id, history, lamport, received_ms in cursor
    ]


def _incoming_of_row(row: _IncomingRow) -> IncomingEntry:
    (
        message_id, sender_id, channel_id, lamport, causal_history, bloom_filter, repair_request,
        content, raw, instance_id, sequence, previous_id, replaces, hint, received_ms, shown,
    ) = row  # fmt: skip
    return IncomingEntry(
        message=Message(
            sender_id=ParticipantId(sender_id),
            message_id=MessageId(message_id),
            channel_id=ChannelId(channel_id),
            lamport_timestamp=lamport,
            causal_history=_history(causal_history),
            bloom_filter=bloom_filter,
            repair_request=_history(repair_request),
            content=content,
        ),
        raw=raw,
        author=_author(instance_id, sequence),
        retrieval_hint=hint,
        received_ms=UnixMs(received_ms),
        shown=bool(shown),
        previous_id=previous_id,
        replaces=replaces,
    )


def read_missing(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId | None = None
) -> tuple[MissingEntry, ...]:
    cursor = connection.execute(
        _only(_MISSING, message_id),
        _whose(conversation, message_id),
    )
    return missing_of_rows(cursor)


def missing_of_rows(rows: Iterable[MissingRow]) -> tuple[MissingEntry, ...]:
    """``rows``: of ``MISSING_COLUMNS``."""
    return tuple(
        MissingEntry(
            entry=HistoryEntry(missing_id, hint, sender_id),
            state=MissingState(state),
            since_ms=since_ms,
            online_ms=online_ms,
            request_at_ms=request_at_ms,
            requests=requests,
            before=None if lamport is None else Position(lamport, before_id),
            stores=_stores_said(stores_ms, lacked, silent, kept_back),
        )
        for (
            missing_id,
            hint,
            sender_id,
            state,
            since_ms,
            online_ms,
            request_at_ms,
            requests,
            lamport,
            before_id,
            stores_ms,
            lacked,
            silent,
            kept_back,
        ) in rows
    )


def _only(sql: str, message_id: MessageId | None) -> str:
    return sql.format(one="" if message_id is None else "AND message_id = ?")


def _whose(conversation: int, message_id: MessageId | None) -> tuple[int | str, ...]:
    return (conversation,) if message_id is None else (conversation, message_id)


def _read_replaced(connection: sqlite3.Connection, conversation: int) -> tuple[Replacement, ...]:
    cursor = connection.execute(
        "SELECT message_id, sender_id, lamport_timestamp, by_id FROM replacement "
        "WHERE conversation_key = ? ORDER BY replacement_key",
        (conversation,),
    )
    return tuple(
        Replacement(message_id=message_id, sender_id=sender_id, lamport_timestamp=lamport, by=by)
        for message_id, sender_id, lamport, by in cursor
    )


def _read_forks(connection: sqlite3.Connection, conversation: int) -> tuple[Fork, ...]:
    cursor = connection.execute(
        "SELECT sender_id, instance_id, sequence, first_id, second_id FROM fork "
        "WHERE conversation_key = ? ORDER BY fork_key",
        (conversation,),
    )
    return tuple(
        Fork(
            sender_id=sender_id,
            instance_id=instance_id,
            sequence=sequence,
            first_id=first_id,
            second_id=second_id,
        )
        for sender_id, instance_id, sequence, first_id, second_id in cursor
    )


def _read_newest_claims(
    connection: sqlite3.Connection, conversation: int
) -> tuple[NewestClaim, ...]:
    cursor = connection.execute(
        "SELECT participant_id, lamport_timestamp FROM newest_claim "
        "WHERE conversation_key = ? ORDER BY claim_key",
        (conversation,),
    )
    return tuple(NewestClaim(who, lamport) for who, lamport in cursor)


def _stores_said(
    stores_ms: UnixMs | None, lacked: int, silent: str, kept_back: int
) -> StoresSaid | None:
    if stores_ms is None:
        return None
    return StoresSaid(
        at_ms=stores_ms,
        lacked=lacked,
        silent=tuple(silent.splitlines()),
        kept_back=bool(kept_back),
    )


def _author(instance_id: bytes | None, sequence: int | None) -> AuthorSequence | None:
    if instance_id is None or sequence is None:
        return None
    return AuthorSequence(instance_id=InstanceId(instance_id), sequence=sequence)


def _history(text: str) -> tuple[HistoryEntry, ...]:
    try:
        items: list[tuple[str, str | None, str | None]] = json.loads(text)
        return tuple(
            HistoryEntry(
                message_id=MessageId(message_id),
                retrieval_hint=None if hint is None else bytes.fromhex(hint),
                sender_id=None if sender_id is None else ParticipantId(sender_id),
            )
            for message_id, hint, sender_id in items
        )
    except (ValueError, TypeError) as error:
        text = "A causal history in the database is unreadable."
        raise StorageError(text, StorageFault.DAMAGED) from error


def _read_set_aside(connection: sqlite3.Connection, conversation: int) -> tuple[SetAside, ...]:
    cursor = connection.execute(
        "SELECT message_id, sender_id, lamport_timestamp, length(raw) FROM set_aside "
        "WHERE conversation_key = ? ORDER BY set_aside_key",
        (conversation,),
    )
    return tuple(
        SetAside(message_id=message_id, sender_id=sender_id, lamport_timestamp=lamport, size=size)
        for message_id, sender_id, lamport, size in cursor
    )


def _read_spent(connection: sqlite3.Connection, conversation: int) -> tuple[Spent, ...]:
    cursor = connection.execute(
        "SELECT sender_id, day, fetched, messages, size, lifted FROM spent "
        "WHERE conversation_key = ? ORDER BY day, sender_id, fetched",
        (conversation,),
    )
    return tuple(
        Spent(
            sender_id=sender_id,
            day=day,
            fetched=bool(fetched),
            messages=messages,
            size=size,
            lifted=bool(lifted),
        )
        for sender_id, day, fetched, messages, size, lifted in cursor
    )
