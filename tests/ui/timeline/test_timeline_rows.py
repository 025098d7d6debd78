"""Rows follow from messages alone: nothing is lost, and runs break where they must."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import MessageId, Position, UnixMs
from engine.events import MessageKind, MessageView
from tests.ui.timeline.timeline_stage import MINUTE_MS, NOW, PEOPLE, at, gap, message
from ui.timeline.rows import (
    DayRow,
    GapRow,
    MessageRow,
    Row,
    SystemRow,
    UnreadRow,
    derive_rows,
    local_day,
    local_time,
    message_of,
    order,
    row_key,
)


def rows_of(
    messages: list[MessageView],
    *,
    with_gap: bool = False,
    first_unread: Position | None = None,
    starts_at_beginning: bool = False,
) -> list[Row]:
    return derive_rows(
        sorted(messages, key=order),
        gap=gap() if with_gap else None,
        first_unread=first_unread,
        starts_at_beginning=starts_at_beginning,
    )


def flags(rows: list[Row]) -> list[tuple[bool, bool]]:
    return [(row.first, row.last) for row in rows if isinstance(row, MessageRow)]


def test_a_run_is_one_sender_within_five_minutes() -> None:
    times = [0, 5 * MINUTE_MS, 10 * MINUTE_MS + 1]
    run = [message(i + 1, sent_ms=UnixMs(at(10, 0) + t)) for i, t in enumerate(times)]
    assert flags(rows_of(run)) == [(True, False), (False, True), (True, True)]


def test_the_unread_line_is_never_above_who_only_joined() -> None:
    joined = message(1, "Luc", kind=MessageKind.JOINED)
    rows = rows_of([joined, message(2, "Maya")], first_unread=joined.position)
    assert [type(row) for row in rows] == [SystemRow, UnreadRow, MessageRow]
    assert rows_of([joined], first_unread=joined.position) == [SystemRow(message=joined)]


def test_ones_own_time_stands_only_where_it_changes() -> None:
    times = [at(14, 0), at(14, 0), at(14, 1), at(14, 1)]
    own = [message(n + 1, "Ines", sent_ms=sent) for n, sent in enumerate(times)]
    theirs = [message(n + 11, "Luc", sent_ms=at(14, 1)) for n in range(2)]
    later = [message(n + 21, "Ines", sent_ms=at(14, 1)) for n in range(2)]
    assert timed(rows_of([*own, *theirs, *later])) == [
        *(True, False, True, False),
        *(True, True),
        *(True, False),
    ]


def timed(rows: list[Row]) -> list[bool]:
    return [row.timed for row in rows if isinstance(row, MessageRow)]


def test_a_run_breaks_on_another_sender() -> None:
    rows = rows_of([message(1, "Maya"), message(2, "Luc"), message(3, "Luc")])
    assert flags(rows) == [(True, True), (True, False), (False, True)]


def test_a_clock_that_went_back_breaks_a_run_too() -> None:
    rows = rows_of([message(1, sent_ms=at(14, 0)), message(2, sent_ms=at(13, 0))])
    assert flags(rows) == [(True, True), (True, True)]


def test_midnight_breaks_a_run_and_brings_a_day() -> None:
    rows = rows_of([message(1, sent_ms=at(23, 59, 19)), message(2, sent_ms=at(0, 1, 20))])
    assert [type(row) for row in rows] == [MessageRow, DayRow, MessageRow]
    assert isinstance(rows[1], DayRow)
    assert rows[1].day == date(2026, 11, 20)
    assert flags(rows) == [(True, True), (True, True)]


def test_only_a_beginning_starts_with_its_day() -> None:
    assert isinstance(rows_of([message(1)], starts_at_beginning=True)[0], DayRow)
    assert isinstance(rows_of([message(1)])[0], MessageRow)


@pytest.mark.parametrize("kind", [MessageKind.CREATED, MessageKind.JOINED, MessageKind.LEFT])
def test_a_system_line_stands_alone_and_breaks_a_run(kind: MessageKind) -> None:
    rows = rows_of([message(1), message(2, kind=kind), message(3)])
    assert [type(row) for row in rows] == [MessageRow, SystemRow, MessageRow]
    assert flags(rows) == [(True, True), (True, True)]


def test_what_a_newer_version_sent_is_a_row_like_others() -> None:
    assert isinstance(rows_of([message(1, kind=MessageKind.UNSUPPORTED)])[0], MessageRow)


def test_the_unread_line_stands_before_the_first_unread_and_breaks_a_run() -> None:
    messages = [message(1), message(2), message(3)]
    rows = rows_of(messages, first_unread=messages[1].position)
    assert [type(row) for row in rows] == [MessageRow, UnreadRow, MessageRow, MessageRow]
    assert flags(rows) == [(True, True), (True, False), (False, True)]


def test_what_one_wrote_oneself_is_never_unread() -> None:
    messages = [message(1), message(2, "Ines"), message(3)]
    rows = rows_of(messages, first_unread=messages[1].position)
    assert [type(row) for row in rows] == [MessageRow, MessageRow, UnreadRow, MessageRow]


def test_the_unread_line_survives_the_deletion_of_its_message() -> None:
    gone = Position(lamport_timestamp=2, message_id=MessageId("deleted"))
    rows = rows_of([message(1), message(3)], first_unread=gone)
    assert [type(row) for row in rows] == [MessageRow, UnreadRow, MessageRow]


def test_the_gap_stands_between_what_has_its_place_and_what_waits() -> None:
    rows = rows_of([message(1, waiting=True), message(2), message(3)], with_gap=True)
    assert [type(row) for row in rows] == [MessageRow, MessageRow, GapRow, MessageRow]
    assert flags(rows) == [(True, False), (False, True), (True, True)]


def test_what_waits_is_no_part_of_a_run_of_what_does_not() -> None:
    rows = rows_of([message(1), message(2, waiting=True), message(3, waiting=True)])
    assert flags(rows) == [(True, True), (True, False), (False, True)]


def test_a_gap_with_nothing_behind_it_stands_at_the_end() -> None:
    assert isinstance(rows_of([message(1)], with_gap=True)[-1], GapRow)


def test_an_empty_conversation_can_have_a_gap() -> None:
    assert [type(row) for row in rows_of([], with_gap=True)] == [GapRow]


@pytest.mark.parametrize("hostile", [-(2**63), -1, 0, 2**63 - 1, 10**30])
def test_no_foreign_clock_leaves_the_calendar(hostile: int) -> None:
    assert local_day(UnixMs(hostile)) == local_time(UnixMs(hostile)).date()
    assert rows_of([message(1, sent_ms=UnixMs(hostile))], starts_at_beginning=True)


@given(
    st.lists(
        st.builds(
            message,
            st.integers(0, 10**6),
            st.sampled_from(PEOPLE),
            sent_ms=st.integers(-(2**40), 2**60).map(UnixMs),
            kind=st.sampled_from(MessageKind),
            waiting=st.booleans(),
        ),
        unique_by=lambda m: m.message_id,
        max_size=40,
    ),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_every_message_is_one_row_in_order_and_runs_are_closed(
    messages: list[MessageView], with_gap: bool, unread_from: int
) -> None:
    first_unread = Position(lamport_timestamp=unread_from, message_id=MessageId(""))
    rows = rows_of(messages, with_gap=with_gap, first_unread=first_unread)
    shown = [m for m in map(message_of, rows) if m is not None]
    assert shown == sorted(messages, key=order)
    assert len({row_key(row) for row in rows}) == len(rows)
    assert sum(isinstance(row, GapRow) for row in rows) == with_gap
    assert sum(isinstance(row, UnreadRow) for row in rows) <= 1
    for above, below in zip([None, *rows], [*rows, None], strict=True):
        if isinstance(above, MessageRow):
            goes_on = isinstance(below, MessageRow) and not below.first
            assert above.last != goes_on
        if isinstance(below, MessageRow) and not below.first:
            assert isinstance(above, MessageRow)
            assert above.message.sender_id == below.message.sender_id
            assert above.message.waiting == below.message.waiting


def test_today_is_where_this_device_is() -> None:
    assert local_day(NOW) == date(2026, 11, 20)
    assert local_day(at(23, 59, 19)) == date(2026, 11, 19)
    assert local_day(at(0, 0, 20)) == date(2026, 11, 20)
