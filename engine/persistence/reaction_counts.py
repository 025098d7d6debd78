"""Counts of reactions, so that a page costs the same whatever the number of its reactions.

``reaction_count`` has a row for each emoji of each message: how many chose it, the first of them,
and our own.  It is made anew from the rows of ``reaction`` in each transaction that changed one, so
it is always what counting them all would give.  It counts muted members too, so that muting changes
no row: a page looks up what they chose among its own messages, and leaves that out.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.ids import DeliveryState, ParticipantId
from engine.core.stored import StoredReaction
from engine.persistence import rules
from engine.persistence.many_rows import MANY, by_the_dozen, with_ids
from engine.persistence.muted_members import read_muted_members
from engine.persistence.stored_ids import StoredId

REACTION_COUNT_TABLES: Final = (
    # ``emoji``: with a selector, if anybody wrote one.  ``named``: the participants' keys of the
    # first of the others, with spaces between them.
    """
    CREATE TABLE reaction_count (
      conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
      target_id ANY NOT NULL, emoji_key TEXT NOT NULL, emoji TEXT NOT NULL, amount INTEGER NOT NULL,
      first_lamport INTEGER NOT NULL, first_id ANY NOT NULL, named TEXT NOT NULL, own_id ANY,
      PRIMARY KEY (conversation_key, target_id, emoji_key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE INDEX most_frequent_reaction
    ON reaction_count (conversation_key, target_id, amount DESC, first_lamport, first_id)
    """,
    """
    CREATE INDEX reaction_by_emoji
    ON reaction (conversation_key, target_id, emoji_key, lamport_timestamp, message_id, emoji,
                 is_own)
    WHERE removed = 0
    """,
)

_KEEP: Final = rules.MAX_REACTORS_NAMED + rules.MAX_MUTED_AMONG_NAMED
_SAME: Final = """
of_emoji.conversation_key = g.conversation_key AND of_emoji.target_id = g.target_id
AND of_emoji.emoji_key = g.emoji_key AND of_emoji.removed = 0
"""
_FIRST_ONES: Final = "ORDER BY of_emoji.lamport_timestamp, of_emoji.message_id LIMIT"


def _counted(which: str) -> str:
    return f"""
INSERT INTO reaction_count (conversation_key, target_id, emoji_key, emoji, amount, first_lamport,
                            first_id, named, own_id)
SELECT conversation_key, target_id, emoji_key, emoji, amount, first_lamport,
  (SELECT of_emoji.message_id FROM reaction AS of_emoji WHERE {_SAME} {_FIRST_ONES} 1),
  coalesce((SELECT group_concat(sender_key, ' ') FROM (
    SELECT of_emoji.sender_key FROM reaction AS of_emoji
    WHERE {_SAME} AND of_emoji.is_own = 0 {_FIRST_ONES} {_KEEP})), ''),
  own_id
FROM (
  SELECT conversation_key, target_id, emoji_key, max(emoji) AS emoji, count(*) AS amount,
         min(lamport_timestamp) AS first_lamport,
         max(message_id) FILTER (WHERE is_own = 1) AS own_id
  FROM reaction INDEXED BY reaction_by_emoji WHERE removed = 0 {which}
  GROUP BY conversation_key, target_id, emoji_key
) AS g
"""  # noqa: S608 - our own numbers and columns


COUNT_ALL: Final = _counted("")
COUNT: Final = _counted("AND conversation_key = ? AND target_id = ? AND emoji_key = ?")
_FORGET: Final = (
    "DELETE FROM reaction_count WHERE conversation_key = ? AND target_id = ? AND emoji_key = ?"
)
# With "+ 0", as SQLite prepares a statement again for each value of a bare limit.
_OF_MESSAGE: Final = """
SELECT * FROM (
  SELECT c.target_id, c.emoji_key, c.emoji, c.amount, c.named, c.own_id IS NOT NULL, d.state,
         c.first_lamport, c.first_id
  FROM reaction_count AS c INDEXED BY most_frequent_reaction
  LEFT JOIN delivery AS d ON d.conversation_key = c.conversation_key AND d.message_id = c.own_id
  WHERE c.conversation_key = ? AND c.target_id = ?
  ORDER BY c.amount DESC, c.first_lamport, c.first_id LIMIT ? + 0
)
"""
MOST_FREQUENT: Final = {count: " UNION ALL ".join([_OF_MESSAGE] * count) for count in (1, MANY)}
OF_MUTED: Final = with_ids(
    """
SELECT r.target_id, r.emoji_key, CAST(r.sender_key AS TEXT), r.is_own, c.amount
FROM muted_member AS mute
CROSS JOIN participant AS p
  ON p.conversation_key = mute.conversation_key AND p.participant_id = mute.participant_id
CROSS JOIN reaction AS r
  ON r.conversation_key = mute.conversation_key AND r.sender_key = p.participant_key
CROSS JOIN reaction_count AS c
  ON c.conversation_key = r.conversation_key AND c.target_id = r.target_id
    AND c.emoji_key = r.emoji_key
WHERE mute.conversation_key = ? AND r.removed = 0 AND r.target_id IN
    """
)
_HOW_MANY: Final = (
    "SELECT count(*) FROM reaction_count WHERE conversation_key = ? AND target_id = ?"
)
PARTICIPANTS: Final = with_ids(
    "SELECT participant_key, participant_id FROM participant WHERE participant_key IN"
)
_CountRow: TypeAlias = tuple[StoredId, str, str, int, str, int, str | None, int, StoredId]
_MutedRow: TypeAlias = tuple[StoredId, str, str, int, int]


def count_all(connection: sqlite3.Connection) -> None:
    """Of all conversations; there are no counts yet."""
    connection.execute(COUNT_ALL)


def count_again(
    connection: sqlite3.Connection, conversation: int, changed: Iterable[tuple[StoredId, str]]
) -> None:
    """Of these messages and emoji."""
    for target, emoji_key in changed:
        connection.execute(_FORGET, (conversation, target, emoji_key))
        connection.execute(COUNT, (conversation, target, emoji_key))


# --- reading --------------------------------------------------------------------------------------


class MessageReactions(Struct, frozen=True):
    """Of one message."""

    shown: tuple[StoredReaction, ...]
    more: int
    """Emoji that are not among them."""


class _OfMutedMembers:
    """What muted members chose for one message."""

    def __init__(self) -> None:
        self.chosen: Counter[str] = Counter()
        self._amounts: dict[str, int] = {}
        self._senders: set[str] = set()
        self._own: set[str] = set()

    def add(self, row: _MutedRow) -> None:
        _, emoji_key, sender, is_own, amount = row
        self.chosen[emoji_key] += 1
        self._amounts[emoji_key] = amount
        self._senders.add(sender)
        if is_own:
            self._own.add(emoji_key)

    def chosen_alone(self) -> int:
        """How many emoji nobody else chose."""
        return sum(self._amounts[key] == chosen for key, chosen in self.chosen.items())

    def taken_from(self, rows: Sequence[_CountRow]) -> list[_CountRow]:
        left = list[_CountRow]()
        for target, key, emoji, amount, named, mine, state, lamport, first in rows:
            others = amount - self.chosen[key]
            if others:
                kept = [sender for sender in named.split() if sender not in self._senders]
                still_mine = int(mine and key not in self._own)
                left.append(
                    (target, key, emoji, others, " ".join(kept), still_mine, state, lamport, first)
                )
        return sorted(left, key=lambda row: (-row[3], *row[7:]))


def reactions(
    connection: sqlite3.Connection, conversation: int, targets: Sequence[StoredId]
) -> Mapping[StoredId, MessageReactions]:
    """Of each of ``targets`` that has any: the most frequent first, then the earliest."""
    asked = list(dict.fromkeys(targets))
    muted = _of_muted_members(connection, conversation, asked)
    most = rules.MAX_REACTIONS_SHOWN + max((len(one.chosen) for one in muted.values()), default=0)
    found = _most_frequent(connection, conversation, asked, most)
    every = {target: len(rows) for target, rows in found.items()}
    for target, number in every.items():
        if number == most:
            ((every[target],),) = connection.execute(_HOW_MANY, (conversation, target)).fetchall()
    for target, one in muted.items():
        found[target] = one.taken_from(found[target])
        every[target] -= one.chosen_alone()
    shown = {target: rows[: rules.MAX_REACTIONS_SHOWN] for target, rows in found.items()}
    names = _names(connection, shown.values())
    return {
        target: MessageReactions(
            tuple([_reaction_of(row, names) for row in rows]), every[target] - len(rows)
        )
        for target, rows in shown.items()
    }


def _of_muted_members(
    connection: sqlite3.Connection, conversation: int, targets: Sequence[StoredId]
) -> dict[StoredId, _OfMutedMembers]:
    found: dict[StoredId, _OfMutedMembers] = {}
    if not read_muted_members(connection, conversation):
        return found
    for some in by_the_dozen(targets):
        rows: list[_MutedRow] = connection.execute(
            OF_MUTED[len(some)], (conversation, *_once(some))
        ).fetchall()
        for row in rows:
            found.setdefault(row[0], _OfMutedMembers()).add(row)
    return found


def _most_frequent(
    connection: sqlite3.Connection, conversation: int, targets: Sequence[StoredId], most: int
) -> dict[StoredId, list[_CountRow]]:
    found: dict[StoredId, list[_CountRow]] = {}
    for some in by_the_dozen(targets):
        rows: list[_CountRow] = connection.execute(
            MOST_FREQUENT[len(some)],
            [value for target in _once(some) for value in (conversation, target, most)],
        ).fetchall()
        for row in rows:
            found.setdefault(row[0], []).append(row)
    return found


def _once(some: Sequence[StoredId]) -> Iterator[StoredId]:
    """Ids that are repeated to fill a statement are asked for once."""
    seen = set[StoredId]()
    for target in some:
        yield "" if target in seen else target
        seen.add(target)


def _names(
    connection: sqlite3.Connection, shown: Iterable[Sequence[_CountRow]]
) -> Mapping[str, ParticipantId]:
    keys = {key for rows in shown for row in rows if row[4] for key in _named(row)}
    found: dict[str, ParticipantId] = {}
    for some in by_the_dozen(sorted(map(int, keys))):
        rows: list[tuple[int, str]] = connection.execute(PARTICIPANTS[len(some)], some).fetchall()
        found.update((str(key), ParticipantId(name)) for key, name in rows)
    return found


def _named(row: _CountRow) -> list[str]:
    return row[4].split(" ", rules.MAX_REACTORS_NAMED)[: rules.MAX_REACTORS_NAMED]


def _reaction_of(row: _CountRow, names: Mapping[str, ParticipantId]) -> StoredReaction:
    _, _, emoji, amount, named, mine, state, *_ = row
    return StoredReaction(
        emoji=emoji,
        count=amount,
        participant_ids=tuple([names[key] for key in _named(row)]) if named else (),
        mine=bool(mine),
        pending=bool(mine) and state in {DeliveryState.SAVED, DeliveryState.FAILED},
    )
