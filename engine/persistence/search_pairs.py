"""How two neighbours in a script without spaces become a term of the search's index.

Hardly two messages of a bucket have the same two ideographs, and a term of one message takes
several times the room of an entry in a list.  So these terms begin with the code of an *epoch*,
some buckets that were begun one after another, and of the second character a term has only a kind.
A character that many messages have is given many kinds, so that each term has some dozens of
messages: that takes two bytes for each, and no more of them are compared in vain.  What is common
is learnt from messages as an epoch begins, and kept beside the index.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from engine.core.search_text import terms
from engine.persistence.search_tables import DIGITS, code_of

EPOCH_BUCKETS: Final = 16
"""More would make a term's list longer, and what all terms of one character have slower to read."""
LIST_ROWS: Final = 64
"""About so many messages have a term.  More would be compared in vain, fewer take more room."""
FEWEST_KINDS: Final = 8
"""Also where nothing was learnt yet, or other things were said when it was."""
LEARN_FROM: Final = 512
"""Messages.  Of fewer than half of it nothing is learnt."""
_LEARN_CHARACTERS: Final = 200
"""Of each."""
_KINDS: Final = tuple(first + second for first in DIGITS for second in DIGITS)
_FACTOR, _STEP, _MASK = 0x9E3779B1, 0x85EBCA6A, 0xFFFFFFFF
"""Multiplying by an odd number of 32 bits spreads characters evenly over the highest bits."""

_SOME_TEXTS: Final = f"""
SELECT substr(text, 1, {_LEARN_CHARACTERS}) FROM message WHERE message_key <= ?
ORDER BY message_key DESC LIMIT ?
"""  # noqa: S608 - our own literal


def epoch_of(bucket_key: int) -> int:
    """The first ones are small, so that a new profile soon learns what is common in it."""
    if bucket_key < 2 * EPOCH_BUCKETS:
        return bucket_key.bit_length() - 1
    return bucket_key // EPOCH_BUCKETS + EPOCH_BUCKETS.bit_length() - 2


def _buckets_in(epoch: int) -> int:
    return min(1 << epoch, EPOCH_BUCKETS)


class Kinds:
    """The terms of one epoch."""

    def __init__(self, epoch: int, common: Mapping[str, int]) -> None:
        """``common``: how many kinds there are after a character, if more than the fewest."""
        self._code = code_of(epoch)[1:]
        self._common = common
        self._factor = (_FACTOR + epoch * _STEP) & _MASK

    def terms(self, pairs: Iterable[str]) -> list[str]:
        """Of two neighbours; of one character, what all terms begin with in which it is first."""
        found: list[str] = []
        for pair in pairs:
            term = self._code + pair[0]
            if len(pair) > 1:
                # Another factor in each epoch: two of one kind here are not so in the next.
                spread = ord(pair[1]) * self._factor & _MASK
                term += _KINDS[spread * self._common.get(pair[0], FEWEST_KINDS) >> 32]
            found.append(term)
        return found

    def is_common(self, character: str) -> bool:
        return character in self._common


def read_kinds(
    connection: sqlite3.Connection, index: str, epoch: int, pairs: Iterable[str]
) -> Kinds | None:
    """What the terms of ``pairs`` need.  None if nothing was learnt for this epoch."""
    sql = f"SELECT kinds FROM {index}_common WHERE epoch = ? AND character = ?"  # noqa: S608
    common = dict[str, int]()
    for character in {"", *(pair[0] for pair in pairs)}:
        row: tuple[int] | None = connection.execute(sql, (epoch, character)).fetchone()
        if row is not None:
            common[character] = row[0]
    return Kinds(epoch, common) if "" in common else None


def all_kinds(connection: sqlite3.Connection, index: str, epoch: int) -> Kinds | None:
    """What all terms of an epoch need.  None if nothing was learnt for it."""
    sql = f"SELECT character, kinds FROM {index}_common WHERE epoch = ?"  # noqa: S608 - our name
    common: dict[str, int] = dict(connection.execute(sql, (epoch,)))
    return Kinds(epoch, common) if common else None


def learn_kinds(
    connection: sqlite3.Connection, index: str, epoch: int, *, bucket_rows: int, newest: int
) -> Kinds:
    """From ``newest`` and messages before it.  What was learnt once stays: terms depend on it."""
    texts = connection.execute(_SOME_TEXTS, (newest, LEARN_FROM)).fetchall()
    common = dict[str, int]()
    if len(texts) >= LEARN_FROM // 2:
        common = _common((text for (text,) in texts), _buckets_in(epoch) * bucket_rows / len(texts))
    # A row of nothing says that this was done.
    connection.executemany(
        f"INSERT INTO {index}_common (epoch, character, kinds) VALUES (?, ?, ?)",  # noqa: S608
        [(epoch, character, kinds) for character, kinds in (("", 0), *common.items())],
    )
    return Kinds(epoch, common)


def _common(texts: Iterable[str], weight: float) -> dict[str, int]:
    """``weight``: of how many messages each text is an example."""
    having: Counter[str] = Counter()
    for text in texts:
        having.update({pair[0] for pair in terms(text).pairs})
    kinds = {one: min(int(weight * n / LIST_ROWS), len(_KINDS)) for one, n in having.items()}
    return {character: number for character, number in kinds.items() if number > FEWEST_KINDS}
