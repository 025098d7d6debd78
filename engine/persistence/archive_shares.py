"""Accounts for an archive's bytes by source, and decides what is removed when it is full.

A *share* belongs to one source and one topic.  Shares add up to peers, peers to networks, and
networks to two classes of topics: established ones, which are a day old or were queried, and new
ones.  Half of the archive is reserved for established topics: if new ones have more, they give way
first.  Otherwise the largest network gives way, in it the largest peer, and of that the largest
topic.

The source is the peer that brought the message.  A queried topic counts instead for the smallest
source that queried it.  A peer thus gains no room for junk by querying it, and what others query
keeps its room, whichever peer brought it.

The sums are rows of two tables, so an index finds the share to remove however many topics there
are.  Runs inside the transactions of ``SqliteArchive``, which handles the messages.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

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
      bytes INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX share_by_topic ON share (topic_key, source_key)",
    "CREATE INDEX share_by_size ON share (source_key, bytes)",
)


class Standing(IntEnum):
    """A topic's class; all but new ones are established."""

    NEW = 0
    AGED = 1
    ASKED_FOR = 2


class _Share(Struct, frozen=True):
    share_key: int
    size: int
    peer_key: int
    network_key: int
    root: int
    source: Source


class Shares:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[Source, int], int] = {}
        """Share keys in the current transaction, as long as nothing is removed."""

    def of(self, source: Source, topic_key: int, standing: Standing) -> int:
        """Return the key of the share, created if necessary."""
        known = self._known.get((source, topic_key))
        if known is None:
            known = self._asked_for(topic_key) if standing is Standing.ASKED_FOR else None
            if known is None:
                root = _NEW if standing is Standing.NEW else _ESTABLISHED
                known = self._share(self._source(root, source), topic_key)
            self._known[source, topic_key] = known
        return known

    def forget(self) -> None:
        """Call when the transaction has ended, either way."""
        self._known.clear()

    def change(self, amounts: Mapping[int, int]) -> None:
        """Add these bytes to the shares, or subtract them; remove shares that become empty."""
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
        """The share that gives way first; None if the archive is empty."""
        largest = [self._largest(kind) for kind in (_NEW, _ESTABLISHED)]
        network = largest[0] if self._bytes(_NEW) > self._bytes(_ESTABLISHED) else max(largest)
        if not network[0]:
            return None
        _, peer_key = self._largest(network[1])
        found: tuple[int] = self._connection.execute(
            "SELECT share_key FROM share WHERE source_key = ? ORDER BY bytes DESC LIMIT 1",
            (peer_key,),
        ).fetchone()
        return found[0]

    def age(self, topic_key: int) -> None:
        """Count the topic's messages as established from now on."""
        shares = [each for each in self._of_topic(topic_key) if each.root == _NEW]
        self._move(shares, lambda share: self._source(_ESTABLISHED, share.source))

    def ask_for(self, topic_key: int, asker: Source) -> bool:
        """Return whether the topic counts for ``asker`` now, who has less than the one before."""
        shares = self._of_topic(topic_key)
        if not shares or not self._has_less(asker, shares):
            return False
        self._move(shares, lambda _: self._source(_ESTABLISHED, asker))
        return True

    # --- inside ---------------------------------------------------------------------------------

    def _of_topic(self, topic_key: int) -> list[_Share]:
        rows = self._connection.execute(
            "SELECT share_key, share.bytes, peer.source_key, network.source_key, "
            "network.parent_key, network.name, peer.name FROM share "
            "JOIN source peer USING (source_key) "
            "JOIN source network ON network.source_key = peer.parent_key WHERE topic_key = ?",
            (topic_key,),
        )
        return [
            _Share(share_key, size, peer_key, network_key, root, Source(network, peer))
            for share_key, size, peer_key, network_key, root, network, peer in rows
        ]

    def _has_less(self, asker: Source, shares: list[_Share]) -> bool:
        """Whether the asker, with all of the topic added, has less than the source of most of it.

        Compared are their networks or, within one network, the peers.
        """
        most = max(shares, key=lambda share: share.size)
        if most.root == _NEW:
            return True
        network_key, has = self._find(_ESTABLISHED, asker.network)
        held_by = most.network_key
        if network_key == held_by:
            _, has = self._find(network_key, asker.peer)
            held_by = most.peer_key
        return has + sum(share.size for share in shares) < self._bytes(held_by)

    def _move(self, shares: list[_Share], target: Callable[[_Share], int]) -> None:
        self._known.clear()
        sums: Counter[int] = Counter()
        for share in shares:
            joined_key = target(share)
            self._connection.execute(
                "UPDATE share SET source_key = ? WHERE share_key = ?", (joined_key, share.share_key)
            )
            sums[joined_key] += share.size
            sums[share.peer_key] -= share.size
        self._change_sources(sums)

    def _asked_for(self, topic_key: int) -> int | None:
        """Any share of the topic: all have the same source."""
        found: tuple[int] | None = self._connection.execute(
            "SELECT share_key FROM share WHERE topic_key = ? LIMIT 1", (topic_key,)
        ).fetchone()
        return None if found is None else found[0]

    def _source(self, root: int, source: Source) -> int:
        """Return the key of the peer, created if necessary."""
        parent_key = root
        for name in (source.network, source.peer):
            self._connection.execute(
                "INSERT OR IGNORE INTO source (parent_key, name, bytes) VALUES (?, ?, 0)",
                (parent_key, name),
            )
            parent_key, _ = self._find(parent_key, name)
        return parent_key

    def _find(self, parent_key: int, name: str) -> tuple[int, int]:
        """Return the key and the bytes of a source; 0 and 0 if it does not exist."""
        row: tuple[int, int] | None = self._connection.execute(
            "SELECT source_key, bytes FROM source WHERE parent_key = ? AND name = ?",
            (parent_key, name),
        ).fetchone()
        return row or (0, 0)

    def _bytes(self, source_key: int) -> int:
        row: tuple[int] = self._connection.execute(
            "SELECT bytes FROM source WHERE source_key = ?", (source_key,)
        ).fetchone()
        return row[0]

    def _share(self, source_key: int, topic_key: int) -> int:
        row: tuple[int] | None = self._connection.execute(
            "SELECT share_key FROM share WHERE topic_key = ? AND source_key = ?",
            (topic_key, source_key),
        ).fetchone()
        if row is None:
            row = self._connection.execute(
                "INSERT INTO share (source_key, topic_key, bytes) VALUES (?, ?, 0) "
                "RETURNING share_key",
                (source_key, topic_key),
            ).fetchone()
        return row[0]

    def _change_sources(self, sums: Counter[int]) -> None:
        """Add the changes from peers up to the class."""
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
        """Return the bytes and the key of the largest source below; 0 bytes if there is none."""
        found: tuple[int, int] | None = self._connection.execute(
            "SELECT bytes, source_key FROM source WHERE parent_key = ? ORDER BY bytes DESC LIMIT 1",
            (parent_key,),
        ).fetchone()
        return (0, 0) if found is None else found
