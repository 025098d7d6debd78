"""Whose the bytes of an archive are, and whose go first when there is no room.

A *share* is what one source brought of one topic.  Shares add up to peers, these to networks, and
these to two classes of topics: established ones, which are a day old or were asked for, and new
ones.  Half of the archive is the established topics': new ones that have more give way first.
Otherwise the network that has most gives way, in it the peer, and of that peer's the largest topic.

The sums are rows of two tables, so that what gives way is found by an index however many topics
there are.  Runs inside the transactions of ``SqliteArchive``, and refuses to know messages.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Final

from engine.core.waku_archive import Source

_NEW: Final = 1
_ESTABLISHED: Final = 2
_NOBODY: Final = 0

SHARE_TABLES: Final = (
    """
    CREATE TABLE source (
      source_key INTEGER PRIMARY KEY, parent_key INTEGER NOT NULL, name TEXT NOT NULL,
      bytes INTEGER NOT NULL, UNIQUE (parent_key, name)
    ) STRICT
    """,
    "CREATE INDEX source_by_size ON source (parent_key, bytes)",
    f"INSERT INTO source VALUES ({_NEW}, {_NOBODY}, 'new', 0)",  # noqa: S608 - our own numbers
    f"INSERT INTO source VALUES ({_ESTABLISHED}, {_NOBODY}, 'established', 0)",  # noqa: S608
    """
    CREATE TABLE share (
      share_key INTEGER PRIMARY KEY, source_key INTEGER NOT NULL, topic_key INTEGER NOT NULL,
      bytes INTEGER NOT NULL, UNIQUE (topic_key, source_key)
    ) STRICT
    """,
    "CREATE INDEX share_by_size ON share (source_key, bytes)",
)


class Shares:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[Source, int], int] = {}
        """Of the transaction that goes on, as long as nothing is removed."""

    def of(self, source: Source, topic_key: int, *, established: bool) -> int:
        """The key of the share, which is made if there is none."""
        known = self._known.get((source, topic_key))
        if known is None:
            network_key = self._source(_ESTABLISHED if established else _NEW, source.network)
            known = self._share(self._source(network_key, source.peer), topic_key)
            self._known[source, topic_key] = known
        return known

    def forget(self) -> None:
        """The transaction is over, one way or the other."""
        self._known.clear()

    def change(self, amounts: Mapping[int, int]) -> None:
        """Add so many bytes to each share, or take them away; what has none left is removed."""
        self._known.clear()
        sums: Counter[int] = Counter()
        for share_key, amount in amounts.items():
            source_key, left = self._connection.execute(
                "UPDATE share SET bytes = bytes + ? WHERE share_key = ? "
                "RETURNING source_key, bytes",
                (amount, share_key),
            ).fetchone()
            sums[source_key] += amount
            if not left:
                self._connection.execute("DELETE FROM share WHERE share_key = ?", (share_key,))
        self._change_sources(sums)

    def first_to_give_way(self) -> int | None:
        """A share; None if nothing is there."""
        largest = [self._largest(kind) for kind in (_NEW, _ESTABLISHED)]
        new, established = (
            self._connection.execute(
                "SELECT bytes FROM source WHERE source_key = ?", (kind,)
            ).fetchone()[0]
            for kind in (_NEW, _ESTABLISHED)
        )
        network = largest[0] if new > established else max(largest)
        if not network[0]:
            return None
        _, peer_key = self._largest(network[1])
        found: tuple[int] = self._connection.execute(
            "SELECT share_key FROM share WHERE source_key = ? ORDER BY bytes DESC LIMIT 1",
            (peer_key,),
        ).fetchone()
        return found[0]

    def establish(self, topic_key: int) -> None:
        """What there is of this topic counts as established from here on."""
        rows = self._connection.execute(
            "SELECT share_key, share.bytes, peer.source_key, peer.name, network.name FROM share "
            "JOIN source peer USING (source_key) "
            "JOIN source network ON network.source_key = peer.parent_key "
            "WHERE topic_key = ? AND network.parent_key = ?",
            (topic_key, _NEW),
        ).fetchall()
        sums: Counter[int] = Counter()
        for share_key, size, left_key, peer, network in rows:
            joined_key = self._source(self._source(_ESTABLISHED, network), peer)
            self._connection.execute(
                "UPDATE share SET source_key = ? WHERE share_key = ?", (joined_key, share_key)
            )
            sums[left_key] -= size
            sums[joined_key] += size
        self._change_sources(sums)

    # --- inside ---------------------------------------------------------------------------------

    def _source(self, parent_key: int, name: str) -> int:
        self._connection.execute(
            "INSERT OR IGNORE INTO source (parent_key, name, bytes) VALUES (?, ?, 0)",
            (parent_key, name),
        )
        row: tuple[int] = self._connection.execute(
            "SELECT source_key FROM source WHERE parent_key = ? AND name = ?", (parent_key, name)
        ).fetchone()
        return row[0]

    def _share(self, source_key: int, topic_key: int) -> int:
        self._connection.execute(
            "INSERT OR IGNORE INTO share (source_key, topic_key, bytes) VALUES (?, ?, 0)",
            (source_key, topic_key),
        )
        row: tuple[int] = self._connection.execute(
            "SELECT share_key FROM share WHERE topic_key = ? AND source_key = ?",
            (topic_key, source_key),
        ).fetchone()
        return row[0]

    def _change_sources(self, sums: Counter[int]) -> None:
        """From peers up to the class."""
        while sums:
            above: Counter[int] = Counter()
            for source_key, amount in sums.items():
                parent_key, left = self._connection.execute(
                    "UPDATE source SET bytes = bytes + ? WHERE source_key = ? "
                    "RETURNING parent_key, bytes",
                    (amount, source_key),
                ).fetchone()
                if parent_key != _NOBODY:
                    above[parent_key] += amount
                    if not left:
                        self._connection.execute(
                            "DELETE FROM source WHERE source_key = ?", (source_key,)
                        )
            sums = above

    def _largest(self, parent_key: int) -> tuple[int, int]:
        """The bytes and the key of the largest source below; 0 bytes if there is none."""
        found: tuple[int, int] | None = self._connection.execute(
            "SELECT bytes, source_key FROM source WHERE parent_key = ? ORDER BY bytes DESC LIMIT 1",
            (parent_key,),
        ).fetchone()
        return (0, 0) if found is None else found
