"""The rows of a pair's ratchet: its state, and one row for each Olm session.

A message changes one session and the state beside it; the other sessions are not written again.
Runs inside the store's transaction, in which also the row is written that the step belongs to.
"""

import sqlite3
from typing import Final

from engine.codec.key_bundle import decode_key_bundle, encode_key_bundle
from engine.core.errors import RemoteProtocolError, StorageError, StorageFault
from engine.core.ids import InstanceId, UnixMs
from engine.core.ratchet import KeptSession, RatchetState

RATCHET_TABLES: Final = (
    """
    CREATE TABLE pair_ratchet (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      stay BLOB NOT NULL, pickle_key BLOB NOT NULL, account TEXT NOT NULL, our_keys BLOB NOT NULL,
      their_keys BLOB, told INTEGER NOT NULL, answered INTEGER NOT NULL, highest INTEGER NOT NULL,
      sent_ms INTEGER NOT NULL, heard_ms INTEGER NOT NULL, since_ms INTEGER,
      unanswered INTEGER NOT NULL, failures INTEGER NOT NULL, renewed_ms INTEGER,
      must_renew INTEGER NOT NULL, heard BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE pair_session (
      conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
      session_id TEXT NOT NULL, generation INTEGER NOT NULL, pickle TEXT NOT NULL,
      heard INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, session_id)
    ) STRICT, WITHOUT ROWID
    """,
)
HASH_BYTES: Final = 16
_PUT_STATE: Final = """
INSERT OR REPLACE INTO pair_ratchet
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_STATE: Final = """
SELECT stay, pickle_key, account, our_keys, their_keys, told, answered, highest, sent_ms, heard_ms,
       since_ms, unanswered, failures, renewed_ms, must_renew, heard
FROM pair_ratchet WHERE conversation_key = ?
"""
_PUT_SESSION: Final = """
INSERT INTO pair_session VALUES (?, ?, ?, ?, ?) ON CONFLICT (conversation_key, session_id)
DO UPDATE SET generation = excluded.generation, pickle = excluded.pickle, heard = excluded.heard
WHERE pickle != excluded.pickle
"""
_SESSIONS: Final = """
SELECT session_id, generation, pickle, heard FROM pair_session WHERE conversation_key = ?
ORDER BY generation DESC, heard DESC, session_id
"""


def put_ratchet(connection: sqlite3.Connection, conversation: int, state: RatchetState) -> None:
    theirs = state.theirs
    connection.execute(
        _PUT_STATE,
        (
            conversation,
            state.stay,
            state.pickle_key,
            state.account,
            encode_key_bundle(state.ours),
            None if theirs is None else encode_key_bundle(theirs),
            state.told,
            state.answered,
            state.highest,
            state.sent_ms,
            state.heard_ms,
            state.since_ms,
            state.unanswered,
            state.failures,
            state.renewed_ms,
            state.must_renew,
            b"".join(state.heard),
        ),
    )
    kept = {session.session_id for session in state.sessions}
    for (session_id,) in connection.execute(
        "SELECT session_id FROM pair_session WHERE conversation_key = ?", (conversation,)
    ).fetchall():
        if session_id not in kept:
            connection.execute(
                "DELETE FROM pair_session WHERE conversation_key = ? AND session_id = ?",
                (conversation, session_id),
            )
    for session in state.sessions:
        row = (
            conversation,
            session.session_id,
            session.generation,
            session.pickle,
            session.heard,
        )
        connection.execute(_PUT_SESSION, row)


def read_ratchet(connection: sqlite3.Connection, conversation: int) -> RatchetState | None:
    row = connection.execute(_STATE, (conversation,)).fetchone()
    if row is None:
        return None
    (
        stay, pickle_key, account, ours, theirs, told, answered, highest, sent_ms, heard_ms,
        since_ms, unanswered, failures, renewed_ms, must_renew, heard,
    ) = row  # fmt: skip
    try:
        our_keys = decode_key_bundle(ours)
        their_keys = None if theirs is None else decode_key_bundle(theirs)
    except RemoteProtocolError as error:
        raise StorageError(
            "The keys of a conversation in the database are unreadable.", StorageFault.DAMAGED
        ) from error
    return RatchetState(
        stay=InstanceId(stay),
        pickle_key=pickle_key,
        account=account,
        ours=our_keys,
        theirs=their_keys,
        told=told,
        answered=answered,
        highest=highest,
        sent_ms=UnixMs(sent_ms),
        heard_ms=UnixMs(heard_ms),
        since_ms=None if since_ms is None else UnixMs(since_ms),
        unanswered=unanswered,
        failures=failures,
        renewed_ms=None if renewed_ms is None else UnixMs(renewed_ms),
        must_renew=bool(must_renew),
        sessions=tuple(
            KeptSession(
                session_id=session_id, generation=generation, pickle=pickle, heard=bool(known)
            )
            for session_id, generation, pickle, known in connection.execute(
                _SESSIONS, (conversation,)
            )
        ),
        heard=tuple(heard[at : at + HASH_BYTES] for at in range(0, len(heard), HASH_BYTES)),
    )
