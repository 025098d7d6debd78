"""One instance of an author: whose it is, and which of its messages are where in the log.

Consecutive sequence numbers cost four bytes per message.  A number far from all others, which only
a hostile author or a lost past produces, is stored separately.  The contents of the log's rows are
the log's business.
"""

from array import array
from collections.abc import Sequence

from engine.core.ids import ParticipantId
from engine.core.sds.sequences import SequenceSet

_NOWHERE = 2**32 - 1
_NEAR = 64
"""A number at most this far beyond the last one leaves room for those between."""


class Author:
    """The sequence numbers of one instance."""

    __slots__ = ("_apart", "_rows", "held", "newest", "owner")

    def __init__(self, owner: ParticipantId) -> None:
        self.owner = owner
        self.held = SequenceSet()
        self.newest = 0
        """The log row of its last message in the log's order; the log determines which."""
        self._rows = array("I", (_NOWHERE,))
        """The log's row by sequence number."""
        self._apart: dict[int, int] = {}

    def note(self, sequence: int, row: int) -> bool:
        """Note the row of the message with this number; False if there is one already."""
        rows, lasts = self._rows, self.held.lasts
        beyond = sequence - len(rows)
        if beyond == 0 and not self._apart:
            rows.append(row)
            if lasts and lasts[-1] == sequence - 1:  # The next one, as nearly all are.
                lasts[-1] = sequence
                return True
        elif self.row_of(sequence) is not None:
            return False
        elif -len(rows) <= beyond < 0:
            rows[sequence] = row
        elif 0 <= beyond < _NEAR:
            rows.extend([_NOWHERE] * beyond)
            rows.append(row)
        else:
            self._apart[sequence] = row
        self.held.add(sequence)
        return True

    @property
    def next_sequence(self) -> int:
        """The number from which ``note_run`` can go on; 0, which none has, if it cannot."""
        lasts = self.held.lasts
        last = lasts[-1] if lasts else 0
        return last + 1 if not self._apart and len(self._rows) == last + 1 else 0

    def note_run(self, first: int, rows: Sequence[int]) -> None:
        """Note the rows of consecutive numbers from ``next_sequence`` on."""
        self._rows.extend(rows)
        self.held.add_range(first, first + len(rows) - 1)

    def replace(self, sequence: int, row: int) -> None:
        """From now on another message counts under this number."""
        if sequence in self._apart:
            self._apart[sequence] = row
        else:
            self._rows[sequence] = row

    def forget(self, sequence: int) -> None:
        """The message with this number left the log."""
        if self._apart.pop(sequence, None) is None:
            self._rows[sequence] = _NOWHERE
        self.held.remove(sequence)

    def row_of(self, sequence: int) -> int | None:
        """The row of the message with this number; None if it is not here."""
        row = self._rows[sequence] if 0 <= sequence < len(self._rows) else _NOWHERE
        return self._apart.get(sequence) if row == _NOWHERE else row
