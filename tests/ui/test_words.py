"""The sentences of the window, and how strangers' text is made harmless."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import DeliveryState, UnixMs
from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionView, DeliveryView
from tests.ui.scripted_engine import ScriptedEngine, member
from ui.beads import Bead, health_words, strung
from ui.connection_words import connection_line, traffic
from ui.conversation_words import chance_words, members_line, typing_line
from ui.desktop.notification_words import message_line
from ui.file_words import size_words
from ui.foreign_text import breaking, file_name, one_line
from ui.timeline.row_words import spoken_row
from ui.timeline.rows import UnreadRow
from ui.times import clock_time, list_time, moment, spoken_time
from ui.translate import tr
from ui.window.composer import bytes_over_limit

NOW = datetime(2026, 11, 20, 14, 8, tzinfo=UTC)


def ms(moment: str) -> int:
    return int(datetime.fromisoformat(f"{moment}+00:00").timestamp() * 1000)


def test_what_is_new_since_another_day_names_the_day() -> None:
    since_ms = UnixMs(ms("2026-11-18T12:12"))
    row, when = UnreadRow(since_ms=since_ms), clock_time(moment(since_ms))
    assert spoken_row(row, now_ms=UnixMs(since_ms + 60_000)) == f"New since {when}"
    two_days_later = UnixMs(ms("2026-11-20T12:12"))
    assert spoken_row(row, now_ms=two_days_later) == f"New since 18 November, {when}"


def test_a_long_file_name_shows_what_kind_it_is() -> None:
    shown = file_name("holiday pictures of the family " * 4 + "\u202e.jpg.exe")
    assert len(shown) == 80
    assert shown.startswith("holiday pictures of the family ")
    assert shown.endswith("family .jpg.exe")
    assert file_name("notes.txt") == "notes.txt"


@pytest.mark.parametrize(
    ("moment", "listed", "spoken"),
    [
        ("2026-11-20T09:05", "09:05", "09:05"),
        ("2026-11-19T23:59", "Thu", "yesterday 23:59"),
        ("2026-11-14T12:00", "Sat", "14 November 2026, 12:00"),
        ("2026-11-13T12:00", "13 Nov", "13 November 2026, 12:00"),
        ("2025-01-02T03:04", "2 Jan 2025", "2 January 2025, 03:04"),
        ("2026-11-21T00:01", "21 Nov", "21 November 2026, 00:01"),
    ],
)
def test_times_grow_vaguer_with_age(moment: str, listed: str, spoken: str) -> None:
    assert list_time(ms(moment), NOW) == listed
    assert spoken_time(ms(moment), NOW) == spoken


@pytest.mark.parametrize("sent_ms", [-1, 2**53 - 1, 2**63])
def test_a_time_that_no_calendar_has_is_said_all_the_same(sent_ms: int) -> None:
    assert list_time(sent_ms, NOW)
    assert spoken_time(sent_ms, NOW)


@given(st.text(max_size=2000), st.integers(2, 300))
def test_one_line_is_one_bounded_line_that_turns_nothing_around(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def test_one_line_does_not_read_more_than_it_may_show() -> None:
    assert one_line("x" * 10_000_000, 10) == "xxxxxxxxx…"


def test_members_are_named_and_counted_without_those_who_left() -> None:
    engine = ScriptedEngine()
    view = engine.views[engine.add_group("G", others=("Maya", "Jo"))]
    assert members_line(view) == "3 members: Maya, Jo, you"
    assert members_line(view, short=True) == "3 members"
    gone = tuple(replace(m, has_left=m.name == "Jo") for m in view.members)
    assert members_line(replace(view, members=gone)) == "2 members: Maya, you"
    alone = (member("Ines", is_self=True),)
    assert members_line(replace(view, members=alone)) == "1 member: only you so far"
    gone = (*alone, replace(member("Luc"), has_left=True))
    assert members_line(replace(view, members=gone)) == "1 member: only you"


def test_typing_names_at_most_two() -> None:
    assert typing_line(()) == ""
    assert typing_line(("Maya",)) == "Maya is typing…"
    assert typing_line(("Maya", "Jo")) == "Maya and Jo are typing…"
    assert typing_line(("Maya", "Jo", "Luc")) == "Maya and 2 others are typing…"


def test_offline_waits_for_the_network_and_counts_nothing() -> None:
    offline = ConnectionView(
        level=ConnectionLevel.OFFLINE,
        peers=0,
        reason=ConnectionReason.NOT_STARTED,
        bytes_in=0,
        bytes_out=0,
    )
    assert connection_line(offline) == "Not connected yet"
    alone = replace(offline, reason=ConnectionReason.NOBODY_CONNECTED)
    assert connection_line(alone) == "Waiting for network"
    weak = replace(offline, level=ConnectionLevel.MINIMAL, peers=1)
    assert connection_line(weak) == "Online, 1 peer"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 kB"),
        (1024, "1.0 kB"),
        (1_022_000, "998.0 kB"),
        (1_024_614, "1.0 MB"),
        (1_230_000, "1.2 MB"),
        (5 * 1024**4, "5.0 TB"),
    ],
)
def test_traffic_has_fitting_units(number: int, words: str) -> None:
    assert traffic(number) == words


def test_a_file_of_a_thousand_kilobytes_is_a_megabyte() -> None:
    assert (size_words(1_022_000), size_words(1_024_614)) == ("998 kB", "1.0 MB")


def test_counting_knows_one_from_many() -> None:
    said = [tr("%n messages", "%n message", n) for n in (0, 1, 2)]
    assert said == ["0 messages", "1 message", "2 messages"]


@given(st.text(max_size=200).map(lambda piece: piece * 400))
def test_the_limit_is_counted_in_bytes_as_the_engine_counts(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert bytes_over_limit(text) == max(0, size - 64 * 1024)


def test_beads_stand_in_order_with_holes_before_what_waits_for_them() -> None:
    engine = ScriptedEngine()
    group = engine.add_group("G")
    rows = [engine.row(group, member("Maya"), "x") for _ in range(4)]
    rows[1] = replace(rows[1], late=True)
    rows[2] = replace(rows[2], delivery=DeliveryView(state=DeliveryState.FAILED))
    rows[3] = replace(rows[3], waiting=True)
    here, late, failed, waiting = rows
    assert strung(rows, 9) == (
        (Bead.HERE, here), (Bead.LATE, late), (Bead.FAILED, failed),
        (Bead.MISSING, None), (Bead.MISSING, None), (Bead.MISSING, None), (Bead.HERE, waiting),
    )  # fmt: skip
    assert len(strung(rows * 10, 9)) == 11


def test_the_health_line_says_what_needs_care() -> None:
    engine = ScriptedEngine()
    view = engine.views[engine.add_group("G")]
    assert health_words(view) == ("", "You lack nothing")
    assert health_words(replace(view, missing=3)) == ("You lack 3", "")
    assert health_words(replace(view, missing=3, failed=1)) == ("You lack 3", ", 1 not sent")
    assert health_words(replace(view, waiting_to_send=2)) == ("", "2 waiting")
    assert health_words(view, offline=True) == ("", "Offline")
    assert health_words(replace(view, missing=3), offline=True) == ("You lack 3", "")


def test_notifications_hold_one_line_and_no_text_that_was_not_wanted() -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide <b>& Co")
    row = engine.row(group, member("Maya"), "meet <a href='x'>here</a>\nat 9")
    line = message_line(engine.views[group], row, show_text=True)
    assert line == "Maya: meet <a href='x'>here</a> at 9"
    line = message_line(engine.views[group], row, show_text=False)
    assert line == "New message from Maya"


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (1.0, "100 % chance"),
        (0.5, "50 % chance"),
        (0.000976, "0.098 % chance"),
        (0.001, "0.1 % chance"),
        (0.0000123, "0.0012 % chance"),
        (1e-17, "under 0.0001 % chance"),
        (0.0, "under 0.0001 % chance"),
        (7.0, "100 % chance"),
    ],
)
def test_a_chance_is_said_to_two_digits(probability: float, words: str) -> None:
    assert chance_words(probability) == words


def test_only_what_is_too_long_for_a_line_may_break_anywhere() -> None:
    peer = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
    shown = breaking(f"expected was {peer}.")
    assert shown.startswith("expected was 1\u200b2")
    assert shown.replace("\u200b", "") == f"expected was {peer}."
    assert breaking(shown) == shown
    assert breaking("nothing long in here") == "nothing long in here"
