"""A log as columns, as a store loads it at start: a million entries at a time.

An object per entry would cost a start more time and memory than all of its other work.  From
outside a table is a sequence of ``LogEntry``, each created when it is read.  Senders and instances
repeat, so each is stored once.  Order and look-up by id are left to ``LogIndex``.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar, overload

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.sds.vocabulary import LogEntry

Row: TypeAlias = tuple[
    int,
    MessageId,
    ParticipantId,
    bytes | None,
    InstanceId | None,
    int | None,
    MessageId | None,
    int,
]
"""Lamport timestamp, id, sender and retrieval hint; the author's instance, sequence and previous
message, if any; and the size."""

_T = TypeVar("_T")
_CHUNK = 4_096
_NO_SEQUENCE = -1


class LogTable(Sequence[LogEntry]):
    """Log entries by number, in the order in which they were added."""

    __slots__ = (
        "hints",
        "ids",
        "instances",
        "known_instances",
        "known_senders",
        "lamports",
        "previous",
        "senders",
        "sequences",
        "sizes",
    )

    def __init__(self) -> None:
        self.lamports = array("q")
        self.ids: list[MessageId] = []
        self.senders: list[ParticipantId] = []
        self.hints: list[bytes | None] = []
        self.instances: list[InstanceId | None] = []
        self.sequences = array("q")
        self.sizes = array("I")
        self.previous: dict[int, MessageId] = {}
        """By number, for the few whose author's previous message is not known to be here."""
        self.known_senders: dict[ParticipantId, ParticipantId] = {}
        self.known_instances: dict[InstanceId | None, InstanceId | None] = {}

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> "LogTable":
        """Columns from rows."""
        table = cls()
        table.add_rows(rows)
        return table

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add rows, a chunk at a time."""
        rows = iter(rows)
        while chunk := list(islice(rows, _CHUNK)):
            lamports, ids, senders, hints, instances, sequences, previous, sizes = zip(
                *chunk, strict=True
            )
            if previous.count(None) < len(chunk):  # Few chunks have one.
                numbered = enumerate(previous, len(self.ids))
                self.previous.update((row, item) for row, item in numbered if item is not None)
            self.lamports.extend(lamports)
            self.ids.extend(ids)
            self.senders.extend(_shared(senders, self.known_senders))
            self.hints.extend(hints)
            self.instances.extend(_shared(instances, self.known_instances))
            self.sequences.extend(_NO_SEQUENCE if n is None else n for n in sequences)
            self.sizes.extend(sizes)

    @classmethod
    def of(cls, entries: Iterable[LogEntry]) -> "LogTable":
        """The same entries in a table of its own."""
        table = cls()
        if isinstance(entries, LogTable):
            table.lamports = entries.lamports[:]
            table.ids = entries.ids[:]
            table.senders = entries.senders[:]
            table.hints = entries.hints[:]
            table.instances = entries.instances[:]
            table.sequences = entries.sequences[:]
            table.sizes = entries.sizes[:]
            table.previous = dict(entries.previous)
            table.known_senders = dict(entries.known_senders)
            table.known_instances = dict(entries.known_instances)
        else:
            for entry in entries:
                table.append(entry)
        return table

    def append(self, entry: LogEntry) -> int:
        """Add one entry; returns its number."""
        position, sender_id, author, ids = entry.position, entry.sender_id, entry.author, self.ids
        number = len(ids)
        self.lamports.append(position.lamport_timestamp)
        ids.append(position.message_id)
        self.senders.append(self.known_senders.setdefault(sender_id, sender_id))
        self.hints.append(entry.retrieval_hint)
        self.sizes.append(entry.size)
        if entry.previous_id is not None:
            self.previous[number] = entry.previous_id
        if author is None:
            self.instances.append(None)
            self.sequences.append(_NO_SEQUENCE)
        else:
            instance_id = author.instance_id
            self.instances.append(self.known_instances.setdefault(instance_id, instance_id))
            self.sequences.append(author.sequence)
        return number

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, number: int) -> LogEntry: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[LogEntry, ...]: ...

    def __getitem__(self, number: int | slice) -> LogEntry | tuple[LogEntry, ...]:
        if isinstance(number, slice):
            return tuple(self[index] for index in range(*number.indices(len(self))))
        instance_id = self.instances[number]
        return LogEntry(
            position=Position(lamport_timestamp=self.lamports[number], message_id=self.ids[number]),
            sender_id=self.senders[number],
            retrieval_hint=self.hints[number],
            author=(
                None
                if instance_id is None
                else AuthorSequence(instance_id=instance_id, sequence=self.sequences[number])
            ),
            previous_id=self.previous.get(number),
            size=self.sizes[number],
        )

    def __iter__(self) -> Iterator[LogEntry]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence of the same entries."""
        if not isinstance(other, LogTable | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]  # mutable


def _same(one: object, other: object) -> bool:
    return one == other


def _shared(values: Sequence[_T], seen: dict[_T, _T]) -> Iterator[_T]:
    """The same values, equal ones as one object."""
    return map(seen.setdefault, values, values)
