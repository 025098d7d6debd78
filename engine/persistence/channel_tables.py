"""An SDS channel's state as rows: log, both buffers, missing messages, holders, the clock.

Each ``Write`` of the state machine is one statement, except for log entries, which come in batches.
``channel_reads`` returns exactly what was written.  The channel's Bloom filters are not stored: the
machine recomputes them from the log.  Runs inside the store's transaction.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, assert_never

from engine.core.ids import AuthorSequence, MessageId, Position
from engine.core.sds.floods import ForgetSetAside, PutSetAside, PutSpent, RemoveSetAside, Spent
from engine.core.sds.forks import Fork, PutFork
from engine.core.sds.vocabulary import (
    AppendToLog,
    HistoryEntry,
    HolderEntry,
    IncomingEntry,
    MarkAccepted,
    MissingEntry,
    OutgoingEntry,
    PutHolder,
    PutIncoming,
    PutMissing,
    PutNewestClaims,
    PutOutgoing,
    PutReplacement,
    RemoveFromLog,
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    Replacement,
    ReplaceRaw,
    SaveClock,
    SaveRetrievalHint,
    SaveStoreQueried,
    Write,
)
from engine.persistence.annotation_tables import remove_annotation
from engine.persistence.many_rows import insert, with_rows
from engine.persistence.raw_blocks import next_raw_key, put_raw, remove_raw
from engine.persistence.short_keys import instance_keys, participant_keys
from engine.persistence.stored_ids import stored_id, stored_place
from engine.persistence.timeline_tables import remove_message

_INSERT_LOG_ENTRY: Final = with_rows(
    """
INSERT INTO log_entry (conversation_key, lamport_timestamp, message_id, sender_key, retrieval_hint,
                       instance_key, sequence, previous_id, size, raw_key)
    """,
    columns=10,
)
# "ON CONFLICT DO UPDATE" keeps the row's key and thereby the entry's place in the buffer.
_PUT_OUTGOING: Final = """
INSERT INTO outgoing (conversation_key, message_id, raw, state, attempts, next_send_ms, accepted,
                      created_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  raw = excluded.raw, state = excluded.state, attempts = excluded.attempts,
  next_send_ms = excluded.next_send_ms, accepted = excluded.accepted,
  created_ms = excluded.created_ms
"""
_PUT_INCOMING: Final = """
INSERT INTO incoming (conversation_key, message_id, sender_id, channel_id, lamport_timestamp,
                      causal_history, bloom_filter, repair_request, content, raw, instance_id,
                      sequence, previous_id, replaces, retrieval_hint, received_ms, shown)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  sender_id = excluded.sender_id, channel_id = excluded.channel_id,
  lamport_timestamp = excluded.lamport_timestamp, causal_history = excluded.causal_history,
  bloom_filter = excluded.bloom_filter, repair_request = excluded.repair_request,
  content = excluded.content, raw = excluded.raw, instance_id = excluded.instance_id,
  sequence = excluded.sequence, previous_id = excluded.previous_id, replaces = excluded.replaces,
  retrieval_hint = excluded.retrieval_hint, received_ms = excluded.received_ms,
  shown = excluded.shown
"""
_PUT_MISSING: Final = """
INSERT INTO missing (conversation_key, message_id, retrieval_hint, sender_id, state, since_ms,
                     online_ms, request_at_ms, requests, before_lamport, before_message_id,
                     stores_ms, stores_lacked, stores_silent, stores_kept_back)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  retrieval_hint = excluded.retrieval_hint, sender_id = excluded.sender_id, state = excluded.state,
  since_ms = excluded.since_ms, online_ms = excluded.online_ms,
  request_at_ms = excluded.request_at_ms, requests = excluded.requests,
  before_lamport = excluded.before_lamport, before_message_id = excluded.before_message_id,
  stores_ms = excluded.stores_ms, stores_lacked = excluded.stores_lacked,
  stores_silent = excluded.stores_silent, stores_kept_back = excluded.stores_kept_back
"""
# Certain replaces maybe, with its own time; of two of the same kind the first stays.  In any case
# the row keeps its place.
_PUT_HOLDER: Final = """
INSERT INTO holder (conversation_key, message_id, participant_key, place, source, since_ms,
                    false_probability)
VALUES (?1, ?2, ?3, (SELECT holders_put FROM channel WHERE conversation_key = ?1), ?4, ?5, ?6)
ON CONFLICT (conversation_key, message_id, participant_key) DO UPDATE SET
  source = excluded.source, since_ms = excluded.since_ms,
  false_probability = excluded.false_probability
WHERE source = 'bloom' AND excluded.source <> 'bloom'
"""
# Keyed by the replacing message: one member's claim must not hide what the sender says.
_PUT_REPLACEMENT: Final = """
INSERT INTO replacement (conversation_key, message_id, sender_id, lamport_timestamp, by_id)
VALUES (?, ?, ?, ?, ?) ON CONFLICT (conversation_key, by_id) DO NOTHING
"""
_PUT_FORK: Final = """
INSERT INTO fork (conversation_key, instance_id, sender_id, sequence, first_id, second_id)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (conversation_key, instance_id) DO NOTHING
"""
_PUT_SET_ASIDE: Final = """
INSERT INTO set_aside (conversation_key, message_id, sender_id, lamport_timestamp, retrieval_hint,
                       raw)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  sender_id = excluded.sender_id, lamport_timestamp = excluded.lamport_timestamp,
  retrieval_hint = excluded.retrieval_hint, raw = excluded.raw
"""
_FORGET_SET_ASIDE: Final = """
DELETE FROM set_aside WHERE conversation_key = ? AND sender_id = ? AND length(raw) = 0
"""
_PUT_NEWEST_CLAIM: Final = """
INSERT INTO newest_claim (conversation_key, participant_id, lamport_timestamp) VALUES (?, ?, ?)
ON CONFLICT (conversation_key, participant_id) DO UPDATE SET
  lamport_timestamp = excluded.lamport_timestamp
"""
RAW_KEY: Final = "SELECT raw_key FROM log_entry WHERE conversation_key = ? AND message_id = ?"


def apply_channel_write(  # noqa: C901, PLR0912 - one case per kind of write
    connection: sqlite3.Connection, conversation: int, write: Write
) -> None:
    execute = connection.execute
    match write:
        case SaveClock(lamport_timestamp=lamport):
            execute(
                "UPDATE channel SET lamport_timestamp = ? WHERE conversation_key = ?",
                (lamport, conversation),
            )
        case SaveStoreQueried(store_queried_ms=queried_ms):
            execute(
                "UPDATE channel SET store_queried_ms = ? WHERE conversation_key = ?",
                (queried_ms, conversation),
            )
        case AppendToLog():
            append_to_log(connection, conversation, (write,))
        case RemoveFromLog(message_id=message_id):
            _remove_from_log(connection, conversation, message_id)
        case PutReplacement(replacement=replacement):
            _put_replacement(connection, conversation, replacement)
        case PutFork(fork=fork):
            _put_fork(connection, conversation, fork)
        case PutSetAside():
            _put_set_aside(connection, conversation, write)
        case ForgetSetAside(sender_id=sender_id):
            execute(_FORGET_SET_ASIDE, (conversation, sender_id))
        case PutSpent(spent=spent):
            _put_spent(connection, conversation, spent)
        case PutNewestClaims(claims=claims):
            rows = [(conversation, each.participant_id, each.lamport_timestamp) for each in claims]
            connection.executemany(_PUT_NEWEST_CLAIM, rows)
        case SaveRetrievalHint(message_id=message_id, retrieval_hint=hint):
            execute(
                "UPDATE log_entry SET retrieval_hint = ? "
                "WHERE conversation_key = ? AND message_id = ?",
                (hint, conversation, stored_id(message_id)),
            )
        case ReplaceRaw(message_id=message_id, raw=raw):
            _replace_raw(connection, conversation, message_id, raw)
        case PutOutgoing():
            _put_outgoing(connection, conversation, write.entry)
        case MarkAccepted(message_id=message_id):
            execute(
                "UPDATE outgoing SET accepted = 1 WHERE conversation_key = ? AND message_id = ?",
                (conversation, message_id),
            )
        case PutIncoming():
            _put_incoming(connection, conversation, write.entry)
        case PutMissing():
            _put_missing(connection, conversation, write.entry)
        case PutHolder(entry=held):
            _put_holder(connection, conversation, held)
        case RemoveOutgoing() | RemoveIncoming() | RemoveMissing() | RemoveSetAside():
            execute(_removal(write), (conversation, write.message_id))
        case _:
            assert_never(write)


def _removal(write: RemoveOutgoing | RemoveIncoming | RemoveMissing | RemoveSetAside) -> str:
    match write:
        case RemoveSetAside():
            return "DELETE FROM set_aside WHERE conversation_key = ? AND message_id = ?"
        case RemoveOutgoing():
            return "DELETE FROM outgoing WHERE conversation_key = ? AND message_id = ?"
        case RemoveIncoming():
            return "DELETE FROM incoming WHERE conversation_key = ? AND message_id = ?"
        case RemoveMissing():
            return "DELETE FROM missing WHERE conversation_key = ? AND message_id = ?"
        case _:
            assert_never(write)


def append_to_log(
    connection: sqlite3.Connection, conversation: int, appended: Sequence[AppendToLog]
) -> None:
    keyed = list(enumerate(appended, next_raw_key(connection)))
    entries = [write.entry for write in appended]
    senders = participant_keys(connection, conversation, [each.sender_id for each in entries])
    authors = [each.author for each in entries if each.author is not None]
    instances = instance_keys(connection, conversation, [each.instance_id for each in authors])
    insert(
        connection,
        _INSERT_LOG_ENTRY,
        [
            (
                conversation,
                *stored_place(write.entry.position),
                senders[write.entry.sender_id],
                write.entry.retrieval_hint,
                None if (author := write.entry.author) is None else instances[author.instance_id],
                None if author is None else author.sequence,
                write.entry.previous_id,
                write.entry.size,
                key,
            )
            for key, write in keyed
        ],
    )
    put_raw(connection, conversation, [(key, write.raw) for key, write in keyed])


def _remove_from_log(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> None:
    stored = stored_id(message_id)
    entry: tuple[int, int] | None = connection.execute(
        "SELECT raw_key, lamport_timestamp FROM log_entry "
        "WHERE conversation_key = ? AND message_id = ?",
        (conversation, stored),
    ).fetchone()
    if entry is not None:
        raw_key, lamport = entry
        remove_raw(connection, conversation, raw_key)
        remove_annotation(connection, conversation, Position(lamport, message_id))
    for table, id_ in (("log_entry", stored), ("outgoing", message_id), ("holder", stored)):
        connection.execute(
            f"DELETE FROM {table} WHERE conversation_key = ? AND message_id = ?",  # noqa: S608
            (conversation, id_),
        )
    remove_message(connection, conversation, message_id)


def _replace_raw(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId, raw: bytes
) -> None:
    stored = stored_id(message_id)
    found: tuple[int] | None = connection.execute(RAW_KEY, (conversation, stored)).fetchone()
    if found is None:
        return
    remove_raw(connection, conversation, found[0])
    key = next_raw_key(connection)
    connection.execute(
        "UPDATE log_entry SET raw_key = ? WHERE conversation_key = ? AND message_id = ?",
        (key, conversation, stored),
    )
    put_raw(connection, conversation, [(key, raw)])


def _put_replacement(
    connection: sqlite3.Connection, conversation: int, replacement: Replacement
) -> None:
    connection.execute(
        _PUT_REPLACEMENT,
        (
            conversation,
            replacement.message_id,
            replacement.sender_id,
            replacement.lamport_timestamp,
            replacement.by,
        ),
    )


def _put_fork(connection: sqlite3.Connection, conversation: int, fork: Fork) -> None:
    connection.execute(
        _PUT_FORK,
        (
            conversation,
            fork.instance_id,
            fork.sender_id,
            fork.sequence,
            fork.first_id,
            fork.second_id,
        ),
    )


def _put_set_aside(connection: sqlite3.Connection, conversation: int, put: PutSetAside) -> None:
    entry = put.entry
    connection.execute(
        _PUT_SET_ASIDE,
        (
            conversation,
            entry.message_id,
            entry.sender_id,
            entry.lamport_timestamp,
            put.retrieval_hint,
            put.raw,
        ),
    )


def _put_spent(connection: sqlite3.Connection, conversation: int, spent: Spent) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            conversation,
            spent.sender_id,
            spent.day,
            spent.fetched,
            spent.messages,
            spent.size,
            spent.lifted,
        ),
    )


def _put_outgoing(connection: sqlite3.Connection, conversation: int, entry: OutgoingEntry) -> None:
    connection.execute(
        _PUT_OUTGOING,
        (
            conversation,
            entry.message_id,
            entry.raw,
            entry.state,
            entry.attempts,
            entry.next_send_ms,
            entry.accepted,
            entry.created_ms,
        ),
    )


def _put_incoming(connection: sqlite3.Connection, conversation: int, entry: IncomingEntry) -> None:
    message = entry.message
    connection.execute(
        _PUT_INCOMING,
        (
            conversation,
            message.message_id,
            message.sender_id,
            message.channel_id,
            message.lamport_timestamp,
            _history_text(message.causal_history),
            message.bloom_filter,
            _history_text(message.repair_request),
            message.content,
            entry.raw,
            *_author_columns(entry.author),
            entry.previous_id,
            entry.replaces,
            entry.retrieval_hint,
            entry.received_ms,
            entry.shown,
        ),
    )


def _put_missing(connection: sqlite3.Connection, conversation: int, entry: MissingEntry) -> None:
    said = entry.stores
    connection.execute(
        _PUT_MISSING,
        (
            conversation,
            entry.entry.message_id,
            entry.entry.retrieval_hint,
            entry.entry.sender_id,
            entry.state,
            entry.since_ms,
            entry.online_ms,
            entry.request_at_ms,
            entry.requests,
            entry.before and entry.before.lamport_timestamp,
            entry.before and entry.before.message_id,
            said and said.at_ms,
            said.lacked if said else 0,
            "\n".join(said.silent) if said else "",
            said.kept_back if said else False,
        ),
    )


def _put_holder(connection: sqlite3.Connection, conversation: int, entry: HolderEntry) -> None:
    who = entry.participant_id
    connection.execute(
        _PUT_HOLDER,
        (
            conversation,
            stored_id(entry.message_id),
            participant_keys(connection, conversation, [who])[who],
            entry.source,
            entry.since_ms,
            entry.false_probability,
        ),
    )
    connection.execute(
        "UPDATE channel SET holders_put = holders_put + 1 WHERE conversation_key = ?",
        (conversation,),
    )


def _author_columns(author: AuthorSequence | None) -> tuple[bytes | None, int | None]:
    return (author.instance_id, author.sequence) if author else (None, None)


def _history_text(entries: tuple[HistoryEntry, ...]) -> str:
    """JSON: [[id, hint in hex or null, sender or null], …]."""
    return json.dumps(
        [
            (
                entry.message_id,
                None if entry.retrieval_hint is None else entry.retrieval_hint.hex(),
                entry.sender_id,
            )
            for entry in entries
        ],
        separators=(",", ":"),
    )
