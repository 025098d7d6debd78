"""Who holds which message, as values: what the matrix paints, the table says and exports write.

A filled cell is proved by a signature, a hollow one is the guess of a filter, and a dot says only
that there was no sign yet.  Nothing here says that somebody lacks a message: nobody can know that.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct

from engine.core.ids import MessageId, ParticipantId
from engine.delivery_views import DeliveryMark, DeliveryMessage
from engine.events import MemberView
from ui.delivery.table import MadeRows
from ui.foreign_text import one_line
from ui.regional import clock_with_seconds
from ui.times import moment
from ui.translate import tr

MOST_COLUMNS: Final = 400
MOST_MEMBERS: Final = 200
_NAME: Final = 40
_ABSENT: Final = {DeliveryMark.MISSING, DeliveryMark.LOST}


class Cell(Enum):
    HOLDS = auto()
    MAYBE = auto()
    NO_SIGN = auto()
    WROTE = auto()
    MISSING_HERE = auto()
    NOT_SENT = auto()


class Holder(Struct, frozen=True, kw_only=True):
    participant_id: ParticipantId
    name: str
    """As it is shown: "You" for us."""
    known_as: str
    """For the initial on the avatar."""
    is_self: bool


class Column(Struct, frozen=True, kw_only=True, dict=True):
    message: DeliveryMessage
    holders: tuple[Holder, ...]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Of each holder; made when it is looked at, since few columns are in view."""
        return _cells(self.message, self.holders, _rows_of(self.holders))

    @property
    def message_id(self) -> MessageId:
        return self.message.message_id

    @property
    def held_words(self) -> str:
        """How many others surely hold it; nothing of one that is not here."""
        message = self.message
        return "" if message.mark in _ABSENT or not message.of else str(message.held_by)


class Matrix(Struct, frozen=True, kw_only=True):
    holders: tuple[Holder, ...]
    columns: tuple[Column, ...]
    more_members: int = 0


EMPTY: Final = Matrix(holders=(), columns=())


def matrix_of(
    messages: Sequence[DeliveryMessage], members: Sequence[MemberView], before: Matrix = EMPTY
) -> Matrix:
    """Of the newest messages; where nobody is known to be a member, of those who wrote or hold.

    Columns of ``before`` in which nothing changed are taken over.
    """
    shown = messages[-MOST_COLUMNS:]
    holders = _members(members) or _heard_of(shown)
    kept = tuple(holders)
    if len(kept) > MOST_MEMBERS:
        kept = (*kept[: MOST_MEMBERS - 1], kept[-1])  # We are among them.
    known_columns = (
        {each.message_id: each for each in before.columns} if kept == before.holders else {}
    )
    columns = tuple(
        column
        if (column := known_columns.get(message.message_id)) and column.message == message
        else Column(message=message, holders=kept)
        for message in shown
    )
    return Matrix(
        holders=kept,
        columns=columns,
        more_members=len(holders) - len(kept),
    )


def _members(members: Sequence[MemberView]) -> list[Holder]:
    """Others first, we last, as in the graph; who left is not asked to hold anything."""
    here = [member for member in members if not member.has_left]
    return [
        Holder(
            participant_id=member.participant_id,
            name=tr("You") if member.is_self else one_line(member.name, _NAME),
            known_as=one_line(member.name, _NAME),
            is_self=member.is_self,
        )
        for member in sorted(here, key=lambda member: member.is_self)
    ]


def _heard_of(messages: Sequence[DeliveryMessage]) -> list[Holder]:
    found: dict[ParticipantId, Holder] = {}
    for message in messages:
        who = message.sender_id
        if who is not None and who not in found:
            name = tr("You") if message.is_own else one_line(message.sender_name, _NAME)
            known_as = one_line(message.sender_name, _NAME)
            found[who] = Holder(
                participant_id=who, name=name, known_as=known_as, is_self=message.is_own
            )
    return sorted(found.values(), key=lambda holder: holder.is_self)


@lru_cache(maxsize=2)
def _rows_of(holders: tuple[Holder, ...]) -> Mapping[ParticipantId, int]:
    return {holder.participant_id: row for row, holder in enumerate(holders)}


def _cells(
    message: DeliveryMessage, holders: Sequence[Holder], rows: Mapping[ParticipantId, int]
) -> tuple[Cell, ...]:
    """Later words win: who holds it, then who wrote it, and then what we ourselves know."""
    cells = [Cell.NO_SIGN] * len(holders)
    for mark in message.holders:
        row = rows.get(mark.participant_id)
        if row is not None:
            cells[row] = Cell.HOLDS if mark.certain else Cell.MAYBE
    wrote = None if message.sender_id is None else rows.get(message.sender_id)
    if holders and holders[-1].is_self:
        cells[-1] = Cell.HOLDS
    if wrote is not None:
        failed = message.mark is DeliveryMark.FAILED and holders[wrote].is_self
        cells[wrote] = Cell.NOT_SENT if failed else Cell.WROTE
    if holders and holders[-1].is_self and message.mark in _ABSENT:
        cells[-1] = Cell.MISSING_HERE
    return tuple(cells)


# --- words ----------------------------------------------------------------------------------------


def cell_words(cell: Cell) -> str:
    return {
        Cell.HOLDS: tr("holds it"),
        Cell.MAYBE: tr("maybe"),
        Cell.NO_SIGN: tr("no sign yet"),
        Cell.WROTE: tr("wrote it"),
        Cell.MISSING_HERE: tr("missing here"),
        Cell.NOT_SENT: tr("not sent"),
    }[cell]


def message_words(message: DeliveryMessage) -> str:
    """`"Maya, 14:03:10, arrived late"`."""
    sender = tr("You") if message.is_own else one_line(message.sender_name, _NAME)
    at_ms = message.sent_ms or message.received_ms
    words = [sender or tr("Somebody")]
    if at_ms is not None:
        words.append(clock_with_seconds(moment(at_ms)))
    mark = mark_words(message.mark)
    return ", ".join([*words, mark] if mark else words)


def mark_words(mark: DeliveryMark) -> str:
    return {
        DeliveryMark.MISSING: tr("missing"),
        DeliveryMark.LOST: tr("given up"),
        DeliveryMark.WAITING: tr("waits for others"),
        DeliveryMark.FAILED: tr("not sent"),
        DeliveryMark.ONLY_HERE: tr("only here"),
        DeliveryMark.LATE: tr("arrived late"),
        DeliveryMark.HERE: "",
    }[mark]


def spoken_cell(matrix: Matrix, column: int, row: int) -> str:
    """`"Jonas: holds it, since 14:03:12. Maya, 14:03:10. Held by 3 of 5"`."""
    found, holder = matrix.columns[column], matrix.holders[row]
    words = cell_words(found.cells[row])
    since = next(
        (
            mark.since_ms
            for mark in found.message.holders
            if mark.participant_id == holder.participant_id
        ),
        None,
    )
    if since is not None:
        words = tr("{state}, known since {time}").format(
            state=words, time=clock_with_seconds(moment(since))
        )
    said = f"{holder.name}: {words}. {message_words(found.message)}"
    if found.held_words:
        held = tr("Held by {number} of {all}").format(
            number=found.message.held_by, all=found.message.of
        )
        said = f"{said}. {held}"
    return said


def table_of(matrix: Matrix) -> tuple[tuple[str, ...], Sequence[Sequence[str]]]:
    """Headings, and a row for each message, the newest first."""
    headings = (tr("Message"), *(holder.name for holder in matrix.holders), tr("Held by"))
    return headings, MadeRows(matrix.columns[::-1], _words_of)


def _words_of(column: Column) -> tuple[str, ...]:
    return (
        message_words(column.message),
        *map(cell_words, column.cells),
        f"{column.held_words}/{column.message.of}" if column.held_words else "",
    )
