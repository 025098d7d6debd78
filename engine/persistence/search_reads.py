"""Answers a search from its index, the newest messages first.

Buckets of the index lie one behind the other in the order of the answer, so it is complete once
enough was found.  In scripts without spaces the buckets of an epoch are asked together as long as
it proposes few messages.  What the index proposes is read and compared before it is shown: it may
be behind or know too much, and only what is asked for is found.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.search import FoundMessage, SearchQuery, Stop
from engine.core.search_text import PLAIN, Excerpt, Wanted, excerpt, is_plain
from engine.core.shown_text import without_marks
from engine.persistence.search_pairs import Kinds, epoch_of, read_kinds
from engine.persistence.search_tables import (
    FORM,
    HAS_RUNS,
    IN_CONVERSATION,
    LINK_SPAN,
    WITH_FILE,
    WITH_LINK,
    code_of,
    conversation_term,
    read_state,
    sender_term,
)
from engine.persistence.stored_ids import StoredId, position_of, stored_place
from engine.persistence.stored_spans import spans_of

MAX_FOUND: Final = 200
"""At once."""
READ_TOGETHER: Final = 64
FEW: Final = 64
FEW_IN_EPOCH: Final = 256
"""Proposed in all buckets of an epoch; of more, those of one bucket after the other are read."""
COMPARED_RUNS: Final = 8
"""By the database, before a message is read; all are compared afterwards."""
_EARLIEST: Final = -(2**63)
_LATEST: Final = 2**63 - 1
_MAX_LAMPORT: Final = 2**63 - 1
_Place: TypeAlias = tuple[int, StoredId, int]
"""Lamport timestamp, message id and key of the conversation."""
_Proposed: TypeAlias = tuple[int, StoredId, int, int]
"""The same, and the message's key."""
_AFTER_ALL: Final = (_MAX_LAMPORT, b"\xff" * 17, _MAX_LAMPORT)

_CONVERSATIONS: Final = """
SELECT conversation_key, conversation_id FROM conversation AS c
WHERE NOT EXISTS (SELECT 1 FROM removed_conversation AS r
                  WHERE r.conversation_key = c.conversation_key)
"""
_BUCKETS: Final = """
SELECT bucket_key, first_lamport FROM search_bucket
WHERE rows > 0 AND least_lamport <= ? AND most_lamport >= ?
  AND least_sent_ms < ? AND most_sent_ms >= ?
ORDER BY first_lamport DESC
"""
_REACH: Final = """
SELECT min(lamport_timestamp), max(lamport_timestamp) FROM (
  SELECT * FROM (SELECT lamport_timestamp FROM message
    WHERE conversation_key = ?1 AND hidden = 0 AND waiting = 0
    ORDER BY waiting, lamport_timestamp, message_id LIMIT 1)
  UNION ALL
  SELECT * FROM (SELECT lamport_timestamp FROM message
    WHERE conversation_key = ?1 AND hidden = 0 AND waiting = 0
    ORDER BY waiting DESC, lamport_timestamp DESC, message_id DESC LIMIT 1)
  UNION ALL
  SELECT lamport_timestamp FROM message
  WHERE conversation_key = ?1 AND hidden = 0 AND waiting = 1
)
"""
_PROPOSED: Final = """
SELECT m.lamport_timestamp, m.message_id, m.conversation_key, m.message_key
FROM {table} CROSS JOIN message AS m ON m.message_key = {table}.rowid
WHERE {table} MATCH ?
  AND (m.lamport_timestamp, m.message_id, m.conversation_key) < (?, ?, ?)
  AND m.sent_ms >= ? AND m.sent_ms < ? AND m.hidden = 0 {more}
ORDER BY m.lamport_timestamp DESC, m.message_id DESC, m.conversation_key DESC LIMIT ?
"""
_MAY_HAVE_RUNS: Final = """
AND (({runs}) OR m.kind = 'file' OR m.text GLOB ? OR instr(m.text, char(0)) > 0)
"""
_BY_SENDER: Final = """
AND CAST(? AS TEXT) = (
  SELECT participant_id FROM participant WHERE participant_key = m.sender_key)
"""
_NUMBER: Final = "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
_ROW: Final = """
SELECT m.conversation_key, m.lamport_timestamp, m.message_id, p.participant_id, m.is_own, m.kind,
       m.sent_ms, m.text, m.spans, m.retracted,
       coalesce((SELECT f.name FROM file AS f
        WHERE m.kind = 'file' AND f.conversation_key = m.conversation_key
          AND f.message_id = m.message_id), '')
FROM message AS m CROSS JOIN participant AS p ON p.participant_key = m.sender_key
WHERE m.message_key = ?
"""


class _Row(NamedTuple):
    conversation: int
    lamport: int
    stored: StoredId
    sender_id: ParticipantId
    is_own: int
    kind: str
    sent_ms: int
    text: str
    spans: str
    retracted: int
    file_name: str


class _Epoch(Struct):
    asked: list[str]
    """Terms that what is found has."""
    proposed: list[_Proposed] | None
    """All that has them and was not looked at, the newest last; None if that is too much."""
    is_slow: bool = False
    """They are all that a common character has, which takes milliseconds to read."""


def find(
    connection: sqlite3.Connection, query: SearchQuery, limit: int, stop: Stop
) -> tuple[FoundMessage, ...]:
    state = read_state(connection)
    if state.form != FORM or not query.asks_for_something():
        return ()
    rows = connection.execute(_CONVERSATIONS)
    conversations = {key: ConversationId(conversation_id) for key, conversation_id in rows}
    search = _Search(connection, query, state.table, conversations)
    return search.run(max(min(limit, MAX_FOUND), 1), stop)


class _Search:
    def __init__(
        self,
        connection: sqlite3.Connection,
        query: SearchQuery,
        table: str,
        conversations: dict[int, ConversationId],
    ) -> None:
        self._connection = connection
        self._query = query
        self._table = table
        self._conversations = conversations
        self._words = query.wanted.words
        self._pairs = query.wanted.pairs()
        self._epochs: dict[int, _Epoch] = {}
        self._filters: list[str] = []
        self._rare: int | None = None
        """Which of the words was missing where nothing was found."""
        self._conversation: int | None = None
        if query.conversation_id is not None:
            keys = [key for key, one in conversations.items() if one == query.conversation_id]
            self._conversation = keys[0] if keys else -1
            self._filters.append(conversation_term(self._conversation))
        if query.sender_id is not None:
            self._filters.append(sender_term(query.sender_id))
        if query.has_file:
            self._filters.append(WITH_FILE)
        if query.has_link:
            self._filters.append(WITH_LINK)
        self._since = _EARLIEST if query.since_ms is None else query.since_ms
        self._until = _LATEST if query.until_ms is None else query.until_ms
        self._sql, self._values = _PROPOSED.format(table=table, more=""), list[object]()
        if self._pairs:
            more, self._values = _conditions(query, self._conversation)
            self._sql = _PROPOSED.format(table=table, more=more)

    def run(self, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        found: list[FoundMessage] = []
        for bucket, first in self._buckets():
            if stop.is_set() or len(found) >= limit:
                break
            for key in self._proposed(bucket, first, limit - len(found), stop):
                one = self._compared(key)
                if one is not None:
                    found.append(one)
                if len(found) >= limit or stop.is_set():
                    break
        return tuple(found)

    def _buckets(self) -> list[tuple[int, int]]:
        """Those that may have it, and where each begins; the newest first."""
        first, last = 0, _MAX_LAMPORT
        if self._conversation is not None:
            reach: tuple[int | None, int | None] = self._connection.execute(
                _REACH, (self._conversation,)
            ).fetchone()
            if reach[0] is None or reach[1] is None:
                return []
            first, last = reach[0], reach[1]
        if self._query.before is not None:
            last = min(last, self._query.before.position.lamport_timestamp)
        span = (last, first, self._until, self._since)
        return self._connection.execute(_BUCKETS, span).fetchall()

    def _proposed(self, bucket: int, first: int, limit: int, stop: Stop) -> Iterator[int]:
        """Keys of messages in one bucket, all that may be asked for, the newest first."""
        if not self._pairs:
            yield from self._asked_in(bucket, [], limit, stop)
            return
        epoch = self._epoch_of(bucket)
        if epoch.proposed is None:
            any_proposed = False
            for key in self._asked_in(bucket, epoch.asked, limit, stop):
                any_proposed = True
                yield key
            if not any_proposed and epoch.is_slow and self._filters:
                epoch.is_slow = False
                epoch.proposed = self._with_filters(epoch_of(bucket), epoch.asked, first)
            return
        while epoch.proposed and epoch.proposed[-1][0] >= first:
            yield epoch.proposed.pop()[-1]

    def _epoch_of(self, bucket: int) -> _Epoch:
        number = epoch_of(bucket)
        if number not in self._epochs:
            kinds = read_kinds(self._connection, self._table, number, self._pairs)
            self._epochs[number] = _Epoch([], []) if kinds is None else self._looked_up(kinds)
        return self._epochs[number]

    def _looked_up(self, kinds: Kinds) -> _Epoch:
        """What a common character has costs milliseconds, and tells little beside anything else."""
        telling = [pair for pair in self._pairs if len(pair) > 1 or not kinds.is_common(pair)]
        asked = _asked(kinds, telling or self._pairs)
        if not telling:
            return _Epoch(asked, None, is_slow=True)
        if self._number(asked, FEW_IN_EPOCH) > FEW_IN_EPOCH:
            return _Epoch(asked, None)
        return _Epoch(asked, self._page(asked, self._first_before(), FEW_IN_EPOCH)[::-1])

    def _with_filters(self, epoch: int, asked: list[str], before: int) -> list[_Proposed] | None:
        """What is left in an epoch, in which a bucket had nothing of whom or what is asked for."""
        codes = [code_of(bucket) for bucket, _ in self._buckets() if epoch_of(bucket) == epoch]
        any_of = (" OR ".join(f'"{code}{term}"' for code in codes) for term in self._filters)
        filters = [f"({one})" for one in any_of]
        if not self._number(filters):
            return []
        terms = [*asked, *filters]
        if self._number(terms, FEW_IN_EPOCH) > FEW_IN_EPOCH:
            return None
        page = self._page(terms, self._first_before(), FEW_IN_EPOCH)
        return [one for one in reversed(page) if one[0] < before]

    def _asked_in(self, bucket: int, of_runs: list[str], limit: int, stop: Stop) -> Iterator[int]:
        """Asks one bucket.

        The beginning of a frequent word takes a millisecond to look up.  So it is looked up last,
        and not at all where something else is missing or few messages are left to compare.
        """
        code = code_of(bucket)
        words = [f'"{code}{word}"*' for word in self._words]
        filters = [f'"{code}{term}"' for term in self._filters]
        few = False
        if filters:
            number = self._number(filters)
            if not number:
                return
            few = number <= FEW
        if self._rare is not None and not few and not self._number([words[self._rare]]):
            return
        terms = [*words, *of_runs, *([f'"{code}{HAS_RUNS}"'] if of_runs else [])]
        asked = filters if few else [*terms, *filters]
        any_proposed = False
        for key in self._rows(asked or [f'"{code}{IN_CONVERSATION}"*'], limit, stop):
            any_proposed = True
            yield key
        if not any_proposed and len(terms) > 1 and not few:
            missing = (place for place, one in enumerate(words) if not self._number([one]))
            self._rare = next(missing, self._rare)

    def _number(self, terms: list[str], most: int = FEW) -> int:
        """Of messages with all of them; beyond ``most`` they are not counted."""
        sql = _NUMBER.format(table=self._table)
        row: tuple[int] = self._connection.execute(sql, (" AND ".join(terms), most + 1)).fetchone()
        return row[0]

    def _rows(self, terms: list[str], limit: int, stop: Stop) -> Iterator[int]:
        before = self._first_before()
        together = max(limit, READ_TOGETHER)
        while not stop.is_set():
            rows = self._page(terms, before, together)
            for *_, key in rows:
                yield key
            if len(rows) < together:
                return
            before = rows[-1][:3]

    def _page(self, terms: list[str], before: _Place, most: int) -> list[_Proposed]:
        values = (" AND ".join(terms), *before, self._since, self._until, *self._values, most)
        return self._connection.execute(self._sql, values).fetchall()

    def _first_before(self) -> _Place:
        after = self._query.before
        if after is None:
            return _AFTER_ALL
        # Of a conversation that was left meanwhile: rather a hit twice than one that is missing.
        same = (key for key, one in self._conversations.items() if one == after.conversation_id)
        return (*stored_place(after.position), next(same, _MAX_LAMPORT))

    def _compared(self, key: int) -> FoundMessage | None:
        values = self._connection.execute(_ROW, (key,)).fetchone()
        if values is None:
            return None
        row, query = _Row._make(values), self._query
        conversation_id = self._conversations.get(row.conversation)
        if (
            conversation_id is None
            or row.retracted
            or (self._conversation is not None and row.conversation != self._conversation)
            or (query.sender_id is not None and row.sender_id != query.sender_id)
            or not query.wanted.finds(f"{row.text}\n{row.file_name}")
        ):
            return None
        return FoundMessage(
            conversation_id=conversation_id,
            position=position_of(row.lamport, row.stored),
            sender_id=row.sender_id,
            is_own=bool(row.is_own),
            sent_ms=UnixMs(row.sent_ms),
            excerpt=_excerpt(row, query.wanted),
            file_name=row.file_name,
        )


def _asked(kinds: Kinds, pairs: Sequence[str]) -> list[str]:
    terms = zip(pairs, kinds.terms(pairs), strict=True)
    return [f'"{term}"{"*" if len(pair) == 1 else ""}' for pair, term in terms]


def _conditions(query: SearchQuery, conversation: int | None) -> tuple[str, list[object]]:
    """What the database compares of what was proposed, with its values."""
    more, values = list[str](), list[object]()
    if conversation is not None:
        more.append("AND m.conversation_key = ?")
        values.append(conversation)
    if query.sender_id is not None:
        more.append(_BY_SENDER)
        values.append(query.sender_id.encode("utf-8", "surrogatepass"))
    if query.has_file:
        more.append("AND m.kind = 'file'")
    if query.has_link:
        more.append("AND instr(m.spans, ?) > 0")
        values.append(LINK_SPAN)
    plain = [run for run in query.wanted.runs if is_plain(run)][:COMPARED_RUNS]
    if plain:
        more.append(_MAY_HAVE_RUNS.format(runs=" AND ".join(["instr(m.text, ?) > 0"] * len(plain))))
        values += [*plain, f"*[^{PLAIN}]*"]
    return " ".join(more), values


def _excerpt(row: _Row, asked: Wanted) -> Excerpt:
    text = without_marks(row.text, spans_of(row.spans)) if row.spans else row.text
    shown = excerpt(text, asked)
    if row.file_name and not (shown.text and shown.marks):
        of_name = excerpt(row.file_name, asked)
        return of_name if of_name.marks or not shown.text else shown
    return shown
