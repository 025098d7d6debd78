"""Tables below one place, behind one interface: read as DataFrames, written by runs.

What a run writes is seen as a whole, from the moment at which its *head* is: a small record that
names every table's state, kept where a new one takes the old one's place in one step (``Place``).
What a table's state is, its format knows (``Format``): Parquet directories on a disk, or a version
of a Delta table anywhere.  A run that was killed has left data that no head names; readers never
saw it, and the next run begins at the last head.  Rows tell which run wrote them: ``RUN``.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
Told: TypeAlias = Mapping[str, Json]

RUN: Final = "run"
"""The column of every table that names the run which wrote the row."""
AREAS: Final = ("bronze", "silver", "audit")
"""Tables lie in these, and nothing else does."""
KEPT_RUNS: Final = 1_000
"""So many of the last are listed."""


class LakeError(Exception):
    """A place of tables cannot be used; the text says which, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What readers see.  ``number``: how many there were before it; 0 if nothing was written."""

    number: int = 0
    tables: Mapping[str, Told] = field(default_factory=dict)
    facts: Mapping[str, Json] = field(default_factory=dict)
    """What stages remember from run to run, such as how far each log is read."""
    runs: Sequence[Told] = ()
    """The newest last: ``id``, ``ended_ms`` and ``rows`` by table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What of a table is replaced: rows whose ``by`` is one of ``keys``."""

    by: str
    keys: Sequence[str]


class Place(Protocol):
    """Where heads are kept.  Everything raises LakeError."""

    def head(self) -> Head: ...

    def commit(self, head: Head) -> None:
        """It becomes what readers see, unless another one has its number already."""

    def only_writer(self) -> AbstractContextManager[None]:
        """Refused while another process has it."""


class Format(Protocol):
    """How tables lie.  What ``add`` and ``replace`` give back is the table's new state."""

    def read(self, name: str, told: Told) -> "DataFrame": ...

    def add(self, name: str, rows: "DataFrame", told: Told | None, run: str) -> Told: ...

    def replace(
        self, name: str, rows: "DataFrame", told: Told | None, run: str, part: Part | None
    ) -> Told:
        """Of everything, or of a part; ``rows`` may be made of what is replaced."""

    def settle(self, head: Head) -> None:
        """Before a run: nothing is left of one that was killed."""

    def forget(self, head: Head, before: Head) -> None:
        """After a run: what neither names is not needed any more."""


def count_of(told: Told) -> int:
    """How many rows a run wrote last."""
    rows = told.get("added")
    return rows if isinstance(rows, int) else 0
